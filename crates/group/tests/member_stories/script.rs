//! The scripted world: a member, a clock that stands until it is moved, and requests that wait until the test answers them.

use bytes::Bytes;
use kohort_group::assign::{Assignor, by_name};
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_group::member::{
    Alarm, Input, Lane, Member, MemberConfig, Offset, Output, SendFailure, StateName, Subscription,
    Token,
};
use kohort_group::partitions::{Partitions, Topic, TopicPartition};
use kohort_group::time::Timestamp;
use kohort_group::topics::{TopicImage, TopicInfo};
use kohort_wire::embedded::{self, Assignment, AssignmentError, TopicPartitions, Trailer};
use kohort_wire::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic, OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponseTopics, SyncGroupRequest, SyncGroupResponse,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const COOPERATIVE: &str = "cooperative-sticky";

pub fn cooperative() -> Arc<dyn Assignor> {
    by_name(COOPERATIVE).unwrap()
}

pub fn eager() -> Arc<dyn Assignor> {
    by_name("range").unwrap()
}

/// A request that waits for an answer.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub token: Token,
    pub lane: Lane,
    pub version: i16,
    pub request: GroupRequest,
}

pub struct Script {
    pub member: Member,
    pub now: Timestamp,
    /// What came out and was not looked at yet.
    pub out: Vec<Output>,
    pub waiting: Vec<Waiting>,
    pub versions: BTreeMap<ApiKey, (i16, i16)>,
    /// Whether the coordinator is found as soon as it is looked for.
    pub finds: bool,
    /// How often it was looked for.
    pub searches: usize,
    /// Everything that was given, and what came out.
    pub trace: Vec<(Timestamp, Input, Vec<Output>)>,
}

/// All versions that Kafka 4 serves.
pub fn versions() -> BTreeMap<ApiKey, (i16, i16)> {
    BTreeMap::from([
        (ApiKey::JoinGroup, (0, 9)),
        (ApiKey::SyncGroup, (0, 5)),
        (ApiKey::Heartbeat, (0, 4)),
        (ApiKey::LeaveGroup, (0, 5)),
        (ApiKey::OffsetCommit, (2, 10)),
        (ApiKey::OffsetFetch, (1, 10)),
    ])
}

/// `t` with these partitions.
pub fn of(numbers: &[i32]) -> Partitions {
    on("t", numbers)
}

pub fn on(topic: &str, numbers: &[i32]) -> Partitions {
    numbers.iter().map(|n| (Topic::from(topic), *n)).collect()
}

pub fn one(partition: i32) -> TopicPartition {
    TopicPartition::new("t", partition)
}

pub fn at(offset: i64) -> Offset {
    Offset {
        offset,
        leader_epoch: -1,
        metadata: String::new(),
    }
}

pub fn wire(partitions: &Partitions) -> Vec<TopicPartitions> {
    partitions
        .by_topic()
        .map(|(topic, numbers)| TopicPartitions {
            topic: topic.clone(),
            partitions: numbers.to_vec(),
        })
        .collect()
}

pub fn plain(assigned: &Partitions) -> Bytes {
    Assignment {
        assigned: wire(assigned),
        ..Assignment::default()
    }
    .encode()
}

pub fn explicit(assigned: &Partitions, revoked: &Partitions, error: AssignmentError) -> Bytes {
    Assignment {
        assigned: wire(assigned),
        trailer: Some(Trailer {
            revoked: wire(revoked),
            error,
        }),
        ..Assignment::default()
    }
    .encode()
}

impl Script {
    pub fn new(change: impl FnOnce(&mut MemberConfig)) -> Self {
        let mut config = MemberConfig::new("g", vec![cooperative()]);
        config.session_timeout_ms = 10_000;
        change(&mut config);
        Self {
            member: Member::new(config).unwrap(),
            now: Timestamp(1_000),
            out: Vec::new(),
            waiting: Vec::new(),
            versions: versions(),
            finds: true,
            searches: 0,
            trace: Vec::new(),
        }
    }

    /// Gives an input and takes what comes out.
    pub fn give(&mut self, input: Input) {
        let mut out = Vec::new();
        self.member.handle(self.now, input.clone(), &mut out);
        self.trace.push((self.now, input, out.clone()));
        let mut found = false;
        for output in out {
            match &output {
                Output::Send {
                    token,
                    lane,
                    version,
                    request,
                } => self.waiting.push(Waiting {
                    token: *token,
                    lane: *lane,
                    version: *version,
                    request: request.clone(),
                }),
                Output::Disconnect(lane) => self.waiting.retain(|one| one.lane != *lane),
                Output::FindCoordinator => {
                    self.searches += 1;
                    found = self.finds;
                }
                _ => {}
            }
            self.out.push(output);
        }
        if found {
            self.found();
        }
    }

    pub fn found(&mut self) {
        let versions = self.versions.clone();
        self.give(Input::CoordinatorFound { node: 1, versions });
    }

    /// Lets time pass; alarms ring when they are due.
    pub fn pass(&mut self, milliseconds: u64) {
        let end = self.now + milliseconds;
        for _ in 0..10_000 {
            match self.member.deadline().filter(|due| *due <= end) {
                Some(due) => {
                    self.now = self.now.max(due);
                    let alarm = self.member.wakeup().unwrap();
                    self.give(Input::Alarm(alarm));
                }
                None => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("alarms without end: {:?}", self.member.wakeup());
    }

    pub fn subscribe(&mut self, topics: &[&str]) {
        let topics = topics.iter().map(|topic| Topic::from(*topic)).collect();
        self.give(Input::Subscribe(Subscription::Topics(topics)));
    }

    pub fn topics(&mut self, topics: &[(&str, usize)]) {
        let image: TopicImage = topics
            .iter()
            .map(|(name, count)| (Topic::from(*name), TopicInfo::with_partitions(*count)))
            .collect();
        self.give(Input::Topics(image));
    }

    /// Takes the waiting request of this API; there must be exactly one.
    pub fn take(&mut self, api: ApiKey) -> Waiting {
        let of_api = |one: &Waiting| key(&one.request) == api;
        let count = self.waiting.iter().filter(|one| of_api(one)).count();
        assert_eq!(count, 1, "{} in {:?}", api.name(), self.waiting);
        let place = self.waiting.iter().position(of_api).unwrap();
        self.waiting.remove(place)
    }

    pub fn waits(&self, api: ApiKey) -> bool {
        self.waiting.iter().any(|one| key(&one.request) == api)
    }

    pub fn take_join(&mut self) -> (Token, JoinGroupRequest) {
        let one = self.take(ApiKey::JoinGroup);
        match one.request {
            GroupRequest::JoinGroup(request) => (one.token, request),
            other => panic!("{other:?}"),
        }
    }

    pub fn take_sync(&mut self) -> (Token, SyncGroupRequest) {
        let one = self.take(ApiKey::SyncGroup);
        match one.request {
            GroupRequest::SyncGroup(request) => (one.token, request),
            other => panic!("{other:?}"),
        }
    }

    pub fn take_beat(&mut self) -> (Token, HeartbeatRequest) {
        let one = self.take(ApiKey::Heartbeat);
        match one.request {
            GroupRequest::Heartbeat(request) => (one.token, request),
            other => panic!("{other:?}"),
        }
    }

    pub fn take_leave(&mut self) -> (Token, LeaveGroupRequest) {
        let one = self.take(ApiKey::LeaveGroup);
        match one.request {
            GroupRequest::LeaveGroup(request) => (one.token, request),
            other => panic!("{other:?}"),
        }
    }

    pub fn take_commit(&mut self) -> (Token, OffsetCommitRequest) {
        let one = self.take(ApiKey::OffsetCommit);
        match one.request {
            GroupRequest::OffsetCommit(request) => (one.token, request),
            other => panic!("{other:?}"),
        }
    }

    pub fn take_fetch(&mut self) -> (Token, OffsetFetchRequest) {
        let one = self.take(ApiKey::OffsetFetch);
        match one.request {
            GroupRequest::OffsetFetch(request) => (one.token, request),
            other => panic!("{other:?}"),
        }
    }

    /// What a join says under the first assignor.
    pub fn said(request: &JoinGroupRequest) -> embedded::Subscription {
        embedded::Subscription::decode(request.protocols[0].metadata.clone()).unwrap()
    }

    pub fn join_answer(generation: i32) -> JoinGroupResponse {
        JoinGroupResponse {
            generation_id: generation,
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some(COOPERATIVE.to_owned()),
            leader: "other".to_owned(),
            member_id: "m".to_owned(),
            ..JoinGroupResponse::default()
        }
    }

    pub fn answer(&mut self, token: Token, response: GroupResponse) {
        self.give(Input::Response(token, response));
    }

    pub fn answer_join(&mut self, token: Token, answer: JoinGroupResponse) {
        self.answer(token, GroupResponse::JoinGroup(answer));
    }

    pub fn refuse_join(&mut self, token: Token, error_code: ErrorCode) {
        let answer = JoinGroupResponse {
            error_code,
            member_id: "m".to_owned(),
            ..JoinGroupResponse::default()
        };
        self.answer_join(token, answer);
    }

    pub fn answer_sync(&mut self, token: Token, error_code: ErrorCode, assignment: Bytes) {
        self.answer(
            token,
            GroupResponse::SyncGroup(SyncGroupResponse {
                error_code,
                assignment,
                ..SyncGroupResponse::default()
            }),
        );
    }

    pub fn answer_beat(&mut self, token: Token, error_code: ErrorCode) {
        self.answer(
            token,
            GroupResponse::Heartbeat(HeartbeatResponse {
                error_code,
                ..HeartbeatResponse::default()
            }),
        );
    }

    pub fn answer_leave(&mut self, token: Token) {
        self.answer(
            token,
            GroupResponse::LeaveGroup(LeaveGroupResponse::default()),
        );
    }

    pub fn answer_commit(&mut self, token: Token, request: &OffsetCommitRequest, code: ErrorCode) {
        self.answer_commit_by(token, request, |_| code);
    }

    /// The same with a code for each partition.
    pub fn answer_commit_by(
        &mut self,
        token: Token,
        request: &OffsetCommitRequest,
        code: impl Fn(i32) -> ErrorCode,
    ) {
        let topics = request
            .topics
            .iter()
            .map(|topic| OffsetCommitResponseTopic {
                name: topic.name.clone(),
                partitions: topic
                    .partitions
                    .iter()
                    .map(|partition| OffsetCommitResponsePartition {
                        partition_index: partition.partition_index,
                        error_code: code(partition.partition_index),
                    })
                    .collect(),
                ..OffsetCommitResponseTopic::default()
            })
            .collect();
        self.answer(
            token,
            GroupResponse::OffsetCommit(OffsetCommitResponse {
                topics,
                ..OffsetCommitResponse::default()
            }),
        );
    }

    /// Answers the waiting OffsetFetch: this offset (−1 for none) and code for each partition.
    pub fn answer_fetch(&mut self, offset: i64, code: ErrorCode) {
        let (token, request) = self.take_fetch();
        self.answer_this_fetch(token, &request, offset, code);
    }

    pub fn answer_this_fetch(
        &mut self,
        token: Token,
        request: &OffsetFetchRequest,
        offset: i64,
        code: ErrorCode,
    ) {
        let group = &request.groups[0];
        let topics = group
            .topics
            .iter()
            .flatten()
            .map(|topic| OffsetFetchResponseTopics {
                name: topic.name.clone(),
                partitions: topic
                    .partition_indexes
                    .iter()
                    .map(|partition| OffsetFetchResponsePartition {
                        partition_index: *partition,
                        committed_offset: offset,
                        error_code: code,
                        ..OffsetFetchResponsePartition::default()
                    })
                    .collect(),
                ..OffsetFetchResponseTopics::default()
            })
            .collect();
        self.answer(
            token,
            GroupResponse::OffsetFetch(OffsetFetchResponse {
                groups: vec![OffsetFetchResponseGroup {
                    group_id: "g".to_owned(),
                    topics,
                    ..OffsetFetchResponseGroup::default()
                }],
                ..OffsetFetchResponse::default()
            }),
        );
    }

    /// The connection breaks before an answer.
    pub fn break_off(&mut self, token: Token) {
        self.give(Input::Failed(token, SendFailure::Disconnected));
    }

    /// One round as a follower, from the JoinGroup that waits to this assignment. Returns the join.
    pub fn round(&mut self, generation: i32, assignment: Bytes) -> JoinGroupRequest {
        let (token, request) = self.take_join();
        let mut answer = Self::join_answer(generation);
        answer.protocol_name = Some(request.protocols[0].name.clone());
        self.answer_join(token, answer);
        let (token, _) = self.take_sync();
        self.answer_sync(token, ErrorCode::None, assignment);
        request
    }

    /// From nothing to Stable in generation 1 with these partitions, all started where nothing is committed, and one calm heartbeat.
    pub fn stable(change: impl FnOnce(&mut MemberConfig), partitions: &Partitions) -> Self {
        let mut script = Self::new(change);
        script.subscribe(&["t"]);
        script.round(1, plain(partitions));
        if !partitions.is_empty() {
            script.answer_fetch(-1, ErrorCode::None);
        }
        script.pass(10);
        let (token, _) = script.take_beat();
        script.answer_beat(token, ErrorCode::None);
        script.out.clear();
        assert_eq!(script.member.state(), StateName::Stable);
        script
    }

    /// A heartbeat that is answered so. Waits for it as long as need be.
    pub fn beat(&mut self, code: ErrorCode) {
        if !self.waits(ApiKey::Heartbeat) {
            let due = self.due(&Alarm::Heartbeat).expect("no heartbeat is due");
            self.pass(due.since(self.now));
        }
        let (token, _) = self.take_beat();
        self.answer_beat(token, code);
    }

    pub fn due(&self, alarm: &Alarm) -> Option<Timestamp> {
        self.member
            .alarms()
            .find(|(name, _)| *name == alarm)
            .map(|(_, due)| due)
    }

    pub fn consume(&mut self, partition: i32, offset: i64) {
        self.give(Input::Consumed(one(partition), at(offset)));
    }

    /// What the application saw since the last look, in words.
    pub fn seen(&mut self) -> Vec<String> {
        let words = self.out.drain(..).filter_map(|output| match output {
            Output::Assign { added, .. } => Some(format!("assign {added}")),
            Output::Revoke { partitions, .. } => Some(format!("revoke {partitions}")),
            Output::Revoked { partitions, .. } => Some(format!("revoked {partitions}")),
            Output::Lost { partitions, .. } => Some(format!("lost {partitions}")),
            Output::Fatal(_) => Some("fatal".to_owned()),
            Output::Closed => Some("closed".to_owned()),
            Output::Start(at) => {
                let mut text = "start".to_owned();
                for (partition, offset) in at {
                    match offset {
                        Some(offset) => text += &format!(" {partition}@{}", offset.offset),
                        None => text += &format!(" {partition}@none"),
                    }
                }
                Some(text)
            }
            _ => None,
        });
        words.collect()
    }
}

pub fn key(request: &GroupRequest) -> ApiKey {
    match request {
        GroupRequest::JoinGroup(_) => ApiKey::JoinGroup,
        GroupRequest::SyncGroup(_) => ApiKey::SyncGroup,
        GroupRequest::Heartbeat(_) => ApiKey::Heartbeat,
        GroupRequest::LeaveGroup(_) => ApiKey::LeaveGroup,
        GroupRequest::OffsetCommit(_) => ApiKey::OffsetCommit,
        GroupRequest::OffsetFetch(_) => ApiKey::OffsetFetch,
        GroupRequest::DescribeGroups(_) => ApiKey::DescribeGroups,
        GroupRequest::ListGroups(_) => ApiKey::ListGroups,
        GroupRequest::DeleteGroups(_) => ApiKey::DeleteGroups,
        GroupRequest::OffsetDelete(_) => ApiKey::OffsetDelete,
    }
}
