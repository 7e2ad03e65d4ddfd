//! Static members that come back with an empty member id (KIP-345, KIP-814).

use super::join::join_not_stored;
use super::membership::{Member, Why};
use super::round::assigned;
use super::state::{Group, GroupState, parked};
use crate::coordinator::Asked;
use crate::coordinator::effects::{Effects, Pending};
use crate::coordinator::input::Alarm;
use crate::coordinator::output::GroupResponse;
use crate::history::CauseKind;
use crate::partitions::Partitions;
use crate::reason::JoinReason;
use kohort_wire::ErrorCode;
use kohort_wire::messages::JoinGroupRequest;
use std::sync::Arc;

/// What a replacement changed, in case its record cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::coordinator) struct Undo {
    old: Member,
    new_id: Arc<str>,
    led: bool,
}

impl Group {
    /// The member with this instance id gets a new member id; whoever holds the old one is fenced. In Stable that costs no rebalance,
    /// unless the selected protocol would change or a typed reason asks for one.
    pub(super) fn replace(
        &mut self,
        fx: &mut Effects<'_>,
        asked: &Asked,
        request: &JoinGroupRequest,
        new_id: Arc<str>,
    ) {
        let instance = request.group_instance_id.clone().unwrap_or_default();
        let Some(old_id) = self.static_members.get(&instance).cloned() else {
            return;
        };
        // Without a reason it is Kafka's rule that counts: what it asks for is not looked at.
        let stated = Why::of(request).typed.is_some();
        let changed = stated && self.changed(&old_id, request);
        let Some(old) = self.take_out(fx, &old_id) else {
            return;
        };
        let led = self.leader.as_ref() == Some(&old_id);
        let mut member = Member {
            id: new_id.clone(),
            client: asked.client.clone(),
            join: None,
            sync: None,
            is_new: false,
            ..old.clone()
        };
        member.update(request);
        self.count(&member, true);
        if led {
            self.leader = Some(new_id.clone());
        }
        self.static_members.insert(instance, new_id.clone());
        self.members.insert(new_id.clone(), member);
        if self.pending_sync.remove(&old_id) {
            self.pending_sync.insert(new_id.clone());
        }
        self.note_renamed(&old_id, &new_id);
        self.beats(fx, &new_id);
        match self.state {
            GroupState::CompletingRebalance if defect!(StaticRestartWhileCompleting) => {
                self.answer_replaced(fx, asked, Undo { old, new_id, led });
            }
            GroupState::Stable if !changed && self.may_stay(fx, request) => {
                self.answer_replaced(fx, asked, Undo { old, new_id, led });
            }
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.note_replaced(fx, request, &new_id);
                self.park(fx, asked, &new_id);
                self.prepare_rebalance(fx);
            }
            GroupState::PreparingRebalance | GroupState::Empty => {
                self.park(fx, asked, &new_id);
                self.try_complete_join_phase(fx);
            }
        }
    }

    /// Takes the old holder of an instance id out; its parked requests are answered FENCED_INSTANCE_ID.
    fn take_out(&mut self, fx: &mut Effects<'_>, old_id: &Arc<str>) -> Option<Member> {
        let mut old = self.members.remove(old_id)?;
        self.count(&old, false);
        fx.alarms
            .cancel(&Alarm::Session(self.id.clone(), old_id.clone()));
        self.refuse_parked(fx, &mut old, ErrorCode::FencedInstanceId, old_id);
        Some(old)
    }

    fn may_stay(&self, fx: &Effects<'_>, request: &JoinGroupRequest) -> bool {
        let reason = Why::of(request).typed;
        if reason.is_some() && self.topics_moved(fx) {
            return false;
        }
        let asks = matches!(
            reason,
            Some(
                JoinReason::TopicMetadataChanged
                    | JoinReason::SubscriptionChanged
                    | JoinReason::Upgrade
                    | JoinReason::StateReady
                    | JoinReason::Requested
            )
        );
        !asks && self.select_protocol() == self.protocol
    }

    /// Whether the group's topics have other partitions than those that are assigned: while its leader was away, nobody watched; and
    /// what was withheld until an absent member lets go would wait for ever, for it has nothing any more. Only members that give a reason are
    /// held to it here; for others Kafka leaves it to the next change (KIP-814).
    pub(super) fn topics_moved(&self, fx: &Effects<'_>) -> bool {
        let Some(topics) = self.topics.as_ref().filter(|_| self.is_consumer()) else {
            return false;
        };
        if fx.topics.is_empty() {
            return false;
        }
        let mut given = Partitions::new();
        for member in self.members.values() {
            match assigned(member) {
                Some(partitions) => given.extend(&partitions),
                None => return false,
            }
        }
        given != fx.topics.partitions_of(topics)
    }

    /// The topics have changed. A leader that was told to be a follower does not see it, so the coordinator sees to it (Kafka leaves
    /// it to the next rebalance).
    pub(in crate::coordinator) fn watch_topics(&mut self, fx: &mut Effects<'_>) {
        if self.unwatched && self.is(GroupState::Stable) && self.topics_moved(fx) {
            self.leader_causes(fx, CauseKind::Joined(JoinReason::TopicMetadataChanged));
            self.prepare_rebalance(fx);
        }
    }

    fn note_replaced(&mut self, fx: &Effects<'_>, request: &JoinGroupRequest, id: &Arc<str>) {
        let why = Why::of(request);
        if let Some(member) = self.members.get(id).cloned() {
            let kind = Self::join_reason(&why, JoinReason::Restart);
            self.cause_of(fx, kind, &member, Some(&why));
        }
    }

    fn park(&mut self, fx: &mut Effects<'_>, asked: &Asked, id: &Arc<str>) {
        if let Some(member) = self.members.get_mut(id) {
            member.join = Some(parked(asked));
            self.awaiting += 1;
            fx.alarms
                .cancel(&Alarm::Session(self.id.clone(), id.clone()));
        }
        self.note_join(fx, id);
    }

    /// The answer without a rebalance, once the new id is stored. A returning leader is told to skip the assignment (v9+), or that the old
    /// id leads (before), so that it acts as a follower.
    fn answer_replaced(&mut self, fx: &mut Effects<'_>, asked: &Asked, undo: Undo) {
        let mut response = self.joined(&undo.new_id);
        // Also a leader that skips the assignment compares with the topics as it finds them, which may be newer than the assignment.
        self.unwatched |= undo.led;
        if asked.version >= 9 {
            response.skip_assignment = undo.led;
        } else {
            response.members = Vec::new();
            if undo.led {
                response.leader = undo.old.id.to_string();
            }
        }
        let record = self.record();
        if record.too_large(fx.config.max_record_bytes) {
            let leader = if undo.led {
                &*undo.old.id
            } else {
                &*response.leader
            };
            let refused = join_not_stored(ErrorCode::UnknownServerError, leader);
            fx.reply(asked.id, refused);
            return self.undo_replace(fx, undo);
        }
        let n = fx.append(record);
        let refused = join_not_stored(ErrorCode::None, &undo.old.id);
        fx.reply_after(asked.id, GroupResponse::JoinGroup(response), n, refused);
        let group = self.id.clone();
        fx.when(
            n,
            Pending::Replaced {
                group,
                undo: Box::new(undo),
            },
        );
    }

    /// The new id could not be stored: the old one holds again.
    pub(in crate::coordinator) fn undo_replace(&mut self, fx: &mut Effects<'_>, undo: Undo) {
        let Some(mut new) = self.members.remove(&undo.new_id) else {
            return;
        };
        self.count(&new, false);
        // Nobody has been told the new id; but it can be read from a description of the group.
        self.refuse_parked(fx, &mut new, ErrorCode::UnknownMemberId, "");
        fx.alarms
            .cancel(&Alarm::Session(self.id.clone(), undo.new_id.clone()));
        let old_id = undo.old.id.clone();
        // Whether it led then says nothing: it may have come to lead in the meantime, or no longer do so.
        if self.leader.as_ref() == Some(&undo.new_id) {
            self.leader = Some(old_id.clone());
        }
        if let Some(instance) = &undo.old.instance {
            self.static_members.insert(instance.clone(), old_id.clone());
        }
        if self.pending_sync.remove(&undo.new_id) {
            self.pending_sync.insert(old_id.clone());
        }
        self.note_renamed(&undo.new_id, &old_id);
        self.count(&undo.old, true);
        self.members.insert(old_id.clone(), undo.old);
        self.beats(fx, &old_id);
    }
}
