//! The decoders. What can be read can be written, and is read again alike.

use bytes::Bytes;
use kohort_group::coordinator::record::Record;
use kohort_wire::api::{self, ApiRequest};
use kohort_wire::embedded::{Assignment, CooperativeUserData, StickyUserData, Subscription};
use kohort_wire::frame;
use kohort_wire::header::RequestHeader;
use kohort_wire::messages::*;
use kohort_wire::records::batches as split;
use kohort_wire::{ApiKey, Decoder};

/// A batch may unpack to so many bytes.
const UNPACKED: usize = 1 << 16;

macro_rules! requests {
    ($($name:ident)*) => {
        pub(crate) fn flexible_since(key: ApiKey) -> i16 {
            $(if key == $name::KEY { return $name::FLEXIBLE; })*
            i16::MAX
        }

        fn request(key: ApiKey, body: Bytes, version: i16) {
            $(if key == $name::KEY { return round::<$name>(body, version); })*
        }

        fn response(key: ApiKey, frame: Bytes, version: i16) {
            // What was not asked for in a known version is never read.
            $(if key == $name::KEY {
                if $name::knows(version) {
                    let _ = frame::read_response::<$name>(frame, version);
                }
                return;
            })*
        }
    };
}

requests! {
    ProduceRequest FetchRequest ListOffsetsRequest MetadataRequest OffsetCommitRequest OffsetFetchRequest
    FindCoordinatorRequest JoinGroupRequest HeartbeatRequest LeaveGroupRequest SyncGroupRequest DescribeGroupsRequest
    ListGroupsRequest SaslHandshakeRequest ApiVersionsRequest CreateTopicsRequest DeleteTopicsRequest DeleteRecordsRequest
    InitProducerIdRequest OffsetForLeaderEpochRequest DescribeConfigsRequest AlterConfigsRequest SaslAuthenticateRequest
    CreatePartitionsRequest DeleteGroupsRequest IncrementalAlterConfigsRequest ListPartitionReassignmentsRequest
    OffsetDeleteRequest DescribeClusterRequest
}

fn round<R: ApiRequest + PartialEq + std::fmt::Debug>(body: Bytes, version: i16) {
    let Ok(read) = api::decode_request::<R>(body, version) else {
        return;
    };
    let written = frame::request(&read, version, 1, None)
        .unwrap_or_else(|error| panic!("{read:?} was read and cannot be written: {error}"));
    let mut from = Decoder::new(written.slice(4..));
    let again = RequestHeader::decode(&mut from, flexible_since)
        .and_then(|_| api::decode_request::<R>(from.rest().clone(), version));
    assert_eq!(again.as_ref(), Ok(&read), "version {version}");
}

/// A request's frame without its size.
pub(crate) fn requests(data: &[u8]) {
    let mut from = Decoder::new(Bytes::copy_from_slice(data));
    let Ok(header) = RequestHeader::decode(&mut from, flexible_since) else {
        return;
    };
    if let Some(key) = ApiKey::from_number(header.api_key) {
        request(key, from.rest().clone(), header.version);
    }
}

/// Two bytes for the API, one for the version, and a response's frame without its size.
pub(crate) fn responses(data: &[u8]) {
    let Some((&[high, low, version], frame)) = data.split_first_chunk() else {
        return;
    };
    if let Some(key) = ApiKey::from_number(i16::from_be_bytes([high, low])) {
        response(key, Bytes::copy_from_slice(frame), i16::from(version));
    }
}

/// Record batches, as in a fetch.
pub(crate) fn batches(data: &[u8]) {
    for batch in split(Bytes::copy_from_slice(data)).map_while(Result::ok) {
        // The fuzzer cannot guess checksums: what is in a batch is read whether its checksum is right or not.
        let _ = batch.check_crc();
        if let Ok(records) = batch.records(UNPACKED) {
            records.take_while(Result::is_ok).for_each(drop);
        }
    }
}

/// What members and leaders say to each other through the coordinator; the first byte says what it is.
pub(crate) fn embedded(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    let bytes = Bytes::copy_from_slice(rest);
    match kind % 3 {
        0 => {
            if let Ok(read) = Subscription::decode(bytes) {
                let again = Subscription::decode(read.encode_as(i16::from(kind / 3 % 4)));
                assert!(again.is_ok(), "{read:?} is not read again: {again:?}");
            }
        }
        1 => {
            if let Ok(read) = Assignment::decode(bytes) {
                // Partitions are written in order, whatever order they came in.
                let written = read.encode();
                let again = Assignment::decode(written.clone());
                assert_eq!(again.map(|again| again.encode()), Ok(written), "{read:?}");
            }
        }
        _ => {
            let sticky = StickyUserData::decode(&bytes);
            let _ = StickyUserData::decode(&sticky.encode());
            if let Some(read) = CooperativeUserData::decode(&bytes) {
                assert_eq!(CooperativeUserData::decode(&read.encode()), Some(read));
            }
        }
    }
}

/// A record of `__consumer_offsets`: a byte with the length of the key, the key, the value.
pub(crate) fn offsets(data: &[u8]) {
    let Some((length, rest)) = data.split_first() else {
        return;
    };
    let (key, value) = rest.split_at(rest.len().min(usize::from(*length)));
    let key = Bytes::copy_from_slice(key);
    for value in [Some(Bytes::copy_from_slice(value)), None] {
        if let Ok(Some(read)) = Record::decode(key.clone(), value) {
            let again = Record::decode(read.encode_key(), read.encode_value());
            assert_eq!(again.as_ref(), Ok(&Some(read.clone())), "{read:?}");
        }
    }
}
