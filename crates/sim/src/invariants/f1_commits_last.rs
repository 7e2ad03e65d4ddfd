//! F1: an acknowledged commit is never lost: it was durable before its answer went out, and a fetch gives the last one.
//!
//! Would have caught a coordinator that answers a commit before it is durable, and loses it in a crash.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::{Commit, Ledger, Question, offset_of};
use kohort_group::coordinator::{GroupResponse, RequestId};
use kohort_group::partitions::TopicPartition;
use kohort_wire::messages::{OffsetCommitResponse, OffsetFetchResponse};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct CommitsLast {
    durable: BTreeSet<(TopicPartition, i64)>,
    answered: BTreeMap<RequestId, Commit>,
}

impl Invariant for CommitsLast {
    fn name(&self) -> &'static str {
        "F1 acknowledged commits last"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Durable(record) => {
                if let Some((partition, Some(offset))) = offset_of(record) {
                    self.durable.insert((partition, offset));
                }
                Ok(())
            }
            Fact::Answered { id, response } => {
                if let Some(asked) = ledger.requests.get(id)
                    && let Question::Commit(commit) = &asked.what
                {
                    self.answered.insert(*id, commit.clone());
                }
                match response {
                    GroupResponse::OffsetFetch(fetched) => right(fetched, ledger),
                    _ => Ok(()),
                }
            }
            Fact::Sent {
                id,
                response: GroupResponse::OffsetCommit(response),
            } => match self.answered.remove(id) {
                Some(commit) => self.acknowledged(&commit, response),
                None => Ok(()),
            },
            Fact::CoordinatorDown => {
                self.answered.clear();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl CommitsLast {
    fn acknowledged(&self, commit: &Commit, response: &OffsetCommitResponse) -> Result<(), String> {
        for topic in &response.topics {
            for partition in topic.partitions.iter().filter(|p| p.error_code.is_none()) {
                let at = TopicPartition::new(topic.name.as_str(), partition.partition_index);
                for (_, offset) in commit.offsets.iter().filter(|(asked, _)| *asked == at) {
                    if !self.durable.contains(&(at.clone(), *offset)) {
                        return Err(format!(
                            "{at} at {offset} was acknowledged, but is not in the log"
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

fn right(response: &OffsetFetchResponse, ledger: &Ledger) -> Result<(), String> {
    let flat = response.topics.iter().map(|t| (&t.name, &t.partitions));
    let grouped = response
        .groups
        .iter()
        .flat_map(|g| g.topics.iter().map(|t| (&t.name, &t.partitions)));
    for (name, partitions) in flat.chain(grouped) {
        for partition in partitions.iter().filter(|p| p.error_code.is_none()) {
            let at = TopicPartition::new(name.as_str(), partition.partition_index);
            if !ledger.may_be_committed(&at, partition.committed_offset) {
                return Err(format!(
                    "a fetch says {at} is at {}, but the log says {:?}",
                    partition.committed_offset,
                    ledger.logs.get(&at).and_then(|log| log.committed)
                ));
            }
        }
    }
    Ok(())
}
