//! R1–R4: no acknowledged record is skipped, none is invented, one offset has one value, and each member reads in order. In a
//! run in which nothing is broken no record is read twice either.
//!
//! Would have caught an automatic commit that covers records which were fetched, but which the application has not seen.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::{Ledger, offset_of};

pub(crate) struct Records;

impl Invariant for Records {
    fn name(&self) -> &'static str {
        "R1-R4 records"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Appending(record) => {
                let Some((partition, Some(offset))) = offset_of(record) else {
                    return Ok(());
                };
                let read = ledger.logs.get(&partition).map_or(0, |log| log.read);
                if offset > read {
                    return Err(format!(
                        "R1: {partition} is committed at {offset}, but {read} was read by nobody"
                    ));
                }
                Ok(())
            }
            Fact::Read {
                process,
                partition,
                offset,
                value,
            } => {
                let log = ledger
                    .logs
                    .get(*partition)
                    .ok_or_else(|| format!("R2: {partition} has no record"))?;
                if log.values.get(*offset as usize) != Some(value) {
                    return Err(format!("R2/R3: {partition} at {offset} is not {value}"));
                }
                let expected = ledger
                    .holders
                    .get(process)
                    .and_then(|holder| holder.positions.get(*partition));
                if expected != Some(offset) {
                    return Err(format!(
                        "R4: process {process} reads {partition} at {offset}, expected {expected:?}"
                    ));
                }
                if ledger.quiet && *offset < log.read {
                    return Err(format!(
                        "process {process} reads {partition} at {offset} again, though nothing was broken"
                    ));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
