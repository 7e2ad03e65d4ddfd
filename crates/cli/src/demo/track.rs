//! One of the groups that play the story: what is known of it so far.

use super::ledger::{Ledger, Millis, Totals};
use super::rebalances::Shown;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What was produced: (partition, offset) → a hash of the record's value. Shared by all tracks.
#[derive(Clone, Debug, Default)]
pub(super) struct Produced(Arc<Mutex<BTreeMap<(i32, i64), u64>>>);

impl Produced {
    /// Writes down an acknowledged record.
    pub(super) fn add(&self, partition: i32, offset: i64, content: u64) {
        self.lock().insert((partition, offset), content);
    }

    /// How many records were acknowledged.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(i32, i64), u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One group.
#[derive(Debug)]
pub(super) struct Track {
    /// `explicit`, `cooperative` or `eager`.
    pub(super) mode: &'static str,
    pub(super) partitions: i32,
    /// The members' names, in the order of their colours.
    pub(super) names: Vec<String>,
    pub(super) ledger: Ledger,
    pub(super) rebalances: Vec<Shown>,
    /// What the story does right now.
    pub(super) act: Option<String>,
    /// Errors that members reported.
    pub(super) errors: Vec<String>,
    pub(super) produced: Produced,
}

impl Track {
    /// A group that has not begun.
    pub(super) fn new(mode: &'static str, partitions: i32, produced: Produced) -> Self {
        Self {
            mode,
            partitions,
            names: Vec::new(),
            ledger: Ledger::new(partitions),
            rebalances: Vec::new(),
            act: None,
            errors: Vec::new(),
            produced,
        }
    }

    /// Everything added up.
    pub(super) fn totals(&self, now: Millis) -> Totals {
        self.ledger.totals(now, &self.produced.lock())
    }

    /// Whether every record that was produced has come out.
    pub(super) fn complete(&self) -> bool {
        self.ledger.delivered_once() >= self.produced.len()
    }
}

impl Track {
    /// A rebalance has ended. One that only follows up the last one (a member has released what it was told to) belongs to it.
    pub(super) fn rebalanced(&mut self, shown: Shown, follows: bool) {
        if self
            .rebalances
            .last()
            .is_some_and(|last| last.generation >= shown.generation)
        {
            return;
        }
        match self.rebalances.last_mut() {
            Some(last) if follows => {
                last.generation = shown.generation;
                last.ended = shown.ended;
                last.rounds += shown.rounds;
                last.waited_for.extend(shown.waited_for);
            }
            _ => self.rebalances.push(shown),
        }
    }
}
