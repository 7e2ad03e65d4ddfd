//! A rebalance in words.

use super::clock::{duration, moment};
use super::names::Names;
use kohort::RebalanceRecord;
use kohort::history::{Cause, CauseKind, Move, Wait, WaitedTo};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Waits that are shorter than this, in milliseconds, say nothing: every answer takes a moment.
const NOTABLE: u64 = 3;
/// The most lines of one kind.
const LINES: usize = 6;

/// The first line of all.
pub(super) fn opening(records: &[RebalanceRecord]) -> String {
    let (Some(first), Some(last)) = (records.first(), records.last()) else {
        return "no rebalances yet\n".to_owned();
    };
    let many = if records.iter().all(|record| record.group == first.group) {
        format!("group {}", first.group)
    } else {
        "several groups".to_owned()
    };
    let span = last.ended.since(first.started);
    format!(
        "{many}: {} in {} (times are UTC)\n",
        plural(records.len(), "rebalance"),
        duration(span)
    )
}

/// All about one rebalance.
pub(super) fn record(record: &RebalanceRecord, names: &Names) -> String {
    let mut text = String::new();
    headline(&mut text, record, names);
    for line in causes(record, names) {
        entry(&mut text, "why", &line);
    }
    for line in waits(record, names) {
        entry(&mut text, "waited", &line);
    }
    for line in moves(record, names) {
        entry(&mut text, "moved", &line);
    }
    for line in cost(record) {
        entry(&mut text, "cost", &line);
    }
    text
}

fn headline(text: &mut String, record: &RebalanceRecord, names: &Names) {
    let _ = write!(
        text,
        "{}  generation {}, {}, {}",
        moment(record.started.0),
        record.generation,
        duration(record.ended.since(record.started)),
        match record.rounds {
            0 => "the group is empty now".to_owned(),
            rounds => plural(rounds as usize, "round"),
        },
    );
    if let Some(phase) = record.phases.last() {
        let _ = write!(text, ", {}", plural(phase.size.max(1), "member"));
    }
    if let Some(protocol) = &record.protocol {
        let _ = write!(text, ", {protocol}");
    }
    if let Some(member) = &record.seen_by {
        let _ = write!(text, ", as {} saw it", names.of(member));
    }
    text.push('\n');
}

/// A line with its label; the label stands only before the first of its kind.
fn entry(text: &mut String, label: &str, line: &str) {
    let marked = format!("  {label:<8}");
    let again = text.contains(&marked);
    let label = if again { "" } else { label };
    let _ = writeln!(text, "  {label:<8}{line}");
}

fn causes(record: &RebalanceRecord, names: &Names) -> Vec<String> {
    let more = record.causes.len().saturating_sub(LINES) + record.causes_unlisted as usize;
    let mut lines: Vec<String> = record
        .causes
        .iter()
        .take(LINES)
        .map(|cause| {
            let after = cause.at.since(record.started);
            let line = because(cause, names);
            match after {
                0 => line,
                ms => format!("{line} (after {})", duration(ms)),
            }
        })
        .collect();
    if more > 0 {
        lines.push(format!("and {} more", plural(more, "cause")));
    }
    if lines.is_empty() {
        lines.push("nothing was noted".to_owned());
    }
    lines
}

/// Who did what, and whether it said so itself.
fn because(cause: &Cause, names: &Names) -> String {
    let who = cause
        .instance_id
        .as_deref()
        .unwrap_or_else(|| names.of(&cause.member_id));
    let host = cause.client_host.trim_start_matches('/');
    let mut line = if host.is_empty() {
        format!("{who} {}", what(cause.kind))
    } else {
        format!("{who} ({host}) {}", what(cause.kind))
    };
    let said = cause.text.as_deref();
    let own = match cause.kind {
        CauseKind::Joined(reason) => Some(reason.text()),
        _ => None,
    };
    if let Some(said) = said.filter(|said| Some(*said) != own) {
        let _ = write!(line, ", saying {said:?}");
    }
    if matches!(cause.kind, CauseKind::Joined(_)) && !cause.stated {
        line.push_str(" [inferred]");
    }
    line
}

/// What happened, as a half-sentence after the member's name.
pub(super) fn what(kind: CauseKind) -> String {
    match kind {
        CauseKind::Joined(reason) => format!("joined: {reason}"),
        CauseKind::Left => "left".into(),
        CauseKind::SessionExpired => {
            "gave no sign of life for its session timeout and is out".into()
        }
        CauseKind::RebalanceTimedOut => {
            "did not join again within the rebalance timeout and is out".into()
        }
        CauseKind::SyncTimedOut => "did not ask for its assignment in time and is out".into(),
        CauseKind::AppendFailed => "led, and its assignment could not be stored".into(),
        CauseKind::Recovered => {
            "leads a group that is larger than allowed since the restart".into()
        }
    }
}

fn waits(record: &RebalanceRecord, names: &Names) -> Vec<String> {
    let mut waits: Vec<(usize, &Wait)> = Vec::new();
    for (at, phase) in record.phases.iter().enumerate() {
        waits.extend(phase.waits.iter().map(|wait| (at + 1, wait)));
    }
    let longest = waits.iter().map(|(_, wait)| wait.ms).max().unwrap_or(0);
    // Beside three seconds nobody looks for five milliseconds.
    waits.retain(|(_, wait)| wait.ms >= NOTABLE && wait.ms * 50 >= longest);
    waits
        .into_iter()
        .take(LINES)
        .map(|(round, wait)| {
            let who = names.of(&wait.member_id);
            let ms = duration(wait.ms);
            let line = match wait.to {
                WaitedTo::Join => format!("{ms} for {who} to join"),
                WaitedTo::JoinInVain => format!("{ms} for {who} to join, in vain"),
                WaitedTo::Assign => format!("{ms} for {who} to share the partitions out (leader)"),
                WaitedTo::Sync => format!("{ms} for {who} to ask for its assignment"),
                WaitedTo::Release => format!("{ms} for {who} to let go and join again"),
                WaitedTo::BeFollowed => {
                    format!("{ms} for more members (group.initial.rebalance.delay.ms)")
                }
            };
            if record.rounds == 1 {
                line
            } else {
                format!("round {round}: {line}")
            }
        })
        .collect()
}

fn moves(record: &RebalanceRecord, names: &Names) -> Vec<String> {
    let given = record.moves.iter().filter(|one| one.from.is_none()).count();
    let orphans = record.moves.iter().filter(|one| one.to.is_none()).count();
    let mut first = match (record.moved, record.minimum_moves) {
        (0, None | Some(0)) => "nothing".to_owned(),
        (moved, None) => plural(moved, "partition"),
        (0, Some(least)) => format!("nothing; {least} would make the shares even"),
        (moved, Some(least)) if moved == least => {
            format!(
                "{}, which is the fewest possible",
                plural(moved, "partition")
            )
        }
        (moved, Some(least)) => {
            format!(
                "{} where {least} would have done",
                plural(moved, "partition")
            )
        }
    };
    if given > 0 {
        let _ = write!(first, "; {} got a first owner", plural(given, "partition"));
    }
    if orphans > 0 {
        let _ = write!(
            first,
            "; {} without an owner now",
            match orphans {
                1 => "1 is".to_owned(),
                many => format!("{many} are"),
            }
        );
    }
    let mut lines = vec![first];
    let mut ways: BTreeMap<(&str, &str), Vec<&Move>> = BTreeMap::new();
    for one in &record.moves {
        let from = one.from.as_deref().map_or("nobody", |id| names.of(id));
        let to = one.to.as_deref().map_or("nobody", |id| names.of(id));
        ways.entry((from, to)).or_default().push(one);
    }
    let mut ways: Vec<_> = ways.into_iter().collect();
    ways.sort_by_key(|(_, moves)| std::cmp::Reverse(longest(moves)));
    let more = ways.len().saturating_sub(LINES);
    for ((from, to), moves) in ways.into_iter().take(LINES) {
        let mut line = format!("{from} → {to}: {}", listed(&moves));
        if let (Some(least), Some(most)) = (shortest(&moves), longest(&moves)) {
            let span = if least == most {
                duration(most)
            } else {
                format!("{} to {}", duration(least), duration(most))
            };
            let _ = write!(line, ", {span} without an owner");
        }
        lines.push(line);
    }
    if more > 0 {
        lines.push(format!("and {more} more ways"));
    }
    lines
}

fn longest(moves: &[&Move]) -> Option<u64> {
    moves.iter().filter_map(|one| one.ownerless_ms).max()
}

fn shortest(moves: &[&Move]) -> Option<u64> {
    moves.iter().filter_map(|one| one.ownerless_ms).min()
}

/// `orders 0-3,7; returns 2`.
fn listed(moves: &[&Move]) -> String {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for one in moves {
        let numbers = topics.entry(&one.partition.topic).or_default();
        numbers.push(one.partition.partition);
    }
    let topics: Vec<String> = topics
        .into_iter()
        .map(|(topic, numbers)| format!("{topic} {}", ranges(numbers)))
        .collect();
    topics.join("; ")
}

pub(super) fn ranges(mut numbers: Vec<i32>) -> String {
    numbers.sort_unstable();
    let mut runs: Vec<(i32, i32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last == number - 1 => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let mut parts: Vec<String> = runs
        .iter()
        .take(12)
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first},{last}"),
            _ => format!("{first}-{last}"),
        })
        .collect();
    if runs.len() > 12 {
        parts.push("…".to_owned());
    }
    parts.join(",")
}

fn cost(record: &RebalanceRecord) -> Vec<String> {
    let all = || record.moves.iter().chain(&record.pauses);
    let count = all().filter(|one| one.ownerless_ms > Some(0)).count();
    let longest = all().filter_map(|one| one.ownerless_ms).max().unwrap_or(0);
    let mut lines = Vec::new();
    if record.ownerless_ms > 0 {
        lines.push(format!(
            "{} of partition time without an owner ({}, the longest {})",
            duration(record.ownerless_ms),
            plural(count, "partition"),
            duration(longest)
        ));
    }
    let paused: u64 = record
        .pauses
        .iter()
        .filter_map(|one| one.ownerless_ms)
        .sum();
    if paused > 0 {
        lines.push(format!(
            "{} of it for {} that went back to the same owner: eager members let go of everything",
            duration(paused),
            plural(record.pauses.len(), "partition")
        ));
    }
    if record.silent_ms > 0 {
        let silent = all().map(|one| one.silent_ms).max().unwrap_or(0);
        lines.push(format!(
            "{} of partition time before that with an owner that was silent for {} (session.timeout.ms)",
            duration(record.silent_ms),
            duration(silent)
        ));
    }
    if lines.is_empty() {
        lines.push("nothing: every partition had an owner all the time".to_owned());
    }
    lines
}

/// `1 round`, `2 rounds`.
pub(super) fn plural(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        many => format!("{many} {one}s"),
    }
}
