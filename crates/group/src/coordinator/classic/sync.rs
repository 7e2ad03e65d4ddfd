//! SyncGroup: the leader's assignments are stored, and everybody gets their own.

use super::membership::Identity;
use super::state::{Group, GroupState, parked, sync_refused};
use crate::coordinator::effects::{Effects, Pending};
use crate::coordinator::input::Alarm;
use crate::coordinator::output::GroupResponse;
use crate::coordinator::{Asked, Coordinator, Output};
use crate::history::CauseKind;
use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{SyncGroupRequest, SyncGroupResponse};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Coordinator {
    pub(in crate::coordinator) fn sync(
        &mut self,
        asked: Asked,
        request: SyncGroupRequest,
        out: &mut Vec<Output>,
    ) {
        let nameless = asked.version >= 5
            && (request.protocol_type.is_none() || request.protocol_name.is_none());
        let refused = if request.group_id.is_empty() {
            Some(ErrorCode::InvalidGroupId)
        } else if nameless {
            Some(ErrorCode::InconsistentGroupProtocol)
        } else {
            None
        };
        if let Some(error) = refused {
            let response = sync_refused(error);
            out.push(Output::Reply {
                id: asked.id,
                response,
                after: None,
            });
            return;
        }
        match self.with_group(&request.group_id, out) {
            Some((group, mut fx)) => group.sync(&mut fx, &asked, request),
            None => {
                let response = sync_refused(ErrorCode::UnknownMemberId);
                out.push(Output::Reply {
                    id: asked.id,
                    response,
                    after: None,
                });
            }
        }
    }
}

impl Group {
    fn sync(&mut self, fx: &mut Effects<'_>, asked: &Asked, request: SyncGroupRequest) {
        let who = Identity {
            member: &request.member_id,
            instance: request.group_instance_id.as_deref(),
        };
        let error = match self.identify(who) {
            Err(error) => Some(error),
            Ok(()) if request.generation_id != self.generation => {
                Some(ErrorCode::IllegalGeneration)
            }
            Ok(()) if !self.named(&request) => Some(ErrorCode::InconsistentGroupProtocol),
            Ok(()) => None,
        };
        if let Some(error) = error {
            return fx.reply(asked.id, sync_refused(error));
        }
        let id: Arc<str> = request.member_id.as_str().into();
        match self.state {
            GroupState::Empty => fx.reply(asked.id, sync_refused(ErrorCode::UnknownMemberId)),
            GroupState::PreparingRebalance => {
                fx.reply(asked.id, sync_refused(ErrorCode::RebalanceInProgress));
            }
            GroupState::CompletingRebalance => {
                self.park_sync(fx, asked, &id);
                if self.leader.as_ref() == Some(&id) {
                    self.store(fx, request);
                }
            }
            GroupState::Stable => {
                self.note_sync(fx, &id);
                self.round_told(fx, &id);
                self.synced(fx, &id);
                let nobody: Arc<str> = "".into();
                let whose = if defect!(StableSyncIsEmpty) {
                    &nobody
                } else {
                    &id
                };
                let response = self.assigned(whose);
                fx.reply(asked.id, response);
                // The topics may have changed before a leader came back that did not look, and will not.
                if self.leader.as_ref() == Some(&id) {
                    self.watch_topics(fx);
                }
            }
        }
    }

    fn named(&self, request: &SyncGroupRequest) -> bool {
        let fits = |given: &Option<String>, ours: &Option<String>| {
            given
                .as_ref()
                .is_none_or(|given| Some(given) == ours.as_ref())
        };
        fits(&request.protocol_type, &self.protocol_type)
            && fits(&request.protocol_name, &self.protocol)
    }

    fn park_sync(&mut self, fx: &mut Effects<'_>, asked: &Asked, id: &Arc<str>) {
        self.pending_sync.remove(id);
        self.note_sync(fx, id);
        if let Some(member) = self.members.get_mut(id) {
            if let Some(earlier) = member.sync.replace(parked(asked)) {
                fx.reply(earlier.id, sync_refused(ErrorCode::RebalanceInProgress));
            }
            // The parked sync is its sign of life.
            fx.alarms
                .cancel(&Alarm::Session(self.id.clone(), id.clone()));
        }
    }

    /// The leader has assigned: whoever it forgot gets nothing, whoever is no member is ignored.
    fn store(&mut self, fx: &mut Effects<'_>, request: SyncGroupRequest) {
        let mut assignments: BTreeMap<Arc<str>, Bytes> = self
            .members
            .keys()
            .map(|id| (id.clone(), Bytes::new()))
            .collect();
        for one in request.assignments {
            if let Some(place) = assignments.get_mut(&*one.member_id) {
                *place = one.assignment;
            }
        }
        let record = self.record_with(|m| assignments.get(&m.id).cloned().unwrap_or_default());
        if record.too_large(fx.config.max_record_bytes) {
            let error = ErrorCode::UnknownServerError;
            return self.leader_synced(fx, self.generation, BTreeMap::new(), error);
        }
        let n = fx.append(record);
        let group = self.id.clone();
        let generation = self.generation;
        fx.when(
            n,
            Pending::LeaderSync {
                group,
                generation,
                assignments,
            },
        );
    }

    /// The leader's assignments are stored, or could not be.
    pub(in crate::coordinator) fn leader_synced(
        &mut self,
        fx: &mut Effects<'_>,
        generation: i32,
        mut assignments: BTreeMap<Arc<str>, Bytes>,
        error: ErrorCode,
    ) {
        if !self.is(GroupState::CompletingRebalance) || self.generation != generation {
            return;
        }
        if !error.is_none() && !defect!(FailedAppendIsFine) {
            self.reset_syncs(fx, error);
            self.leader_causes(fx, CauseKind::AppendFailed);
            return self.prepare_rebalance(fx);
        }
        self.enter(fx, GroupState::Stable);
        self.round_assigned(fx);
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for id in ids {
            let Some(member) = self.members.get_mut(&id) else {
                continue;
            };
            member.assignment = assignments.remove(&id).unwrap_or_default();
            if let Some(parked) = member.sync.take() {
                let response = self.assigned(&id);
                fx.reply(parked.id, response);
                self.beats(fx, &id);
                self.round_told(fx, &id);
            }
        }
        self.all_synced(fx);
    }

    /// A member has synced in Stable.
    fn synced(&mut self, fx: &mut Effects<'_>, id: &Arc<str>) {
        self.pending_sync.remove(id);
        self.all_synced(fx);
    }

    fn all_synced(&mut self, fx: &mut Effects<'_>) {
        if self.pending_sync.is_empty() {
            fx.alarms.cancel(&Alarm::PendingSync(self.id.clone()));
            self.round_over(fx);
        }
    }

    fn assigned(&self, id: &Arc<str>) -> GroupResponse {
        let assignment = self.members.get(id).map(|member| member.assignment.clone());
        GroupResponse::SyncGroup(SyncGroupResponse {
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone(),
            assignment: assignment.unwrap_or_default(),
            ..SyncGroupResponse::default()
        })
    }

    /// Some members have not asked for their assignment in time: they are out, static ones too.
    pub(in crate::coordinator) fn pending_sync_over(&mut self, fx: &mut Effects<'_>) {
        let late: Vec<Arc<str>> = self.pending_sync.iter().cloned().collect();
        if self.is(GroupState::PreparingRebalance) {
            return;
        }
        if late.is_empty() {
            // All have synced, and the log takes its time with the leader's assignments.
            if self.is(GroupState::CompletingRebalance) {
                let alarm = Alarm::PendingSync(self.id.clone());
                fx.alarms.set(alarm, fx.now + self.rebalance_timeout());
            }
            return;
        }
        for id in late {
            if let Some(member) = self.remove(fx, &id) {
                self.cause_of(fx, CauseKind::SyncTimedOut, &member, None);
            }
        }
        self.prepare_rebalance(fx);
    }
}
