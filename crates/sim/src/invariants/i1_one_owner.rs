//! I1: no two unfenced members hold a partition under the same generation. Always, in every mode, under any fault.
//!
//! Would have caught KAFKA-12984: the sticky assignors believed stale claims, and gave one partition to two members.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::member::Output;

pub(crate) struct OneOwner;

impl Invariant for OneOwner {
    fn name(&self) -> &'static str {
        "I1 one owner in a generation"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Said {
            process,
            output: Output::Assign {
                owned, generation, ..
            },
        } = fact
        else {
            return Ok(());
        };
        let Some(me) = ledger.holders.get(process).filter(|me| !me.fenced) else {
            return Ok(());
        };
        let overdue = &me.overdue;
        for (other, holder) in ledger.alive() {
            if other == *process || holder.fenced || holder.generation != *generation {
                continue;
            }
            let both = holder.sure().intersection(owned).minus(overdue);
            if !both.is_empty() {
                return Err(format!(
                    "process {process} and process {other} both hold {both} in generation {generation}"
                ));
            }
        }
        Ok(())
    }
}
