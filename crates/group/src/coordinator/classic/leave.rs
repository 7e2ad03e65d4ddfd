//! LeaveGroup: members go, alone or several at once.

use super::membership::{Identity, Why};
use super::state::Group;
use crate::coordinator::effects::Effects;
use crate::coordinator::input::Alarm;
use crate::coordinator::output::GroupResponse;
use crate::coordinator::{Asked, Coordinator, Output};
use crate::history::CauseKind;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    LeaveGroupMember, LeaveGroupRequest, LeaveGroupResponse, LeaveGroupResponseMember,
};
use std::sync::Arc;

impl Coordinator {
    pub(in crate::coordinator) fn leave(
        &mut self,
        asked: Asked,
        request: &LeaveGroupRequest,
        out: &mut Vec<Output>,
    ) {
        let leaving = if asked.version >= 3 {
            request.members.clone()
        } else {
            vec![LeaveGroupMember {
                member_id: request.member_id.clone(),
                ..LeaveGroupMember::default()
            }]
        };
        let mut error = ErrorCode::None;
        let errors = if request.group_id.is_empty() {
            error = ErrorCode::InvalidGroupId;
            Vec::new()
        } else {
            match self.with_group(&request.group_id, out) {
                Some((group, mut fx)) => group.leave(&mut fx, &leaving),
                None => vec![ErrorCode::UnknownMemberId; leaving.len()],
            }
        };
        if asked.version < 3 && error.is_none() {
            error = errors.first().copied().unwrap_or_default();
        }
        let member = |(member, error): (LeaveGroupMember, ErrorCode)| LeaveGroupResponseMember {
            member_id: member.member_id,
            group_instance_id: member.group_instance_id,
            error_code: error,
        };
        let response = GroupResponse::LeaveGroup(LeaveGroupResponse {
            throttle_time_ms: 0,
            error_code: error,
            members: leaving.into_iter().zip(errors).map(member).collect(),
        });
        out.push(Output::Reply {
            id: asked.id,
            response,
            after: None,
        });
    }
}

impl Group {
    /// Removes all that may go, then rebalances once.
    fn leave(&mut self, fx: &mut Effects<'_>, leaving: &[LeaveGroupMember]) -> Vec<ErrorCode> {
        let mut gone = false;
        let mut freed = false;
        let errors = leaving
            .iter()
            .map(|entry| match self.leaves(entry) {
                Err(error) => error,
                Ok(id) if self.pending_join.remove(&id) => {
                    fx.alarms.cancel(&Alarm::PendingJoin(self.id.clone(), id));
                    freed = true;
                    ErrorCode::None
                }
                Ok(id) => {
                    if let Some(member) = self.remove(fx, &id) {
                        let why = Why::in_words(entry.reason.as_deref());
                        self.cause_of(fx, CauseKind::Left, &member, Some(&why));
                        gone = true;
                    }
                    ErrorCode::None
                }
            })
            .collect();
        if gone {
            self.after_removal(fx, false);
        } else if freed {
            // Kafka 4 makes a stable group rebalance for an id that was never used; there is nothing to rebalance for.
            self.try_complete_join_phase(fx);
        }
        errors
    }

    /// Whom an entry means: its member id, or the holder of its instance id if that is all it says.
    fn leaves(&self, entry: &LeaveGroupMember) -> Result<Arc<str>, ErrorCode> {
        if entry.member_id.is_empty() {
            let instance = entry.group_instance_id.as_deref();
            return instance
                .and_then(|instance| self.static_members.get(instance).cloned())
                .ok_or(ErrorCode::UnknownMemberId);
        }
        let id: Arc<str> = entry.member_id.as_str().into();
        if self.pending_join.contains(&id) {
            return Ok(id);
        }
        let instance = entry.group_instance_id.as_deref();
        self.identify(Identity {
            member: &entry.member_id,
            instance,
        })?;
        Ok(id)
    }
}
