//! The member's view of a rebalance: why, when, how many rounds, what it gained and gave, and when exactly.

use super::Output;
use super::state::Cause;
use crate::history::{self, CauseKind, Move, Participation, Phase, RebalanceRecord};
use crate::partitions::{Partitions, TopicPartition};
use crate::reason::JoinReason;
use crate::time::Timestamp;
use std::collections::BTreeMap;

/// A rebalance that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Records {
    open: Option<Open>,
    /// What was lost before the rebalance began that follows from it.
    lost: Option<(Timestamp, Partitions)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Open {
    started: Timestamp,
    causes: Vec<(Timestamp, Cause)>,
    causes_unlisted: u32,
    rounds: u32,
    /// When the join that is under way began.
    joining: Timestamp,
    phases: Vec<(Phase, Participation)>,
    places: BTreeMap<TopicPartition, Place>,
}

/// A partition during the rebalance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Place {
    had: bool,
    has: bool,
    released: Option<Timestamp>,
    assigned: Option<Timestamp>,
    ownerless_ms: u64,
}

impl Records {
    /// A join begins: a rebalance, or another round of one. `owned` is what the member has.
    pub(super) fn begin(&mut self, now: Timestamp, cause: &Cause, owned: &Partitions) {
        // It starts afresh: what went on before it left has no end.
        if self.open.is_none() || cause.reason == JoinReason::NewMember {
            let mut open = Open {
                started: now,
                ..Open::default()
            };
            for partition in each(owned) {
                let place = open.places.entry(partition).or_default();
                (place.had, place.has) = (true, true);
            }
            if let Some((at, lost)) = self.lost.take() {
                open.started = at;
                for partition in each(&lost) {
                    let place = open.places.entry(partition).or_default();
                    (place.had, place.released) = (true, Some(at));
                }
            }
            self.open = Some(open);
        }
        let Some(open) = &mut self.open else { return };
        open.joining = now;
        if open.rounds > 0 && cause.reason == JoinReason::RevocationDone {
            return;
        }
        // A coordinator that refuses for hours must not fill the memory.
        if open.causes.len() < RebalanceRecord::CAUSES {
            open.causes.push((now, cause.clone()));
        } else {
            open.causes_unlisted = open.causes_unlisted.saturating_add(1);
        }
    }

    /// The member has a place in this generation.
    pub(super) fn round(&mut self, now: Timestamp, generation: i32) {
        let Some(open) = &mut self.open else { return };
        open.rounds = open.rounds.saturating_add(1);
        if open.phases.len() >= RebalanceRecord::PHASES {
            open.phases.remove(RebalanceRecord::PHASES / 2);
        }
        let phase = Phase {
            generation,
            started: open.joining,
            joined: now,
            ..Phase::default()
        };
        let part = Participation {
            joined: Some(open.joining),
            ..Participation::default()
        };
        open.phases.push((phase, part));
    }

    /// An assignment was applied.
    pub(super) fn assigned(&mut self, now: Timestamp, added: &Partitions) {
        let Some(open) = &mut self.open else { return };
        if let Some((phase, part)) = open.phases.last_mut() {
            (phase.assigned, phase.ended) = (Some(now), Some(now));
            part.synced = Some(now);
        }
        for partition in each(added) {
            let place = open.places.entry(partition).or_default();
            if let Some(released) = place.released.filter(|_| !place.has) {
                place.ownerless_ms += now.since(released);
            }
            place.has = true;
            place.assigned = Some(now);
        }
    }

    /// The application let go of these.
    pub(super) fn released(&mut self, now: Timestamp, partitions: &Partitions) {
        let Some(open) = &mut self.open else { return };
        for partition in each(partitions) {
            if let Some(place) = open.places.get_mut(&partition).filter(|place| place.has) {
                (place.has, place.released) = (false, Some(now));
            }
        }
    }

    /// These were lost.
    pub(super) fn lost(&mut self, now: Timestamp, partitions: &Partitions) {
        if self.open.is_some() {
            self.released(now, partitions);
        } else if !partitions.is_empty() {
            self.lost = Some((now, partitions.clone()));
        }
    }

    /// The rebalance has ended for this member.
    pub(super) fn end(&mut self, now: Timestamp, who: Who<'_>, out: &mut Vec<Output>) {
        let Some(open) = self.open.take() else {
            return;
        };
        let cause = |(at, cause): (Timestamp, Cause)| history::Cause {
            kind: CauseKind::Joined(cause.reason),
            member_id: who.member_id.to_owned(),
            instance_id: who.instance_id.map(str::to_owned),
            client_id: who.client_id.to_owned(),
            client_host: String::new(),
            stated: true,
            text: Some(cause.text.into_owned()),
            at,
        };
        let phase = |(mut phase, part): (Phase, Participation)| {
            phase.members = vec![Participation {
                member_id: who.member_id.to_owned(),
                instance_id: who.instance_id.map(str::to_owned),
                client_id: who.client_id.to_owned(),
                ..part
            }];
            phase
        };
        let generation = open.phases.last().map_or(-1, |(phase, _)| phase.generation);
        let (moves, pauses) = moves(open.places, who.member_id);
        let record = RebalanceRecord {
            group: who.group.to_owned(),
            seen_by: Some(who.member_id.to_owned()),
            generation,
            protocol: Some(who.protocol.to_owned()),
            causes: open.causes.into_iter().map(cause).collect(),
            causes_unlisted: open.causes_unlisted,
            started: open.started,
            ended: now,
            rounds: open.rounds,
            phases: open.phases.into_iter().map(phase).collect(),
            moves,
            pauses,
            ..RebalanceRecord::default()
        };
        out.push(Output::Rebalanced(Box::new(record.finish())));
    }
}

/// What came and went, and what came back. How long something that went had no owner only its next one could say.
fn moves(places: BTreeMap<TopicPartition, Place>, member_id: &str) -> (Vec<Move>, Vec<Move>) {
    let (mut moves, mut pauses) = (Vec::new(), Vec::new());
    for (partition, place) in places {
        let mine = |mine: bool| mine.then(|| member_id.to_owned());
        let one = Move {
            partition,
            from: mine(place.had),
            to: mine(place.has),
            ownerless_ms: place.has.then_some(place.ownerless_ms),
            released: place.released,
            assigned: place.assigned,
            silent_ms: 0,
        };
        if place.had && place.has {
            if one.released.is_some() {
                pauses.push(one);
            }
        } else if place.had || place.has {
            moves.push(Move {
                ownerless_ms: None,
                ..one
            });
        }
    }
    (moves, pauses)
}

fn each(partitions: &Partitions) -> impl Iterator<Item = TopicPartition> {
    partitions
        .iter()
        .map(|(topic, partition)| TopicPartition::new(topic.clone(), partition))
}

/// Whose view it is.
pub(super) struct Who<'a> {
    pub(super) group: &'a str,
    pub(super) protocol: &'a str,
    pub(super) member_id: &'a str,
    pub(super) instance_id: Option<&'a str>,
    pub(super) client_id: &'a str,
}
