//! What Kafka's own assignors put into a subscription's user data, and the mark of members that know the explicit form.

use bytes::Bytes;

use super::{TopicPartitions, decode_partitions, encode_partitions};
use crate::primitives::{Decoder, Encoder};

/// `K429` and the form's version: a member that writes this after its generation understands an assignment's trailer.
/// Leaders that do not know it read the generation and ignore the rest.
pub const EXPLICIT_MARKER: [u8; 5] = [0x4b, 0x34, 0x32, 0x39, 0x01];

/// User data of `cooperative-sticky`: the generation of the last assignment that the member applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CooperativeUserData {
    /// The generation; −1 before the first assignment.
    pub generation: i32,
    /// Whether [`EXPLICIT_MARKER`] follows.
    pub explicit: bool,
}

impl CooperativeUserData {
    /// Reads the user data; `None` if it is too short to hold a generation.
    #[must_use]
    pub fn decode(bytes: &Bytes) -> Option<Self> {
        let mut from = Decoder::new(bytes.clone());
        Some(Self {
            generation: from.i32().ok()?,
            explicit: from.rest().starts_with(&EXPLICIT_MARKER),
        })
    }

    /// Writes the generation, and the marker if there is to be one.
    #[must_use]
    pub fn encode(self) -> Bytes {
        let mut to = Encoder::new();
        to.i32(self.generation);
        if self.explicit {
            to.raw(&EXPLICIT_MARKER);
        }
        to.into_bytes().freeze()
    }
}

/// User data of `sticky`, version 1: what an eager member had before it gave everything up (KIP-54, KIP-341).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StickyUserData {
    /// The partitions that the member had.
    pub previous: Vec<TopicPartitions>,
    /// The generation in which it had them; `None` in version 0, or if it is negative.
    pub generation: Option<i32>,
}

impl StickyUserData {
    /// Reads version 1, else version 0 (without the generation), else nothing: as Kafka's assignor forgives what it cannot read.
    #[must_use]
    pub fn decode(bytes: &Bytes) -> Self {
        let mut from = Decoder::new(bytes.clone());
        match decode_partitions(&mut from) {
            Ok(previous) => Self {
                previous,
                generation: from.i32().ok().filter(|generation| *generation >= 0),
            },
            Err(_) => Self::default(),
        }
    }

    /// Writes version 1, topics and partitions sorted and distinct.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut to = Encoder::new();
        encode_partitions(&self.previous, &mut to);
        to.i32(self.generation.unwrap_or(-1));
        to.into_bytes().freeze()
    }
}
