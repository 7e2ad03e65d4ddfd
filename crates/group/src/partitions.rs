//! Sets of partitions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A topic's name.
pub type Topic = Arc<str>;

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(into = "(String, i32)", from = "(String, i32)")
)]
pub struct TopicPartition {
    /// The topic.
    pub topic: Topic,
    /// The partition's number.
    pub partition: i32,
}

#[cfg(feature = "serde")]
impl From<(String, i32)> for TopicPartition {
    fn from((topic, partition): (String, i32)) -> Self {
        Self::new(topic, partition)
    }
}

#[cfg(feature = "serde")]
impl From<TopicPartition> for (String, i32) {
    fn from(partition: TopicPartition) -> Self {
        (partition.topic.to_string(), partition.partition)
    }
}

impl TopicPartition {
    /// Partition `partition` of `topic`.
    pub fn new(topic: impl Into<Topic>, partition: i32) -> Self {
        Self {
            topic: topic.into(),
            partition,
        }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

/// A set of partitions, ordered by topic, then number. No topic stands in it without a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partitions(BTreeMap<Topic, Vec<i32>>);

impl Partitions {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a partition; true if it was not in the set.
    pub fn insert(&mut self, topic: &Topic, partition: i32) -> bool {
        let numbers = match self.0.get_mut(topic) {
            Some(numbers) => numbers,
            None => self.0.entry(topic.clone()).or_default(),
        };
        match numbers.last() {
            Some(last) if *last >= partition => match numbers.binary_search(&partition) {
                Ok(_) => false,
                Err(at) => {
                    numbers.insert(at, partition);
                    true
                }
            },
            _ => {
                numbers.push(partition);
                true
            }
        }
    }

    /// Adds all of a topic's `numbers`, in any order, at once.
    pub fn insert_all(&mut self, topic: &Topic, numbers: impl IntoIterator<Item = i32>) {
        let mut all = self.0.remove(topic).unwrap_or_default();
        all.extend(numbers);
        all.sort_unstable();
        all.dedup();
        if !all.is_empty() {
            self.0.insert(topic.clone(), all);
        }
    }

    /// Removes a partition; true if it was in the set.
    pub fn remove(&mut self, topic: &str, partition: i32) -> bool {
        let Some(numbers) = self.0.get_mut(topic) else {
            return false;
        };
        let Ok(at) = numbers.binary_search(&partition) else {
            return false;
        };
        numbers.remove(at);
        if numbers.is_empty() {
            self.0.remove(topic);
        }
        true
    }

    /// Removes a topic with all its partitions.
    pub fn remove_topic(&mut self, topic: &str) {
        self.0.remove(topic);
    }

    /// Whether the set has this partition.
    #[must_use]
    pub fn contains(&self, topic: &str, partition: i32) -> bool {
        self.numbers(topic).binary_search(&partition).is_ok()
    }

    /// Whether the set has nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many partitions the set has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// All partitions, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Topic, i32)> {
        self.0
            .iter()
            .flat_map(|(topic, numbers)| numbers.iter().map(move |number| (topic, *number)))
    }

    /// The topics, in order.
    pub fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.0.keys()
    }

    /// Topics with their partitions' numbers, both ascending.
    pub fn by_topic(&self) -> impl Iterator<Item = (&Topic, &[i32])> {
        self.0
            .iter()
            .map(|(topic, numbers)| (topic, numbers.as_slice()))
    }

    /// A topic's partitions, ascending.
    #[must_use]
    pub fn numbers(&self, topic: &str) -> &[i32] {
        self.0.get(topic).map_or(&[], Vec::as_slice)
    }

    /// Adds everything in `other`.
    pub fn extend(&mut self, other: &Partitions) {
        for (topic, numbers) in &other.0 {
            match self.0.get_mut(topic) {
                Some(mine) => {
                    mine.extend_from_slice(numbers);
                    mine.sort_unstable();
                    mine.dedup();
                }
                None => {
                    self.0.insert(topic.clone(), numbers.clone());
                }
            }
        }
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Partitions) -> Partitions {
        let mut all = self.clone();
        all.extend(other);
        all
    }

    /// What is in this and not in `other`.
    #[must_use]
    pub fn minus(&self, other: &Partitions) -> Partitions {
        let mut left = self.clone();
        left.retain(|topic, partition| !other.contains(topic, partition));
        left
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Partitions) -> Partitions {
        let mut both = self.clone();
        both.retain(|topic, partition| other.contains(topic, partition));
        both
    }

    /// Whether everything in `other` is in this.
    #[must_use]
    pub fn is_superset_of(&self, other: &Partitions) -> bool {
        other.iter().all(|(topic, n)| self.contains(topic, n))
    }

    /// Keeps what `keep` says.
    pub fn retain(&mut self, mut keep: impl FnMut(&Topic, i32) -> bool) {
        self.0.retain(|topic, numbers| {
            numbers.retain(|number| keep(topic, *number));
            !numbers.is_empty()
        });
    }
}

impl FromIterator<(Topic, i32)> for Partitions {
    fn from_iter<I: IntoIterator<Item = (Topic, i32)>>(items: I) -> Self {
        // Sorted once at the end: what is claimed comes from others, and may come in any order.
        let mut set: BTreeMap<Topic, Vec<i32>> = BTreeMap::new();
        for (topic, partition) in items {
            set.entry(topic).or_default().push(partition);
        }
        for numbers in set.values_mut() {
            numbers.sort_unstable();
            numbers.dedup();
        }
        Self(set)
    }
}

impl FromIterator<TopicPartition> for Partitions {
    fn from_iter<I: IntoIterator<Item = TopicPartition>>(items: I) -> Self {
        items
            .into_iter()
            .map(|item| (item.topic, item.partition))
            .collect()
    }
}

/// `a-0 a-1 b-3`, or `nothing`.
impl fmt::Display for Partitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        for (i, (topic, partition)) in self.iter().enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}{topic}-{partition}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(items: &[(&str, i32)]) -> Partitions {
        items
            .iter()
            .map(|(topic, partition)| TopicPartition::new(*topic, *partition))
            .collect()
    }

    #[test]
    fn sets_do_what_sets_do() {
        let a = set(&[("t", 2), ("t", 0), ("u", 1), ("t", 2)]);
        let b = set(&[("t", 0), ("v", 5)]);
        assert_eq!(a.to_string(), "t-0 t-2 u-1");
        assert_eq!(a.union(&b).len(), 4);
        assert_eq!(a.minus(&b), set(&[("t", 2), ("u", 1)]));
        assert_eq!(a.intersection(&b), set(&[("t", 0)]));
        assert!(a.is_superset_of(&set(&[("u", 1)])) && !a.is_superset_of(&b));
    }

    #[test]
    fn an_emptied_topic_leaves_no_trace() {
        let mut a = set(&[("t", 0)]);
        assert!(a.remove("t", 0) && !a.remove("t", 0));
        assert_eq!(a, Partitions::new());
    }
}
