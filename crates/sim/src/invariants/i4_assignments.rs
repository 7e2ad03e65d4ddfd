//! I4: the coordinator's view is a function: a partition has at most one member in what is written to the log.
//!
//! Would have caught KAFKA-13406: double claims went through the cooperative adjustment, and two members were given one partition.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::coordinator::record::Record;
use kohort_wire::embedded::Assignment;
use std::collections::BTreeMap;

pub(crate) struct Assignments;

impl Invariant for Assignments {
    fn name(&self) -> &'static str {
        "I4 one member for a partition in the log"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        let Fact::Appending(Record::Group {
            value: Some(group), ..
        }) = fact
        else {
            return Ok(());
        };
        let mut owners = BTreeMap::new();
        for member in &group.members {
            if member.assignment.is_empty() {
                continue;
            }
            let assignment = Assignment::decode(member.assignment.clone()).map_err(|error| {
                format!("{}'s assignment cannot be read: {error}", member.member_id)
            })?;
            for topic in &assignment.assigned {
                for partition in &topic.partitions {
                    if let Some(other) =
                        owners.insert((topic.topic.clone(), *partition), &member.member_id)
                    {
                        return Err(format!(
                            "{}-{partition} is given to {other} and {} in generation {}",
                            topic.topic, member.member_id, group.generation
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}
