//! A group's rebalances as the demo shows them: the record that the coordinator or a member made, beside the ledger's moves.

use super::ledger::{Gap, Ledger, Millis, Moved};
use kohort_group::history::{Cause, CauseKind, RebalanceRecord};

/// A rebalance, on the story's clock.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) generation: i32,
    pub(super) started: Millis,
    pub(super) ended: Millis,
    pub(super) rounds: u32,
    pub(super) cause: String,
    /// Whom the others waited for, and for how long.
    pub(super) waited_for: Vec<(String, u64)>,
    pub(super) minimum_moves: Option<usize>,
}

impl Shown {
    /// A record that arrived at `now` on the story's clock.
    pub(super) fn from_record(now: Millis, record: &RebalanceRecord) -> Self {
        let lasted = record.ended.since(record.started) as Millis;
        Self {
            generation: record.generation,
            started: now - lasted,
            ended: now,
            rounds: record.rounds,
            cause: record
                .causes
                .first()
                .map_or_else(|| "unknown".into(), cause),
            waited_for: record
                .waited_for
                .iter()
                .filter(|(_, ms)| *ms > 0)
                .map(|(member, ms)| (name(member).to_owned(), *ms))
                .collect(),
            minimum_moves: record.minimum_moves,
        }
    }
}

/// The demo's name of a member: what stands before the generated part of its id.
pub(super) fn name(member_id: &str) -> &str {
    member_id.split('-').next().unwrap_or(member_id)
}

fn cause(cause: &Cause) -> String {
    let who = cause
        .instance_id
        .as_deref()
        .unwrap_or_else(|| name(&cause.member_id));
    match cause.kind {
        CauseKind::Joined(reason) => format!("{who} joined: {reason}"),
        CauseKind::Left => format!("{who} left"),
        CauseKind::SessionExpired => format!("{who} gave no sign of life"),
        CauseKind::RebalanceTimedOut => format!("{who} did not come back in time"),
        CauseKind::SyncTimedOut => format!("{who} did not ask for its assignment in time"),
        CauseKind::AppendFailed => "the assignment could not be stored".into(),
        CauseKind::Recovered => "the coordinator was restarted".into(),
    }
}

/// The moves that belong to rebalance `index`: those between its beginning and the next one's.
pub(super) fn moves<'a>(all: &'a [Shown], index: usize, ledger: &'a Ledger) -> Vec<&'a Moved> {
    let from = if index == 0 { 0.0 } else { all[index].started };
    let until = all
        .get(index + 1)
        .map_or(Millis::INFINITY, |next| next.started);
    ledger
        .moves()
        .iter()
        .filter(|m| from <= m.at && m.at < until)
        .collect()
}

/// One line about a rebalance.
pub(super) fn line(shown: &Shown, moves: &[&Moved]) -> String {
    let rounds = if shown.rounds == 1 {
        "1 round"
    } else {
        "2 rounds"
    };
    let rounds = if shown.rounds > 2 {
        format!("{} rounds", shown.rounds)
    } else {
        rounds.into()
    };
    let waited = match shown.waited_for.first() {
        Some((member, ms)) => format!(", waited {ms} ms for {member}"),
        None => String::new(),
    };
    format!(
        "{:5.1} s  generation {}: {} ({rounds}, {:.0} ms{waited})  {}",
        shown.started / 1000.0,
        shown.generation,
        shown.cause,
        shown.ended - shown.started,
        moved(moves)
    )
}

/// What changed hands, and what stopped only to go on with the same owner.
fn moved(moves: &[&Moved]) -> String {
    let (moved, stopped): (Vec<&Moved>, Vec<&Moved>) = moves.iter().partition(|m| m.from != m.to);
    let mut parts: Vec<String> = Vec::new();
    if !moved.is_empty() {
        let mut each: Vec<String> = moved.iter().take(SHOWN).map(|m| one(m)).collect();
        if moved.len() > SHOWN {
            each.push(format!("… {} in all, {}", moved.len(), longest(&moved)));
        }
        parts.push(format!("moved {}", each.join(", ")));
    }
    if !stopped.is_empty() {
        let word = if moved.is_empty() { "" } else { "more " };
        parts.push(format!(
            "{} {word}stopped without moving, {}",
            stopped.len(),
            longest(&stopped)
        ));
    }
    if parts.is_empty() {
        return "nothing moved, nothing stopped".into();
    }
    parts.join("; ")
}

/// So many moves are spelled out.
const SHOWN: usize = 4;

fn one(moved: &Moved) -> String {
    let why = match moved.gap {
        Gap::HandOver => "",
        Gap::Crashed => " after the crash",
        Gap::Away => " away",
    };
    format!(
        "{} {}→{} {:.0} ms{why}",
        moved.partition, moved.from, moved.to, moved.ownerless_ms
    )
}

fn longest(moves: &[&Moved]) -> String {
    let longest = moves.iter().map(|m| m.ownerless_ms).fold(0.0, Millis::max);
    format!("for up to {longest:.0} ms")
}
