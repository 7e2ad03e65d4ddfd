//! Calm runs: nothing breaks, and one thing changes at a time. Then each change costs the rounds that it must and no more (L2), members that
//! start together cost one (L3), a static restart none (G4), and a group that is left alone has none (L4) and does not grow (G7).

use super::{Event, World};
use crate::faults::Fault;
use crate::scenario::Mode;
use kohort_wire::{ApiKey, ErrorCode};

/// What may change.
const CHANGES: &[Fault] = &[
    Fault::MemberJoin,
    Fault::MemberLeave,
    Fault::MemberCrash,
    Fault::StaticRestart,
    Fault::TopicGrown,
    Fault::TopicCreated,
    Fault::TopicDeleted,
    Fault::SubscriptionChanged,
    Fault::Unsubscribed,
    Fault::RebalanceRequested,
];

/// How many changes a run has.
const MOST_CHANGES: u64 = 8;

/// How long records are produced after a change.
const PRODUCE_MS: u64 = 1_000;

/// Metadata is so old at most.
const METADATA_MS: u64 = 5_500;

const MINUTE_MS: u64 = 60_000;

/// Where a calm run is.
#[derive(Debug, Default)]
pub(super) struct Calm {
    changes: u64,
    /// The last change, which is none at first, when all members start.
    change: Option<Fault>,
    /// Before this, nobody can have noticed it.
    pub(super) noticed_at: u64,
    pub(super) produce_until: u64,
    /// How many SyncGroups had been refused because another round began, when it came.
    refused: u64,
    silence: Option<Silence>,
}

/// Nothing changes any more.
#[derive(Clone, Copy, Debug)]
struct Silence {
    until: u64,
    generation: i32,
    size: usize,
}

impl World {
    /// The start is the first change; nothing ever breaks.
    pub(super) fn begin_calmly(&mut self) {
        self.calm = Some(Calm {
            produce_until: PRODUCE_MS,
            ..Calm::default()
        });
        self.after(0, Event::Peace);
    }

    /// Whether the group is left alone.
    pub(super) fn is_silent(&self) -> bool {
        self.calm
            .as_ref()
            .is_some_and(|calm| calm.silence.is_some())
    }

    /// The group has converged: the next change, or the silence, or the end. True if the run goes on.
    pub(super) fn go_on_calmly(&mut self) -> bool {
        let Some(calm) = &self.calm else {
            return false;
        };
        if let Some(silence) = calm.silence {
            return self.rest(silence);
        }
        let changes = calm.changes;
        self.judge_rounds();
        if changes == MOST_CHANGES {
            self.fall_silent();
        } else {
            self.change_something();
        }
        true
    }

    /// Has the last change cost no more rounds than it must?
    fn judge_rounds(&mut self) {
        let Some(calm) = &self.calm else {
            return;
        };
        let rounds = self.ledger.issued.generation - self.peace_generation;
        let refused = i32::try_from(self.refused_syncs() - calm.refused).unwrap_or(i32::MAX);
        let round = match self.scenario.mode {
            Mode::Eager(_) => 1,
            Mode::Cooperative | Mode::Explicit | Mode::Mixed => 2,
        };
        let most = match calm.change {
            None if self.starts_together() => 1,
            // Each may come into the round of another.
            None => round * self.scenario.consumers.0 as i32,
            Some(Fault::StaticRestart) => 0,
            // A member that closes gives up what it has in one round, and leaves in another; and what has left comes back.
            Some(Fault::MemberLeave | Fault::Unsubscribed) => 2 * round,
            // The coordinator notices it, and so does a leader whose metadata was older, when it is refreshed.
            Some(Fault::TopicGrown | Fault::TopicCreated | Fault::TopicDeleted) => 2 * round,
            Some(_) => round,
        };
        let refused = if most == 0 { 0 } else { refused };
        let name = calm.change.map_or("start", Fault::text);
        *self.rounds.entry((name, rounds)).or_default() += 1;
        if rounds > most + refused {
            let what = format!(
                "{rounds} generations for: {name}; {most} expected, and {refused} for SyncGroups that came too late"
            );
            self.fail("L2 L3 G4 rounds of one change", what);
        }
    }

    /// Whether the initial delay waits for all that start.
    fn starts_together(&self) -> bool {
        self.scenario.initial_delay_ms >= super::STARTS_WITHIN_MS
            && self.scenario.max_poll_ms >= 10_000
    }

    fn refused_syncs(&self) -> u64 {
        let code = (ApiKey::SyncGroup, ErrorCode::RebalanceInProgress);
        self.codes.get(&code).copied().unwrap_or(0)
    }

    fn change_something(&mut self) {
        let refused = self.refused_syncs();
        let generation = self.ledger.issued.generation;
        let change = loop {
            let change = *self.fate.pick(CHANGES);
            let before = self.faults.get(&change).copied();
            self.change(change);
            if self.faults.get(&change).copied() != before {
                break change;
            }
        };
        let noticed_after = match change {
            // A static member that closes does not say so.
            Fault::MemberCrash | Fault::MemberLeave => {
                self.scenario.session_ms + self.scenario.max_poll_ms
            }
            Fault::TopicGrown | Fault::TopicCreated | Fault::TopicDeleted => METADATA_MS,
            // It comes back within five seconds.
            Fault::Unsubscribed => 5_000,
            _ => 0,
        };
        if let Some(calm) = &mut self.calm {
            calm.changes += 1;
            calm.change = Some(change);
            calm.noticed_at = self.now + noticed_after;
            calm.produce_until = self.now + PRODUCE_MS;
            calm.refused = refused;
        }
        self.peace = Some(self.now);
        self.peace_generation = generation;
        self.converged = None;
        self.after(0, Event::Produce);
    }

    /// Makes a change, if it is one of this group.
    fn change(&mut self, change: Fault) {
        let stays = |world: &Self, process: &usize| !world.processes[*process].closing;
        let staying = self.live.iter().filter(|one| stays(self, one)).count();
        match change {
            Fault::MemberLeave | Fault::MemberCrash | Fault::Unsubscribed if staying < 2 => {}
            Fault::MemberCrash => {
                let live: Vec<usize> = self.live.iter().copied().collect();
                let process = *self.fate.pick(&live);
                self.bit(change);
                self.end(process);
            }
            _ => self.strike(change),
        }
    }

    fn fall_silent(&mut self) {
        let minutes = if self.fate.percent(10) { 24 * 60 } else { 10 };
        let silence = Silence {
            until: self.now + minutes * MINUTE_MS,
            generation: self.ledger.issued.generation,
            size: self.size(),
        };
        if let Some(calm) = &mut self.calm {
            calm.silence = Some(silence);
        }
    }

    /// True if the silence goes on.
    fn rest(&mut self, silence: Silence) -> bool {
        let generation = self.ledger.issued.generation;
        if generation != silence.generation {
            let what = format!(
                "generation {generation} after {}, though nothing has changed",
                silence.generation
            );
            self.fail("L4 a quiet group rests", what);
        }
        let size = self.size();
        // A request may be under way at either moment.
        if size > 2 * silence.size {
            let what = format!(
                "the machines have grown from {} to {size} characters in silence",
                silence.size
            );
            self.fail("G7 bounded state", what);
        }
        self.now < silence.until
    }

    /// How much the machines remember, in characters.
    pub(super) fn size(&self) -> usize {
        let members = self.live.iter().map(|process| {
            let member = &self.processes[*process].member;
            format!("{member:?}").len()
        });
        members.sum::<usize>() + format!("{:?}", self.broker.machine).len()
    }
}
