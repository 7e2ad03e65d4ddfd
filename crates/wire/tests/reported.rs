//! Faults that were reported in public about the bytes of group requests. Each test names its report.

#![allow(clippy::unwrap_used, missing_docs)]

use bytes::{Bytes, BytesMut};
use kohort_wire::api::{decode_request, encode};
use kohort_wire::embedded::{Assignment, Subscription};
use kohort_wire::frame;
use kohort_wire::messages::*;
use kohort_wire::primitives::cut;

fn join(reason: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"\0\0"),
        }],
        reason: Some(reason.to_owned()),
        ..JoinGroupRequest::default()
    }
}

/// KAFKA-13998, KAFKA-13828, KAFKA-14013: a reason of 100,000 characters can be written; versions without the field do not carry it; and a
/// cut does not split a character.
#[test]
fn a_reason_never_keeps_a_request_from_being_written() {
    let long = "é".repeat(100_000);
    for version in 0..=9 {
        let bytes = encode::<JoinGroupRequest, _>(&join(&long), version, BytesMut::new()).unwrap();
        let read: JoinGroupRequest = decode_request(bytes.freeze(), version).unwrap();
        let expected = (version >= 8).then_some(long.as_str());
        assert_eq!(read.reason.as_deref(), expected, "v{version}");
    }
    for version in 0..=5 {
        let leave = LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![LeaveGroupMember {
                member_id: "m".into(),
                reason: Some(long.clone()),
                ..LeaveGroupMember::default()
            }],
            ..LeaveGroupRequest::default()
        };
        let bytes = encode::<LeaveGroupRequest, _>(&leave, version, BytesMut::new()).unwrap();
        let read: LeaveGroupRequest = decode_request(bytes.freeze(), version).unwrap();
        let reason = read.members.first().and_then(|one| one.reason.clone());
        assert_eq!(reason.is_some(), version >= 5, "v{version}");
    }
    assert_eq!(cut(&long, 255).len(), 254);
    assert_eq!(cut("é", 1), "");
    assert_eq!(cut("short", 255), "short");
}

/// KAFKA-8653: version 0 has no rebalance timeout, and says so.
#[test]
fn version_zero_has_no_rebalance_timeout() {
    let bytes = encode::<JoinGroupRequest, _>(&join(""), 0, BytesMut::new()).unwrap();
    let read: JoinGroupRequest = decode_request(bytes.freeze(), 0).unwrap();
    assert_eq!(read.rebalance_timeout_ms, -1);
}

/// KAFKA-7641: a request of more than the limit is refused by its size alone, before a byte of it is kept.
#[test]
fn a_join_that_is_too_large_is_refused_by_its_size() {
    let mut request = join("");
    request.protocols = (0..1_000)
        .map(|at| JoinGroupProtocol {
            name: format!("p{at}"),
            metadata: Bytes::from(vec![0; 10 * 1024]),
        })
        .collect();
    let whole = frame::request(&request, 9, 1, None).unwrap();
    let mut begun = BytesMut::from(&whole[..8]);
    assert!(frame::split(&mut begun, 1024 * 1024).is_err());
    let mut begun = BytesMut::from(&whole[..]);
    assert!(
        frame::split(&mut begun, 20 * 1024 * 1024)
            .unwrap()
            .is_some()
    );
}

/// kafkajs#550, KAFKA-17733: nothing at all is an empty assignment, and what is written for nothing can be read by those who want bytes.
#[test]
fn nothing_assigned_is_written_in_full_and_read_from_no_bytes() {
    assert!(
        Assignment::decode(Bytes::new())
            .unwrap()
            .assigned
            .is_empty()
    );
    let written = Assignment::default().encode();
    assert!(written.len() >= 6, "version and count at least");
    assert!(Assignment::decode(written).unwrap().assigned.is_empty());
}

/// sarama#1808, sarama#1717, Burrow#327: version 99 with bytes that nobody knows is read as far as it is known.
#[test]
fn a_version_from_the_future_is_read() {
    let mut bytes = Subscription {
        topics: vec!["t".into()],
        generation: Some(4),
        rack: Some("r".into()),
        ..Subscription::default()
    }
    .encode()
    .to_vec();
    bytes[..2].copy_from_slice(&99_i16.to_be_bytes());
    bytes.extend_from_slice(b"what is to come");
    let read = Subscription::decode(Bytes::from(bytes)).unwrap();
    assert_eq!(read.topics, ["t".into()]);
    assert_eq!(
        (read.generation, read.rack.as_deref()),
        (Some(4), Some("r"))
    );
}
