//! How many partitions had to move.

use crate::assign::{Assignor, CooperativeSticky, Question, Subscriber};
use crate::coordinator::classic::Group;
use crate::partitions::Partitions;
use crate::topics::TopicImage;
use kohort_wire::embedded::Subscription;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most partitions and members, multiplied, for which it is worked out: more would take the coordinator too long.
const WORK: usize = 1_000_000;

impl Group {
    /// The fewest moves from what members had `before` to shares as even as their subscriptions allow; `None` where subscriptions
    /// cannot be read, topics are not known, or the group is too large.
    pub(super) fn minimum_moves(
        &self,
        before: &BTreeMap<Arc<str>, Partitions>,
        topics: &TopicImage,
    ) -> Option<usize> {
        let protocol = self.protocol.as_deref()?;
        if !self.is_consumer() || topics.is_empty() {
            return None;
        }
        let mut subscribers = Vec::new();
        for member in self.members.values() {
            let said = Subscription::decode(member.metadata(protocol)).ok()?;
            let mut topics = said.topics;
            topics.sort_unstable();
            topics.dedup();
            subscribers.push(Subscriber {
                member_id: member.id.to_string(),
                instance_id: member.instance.clone(),
                topics,
                owned: before.get(&member.id).cloned().unwrap_or_default(),
                ..Subscriber::default()
            });
        }
        let wanted: BTreeSet<_> = subscribers.iter().flat_map(|s| &s.topics).collect();
        let available = topics.partitions_of(wanted);
        if available.len().saturating_mul(subscribers.len()) > WORK {
            return None;
        }
        let shares = CooperativeSticky.assign(&Question {
            subscribers: &subscribers,
            available: &available,
            topics,
        });
        let moved = before.iter().map(|(id, had)| {
            let keeps = shares.get(&**id).cloned().unwrap_or_default();
            // What nobody wants any more does not move: it ends.
            had.minus(&keeps).intersection(&available).len()
        });
        Some(moved.sum())
    }
}
