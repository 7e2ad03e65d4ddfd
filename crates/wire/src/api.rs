//! API keys, and what ties a request to its response.

use crate::primitives::{Context, Decoder, Encoder, WireError, WireType};
use bytes::{Bytes, BytesMut};

macro_rules! api_keys {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)*) => {
        /// What a request asks for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey { $($(#[$doc])* $name = $key,)* }

        impl ApiKey {
            /// All keys that are known here, ascending.
            pub const ALL: &'static [ApiKey] = &[$(ApiKey::$name,)*];

            /// The key with this number, if it is known here.
            #[must_use]
            pub fn from_number(number: i16) -> Option<Self> {
                match number { $($key => Some(ApiKey::$name),)* _ => None }
            }

            /// Kafka's name of the API.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(ApiKey::$name => stringify!($name),)* }
            }
        }
    };
}

api_keys! {
    /// Appends record batches.
    Produce = 0,
    /// Reads record batches.
    Fetch = 1,
    /// Offsets by time, or the first and the last.
    ListOffsets = 2,
    /// Brokers, topics, partitions and their leaders.
    Metadata = 3,
    /// Stores a group's offsets.
    OffsetCommit = 8,
    /// Reads a group's offsets.
    OffsetFetch = 9,
    /// Which broker coordinates a group.
    FindCoordinator = 10,
    /// Enters a group, or takes part in its next round.
    JoinGroup = 11,
    /// Says that a member is alive, and hears whether the group rebalances.
    Heartbeat = 12,
    /// Leaves a group.
    LeaveGroup = 13,
    /// Hands over the leader's assignments and receives one's own.
    SyncGroup = 14,
    /// Members, state and assignments of groups.
    DescribeGroups = 15,
    /// The groups of a broker.
    ListGroups = 16,
    /// Which SASL mechanism the client will use.
    SaslHandshake = 17,
    /// Which APIs a broker serves, in which versions.
    ApiVersions = 18,
    /// Makes topics.
    CreateTopics = 19,
    /// Removes topics.
    DeleteTopics = 20,
    /// Removes the oldest records of partitions.
    DeleteRecords = 21,
    /// A producer id, for idempotent producers (KIP-98).
    InitProducerId = 22,
    /// Where the records of a leader epoch end (KIP-279).
    OffsetForLeaderEpoch = 23,
    /// Settings of topics and brokers.
    DescribeConfigs = 32,
    /// Changes settings.
    AlterConfigs = 33,
    /// The SASL mechanism's own messages (KIP-152).
    SaslAuthenticate = 36,
    /// Adds partitions to topics.
    CreatePartitions = 37,
    /// Removes groups.
    DeleteGroups = 42,
    /// Changes settings one by one (KIP-339).
    IncrementalAlterConfigs = 44,
    /// Partitions that are being moved between brokers.
    ListPartitionReassignments = 46,
    /// Removes a group's offsets of some topics.
    OffsetDelete = 47,
    /// Brokers of the cluster (KIP-700).
    DescribeCluster = 60,
}

/// A request: its API, its versions and its response.
pub trait ApiRequest: WireType {
    /// The API.
    const KEY: ApiKey;
    /// The first and the last version that this code can read and write.
    const VERSIONS: (i16, i16);
    /// The first flexible version (KIP-482).
    const FLEXIBLE: i16;
    /// What answers it.
    type Response: WireType;

    /// Whether `version` can be read and written here.
    #[must_use]
    fn knows(version: i16) -> bool {
        Self::VERSIONS.0 <= version && version <= Self::VERSIONS.1
    }

    /// The encoding context of `version`.
    ///
    /// # Errors
    /// [`WireError::UnknownVersion`] outside [`Self::VERSIONS`].
    fn context(version: i16) -> Result<Context, WireError> {
        if Self::knows(version) {
            Ok(Context {
                version,
                flexible: version >= Self::FLEXIBLE,
                nullable: false,
            })
        } else {
            Err(WireError::UnknownVersion {
                api: Self::KEY.name(),
                version,
            })
        }
    }
}

/// Decodes a whole body, request or response, of the API of `R`.
///
/// # Errors
/// [`WireError`] if the bytes do not fit, or some are left over.
pub fn decode<R: ApiRequest, T: WireType>(body: Bytes, version: i16) -> Result<T, WireError> {
    let mut from = Decoder::new(body);
    let read = T::decode(&mut from, R::context(version)?)?;
    from.finish()?;
    Ok(read)
}

/// Decodes a request body.
///
/// # Errors
/// See [`decode`].
pub fn decode_request<R: ApiRequest>(body: Bytes, version: i16) -> Result<R, WireError> {
    decode::<R, R>(body, version)
}

/// Decodes a response body.
///
/// # Errors
/// See [`decode`].
pub fn decode_response<R: ApiRequest>(body: Bytes, version: i16) -> Result<R::Response, WireError> {
    decode::<R, R::Response>(body, version)
}

/// Encodes a body, request or response, of the API of `R`, at the end of `to`.
///
/// # Errors
/// [`WireError::UnknownVersion`].
pub fn encode<R: ApiRequest, T: WireType>(
    message: &T,
    version: i16,
    to: BytesMut,
) -> Result<BytesMut, WireError> {
    let mut encoder = Encoder::from_buffer(to);
    message.encode(&mut encoder, R::context(version)?);
    Ok(encoder.into_bytes())
}
