//! Whether an assignor's answer is one.

use std::collections::BTreeMap;

use super::problem::{NOBODY, Owners, Problem};
use super::{Question, Shares};
use crate::partitions::{Topic, TopicPartition};

/// An assignor's answer that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// A member that is not in the group, or one that is missing from the answer.
    #[error(
        "assignor {assignor} was asked about other members: {member} is {what}; it must answer for each member of the group and no other"
    )]
    Members {
        /// The assignor's name.
        assignor: String,
        /// The member's id.
        member: String,
        /// "not in the group" or "missing from its answer".
        what: &'static str,
    },
    /// A partition that a subscriber could have has nobody.
    #[error(
        "assignor {assignor} lost {partition}: members subscribe to its topic, and it gave it to nobody"
    )]
    Lost {
        /// The assignor's name.
        assignor: String,
        /// The partition.
        partition: TopicPartition,
    },
    /// A partition is given to two members.
    #[error("assignor {assignor} gave {partition} twice: to {first} and to {second}")]
    Twice {
        /// The assignor's name.
        assignor: String,
        /// The partition.
        partition: TopicPartition,
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// A partition is given to a member that does not want its topic.
    #[error(
        "assignor {assignor} gave {partition} to {member}, which does not subscribe to its topic"
    )]
    NotSubscribed {
        /// The assignor's name.
        assignor: String,
        /// The partition.
        partition: TopicPartition,
        /// The member's id.
        member: String,
    },
    /// A partition that was not to be given away: it does not exist, or it is kept by somebody.
    #[error(
        "assignor {assignor} gave {partition} to {member}, which was not to be given away: assign only what is available"
    )]
    NotAvailable {
        /// The assignor's name.
        assignor: String,
        /// The partition.
        partition: TopicPartition,
        /// The member's id.
        member: String,
    },
}

/// Checks an answer: each available partition of a subscribed topic is given to exactly one subscriber, and nothing else is.
///
/// # Errors
/// [`AssignError`] with the first fault, in the order of member ids and partitions.
pub fn check(assignor: &str, question: &Question<'_>, shares: &Shares) -> Result<(), AssignError> {
    let problem = Problem::new(question);
    let mut seen = Seen {
        assignor,
        question,
        owners: problem.nobody(),
        problem,
    };
    let members = seen.problem.members.iter().enumerate();
    let places: BTreeMap<String, u32> = members
        .map(|(place, member)| (member.member_id.clone(), place as u32))
        .collect();
    if let Some(id) = places.keys().find(|id| !shares.contains_key(*id)) {
        return Err(seen.stranger(id, "missing from its answer"));
    }
    for (id, share) in shares {
        let Some(place) = places.get(id) else {
            return Err(seen.stranger(id, "not in the group"));
        };
        for (topic, numbers) in share.by_topic() {
            seen.add(*place, topic, numbers)?;
        }
    }
    seen.complete()
}

/// An answer, as far as it was read.
struct Seen<'a> {
    assignor: &'a str,
    question: &'a Question<'a>,
    problem: Problem<'a>,
    owners: Owners,
}

impl Seen<'_> {
    fn stranger(&self, member: &str, what: &'static str) -> AssignError {
        AssignError::Members {
            assignor: self.assignor.to_owned(),
            member: member.to_owned(),
            what,
        }
    }

    fn id(&self, place: u32) -> String {
        self.problem.members[place as usize].member_id.clone()
    }

    fn add(&mut self, member: u32, topic: &Topic, numbers: &[i32]) -> Result<(), AssignError> {
        let assignor = self.assignor.to_owned();
        for number in numbers {
            let partition = TopicPartition::new(topic.clone(), *number);
            if !self.question.available.contains(topic, *number) {
                let member = self.id(member);
                return Err(AssignError::NotAvailable {
                    assignor,
                    partition,
                    member,
                });
            }
            let lots = &self.problem.lots;
            let lot = lots.binary_search_by(|lot| lot.topic.cmp(topic)).ok();
            let lot = lot.filter(|lot| lots[*lot].members.binary_search(&member).is_ok());
            let Some((lot, place)) = lot.and_then(|lot| Some((lot, lots[lot].place(*number)?)))
            else {
                let member = self.id(member);
                return Err(AssignError::NotSubscribed {
                    assignor,
                    partition,
                    member,
                });
            };
            let owner = std::mem::replace(&mut self.owners[lot][place], member);
            if owner != NOBODY {
                return Err(AssignError::Twice {
                    assignor,
                    partition,
                    first: self.id(owner),
                    second: self.id(member),
                });
            }
        }
        Ok(())
    }

    fn complete(&self) -> Result<(), AssignError> {
        for (lot, owners) in self.problem.lots.iter().zip(&self.owners) {
            if let Some(place) = owners.iter().position(|owner| *owner == NOBODY) {
                return Err(AssignError::Lost {
                    assignor: self.assignor.to_owned(),
                    partition: TopicPartition::new(lot.topic.clone(), lot.numbers[place]),
                });
            }
        }
        Ok(())
    }
}
