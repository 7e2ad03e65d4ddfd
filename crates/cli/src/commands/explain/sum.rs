//! All rebalances together: which causes cost most, and who was waited for.

use super::clock::duration;
use super::names::Names;
use super::text::plural;
use kohort::RebalanceRecord;
use kohort::history::CauseKind;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What rebalances of one kind come to.
#[derive(Clone, Copy, Default)]
struct Row {
    rebalances: usize,
    rounds: u32,
    lasted_ms: u64,
    moved: usize,
    minimum: usize,
    ownerless_ms: u64,
    silent_ms: u64,
}

impl Row {
    fn add(&mut self, record: &RebalanceRecord) {
        self.rebalances += 1;
        self.rounds += record.rounds;
        self.lasted_ms += record.ended.since(record.started);
        self.moved += record.moved;
        self.minimum += record.minimum_moves.unwrap_or(record.moved);
        self.ownerless_ms += record.ownerless_ms;
        self.silent_ms += record.silent_ms;
    }

    fn cost(&self) -> u64 {
        self.ownerless_ms + self.silent_ms
    }

    fn json(&self) -> Value {
        json!({
            "rebalances": self.rebalances, "rounds": self.rounds, "lasted_ms": self.lasted_ms, "moved": self.moved,
            "minimum_moves": self.minimum, "ownerless_ms": self.ownerless_ms, "silent_ms": self.silent_ms,
        })
    }
}

/// The sum of some rebalances.
#[derive(Default)]
pub(super) struct Sum {
    all: Row,
    causes: BTreeMap<Option<CauseKind>, Row>,
    waited_for: BTreeMap<String, u64>,
}

impl Sum {
    /// One more. What it cost is put down to its first cause.
    pub(super) fn add(&mut self, record: &RebalanceRecord) {
        self.all.add(record);
        let cause = record.causes.first().map(|first| {
            // Who hands its partitions over and then leaves does the first for the sake of the second.
            let closes = record
                .causes
                .iter()
                .any(|cause| cause.kind == CauseKind::Left && cause.member_id == first.member_id);
            if closes { CauseKind::Left } else { first.kind }
        });
        self.causes.entry(cause).or_default().add(record);
        for (member, ms) in &record.waited_for {
            *self.waited_for.entry(member.clone()).or_default() += ms;
        }
    }

    fn ranked(&self) -> Vec<(Option<CauseKind>, Row)> {
        let mut rows: Vec<_> = self.causes.iter().map(|(k, row)| (*k, *row)).collect();
        rows.sort_by_key(|(_, row)| Reverse((row.cost(), row.lasted_ms)));
        rows
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let causes: Vec<Value> = self
            .ranked()
            .into_iter()
            .map(|(kind, row)| {
                let mut entry = row.json();
                entry["cause"] = kind.map_or(Value::Null, |kind| label(kind).into());
                entry
            })
            .collect();
        let mut waited: Vec<_> = self.waited_for.iter().collect();
        waited.sort_by_key(|(_, ms)| Reverse(**ms));
        let waited: Vec<Value> = waited
            .into_iter()
            .map(|(member, ms)| json!({"member_id": member, "ms": ms}))
            .collect();
        json!({"sum": {"all": self.all.json(), "causes": causes, "waited_for": waited}})
    }

    /// For people.
    pub(super) fn text(&self, names: &Names) -> String {
        if self.all.rebalances == 0 {
            return "no rebalances".to_owned();
        }
        let heads = [
            "without owner",
            "silent",
            "rebalances",
            "took",
            "moved",
            "had to",
        ];
        let mut rows = vec![heads.map(str::to_owned)];
        let mut labels = vec!["cause, by what it cost".to_owned()];
        for (kind, row) in self.ranked() {
            labels.push(kind.map_or("not noted".to_owned(), label));
            rows.push(cells(&row));
        }
        if self.causes.len() > 1 {
            labels.push("all".to_owned());
            rows.push(cells(&self.all));
        }
        let mut text = table(&labels, &rows);
        let mut waited: BTreeMap<&str, u64> = BTreeMap::new();
        for (member, ms) in &self.waited_for {
            *waited.entry(names.of(member)).or_default() += ms;
        }
        let mut waited: Vec<_> = waited.into_iter().filter(|(_, ms)| *ms >= 10).collect();
        waited.sort_by_key(|(_, ms)| Reverse(*ms));
        let waited: Vec<String> = waited
            .into_iter()
            .take(5)
            .map(|(name, ms)| format!("{name} {}", duration(ms)))
            .collect();
        if !waited.is_empty() {
            let _ = write!(text, "\nwaited for: {}", waited.join(", "));
        }
        let extra = self.all.moved.saturating_sub(self.all.minimum);
        if extra > 0 {
            let _ = write!(
                text,
                "\n{} more than necessary: a sticky assignor would have left them",
                plural(extra, "move")
            );
        }
        text
    }
}

fn cells(row: &Row) -> [String; 6] {
    let ms = |ms: u64| {
        if ms == 0 {
            "-".to_owned()
        } else {
            duration(ms)
        }
    };
    [
        ms(row.ownerless_ms),
        ms(row.silent_ms),
        row.rebalances.to_string(),
        ms(row.lasted_ms),
        row.moved.to_string(),
        row.minimum.to_string(),
    ]
}

fn table(labels: &[String], rows: &[[String; 6]]) -> String {
    let width = |text: &String| text.chars().count();
    let first = labels.iter().map(width).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6)
        .map(|at| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0))
        .collect();
    let lines: Vec<String> = labels
        .iter()
        .zip(rows)
        .map(|(label, row)| {
            let mut line = format!("{label:<first$}");
            for (cell, width) in row.iter().zip(&widths) {
                let _ = write!(line, "   {cell:>width$}");
            }
            line
        })
        .collect();
    lines.join("\n")
}

/// A cause in a few words.
fn label(kind: CauseKind) -> String {
    match kind {
        CauseKind::Joined(reason) => reason.text().to_owned(),
        CauseKind::Left => "left".to_owned(),
        CauseKind::SessionExpired => "session expired".to_owned(),
        CauseKind::RebalanceTimedOut => "rebalance timed out".to_owned(),
        CauseKind::SyncTimedOut => "sync timed out".to_owned(),
        CauseKind::AppendFailed => "assignment not stored".to_owned(),
        CauseKind::Recovered => "group larger than allowed".to_owned(),
    }
}
