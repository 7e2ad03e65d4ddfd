//! I2 and I3: what is assigned was let go by its old owner before, unless somebody was fenced (a session or rebalance timeout
//! fired, a static member was replaced, a process died).
//!
//! Would have caught KAFKA-14639: a partition was revoked from one member and assigned to another in the same round.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::member::Output;

pub(crate) struct Handover;

impl Invariant for Handover {
    fn name(&self) -> &'static str {
        "I2/I3 released before it is assigned"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Said {
            process,
            output: Output::Assign { added, .. },
        } = fact
        else {
            return Ok(());
        };
        if ledger.holders.get(process).is_none_or(|me| me.fenced) {
            return Ok(());
        }
        for (other, holder) in ledger.alive() {
            if other == *process || holder.fenced {
                continue;
            }
            let both = holder.sure().intersection(added);
            if !both.is_empty() {
                return Err(format!(
                    "process {process} is assigned {both}, which process {other} has not let go"
                ));
            }
        }
        Ok(())
    }
}
