//! Unequal subscriptions, exactly: partitions flow to members, and what can be bettered is a negative cycle.
//!
//! ```text
//!   class ──▶ topic ──▶ cell ──▶ member ──▶ sink          one unit for each partition
//!     └───────────────▶ (its holder's cell: costs no move)
//! ```
//!
//! A class is the partitions of one topic with one holder; a cell is one topic at one member. The cost of an arc has three
//! ranks, compared in order: loads (the k-th partition of a member costs 2k − 1, so that the sum is that of the squares),
//! moves (1 for a partition that leaves its holder), evenness (the k-th of a topic at a member costs 2k − 1). All are convex,
//! so a solution is the best there is exactly when no cycle of the residual network has a negative cost (Klein's theorem).
//! [`spread`] starts near the best, [`settle`] cancels cycles until none is left. Each cancelled cycle lowers a cost that
//! cannot fall below zero, so it ends.

mod cycles;

use super::problem::{NOBODY, Owners, Problem};
use cycles::Network;

/// Up to this many cells and partitions, topics are spread exactly; above it, as [`spread`] or the quotas have left them.
const EXACT_EVENNESS: usize = 1_500;

/// A good start: claims as they stand, what is free to the poorest, then single moves from rich to poor.
pub(super) fn spread(problem: &Problem<'_>, holders: &Owners) -> Owners {
    let mut owners = holders.clone();
    let mut loads = problem.loads(&owners);
    // Topics that few want first: the others can make up for them.
    let mut order: Vec<usize> = (0..problem.lots.len()).collect();
    order.sort_by_key(|lot| problem.lots[*lot].members.len());
    for lot in &order {
        pour(&problem.lots[*lot].members, &mut owners[*lot], &mut loads);
    }
    while order.iter().any(|lot| {
        level(
            &problem.lots[*lot].members,
            &holders[*lot],
            &mut owners[*lot],
            &mut loads,
        )
    }) {}
    owners
}

/// Gives each free partition of a topic to the subscriber that has least by then.
fn pour(members: &[u32], owners: &mut [u32], loads: &mut [usize]) {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;
    if !owners.contains(&NOBODY) {
        return;
    }
    let mut poorest: BinaryHeap<Reverse<(usize, u32)>> = members
        .iter()
        .map(|member| Reverse((loads[*member as usize], *member)))
        .collect();
    for owner in owners.iter_mut().filter(|owner| **owner == NOBODY) {
        if let Some(Reverse((load, member))) = poorest.pop() {
            *owner = member;
            loads[member as usize] = load + 1;
            poorest.push(Reverse((load + 1, member)));
        }
    }
}

/// Moves partitions of one topic from whoever has most to whoever has least, while that is at least two less.
fn level(members: &[u32], holders: &[u32], owners: &mut [u32], loads: &mut [usize]) -> bool {
    let mut by_load: std::collections::BTreeSet<(usize, u32)> = members
        .iter()
        .map(|member| (loads[*member as usize], *member))
        .collect();
    let lowest = by_load.first().map_or(0, |(load, _)| *load);
    // The places of each member that has anything to spare, dearest first: what it holds itself.
    let mut places: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for own in [true, false] {
        for (place, owner) in owners.iter().enumerate().rev() {
            if loads[*owner as usize] >= lowest + 2 && (holders[place] == *owner) == own {
                places.entry(*owner).or_default().push(place);
            }
        }
    }
    let mut givers: std::collections::BTreeSet<(usize, u32)> = places
        .keys()
        .map(|member| (loads[*member as usize], *member))
        .collect();
    let mut moved = false;
    while let Some((rich, giver)) = givers.pop_last() {
        let Some(&(poor, taker)) = by_load.first() else {
            break;
        };
        if rich < poor + 2 {
            break;
        }
        let Some(place) = places.get_mut(&giver).and_then(Vec::pop) else {
            continue;
        };
        owners[place] = taker;
        moved = true;
        by_load.remove(&(poor, taker));
        by_load.insert((poor + 1, taker));
        by_load.remove(&(rich, giver));
        by_load.insert((rich - 1, giver));
        loads[giver as usize] = rich - 1;
        loads[taker as usize] = poor + 1;
        givers.insert((rich - 1, giver));
        if givers.remove(&(poor, taker)) {
            givers.insert((poor + 1, taker));
        }
    }
    moved
}

/// Betters a complete solution until nothing can be bettered. Equal subscriptions have their best loads and moves already.
pub(super) fn settle(problem: &Problem<'_>, holders: &Owners, owners: Owners) -> Owners {
    let cells: usize = problem.lots.iter().map(|lot| lot.members.len()).sum();
    let partitions: usize = problem.lots.iter().map(|lot| lot.numbers.len()).sum();
    let evenly = cells + partitions <= EXACT_EVENNESS;
    if problem.is_equal() && !evenly {
        return owners;
    }
    let mut network = Network::new(problem, holders, owners, evenly);
    while network.cancel() {}
    network.into_owners()
}
