//! Heartbeats and sessions.

use super::membership::Identity;
use super::state::{Group, GroupState};
use crate::coordinator::effects::Effects;
use crate::coordinator::output::GroupResponse;
use crate::coordinator::{Asked, Coordinator, Output};
use crate::history::CauseKind;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{HeartbeatRequest, HeartbeatResponse};
use std::sync::Arc;

impl Coordinator {
    pub(in crate::coordinator) fn heartbeat(
        &mut self,
        asked: Asked,
        request: &HeartbeatRequest,
        out: &mut Vec<Output>,
    ) {
        let error = if request.group_id.is_empty() {
            ErrorCode::InvalidGroupId
        } else {
            match self.with_group(&request.group_id, out) {
                Some((group, mut fx)) => group.heartbeat(&mut fx, request),
                None => ErrorCode::UnknownMemberId,
            }
        };
        let response = GroupResponse::Heartbeat(HeartbeatResponse {
            error_code: error,
            ..HeartbeatResponse::default()
        });
        out.push(Output::Reply {
            id: asked.id,
            response,
            after: None,
        });
    }
}

impl Group {
    fn heartbeat(&mut self, fx: &mut Effects<'_>, request: &HeartbeatRequest) -> ErrorCode {
        let who = Identity {
            member: &request.member_id,
            instance: request.group_instance_id.as_deref(),
        };
        if let Err(error) = self.identify(who) {
            return error;
        }
        if request.generation_id != self.generation {
            return ErrorCode::IllegalGeneration;
        }
        let id: Arc<str> = request.member_id.as_str().into();
        self.sign_of_life(fx, &id);
        self.round_overdue(fx);
        match self.state {
            GroupState::Empty => ErrorCode::UnknownMemberId,
            GroupState::PreparingRebalance => ErrorCode::RebalanceInProgress,
            GroupState::CompletingRebalance | GroupState::Stable => ErrorCode::None,
        }
    }

    /// Restarts a member's session. While a request of it is parked, that is its sign of life, and no session runs.
    pub(in crate::coordinator) fn sign_of_life(&self, fx: &mut Effects<'_>, id: &Arc<str>) {
        let waits = |m: &super::Member| m.is_new || m.join.is_some() || m.sync.is_some();
        if self.members.get(id).is_some_and(|member| !waits(member)) {
            self.beats(fx, id);
        }
    }

    /// A member gave no sign of life.
    pub(in crate::coordinator) fn session_over(&mut self, fx: &mut Effects<'_>, id: &Arc<str>) {
        let Some(member) = self.members.get(id) else {
            return;
        };
        if defect!(SessionsNeverEnd) {
            return;
        }
        if !member.is_new && (member.join.is_some() || member.sync.is_some()) {
            return;
        }
        if let Some(member) = self.remove(fx, id) {
            self.cause_of(fx, CauseKind::SessionExpired, &member, None);
        }
        self.after_removal(fx, true);
    }

    /// An id that was handed out was not used.
    pub(in crate::coordinator) fn pending_join_over(
        &mut self,
        fx: &mut Effects<'_>,
        id: &Arc<str>,
    ) {
        if self.pending_join.remove(id) {
            self.note_absent(id);
            self.complete_after_expiry(fx);
        }
    }

    /// Members are gone: the others rebalance, or need not wait for them any longer.
    pub(super) fn after_removal(&mut self, fx: &mut Effects<'_>, expired: bool) {
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => self.prepare_rebalance(fx),
            GroupState::PreparingRebalance if expired => self.complete_after_expiry(fx),
            GroupState::PreparingRebalance => self.try_complete_join_phase(fx),
            GroupState::Empty => {}
        }
    }
}
