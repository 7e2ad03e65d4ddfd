//! F4: a new owner starts where the last durable commit says: never beyond what was read, never before what was committed.
//!
//! Would have caught a client that starts from an offset which was fetched before the old owner's last commit.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::member::Output;

pub(crate) struct NoGap;

impl Invariant for NoGap {
    fn name(&self) -> &'static str {
        "F4 no gap"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Said {
            process,
            output: Output::Start(offsets),
        } = fact
        else {
            return Ok(());
        };
        let fenced = ledger.holders.get(process).is_none_or(|me| me.fenced);
        for (partition, offset) in offsets {
            // The offsets of a deleted topic are on their way out.
            if !ledger.exist.contains(&partition.topic) {
                continue;
            }
            let start = offset.as_ref().map(|offset| offset.offset);
            let (read, committed) = ledger
                .logs
                .get(partition)
                .map_or((0, None), |log| (log.read, log.committed));
            if start.is_some_and(|start| start > read) {
                return Err(format!(
                    "process {process} starts {partition} at {start:?}, but only what is before {read} was read"
                ));
            }
            // A member that the group has gone on without may lag behind its successor, and a zombie's commit may come after the fetch.
            let excused = fenced || ledger.overtaken.contains(partition);
            if !excused && start < committed {
                return Err(format!(
                    "process {process} starts {partition} at {start:?}, but {committed:?} was committed"
                ));
            }
        }
        Ok(())
    }
}
