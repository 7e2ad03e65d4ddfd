//! JoinGroup: who may come in, and whether the group rebalances for it.

use super::membership::{Identity, Member, Why, listed};
use super::round::assigned;
use super::state::{Group, GroupState, join_refused, parked};
use crate::assign::decode::partitions_from_wire;
use crate::coordinator::effects::Effects;
use crate::coordinator::input::Alarm;
use crate::coordinator::output::GroupResponse;
use crate::coordinator::{Asked, Coordinator, LONGEST_NAME, Output};
use crate::history::CauseKind;
use crate::reason::JoinReason;
use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::embedded::{CooperativeUserData, Subscription};
use kohort_wire::messages::{JoinGroupRequest, JoinGroupResponse};
use std::sync::Arc;

impl Coordinator {
    /// The checks that need no group, then the group's.
    pub(in crate::coordinator) fn join(
        &mut self,
        asked: Asked,
        request: JoinGroupRequest,
        out: &mut Vec<Output>,
    ) {
        let limits = self.config.min_session_timeout_ms..=self.config.max_session_timeout_ms;
        let refused = if request.group_id.is_empty() || request.group_id.len() > LONGEST_NAME {
            Some(ErrorCode::InvalidGroupId)
        } else if names_too_long(&request) {
            Some(ErrorCode::InvalidRequest)
        } else if !limits.contains(&request.session_timeout_ms) {
            Some(ErrorCode::InvalidSessionTimeout)
        } else if !self.groups.contains_key(&*request.group_id) && !request.member_id.is_empty() {
            Some(ErrorCode::UnknownMemberId)
        } else {
            None
        };
        if let Some(error) = refused {
            let response = join_refused(error, &request.member_id);
            out.push(Output::Reply {
                id: asked.id,
                response,
                after: None,
            });
            return;
        }
        let name: Arc<str> = request.group_id.as_str().into();
        let known = self.groups.contains_key(&name);
        if !known {
            if request.protocol_type.is_empty() || request.protocols.is_empty() {
                let response = join_refused(ErrorCode::InconsistentGroupProtocol, "");
                out.push(Output::Reply {
                    id: asked.id,
                    response,
                    after: None,
                });
                return;
            }
            self.groups.insert(name.clone(), Group::new(name.clone()));
        }
        if let Some((group, mut fx)) = self.with_group(&name, out) {
            if !known {
                // So that the group exists after a restart, too.
                let record = group.record();
                fx.append(record);
            }
            group.join(&mut fx, &asked, &request);
        }
    }
}

/// Whether one of the names that are kept is longer than the log can hold.
fn names_too_long(request: &JoinGroupRequest) -> bool {
    let protocols = request.protocols.iter().map(|p| p.name.len());
    let instance = request.group_instance_id.as_ref().map_or(0, String::len);
    [instance, request.protocol_type.len()]
        .into_iter()
        .chain(protocols)
        .any(|length| length > LONGEST_NAME)
}

impl Group {
    fn join(&mut self, fx: &mut Effects<'_>, asked: &Asked, request: &JoinGroupRequest) {
        if !self.has_room(fx, request) {
            if let Some(member) = self.remove(fx, &request.member_id) {
                self.note_gone(fx, &member.id);
                self.try_complete_join_phase(fx);
            }
            return fx.reply(asked.id, join_refused(ErrorCode::GroupMaxSizeReached, ""));
        }
        if !self.supports(request) {
            let error = ErrorCode::InconsistentGroupProtocol;
            return fx.reply(asked.id, join_refused(error, &request.member_id));
        }
        if request.member_id.is_empty() {
            self.join_unknown(fx, asked, request);
        } else {
            self.join_known(fx, asked, request);
        }
    }

    /// `group.max.size`: while a rebalance is prepared, the first ones to come stay. A static member that comes back replaces itself
    /// and needs no room (KAFKA-20601).
    fn has_room(&self, fx: &Effects<'_>, request: &JoinGroupRequest) -> bool {
        let max = fx.config.max_size;
        let member = self.members.get(&*request.member_id);
        let replaces = request.member_id.is_empty()
            && request
                .group_instance_id
                .as_ref()
                .is_some_and(|instance| self.static_members.contains_key(instance));
        if replaces {
            return true;
        }
        match self.state {
            GroupState::Empty => true,
            GroupState::PreparingRebalance => {
                member.is_some_and(|member| member.join.is_some()) || self.awaiting < max
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                member.is_some() || self.members.len() < max
            }
        }
    }

    /// Whether the group and the member have a protocol in common.
    fn supports(&self, request: &JoinGroupRequest) -> bool {
        if request.protocol_type.is_empty() || request.protocols.is_empty() {
            return false;
        }
        if self.members.is_empty() {
            return true;
        }
        self.protocol_type.as_deref() == Some(&request.protocol_type)
            && request.protocols.iter().any(|p| {
                self.supporters
                    .get(&p.name)
                    .is_some_and(|n| *n == self.members.len())
            })
    }

    /// A join without a member id: a newcomer, or a static member that comes back.
    fn join_unknown(&mut self, fx: &mut Effects<'_>, asked: &Asked, request: &JoinGroupRequest) {
        match &request.group_instance_id {
            Some(instance) => {
                let id = fx.member_id(instance);
                if self.static_members.contains_key(instance) {
                    self.replace(fx, asked, request, id);
                } else {
                    self.enter_member(fx, asked, request, id, JoinReason::NewMember);
                }
            }
            None => {
                let id = fx.member_id(&asked.client.id);
                if asked.version >= 4 {
                    self.hand_out(fx, asked, request, &id);
                } else {
                    self.enter_member(fx, asked, request, id, JoinReason::NewMember);
                }
            }
        }
    }

    /// KIP-394: a dynamic member is to come back with its id, so that a lost answer leaves no ghost behind.
    fn hand_out(
        &mut self,
        fx: &mut Effects<'_>,
        asked: &Asked,
        request: &JoinGroupRequest,
        id: &Arc<str>,
    ) {
        self.pending_join.insert(id.clone());
        let session = u64::try_from(request.session_timeout_ms).unwrap_or(0);
        let alarm = Alarm::PendingJoin(self.id.clone(), id.clone());
        fx.alarms.set(alarm, fx.now + session);
        fx.reply(asked.id, join_refused(ErrorCode::MemberIdRequired, id));
    }

    /// A new member, which waits for the end of the join phase.
    fn enter_member(
        &mut self,
        fx: &mut Effects<'_>,
        asked: &Asked,
        request: &JoinGroupRequest,
        id: Arc<str>,
        inferred: JoinReason,
    ) {
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type.clone());
        }
        let mut member = Member::new(id.clone(), asked.client.clone(), request);
        member.join = Some(parked(asked));
        let why = Why::of(request);
        let kind = match Self::join_reason(&why, inferred) {
            // A static member cannot know whether it was here before. The group does: it was not, or it would have been replaced.
            CauseKind::Joined(JoinReason::Restart) => CauseKind::Joined(inferred),
            kind => kind,
        };
        self.cause_of(fx, kind, &member, Some(&why));
        self.add(member);
        self.awaiting += 1;
        self.note_join(fx, &id);
        if let Some(delay) = &mut self.initial_delay {
            delay.newcomer = true;
        }
        fx.alarms
            .cancel(&Alarm::PendingJoin(self.id.clone(), id.clone()));
        let alarm = Alarm::Session(self.id.clone(), id);
        fx.alarms
            .set(alarm, fx.now + fx.config.new_member_join_timeout_ms);
        match self.state {
            GroupState::PreparingRebalance => self.try_complete_join_phase(fx),
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => {
                self.prepare_rebalance(fx);
            }
        }
    }

    fn join_known(&mut self, fx: &mut Effects<'_>, asked: &Asked, request: &JoinGroupRequest) {
        let id: Arc<str> = request.member_id.as_str().into();
        if self.pending_join.contains(&id) && request.group_instance_id.is_none() {
            return self.enter_member(fx, asked, request, id, JoinReason::NewMember);
        }
        let who = Identity {
            member: &request.member_id,
            instance: request.group_instance_id.as_deref(),
        };
        if let Err(error) = self.identify(who) {
            return fx.reply(asked.id, join_refused(error, &request.member_id));
        }
        if self.overtaken(&id, request) {
            // Most likely nobody listens; who does is to join again.
            let error = ErrorCode::RebalanceInProgress;
            return fx.reply(asked.id, join_refused(error, &request.member_id));
        }
        match self.state {
            GroupState::PreparingRebalance => {
                self.note_also(fx, &id, request);
                self.rejoin(fx, asked, request, &id);
                self.try_complete_join_phase(fx);
            }
            GroupState::CompletingRebalance if self.same_protocols(&id, request) => {
                let response = GroupResponse::JoinGroup(self.joined(&id));
                fx.reply(asked.id, response);
            }
            GroupState::CompletingRebalance => {
                self.note_cause(fx, &id, request);
                self.rejoin(fx, asked, request, &id);
                self.prepare_rebalance(fx);
            }
            GroupState::Stable => self.join_stable(fx, asked, request, &id),
            GroupState::Empty => {
                fx.reply(
                    asked.id,
                    join_refused(ErrorCode::UnknownMemberId, &request.member_id),
                );
            }
        }
    }

    /// A member of a Stable group joins: KIP-423's table. Without a reason, the leader always rebalances, a follower if it changed.
    fn join_stable(
        &mut self,
        fx: &mut Effects<'_>,
        asked: &Asked,
        request: &JoinGroupRequest,
        id: &Arc<str>,
    ) {
        let same = self.same_protocols(id, request);
        let leads = self.leader.as_ref() == Some(id);
        let rebalance = match Why::of(request).typed {
            Some(JoinReason::Restart | JoinReason::Retry) => {
                self.changed(id, request) || (leads && self.topics_moved(fx))
            }
            Some(
                JoinReason::TopicMetadataChanged
                | JoinReason::SubscriptionChanged
                | JoinReason::RevocationDone
                | JoinReason::Upgrade
                | JoinReason::StateReady
                | JoinReason::Requested,
            ) => true,
            Some(JoinReason::NewMember | JoinReason::Lost | JoinReason::Unknown) | None => {
                leads || !same
            }
        };
        if rebalance {
            self.note_cause(fx, id, request);
            self.rejoin(fx, asked, request, id);
            self.prepare_rebalance(fx);
            return;
        }
        let mut response = self.joined(id);
        self.unwatched |= leads;
        if leads && asked.version >= 9 {
            response.skip_assignment = true;
        } else if leads {
            // A client that knows no SkipAssignment must not take itself for the leader, or it would assign.
            response.leader = String::new();
            response.members = Vec::new();
        }
        fx.reply(asked.id, GroupResponse::JoinGroup(response));
    }

    /// A known member's join is parked, in place of an earlier one. Kafka never answers the earlier one (KAFKA-20938); ours is told to
    /// join again.
    pub(super) fn rejoin(
        &mut self,
        fx: &mut Effects<'_>,
        asked: &Asked,
        request: &JoinGroupRequest,
        id: &Arc<str>,
    ) {
        let Some(mut member) = self.members.remove(id) else {
            return;
        };
        self.count(&member, false);
        member.update(request);
        member.client = asked.client.clone();
        self.count(&member, true);
        match member.join.replace(parked(asked)) {
            Some(earlier) => {
                fx.reply(earlier.id, join_refused(ErrorCode::RebalanceInProgress, id));
            }
            None => self.awaiting += 1,
        }
        if !member.is_new {
            // The parked join is its sign of life.
            fx.alarms
                .cancel(&Alarm::Session(self.id.clone(), id.clone()));
        }
        self.members.insert(id.clone(), member);
        self.note_join(fx, id);
    }

    /// Same protocols, same order, same bytes.
    fn same_protocols(&self, id: &Arc<str>, request: &JoinGroupRequest) -> bool {
        self.members
            .get(id)
            .is_some_and(|member| member.protocols == listed(request))
    }

    /// Whether an assignor would see anything new: what it looks at in a consumer's subscription, partitions that the member claims and that
    /// the leader could not know of, and all bytes of anything else.
    pub(super) fn changed(&self, id: &Arc<str>, request: &JoinGroupRequest) -> bool {
        let Some(member) = self.members.get(id) else {
            return true;
        };
        let now = listed(request);
        if !self.is_consumer() || member.protocols.len() != now.len() {
            return member.protocols != now;
        }
        member
            .protocols
            .iter()
            .zip(&now)
            .any(|((name, before), (other, after))| {
                name != other || essence(before) != essence(after) || grown(member, before, after)
            })
    }
}

/// What an assignor looks at: topics, rack, and user data without generation and marker. Bytes that cannot be read stand for themselves.
fn essence(metadata: &Bytes) -> (Vec<Arc<str>>, Option<String>, Option<Bytes>) {
    match Subscription::decode(metadata.clone()) {
        Ok(subscription) => {
            let user_data = subscription
                .user_data
                .filter(|data| CooperativeUserData::decode(data).is_none() && !data.is_empty());
            (subscription.topics, subscription.rack, user_data)
        }
        Err(_) => (Vec::new(), None, Some(metadata.clone())),
    }
}

/// Whether the claims hold what they did not hold before and the assignment does not say: that round went on without the member.
fn grown(member: &Member, before: &Bytes, after: &Bytes) -> bool {
    let owned = |metadata: &Bytes| {
        let subscription = Subscription::decode(metadata.clone()).unwrap_or_default();
        partitions_from_wire(&subscription.owned)
    };
    let news = owned(after).minus(&owned(before));
    !news.is_empty() && assigned(member).is_some_and(|given| !given.is_superset_of(&news))
}

/// The answer to a join whose record could not be written.
pub(super) fn join_not_stored(error: ErrorCode, leader: &str) -> GroupResponse {
    GroupResponse::JoinGroup(JoinGroupResponse {
        error_code: error,
        leader: leader.to_owned(),
        ..JoinGroupResponse::default()
    })
}
