//! Sets of partitions.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A topic's name.
pub type Topic = Arc<str>;

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic.
    pub topic: Topic,
    /// The partition's number.
    pub partition: i32,
}

/// A set of partitions, ordered by topic, then number.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partitions(BTreeMap<Topic, Vec<i32>>);
