//! Time as an input: machines never ask for it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Add, Sub};

/// Milliseconds since the shell's start. It never goes back; the shell sees to that, whatever the wall clock does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Milliseconds from `earlier` until this, 0 if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: Timestamp) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Timestamp {
    type Output = Timestamp;
    fn add(self, milliseconds: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(milliseconds))
    }
}

impl Sub<u64> for Timestamp {
    type Output = Timestamp;
    fn sub(self, milliseconds: u64) -> Timestamp {
        Timestamp(self.0.saturating_sub(milliseconds))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Named alarms, at most one per name; the earliest is found in O(log n).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Alarms<K: Ord + Clone> {
    due: BTreeMap<K, Timestamp>,
    order: std::collections::BTreeSet<(Timestamp, K)>,
}

impl<K: Ord + Clone> Default for Alarms<K> {
    fn default() -> Self {
        Self {
            due: BTreeMap::new(),
            order: std::collections::BTreeSet::new(),
        }
    }
}

impl<K: Ord + Clone> Alarms<K> {
    /// Arms `name` for `due`, in place of an earlier arming.
    pub fn set(&mut self, name: K, due: Timestamp) {
        self.cancel(&name);
        self.order.insert((due, name.clone()));
        self.due.insert(name, due);
    }

    /// Disarms `name`; true if it was armed.
    pub fn cancel(&mut self, name: &K) -> bool {
        match self.due.remove(name) {
            Some(due) => self.order.remove(&(due, name.clone())),
            None => false,
        }
    }

    /// When `name` is due, if it is armed.
    #[must_use]
    pub fn due(&self, name: &K) -> Option<Timestamp> {
        self.due.get(name).copied()
    }

    /// The earliest armed alarm.
    #[must_use]
    pub fn next(&self) -> Option<(Timestamp, &K)> {
        self.order.first().map(|(due, name)| (*due, name))
    }

    /// All armed alarms, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Timestamp)> {
        self.due.iter().map(|(name, due)| (name, *due))
    }

    /// How many are armed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether none is armed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_replaced_not_doubled() {
        let mut alarms = Alarms::default();
        alarms.set("a", Timestamp(5));
        alarms.set("b", Timestamp(3));
        alarms.set("a", Timestamp(1));
        assert_eq!(alarms.next(), Some((Timestamp(1), &"a")));
        assert!(alarms.cancel(&"a") && !alarms.cancel(&"a"));
        assert_eq!(
            (alarms.next(), alarms.len()),
            (Some((Timestamp(3), &"b")), 1)
        );
    }
}
