//! What the members of a group say to each other inside JoinGroup and SyncGroup; the broker passes it on as bytes.
//!
//! ```text
//!   member ── Subscription (version 0–3) ──▶ leader        topics, user data, what it owns, generation, rack
//!   member ◀── Assignment (+ trailer) ────── leader        partitions, user data; to members that know it: what to revoke
//! ```
//!
//! The layouts are Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment` (KIP-429, KIP-792, KIP-881):
//! big-endian, int16 string lengths, never flexible. Writers sort topics and partitions, so that equal sets give equal
//! bytes and a coordinator that compares bytes sees no change where there is none (KAFKA-12898). Readers never panic, and a
//! count taken from the bytes reserves nothing.

mod assignment;
mod subscription;
mod user_data;

pub use assignment::{Assignment, AssignmentError, Trailer};
pub use subscription::Subscription;
pub use user_data::{CooperativeUserData, EXPLICIT_MARKER, StickyUserData};

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::primitives::{Decoder, Encoder, WireError, cut};

/// The highest version of Subscription and Assignment that is known: what writers write, and as what anything newer is read.
pub const HIGHEST_VERSION: i16 = 3;

/// Some partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartitions {
    /// The topic's name.
    pub topic: Arc<str>,
    /// Partition numbers, as the bytes have them: perhaps unsorted, repeated or negative.
    pub partitions: Vec<i32>,
}

/// Reads the version in front of either message: below 0 is refused, above [`HIGHEST_VERSION`] is taken as it stands.
fn decode_version(from: &mut Decoder) -> Result<i16, WireError> {
    let version = from.i16()?;
    if version < 0 {
        return Err(WireError::BadLength(i64::from(version)));
    }
    Ok(version)
}

/// Reads the count of an array. Each element takes at least `element` bytes, so a count that cannot be true ends here.
fn decode_count(from: &mut Decoder, element: usize) -> Result<usize, WireError> {
    let count = from.length(false, true)?.ok_or(WireError::UnexpectedNull)?;
    let wanted = count.saturating_mul(element);
    if wanted > from.remaining() {
        return Err(WireError::TooShort {
            wanted,
            left: from.remaining(),
        });
    }
    Ok(count)
}

fn decode_text(from: &mut Decoder) -> Result<Option<Arc<str>>, WireError> {
    let Some(length) = from.length(false, false)? else {
        return Ok(None);
    };
    let bytes = from.take(length)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| WireError::NotUtf8)?;
    Ok(Some(Arc::from(text)))
}

fn encode_text(text: &str, to: &mut Encoder) {
    let text = cut(text, i16::MAX as usize);
    to.length(Some(text.len()), false, false);
    to.raw(text.as_bytes());
}

fn decode_topic(from: &mut Decoder) -> Result<Arc<str>, WireError> {
    decode_text(from)?.ok_or(WireError::UnexpectedNull)
}

fn decode_nullable_bytes(from: &mut Decoder) -> Result<Option<Bytes>, WireError> {
    match from.length(false, true)? {
        None => Ok(None),
        Some(length) => Ok(Some(from.take(length)?)),
    }
}

fn encode_nullable_bytes(bytes: Option<&Bytes>, to: &mut Encoder) {
    to.length(bytes.map(Bytes::len), false, true);
    if let Some(bytes) = bytes {
        to.raw(bytes);
    }
}

fn decode_partitions(from: &mut Decoder) -> Result<Vec<TopicPartitions>, WireError> {
    let count = decode_count(from, 2 + 4)?;
    let mut topics = Vec::new();
    for _ in 0..count {
        let topic = decode_topic(from)?;
        let count = decode_count(from, 4)?;
        let mut partitions = Vec::new();
        for _ in 0..count {
            partitions.push(from.i32()?);
        }
        topics.push(TopicPartitions { topic, partitions });
    }
    Ok(topics)
}

/// Writes each topic once, sorted, with its partitions sorted and distinct; a topic without partitions is left out.
fn encode_partitions(list: &[TopicPartitions], to: &mut Encoder) {
    let mut sorted: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for entry in list.iter().filter(|entry| !entry.partitions.is_empty()) {
        sorted
            .entry(&entry.topic)
            .or_default()
            .extend_from_slice(&entry.partitions);
    }
    to.length(Some(sorted.len()), false, true);
    for (topic, mut partitions) in sorted {
        partitions.sort_unstable();
        partitions.dedup();
        encode_text(topic, to);
        to.length(Some(partitions.len()), false, true);
        for partition in partitions {
            to.i32(partition);
        }
    }
}

/// Writes each topic once, sorted.
fn encode_topics(topics: &[Arc<str>], to: &mut Encoder) {
    let mut sorted: Vec<&str> = topics.iter().map(AsRef::as_ref).collect();
    sorted.sort_unstable();
    sorted.dedup();
    to.length(Some(sorted.len()), false, true);
    for topic in sorted {
        encode_text(topic, to);
    }
}

#[cfg(test)]
mod tests;
