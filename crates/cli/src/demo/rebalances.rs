//! A group's rebalances as the demo shows them: the record that the coordinator or a member made, beside the ledger's moves.

use super::ledger::{Gap, Ledger, Millis, Moved};
use kohort_group::history::{Cause, CauseKind, RebalanceRecord};
use kohort_group::reason::JoinReason;

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
        CauseKind::Joined(JoinReason::SubscriptionChanged) if cause.text.is_some() => {
            format!("{who}: {}", cause.text.as_deref().unwrap_or_default())
        }
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
        // A static member that is back took no rebalance to get what was its own.
        .filter(|m| m.gap != Gap::Away || m.from != m.to)
        .collect()
}

/// One line about a rebalance.
pub(super) fn line(shown: &Shown, moves: &[&Moved]) -> String {
    format!(
        "{:5.1} s  generation {}: {} ({}, {:.0} ms{})  {}",
        shown.started / 1000.0,
        shown.generation,
        shown.cause,
        rounds(shown),
        shown.ended - shown.started,
        waited(shown),
        moved(moves)
    )
}

/// The same for a narrow place, without the moves.
pub(super) fn short(shown: &Shown) -> String {
    format!(
        "{:5.1} s  {}, {}{}",
        shown.started / 1000.0,
        shown.cause,
        rounds(shown),
        waited(shown)
    )
}

fn rounds(shown: &Shown) -> String {
    match shown.rounds {
        1 => "1 round".into(),
        more => format!("{more} rounds"),
    }
}

/// Whom the others waited for longest.
fn waited(shown: &Shown) -> String {
    match shown.waited_for.iter().max_by_key(|(_, ms)| *ms) {
        Some((member, ms)) => format!(", waited {ms} ms for {member}"),
        None => String::new(),
    }
}

/// What changed hands, and what stopped only to go on with the same owner.
pub(super) fn moved(moves: &[&Moved]) -> String {
    let (moved, stopped): (Vec<&Moved>, Vec<&Moved>) = moves.iter().partition(|m| m.from != m.to);
    let mut parts: Vec<String> = Vec::new();
    if moved.len() > SHOWN {
        parts.push(format!("{} moved, {}", moved.len(), longest(&moved)));
    } else if !moved.is_empty() {
        let each: Vec<String> = moved.iter().map(|m| one(m)).collect();
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

/// Up to so many moves are spelled out.
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
