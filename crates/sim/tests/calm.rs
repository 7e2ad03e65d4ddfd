//! Calm runs: nothing breaks, one thing changes at a time, and no change costs more rounds than it must (L2, L3, G4, L4, G7).

#![allow(clippy::unwrap_used)]

use kohort_sim::{Case, Fault, Summary};

/// So many seeds are run.
const SEEDS: u64 = 24;

/// What must have changed somewhere.
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

#[test]
fn a_change_costs_no_more_rounds_than_it_must() {
    let halves = [0, 1].map(|half| {
        std::thread::spawn(move || {
            let mut summary = Summary::default();
            for seed in (0..SEEDS).filter(|seed| seed % 2 == half) {
                let outcome = kohort_sim::run_and_tell(&Case::calm(seed));
                assert!(outcome.violation.is_none(), "{outcome}");
                summary.add(&outcome);
            }
            summary
        })
    });
    let mut all = Summary::default();
    for half in halves {
        all.merge(&half.join().unwrap());
    }
    println!("{all}");
    let changed = |change: &Fault| all.rounds.keys().any(|(name, _)| *name == change.text());
    let unchanged: Vec<_> = CHANGES.iter().filter(|one| !changed(one)).collect();
    assert!(unchanged.is_empty(), "these never happened: {unchanged:?}");
    assert!(
        all.virtual_ms > 24 * 3_600_000,
        "nobody was quiet for a day"
    );
}
