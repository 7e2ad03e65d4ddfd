//! Tests over all messages at once: values for them, the list of them, and what must hold for each.
#![allow(clippy::unwrap_used)]

mod hostile;
mod oracle;

use crate::error_code::ErrorCode;
use crate::primitives::{Context, Uuid};
use bytes::Bytes;

/// Bytes that values are made of: where they end, everything is zero, so that what proptest shrinks shrinks the value.
pub(crate) struct Source {
    bytes: std::vec::IntoIter<u8>,
}

impl Source {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            bytes: bytes.into_iter(),
        }
    }

    fn byte(&mut self) -> u8 {
        self.bytes.next().unwrap_or(0)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn count(&mut self) -> usize {
        usize::from(self.byte() % 4)
    }
}

/// A type that a value can be made of: one that the version at hand can carry, so that it comes back from the wire as it went.
pub(crate) trait Sample: Sized {
    fn sample(from: &mut Source, context: Context) -> Self;
}

macro_rules! numbers {
    ($($type:ident)*) => {$(
        impl Sample for $type {
            fn sample(from: &mut Source, _: Context) -> Self {
                // Small numbers and −1 are as likely as the rest: defaults are among them.
                match from.byte() % 4 {
                    0 => 0,
                    1 => !0,
                    _ => $type::from_be_bytes(from.array()),
                }
            }
        }
    )*};
}
numbers!(i8 i16 u16 i32 i64);

impl Sample for bool {
    fn sample(from: &mut Source, _: Context) -> Self {
        from.byte() & 1 != 0
    }
}

impl Sample for Uuid {
    fn sample(from: &mut Source, _: Context) -> Self {
        from.array()
    }
}

impl Sample for ErrorCode {
    fn sample(from: &mut Source, context: Context) -> Self {
        ErrorCode::from_number(i16::sample(from, context))
    }
}

impl Sample for String {
    fn sample(from: &mut Source, _: Context) -> Self {
        (0..from.count() * 2)
            .map(|_| char::from(from.byte()))
            .collect()
    }
}

impl Sample for Bytes {
    fn sample(from: &mut Source, _: Context) -> Self {
        (0..from.count() * 50).map(|_| from.byte()).collect()
    }
}

impl<T: Sample> Sample for Vec<T> {
    fn sample(from: &mut Source, context: Context) -> Self {
        (0..from.count())
            .map(|_| T::sample(from, context))
            .collect()
    }
}

impl<T: Sample> Sample for Option<T> {
    fn sample(from: &mut Source, context: Context) -> Self {
        // The least byte is a value, since where null is not allowed none comes back from the wire.
        let null = context.nullable && from.byte() % 4 == 3;
        (!null).then(|| T::sample(from, context))
    }
}

/// Calls `$check!(Request)` for the requests of all APIs.
macro_rules! for_all_apis {
    ($check:ident) => {
        for_all_apis!(@each $check:
            AlterConfigsRequest ApiVersionsRequest CreatePartitionsRequest CreateTopicsRequest DeleteGroupsRequest
            DeleteRecordsRequest DeleteTopicsRequest DescribeClusterRequest DescribeConfigsRequest DescribeGroupsRequest
            FetchRequest FindCoordinatorRequest HeartbeatRequest IncrementalAlterConfigsRequest InitProducerIdRequest
            JoinGroupRequest LeaveGroupRequest ListGroupsRequest ListOffsetsRequest ListPartitionReassignmentsRequest
            MetadataRequest OffsetCommitRequest OffsetDeleteRequest OffsetFetchRequest OffsetForLeaderEpochRequest
            ProduceRequest SaslAuthenticateRequest SaslHandshakeRequest SyncGroupRequest
        );
    };
    (@each $check:ident: $($request:ident)*) => { $($check!($request);)* };
}
use for_all_apis;

#[test]
fn the_list_of_apis_is_whole() {
    use crate::api::{ApiKey, ApiRequest};
    let mut keys = Vec::new();
    macro_rules! key {
        ($request:ident) => {
            keys.push(crate::messages::$request::KEY)
        };
    }
    for_all_apis!(key);
    keys.sort_unstable();
    assert_eq!(keys, ApiKey::ALL);
}
