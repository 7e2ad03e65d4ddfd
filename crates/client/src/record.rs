//! Records as the application sees them.

use bytes::Bytes;
use kohort_group::partitions::Topic;

/// A record to be sent.
///
/// ```
/// use kohort::NewRecord;
/// let record = NewRecord::to("orders").key("customer-7").value("3 apples").header("source", "shop");
/// assert_eq!(record.partition, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRecord {
    /// The topic.
    pub topic: Topic,
    /// The partition; `None` lets the key decide, or, without one, the producer.
    pub partition: Option<i32>,
    /// What records that belong together have in common.
    pub key: Option<Bytes>,
    /// The payload; `None` is a tombstone, which deletes the key in a compacted topic.
    pub value: Option<Bytes>,
    /// Names and values beside the payload.
    pub headers: Vec<(String, Option<Bytes>)>,
    /// Unix milliseconds; `None` means now.
    pub timestamp: Option<i64>,
}

impl NewRecord {
    /// A record for a topic, empty yet.
    #[must_use]
    pub fn to(topic: &str) -> Self {
        Self::to_topic(&topic.into())
    }

    /// The same for a topic whose name is at hand already shared.
    #[must_use]
    pub fn to_topic(topic: &Topic) -> Self {
        Self {
            topic: topic.clone(),
            partition: None,
            key: None,
            value: None,
            headers: Vec::new(),
            timestamp: None,
        }
    }

    /// With this key.
    #[must_use]
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// With this payload.
    #[must_use]
    pub fn value(mut self, value: impl Into<Bytes>) -> Self {
        self.value = Some(value.into());
        self
    }

    /// With one header more.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// To this partition.
    #[must_use]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Of this time, in Unix milliseconds.
    #[must_use]
    pub fn timestamp(mut self, milliseconds: i64) -> Self {
        self.timestamp = Some(milliseconds);
        self
    }
}
