//! I5: a member is assigned only what its application wants, and only partitions that exist (or existed a moment ago).
//!
//! Would have caught a member that believes a leader who shares out a topic which the member has just given up (Kafka's consumer
//! refuses such an assignment and joins again).

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::member::Output;

pub(crate) struct Wanted;

impl Invariant for Wanted {
    fn name(&self) -> &'static str {
        "I5 wanted and existing"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Said {
            process,
            output: Output::Assign { added, .. },
        } = fact
        else {
            return Ok(());
        };
        let Some(holder) = ledger.holders.get(process) else {
            return Ok(());
        };
        for (topic, partition) in added.iter() {
            if !holder.wants.contains(topic) {
                return Err(format!(
                    "process {process} is assigned {topic}-{partition}, but wants {:?}",
                    holder.wants
                ));
            }
            if ledger
                .ever
                .get(topic)
                .is_none_or(|count| partition >= *count)
            {
                return Err(format!(
                    "process {process} is assigned {topic}-{partition}, which never existed"
                ));
            }
        }
        Ok(())
    }
}
