//! The group itself: its state, its members, and the moves from one state to the next.

use super::membership::{Member, Parked};
use super::round::Round;
use crate::coordinator::effects::Effects;
use crate::coordinator::input::Alarm;
use crate::coordinator::offsets::Offsets;
use crate::coordinator::output::GroupResponse;
use crate::coordinator::record::{GroupValue, GroupValueMember, Record};
use crate::history::{Cause, CauseKind};
use crate::partitions::Topic;
use crate::time::Alarms;
use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::embedded::Subscription;
use kohort_wire::messages::{JoinGroupResponse, JoinGroupResponseMember, SyncGroupResponse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The states of a classic group. A group that is deleted is gone; there is no state for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::coordinator) enum GroupState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

impl GroupState {
    /// Kafka's name.
    pub(in crate::coordinator) fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
        }
    }
}

/// The initial delay of a group that was empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct InitialDelay {
    /// The pause that is running, milliseconds.
    pub(super) running: u64,
    /// How much longer the phase may be extended, milliseconds.
    pub(super) remaining: u64,
    /// Whether somebody has joined since the pause began.
    pub(super) newcomer: bool,
}

/// A classic group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::coordinator) struct Group {
    pub(in crate::coordinator) id: Arc<str>,
    pub(in crate::coordinator) state: GroupState,
    pub(in crate::coordinator) protocol_type: Option<String>,
    pub(in crate::coordinator) generation: i32,
    pub(in crate::coordinator) protocol: Option<String>,
    pub(in crate::coordinator) leader: Option<Arc<str>>,
    pub(in crate::coordinator) members: BTreeMap<Arc<str>, Member>,
    pub(in crate::coordinator) static_members: BTreeMap<String, Arc<str>>,
    /// Ids that were handed out and have not joined yet.
    pub(in crate::coordinator) pending_join: BTreeSet<Arc<str>>,
    /// Members that have not synced in this generation.
    pub(in crate::coordinator) pending_sync: BTreeSet<Arc<str>>,
    /// How many members list each protocol.
    pub(super) supporters: BTreeMap<String, usize>,
    /// How many joins are parked.
    pub(super) awaiting: usize,
    pub(super) initial_delay: Option<InitialDelay>,
    pub(in crate::coordinator) offsets: Offsets,
    /// The topics that members of a consumer group want, if all said so in words that can be read.
    pub(in crate::coordinator) topics: Option<BTreeSet<Topic>>,
    /// Why it last moved to PreparingRebalance, the latest last; the times are Unix milliseconds.
    pub(in crate::coordinator) remembered: Vec<Cause>,
    /// Its leader did not assign (it was answered as a follower, or told to skip that), so that no member may know the topics that
    /// were assigned: the coordinator watches them.
    pub(super) unwatched: bool,
    /// When it entered its state, Unix milliseconds; −1 if that is not known.
    pub(in crate::coordinator) state_since: i64,
    /// Whether it was ever joined: if not, it only keeps offsets (a "simple" group).
    pub(super) round: Option<Round>,
}

impl Group {
    /// A group without members.
    pub(in crate::coordinator) fn new(id: Arc<str>) -> Self {
        Self {
            id,
            state: GroupState::Empty,
            protocol_type: None,
            generation: 0,
            protocol: None,
            leader: None,
            members: BTreeMap::new(),
            static_members: BTreeMap::new(),
            pending_join: BTreeSet::new(),
            pending_sync: BTreeSet::new(),
            supporters: BTreeMap::new(),
            awaiting: 0,
            initial_delay: None,
            offsets: Offsets::default(),
            topics: None,
            remembered: Vec::new(),
            unwatched: false,
            state_since: -1,
            round: None,
        }
    }

    /// Whether members read each other's subscriptions and so may be understood here.
    pub(in crate::coordinator) fn is_consumer(&self) -> bool {
        self.protocol_type.as_deref() == Some("consumer")
    }

    pub(in crate::coordinator) fn is(&self, state: GroupState) -> bool {
        self.state == state
    }

    pub(super) fn enter(&mut self, fx: &Effects<'_>, state: GroupState) {
        use GroupState::{CompletingRebalance, Empty, PreparingRebalance, Stable};
        let legal = matches!(
            (self.state, state),
            (Stable | CompletingRebalance | Empty, PreparingRebalance)
                | (PreparingRebalance, CompletingRebalance | Empty)
                | (CompletingRebalance, Stable)
        );
        debug_assert!(legal, "G2: {:?} to {state:?} is no transition", self.state);
        self.state = state;
        self.state_since = fx.wall_clock();
    }

    // Members.

    pub(super) fn add(&mut self, member: Member) {
        if self.members.is_empty() && self.leader.is_none() {
            self.leader = Some(member.id.clone());
        }
        if let Some(instance) = &member.instance {
            self.static_members
                .insert(instance.clone(), member.id.clone());
        }
        self.count(&member, true);
        self.pending_join.remove(&member.id);
        self.members.insert(member.id.clone(), member);
    }

    /// Takes a member out. Its parked requests are answered UNKNOWN_MEMBER_ID: Kafka forgets a parked sync (KAFKA-20938).
    pub(super) fn remove(&mut self, fx: &mut Effects<'_>, id: &str) -> Option<Member> {
        let mut member = self.members.remove(id)?;
        self.count(&member, false);
        if let Some(instance) = &member.instance
            && self.static_members.get(instance) == Some(&member.id)
        {
            self.static_members.remove(instance);
        }
        self.refuse_parked(fx, &mut member, ErrorCode::UnknownMemberId, "");
        self.pending_sync.remove(&member.id);
        fx.alarms
            .cancel(&Alarm::Session(self.id.clone(), member.id.clone()));
        if self.leader.as_ref() == Some(&member.id) && !defect!(LeaderGoneStaysLeader) {
            self.leader = self.members.keys().next().cloned();
        }
        Some(member)
    }

    pub(super) fn count(&mut self, member: &Member, up: bool) {
        let names: BTreeSet<&String> = member.protocols.iter().map(|(name, _)| name).collect();
        for name in names {
            let count = self.supporters.entry(name.clone()).or_default();
            if up {
                *count += 1;
            } else {
                *count -= 1;
                if *count == 0 {
                    self.supporters.remove(name);
                }
            }
        }
    }

    pub(super) fn beats(&self, fx: &mut Effects<'_>, id: &Arc<str>) {
        if let Some(member) = self.members.get(id) {
            let alarm = Alarm::Session(self.id.clone(), id.clone());
            fx.alarms.set(alarm, fx.now + member.session_ms);
        }
    }

    // Rebalancing.

    pub(super) fn rebalance_timeout(&self) -> u64 {
        self.members
            .values()
            .map(|member| member.rebalance_ms)
            .max()
            .unwrap_or(0)
    }

    fn all_joined(&self) -> bool {
        self.members.len() == self.awaiting && self.pending_join.is_empty()
    }

    /// Begins a rebalance: everybody is to join again.
    pub(super) fn prepare_rebalance(&mut self, fx: &mut Effects<'_>) {
        self.remember(fx);
        if self.is(GroupState::CompletingRebalance) {
            self.reset_syncs(fx, ErrorCode::RebalanceInProgress);
        }
        self.pending_sync.clear();
        fx.alarms.cancel(&Alarm::PendingSync(self.id.clone()));
        if self.is(GroupState::Empty) {
            let delay = fx.config.initial_rebalance_delay_ms;
            let remaining = self.rebalance_timeout().saturating_sub(delay);
            self.initial_delay = Some(InitialDelay {
                running: delay,
                remaining,
                newcomer: false,
            });
            fx.alarms
                .set(Alarm::InitialDelay(self.id.clone()), fx.now + delay);
            self.enter(fx, GroupState::PreparingRebalance);
            return;
        }
        self.enter(fx, GroupState::PreparingRebalance);
        if self.all_joined() {
            self.complete_join_phase(fx);
        } else {
            let alarm = Alarm::Rebalance(self.id.clone());
            fx.alarms.set(alarm, fx.now + self.rebalance_timeout());
        }
    }

    /// Assignments of a round that did not end are void: parked syncs are answered `error`.
    pub(super) fn reset_syncs(&mut self, fx: &mut Effects<'_>, error: ErrorCode) {
        let mut answered = Vec::new();
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
            if let Some(parked) = member.sync.take() {
                fx.reply(parked.id, sync_refused(error));
                answered.push(member.id.clone());
            }
        }
        for id in answered {
            self.beats(fx, &id);
        }
    }

    /// What a member that is no more waits for is answered.
    pub(super) fn refuse_parked(
        &mut self,
        fx: &mut Effects<'_>,
        member: &mut Member,
        error: ErrorCode,
        id: &str,
    ) {
        if let Some(parked) = member.join.take() {
            self.awaiting -= 1;
            fx.reply(parked.id, join_refused(error, id));
        }
        if let Some(parked) = member.sync.take() {
            fx.reply(parked.id, sync_refused(error));
        }
    }

    /// The initial delay has run: extend it if somebody came, or end the join phase.
    pub(in crate::coordinator) fn initial_delay_over(&mut self, fx: &mut Effects<'_>) {
        let Some(delay) = &mut self.initial_delay else {
            return;
        };
        if delay.newcomer && delay.remaining > 0 {
            delay.newcomer = false;
            delay.running = fx.config.initial_rebalance_delay_ms.min(delay.remaining);
            delay.remaining -= delay.running;
            let due = fx.now + delay.running;
            fx.alarms.set(Alarm::InitialDelay(self.id.clone()), due);
        } else {
            self.complete_join_phase(fx);
        }
    }

    /// Ends the join phase if everybody is there and no initial delay runs.
    pub(super) fn try_complete_join_phase(&mut self, fx: &mut Effects<'_>) {
        let waiting = self.is(GroupState::PreparingRebalance) && self.initial_delay.is_none();
        if waiting && self.all_joined() {
            self.complete_join_phase(fx);
        }
    }

    /// The same, also during the initial delay: when somebody expires, Kafka 4 does not wait any longer.
    pub(super) fn complete_after_expiry(&mut self, fx: &mut Effects<'_>) {
        if self.is(GroupState::PreparingRebalance) && self.all_joined() {
            self.complete_join_phase(fx);
        }
    }

    /// Ends the join phase: dynamic members that did not come are out, the others get the next generation.
    pub(in crate::coordinator) fn complete_join_phase(&mut self, fx: &mut Effects<'_>) {
        if !self.is(GroupState::PreparingRebalance) {
            return;
        }
        fx.alarms.cancel(&Alarm::InitialDelay(self.id.clone()));
        fx.alarms.cancel(&Alarm::Rebalance(self.id.clone()));
        self.initial_delay = None;
        let absent = |member: &&Member| member.join.is_none() && member.instance.is_none();
        let absent: Vec<Arc<str>> = self
            .members
            .values()
            .filter(absent)
            .map(|member| member.id.clone())
            .collect();
        for id in absent {
            if let Some(member) = self.remove(fx, &id) {
                self.cause_of(fx, CauseKind::RebalanceTimedOut, &member, None);
            }
        }
        if !self.elect() {
            // Only static members, none of which came: wait on, their sessions decide.
            let alarm = Alarm::Rebalance(self.id.clone());
            fx.alarms.set(alarm, fx.now + self.rebalance_timeout());
            return;
        }
        self.generation += 1;
        if self.members.is_empty() {
            self.become_empty(fx);
        } else {
            self.begin_sync_phase(fx);
        }
    }

    /// Sees to it that the leader has joined; false if the group has members and none of them has.
    fn elect(&mut self) -> bool {
        let joined = |id: &Arc<str>| self.members.get(id).is_some_and(|m| m.join.is_some());
        if self.members.is_empty() || self.leader.as_ref().is_some_and(joined) {
            return true;
        }
        let next = self.members.values().find(|member| member.join.is_some());
        match next {
            Some(member) => {
                self.leader = Some(member.id.clone());
                true
            }
            None => false,
        }
    }

    fn become_empty(&mut self, fx: &mut Effects<'_>) {
        if defect!(GenerationsStartOver) {
            self.generation = 0;
        }
        self.protocol = None;
        self.leader = None;
        self.topics = None;
        self.enter(fx, GroupState::Empty);
        self.round_over(fx);
        let record = self.record();
        fx.append(record);
    }

    fn begin_sync_phase(&mut self, fx: &mut Effects<'_>) {
        self.protocol = self.select_protocol();
        self.topics = self.subscribed_topics();
        self.unwatched = false;
        self.enter(fx, GroupState::CompletingRebalance);
        self.pending_sync = self.members.keys().cloned().collect();
        self.round_joined(fx);
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for id in ids {
            let parked = self.members.get_mut(&id).and_then(|member| {
                member.is_new = false;
                member.join.take()
            });
            if let Some(parked) = parked {
                self.awaiting -= 1;
                let response = self.joined(&id);
                fx.reply(parked.id, GroupResponse::JoinGroup(response));
            }
            self.beats(fx, &id);
        }
        let alarm = Alarm::PendingSync(self.id.clone());
        fx.alarms.set(alarm, fx.now + self.rebalance_timeout());
    }

    /// The protocol that most members like best among those that all list. A tie goes to the one that the member with the smallest id
    /// prefers, then to the alphabet: Kafka leaves it open.
    pub(super) fn select_protocol(&self) -> Option<String> {
        let all = self.members.len();
        let common = |name: &&String| self.supporters.get(*name).is_some_and(|n| *n == all);
        let mut votes: BTreeMap<&String, usize> = BTreeMap::new();
        let mut order: Vec<&String> = Vec::new();
        for member in self.members.values() {
            if let Some(name) = member.protocols.iter().map(|(name, _)| name).find(common) {
                *votes.entry(name).or_default() += 1;
                if !order.contains(&name) {
                    order.push(name);
                }
            }
        }
        let most = votes.values().max().copied()?;
        order
            .into_iter()
            .find(|name| votes.get(*name) == Some(&most))
            .cloned()
    }

    /// The union of all subscriptions, or `None` where one cannot be read.
    pub(in crate::coordinator) fn subscribed_topics(&self) -> Option<BTreeSet<Topic>> {
        if !self.is_consumer() {
            return None;
        }
        let protocol = self.protocol.as_deref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.values() {
            let subscription = Subscription::decode(member.metadata(protocol)).ok()?;
            topics.extend(subscription.topics);
        }
        Some(topics)
    }

    // Answers.

    /// The answer to a member that is in the current generation.
    pub(super) fn joined(&self, id: &Arc<str>) -> JoinGroupResponse {
        let leads = self.leader.as_ref() == Some(id);
        JoinGroupResponse {
            generation_id: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol_name: self.protocol.clone().filter(|name| !name.is_empty()),
            leader: self.leader.as_deref().unwrap_or_default().to_owned(),
            member_id: id.to_string(),
            members: if leads {
                self.member_list()
            } else {
                Vec::new()
            },
            ..JoinGroupResponse::default()
        }
    }

    /// All members, as the leader is told.
    pub(super) fn member_list(&self) -> Vec<JoinGroupResponseMember> {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let member = |member: &Member| JoinGroupResponseMember {
            member_id: member.id.to_string(),
            group_instance_id: member.instance.clone(),
            metadata: member.metadata(protocol),
        };
        self.members.values().map(member).collect()
    }

    /// The group as it is kept, with its present assignments.
    pub(in crate::coordinator) fn record(&self) -> Record {
        self.record_with(|member| member.assignment.clone())
    }

    pub(super) fn record_with(&self, assignment: impl Fn(&Member) -> Bytes) -> Record {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let kept = |member: &Member| GroupValueMember {
            member_id: member.id.to_string(),
            group_instance_id: member.instance.clone(),
            client_id: member.client.id.clone(),
            client_host: member.client.host.clone(),
            rebalance_timeout_ms: i32::try_from(member.rebalance_ms).unwrap_or(i32::MAX),
            session_timeout_ms: i32::try_from(member.session_ms).unwrap_or(i32::MAX),
            subscription: member.metadata(protocol),
            assignment: assignment(member),
        };
        Record::Group {
            group: self.id.to_string(),
            value: Some(GroupValue {
                protocol_type: self.protocol_type.clone().unwrap_or_default(),
                generation: self.generation,
                protocol: self.protocol.clone(),
                leader: self.leader.as_deref().map(str::to_owned),
                current_state_timestamp: self.state_since,
                members: self.members.values().map(kept).collect(),
            }),
        }
    }

    /// Leadership of the partition is gone: whoever waits is to look for the new coordinator.
    pub(in crate::coordinator) fn unload(&mut self, fx: &mut Effects<'_>) {
        if defect!(ForgetsParked) {
            return;
        }
        for member in self.members.values_mut() {
            if let Some(parked) = member.join.take() {
                fx.reply(
                    parked.id,
                    join_refused(ErrorCode::NotCoordinator, &member.id),
                );
            }
            if let Some(parked) = member.sync.take() {
                fx.reply(parked.id, sync_refused(ErrorCode::NotCoordinator));
            }
        }
        self.awaiting = 0;
    }

    /// A member from the log.
    pub(in crate::coordinator) fn restore(&mut self, member: Member) {
        self.add(member);
    }

    /// The log is read: sessions begin anew.
    pub(in crate::coordinator) fn loaded(&mut self, fx: &mut Effects<'_>) {
        let ids: Vec<Arc<str>> = self.members.keys().cloned().collect();
        for id in ids {
            self.beats(fx, &id);
        }
        // Whether its leader watches is not written down.
        self.unwatched = true;
        if self.members.len() > fx.config.max_size {
            self.leader_causes(fx, CauseKind::Recovered);
            self.prepare_rebalance(fx);
        } else {
            self.watch_topics(fx);
        }
    }

    /// Forgets what only people read.
    pub(in crate::coordinator) fn plain(&mut self) {
        self.round = None;
        self.remembered.clear();
        self.state_since = -1;
        for offsets in self.offsets.values_mut().flat_map(|one| one.values_mut()) {
            offsets.commit_timestamp = 0;
        }
    }

    /// Internal invariants.
    pub(in crate::coordinator) fn check(&self, alarms: &Alarms<Alarm>) {
        let parked = self
            .members
            .values()
            .filter(|member| member.join.is_some())
            .count();
        assert_eq!(parked, self.awaiting, "parked joins are counted");
        let fixed = self
            .members
            .values()
            .filter(|member| member.instance.is_some())
            .count();
        assert_eq!(
            fixed,
            self.static_members.len(),
            "G4: instance ids and members match"
        );
        let leads = |id: &Arc<str>| self.members.contains_key(id);
        assert!(
            self.leader.as_ref().is_none_or(leads),
            "G3: the leader is a member"
        );
        let none = self.members.is_empty();
        match self.state {
            GroupState::Empty => assert!(none, "an empty group has no members"),
            GroupState::PreparingRebalance => assert!(
                alarms.due(&Alarm::InitialDelay(self.id.clone())).is_some()
                    || alarms.due(&Alarm::Rebalance(self.id.clone())).is_some(),
                "G5: a join phase ends some day"
            ),
            GroupState::CompletingRebalance => assert!(
                !none && alarms.due(&Alarm::PendingSync(self.id.clone())).is_some(),
                "G5: a sync phase ends some day"
            ),
            GroupState::Stable => assert!(!none && self.awaiting == 0, "nothing is parked"),
        }
    }
}

/// A join that is refused. The member id is echoed, or given.
pub(super) fn join_refused(error: ErrorCode, member_id: &str) -> GroupResponse {
    GroupResponse::JoinGroup(JoinGroupResponse {
        error_code: error,
        member_id: member_id.to_owned(),
        ..JoinGroupResponse::default()
    })
}

/// A sync that is refused.
pub(super) fn sync_refused(error: ErrorCode) -> GroupResponse {
    GroupResponse::SyncGroup(SyncGroupResponse {
        error_code: error,
        ..SyncGroupResponse::default()
    })
}

/// Parks a request of this member.
pub(super) fn parked(asked: &crate::coordinator::Asked) -> Parked {
    Parked {
        id: asked.id,
        version: asked.version,
    }
}
