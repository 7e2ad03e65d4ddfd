//! Every message in every version against the `kafka-protocol` crate, which is generated from Kafka's own schemas.

use super::{Sample, Source, for_all_apis};
use crate::api::{ApiRequest, decode, encode};
use crate::error_code::ErrorCode;
use crate::messages;
use crate::primitives::WireType;
use bytes::{Bytes, BytesMut};
use kafka_protocol::error::ParseResponseErrorCode;
use kafka_protocol::messages as theirs;
use kafka_protocol::protocol::{Decodable, Encodable, Message, Request};
use proptest::prelude::*;
use std::fmt::Debug;

/// What we write, they read and write again: the same bytes. What they wrote, we read: the same value.
fn compare<R, Ours, Theirs>(source: &[u8], version: i16)
where
    R: ApiRequest,
    Ours: WireType + Sample + PartialEq + Debug,
    Theirs: Message + Encodable + Decodable + Debug,
{
    let context = R::context(version).unwrap();
    let value = Ours::sample(&mut Source::new(source.to_vec()), context);
    let written: Bytes = encode::<R, Ours>(&value, version, BytesMut::new())
        .unwrap()
        .freeze();
    let read: Ours = decode::<R, Ours>(written.clone(), version).unwrap();
    assert_eq!(read, value, "v{version}, through our own code");

    if (Theirs::VERSIONS.min..=Theirs::VERSIONS.max).contains(&version) {
        let mut rest = written.clone();
        let oracle = Theirs::decode(&mut rest, version)
            .unwrap_or_else(|error| panic!("v{version} {error}: {value:?} as {written:?}"));
        assert!(
            rest.is_empty(),
            "v{version}: they leave {rest:?} of {value:?}"
        );
        let mut again = BytesMut::new();
        oracle.encode(&mut again, version).unwrap();
        assert_eq!(
            again, written,
            "v{version}: {value:?} is {oracle:?} for them"
        );
    }
}

fn compare_api<R, Theirs>(source: &[u8])
where
    R: ApiRequest + Sample + PartialEq + Debug,
    R::Response: Sample + PartialEq + Debug,
    Theirs: Request + Debug,
    Theirs::Response: Debug,
{
    assert_eq!(R::KEY as i16, Theirs::KEY);
    let flexible_header = |version| Theirs::header_version(version) >= 2;
    for version in R::VERSIONS.0..=R::VERSIONS.1 {
        if (Theirs::VERSIONS.min..=Theirs::VERSIONS.max).contains(&version) {
            assert_eq!(
                version >= R::FLEXIBLE,
                flexible_header(version),
                "v{version}"
            );
        }
        compare::<R, R, Theirs>(source, version);
        compare::<R, R::Response, Theirs::Response>(source, version);
    }
}

macro_rules! oracle_test {
    ($request:ident) => {
        // A panic keeps what proptest has found; the name of the message goes with it.
        let outcome = runner().run(&source(), |source| {
            compare_api::<messages::$request, theirs::$request>(&source);
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{}: {error}", stringify!($request));
        }
    };
}

fn runner() -> proptest::test_runner::TestRunner {
    proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    })
}

/// From nothing at all (the defaults) to deep messages.
fn source() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..400)
}

#[test]
fn every_message_in_every_version_is_laid_out_as_kafka_protocol_does() {
    for_all_apis!(oracle_test);
}

#[test]
fn error_codes_have_the_names_that_kafka_protocol_knows() {
    for &code in ErrorCode::ALL {
        let camel: String = code
            .name()
            .split('_')
            .map(|word| word[..1].to_owned() + &word[1..].to_lowercase())
            .collect();
        if let Some(theirs) = code.number().err() {
            let theirs = format!("{theirs:?}");
            assert!(
                theirs == camel || theirs.starts_with("Unknown("),
                "{} is {theirs} for them",
                code.name()
            );
        }
        assert_eq!(ErrorCode::from_number(code.number()), code);
    }
}

/// A tagged field that has its default is not written, so a wrong default leaves no trace in the bytes: compare the values.
#[test]
fn tagged_fields_have_the_defaults_that_kafka_protocol_has() {
    macro_rules! same {
        ($ours:ident, $theirs:ty: $($field:ident)*) => {
            let (ours, theirs) = (messages::$ours::default(), <$theirs>::default());
            $(assert_eq!(i64::from(ours.$field), i64::from(theirs.$field), stringify!($ours::$field));)*
        };
    }
    same!(ApiVersionsResponse, theirs::ApiVersionsResponse: finalized_features_epoch zk_migration_ready);
    same!(FetchRequestPartition, theirs::fetch_request::FetchPartition: high_watermark);
    same!(FetchRequestReplicaState, theirs::fetch_request::ReplicaState: replica_epoch);
    same!(FetchResponseEpochEndOffset, theirs::fetch_response::EpochEndOffset: epoch end_offset);
    same!(FetchResponseLeader, theirs::fetch_response::LeaderIdAndEpoch: leader_epoch);
    same!(FetchResponseSnapshotId, theirs::fetch_response::SnapshotId: epoch end_offset);
    same!(ProduceResponseLeader, theirs::produce_response::LeaderIdAndEpoch: leader_epoch);
    assert_eq!(messages::FetchRequestReplicaState::default().replica_id, -1);
    assert_eq!(messages::FetchResponseLeader::default().leader_id, -1);
    assert_eq!(messages::ProduceResponseLeader::default().leader_id, -1);
    assert_eq!(messages::JoinGroupRequest::default().join_reason, -1);
    assert_eq!(
        messages::CreateTopicsResponseTopic::default().topic_config_error_code,
        ErrorCode::None
    );
}

/// Null is taken where Kafka's schema allows it, and refused where it does not.
#[test]
fn null_is_refused_where_the_version_has_none() {
    use messages::{
        DescribeClusterRequest, DescribeClusterResponse, MetadataRequest, MetadataResponse,
    };
    let name = |version: i16| {
        // A topic's name at the end of the smallest request: null, in the version's own way.
        let request: &[u8] = match version {
            0..=3 => &[0, 0, 0, 1, 0xff, 0xff],
            9 => &[2, 0, 0, 1, 0, 0, 0],
            _ => &[
                2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,
            ],
        };
        let request = Bytes::from_static(request);
        decode::<MetadataRequest, MetadataRequest>(request, version)
    };
    use crate::WireError::UnexpectedNull;
    assert_eq!(name(1), Err(UnexpectedNull));
    assert_eq!(name(9), Err(UnexpectedNull));
    assert_eq!(name(12).unwrap().topics.unwrap()[0].name, None);

    let all = |version: i16| {
        let null = Bytes::from_static(&[0xff; 4]);
        decode::<MetadataRequest, MetadataRequest>(null, version).map(|request| request.topics)
    };
    assert_eq!((all(0), all(1)), (Err(UnexpectedNull), Ok(None)));

    // A value that is missing is written as empty where there is no null, and as null where there is one.
    let topic = messages::MetadataResponseTopic::default();
    let response = MetadataResponse {
        topics: vec![topic],
        ..Default::default()
    };
    for version in [0, 8, 11, 12] {
        let written = encode::<MetadataRequest, _>(&response, version, BytesMut::new()).unwrap();
        let read: MetadataResponse =
            decode::<MetadataRequest, _>(written.freeze(), version).unwrap();
        assert_eq!(
            read.topics[0].name,
            (version < 12).then(String::new),
            "v{version}"
        );
    }
    let broker = messages::DescribeClusterResponseBroker::default();
    let response = DescribeClusterResponse {
        brokers: vec![broker],
        ..Default::default()
    };
    let written = encode::<DescribeClusterRequest, _>(&response, 0, BytesMut::new()).unwrap();
    let read: DescribeClusterResponse =
        decode::<DescribeClusterRequest, _>(written.freeze(), 0).unwrap();
    assert_eq!(read.brokers[0].rack, None);
}

#[test]
fn unknown_tags_are_passed_over_and_defaults_are_not_written() {
    use messages::{HeartbeatRequest, HeartbeatResponse};
    let mut written =
        encode::<HeartbeatRequest, _>(&HeartbeatResponse::default(), 4, BytesMut::new()).unwrap();
    assert_eq!(written.len(), 4 + 2 + 1);
    let end = written.len() - 1;
    written.truncate(end);
    written.extend_from_slice(&[2, 7, 1, 9, 100, 2, 8, 8]);
    let read: HeartbeatResponse = decode::<HeartbeatRequest, _>(written.freeze(), 4).unwrap();
    assert_eq!(read, HeartbeatResponse::default());
}
