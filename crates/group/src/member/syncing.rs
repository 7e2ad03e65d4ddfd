//! Syncing: as leader, share the partitions out; then ask for one's own part.

use super::joining::{CONSUMER, refused};
use super::reconcile::Told;
use super::requests::Work;
use super::state::{Cause, State};
use super::{Lane, Member, Output};
use crate::assign::decode::partitions_from_wire;
use crate::coordinator::GroupRequest;
use crate::partitions::{Partitions, Topic};
use crate::reason::JoinReason;
use kohort_wire::embedded::Assignment;
use kohort_wire::messages::{
    JoinGroupResponse, JoinGroupResponseMember, SyncGroupRequest, SyncGroupResponse,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeSet;

/// After so many assignments in a row that cannot be read the member gives up.
const UNREADABLE: u32 = 3;

/// A place in the next generation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Syncing {
    /// The leader's view: all members; empty for a follower.
    pub(super) members: Vec<JoinGroupResponseMember>,
    leads: bool,
    skip: bool,
    /// What this member subscribed to.
    topics: BTreeSet<Topic>,
    pub(super) cause: Cause,
    /// What this member claimed.
    claimed: Partitions,
    /// Whether the topics of this round's members are watched, which may be others than in the last round.
    watches: bool,
    sent: bool,
}

impl Syncing {
    pub(super) fn new(
        answer: JoinGroupResponse,
        topics: BTreeSet<Topic>,
        cause: Cause,
        claimed: Partitions,
    ) -> Self {
        Self {
            leads: answer.leader == answer.member_id && !answer.members.is_empty(),
            skip: answer.skip_assignment,
            members: answer.members,
            topics,
            cause,
            claimed,
            watches: false,
            sent: false,
        }
    }
}

impl Member {
    /// Goes on with the sync as far as it can.
    pub(super) fn progress_sync(&mut self, out: &mut Vec<Output>) {
        let State::Syncing(syncing) = &mut self.state else {
            return;
        };
        if syncing.sent {
            return;
        }
        if syncing.leads && !std::mem::replace(&mut syncing.watches, true) {
            self.watch_group(out);
        }
        let State::Syncing(syncing) = &self.state else {
            return;
        };
        if syncing.leads && !syncing.skip && self.awaits_topics() {
            return;
        }
        if self.line.version::<SyncGroupRequest>().is_some() && self.may_speak(Lane::Rounds) {
            self.send_sync(out);
        }
    }

    fn send_sync(&mut self, out: &mut Vec<Output>) {
        let State::Syncing(syncing) = &self.state else {
            return;
        };
        let mut assignments = Vec::new();
        let alone = syncing.leads && syncing.members.len() == 1;
        let assigns = syncing.leads && !syncing.skip;
        let leads = syncing.leads;
        if assigns {
            match self.share_out(out) {
                Ok(shared) => assignments = shared,
                Err(reason) => {
                    self.fail(None, None, reason, out);
                    return;
                }
            }
        }
        self.membership.alone = alone;
        if assigns {
            self.snapshot();
        } else if leads {
            self.snapshot_later();
        } else if self.leading.take().is_some() {
            self.watch(out);
        }
        let request = SyncGroupRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.membership.generation,
            member_id: self.membership.id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
            protocol_type: Some(CONSUMER.to_owned()),
            protocol_name: Some(self.membership.protocol.clone()),
            assignments,
        };
        if self.send(Work::Sync, request, GroupRequest::SyncGroup, out)
            && let State::Syncing(syncing) = &mut self.state
        {
            syncing.sent = true;
            syncing.members.clear();
        }
    }

    /// The answer of SyncGroup will not come.
    pub(super) fn on_sync_lost(&mut self, out: &mut Vec<Output>) {
        if matches!(self.state, State::Syncing(_)) {
            self.end_series();
            self.rounds.failed(self.now, self.pauses, &mut self.jitter);
            self.begin_join(
                Cause::new(JoinReason::Retry, "the answer to the last sync was lost"),
                out,
            );
        }
    }

    /// SyncGroup was answered.
    pub(super) fn on_synced(&mut self, answer: SyncGroupResponse, out: &mut Vec<Output>) {
        if !matches!(self.state, State::Syncing(_)) {
            return;
        }
        let code = answer.error_code;
        match code {
            ErrorCode::None => {
                self.membership.store();
                self.heard(self.now);
                self.on_assignment(answer, out);
            }
            // Brokers answer a sync with "loading" where they mean "join again".
            ErrorCode::RebalanceInProgress | ErrorCode::CoordinatorLoadInProgress => {
                if code == ErrorCode::CoordinatorLoadInProgress {
                    self.membership.doubt();
                }
                self.heard(self.now);
                self.rounds.refused(self.now, self.pauses, &mut self.jitter);
                self.sync_refused(code, out);
            }
            ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::RequestTimedOut
            | ErrorCode::NetworkException => {
                self.forget_coordinator();
                self.rounds.failed(self.now, self.pauses, &mut self.jitter);
                self.sync_refused(code, out);
            }
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => {
                let keep_id = code == ErrorCode::IllegalGeneration;
                self.end_series();
                self.lose_and_rejoin(&refused(ApiKey::SyncGroup, code), keep_id, out);
            }
            ErrorCode::FencedInstanceId => self.on_fenced(ApiKey::SyncGroup, out),
            ErrorCode::GroupAuthorizationFailed
            | ErrorCode::InconsistentGroupProtocol
            | ErrorCode::InvalidGroupId
            | ErrorCode::UnsupportedVersion
            | ErrorCode::InvalidRequest => {
                let advice = code.meaning().to_owned();
                self.fail(Some(ApiKey::SyncGroup), Some(code), advice, out);
            }
            other => {
                // What could not be stored is gone with the next coordinator.
                self.membership.doubt();
                out.push(Output::Warning {
                    code: Some(other),
                    text: format!(
                        "{}; the member joins again",
                        refused(ApiKey::SyncGroup, other)
                    ),
                });
                self.rounds.failed(self.now, self.pauses, &mut self.jitter);
                self.sync_refused(other, out);
            }
        }
    }

    fn sync_refused(&mut self, code: ErrorCode, out: &mut Vec<Output>) {
        self.end_series();
        self.begin_join(
            Cause::new(JoinReason::Retry, refused(ApiKey::SyncGroup, code)),
            out,
        );
    }

    fn on_assignment(&mut self, answer: SyncGroupResponse, out: &mut Vec<Output>) {
        let State::Syncing(syncing) = &self.state else {
            return;
        };
        let (claimed, topics) = (syncing.claimed.clone(), syncing.topics.clone());
        let kind = answer.protocol_type.as_deref().unwrap_or(CONSUMER);
        let expected = self.membership.protocol.clone();
        let name = answer.protocol_name.as_deref().unwrap_or(&expected);
        if kind != CONSUMER || name != expected {
            let reason = format!(
                "expected protocol type {CONSUMER} and assignor {expected:?} as in the join, got {kind:?} and {name:?}"
            );
            let code = Some(ErrorCode::InconsistentGroupProtocol);
            self.fail(Some(ApiKey::SyncGroup), code, reason, out);
            return;
        }
        let length = answer.assignment.len();
        match Assignment::decode(answer.assignment) {
            Ok(assignment) => {
                self.unreadable = 0;
                let told = self.told(assignment, length, out);
                self.apply(told, &claimed, topics, out);
            }
            Err(error) => self.on_unreadable(&error.to_string(), out),
        }
    }

    /// What the assignment says, and whether it says in so many words what to revoke.
    fn told(&mut self, assignment: Assignment, length: usize, out: &mut Vec<Output>) -> Told {
        let marked = self.explicit();
        if marked && assignment.trailer.is_none() && length > plain_length(&assignment) {
            out.push(Output::Warning {
                code: None,
                text: format!(
                    "expected revoked partitions and an error code after the assignment, got {} bytes that are neither; following the plain part",
                    length - plain_length(&assignment)
                ),
            });
        }
        Told {
            assigned: partitions_from_wire(&assignment.assigned),
            trailer: assignment
                .trailer
                .filter(|_| marked)
                .map(|trailer| (partitions_from_wire(&trailer.revoked), trailer.error)),
        }
    }

    /// A leader wrote something that is no assignment. Another leader may do better.
    fn on_unreadable(&mut self, error: &str, out: &mut Vec<Output>) {
        self.unreadable += 1;
        let text = format!("expected an assignment, got bytes that cannot be read: {error}");
        if self.unreadable >= UNREADABLE {
            self.fail(
                Some(ApiKey::SyncGroup),
                None,
                format!("{text}, {UNREADABLE} times in a row; look at the group's leader"),
                out,
            );
            return;
        }
        out.push(Output::Warning {
            code: None,
            text: format!("{text}; the member joins again"),
        });
        self.rounds.failed(self.now, self.pauses, &mut self.jitter);
        self.end_series();
        self.begin_join(
            Cause::new(JoinReason::Unknown, "the assignment could not be read"),
            out,
        );
    }
}

/// How long the bytes are that Kafka's fields of an assignment take.
fn plain_length(assignment: &Assignment) -> usize {
    let partitions: usize = assignment
        .assigned
        .iter()
        .map(|topic| 2 + topic.topic.len() + 4 + 4 * topic.partitions.len())
        .sum();
    let user_data = assignment.user_data.as_ref().map_or(0, |data| data.len());
    2 + 4 + partitions + 4 + user_data
}
