//! What was acknowledged, what was delivered, and who owns what: the books that the verdict is given from.

use kohort::TopicPartition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) acknowledged: BTreeSet<(TopicPartition, i64)>,
    pub(crate) delivered: BTreeMap<(TopicPartition, i64), u32>,
    pub(crate) owners: BTreeMap<String, BTreeSet<TopicPartition>>,
    /// At a moment two members had the same partition.
    pub(crate) doubles: Vec<String>,
    /// What must not happen in any run.
    pub(crate) trouble: Vec<String>,
    /// What happened, in order: the same for the same seed.
    pub(crate) story: Vec<String>,
    pub(crate) rebalances: u32,
}

impl Books {
    pub(crate) fn take(&mut self, name: &str, what: &TopicPartition) {
        for (other, owned) in &self.owners {
            if other != name && owned.contains(what) {
                self.doubles
                    .push(format!("{what} went to {name} while {other} had it"));
            }
        }
        let own = self.owners.entry(name.to_owned()).or_default();
        if !own.insert(what.clone()) {
            self.trouble.push(format!("{name} got {what} twice"));
        }
    }

    pub(crate) fn give(&mut self, name: &str, what: &TopicPartition) {
        let own = self.owners.get_mut(name);
        if !own.is_some_and(|own| own.remove(what)) {
            self.trouble
                .push(format!("{name} gave up {what}, which it did not have"));
        }
    }

    pub(crate) fn lose(&mut self, name: &str, what: &TopicPartition) {
        self.owners.entry(name.to_owned()).or_default().remove(what);
    }

    /// The process is gone, and whatever it had.
    pub(crate) fn gone(&mut self, name: &str) {
        self.owners.remove(name);
    }

    pub(crate) fn missing(&self) -> usize {
        let got = |record| self.delivered.contains_key(record);
        self.acknowledged
            .iter()
            .filter(|record| !got(*record))
            .count()
    }

    /// Whether all partitions have an owner, each one.
    pub(crate) fn covered(&self, partitions: usize) -> bool {
        let all: Vec<_> = self.owners.values().flatten().collect();
        all.len() == partitions && all.iter().collect::<BTreeSet<_>>().len() == partitions
    }
}

/// The books, shared by all simulated hosts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<Books>>);

impl Ledger {
    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, what: String) {
        let at = turmoil::sim_elapsed().unwrap_or_default().as_millis();
        self.books().story.push(format!("{at:>7} {what}"));
    }
}
