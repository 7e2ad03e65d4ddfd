//! Stable and Reconciling: the assignment stands; something may call for the next join.

use super::state::{Cause, State};
use super::{Member, Output};
use crate::reason::JoinReason;

impl Member {
    /// Reconciling: once everything is released, join again, and say so: the group waits for it.
    pub(super) fn progress_reconcile(&mut self, out: &mut Vec<Output>) {
        if !self.finish_release(out) {
            return;
        }
        if self.closing.is_some() || defect!(NeedRejoinIgnored) {
            self.state = State::Stable;
            return;
        }
        let text = "need to revoke partitions and re-join";
        let cause = Cause::new(JoinReason::RevocationDone, text);
        self.begin_join(cause, out);
    }

    /// Stable: a close goes on from here.
    pub(super) fn progress_stable(&mut self, out: &mut Vec<Output>) {
        match &self.closing {
            None => {}
            Some(closing) if closing.drain => self.begin_join(
                Cause::new(
                    JoinReason::SubscriptionChanged,
                    "closing: handing its partitions over",
                ),
                out,
            ),
            Some(_) => self.leave_for_good(out),
        }
    }

    /// Something calls for a join. A release that is under way comes first; a join that is in flight has to end first, and
    /// what changed is looked at again then.
    pub(super) fn rejoin_for(&mut self, cause: Cause, out: &mut Vec<Output>) {
        match self.state {
            State::Stable => self.begin_join(cause, out),
            // The rejoin after a release is for the release; it asks for a rebalance, so nothing else needs to.
            State::Reconciling => {}
            State::Joining(ref joining) if joining.before_sending() => self.begin_join(cause, out),
            State::Joining(_) | State::Syncing(_) => {
                if matches!(cause.reason, JoinReason::Requested | JoinReason::StateReady) {
                    self.asked_for = Some(cause);
                }
            }
            State::Unsubscribed
            | State::Leaving(_)
            | State::Fenced
            | State::Fatal
            | State::Closed => {}
        }
    }

    /// The application asks for a rebalance.
    pub(super) fn request_rebalance(&mut self, reason: JoinReason, out: &mut Vec<Output>) {
        self.rejoin_for(Cause::new(reason, reason.text()), out);
    }
}
