//! Heartbeats: quick ones after a sync, then at the interval; and what their answers say.

use super::backoff::{Jitter, Retry};
use super::joining::refused;
use super::requests::{Flight, Work};
use super::state::{Cause, State};
use super::{Member, Output};
use crate::coordinator::GroupRequest;
use crate::reason::JoinReason;
use crate::time::Timestamp;
use kohort_wire::messages::HeartbeatRequest;
use kohort_wire::{ApiKey, ErrorCode};

/// The pause before the first quick heartbeat after a sync.
const QUICK_MS: u64 = 5;
/// The longest pause between heartbeats while the leader has announced another round. On the way there pauses grow by a quarter, not to
/// twice as much, so that a revocation which takes 50 ms costs about 10 ms more.
const NEED_REJOIN_MS: u64 = 100;
/// After so many rounds in a row without a calm heartbeat, the first one is not that quick any more.
const QUICK_ROUNDS: u32 = 5;

/// When to beat.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Beat {
    pub(super) next: Timestamp,
    pause: u64,
    /// After answers that say nothing about the membership.
    pub(super) retry: Retry,
    warned: Option<ErrorCode>,
}

impl Beat {
    /// The member has a place in a generation.
    pub(super) fn start(&mut self, now: Timestamp, interval: u64) {
        self.next = now + interval;
        self.pause = interval;
    }

    /// An assignment was applied. In every mode the next round is announced by a heartbeat only, so a member that waited for the interval
    /// would leave what is on its way to it unowned for as long; the phase is random, or all members would ask at once.
    pub(super) fn quicken(
        &mut self,
        now: Timestamp,
        interval: u64,
        jitter: &mut Jitter,
        rounds: u32,
    ) {
        let slower = rounds.saturating_sub(QUICK_ROUNDS).min(10);
        self.pause = (QUICK_MS << slower).min(interval);
        let phase = jitter.below(self.pause / 2 + 1);
        self.next = now + (self.pause + phase).min(interval);
    }

    fn sent(&mut self, now: Timestamp, need_rejoin: bool, interval: u64, jitter: &mut Jitter) {
        let (grown, longest) = if need_rejoin {
            (
                self.pause + self.pause / 4 + 1,
                interval.min(NEED_REJOIN_MS),
            )
        } else {
            (self.pause.saturating_mul(2), interval)
        };
        self.pause = grown.min(longest).max(1);
        let phase = if grown < longest {
            jitter.below(self.pause / 4 + 1)
        } else {
            0
        };
        self.next = now + (self.pause + phase).min(longest.max(1));
    }
}

impl Member {
    /// The pause between heartbeats. A member that hears of a rebalance only when its time is over would be thrown out of each one, and
    /// its return is the next: so it beats at least twice in a rebalance timeout, whatever `heartbeat.interval.ms` says.
    pub(super) fn beat_interval(&self) -> u64 {
        let twice = (self.config.max_poll_interval_ms / 2).max(1);
        self.config.heartbeat_interval_ms.min(twice)
    }

    /// Whether the coordinator expects heartbeats: it does from the answer of a join until the next join is sent, which is the sign of
    /// life from then on.
    pub(super) fn beats(&self) -> bool {
        self.membership.valid()
            && match &self.state {
                State::Joining(joining) => joining.before_sending(),
                State::Syncing(_) | State::Reconciling | State::Stable => true,
                State::Leaving(leaving) => leaving.sure() && self.ownership.release.is_some(),
                State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => false,
            }
    }

    /// When the next heartbeat is due, if one is to be sent.
    pub(super) fn beat_due(&self) -> Option<Timestamp> {
        let waits = self.line.flying(|work| matches!(work, Work::Heartbeat));
        (self.beats() && self.line.known() && !waits).then_some(self.beat.next)
    }

    /// Sends a heartbeat if one is due.
    pub(super) fn progress_beat(&mut self, out: &mut Vec<Output>) {
        if self.beat_due().is_none_or(|due| due > self.now) {
            return;
        }
        let request = HeartbeatRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.membership.generation,
            member_id: self.membership.id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
        };
        if self.send(Work::Heartbeat, request, GroupRequest::Heartbeat, out) {
            let interval = self.beat_interval();
            self.beat
                .sent(self.now, self.need_rejoin, interval, &mut self.jitter);
        }
    }

    /// A heartbeat was not answered: beat again as soon as the coordinator is found.
    pub(super) fn beat_again(&mut self) {
        self.beat.next = self.now;
    }

    /// A heartbeat was answered.
    pub(super) fn on_beat(&mut self, flight: &Flight, code: ErrorCode, out: &mut Vec<Output>) {
        match code {
            ErrorCode::CoordinatorNotAvailable | ErrorCode::NotCoordinator => {
                self.forget_coordinator();
                self.beat_again();
                return;
            }
            ErrorCode::None | ErrorCode::RebalanceInProgress => self.heard(flight.sent),
            _ => {}
        }
        // An answer about another generation, or one that a join has overtaken, says nothing.
        if flight.generation != self.membership.generation || !self.beats() {
            return;
        }
        match code {
            ErrorCode::None => {
                self.beat.retry.worked();
                self.beat.warned = None;
                if !matches!(self.state, State::Syncing(_)) {
                    self.rounds.worked();
                    self.rounds_unsettled = 0;
                }
            }
            ErrorCode::RebalanceInProgress => {
                if self.state == State::Stable {
                    let cause = Cause::new(JoinReason::Unknown, "the group is already rebalancing");
                    self.begin_join(cause, out);
                }
            }
            ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration => {
                let keep_id = code == ErrorCode::IllegalGeneration;
                self.end_series();
                self.lose_and_rejoin(&refused(ApiKey::Heartbeat, code), keep_id, out);
            }
            ErrorCode::FencedInstanceId => self.on_fenced(ApiKey::Heartbeat, out),
            other => self.beat_refused(other, out),
        }
    }

    /// An answer that says nothing about the membership: beat again sooner than the interval, with pauses that grow.
    fn beat_refused(&mut self, code: ErrorCode, out: &mut Vec<Output>) {
        let beat = &mut self.beat;
        beat.retry.failed(self.now, self.pauses, &mut self.jitter);
        if let Some(due) = beat.retry.due(self.now) {
            beat.next = beat.next.min(due);
        }
        let passing = matches!(
            code,
            ErrorCode::CoordinatorLoadInProgress | ErrorCode::RequestTimedOut
        );
        if !passing && beat.warned.replace(code) != Some(code) {
            out.push(Output::Warning {
                code: Some(code),
                text: format!("{}; beating on", refused(ApiKey::Heartbeat, code)),
            });
        }
    }

    /// When the session ends, if nothing is answered until then. A join that is in flight keeps the session alive at the coordinator.
    pub(super) fn session_due(&self) -> Option<Timestamp> {
        let at_stake = self.membership.valid() || !self.ownership.owned.is_empty();
        let parked = self.line.flying(|work| matches!(work, Work::Join));
        let joined = match self.state {
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Stable => true,
            State::Leaving(_) => !self.ownership.owned.is_empty(),
            State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => false,
        };
        (at_stake && joined && !parked)
            .then(|| self.membership.heard + self.config.session_timeout_ms)
    }

    /// Nothing was answered for a session: the coordinator may have given the partitions to others by now. The id stays: if it is still
    /// known, the group need not wait for its session to end.
    pub(super) fn session_over(&mut self, out: &mut Vec<Output>) {
        let why = format!(
            "no answer from the coordinator for session.timeout.ms ({} ms)",
            self.config.session_timeout_ms
        );
        self.forget_coordinator();
        if self
            .line
            .flights
            .values()
            .any(|flight| flight.lane == super::Lane::Control)
        {
            self.line
                .flights
                .retain(|_, flight| flight.lane != super::Lane::Control);
            out.push(Output::Disconnect(super::Lane::Control));
        }
        self.abandon_round(out);
        self.end_series();
        self.lose_and_rejoin(&why, true, out);
    }
}
