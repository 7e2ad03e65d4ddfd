//! The fixed corpus: every seed of it holds, every fault bit somewhere, and a seed is one trace.

#![allow(clippy::unwrap_used)]

use kohort_sim::Summary;

/// Seeds of the corpus. Debug builds take the first part.
const SEEDS: std::ops::Range<u64> = if cfg!(debug_assertions) {
    0..400
} else {
    0..450
};

#[test]
fn the_corpus_holds() {
    let halves = [0, 1].map(|half| {
        std::thread::spawn(move || {
            let mut summary = Summary::default();
            let mut first = None;
            for seed in SEEDS.filter(|seed| seed % 2 == half) {
                let outcome = kohort_sim::run(seed);
                summary.add(&outcome);
                if outcome.violation.is_some() && first.is_none() {
                    first = Some(outcome.to_string());
                }
            }
            (summary, first)
        })
    });
    let mut all = Summary::default();
    let mut first = None;
    for half in halves {
        let (summary, failed) = half.join().unwrap();
        all.merge(&summary);
        first = first.or(failed);
    }
    println!("{all}");
    assert!(all.failed.is_empty(), "{}", first.unwrap());
    assert_eq!(
        all.never_bit(),
        [],
        "these faults never bit: the corpus proves nothing about them"
    );
}

#[test]
fn a_seed_is_a_trace() {
    for seed in [3, 14, 15] {
        let (one, two) = (
            kohort_sim::run_traced(seed, 0),
            kohort_sim::run_traced(seed, 40),
        );
        assert_eq!(
            (one.hash, one.events),
            (two.hash, two.events),
            "seed {seed}"
        );
    }
}
