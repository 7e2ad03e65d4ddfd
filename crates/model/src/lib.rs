//! The exhaustive search: real members, the real coordinator, connections that break, and every place at which a fault may strike.
//!
//! States are compared in the machines' canonical form, so that roads that lead to the same place are walked once. Messages are faster
//! than alarms: time goes on when nothing is under way. Breadth first, and a search that does not come to its end is an error.
//!
//! Why not stateright: a state here is several kilobytes, and what is compared (the canonical form) is not what is gone on with. A
//! search of our own keeps the states of one level alone, and a hash of each that it has seen.

mod actions;
mod room;

pub use room::{Fault, Kind, Setup};

use room::Room;
use std::collections::BTreeSet;

/// What a search has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// States that differ.
    pub states: usize,
    /// Steps from one to another.
    pub steps: usize,
    /// States in which the group had converged.
    pub converged: usize,
    /// Places at which a fault struck.
    pub faults: usize,
}

/// Searches all that can happen.
///
/// # Errors
/// The rule that is broken and the way there, or that `most` states were not enough.
pub fn explore(setup: &Setup, most: usize) -> Result<Explored, String> {
    let first = Room::new(setup);
    let mut seen = BTreeSet::from([first.fingerprint()]);
    let mut level = vec![first];
    let mut explored = Explored::default();
    while !level.is_empty() {
        let mut next = Vec::new();
        for room in &level {
            explored.converged += usize::from(room.converged());
            for action in room.actions() {
                let mut after = room.clone();
                let fault = after.act(&action)?;
                explored.steps += 1;
                if fault {
                    explored.faults += 1;
                    after.clone().heals()?;
                    // In one order there is one way on, and it was just walked.
                    if after.ends_alike() {
                        continue;
                    }
                }
                if seen.insert(after.fingerprint()) {
                    next.push(after);
                }
            }
        }
        if seen.len() > most {
            return Err(format!(
                "{} states, and no end: the search is not exhaustive",
                seen.len()
            ));
        }
        level = next;
    }
    explored.states = seen.len();
    Ok(explored)
}
