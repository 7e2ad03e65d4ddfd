//! Joining: what has to be released is released, commits are answered, then JoinGroup is sent, again and again if need be.

use super::requests::Work;
use super::state::{Cause, State};
use super::syncing::Syncing;
use super::{Lane, Member, Mode, Output, Subscription};
use crate::assign::Assignor;
use crate::assign::decode::{self, partitions_to_wire};
use crate::coordinator::GroupRequest;
use crate::partitions::Topic;
use crate::reason::JoinReason;
use crate::time::Timestamp;
use bytes::Bytes;
use kohort_wire::embedded;
use kohort_wire::messages::{JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeSet;

/// The protocol type of consumer groups.
pub(super) const CONSUMER: &str = "consumer";
/// After so many rounds without a calm heartbeat between them, joins keep a pause.
const ROUNDS_WITHOUT_PAUSE: u32 = 8;
/// KIP-800: brokers take 255 characters.
const REASON_CHARACTERS: usize = 255;

/// A series of attempts to join, from its cause until it has a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Joining {
    pub(super) cause: Cause,
    /// Whether what has to be released before has been told.
    prepared: bool,
    /// Commits up to this one are to be answered first.
    barrier: u64,
    /// Whether a JoinGroup was sent: from then on the old generation is no longer sure to be current.
    pub(super) sent: bool,
    /// What the last JoinGroup subscribed to.
    pub(super) topics: BTreeSet<Topic>,
    /// Whether an error of this series was told already.
    warned: Option<ErrorCode>,
}

impl Member {
    /// Starts to join, or gives the join that is being prepared a stronger cause.
    pub(super) fn begin_join(&mut self, cause: Cause, out: &mut Vec<Output>) {
        if let State::Joining(joining) = &mut self.state {
            if !joining.sent && cause.asks() {
                joining.cause = cause;
            }
            return;
        }
        if self.rounds_unsettled > ROUNDS_WITHOUT_PAUSE && !defect!(EverybodyRejoinsAtOnce) {
            self.rounds.not_before(self.now + self.pauses.first);
        }
        self.rounds_unsettled = self.rounds_unsettled.saturating_add(1);
        out.push(Output::Rebalancing {
            cause: cause.text.clone().into_owned(),
            deadline: self.now + self.config.max_poll_interval_ms,
        });
        self.record.begin(self.now, &cause, &self.ownership.owned);
        if matches!(self.subscription, Some(Subscription::Pattern(_))) {
            // All members that match a pattern look at the topics when a round begins, or each would notice a new topic
            // in a round of its own (KAFKA-7126).
            self.refresh_topics(out);
        }
        self.offsets.hold(self.now);
        self.need_rejoin = false;
        self.state = State::Joining(Joining {
            cause,
            prepared: false,
            barrier: self.offsets.last_serial(),
            sent: false,
            topics: BTreeSet::new(),
            warned: None,
        });
    }

    /// The wanted topics changed while a join was being prepared: there may be more to release.
    pub(super) fn prepare_again(&mut self) {
        if let State::Joining(joining) = &mut self.state {
            joining.prepared = false;
        }
    }

    /// The last commit that a join waits for.
    pub(super) fn join_barrier(&self) -> Option<u64> {
        match &self.state {
            State::Joining(joining) => Some(joining.barrier),
            _ => None,
        }
    }

    /// Goes on with the join as far as it can.
    pub(super) fn progress_join(&mut self, out: &mut Vec<Output>) {
        let State::Joining(joining) = &mut self.state else {
            return;
        };
        if !std::mem::replace(&mut joining.prepared, true) && !joining.sent {
            let (partitions, reason) = self.before_join();
            self.revoke(&partitions, reason, out);
        }
        if !self.finish_release(out)
            || self.commits_hold()
            || self.line.flying(|work| matches!(work, Work::Join))
            // The old membership first, or the group would wait for it in the round that the new one asks for.
            || self.leave_in_flight()
            || !self.rounds.may(self.now)
            || !self.may_speak(Lane::Rounds)
            || self.awaits_topics()
        {
            return;
        }
        self.send_join(out);
    }

    fn send_join(&mut self, out: &mut Vec<Output>) {
        let State::Joining(joining) = &self.state else {
            return;
        };
        let cause = joining.cause.clone();
        let topics = if self.closing.is_some() {
            BTreeSet::new()
        } else {
            self.wanted.clone()
        };
        let milliseconds = |time: u64| i32::try_from(time).unwrap_or(i32::MAX);
        let request = JoinGroupRequest {
            group_id: self.config.group_id.clone(),
            session_timeout_ms: milliseconds(self.config.session_timeout_ms),
            rebalance_timeout_ms: milliseconds(self.config.max_poll_interval_ms),
            member_id: self.membership.id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
            protocol_type: CONSUMER.to_owned(),
            protocols: self
                .config
                .assignors
                .iter()
                .map(|assignor| JoinGroupProtocol {
                    name: assignor.name().to_owned(),
                    metadata: self.metadata(assignor.as_ref(), &topics),
                })
                .collect(),
            reason: Some(cause.text.chars().take(REASON_CHARACTERS).collect()),
            join_reason: cause.reason.number(),
        };
        if self.send(Work::Join, request, GroupRequest::JoinGroup, out)
            && let State::Joining(joining) = &mut self.state
        {
            joining.sent = true;
            joining.topics = topics;
        }
    }

    /// What the member tells the leader under this assignor: topics, claims, and the generation in which they were assigned.
    fn metadata(&self, assignor: &dyn Assignor, topics: &BTreeSet<Topic>) -> Bytes {
        let generation = self.ownership.generation;
        let names: Vec<Topic> = topics.iter().cloned().collect();
        let previous = &self.ownership.previous;
        let explicit = self.explicit();
        let user_data = decode::user_data(assignor, &names, previous, generation, explicit);
        embedded::Subscription {
            topics: names,
            user_data,
            owned: partitions_to_wire(&self.ownership.owned),
            generation: Some(generation),
            rack: self.config.rack.clone(),
            ..embedded::Subscription::default()
        }
        .encode()
    }

    /// Whether the member says that it knows the explicit form.
    pub(super) fn explicit(&self) -> bool {
        self.config.explicit_revocation && self.mode == Mode::Cooperative
    }

    /// JoinGroup was answered.
    pub(super) fn on_joined(&mut self, answer: JoinGroupResponse, out: &mut Vec<Output>) {
        let State::Joining(joining) = &self.state else {
            self.on_joined_too_late(answer);
            return;
        };
        let code = answer.error_code;
        match code {
            ErrorCode::None if answer.generation_id < 0 || answer.member_id.is_empty() => {
                let text = format!(
                    "JoinGroup was answered with generation {} and member id {:?}, expected a generation from 0 on and an id; the member tries again with pauses: look whether what answers is a Kafka broker",
                    answer.generation_id, answer.member_id
                );
                self.warn_once(code, text, out);
                self.rounds.failed(self.now, self.pauses, &mut self.jitter);
            }
            ErrorCode::None => {
                let topics = joining.topics.clone();
                let cause = joining.cause.clone();
                self.heard(self.now);
                self.enter_round(answer, topics, cause, out);
            }
            ErrorCode::MemberIdRequired => {
                // KIP-394: the same join again, with the id, and nothing released or lost for it.
                self.heard(self.now);
                let first = self.membership.id.is_empty();
                self.membership.id = answer.member_id;
                if !first || self.membership.id.is_empty() {
                    self.rounds.refused(self.now, self.pauses, &mut self.jitter);
                }
            }
            ErrorCode::RebalanceInProgress => {
                self.heard(self.now);
                self.rounds.refused(self.now, self.pauses, &mut self.jitter);
            }
            ErrorCode::CoordinatorLoadInProgress => {
                self.membership.doubt();
                self.heard(self.now);
                self.rounds.failed(self.now, self.pauses, &mut self.jitter);
            }
            ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::RequestTimedOut
            | ErrorCode::NetworkException => {
                self.forget_coordinator();
                self.rounds.failed(self.now, self.pauses, &mut self.jitter);
            }
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => {
                let keep_id = code == ErrorCode::IllegalGeneration;
                self.end_series();
                self.lose_and_rejoin(&refused(ApiKey::JoinGroup, code), keep_id, out);
            }
            ErrorCode::FencedInstanceId => self.on_fenced(ApiKey::JoinGroup, out),
            ErrorCode::InconsistentGroupProtocol
            | ErrorCode::InvalidGroupId
            | ErrorCode::InvalidSessionTimeout
            | ErrorCode::GroupAuthorizationFailed
            | ErrorCode::GroupMaxSizeReached
            | ErrorCode::UnsupportedVersion
            | ErrorCode::InvalidRequest => {
                let advice = self.join_advice(code);
                self.fail(Some(ApiKey::JoinGroup), Some(code), advice, out);
            }
            other => {
                // Nothing that is known of this code makes it final, so the member tries again, but not silently.
                let text = format!(
                    "{}; the member tries again with pauses",
                    refused(ApiKey::JoinGroup, other)
                );
                self.warn_once(other, text, out);
                self.rounds.failed(self.now, self.pauses, &mut self.jitter);
            }
        }
    }

    fn warn_once(&mut self, code: ErrorCode, text: String, out: &mut Vec<Output>) {
        if let State::Joining(joining) = &mut self.state
            && joining.warned.replace(code) != Some(code)
        {
            let code = (!code.is_none()).then_some(code);
            out.push(Output::Warning { code, text });
        }
    }

    fn join_advice(&self, code: ErrorCode) -> String {
        match code {
            ErrorCode::InconsistentGroupProtocol => {
                let names: Vec<&str> = self.config.assignors.iter().map(|a| a.name()).collect();
                format!(
                    "expected a group of type {CONSUMER} whose members all list one of {names:?}; list an assignor that the group uses"
                )
            }
            ErrorCode::GroupMaxSizeReached => {
                "the group has group.max.size members; raise it or stop some".to_owned()
            }
            ErrorCode::InvalidSessionTimeout => format!(
                "session.timeout.ms is {}, outside the broker's group.min.session.timeout.ms and group.max.session.timeout.ms",
                self.config.session_timeout_ms
            ),
            ErrorCode::GroupAuthorizationFailed => {
                "the client may not read the group; grant READ on it".to_owned()
            }
            other => other.meaning().to_owned(),
        }
    }

    /// The series of attempts has ended, so that a new one can begin.
    pub(super) fn end_series(&mut self) {
        if matches!(self.state, State::Joining(_) | State::Syncing(_)) {
            self.state = State::Stable;
        }
    }

    /// The answer of JoinGroup will not come: nobody knows whether the coordinator took it.
    pub(super) fn on_join_lost(&mut self) {
        self.rounds.failed(self.now, self.pauses, &mut self.jitter);
        if let State::Joining(joining) = &mut self.state
            && joining.cause.reason == JoinReason::Unknown
        {
            joining.cause = Cause::new(JoinReason::Retry, "the answer to the last join was lost");
        }
    }

    fn enter_round(
        &mut self,
        answer: JoinGroupResponse,
        topics: BTreeSet<Topic>,
        cause: Cause,
        out: &mut Vec<Output>,
    ) {
        let kind = answer.protocol_type.as_deref();
        let name = answer.protocol_name.clone().unwrap_or_default();
        let offered = self.config.assignors.iter().any(|a| a.name() == name);
        if kind.is_some_and(|kind| kind != CONSUMER) || !offered {
            let names: Vec<&str> = self.config.assignors.iter().map(|a| a.name()).collect();
            let reason = format!(
                "expected protocol type {CONSUMER} and one of {names:?}, got {} and {name:?}",
                kind.unwrap_or(CONSUMER)
            );
            self.membership.id = answer.member_id;
            let code = Some(ErrorCode::InconsistentGroupProtocol);
            self.fail(Some(ApiKey::JoinGroup), code, reason, out);
            return;
        }
        self.membership.id.clone_from(&answer.member_id);
        self.membership.generation = answer.generation_id;
        self.membership.protocol = name;
        self.record.round(self.now, answer.generation_id);
        self.beat.start(self.now, self.beat_interval());
        self.state = State::Syncing(Syncing::new(
            answer,
            topics,
            cause,
            self.ownership.owned.clone(),
        ));
    }
}

/// Why a membership has ended, in words.
pub(super) fn refused(api: ApiKey, code: ErrorCode) -> String {
    format!(
        "{} was answered {} ({}): {}",
        api.name(),
        code.name(),
        code.number(),
        code.meaning()
    )
}

impl Joining {
    /// Whether the generation that the member had before is still sure to be the group's.
    pub(super) fn before_sending(&self) -> bool {
        !self.sent
    }

    pub(super) fn barrier(&mut self) -> &mut u64 {
        &mut self.barrier
    }
}

/// The earliest of some times.
pub(super) fn earliest(times: impl IntoIterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
    times.into_iter().flatten().min()
}
