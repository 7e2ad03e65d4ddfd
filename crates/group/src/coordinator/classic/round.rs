//! What is remembered of the rebalance that is going on, until its record is written.

use super::membership::{Member, Why};
use super::state::{Group, GroupState};
use crate::coordinator::effects::Effects;
use crate::coordinator::output::Output;
use crate::history::{Cause, CauseKind, Move, Participation, RebalanceRecord};
use crate::partitions::{Partitions, TopicPartition};
use crate::reason::JoinReason;
use crate::time::Timestamp;
use kohort_wire::embedded::Assignment;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A rebalance in the making.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::coordinator) struct Round {
    started: Timestamp,
    causes: Vec<Cause>,
    joined: BTreeMap<Arc<str>, Timestamp>,
    synced: BTreeMap<Arc<str>, Timestamp>,
    /// Who owned what when it began.
    before: BTreeMap<TopicPartition, Arc<str>>,
}

impl Group {
    /// A member set a rebalance off.
    pub(super) fn cause_of(
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
        };
        let round = self.round(fx);
        round.causes.push(cause);
    }

    /// The reason that a join states, or the one that fits what it does.
    pub(super) fn join_reason(why: &Why, inferred: JoinReason) -> CauseKind {
        CauseKind::Joined(why.typed.unwrap_or(inferred))
    }

    /// The rebalance that is going on; begins one if there is none.
    fn round(&mut self, fx: &Effects<'_>) -> &mut Round {
        if self.round.is_none() {
            let before = self.owners();
            self.round = Some(Round {
                started: fx.now,
                causes: Vec::new(),
                joined: BTreeMap::new(),
                synced: BTreeMap::new(),
                before,
            });
        }
        self.round
            .get_or_insert_with(|| unreachable!("a round was just begun"))
    }

    pub(super) fn note_join(&mut self, fx: &Effects<'_>, id: &Arc<str>) {
        let now = fx.now;
        self.round(fx).joined.insert(id.clone(), now);
    }

    pub(super) fn note_sync(&mut self, fx: &Effects<'_>, id: &Arc<str>) {
        if let Some(round) = &mut self.round {
            round.synced.insert(id.clone(), fx.now);
        }
    }

    /// The join phase is over: members that did not join have no part in it.
    pub(super) fn round_joined(&mut self, fx: &Effects<'_>) {
        let members: Vec<Arc<str>> = self.members.keys().cloned().collect();
        let round = self.round(fx);
        round.joined.retain(|id, _| members.contains(id));
    }

    /// Everybody has an assignment, or nobody is left: the record is written.
    pub(super) fn round_over(&mut self, fx: &mut Effects<'_>) {
        let Some(round) = self.round.take() else {
            return;
        };
        let after = if self.is(GroupState::Stable) {
            self.owners()
        } else {
            BTreeMap::new()
        };
        let record = RebalanceRecord {
            group: self.id.to_string(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            waited_for: waited_for(&round),
            moves: moves(&round.before, &after),
            minimum_moves: None,
            started: round.started,
            ended: fx.now,
            rounds: 1,
            members: self
                .members
                .values()
                .map(|member| participation(&round, member))
                .collect(),
            causes: round.causes,
        };
        fx.out.push(Output::Rebalanced(Box::new(record)));
    }

    /// Who owns what, as far as assignments can be read.
    fn owners(&self) -> BTreeMap<TopicPartition, Arc<str>> {
        let mut owners = BTreeMap::new();
        if !self.is_consumer() {
            return owners;
        }
        for member in self.members.values() {
            for (topic, partition) in assigned(member).unwrap_or_default().iter() {
                owners.insert(
                    TopicPartition::new(topic.clone(), partition),
                    member.id.clone(),
                );
            }
        }
        owners
    }
}

/// What a member is assigned; `None` if that cannot be read.
pub(super) fn assigned(member: &Member) -> Option<Partitions> {
    let assignment = Assignment::decode(member.assignment.clone()).ok()?;
    let mut all = Partitions::new();
    for entry in assignment.assigned {
        all.insert_all(&entry.topic, entry.partitions);
    }
    Some(all)
}

fn participation(round: &Round, member: &Member) -> Participation {
    Participation {
        member_id: member.id.to_string(),
        instance_id: member.instance.clone(),
        client_id: member.client.id.clone(),
        joined: round.joined.get(&member.id).copied(),
        synced: round.synced.get(&member.id).copied(),
    }
}

/// The member whose join came last, and how long after the one before it.
fn waited_for(round: &Round) -> Vec<(String, u64)> {
    let mut joins: Vec<(Timestamp, &Arc<str>)> =
        round.joined.iter().map(|(id, at)| (*at, id)).collect();
    joins.sort_unstable();
    match joins.as_slice() {
        [.., (before, _), (last, id)] => vec![(id.to_string(), last.since(*before))],
        _ => Vec::new(),
    }
}

fn moves(
    before: &BTreeMap<TopicPartition, Arc<str>>,
    after: &BTreeMap<TopicPartition, Arc<str>>,
) -> Vec<Move> {
    let mut all: Vec<&TopicPartition> = before.keys().chain(after.keys()).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter()
        .filter(|partition| before.get(*partition) != after.get(*partition))
        .map(|partition| Move {
            partition: partition.clone(),
            from: before.get(partition).map(|id| id.to_string()),
            to: after.get(partition).map(|id| id.to_string()),
            ownerless_ms: None,
        })
        .collect()
}
