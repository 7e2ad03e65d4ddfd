//! What a member tells the leader when it joins.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    HIGHEST_VERSION, TopicPartitions, decode_count, decode_nullable_bytes, decode_partitions,
    decode_text, decode_topic, decode_version, encode_nullable_bytes, encode_partitions,
    encode_text, encode_topics,
};
use crate::primitives::{Decoder, Encoder, WireError};

/// `ConsumerProtocolSubscription`: the metadata of one protocol in a JoinGroup request of type `consumer`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subscription {
    /// The version in front of the bytes, as it came; [`Subscription::encode`] always writes [`HIGHEST_VERSION`].
    pub version: i16,
    /// The topics that the member wants.
    pub topics: Vec<Arc<str>>,
    /// What the member's assignor wants its leader to know.
    pub user_data: Option<Bytes>,
    /// The partitions that the member still holds while it joins (from version 1, KIP-429). Eager members hold none.
    pub owned: Vec<TopicPartitions>,
    /// The generation in which it got them (from version 2, KIP-792); a negative one reads as `None`.
    pub generation: Option<i32>,
    /// Where the member runs (from version 3, KIP-881); an empty one reads as `None`.
    pub rack: Option<String>,
}

impl Subscription {
    /// Reads a subscription. A version above [`HIGHEST_VERSION`] is read as that one, and whatever follows the last field
    /// is ignored, as Kafka does. Version 1 with the body of version 0, which some clients send, has no owned partitions.
    ///
    /// # Errors
    /// [`WireError`] for a negative version, or a field that is cut off or cannot be.
    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        let from = &mut Decoder::new(bytes);
        let version = decode_version(from)?;
        let mut topics = Vec::new();
        for _ in 0..decode_count(from, 2)? {
            topics.push(decode_topic(from)?);
        }
        let mut this = Self {
            version,
            topics,
            user_data: decode_nullable_bytes(from)?,
            ..Self::default()
        };
        if version >= 1 && !(version == 1 && from.remaining() == 0) {
            this.owned = decode_partitions(from)?;
        }
        if version >= 2 {
            this.generation = Some(from.i32()?).filter(|generation| *generation >= 0);
        }
        if version >= 3 {
            this.rack = decode_text(from)?
                .filter(|rack| !rack.is_empty())
                .map(|rack| rack.to_string());
        }
        Ok(this)
    }

    /// Writes the subscription at [`HIGHEST_VERSION`], topics and partitions sorted and distinct.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.encode_as(HIGHEST_VERSION)
    }

    /// Writes the fields that `version` (0 to [`HIGHEST_VERSION`]) has, as an older member would.
    #[must_use]
    pub fn encode_as(&self, version: i16) -> Bytes {
        let version = version.clamp(0, HIGHEST_VERSION);
        let mut to = Encoder::new();
        to.i16(version);
        encode_topics(&self.topics, &mut to);
        encode_nullable_bytes(self.user_data.as_ref(), &mut to);
        if version >= 1 {
            encode_partitions(&self.owned, &mut to);
        }
        if version >= 2 {
            to.i32(self.generation.unwrap_or(-1));
        }
        if version >= 3 {
            match &self.rack {
                Some(rack) => encode_text(rack, &mut to),
                None => to.length(None, false, false),
            }
        }
        to.into_bytes().freeze()
    }
}
