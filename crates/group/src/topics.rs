//! The topics that exist.

use crate::partitions::{Partitions, Topic};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A topic: its id and its partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicInfo {
    /// The topic's id, zero if the broker gave none.
    pub id: [u8; 16],
    /// Whether it is one of the broker's own.
    pub internal: bool,
    /// The racks of each partition's replicas; empty where they are not known. Its length is the number of partitions.
    pub racks: Vec<BTreeSet<Arc<str>>>,
}

impl TopicInfo {
    /// A topic with so many partitions and nothing else known.
    #[must_use]
    pub fn with_partitions(count: usize) -> Self {
        Self {
            racks: vec![BTreeSet::new(); count],
            ..Self::default()
        }
    }

    /// How many partitions it has; they are numbered from 0.
    #[must_use]
    pub fn partitions(&self) -> i32 {
        i32::try_from(self.racks.len()).unwrap_or(i32::MAX)
    }
}

/// The topics that exist, with their partitions. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicImage(Arc<BTreeMap<Topic, TopicInfo>>);

impl TopicImage {
    /// An image of these topics.
    #[must_use]
    pub fn new(topics: BTreeMap<Topic, TopicInfo>) -> Self {
        Self(Arc::new(topics))
    }

    /// A topic, if it exists.
    #[must_use]
    pub fn get(&self, topic: &str) -> Option<&TopicInfo> {
        self.0.get(topic)
    }

    /// The name of the topic with this id.
    #[must_use]
    pub fn name_of(&self, id: &[u8; 16]) -> Option<&Topic> {
        self.0
            .iter()
            .find(|(_, info)| info.id == *id)
            .map(|(name, _)| name)
    }

    /// Whether this partition exists.
    #[must_use]
    pub fn has(&self, topic: &str, partition: i32) -> bool {
        self.get(topic)
            .is_some_and(|info| (0..info.partitions()).contains(&partition))
    }

    /// All topics, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Topic, &TopicInfo)> {
        self.0.iter()
    }

    /// How many topics there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All partitions of these topics that exist. A topic may come up again and again, as it does in the subscriptions of a large group
    /// (KAFKA-9987): its partitions are taken once.
    pub fn partitions_of<'a>(&self, topics: impl IntoIterator<Item = &'a Topic>) -> Partitions {
        let mut all = Partitions::new();
        let topics: BTreeSet<&Topic> = topics.into_iter().collect();
        for topic in topics {
            if let Some(info) = self.get(topic) {
                all.insert_all(topic, 0..info.partitions());
            }
        }
        all
    }
}

impl FromIterator<(Topic, TopicInfo)> for TopicImage {
    fn from_iter<I: IntoIterator<Item = (Topic, TopicInfo)>>(items: I) -> Self {
        Self::new(items.into_iter().collect())
    }
}
