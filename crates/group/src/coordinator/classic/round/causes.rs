//! Why a group rebalances: what members say, what their joins tell otherwise, and what is remembered of it.

use super::{Group, Member, Why, assigned};
use crate::coordinator::effects::Effects;
use crate::coordinator::record::Record;
use crate::history::{Cause, CauseKind, RebalanceRecord};
use crate::reason::JoinReason;
use crate::time::Timestamp;
use kohort_wire::embedded::Subscription;
use kohort_wire::messages::JoinGroupRequest;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Group {
    /// A member set a rebalance off, or gives those that rebalance anyway one more reason to.
    pub(in super::super) fn cause_of(
        &mut self,
        fx: &Effects<'_>,
        kind: CauseKind,
        member: &Member,
        why: Option<&Why>,
    ) {
        let cause = Cause {
            kind,
            member_id: member.id.to_string(),
            instance_id: member.instance.clone(),
            client_id: member.client.id.clone(),
            client_host: member.client.host.clone(),
            stated: why.is_some_and(|why| why.typed.is_some()),
            text: why.and_then(|why| why.text.clone()),
            at: fx.now,
        };
        let (consumer, begins) = (self.is_consumer(), self.round.is_none());
        let gone = !self.members.contains_key(&member.id);
        let silent_ms = match kind {
            CauseKind::SessionExpired if !member.is_new => member.session_ms,
            _ => 0,
        };
        let round = self.round(fx);
        let follows_up = round.rounds > 0 && kind == CauseKind::Joined(JoinReason::RevocationDone);
        round.trigger = Some(cause.clone());
        if !follows_up {
            round.add_cause(cause);
        }
        if gone && consumer {
            // It was taken out before the rebalance began, and had its part until then.
            if let Some(had) = assigned(member).filter(|_| begins) {
                round.holdings.had(&member.id, &had);
            }
            round.holdings.gone(fx.now, &member.id, silent_ms);
            round.owing.remove(&member.id);
        }
        if kind == CauseKind::RebalanceTimedOut {
            round.absent.push(member.id.clone());
        }
    }

    /// The group moves to PreparingRebalance: why is written down, so that it is known after a restart, too.
    pub(in super::super) fn remember(&mut self, fx: &mut Effects<'_>) {
        let Some(mut cause) = self.round.as_mut().and_then(|round| round.trigger.take()) else {
            return;
        };
        cause.at = Timestamp(u64::try_from(fx.wall_clock()).unwrap_or(0));
        let gone = (self.remembered.len() + 1).saturating_sub(RebalanceRecord::CAUSES);
        self.remembered.drain(..gone);
        self.remembered.push(cause);
        while !self.remembered.is_empty() {
            let record = Record::Causes {
                group: self.id.to_string(),
                value: Some(self.remembered.clone()),
            };
            if !record.too_large(fx.config.max_record_bytes) {
                fx.append(record);
                return;
            }
            self.remembered.remove(0);
        }
    }

    /// The rebalance has no member for its cause; the leader stands for the group.
    pub(in super::super) fn leader_causes(&mut self, fx: &Effects<'_>, kind: CauseKind) {
        let leader = self.leader.as_ref().and_then(|id| self.members.get(id));
        if let Some(leader) = leader.cloned() {
            self.cause_of(fx, kind, &leader, None);
        }
    }

    /// The reason that a join states, or the one that its words mean, or the one that fits what it does.
    pub(in super::super) fn join_reason(why: &Why, inferred: JoinReason) -> CauseKind {
        let words = || why.text.as_deref().and_then(JoinReason::from_text);
        CauseKind::Joined(why.typed.or_else(words).unwrap_or(inferred))
    }

    /// Writes down why a known member makes the group rebalance.
    pub(in super::super) fn note_cause(
        &mut self,
        fx: &Effects<'_>,
        id: &Arc<str>,
        request: &JoinGroupRequest,
    ) {
        let why = Why::of(request);
        let inferred = self.inferred(id, request);
        if let Some(member) = self.members.get(id).cloned() {
            self.cause_of(fx, Self::join_reason(&why, inferred), &member, Some(&why));
        }
    }

    /// A member joins while the group rebalances anyway. If it would have had a reason of its own, that is remembered, too.
    pub(in super::super) fn note_also(
        &mut self,
        fx: &Effects<'_>,
        id: &Arc<str>,
        request: &JoinGroupRequest,
    ) {
        let why = Why::of(request);
        let changed = match self.inferred(id, request) {
            reason @ (JoinReason::SubscriptionChanged | JoinReason::Upgrade) => reason,
            _ => JoinReason::Unknown,
        };
        let kind = Self::join_reason(&why, changed);
        let of_its_own = matches!(
            kind,
            CauseKind::Joined(
                JoinReason::TopicMetadataChanged
                    | JoinReason::SubscriptionChanged
                    | JoinReason::Upgrade
                    | JoinReason::StateReady
                    | JoinReason::Lost
                    | JoinReason::Requested
            )
        );
        let again = self
            .members
            .get(id)
            .is_some_and(|member| member.join.is_some());
        if of_its_own
            && !again
            && let Some(member) = self.members.get(id).cloned()
        {
            self.cause_of(fx, kind, &member, Some(&why));
        }
    }

    /// What a foreign client's join tells by what changed.
    fn inferred(&self, id: &Arc<str>, request: &JoinGroupRequest) -> JoinReason {
        let (Some(protocol), Some(member)) = (&self.protocol, self.members.get(id)) else {
            return JoinReason::Unknown;
        };
        let Some(now) = request.protocols.iter().find(|p| p.name == *protocol) else {
            return JoinReason::Upgrade;
        };
        let before = Subscription::decode(member.metadata(protocol));
        let (Ok(before), Ok(now)) = (before, Subscription::decode(now.metadata.clone())) else {
            return JoinReason::Unknown;
        };
        let topics = |of: &Subscription| of.topics.iter().cloned().collect::<BTreeSet<_>>();
        if topics(&before) != topics(&now) {
            JoinReason::SubscriptionChanged
        } else if before.version != now.version {
            JoinReason::Upgrade
        } else if before.owned != now.owned {
            JoinReason::RevocationDone
        } else if self.leader.as_ref() == Some(id) {
            JoinReason::TopicMetadataChanged
        } else {
            JoinReason::Unknown
        }
    }
}
