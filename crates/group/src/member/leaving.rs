//! Leaving: hand back what is owned, commit, say LeaveGroup; for an unsubscribe, a close, or an error.

use super::requests::Work;
use super::state::{Cause, Closing, Membership, State};
use super::{Fatal, Member, Mode, Output};
use crate::coordinator::GroupRequest;
use crate::partitions::Partitions;
use crate::reason::JoinReason;
use crate::time::Timestamp;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{JoinGroupResponse, LeaveGroupMember, LeaveGroupRequest};

/// How long a member that leaves waits for a coordinator that it knows.
const PATIENCE_MS: u64 = 5_000;
/// How long it waits for one that has to be found first: nobody is told, and the session ends the membership.
const PATIENCE_UNKNOWN_MS: u64 = 1_000;
/// How long a close waits for a join that the coordinator has parked.
const PARKED_MS: u64 = 2_000;
/// How long it waits when it was told twice to close.
const PATIENCE_HURRY_MS: u64 = 300;
/// A request without an answer for so long makes a coordinator a silent one, to which nothing is handed over.
const SILENCE_MS: u64 = 500;

/// A departure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leaving {
    then: Then,
    /// When everything was handed back.
    since: Option<Timestamp>,
    /// LeaveGroup was sent, or is not to be.
    sent: bool,
    /// Whether the generation is still sure to be the group's: after a join was given up, it may have ended any time.
    sure: bool,
}

impl Leaving {
    pub(super) fn sure(&self) -> bool {
        self.sure
    }

    pub(super) fn time(&mut self) -> Option<&mut Timestamp> {
        self.since.as_mut()
    }
}

/// What follows a departure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    /// The member wants nothing for now.
    Unsubscribed,
    /// The member ends.
    Closed,
    /// The member ends with an error.
    Fatal(Fatal),
}

impl Member {
    /// Begins to leave, or changes what follows.
    pub(super) fn leave(&mut self, then: Then, out: &mut Vec<Output>) {
        if let State::Leaving(leaving) = &mut self.state {
            // An error is not forgotten, and a close is not taken back.
            if matches!(leaving.then, Then::Unsubscribed) {
                leaving.then = then;
            }
            return;
        }
        let joins = self.line.flying(|work| *work == Work::Join);
        // The answer to a first join brings an id that the coordinator waits for from then on: worth waiting for, to give it back.
        if !(joins && self.membership.id.is_empty() && self.config.group_instance_id.is_none()) {
            self.abandon_round(out);
        }
        let sure = match &self.state {
            State::Joining(joining) => joining.before_sending(),
            _ => true,
        };
        self.state = State::Leaving(Leaving {
            then,
            since: None,
            sent: false,
            sure,
        });
        self.offsets.hold(self.now);
        if self.membership.valid() {
            self.revoke_all(out);
        } else {
            self.lose("the member leaves and has no generation", true, out);
        }
    }

    /// Leaves because the application closes.
    pub(super) fn leave_for_good(&mut self, out: &mut Vec<Output>) {
        self.leave(Then::Closed, out);
    }

    /// The application wants nothing any more, for now.
    pub(super) fn on_unsubscribe(&mut self, out: &mut Vec<Output>) {
        self.subscription = None;
        self.wanted.clear();
        self.watching = super::Watch::default();
        match self.state {
            State::Unsubscribed | State::Fatal | State::Closed => {}
            State::Fenced => self.state = State::Unsubscribed,
            State::Joining(_)
            | State::Syncing(_)
            | State::Reconciling
            | State::Stable
            | State::Leaving(_) => self.leave(Then::Unsubscribed, out),
        }
    }

    /// The application closes.
    pub(super) fn on_close(&mut self, drain: bool, out: &mut Vec<Output>) {
        if self.closing.is_some() {
            self.close_at_once(out);
            return;
        }
        self.closing = Some(Closing {
            drain: drain && self.can_drain(),
            deadline: self.now + self.config.close_drain_ms,
            hurry: false,
        });
        match &self.state {
            State::Closed => {}
            State::Unsubscribed | State::Fenced | State::Fatal => self.close_now(out),
            // A round that is under way ends soon, as a rule; then what was consumed can be committed in the new generation.
            State::Joining(joining) if self.drains() && !joining.before_sending() => {
                self.close_within(PARKED_MS);
            }
            State::Syncing(_) if self.drains() => {}
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Leaving(_) => {
                self.leave_for_good(out);
            }
            State::Stable => {}
        }
    }

    fn close_within(&mut self, milliseconds: u64) {
        let limit = self.now + milliseconds;
        if let Some(closing) = &mut self.closing {
            closing.deadline = closing.deadline.min(limit);
        }
    }

    /// Whether a hand-over in a round makes sense: there is something to hand over, somebody to take it, and a coordinator to hear of it.
    fn can_drain(&self) -> bool {
        let silent =
            self.line.flights.values().any(|flight| {
                self.now.since(flight.sent) >= SILENCE_MS && flight.work != Work::Sync
            });
        self.config.close_drain_ms > 0
            && self.mode == Mode::Cooperative
            && self.config.group_instance_id.is_none()
            && self.membership.valid()
            && !self.membership.alone
            && !self.ownership.owned.is_empty()
            && self.line.known()
            && !silent
    }

    fn drains(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.drain)
    }

    /// A close has been asked for twice, or has taken too long to wait for anybody.
    fn close_at_once(&mut self, out: &mut Vec<Output>) {
        if let State::Leaving(leaving) = &self.state
            && leaving.sent
        {
            self.finish_leaving(out);
            return;
        }
        if let Some(closing) = &mut self.closing {
            closing.hurry = true;
        }
        self.leave_for_good(out);
        if matches!(self.state, State::Leaving(_)) {
            self.lose_waiting("closed without waiting for the application", out);
            self.abandon_commits(out);
        }
    }

    /// When a close, or a departure, has taken too long.
    pub(super) fn close_due(&self) -> Option<Timestamp> {
        match &self.state {
            State::Leaving(leaving) => leaving.since.map(|since| since + self.patience()),
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Stable => {
                self.closing.as_ref().map(|closing| closing.deadline)
            }
            State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => None,
        }
    }

    fn patience(&self) -> u64 {
        if self.closing.as_ref().is_some_and(|closing| closing.hurry) {
            PATIENCE_HURRY_MS
        } else if self.line.known() {
            PATIENCE_MS.min(self.config.request_timeout_ms)
        } else {
            PATIENCE_UNKNOWN_MS
        }
    }

    /// The close, or the departure, has taken too long.
    pub(super) fn close_overdue(&mut self, out: &mut Vec<Output>) {
        match &self.state {
            State::Leaving(_) => self.finish_leaving(out),
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Stable => {
                self.leave_for_good(out);
            }
            State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => {}
        }
    }

    /// Whether a departure needs a coordinator.
    pub(super) fn leaving_wants_coordinator(&self) -> bool {
        match &self.state {
            State::Leaving(leaving) => {
                (!leaving.sent && self.says_goodbye()) || self.offsets.commits_wait()
            }
            _ => false,
        }
    }

    /// Whether LeaveGroup is to be said: a static member keeps its place (KIP-345), and without an id there is none.
    fn says_goodbye(&self) -> bool {
        self.config.group_instance_id.is_none() && !self.membership.id.is_empty()
    }

    /// Goes on with the departure as far as it can.
    pub(super) fn progress_leave(&mut self, out: &mut Vec<Output>) {
        if !self.finish_release(out) || self.commits_hold() {
            return;
        }
        let goodbye = self.says_goodbye();
        let State::Leaving(leaving) = &mut self.state else {
            return;
        };
        leaving.since.get_or_insert(self.now);
        if leaving.sent || !goodbye {
            if !self.leave_in_flight() && !self.line.flying(|work| *work == Work::Join) {
                self.finish_leaving(out);
            }
            return;
        }
        let why = match &leaving.then {
            Then::Unsubscribed => "the consumer unsubscribed",
            Then::Closed => "the consumer is being closed",
            Then::Fatal(_) => "the consumer stops because of an error",
        };
        if self.send_leave(why, out)
            && let State::Leaving(leaving) = &mut self.state
        {
            leaving.sent = true;
        }
    }

    /// Sends LeaveGroup. True if it was sent.
    pub(super) fn send_leave(&mut self, why: &str, out: &mut Vec<Output>) -> bool {
        let request = LeaveGroupRequest {
            group_id: self.config.group_id.clone(),
            member_id: self.membership.id.clone(),
            members: vec![LeaveGroupMember {
                member_id: self.membership.id.clone(),
                group_instance_id: self.config.group_instance_id.clone(),
                reason: Some(why.to_owned()),
            }],
        };
        self.send(Work::Leave, request, GroupRequest::LeaveGroup, out)
    }

    /// A join that was in flight when the member began to leave brings its id.
    pub(super) fn on_joined_too_late(&mut self, answer: JoinGroupResponse) {
        if matches!(
            answer.error_code,
            ErrorCode::None | ErrorCode::MemberIdRequired
        ) {
            self.membership.id = answer.member_id;
        }
    }

    /// LeaveGroup was answered, or will not be: nobody asks again, since the session ends the membership anyway.
    pub(super) fn on_left(&mut self) {
        if let State::Leaving(leaving) = &mut self.state {
            leaving.sent = true;
        }
    }

    /// Gives up what the application has not let go of.
    pub(super) fn lose_waiting(&mut self, why: &str, out: &mut Vec<Output>) {
        let Some(release) = &mut self.ownership.release else {
            return;
        };
        let waiting = std::mem::take(&mut release.waiting);
        release.partitions = release.partitions.minus(&waiting);
        self.ownership.owned = self.ownership.owned.minus(&waiting);
        self.offsets.forget(&waiting);
        if !waiting.is_empty() {
            out.push(Output::Lost {
                partitions: waiting,
                why: why.to_owned(),
                generation: self.membership.generation,
            });
        }
    }

    fn finish_leaving(&mut self, out: &mut Vec<Output>) {
        let State::Leaving(leaving) = std::mem::replace(&mut self.state, State::Unsubscribed)
        else {
            return;
        };
        self.abandon_round(out);
        self.lose("the member has left", false, out);
        self.line
            .flights
            .retain(|_, flight| flight.work == Work::Leave);
        self.membership = Membership::new();
        self.ownership.previous = Partitions::new();
        match leaving.then {
            Then::Closed => self.close_now(out),
            Then::Fatal(fatal) => self.end_with(fatal, self.closing.is_some(), out),
            Then::Unsubscribed => {
                if self.subscription.is_some() {
                    let cause = Cause::new(JoinReason::NewMember, "subscribed again");
                    self.begin_join(cause, out);
                }
            }
        }
    }
}
