//! The end: what cannot be healed, and a close that is done.

use super::joining::refused;
use super::leaving::Then;
use super::state::State;
use super::{Member, Output};
use kohort_wire::{ApiKey, ErrorCode};

impl Member {
    /// Something that trying again does not heal. What the member has is handed back in good order, then the error is told.
    pub(super) fn fail(
        &mut self,
        api: Option<ApiKey>,
        code: Option<ErrorCode>,
        reason: String,
        out: &mut Vec<Output>,
    ) {
        match self.state {
            State::Fatal | State::Closed => return,
            State::Unsubscribed
            | State::Joining(_)
            | State::Syncing(_)
            | State::Reconciling
            | State::Stable
            | State::Leaving(_)
            | State::Fenced => {}
        }
        let fatal = self.fatal(api, code, reason);
        self.abandon_round(out);
        if !self.membership.valid() {
            self.lose(&fatal.reason, true, out);
        }
        self.leave(Then::Fatal(fatal), out);
    }

    /// Another process has taken the instance id over (KIP-345). Whatever this one said now would be said in the other's name: so
    /// nothing is committed, nobody leaves, and everything is lost.
    ///
    /// Where the coordinator was lost before the id was stored, its successor may still know the id of this instance's time before, or
    /// a lost join of its own may have come late: then the member asks once for a new id. Kafka's client ends there for good.
    pub(super) fn on_fenced(&mut self, api: ApiKey, out: &mut Vec<Output>) {
        let code = ErrorCode::FencedInstanceId;
        self.abandon_round(out);
        if std::mem::take(&mut self.membership.doubted) || defect!(FightsForInstance) {
            self.end_series();
            return self.lose_and_rejoin(&refused(api, code), false, out);
        }
        self.lose(&refused(api, code), false, out);
        let reason = format!(
            "another member runs with group.instance.id {}; give each process its own",
            self.config.group_instance_id.as_deref().unwrap_or("")
        );
        let fatal = self.fatal(Some(api), Some(code), reason);
        let closes = self.closing.is_some();
        self.end_with(fatal, closes, out);
    }

    /// Says the error, and that a close has ended where one was asked for.
    pub(super) fn end_with(&mut self, fatal: super::Fatal, closes: bool, out: &mut Vec<Output>) {
        self.abandon_commits(out);
        out.push(Output::Fatal(fatal));
        self.state = State::Fatal;
        if closes {
            self.close_now(out);
        }
    }

    /// The close has ended.
    pub(super) fn close_now(&mut self, out: &mut Vec<Output>) {
        self.abandon_commits(out);
        self.line.flights.clear();
        self.state = State::Closed;
        out.push(Output::Closed);
    }
}
