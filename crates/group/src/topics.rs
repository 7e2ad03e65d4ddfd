//! The topics that exist.

/// The topics that exist, with their partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TopicImage {}
