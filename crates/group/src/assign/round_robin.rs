//! `roundrobin`: all partitions in order, dealt in turn to those that subscribe.

use bytes::Bytes;

use super::problem::Problem;
use super::{Assignor, Question, Shares};
use crate::partitions::{Partitions, Topic};

/// Kafka's `RoundRobinAssignor`: topics by name, partitions ascending, one circle of members for all; whoever does not
/// subscribe is skipped. With unequal subscriptions the shares may be very uneven. Eager; looks at nothing that was owned.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl Assignor for RoundRobin {
    fn name(&self) -> &str {
        "roundrobin"
    }

    fn is_eager(&self) -> bool {
        true
    }

    fn user_data(&self, _: &[Topic], _: &Partitions, _: i32) -> Option<Bytes> {
        None
    }

    fn assign(&self, question: &Question<'_>) -> Shares {
        let problem = Problem::new(question);
        let mut owners = problem.nobody();
        let mut turn = 0;
        for (lot, owners) in problem.lots.iter().zip(&mut owners) {
            for owner in owners {
                // The next subscriber at or after the turn, wrapping round.
                let next = lot.members.partition_point(|member| *member < turn);
                *owner = lot.members[next % lot.members.len()];
                turn = *owner + 1;
            }
        }
        problem.shares(&owners)
    }
}
