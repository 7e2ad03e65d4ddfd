//! The laboratory: a seeded world that breaks consumer groups on purpose, and rules that must hold all the same.
//!
//! The real machines of `kohort-group` are run, never a model of them: members with an application each, one coordinator with a
//! log and restarts, connections that break, a clock that nobody waits for, and bytes on the wire. One seed is one run, and the
//! same trace on any machine.
//!
//! ```
//! let outcome = kohort_sim::run(7);
//! assert!(outcome.violation.is_none(), "{outcome}");
//! ```

pub mod case;
mod fact;
pub mod faults;
mod invariants;
mod ledger;
pub mod outcome;
pub mod random;
pub mod scenario;
mod trace;
pub mod transition;
mod world;

pub use case::Case;
pub use faults::Fault;
pub use outcome::{Outcome, Summary, Violation};
pub use transition::Transition;

use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// How many events a failed run shows.
pub const LAST_EVENTS: usize = 60;

/// Runs a seed. A run that breaks a rule is run once more, to tell its last [`LAST_EVENTS`] events.
#[must_use]
pub fn run(seed: u64) -> Outcome {
    run_and_tell(&Case::of(seed))
}

/// Runs a case. A run that breaks a rule is run once more, to tell its last [`LAST_EVENTS`] events.
#[must_use]
pub fn run_and_tell(case: &Case) -> Outcome {
    let outcome = run_case(case, 0);
    if outcome.violation.is_some() {
        return run_case(case, LAST_EVENTS);
    }
    outcome
}

/// Runs a seed and keeps its last `keep` events in words.
#[must_use]
pub fn run_traced(seed: u64, keep: usize) -> Outcome {
    run_case(&Case::of(seed), keep)
}

/// Runs a case and keeps its last `keep` events in words.
#[must_use]
pub fn run_case(case: &Case, keep: usize) -> Outcome {
    let mut world = World::new(case, keep);
    let panic = catch_unwind(AssertUnwindSafe(|| world.run())).err();
    world.outcome(panic.map(|panic| {
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "it panicked".to_owned())
    }))
}
