//! The coordinator under any trace of requests, alarms, appends that fail, and restarts. It answers each request once.

use super::{MOST_STEPS, NAMES, number, payload, text, topics};
use crate::decisions::Decisions;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    Client, ConnectionId, Coordinator, CoordinatorConfig, GroupRequest, GroupResponse, Input,
    Output, RequestId,
};
use kohort_group::time::Timestamp;
use kohort_wire::ErrorCode;
use kohort_wire::embedded::Subscription;
use kohort_wire::messages::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

struct World {
    machine: Coordinator,
    now: u64,
    incarnation: u64,
    next: u64,
    /// Requests without an answer.
    waiting: BTreeMap<u64, ConnectionId>,
    /// Answered, but not before this append is durable.
    held: Vec<(u64, u64, ConnectionId)>,
    /// Whoever asked is gone; an answer may still come.
    forgotten: BTreeSet<u64>,
    members: Vec<String>,
    generation: i32,
    pending: VecDeque<(u64, Record)>,
    log: Vec<Record>,
}

/// A trace.
pub(crate) fn coordinator(data: &[u8]) {
    let mut decisions = Decisions::new(data);
    let mut world = World {
        machine: machine(1),
        now: 0,
        incarnation: 1,
        next: 0,
        waiting: BTreeMap::new(),
        held: Vec::new(),
        forgotten: BTreeSet::new(),
        members: Vec::new(),
        generation: 0,
        pending: VecDeque::new(),
        log: Vec::new(),
    };
    world.give(Input::Loaded);
    for _ in 0..MOST_STEPS {
        if decisions.is_empty() {
            break;
        }
        world.step(&mut decisions);
    }
    world.end();
}

fn machine(seed: u64) -> Coordinator {
    let config = CoordinatorConfig {
        initial_rebalance_delay_ms: 100,
        max_size: 5,
        ..CoordinatorConfig::default()
    };
    Coordinator::new(config, seed)
}

impl World {
    fn step(&mut self, decisions: &mut Decisions<'_>) {
        match decisions.below(24) {
            0..=5 => self.join(decisions),
            6..=8 => self.sync(decisions),
            9..=10 => self.heartbeat(decisions),
            11 => self.leave(decisions),
            12..=13 => self.commit(decisions),
            14 => self.others(decisions),
            15..=17 => {
                self.append();
            }
            18 => {
                if let Some((number, _)) = self.pending.front().cloned() {
                    let code = ErrorCode::from_number(i16::from(decisions.byte()));
                    self.pending.clear();
                    self.take_back();
                    self.give(Input::AppendFailed(number, code));
                }
            }
            19 => {
                let connection = ConnectionId(decisions.below(4) as u64);
                let gone = self.waiting.extract_if(.., |_, from| *from == connection);
                self.forgotten.extend(gone.map(|(id, _)| id));
                let held = self.held.extract_if(.., |(_, _, from)| *from == connection);
                self.forgotten.extend(held.map(|(_, id, _)| id));
                self.give(Input::Disconnected(connection));
            }
            20 => {
                let image = topics(decisions);
                self.give(Input::Topics(image));
            }
            21 => self.restart(decisions),
            22 => self.ring(),
            _ => {
                self.now += 100 * decisions.below(256) as u64;
                while self.machine.deadline().is_some_and(|at| at.0 <= self.now) {
                    self.ring();
                }
            }
        }
    }

    /// The next append is durable; false if there is none.
    fn append(&mut self) -> bool {
        let Some((number, record)) = self.pending.pop_front() else {
            return false;
        };
        self.log.push(record);
        self.held.retain(|(after, ..)| *after > number);
        self.give(Input::Appended(number));
        true
    }

    /// All appends that are under way have failed: answers that waited for them are dropped, and come again.
    fn take_back(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.waiting
            .extend(held.into_iter().map(|(_, id, connection)| (id, connection)));
    }

    /// The next alarm, whenever it is due.
    fn ring(&mut self) {
        if let (Some(at), Some(alarm)) = (self.machine.deadline(), self.machine.wakeup()) {
            self.now = self.now.max(at.0);
            self.give(Input::Alarm(alarm));
        }
    }

    fn restart(&mut self, decisions: &mut Decisions<'_>) {
        if decisions.below(2) == 0 {
            self.pending.clear();
            self.take_back();
            self.give(Input::Unload);
            assert!(
                self.waiting.is_empty(),
                "parked, and given away: {:?}",
                self.waiting
            );
        }
        self.pending.clear();
        self.waiting.clear();
        self.held.clear();
        self.incarnation += 1;
        self.machine = machine(self.incarnation);
        for record in self.log.clone() {
            self.give(Input::Replay(record));
        }
        self.give(Input::Loaded);
    }

    /// Everything that is parked ends by itself, at the latest when members with the longest timeout are given up for the join and for the
    /// sync; until then the offsets are looked at every ten minutes.
    fn end(&mut self) {
        for _ in 0..10_000 {
            while self.append() {}
            if self.waiting.is_empty() {
                return;
            }
            self.ring();
        }
        panic!("{:?} are never answered", self.waiting);
    }

    fn member(&self, decisions: &mut Decisions<'_>) -> String {
        match decisions.below(8) {
            0 => String::new(),
            1 => "stranger".to_owned(),
            _ => decisions.pick(&self.members).unwrap_or_default(),
        }
    }

    fn generation(&self, decisions: &mut Decisions<'_>) -> i32 {
        match decisions.below(6) {
            0 => number(decisions),
            1 => self.generation - 1,
            _ => self.generation,
        }
    }

    fn join(&mut self, decisions: &mut Decisions<'_>) {
        let protocols = NAMES[..decisions.below(4)]
            .iter()
            .map(|name| JoinGroupProtocol {
                name: (*name).to_owned(),
                metadata: payload(decisions, |decisions| {
                    Subscription {
                        topics: vec![text(decisions, &["t", "u"]).as_str().into()],
                        ..Subscription::default()
                    }
                    .encode()
                }),
            })
            .collect();
        let request = JoinGroupRequest {
            group_id: group(decisions),
            session_timeout_ms: timeout(decisions),
            rebalance_timeout_ms: timeout(decisions),
            member_id: self.member(decisions),
            group_instance_id: instance(decisions),
            protocol_type: text(decisions, &["consumer", "consumer", "consumer", "connect"]),
            protocols,
            reason: Some(text(decisions, &["new member", "why"])),
            join_reason: decisions.byte() as i8,
        };
        self.ask(decisions, 9, GroupRequest::JoinGroup(request));
    }

    fn sync(&mut self, decisions: &mut Decisions<'_>) {
        let assignments = (0..decisions.below(4))
            .map(|_| SyncGroupAssignment {
                member_id: self.member(decisions),
                assignment: decisions.bytes(),
            })
            .collect();
        let request = SyncGroupRequest {
            group_id: group(decisions),
            generation_id: self.generation(decisions),
            member_id: self.member(decisions),
            group_instance_id: instance(decisions),
            protocol_type: Some(text(decisions, &["consumer"])),
            protocol_name: Some(text(decisions, &NAMES)),
            assignments,
        };
        self.ask(decisions, 5, GroupRequest::SyncGroup(request));
    }

    fn heartbeat(&mut self, decisions: &mut Decisions<'_>) {
        let request = HeartbeatRequest {
            group_id: group(decisions),
            generation_id: self.generation(decisions),
            member_id: self.member(decisions),
            group_instance_id: instance(decisions),
        };
        self.ask(decisions, 4, GroupRequest::Heartbeat(request));
    }

    fn leave(&mut self, decisions: &mut Decisions<'_>) {
        let members = (0..decisions.below(3))
            .map(|_| LeaveGroupMember {
                member_id: self.member(decisions),
                group_instance_id: instance(decisions),
                reason: None,
            })
            .collect();
        let request = LeaveGroupRequest {
            group_id: group(decisions),
            member_id: self.member(decisions),
            members,
        };
        self.ask(decisions, 5, GroupRequest::LeaveGroup(request));
    }

    fn commit(&mut self, decisions: &mut Decisions<'_>) {
        let topics = (0..decisions.below(3))
            .map(|_| OffsetCommitRequestTopic {
                name: text(decisions, &["t", "u", "v"]),
                partitions: vec![OffsetCommitRequestPartition {
                    partition_index: number(decisions),
                    committed_offset: i64::from(number(decisions)),
                    ..OffsetCommitRequestPartition::default()
                }],
                ..OffsetCommitRequestTopic::default()
            })
            .collect();
        let request = OffsetCommitRequest {
            group_id: group(decisions),
            generation_id_or_member_epoch: self.generation(decisions),
            member_id: self.member(decisions),
            group_instance_id: instance(decisions),
            retention_time_ms: i64::from(number(decisions)),
            topics,
        };
        self.ask(decisions, 9, GroupRequest::OffsetCommit(request));
    }

    fn others(&mut self, decisions: &mut Decisions<'_>) {
        let name = group(decisions);
        let (version, request) = match decisions.below(4) {
            0 => (
                1,
                GroupRequest::OffsetFetch(OffsetFetchRequest {
                    group_id: name,
                    ..OffsetFetchRequest::default()
                }),
            ),
            1 => (
                5,
                GroupRequest::DescribeGroups(DescribeGroupsRequest {
                    groups: vec![name],
                    ..DescribeGroupsRequest::default()
                }),
            ),
            2 => (
                2,
                GroupRequest::DeleteGroups(DeleteGroupsRequest {
                    groups_names: vec![name],
                }),
            ),
            _ => (5, GroupRequest::ListGroups(ListGroupsRequest::default())),
        };
        self.ask(decisions, version, request);
    }

    fn ask(&mut self, decisions: &mut Decisions<'_>, newest: i16, request: GroupRequest) {
        self.next += 1;
        let connection = ConnectionId(decisions.below(4) as u64);
        self.waiting.insert(self.next, connection);
        let version = newest - decisions.below(3) as i16;
        self.give(Input::Request {
            id: RequestId(self.next),
            connection,
            client: Arc::new(Client::default()),
            version,
            request,
        });
    }

    fn give(&mut self, input: Input) {
        let mut out = Vec::new();
        self.machine.handle(Timestamp(self.now), input, &mut out);
        self.machine.check();
        for output in out {
            match output {
                Output::Append(number, record) => self.pending.push_back((number, record)),
                Output::Reply {
                    id,
                    response,
                    after,
                } => {
                    self.hear(&response);
                    let Some(connection) = self.waiting.remove(&id.0) else {
                        if self.forgotten.remove(&id.0) {
                            continue;
                        }
                        panic!("answered twice, or to nobody: {response:?}");
                    };
                    let pending = (self.pending.iter()).map(|(number, _)| *number);
                    if let Some(after) = after.filter(|after| pending.clone().any(|n| n == *after))
                    {
                        self.held.push((after, id.0, connection));
                    }
                }
                Output::Rebalanced(_) => {}
            }
        }
    }

    fn hear(&mut self, response: &GroupResponse) {
        if let GroupResponse::JoinGroup(join) = response {
            if !join.member_id.is_empty() && !self.members.contains(&join.member_id) {
                self.members.push(join.member_id.clone());
            }
            if join.error_code.is_none() {
                self.generation = join.generation_id;
            }
        }
    }
}

fn group(decisions: &mut Decisions<'_>) -> String {
    text(decisions, &["g", "g", "g", "h"])
}

fn instance(decisions: &mut Decisions<'_>) -> Option<String> {
    decisions
        .pick(&[None, None, Some("i0"), Some("i1"), Some("")])
        .flatten()
        .map(str::to_owned)
}

fn timeout(decisions: &mut Decisions<'_>) -> i32 {
    decisions
        .pick(&[10_000, 6_000, 30_000, 0, -1, i32::MAX])
        .unwrap_or(0)
}
