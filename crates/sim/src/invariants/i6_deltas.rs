//! I6: a member delivers only what it owns, and nothing after it was told to let go; what it is told are true deltas.
//!
//! Would have caught KAFKA-14024: a slow commit kept a cooperative member from letting go, and it read on beyond it.

use super::Invariant;
use crate::fact::{Fact, Process};
use crate::ledger::{Holder, Ledger};
use kohort_group::member::Output;
use kohort_group::partitions::Partitions;

pub(crate) struct Deltas;

impl Invariant for Deltas {
    fn name(&self) -> &'static str {
        "I6 only what is owned, and nothing after revoke"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Said { process, output } => match ledger.holders.get(process) {
                Some(holder) => said(*process, output, holder),
                None => Ok(()),
            },
            Fact::Read {
                process, partition, ..
            } => {
                let reads = ledger.holders.get(process).is_some_and(|holder| {
                    let (topic, number) = (&partition.topic, partition.partition);
                    holder.owned.contains(topic, number)
                        && !holder.releasing.contains(topic, number)
                });
                if reads {
                    Ok(())
                } else {
                    Err(format!("process {process} reads {partition}"))
                }
            }
            _ => Ok(()),
        }
    }
}

fn said(process: Process, output: &Output, holder: &Holder) -> Result<(), String> {
    let within = |what: &str, part: &Partitions, whole: &Partitions| {
        if whole.is_superset_of(part) {
            Ok(())
        } else {
            Err(format!(
                "process {process}: {what} {part}, but it has only {whole}"
            ))
        }
    };
    match output {
        Output::Assign { added, owned, .. } => {
            let again = added.intersection(&holder.owned);
            if !again.is_empty() {
                return Err(format!("process {process} is assigned {again} again"));
            }
            within("is assigned, but not as owned:", added, owned)?;
            let expected = holder.owned.union(added);
            if *owned == expected || *owned == expected.minus(&holder.releasing) {
                Ok(())
            } else {
                Err(format!(
                    "process {process} says it owns {owned}, but its deltas add up to {expected}"
                ))
            }
        }
        Output::Start(offsets) => {
            let started: Partitions = offsets.keys().cloned().collect();
            let readable = holder.owned.minus(&holder.releasing);
            within("starts", &started, &readable)
        }
        Output::Revoke { partitions, .. } => {
            let rest = holder.owned.minus(&holder.releasing);
            within("is told to release", partitions, &rest)
        }
        Output::Revoked { partitions, .. } => within("has released", partitions, &holder.releasing),
        Output::Lost { partitions, .. } => within("has lost", partitions, &holder.owned),
        Output::Fatal(_) | Output::Closed if !holder.owned.is_empty() => Err(format!(
            "process {process} ends while it holds {}",
            holder.owned
        )),
        _ => Ok(()),
    }
}
