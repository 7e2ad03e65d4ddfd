//! The museum: old bugs are put back in, one at a time, and the laboratory must see each of them.
//!
//! ```text
//! cargo test -p kohort-sim --test museum                                            each with its seed
//! cargo test --release -p kohort-sim --test museum -- --ignored --nocapture         looks for the seeds, and prints the table of TESTING.md
//! ```

#![allow(clippy::unwrap_used)]

use kohort_group::museum::{Defect, exhibit};
use kohort_sim::{Case, Outcome, run_case};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many seeds the search takes.
const SEARCH: u64 = 10_000;

/// Each defect, the first seed that shows it, and the rule that it breaks there.
const EXHIBITS: &[(Defect, u64, &str)] = &[
    (Defect::GivesMovedAtOnce, 14, "I1 one owner in a generation"),
    (
        Defect::GivesMovedToPlain,
        14,
        "I1 one owner in a generation",
    ),
    (Defect::SupersetCheckLeftOut, 44, "L1 the group converges"),
    (Defect::NeedRejoinIgnored, 11, "L1 the group converges"),
    (
        Defect::EverybodyRejoinsAtOnce,
        205,
        "L2 rounds come to an end",
    ),
    (Defect::RevokesBeforeJoin, 1, "I7 when to revoke"),
    (Defect::LostToldAsRevoked, 1, "I7 when to revoke"),
    (Defect::KeepsOwnedWithoutGeneration, 10, "G6 no busy loop"),
    (Defect::CommitsUnread, 0, "F3 commits are covered"),
    (Defect::StartsAtBeginning, 1, "F4 no gap"),
    (Defect::CommitsForEver, 20, "G6 no busy loop"),
    (Defect::SpinsWhileFenced, 0, "G6 no busy loop"),
    (Defect::FightsForInstance, 10, "L1 the group converges"),
    (Defect::KeepsUnknownId, 1, "L1 the group converges"),
    (Defect::WatchesOwnTopics, 20, "L1 the group converges"),
    (Defect::PastGenerationCommits, 4, "F2 only members commit"),
    (Defect::StrangersCommit, 10, "F2 only members commit"),
    (
        Defect::AcknowledgedBeforeStored,
        0,
        "F1 acknowledged commits last",
    ),
    (Defect::ForgetsParked, 0, "G5 one answer"),
    (
        Defect::StaticRestartWhileCompleting,
        551,
        "L1 the group converges",
    ),
    (Defect::GenerationsStartOver, 2, "G3 the join phase"),
    (Defect::ReplayForgetsOffsets, 3, "G8 the log is the state"),
    (Defect::FailedAppendIsFine, 7, "G8 the log is the state"),
    (Defect::StableSyncIsEmpty, 5, "L1 the group converges"),
    (Defect::ReasonIgnored, 3151, "L1 the group converges"),
    (Defect::SessionsNeverEnd, 4, "L5 L6 the gone are out"),
    (Defect::LeaderGoneStaysLeader, 2, "no panic"),
];

/// A run of a seed. The draft's livelock needs members whose SyncGroup is late every time.
fn run(defect: Defect, seed: u64) -> Outcome {
    let late = defect == Defect::EverybodyRejoinsAtOnce;
    let case = Case {
        late_sync_ms: late.then_some(40),
        ..Case::of(seed)
    };
    run_case(&case, 0)
}

#[test]
fn each_is_seen() {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((defect, seed, rule)) =
                    EXHIBITS.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let broken = exhibit(*defect, || run(*defect, *seed));
                    let found = broken.violation.map(|violation| violation.rule);
                    assert_eq!(found, Some(*rule), "{defect:?} with seed {seed}");
                    let sound = run(*defect, *seed);
                    assert!(sound.violation.is_none(), "without any defect: {sound}");
                }
            });
        }
    });
}

#[test]
fn none_is_left_out() {
    let shown: Vec<Defect> = EXHIBITS.iter().map(|(defect, ..)| *defect).collect();
    assert_eq!(shown, Defect::ALL);
}

#[test]
#[ignore = "looks for the seeds: minutes"]
fn search() {
    println!("| defect | broke | seeds until then | the report |\n|---|---|---|---|");
    for defect in Defect::ALL {
        let found = {
            (0..SEARCH).find_map(|seed| {
                let violation = exhibit(*defect, || run(*defect, seed)).violation?;
                // A seed that breaks without the defect shows nothing.
                if run(*defect, seed).violation.is_some() {
                    return None;
                }
                Some((seed, violation.rule))
            })
        };
        match found {
            Some((seed, rule)) => println!(
                "| {defect:?} | {rule} | {} | {} |",
                seed + 1,
                defect.report()
            ),
            None => println!(
                "| {defect:?} | not found in {SEARCH} seeds | | {} |",
                defect.report()
            ),
        }
    }
}
