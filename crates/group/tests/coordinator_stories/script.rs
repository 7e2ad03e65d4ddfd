//! The scripted world: a coordinator, its log, and the answers that came.

use bytes::Bytes;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    Client, ConnectionId, Coordinator, CoordinatorConfig, GroupRequest, GroupResponse, Input,
    Output, RequestId,
};
use kohort_group::history::RebalanceRecord;
use kohort_group::time::Timestamp;
use kohort_group::topics::{TopicImage, TopicInfo};
use kohort_wire::ErrorCode;
use kohort_wire::embedded::Subscription;
use kohort_wire::messages::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the next appends end.
#[derive(Clone, Copy, PartialEq)]
pub enum Log {
    Takes,
    Fails(ErrorCode),
}

pub struct Script {
    pub coordinator: Coordinator,
    pub now: Timestamp,
    pub log: Vec<Record>,
    pub fate: Log,
    answers: BTreeMap<RequestId, GroupResponse>,
    pub rebalances: Vec<RebalanceRecord>,
    next: u64,
    pub version: i16,
}

pub fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        initial_rebalance_delay_ms: 0,
        ..CoordinatorConfig::default()
    }
}

pub fn subscription(topics: &[&str]) -> Bytes {
    let topics = topics.iter().map(|topic| Arc::from(*topic)).collect();
    Subscription {
        topics,
        ..Subscription::default()
    }
    .encode()
}

/// A join of a dynamic member with a session of 10 s and a rebalance timeout of 30 s.
pub fn join(member: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        member_id: member.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: subscription(&["t"]),
        }],
        ..JoinGroupRequest::default()
    }
}

pub fn join_as(instance: &str, member: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_instance_id: Some(instance.into()),
        ..join(member)
    }
}

impl Script {
    pub fn new(config: CoordinatorConfig) -> Self {
        Self::resume(config, Vec::new(), 1)
    }

    /// A coordinator that has loaded `log`.
    pub fn resume(config: CoordinatorConfig, log: Vec<Record>, seed: u64) -> Self {
        let mut script = Self {
            coordinator: Coordinator::new(config, seed),
            now: Timestamp(0),
            log: log.clone(),
            fate: Log::Takes,
            answers: BTreeMap::new(),
            rebalances: Vec::new(),
            next: 0,
            version: 9,
        };
        let topics: TopicImage = [("t".into(), TopicInfo::with_partitions(4))]
            .into_iter()
            .collect();
        script.feed(Input::Topics(topics));
        for record in log {
            script.feed(Input::Replay(record));
        }
        script.feed(Input::Loaded);
        script
    }

    pub fn feed(&mut self, input: Input) {
        let mut inputs = vec![input];
        while !inputs.is_empty() {
            let input = inputs.remove(0);
            let mut out = Vec::new();
            self.coordinator.handle(self.now, input, &mut out);
            assert!(
                self.coordinator
                    .deadline()
                    .is_none_or(|due| due >= self.now),
                "G6"
            );
            let mut lost = None;
            for output in out {
                match output {
                    Output::Append(n, record) => match self.fate {
                        Log::Takes => {
                            self.log.push(record);
                            inputs.push(Input::Appended(n));
                        }
                        Log::Fails(error) => {
                            lost = lost.or(Some(n));
                            inputs.push(Input::AppendFailed(n, error));
                        }
                    },
                    Output::Reply {
                        id,
                        response,
                        after,
                    } => {
                        if after.is_some() && after >= lost && lost.is_some() {
                            continue;
                        }
                        let twice = self.answers.insert(id, response);
                        assert!(twice.is_none(), "G5: {id:?} is answered twice");
                    }
                    Output::Rebalanced(record) => self.rebalances.push(*record),
                }
            }
        }
    }

    /// Sends a request and gives its number.
    pub fn send(&mut self, version: i16, request: GroupRequest) -> RequestId {
        self.next += 1;
        let id = RequestId(self.next);
        let client = Arc::new(Client {
            id: "c".into(),
            host: "/127.0.0.1".into(),
        });
        self.feed(Input::Request {
            id,
            connection: ConnectionId(1),
            client,
            version,
            request,
        });
        id
    }

    pub fn answer(&mut self, id: RequestId) -> Option<GroupResponse> {
        self.answers.remove(&id)
    }

    /// Moves the clock, firing what is due on the way.
    pub fn pass(&mut self, milliseconds: u64) {
        let end = self.now + milliseconds;
        while let Some(due) = self.coordinator.deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let alarm = self.coordinator.wakeup().unwrap();
            self.feed(Input::Alarm(alarm));
        }
        self.now = end;
    }

    // Requests.

    pub fn join(&mut self, request: JoinGroupRequest) -> RequestId {
        self.send(self.version, GroupRequest::JoinGroup(request))
    }

    pub fn joined(&mut self, id: RequestId) -> JoinGroupResponse {
        match self.answer(id) {
            Some(GroupResponse::JoinGroup(response)) => response,
            other => panic!("expected the answer to a join, got {other:?}"),
        }
    }

    pub fn waits(&self, id: RequestId) -> bool {
        !self.answers.contains_key(&id)
    }

    /// A new dynamic member: takes its id, then joins.
    pub fn enter(&mut self) -> (String, RequestId) {
        let first = self.join(join(""));
        let id = self.joined(first).member_id;
        let second = self.join(join(&id));
        (id, second)
    }

    pub fn sync(
        &mut self,
        member: &str,
        generation: i32,
        gives: &[(&str, &'static str)],
    ) -> RequestId {
        let assignments = gives
            .iter()
            .map(|(member, bytes)| SyncGroupAssignment {
                member_id: (*member).into(),
                assignment: Bytes::from_static(bytes.as_bytes()),
            })
            .collect();
        let request = SyncGroupRequest {
            group_id: "g".into(),
            generation_id: generation,
            member_id: member.into(),
            assignments,
            ..SyncGroupRequest::default()
        };
        self.send(4, GroupRequest::SyncGroup(request))
    }

    pub fn synced(&mut self, id: RequestId) -> (ErrorCode, Bytes) {
        match self.answer(id) {
            Some(GroupResponse::SyncGroup(response)) => (response.error_code, response.assignment),
            other => panic!("expected the answer to a sync, got {other:?}"),
        }
    }

    pub fn beat(&mut self, member: &str, generation: i32) -> ErrorCode {
        self.beat_as(None, member, generation)
    }

    pub fn beat_as(&mut self, instance: Option<&str>, member: &str, generation: i32) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            generation_id: generation,
            member_id: member.into(),
            group_instance_id: instance.map(str::to_owned),
        };
        let id = self.send(4, GroupRequest::Heartbeat(request));
        match self.answer(id) {
            Some(GroupResponse::Heartbeat(response)) => response.error_code,
            other => panic!("expected the answer to a heartbeat, got {other:?}"),
        }
    }

    pub fn leave(&mut self, member: &str) -> ErrorCode {
        let request = LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![LeaveGroupMember {
                member_id: member.into(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let id = self.send(5, GroupRequest::LeaveGroup(request));
        match self.answer(id) {
            Some(GroupResponse::LeaveGroup(response)) => response.members[0].error_code,
            other => panic!("expected the answer to a leave, got {other:?}"),
        }
    }

    pub fn commit(&mut self, member: &str, generation: i32, offset: i64) -> ErrorCode {
        let partition = OffsetCommitRequestPartition {
            committed_offset: offset,
            ..OffsetCommitRequestPartition::default()
        };
        let request = OffsetCommitRequest {
            group_id: "g".into(),
            generation_id_or_member_epoch: generation,
            member_id: member.into(),
            topics: vec![OffsetCommitRequestTopic {
                name: "t".into(),
                partitions: vec![partition],
                ..Default::default()
            }],
            ..Default::default()
        };
        let id = self.send(8, GroupRequest::OffsetCommit(request));
        match self.answer(id) {
            Some(GroupResponse::OffsetCommit(response)) => {
                response.topics[0].partitions[0].error_code
            }
            other => panic!("expected the answer to a commit, got {other:?}"),
        }
    }

    pub fn committed(&mut self) -> i64 {
        let request = OffsetFetchRequest {
            group_id: "g".into(),
            topics: Some(vec![OffsetFetchRequestTopic {
                name: "t".into(),
                partition_indexes: vec![0],
            }]),
            ..Default::default()
        };
        let id = self.send(7, GroupRequest::OffsetFetch(request));
        match self.answer(id) {
            Some(GroupResponse::OffsetFetch(response)) => {
                response.topics[0].partitions[0].committed_offset
            }
            other => panic!("expected offsets, got {other:?}"),
        }
    }

    pub fn state(&mut self) -> DescribedGroup {
        let request = DescribeGroupsRequest {
            groups: vec!["g".into()],
            ..Default::default()
        };
        let id = self.send(5, GroupRequest::DescribeGroups(request));
        match self.answer(id) {
            Some(GroupResponse::DescribeGroups(mut response)) => response.groups.remove(0),
            other => panic!("expected a description, got {other:?}"),
        }
    }

    /// Two dynamic members of a Stable group, the leader first, at generation 1 (or 2).
    pub fn pair(&mut self) -> (String, String, i32) {
        let (a, first) = self.enter();
        self.pass(self.now.0.max(1));
        let (b, second) = self.enter();
        self.pass(1);
        if !self.waits(first) {
            let generation = self.joined(first).generation_id;
            let again = self.join(join(&a));
            assert_eq!(self.joined(again).generation_id, generation + 1);
        } else {
            panic!("a lone member is answered at once without an initial delay");
        }
        let generation = self.joined(second).generation_id;
        self.settle(&[&a, &b], generation);
        (a, b, generation)
    }

    /// The first one leads and gives everybody its own name's letter.
    pub fn settle(&mut self, members: &[&str], generation: i32) {
        let gives: Vec<(&str, &'static str)> = members
            .iter()
            .zip(["A", "B", "C", "D"])
            .map(|(m, part)| (*m, part))
            .collect();
        let syncs: Vec<RequestId> = members
            .iter()
            .enumerate()
            .map(|(i, m)| self.sync(m, generation, if i == 0 { &gives } else { &[] }))
            .collect();
        for (sync, (_, part)) in syncs.into_iter().zip(gives) {
            assert_eq!(
                self.synced(sync),
                (ErrorCode::None, Bytes::from_static(part.as_bytes()))
            );
        }
        assert_eq!(self.state().group_state, "Stable");
    }
}
