//! Groups out of a log: reads records of `__consumer_offsets` from stdin, one a line (key and value in hexadecimal, `-` for no value),
//! replays them into a coordinator, and describes what it then knows.
//!
//! Any broker's log will do, Apache Kafka's too: the coordinator's records are Kafka's.

#![allow(
    clippy::unwrap_used,
    reason = "an example ends where its input makes no sense"
)]

use bytes::Bytes;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    Client, ConnectionId, Coordinator, CoordinatorConfig, GroupRequest, GroupResponse, Input,
    Output, RequestId,
};
use kohort_group::time::Timestamp;
use kohort_wire::embedded::Assignment;
use kohort_wire::messages::{DescribeGroupsRequest, OffsetFetchRequest, OffsetFetchRequestGroup};
use std::collections::BTreeSet;
use std::io::BufRead;
use std::sync::Arc;

fn main() {
    let mut coordinator = Coordinator::new(CoordinatorConfig::default(), 1);
    let mut groups = BTreeSet::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let (key, value) = line.split_once(' ').unwrap();
        let value = (value != "-").then(|| bytes(value));
        let Some(record) = Record::decode(bytes(key), value).unwrap() else {
            continue;
        };
        let (Record::Offset { group, .. }
        | Record::Group { group, .. }
        | Record::Causes { group, .. }) = &record;
        groups.insert(group.clone());
        feed(&mut coordinator, Input::Replay(record));
    }
    feed(&mut coordinator, Input::Loaded);
    for group in groups {
        describe(&mut coordinator, &group);
    }
}

fn bytes(hexadecimal: &str) -> Bytes {
    let byte = |at: usize| u8::from_str_radix(&hexadecimal[at..at + 2], 16).unwrap();
    (0..hexadecimal.len()).step_by(2).map(byte).collect()
}

fn feed(coordinator: &mut Coordinator, input: Input) -> Vec<Output> {
    let mut out = Vec::new();
    coordinator.handle(Timestamp(0), input, &mut out);
    out
}

fn ask(coordinator: &mut Coordinator, version: i16, request: GroupRequest) -> GroupResponse {
    let input = Input::Request {
        id: RequestId(1),
        connection: ConnectionId(1),
        client: Arc::new(Client::default()),
        version,
        request,
    };
    let replied = |output| match output {
        Output::Reply { response, .. } => Some(response),
        _ => None,
    };
    feed(coordinator, input)
        .into_iter()
        .find_map(replied)
        .unwrap()
}

fn describe(coordinator: &mut Coordinator, group: &str) {
    let request = GroupRequest::DescribeGroups(DescribeGroupsRequest {
        groups: vec![group.to_owned()],
        ..DescribeGroupsRequest::default()
    });
    let GroupResponse::DescribeGroups(answer) = ask(coordinator, 5, request) else {
        return;
    };
    for described in answer.groups {
        println!(
            "group {group} {} {} {}",
            described.group_state,
            described.protocol_data,
            described.members.len()
        );
        for member in described.members {
            let assigned = Assignment::decode(member.member_assignment).unwrap_or_default();
            let partitions: Vec<String> = assigned
                .assigned
                .iter()
                .flat_map(|topic| {
                    topic
                        .partitions
                        .iter()
                        .map(|p| format!("{}-{p}", topic.topic))
                })
                .collect();
            println!(
                "member {group} {} {} {} {}",
                member.member_id,
                member.client_id,
                member.client_host,
                partitions.join(",")
            );
        }
    }
    let request = GroupRequest::OffsetFetch(OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: None,
            ..OffsetFetchRequestGroup::default()
        }],
        ..OffsetFetchRequest::default()
    });
    let GroupResponse::OffsetFetch(answer) = ask(coordinator, 8, request) else {
        return;
    };
    for topic in answer.groups.into_iter().flat_map(|one| one.topics) {
        for partition in topic.partitions {
            println!(
                "offset {group} {} {} {}",
                topic.name, partition.partition_index, partition.committed_offset
            );
        }
    }
}
