//! What is remembered of the rebalance that is going on, until its record is written.
//!
//! One rebalance may take several generations: where members let go only after they were told to, they join again, and that round
//! belongs to the first one's cause. So a record stays open while somebody holds more than it was assigned.
//!
//! Members' metadata is read here for the record alone. What cannot be read leaves gaps in the record and changes nothing else.

mod causes;
mod holdings;
mod minimum;
mod waits;

use super::membership::{Member, Why};
use super::state::{Group, GroupState};
use crate::assign::decode::partitions_from_wire;
use crate::coordinator::effects::Effects;
use crate::coordinator::output::Output;
use crate::history::{Cause, Participation, Phase, RebalanceRecord, WaitedTo};
use crate::partitions::Partitions;
use crate::time::Timestamp;
use holdings::Holdings;
use kohort_wire::embedded::{Assignment, AssignmentError, Subscription};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use waits::{latecomers, wait};

/// After so many rounds a record is written, whatever is still to come: a group that never settles has something to show for it.
const MOST_ROUNDS: u32 = 50;

/// A rebalance in the making.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::coordinator) struct Round {
    started: Timestamp,
    causes: Vec<Cause>,
    causes_unlisted: u32,
    /// What the next move to PreparingRebalance is for.
    trigger: Option<Cause>,
    /// When the join phase began that is going on or about to.
    phase: Option<Timestamp>,
    joined: BTreeMap<Arc<str>, Timestamp>,
    /// Who did not come in that phase.
    absent: Vec<Arc<str>>,
    /// When the members of the last round asked for their assignments.
    synced: BTreeMap<Arc<str>, Timestamp>,
    phases: Vec<Phase>,
    rounds: u32,
    holdings: Holdings,
    /// Who holds more than it was assigned in the last round.
    owing: BTreeSet<Arc<str>>,
    /// Who had something to let go of when the last round ended.
    owed: BTreeSet<Arc<str>>,
    /// The leader said that another round follows.
    announced: bool,
    /// When the last round ended, while another one is to follow.
    follows: Option<Timestamp>,
    /// Who let go first and so began the round that follows, and how long that took.
    released: Option<(Arc<str>, u64)>,
}

impl Round {
    fn new(now: Timestamp) -> Self {
        Self {
            started: now,
            causes: Vec::new(),
            causes_unlisted: 0,
            trigger: None,
            phase: None,
            joined: BTreeMap::new(),
            absent: Vec::new(),
            synced: BTreeMap::new(),
            phases: Vec::new(),
            rounds: 0,
            holdings: Holdings::default(),
            owing: BTreeSet::new(),
            owed: BTreeSet::new(),
            announced: false,
            follows: None,
            released: None,
        }
    }

    fn add_cause(&mut self, cause: Cause) {
        if self.causes.len() < RebalanceRecord::CAUSES {
            self.causes.push(cause);
        } else {
            self.causes_unlisted += 1;
        }
    }

    /// The times of the round that has just ended, or was cut short.
    fn close_phase(&mut self) {
        let synced = std::mem::take(&mut self.synced);
        let Some(phase) = self.phases.last_mut() else {
            return;
        };
        for member in &mut phase.members {
            if member.synced.is_none() {
                member.synced = synced.get(&*member.member_id).copied();
            }
        }
        if let Some(assigned) = phase.assigned {
            let late = |(id, at): (&Arc<str>, &Timestamp)| ((*at).max(assigned), id.clone());
            phase.waits.extend(latecomers(
                synced.iter().map(late).collect(),
                WaitedTo::Sync,
            ));
        }
        if phase.members.len() > Phase::LISTED {
            phase
                .members
                .sort_by_key(|member| std::cmp::Reverse(member.joined));
            phase.members.truncate(Phase::LISTED);
        }
    }
}

impl Group {
    /// The rebalance that is going on; begins one if there is none.
    fn round(&mut self, fx: &Effects<'_>) -> &mut Round {
        if self.round.is_none() {
            let mut round = Round::new(fx.now);
            if self.is_consumer() {
                for member in self.members.values() {
                    if let Some(had) = assigned(member) {
                        round.holdings.had(&member.id, &had);
                    }
                }
            }
            self.round = Some(round);
        }
        let round = self
            .round
            .get_or_insert_with(|| unreachable!("a round was just begun"));
        round.phase.get_or_insert(fx.now);
        round
    }

    /// A member joins; what it does not claim, it has let go of.
    pub(super) fn note_join(&mut self, fx: &Effects<'_>, id: &Arc<str>) {
        let claimed = self.members.get(id).filter(|_| self.is_consumer());
        let claimed = claimed.and_then(claimed_by);
        let round = self.round(fx);
        round.joined.insert(id.clone(), fx.now);
        if let Some(claimed) = claimed {
            round.holdings.claims(fx.now, id, &claimed);
            if let Some(since) = round.follows.filter(|_| round.owing.remove(id)) {
                round
                    .released
                    .get_or_insert((id.clone(), fx.now.since(since)));
            }
        }
    }

    /// An id that was handed out, and waited for, was not used.
    pub(super) fn note_absent(&mut self, id: &Arc<str>) {
        if let Some(round) = &mut self.round {
            round.absent.push(id.clone());
        }
    }

    pub(super) fn note_sync(&mut self, fx: &Effects<'_>, id: &Arc<str>) {
        if let Some(round) = self.round.as_mut().filter(|round| round.follows.is_none()) {
            round.synced.insert(id.clone(), fx.now);
        }
    }

    /// A member goes, for a reason that is (or is not) told apart.
    pub(super) fn note_gone(&mut self, fx: &Effects<'_>, id: &Arc<str>) {
        if let Some(round) = &mut self.round {
            round.holdings.gone(fx.now, id, 0);
            round.owing.remove(id);
        }
    }

    /// A static member has another id from now on.
    pub(super) fn note_renamed(&mut self, old: &Arc<str>, new: &Arc<str>) {
        if let Some(round) = &mut self.round {
            round.holdings.renamed(old, new);
            for set in [&mut round.owing, &mut round.owed] {
                if set.remove(old) {
                    set.insert(new.clone());
                }
            }
        }
    }

    /// The join phase is over: members that did not join have no part in it.
    pub(super) fn round_joined(&mut self, fx: &Effects<'_>) {
        let generation = self.generation;
        let leader = self.leader.as_deref().map(str::to_owned);
        let members: Vec<(Arc<str>, Participation)> = self
            .members
            .values()
            .map(|member| (member.id.clone(), participation(member)))
            .collect();
        let round = self.round(fx);
        round.close_phase();
        let joined = std::mem::take(&mut round.joined);
        let started = round.phase.take().unwrap_or(fx.now);
        let mut phase = Phase {
            generation,
            leader,
            started,
            joined: fx.now,
            size: members.len(),
            ..Phase::default()
        };
        let mut came = Vec::new();
        for (id, mut member) in members {
            member.joined = joined.get(&id).copied();
            came.extend(member.joined.map(|at| (at, id)));
            phase.members.push(member);
        }
        let last = came.iter().map(|(at, _)| *at).max().unwrap_or(started);
        round.follows = None;
        if let Some((id, ms)) = round.released.take() {
            phase.waits.extend(wait(&id, WaitedTo::Release, ms));
        }
        let owed = std::mem::take(&mut round.owed);
        let mut late = latecomers(came, WaitedTo::Join);
        for wait in &mut late {
            if owed.contains(&*wait.member_id) {
                wait.to = WaitedTo::Release;
            }
        }
        phase.waits.extend(late);
        let absent = std::mem::take(&mut round.absent);
        let after = fx.now.since(last);
        if absent.is_empty() {
            phase.waits.extend(wait("", WaitedTo::BeFollowed, after));
        }
        for id in absent.iter().take(RebalanceRecord::CAUSES) {
            phase.waits.extend(wait(id, WaitedTo::JoinInVain, after));
        }
        if round.phases.len() >= RebalanceRecord::PHASES {
            round.phases.remove(RebalanceRecord::PHASES / 2);
        }
        round.phases.push(phase);
        round.rounds += 1;
        round.owing.clear();
        round.announced = false;
    }

    /// The leader's assignments hold.
    pub(super) fn round_assigned(&mut self, fx: &Effects<'_>) {
        let Some(round) = &mut self.round else {
            return;
        };
        let Some(phase) = round.phases.last_mut() else {
            return;
        };
        phase.assigned = Some(fx.now);
        let leader = phase.leader.clone().unwrap_or_default();
        let ms = fx.now.since(phase.joined);
        phase.waits.extend(wait(&leader, WaitedTo::Assign, ms));
    }

    /// A member is told its assignment.
    pub(super) fn round_told(&mut self, fx: &Effects<'_>, id: &Arc<str>) {
        if self.round.is_none() || !self.is_consumer() {
            return;
        }
        let Some(member) = self.members.get(id) else {
            return;
        };
        let Ok(assignment) = Assignment::decode(member.assignment.clone()) else {
            return;
        };
        let announced = assignment
            .trailer
            .is_some_and(|trailer| trailer.error == AssignmentError::NeedRejoin);
        let told = partitions_from_wire(&assignment.assigned);
        if let Some(round) = &mut self.round {
            round.announced |= announced;
            if round.holdings.told(fx.now, id, &told) {
                round.owing.insert(id.clone());
            }
        }
    }

    /// Everybody has an assignment, or nobody is left: the record is written, unless another round is to follow.
    pub(super) fn round_over(&mut self, fx: &mut Effects<'_>) {
        let stable = self.is(GroupState::Stable);
        let Some(round) = &mut self.round else {
            return;
        };
        if round.follows.is_some() {
            // It is over already; somebody asks for its assignment again.
            return;
        }
        round.close_phase();
        if let Some(phase) = round.phases.last_mut().filter(|_| stable) {
            phase.ended = Some(fx.now);
        }
        let follows = !round.owing.is_empty() || round.announced;
        if follows && round.rounds < MOST_ROUNDS && stable {
            round.follows = Some(fx.now);
            round.owed.clone_from(&round.owing);
            return;
        }
        self.write_record(fx);
    }

    /// A round was to follow, and does not: whoever had something to let go of does not say that it has.
    pub(super) fn round_overdue(&mut self, fx: &mut Effects<'_>) {
        let limit = self.rebalance_timeout();
        let overdue = |round: &Round| round.follows.is_some_and(|since| fx.now > since + limit);
        if self.is(GroupState::Stable) && self.round.as_ref().is_some_and(overdue) {
            self.write_record(fx);
        }
    }

    fn write_record(&mut self, fx: &mut Effects<'_>) {
        let Some(round) = self.round.take() else {
            return;
        };
        let before = round.holdings.before();
        let minimum_moves = before.and_then(|before| self.minimum_moves(&before, fx.topics));
        let ended = round.follows.unwrap_or(fx.now);
        let (moves, pauses) = round.holdings.moves();
        let record = RebalanceRecord {
            group: self.id.to_string(),
            seen_by: None,
            generation: self.generation,
            protocol: self.protocol.clone(),
            causes: round.causes,
            causes_unlisted: round.causes_unlisted,
            started: round.started,
            ended,
            rounds: round.rounds,
            phases: round.phases,
            moves,
            minimum_moves,
            pauses,
            ..RebalanceRecord::default()
        };
        fx.out.push(Output::Rebalanced(Box::new(record.finish())));
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

/// What a member says that it still holds; `None` if that cannot be read.
fn claimed_by(member: &Member) -> Option<Partitions> {
    let (_, metadata) = member.protocols.first()?;
    let subscription = Subscription::decode(metadata.clone()).ok()?;
    Some(partitions_from_wire(&subscription.owned))
}

fn participation(member: &Member) -> Participation {
    Participation {
        member_id: member.id.to_string(),
        instance_id: member.instance.clone(),
        client_id: member.client.id.clone(),
        joined: None,
        synced: None,
    }
}
