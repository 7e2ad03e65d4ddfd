//! Fenced by the application: it has not polled, or not released, in time. The member leaves, so that the group need not wait, and joins
//! again at the next poll (KIP-62).

use super::requests::Work;
use super::state::{Cause, State};
use super::{Member, Output, RevokeReason};
use crate::reason::JoinReason;
use crate::time::Timestamp;

impl Member {
    /// When the application must have polled.
    pub(super) fn poll_due(&self) -> Option<Timestamp> {
        match self.state {
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Stable
                if self.closing.is_none() =>
            {
                Some(self.polled + self.config.max_poll_interval_ms)
            }
            State::Fenced if defect!(SpinsWhileFenced) => {
                Some(self.polled + self.config.max_poll_interval_ms)
            }
            _ => None,
        }
    }

    /// When the application must have released what it was told to.
    pub(super) fn revocation_due(&self) -> Option<Timestamp> {
        let release = self.ownership.release.as_ref()?;
        Some(release.deadline)
    }

    /// The application polls: it is alive.
    pub(super) fn on_polled(&mut self, out: &mut Vec<Output>) {
        self.polled = self.now;
        if self.state == State::Fenced {
            let cause = Cause::new(JoinReason::Lost, "the application polls again");
            self.begin_join(cause, out);
        }
    }

    /// The application has not polled for too long.
    pub(super) fn poll_overdue(&mut self, out: &mut Vec<Output>) {
        if self.poll_due().is_some() {
            let why = format!(
                "the application has not polled for max.poll.interval.ms ({} ms)",
                self.config.max_poll_interval_ms
            );
            self.fence(&why, out);
        }
    }

    /// The application has not let go in time.
    pub(super) fn revocation_overdue(&mut self, out: &mut Vec<Output>) {
        let Some(release) = &mut self.ownership.release else {
            return;
        };
        if release.waiting.is_empty() {
            // Only the commits of what was released are outstanding; the group does not wait for them any longer.
            self.offsets.release_hold();
            return;
        }
        let why = format!(
            "the application has not released {} within max.poll.interval.ms ({} ms)",
            release.waiting, self.config.max_poll_interval_ms
        );
        if matches!(self.state, State::Leaving(_)) {
            self.lose_waiting(&why, out);
        } else {
            self.fence(&why, out);
        }
    }

    fn fence(&mut self, why: &str, out: &mut Vec<Output>) {
        self.abandon_round(out);
        let id = self.membership.id.clone();
        self.lose(why, true, out);
        out.push(Output::Warning {
            code: None,
            text: format!("{why}; the member has left and joins again at the next poll"),
        });
        if self.config.group_instance_id.is_none() && !id.is_empty() {
            // Best effort: if nobody hears it, the session ends it.
            self.send_leave("the application did not poll in time", out);
        }
        self.membership.forget_id();
        self.state = State::Fenced;
        if self.closing.is_some() {
            self.close_now(out);
        }
    }

    /// Tells the application to let go of everything.
    pub(super) fn revoke_all(&mut self, out: &mut Vec<Output>) {
        let owned = self.ownership.owned.clone();
        self.revoke(&owned, RevokeReason::Closing, out);
    }

    /// Whether a LeaveGroup is in flight.
    pub(super) fn leave_in_flight(&self) -> bool {
        self.line.flying(|work| matches!(work, Work::Leave))
    }
}
