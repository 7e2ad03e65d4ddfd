//! F5: while a member owns a partition, none of its commits is lower than one that was acknowledged to it: an automatic commit never
//! lowers a manual one.
//!
//! Would have caught an automatic commit that was made up before a manual one and sent after it.

use super::Invariant;
use crate::fact::{Fact, Process};
use crate::ledger::{Ledger, committing};
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_group::member::{Input, Output, Token};
use kohort_group::partitions::{Partitions, TopicPartition};
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct CommitsAscend {
    under_way: BTreeMap<(Process, Token), Vec<(TopicPartition, i64)>>,
    acknowledged: BTreeMap<(Process, TopicPartition), i64>,
}

impl Invariant for CommitsAscend {
    fn name(&self) -> &'static str {
        "F5 commits ascend"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Said { process, output } => self.said(*process, output)?,
            Fact::Told {
                process,
                input: Input::Response(token, GroupResponse::OffsetCommit(response)),
            } => {
                let asked = self.under_way.remove(&(*process, *token));
                for (at, offset) in asked.into_iter().flatten() {
                    let taken = response.topics.iter().any(|topic| {
                        topic.name.as_str() == &*at.topic
                            && topic.partitions.iter().any(|p| {
                                p.partition_index == at.partition && p.error_code.is_none()
                            })
                    });
                    if taken {
                        let known = self.acknowledged.entry((*process, at)).or_insert(offset);
                        *known = offset.max(*known);
                    }
                }
            }
            Fact::Ended(process) => {
                self.under_way.retain(|(owner, _), _| owner != process);
                self.acknowledged.retain(|(owner, _), _| owner != process);
            }
            _ => {}
        }
        Ok(())
    }
}

impl CommitsAscend {
    fn said(&mut self, process: Process, output: &Output) -> Result<(), String> {
        match output {
            Output::Send {
                token,
                request: GroupRequest::OffsetCommit(request),
                ..
            } => {
                let offsets = committing(request).offsets;
                for (at, offset) in &offsets {
                    let known = self.acknowledged.get(&(process, at.clone()));
                    if let Some(known) = known.filter(|known| offset < known) {
                        return Err(format!(
                            "process {process} commits {at} at {offset}, though {known} was acknowledged"
                        ));
                    }
                }
                self.under_way.insert((process, *token), offsets);
            }
            Output::Revoked { partitions, .. } | Output::Lost { partitions, .. } => {
                self.forget(process, partitions);
            }
            Output::Assign { added, .. } => self.forget(process, added),
            _ => {}
        }
        Ok(())
    }

    /// An ownership begins or ends.
    fn forget(&mut self, process: Process, partitions: &Partitions) {
        self.acknowledged.retain(|(owner, at), _| {
            *owner != process || !partitions.contains(&at.topic, at.partition)
        });
    }
}
