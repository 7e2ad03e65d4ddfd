//! What the leader tells a member.

use bytes::Bytes;

use super::{
    HIGHEST_VERSION, TopicPartitions, decode_nullable_bytes, decode_partitions, decode_version,
    encode_nullable_bytes, encode_partitions,
};
use crate::primitives::{Decoder, Encoder, WireError};

/// `ConsumerProtocolAssignment`: one member's part of a SyncGroup, with the explicit form's trailer where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Assignment {
    /// The version in front of the bytes, as it came; [`Assignment::encode`] always writes [`HIGHEST_VERSION`].
    pub version: i16,
    /// The partitions that the member has from now on.
    pub assigned: Vec<TopicPartitions>,
    /// What the leader's assignor wants the member to know.
    pub user_data: Option<Bytes>,
    /// What the member must give up, said in so many words; `None` from a leader that does not know the form.
    pub trailer: Option<Trailer>,
}

/// The fields after the user data that the explicit form adds (the draft of KIP-429). Readers that do not know them ignore them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trailer {
    /// The partitions that the member claimed and must give up.
    pub revoked: Vec<TopicPartitions>,
    /// What the member is to do next.
    pub error: AssignmentError,
}

/// The trailer's error code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AssignmentError {
    /// 0: nothing more.
    #[default]
    None,
    /// 1: another round follows, because a partition is on its way from one member to another.
    NeedRejoin,
    /// Anything else, which this code cannot obey: a member treats it as fatal and names the number.
    Unknown(i16),
}

impl AssignmentError {
    /// The code on the wire.
    #[must_use]
    pub fn code(self) -> i16 {
        match self {
            Self::None => 0,
            Self::NeedRejoin => 1,
            Self::Unknown(code) => code,
        }
    }

    /// The meaning of a code.
    #[must_use]
    pub fn from_code(code: i16) -> Self {
        match code {
            0 => Self::None,
            1 => Self::NeedRejoin,
            other => Self::Unknown(other),
        }
    }
}

impl Assignment {
    /// Reads an assignment. No bytes at all mean nothing was assigned: it is what a broker gives a member that the leader
    /// forgot. A version above [`HIGHEST_VERSION`] is read as that one.
    ///
    /// The trailer is read where the bytes after the user data are exactly one, and the version is one in which Kafka has
    /// nothing there; other bytes are ignored, as Kafka ignores them.
    ///
    /// # Errors
    /// [`WireError`] for a negative version, or a field that is cut off or cannot be.
    pub fn decode(bytes: Bytes) -> Result<Self, WireError> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let from = &mut Decoder::new(bytes);
        let version = decode_version(from)?;
        Ok(Self {
            version,
            assigned: decode_partitions(from)?,
            user_data: decode_nullable_bytes(from)?,
            trailer: if version <= HIGHEST_VERSION {
                decode_trailer(from).ok()
            } else {
                None
            },
        })
    }

    /// Writes the assignment at [`HIGHEST_VERSION`], topics and partitions sorted and distinct.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut to = Encoder::new();
        to.i16(HIGHEST_VERSION);
        encode_partitions(&self.assigned, &mut to);
        encode_nullable_bytes(self.user_data.as_ref(), &mut to);
        if let Some(trailer) = &self.trailer {
            encode_partitions(&trailer.revoked, &mut to);
            to.i16(trailer.error.code());
        }
        to.into_bytes().freeze()
    }
}

fn decode_trailer(from: &mut Decoder) -> Result<Trailer, WireError> {
    let trailer = Trailer {
        revoked: decode_partitions(from)?,
        error: AssignmentError::from_code(from.i16()?),
    };
    from.finish()?;
    Ok(trailer)
}
