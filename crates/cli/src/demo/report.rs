//! The demo's last word: totals as text, or everything as one JSON object.

use super::ledger::{Gap, Millis, Totals};
use super::rebalances::{self, Shown};
use super::track::Track;
use serde_json::{Value, json};

/// The totals of all tracks side by side.
pub(super) fn text(tracks: &[Track], now: Millis) -> String {
    let totals: Vec<Totals> = tracks.iter().map(|track| track.totals(now)).collect();
    let mut out = format!("{:<42}", "");
    for track in tracks {
        out += &format!("{:>14}", track.mode);
    }
    out.push('\n');
    let mut row = |label: &str, value: &dyn Fn(&Totals) -> String| {
        out += &format!("{label:<42}");
        for one in &totals {
            out += &format!("{:>14}", value(one));
        }
        out.push('\n');
    };
    row("records produced", &|t| t.produced.to_string());
    row("records delivered", &|t| t.delivered.to_string());
    row("  repeated after the crash", &|t| {
        t.repeated_after_crash.to_string()
    });
    row("  repeated for another reason", &|t| {
        (t.repeated - t.repeated_after_crash).to_string()
    });
    row("  missing", &|t| t.missing.to_string());
    row("moments with two owners", &|t| t.two_owners.to_string());
    row("partition-ms without an owner: hand-overs", &|t| {
        format!("{:.0}", t.ownerless_partition_ms)
    });
    row("  the crashed member's", &|t| {
        format!("{:.0}", t.crashed_partition_ms)
    });
    row("  the restarting static member's", &|t| {
        format!("{:.0}", t.away_partition_ms)
    });
    for track in tracks {
        for error in &track.errors {
            out += &format!("{}: {error}\n", track.mode);
        }
        for (partition, one, other, at) in track.ledger.two_owners() {
            out += &format!(
                "{}: at {:.3} s both {one} and {other} owned partition {partition}\n",
                track.mode,
                at / 1000.0
            );
        }
    }
    out
}

/// The verdict in a sentence.
pub(super) fn verdict(tracks: &[Track], now: Millis) -> String {
    let [main, beside, ..] = tracks else {
        return String::new();
    };
    let (ours, theirs) = (main.totals(now), beside.totals(now));
    let ratio = theirs.ownerless_partition_ms / ours.ownerless_partition_ms.max(1.0);
    format!(
        "{}: {:.0} partition-ms without an owner in hand-overs; {}: {:.0} ({ratio:.0} × as many).",
        main.mode, ours.ownerless_partition_ms, beside.mode, theirs.ownerless_partition_ms
    )
}

/// The main track as an object, with the other one under `beside`.
pub(super) fn object(tracks: &[Track], now: Millis) -> Value {
    let mut objects = tracks.iter().map(|track| one(track, now));
    let mut main = objects.next().unwrap_or_else(|| json!({}));
    if let (Some(object), Some(beside)) = (main.as_object_mut(), objects.next()) {
        object.insert("beside".into(), beside);
    }
    main
}

fn one(track: &Track, now: Millis) -> Value {
    let totals = track.totals(now);
    let rebalances: Vec<Value> = (0..track.rebalances.len())
        .map(|index| rebalance(track, index))
        .collect();
    json!({
        "mode": track.mode,
        "produced": totals.produced,
        "delivered": totals.delivered,
        "repeated": totals.repeated,
        "repeated_after_crash": totals.repeated_after_crash,
        "missing": totals.missing,
        "phantom": totals.phantom,
        "two_owners": totals.two_owners,
        "ownerless_partition_ms": round(totals.ownerless_partition_ms),
        "crashed_partition_ms": round(totals.crashed_partition_ms),
        "away_partition_ms": round(totals.away_partition_ms),
        "errors": track.errors,
        "rebalances": rebalances,
    })
}

fn rebalance(track: &Track, index: usize) -> Value {
    let shown: &Shown = &track.rebalances[index];
    let moves: Vec<Value> = rebalances::moves(&track.rebalances, index, &track.ledger)
        .into_iter()
        .map(|m| {
            json!({
                "partition": m.partition,
                "from": m.from,
                "to": m.to,
                "at_ms": round(m.at),
                "ownerless_ms": round(m.ownerless_ms),
                "why": match m.gap {
                    Gap::HandOver => "hand-over",
                    Gap::Crashed => "crash",
                    Gap::Away => "restart",
                },
            })
        })
        .collect();
    let waited: Vec<Value> = shown
        .waited_for
        .iter()
        .map(|(member, ms)| json!({"member": member, "ms": ms}))
        .collect();
    json!({
        "generation": shown.generation,
        "cause": shown.cause,
        "started_ms": round(shown.started),
        "ended_ms": round(shown.ended),
        "rounds": shown.rounds,
        "waited_for": waited,
        "moves": moves,
        "minimum_moves": shown.minimum_moves,
    })
}

/// A thousandth of a millisecond is as fine as anybody wants it.
fn round(ms: Millis) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

/// Plain lines, where there is no terminal to draw on: each rebalance once, when what it moved has arrived.
pub(super) struct Plain {
    /// How many rebalances of each track have been printed.
    printed: Vec<usize>,
}

/// A rebalance is printed when it is over for so long.
const ARRIVED_MS: Millis = 400.0;

impl Plain {
    pub(super) fn new(tracks: usize) -> Self {
        Self {
            printed: vec![0; tracks],
        }
    }

    /// Prints what is new and settled at `now`.
    pub(super) fn print(&mut self, tracks: &[Track], now: Millis) {
        for (track, printed) in tracks.iter().zip(&mut self.printed) {
            while let Some(shown) = track.rebalances.get(*printed) {
                if shown.ended + ARRIVED_MS > now {
                    break;
                }
                let moves = rebalances::moves(&track.rebalances, *printed, &track.ledger);
                println!("{:>11}  {}", track.mode, rebalances::line(shown, &moves));
                *printed += 1;
            }
        }
    }
}
