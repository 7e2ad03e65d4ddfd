//! F3: a member commits no further than its application has read, and only partitions that it owns.
//!
//! Would have caught KAFKA-14024: a retried commit could land after the revocation.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::{Ledger, committing};
use kohort_group::coordinator::GroupRequest;
use kohort_group::member::Output;

pub(crate) struct CommitsAreCovered;

impl Invariant for CommitsAreCovered {
    fn name(&self) -> &'static str {
        "F3 commits are covered"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Said {
            process,
            output:
                Output::Send {
                    request: GroupRequest::OffsetCommit(request),
                    ..
                },
        } = fact
        else {
            return Ok(());
        };
        let Some(holder) = ledger.holders.get(process) else {
            return Ok(());
        };
        for (partition, offset) in committing(request).offsets {
            if !holder.owned.contains(&partition.topic, partition.partition) {
                return Err(format!(
                    "process {process} commits {partition}, but owns {}",
                    holder.owned
                ));
            }
            let position = holder
                .positions
                .get(&partition)
                .max(holder.reached.get(&partition));
            if position.is_none_or(|position| offset > *position) {
                return Err(format!(
                    "process {process} commits {partition} at {offset}, but has read up to {position:?}"
                ));
            }
        }
        Ok(())
    }
}
