//! Who holds which partition while a group rebalances, as far as the coordinator can know: a partition is held from the answer to a
//! member's SyncGroup until a join of that member no longer claims it, or until the member is gone.

use crate::history::Move;
use crate::partitions::{Partitions, TopicPartition};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most partitions that are followed: assignments are bytes of a leader that may say anything.
const FOLLOWED: usize = 20_000;

/// A partition during a rebalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    /// Who had it when the rebalance began.
    before: Option<Arc<str>>,
    owner: Option<Arc<str>>,
    /// Since when it has had no owner, if it had one.
    free_since: Option<Timestamp>,
    released: Option<Timestamp>,
    assigned: Option<Timestamp>,
    ownerless_ms: u64,
    silent_ms: u64,
}

/// Who holds what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Holdings {
    places: BTreeMap<TopicPartition, Place>,
    held: BTreeMap<Arc<str>, Partitions>,
    /// There were too many to follow: nothing is said about any.
    too_many: bool,
}

impl Holdings {
    /// A member had this when the rebalance began.
    pub(super) fn had(&mut self, id: &Arc<str>, partitions: &Partitions) {
        if self.held.contains_key(id) || !self.room_for(partitions) {
            return;
        }
        for partition in each(partitions) {
            let place = self.places.entry(partition).or_default();
            place.before = Some(id.clone());
            place.owner = Some(id.clone());
        }
        self.held.insert(id.clone(), partitions.clone());
    }

    fn room_for(&mut self, partitions: &Partitions) -> bool {
        if self.places.len() + partitions.len() > FOLLOWED {
            self.too_many = true;
            self.places.clear();
            self.held.clear();
        }
        !self.too_many
    }

    /// A member joins and claims this: what else it held is free.
    pub(super) fn claims(&mut self, now: Timestamp, id: &Arc<str>, claimed: &Partitions) {
        let Some(held) = self.held.get(id) else {
            return;
        };
        let gone = held.minus(claimed);
        let kept = held.intersection(claimed);
        self.free(now, id, &gone, 0);
        self.held.insert(id.clone(), kept);
    }

    /// A member is out; before that it gave no sign of life for `silent_ms`.
    pub(super) fn gone(&mut self, now: Timestamp, id: &Arc<str>, silent_ms: u64) {
        if let Some(held) = self.held.remove(id) {
            self.free(now, id, &held, silent_ms);
        }
    }

    fn free(&mut self, now: Timestamp, id: &Arc<str>, partitions: &Partitions, silent_ms: u64) {
        for partition in each(partitions) {
            if let Some(place) = self.places.get_mut(&partition)
                && place.owner.as_ref() == Some(id)
            {
                place.owner = None;
                place.free_since = Some(now);
                place.released = Some(now);
                place.silent_ms += silent_ms;
            }
        }
    }

    /// A member is told its assignment; whether it holds more than that, and so has something to let go of.
    pub(super) fn told(&mut self, now: Timestamp, id: &Arc<str>, assigned: &Partitions) -> bool {
        let held = self.held.get(id).cloned().unwrap_or_default();
        let new = assigned.minus(&held);
        if self.too_many || (!new.is_empty() && !self.room_for(&new)) {
            return false;
        }
        for partition in each(&new) {
            let place = self.places.entry(partition.clone()).or_default();
            let loser = place.owner.replace(id.clone());
            if let Some(since) = place.free_since.take() {
                place.ownerless_ms += now.since(since);
            }
            place.assigned = Some(now);
            // Two owners, as far as one can see from here: the later word counts.
            if let Some(held) = loser.and_then(|loser| self.held.get_mut(&loser)) {
                held.remove(&partition.topic, partition.partition);
            }
        }
        let owes = !held.minus(assigned).is_empty();
        self.held.insert(id.clone(), held.union(&new));
        owes
    }

    /// A static member comes back under another id.
    pub(super) fn renamed(&mut self, old: &Arc<str>, new: &Arc<str>) {
        let Some(held) = self.held.remove(old) else {
            return;
        };
        self.held.insert(new.clone(), held);
        for place in self.places.values_mut() {
            for id in [&mut place.before, &mut place.owner] {
                if id.as_ref() == Some(old) {
                    *id = Some(new.clone());
                }
            }
        }
    }

    /// What each member had when the rebalance began; `None` if that is not known.
    pub(super) fn before(&self) -> Option<BTreeMap<Arc<str>, Partitions>> {
        if self.too_many {
            return None;
        }
        let mut before: BTreeMap<Arc<str>, Partitions> = BTreeMap::new();
        for (partition, place) in &self.places {
            if let Some(id) = &place.before {
                let set = before.entry(id.clone()).or_default();
                set.insert(&partition.topic, partition.partition);
            }
        }
        Some(before)
    }

    /// What moved, and what only paused.
    pub(super) fn moves(self) -> (Vec<Move>, Vec<Move>) {
        let (mut moves, mut pauses) = (Vec::new(), Vec::new());
        for (partition, place) in self.places {
            let one = Move {
                partition,
                from: place.before.as_deref().map(str::to_owned),
                to: place.owner.as_deref().map(str::to_owned),
                // Where nobody has it yet, the end is not known.
                ownerless_ms: place
                    .released
                    .filter(|_| place.owner.is_some())
                    .map(|_| place.ownerless_ms),
                released: place.released,
                assigned: place.assigned,
                silent_ms: place.silent_ms,
            };
            if place.before != place.owner {
                let kept = place.before.is_some() && place.released.is_none();
                moves.push(Move {
                    // Handed over without a join between: no time without an owner that could be seen from here.
                    ownerless_ms: one.ownerless_ms.or(kept.then_some(0)),
                    ..one
                });
            } else if one.released.is_some() {
                pauses.push(one);
            }
        }
        (moves, pauses)
    }
}

fn each(partitions: &Partitions) -> impl Iterator<Item = TopicPartition> {
    partitions
        .iter()
        .map(|(topic, partition)| TopicPartition::new(topic.clone(), partition))
}
