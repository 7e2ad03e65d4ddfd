//! A member under any trace of answers, broken connections, alarms and wishes of its application.

use super::{MOST_STEPS, NAMES, number, payload, text, topics};
use crate::decisions::Decisions;
use kohort_group::assign::by_name;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_group::member::{
    CommitId, Input, Member, MemberConfig, Offset, Output, SendFailure, Subscription, Token,
};
use kohort_group::partitions::{Partitions, TopicPartition};
use kohort_group::reason::JoinReason;
use kohort_group::time::Timestamp;
use kohort_wire::embedded::{self, Assignment, TopicPartitions};
use kohort_wire::messages::*;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;

struct World {
    member: Member,
    now: u64,
    waiting: Vec<(Token, GroupRequest)>,
    releases: Vec<Partitions>,
    owned: Partitions,
    commits: u64,
    searches: bool,
}

/// A trace; the first byte chooses the settings.
pub(crate) fn member(data: &[u8]) {
    let mut decisions = Decisions::new(data);
    let kind = decisions.byte();
    let name = if kind & 1 == 0 {
        "cooperative-sticky"
    } else {
        "range"
    };
    let mut config = MemberConfig::new("g", by_name(name).into_iter().collect());
    config.explicit_revocation = kind & 2 == 0;
    config.group_instance_id = (kind & 4 != 0).then(|| "i0".to_owned());
    config.auto_commit_interval_ms = (kind & 8 == 0).then_some(1_000);
    let Ok(member) = Member::new(config) else {
        unreachable!("the settings are valid")
    };
    let mut world = World {
        member,
        now: 0,
        waiting: Vec::new(),
        releases: Vec::new(),
        owned: Partitions::new(),
        commits: 0,
        searches: false,
    };
    world.give(Input::Subscribe(Subscription::Topics(["t".into()].into())));
    for _ in 0..MOST_STEPS {
        if decisions.is_empty() {
            break;
        }
        world.step(&mut decisions);
    }
}

impl World {
    fn step(&mut self, decisions: &mut Decisions<'_>) {
        match decisions.below(24) {
            0..=8 => {
                if let Some((token, request)) = self.take_request(decisions) {
                    let response = response(decisions, &request);
                    self.give(Input::Response(token, response));
                }
            }
            9 => {
                // Of another API, or to a request that nobody sent.
                let token = self.waiting.first().map_or(Token(999), |(token, _)| *token);
                let response = GroupResponse::ListGroups(ListGroupsResponse::default());
                self.give(Input::Response(token, response));
            }
            10 => {
                if let Some((token, _)) = self.take_request(decisions) {
                    self.give(Input::Failed(token, SendFailure::Disconnected));
                }
            }
            11..=13 => {
                if let Some(partitions) = self.releases.pop() {
                    self.give(Input::Released(partitions));
                }
            }
            14 => self.find(decisions),
            15 => {
                let image = topics(decisions);
                self.give(Input::Topics(image));
            }
            16 => self.give(Input::Polled),
            17 => self.commit(decisions),
            18 => self.consume(decisions),
            19 => self.wish(decisions),
            20..=21 => self.ring(),
            _ => {
                self.now += 50 * decisions.below(256) as u64;
                while self.member.deadline().is_some_and(|at| at.0 <= self.now) {
                    self.ring();
                }
            }
        }
    }

    fn take_request(&mut self, decisions: &mut Decisions<'_>) -> Option<(Token, GroupRequest)> {
        let at = decisions.below(self.waiting.len().max(1));
        (at < self.waiting.len()).then(|| self.waiting.remove(at))
    }

    fn ring(&mut self) {
        if let (Some(at), Some(alarm)) = (self.member.deadline(), self.member.wakeup()) {
            self.now = self.now.max(at.0);
            self.give(Input::Alarm(alarm));
        }
    }

    fn find(&mut self, decisions: &mut Decisions<'_>) {
        if !std::mem::take(&mut self.searches) {
            return;
        }
        if decisions.below(4) == 0 {
            return self.give(Input::CoordinatorNotFound(code(decisions)));
        }
        let newest = [
            (ApiKey::JoinGroup, 9),
            (ApiKey::SyncGroup, 5),
            (ApiKey::Heartbeat, 4),
            (ApiKey::LeaveGroup, 5),
            (ApiKey::OffsetCommit, 10),
            (ApiKey::OffsetFetch, 10),
        ];
        let older = decisions.below(3) as i16;
        let versions = newest.map(|(key, newest)| (key, (0, newest - older)));
        self.give(Input::CoordinatorFound {
            node: i32::from(decisions.byte()),
            versions: versions.into(),
        });
    }

    fn commit(&mut self, decisions: &mut Decisions<'_>) {
        self.commits += 1;
        let offsets = (decisions.below(2) == 0).then(|| {
            let at = TopicPartition::new("t", number(decisions));
            BTreeMap::from([(at, offset(decisions))])
        });
        self.give(Input::Commit {
            id: CommitId(self.commits),
            offsets,
            retry: decisions.below(2) == 0,
        });
    }

    fn consume(&mut self, decisions: &mut Decisions<'_>) {
        let owned: Vec<TopicPartition> = (self.owned.iter())
            .map(|(topic, number)| TopicPartition::new(topic.clone(), number))
            .collect();
        if let Some(at) = decisions.pick(&owned) {
            let offset = offset(decisions);
            self.give(Input::Consumed(at, offset));
        }
    }

    fn wish(&mut self, decisions: &mut Decisions<'_>) {
        let input = match decisions.below(8) {
            0 => Input::Close { drain: true },
            1 => Input::Close { drain: false },
            2 => Input::Unsubscribe,
            3 => Input::Subscribe(Subscription::Pattern("[tu]".to_owned())),
            4 => Input::Subscribe(Subscription::Pattern(text(decisions, &["(", "t*"]))),
            5 => Input::Subscribe(Subscription::Topics(["t".into(), "u".into()].into())),
            _ => Input::RequestRebalance(JoinReason::from_number(decisions.byte() as i8)),
        };
        self.give(input);
    }

    fn give(&mut self, input: Input) {
        let mut out = Vec::new();
        self.member.handle(Timestamp(self.now), input, &mut out);
        self.member.check();
        for output in out {
            match output {
                Output::Send { token, request, .. } => self.waiting.push((token, request)),
                Output::FindCoordinator => self.searches = true,
                Output::Assign { owned, .. } => self.owned = owned,
                Output::Revoke { partitions, .. } => self.releases.push(partitions),
                Output::Revoked { partitions, .. } | Output::Lost { partitions, .. } => {
                    self.owned = self.owned.minus(&partitions);
                }
                _ => {}
            }
        }
    }
}

fn code(decisions: &mut Decisions<'_>) -> ErrorCode {
    match decisions.below(8) {
        0..=3 => ErrorCode::None,
        4 => ErrorCode::RebalanceInProgress,
        _ => ErrorCode::from_number(i16::from(decisions.byte() as i8)),
    }
}

fn offset(decisions: &mut Decisions<'_>) -> Offset {
    Offset {
        offset: i64::from(number(decisions)),
        leader_epoch: -1,
        metadata: String::new(),
    }
}

fn owned(decisions: &mut Decisions<'_>) -> Vec<TopicPartitions> {
    (0..decisions.below(3))
        .map(|_| TopicPartitions {
            topic: text(decisions, &["t", "t", "u"]).as_str().into(),
            partitions: (0..decisions.below(4)).map(|_| number(decisions)).collect(),
        })
        .collect()
}

/// An answer of the right API with any content.
fn response(decisions: &mut Decisions<'_>, request: &GroupRequest) -> GroupResponse {
    let throttle_time_ms = if decisions.below(8) == 0 {
        number(decisions)
    } else {
        0
    };
    let error_code = code(decisions);
    match request {
        GroupRequest::JoinGroup(join) => joined(decisions, join, error_code, throttle_time_ms),
        GroupRequest::SyncGroup(sync) => GroupResponse::SyncGroup(SyncGroupResponse {
            throttle_time_ms,
            error_code,
            protocol_type: Some(text(decisions, &["consumer"])),
            protocol_name: sync.protocol_name.clone(),
            assignment: payload(decisions, |decisions| {
                Assignment {
                    assigned: owned(decisions),
                    ..Assignment::default()
                }
                .encode()
            }),
        }),
        GroupRequest::OffsetCommit(commit) => committed(decisions, commit, throttle_time_ms),
        GroupRequest::OffsetFetch(_) => GroupResponse::OffsetFetch(OffsetFetchResponse {
            throttle_time_ms,
            error_code,
            ..OffsetFetchResponse::default()
        }),
        GroupRequest::LeaveGroup(_) => GroupResponse::LeaveGroup(LeaveGroupResponse {
            throttle_time_ms,
            error_code,
            ..LeaveGroupResponse::default()
        }),
        _ => GroupResponse::Heartbeat(HeartbeatResponse {
            throttle_time_ms,
            error_code,
        }),
    }
}

fn joined(
    decisions: &mut Decisions<'_>,
    join: &JoinGroupRequest,
    error_code: ErrorCode,
    throttle_time_ms: i32,
) -> GroupResponse {
    let me = if join.member_id.is_empty() || decisions.below(8) == 0 {
        text(decisions, &["m0", "m1"])
    } else {
        join.member_id.clone()
    };
    let members = (0..decisions.below(4))
        .map(|at| JoinGroupResponseMember {
            member_id: if at == 0 {
                me.clone()
            } else {
                format!("other{at}")
            },
            group_instance_id: None,
            metadata: payload(decisions, |decisions| {
                embedded::Subscription {
                    topics: vec![text(decisions, &["t", "u"]).as_str().into()],
                    owned: owned(decisions),
                    generation: Some(number(decisions)),
                    ..embedded::Subscription::default()
                }
                .encode()
            }),
        })
        .collect();
    GroupResponse::JoinGroup(JoinGroupResponse {
        throttle_time_ms,
        error_code,
        generation_id: number(decisions),
        protocol_type: Some(text(decisions, &["consumer"])),
        protocol_name: join
            .protocols
            .first()
            .map(|protocol| protocol.name.clone())
            .filter(|_| decisions.below(8) != 0)
            .or_else(|| decisions.pick(&NAMES).map(str::to_owned)),
        leader: if decisions.below(3) == 0 {
            "other1".to_owned()
        } else {
            me.clone()
        },
        skip_assignment: decisions.below(8) == 0,
        member_id: me,
        members,
    })
}

/// Each partition with a code of its own, or left out.
fn committed(
    decisions: &mut Decisions<'_>,
    commit: &OffsetCommitRequest,
    throttle_time_ms: i32,
) -> GroupResponse {
    let topics = commit
        .topics
        .iter()
        .filter(|_| decisions.below(8) != 0)
        .map(|topic| topic.name.clone())
        .collect::<Vec<_>>();
    let topics = topics
        .into_iter()
        .map(|name| {
            let asked = commit.topics.iter().filter(|topic| topic.name == name);
            OffsetCommitResponseTopic {
                partitions: asked
                    .flat_map(|topic| &topic.partitions)
                    .map(|partition| OffsetCommitResponsePartition {
                        partition_index: partition.partition_index,
                        error_code: code(decisions),
                    })
                    .collect(),
                name,
                ..OffsetCommitResponseTopic::default()
            }
        })
        .collect();
    GroupResponse::OffsetCommit(OffsetCommitResponse {
        throttle_time_ms,
        topics,
    })
}
