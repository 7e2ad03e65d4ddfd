//! Groups over loopback: the shell around the coordinator.

use crate::client::Client;
use crate::storage::{Folder, start};
use kohort_broker::{Broker, Settings};
use kohort_wire::ErrorCode;
use kohort_wire::messages::*;

async fn join(client: &mut Client, group: &str) -> JoinGroupResponse {
    let mut request = JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: "m".into(),
        }],
        ..Default::default()
    };
    let first = client.ask(9, &request).await;
    assert_eq!(first.error_code, ErrorCode::MemberIdRequired);
    request.member_id = first.member_id;
    client.ask(9, &request).await
}

async fn sync(client: &mut Client, group: &str, joined: &JoinGroupResponse) -> SyncGroupResponse {
    let assignment = SyncGroupAssignment {
        member_id: joined.member_id.clone(),
        assignment: "a".into(),
    };
    let request = SyncGroupRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        assignments: vec![assignment],
        ..Default::default()
    };
    client.ask(5, &request).await
}

async fn beat(client: &mut Client, group: &str, joined: &JoinGroupResponse) -> ErrorCode {
    let request = HeartbeatRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    client.ask(4, &request).await.error_code
}

async fn commit(
    client: &mut Client,
    group: &str,
    joined: &JoinGroupResponse,
    offset: i64,
) -> ErrorCode {
    let partition = OffsetCommitRequestPartition {
        committed_offset: offset,
        ..Default::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: "t".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: joined.generation_id,
        member_id: joined.member_id.clone(),
        topics: vec![topic],
        ..Default::default()
    };
    client.ask(8, &request).await.topics[0].partitions[0].error_code
}

async fn committed(client: &mut Client, groups: &[&str]) -> Vec<i64> {
    let topic = OffsetFetchRequestTopics {
        name: "t".into(),
        partition_indexes: vec![0],
        ..Default::default()
    };
    let group = |group: &&str| OffsetFetchRequestGroup {
        group_id: (*group).into(),
        topics: Some(vec![topic.clone()]),
        ..Default::default()
    };
    let request = OffsetFetchRequest {
        groups: groups.iter().map(group).collect(),
        ..Default::default()
    };
    let loading =
        |group: &OffsetFetchResponseGroup| group.error_code == ErrorCode::CoordinatorLoadInProgress;
    let mut response = client.ask(8, &request).await;
    while response.groups.iter().any(loading) {
        response = client.ask(8, &request).await;
    }
    let offset = |group: &OffsetFetchResponseGroup| group.topics[0].partitions[0].committed_offset;
    response.groups.iter().map(offset).collect()
}

#[tokio::test]
async fn a_group_forms_beats_and_commits() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let joined = join(&mut client, "g").await;
    assert_eq!(
        (joined.error_code, joined.generation_id),
        (ErrorCode::None, 1)
    );
    assert_eq!(joined.leader, joined.member_id);
    assert_eq!(&sync(&mut client, "g", &joined).await.assignment[..], b"a");
    assert_eq!(beat(&mut client, "g", &joined).await, ErrorCode::None);
    assert_eq!(commit(&mut client, "g", &joined, 42).await, ErrorCode::None);
    assert_eq!(committed(&mut client, &["g", "h"]).await, [42, -1]);
    let listed = client.ask(4, &ListGroupsRequest::default()).await;
    let names: Vec<&str> = listed
        .groups
        .iter()
        .map(|group| group.group_id.as_str())
        .collect();
    assert_eq!(names, ["g"]);
}

#[tokio::test]
async fn a_session_ends_by_itself() {
    let mut settings = Settings::for_tests();
    settings.set("group.min.session.timeout.ms", "50").unwrap();
    let broker = Broker::builder().settings(settings).start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let mut request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 50,
        rebalance_timeout_ms: 50,
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: "m".into(),
        }],
        ..Default::default()
    };
    let joined = client.ask(3, &request).await;
    sync(&mut client, "g", &joined).await;
    // Another one joins; the first never comes back, and its session or the join phase runs out.
    let mut other = Client::connect(broker.address()).await;
    request.member_id = String::new();
    let second = other.ask(3, &request).await;
    assert_eq!(
        (second.error_code, second.members.len()),
        (ErrorCode::None, 1)
    );
    assert_eq!(
        beat(&mut client, "g", &joined).await,
        ErrorCode::UnknownMemberId
    );
}

#[tokio::test]
async fn groups_and_offsets_survive_the_broker() {
    let folder = Folder::new("groups");
    let groups: Vec<String> = (0..30).map(|i| format!("group-{i}")).collect();
    let mut members = Vec::new();
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    for (i, group) in groups.iter().enumerate() {
        let joined = join(&mut client, group).await;
        sync(&mut client, group, &joined).await;
        assert_eq!(
            commit(&mut client, group, &joined, i as i64).await,
            ErrorCode::None
        );
        members.push(joined);
    }
    // No shutdown.
    drop(broker);
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    for (i, group) in groups.iter().enumerate() {
        // Heartbeats are answered 0 while the group loads, so the offset is asked for first.
        assert_eq!(committed(&mut client, &[group]).await, [i as i64]);
        assert_eq!(
            beat(&mut client, group, &members[i]).await,
            ErrorCode::None,
            "{group}"
        );
    }
    let listed = client.ask(4, &ListGroupsRequest::default()).await;
    assert_eq!(listed.groups.len(), 30);
}

#[tokio::test]
async fn the_offsets_topic_can_be_read() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    // The hash of "" is 0, and so is its partition.
    let partition = OffsetCommitRequestPartition {
        committed_offset: 7,
        ..Default::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: "t".into(),
        partitions: vec![partition],
        ..Default::default()
    };
    let request = OffsetCommitRequest {
        topics: vec![topic],
        ..Default::default()
    };
    client.ask(8, &request).await;
    let fetched = client.fetch("__consumer_offsets", 0).await;
    let batch = kohort_wire::records::batches(fetched.records.unwrap())
        .next()
        .unwrap()
        .unwrap();
    let keys: Vec<_> = batch
        .records(1 << 20)
        .unwrap()
        .flatten()
        .filter_map(|record| record.key)
        .collect();
    assert!(
        keys.iter()
            .any(|key| &key[..] == b"\0\x01\0\0\0\x01t\0\0\0\0"),
        "{keys:?}"
    );
    let refused = client.produce("__consumer_offsets", 0, Vec::new()).await;
    assert_eq!(refused.error_code, ErrorCode::InvalidTopicException);
}

#[tokio::test]
async fn offsets_go_with_their_topic() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let joined = join(&mut client, "g").await;
    sync(&mut client, "g", &joined).await;
    assert_eq!(commit(&mut client, "g", &joined, 42).await, ErrorCode::None);
    client.delete("t").await;
    let code = commit(&mut client, "g", &joined, 43).await;
    assert_eq!(code, ErrorCode::UnknownTopicOrPartition);
    client.create("t", 1).await;
    assert_eq!(committed(&mut client, &["g"]).await, [-1]);
}

/// Each rebalance is published where any client can read it, and is still there when the broker has been restarted.
#[tokio::test]
async fn rebalances_are_published() {
    let folder = Folder::new("rebalances");
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let joined = join(&mut client, "g").await;
    sync(&mut client, "g", &joined).await;
    broker.shutdown().await;
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    let fetched = client.fetch("__kohort_rebalances", 0).await;
    let batch = kohort_wire::records::batches(fetched.records.unwrap())
        .next()
        .unwrap()
        .unwrap();
    let record = batch.records(1 << 20).unwrap().next().unwrap().unwrap();
    assert_eq!(&record.key.unwrap()[..], b"g");
    let value: serde_json::Value = serde_json::from_slice(&record.value.unwrap()).unwrap();
    assert_eq!(
        (&value["group"], &value["rounds"]),
        (&"g".into(), &1.into())
    );
    assert_eq!(value["causes"][0]["reason"], "new-member");
    assert_eq!(value["causes"][0]["stated"], false);
    assert_eq!(value["causes"][0]["member_id"], joined.member_id.as_str());
    // Unix milliseconds of this century.
    assert!(value["started"].as_u64().unwrap() > 1_700_000_000_000);
    let refused = client.produce("__kohort_rebalances", 0, Vec::new()).await;
    assert_eq!(refused.error_code, ErrorCode::InvalidTopicException);
}
