//! Equal subscriptions: every member's load is known before anything is shared out.
//!
//! P partitions among n members: each gets ⌊P/n⌋, and P mod n of them one more. Whoever holds more than its quota gives up the
//! surplus, from the topics of which it has most above the even share; that is the least that can move. What is free then goes
//! to whoever lacks it, topic by topic, first to members below the topic's even share. One pass over partitions and members.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::problem::{NOBODY, Owners, Problem};

/// How many partitions of each topic each member has: a row for each topic.
struct Counts {
    cells: Vec<u32>,
    width: usize,
}

impl Counts {
    fn of(&mut self, topic: usize, member: u32) -> &mut u32 {
        &mut self.cells[topic * self.width + member as usize]
    }
}

/// Loads even, moves fewest, topics about even.
pub(super) fn share(problem: &Problem<'_>, holders: &Owners) -> Owners {
    let mut owners = holders.clone();
    let Some(first) = problem.lots.first() else {
        return owners;
    };
    let loads = problem.loads(&owners);
    let quotas = quotas(problem, &first.members, &loads);
    let mut counts = Counts {
        cells: vec![0; problem.lots.len() * problem.members.len()],
        width: problem.members.len(),
    };
    for (topic, owners) in owners.iter().enumerate() {
        for owner in owners.iter().filter(|owner| **owner != NOBODY) {
            *counts.of(topic, *owner) += 1;
        }
    }
    trim(problem, &mut owners, &loads, &quotas, &mut counts);
    let lacks: Vec<usize> = loads
        .iter()
        .zip(&quotas)
        .map(|(load, quota)| quota.saturating_sub(*load))
        .collect();
    fill(problem, &mut owners, lacks, &mut counts);
    owners
}

/// What each member is to have. The odd ones go first to members that hold more than the base, since that saves moves.
fn quotas(problem: &Problem<'_>, members: &[u32], loads: &[usize]) -> Vec<usize> {
    let partitions: usize = problem.lots.iter().map(|lot| lot.numbers.len()).sum();
    let base = partitions / members.len();
    let mut extra = partitions % members.len();
    let mut quotas = vec![0; loads.len()];
    for member in members {
        quotas[*member as usize] = base;
    }
    for rich in [true, false] {
        for member in members {
            let member = *member as usize;
            if extra > 0 && (loads[member] > base) == rich {
                quotas[member] += 1;
                extra -= 1;
            }
        }
    }
    quotas
}

/// Frees what members hold above their quotas.
fn trim(
    problem: &Problem<'_>,
    owners: &mut Owners,
    loads: &[usize],
    quotas: &[usize],
    counts: &mut Counts,
) {
    // For each topic, which member gives up how many.
    let mut freed: Vec<Vec<(u32, u32)>> = vec![Vec::new(); problem.lots.len()];
    for (member, (load, quota)) in loads.iter().zip(quotas).enumerate() {
        let Some(surplus) = load.checked_sub(*quota).filter(|surplus| *surplus > 0) else {
            continue;
        };
        let member = member as u32;
        let width = problem.lots[0].members.len() as i64;
        let mut topics: BinaryHeap<(i64, Reverse<usize>)> = BinaryHeap::new();
        for (topic, lot) in problem.lots.iter().enumerate() {
            let count = i64::from(*counts.of(topic, member));
            if count > 0 {
                let above = count * width - lot.numbers.len() as i64;
                topics.push((above, Reverse(topic)));
            }
        }
        for _ in 0..surplus {
            let Some((above, Reverse(topic))) = topics.pop() else {
                break;
            };
            match freed[topic].last_mut() {
                Some((who, count)) if *who == member => *count += 1,
                _ => freed[topic].push((member, 1)),
            }
            let count = counts.of(topic, member);
            *count -= 1;
            if *count > 0 {
                topics.push((above - width, Reverse(topic)));
            }
        }
    }
    let mut to_free = vec![0_u32; problem.members.len()];
    for (owners, freed) in owners.iter_mut().zip(freed) {
        if freed.is_empty() {
            continue;
        }
        for (member, count) in freed {
            to_free[member as usize] = count;
        }
        for owner in owners.iter_mut().rev().filter(|owner| **owner != NOBODY) {
            let left = &mut to_free[*owner as usize];
            if *left > 0 {
                *left -= 1;
                *owner = NOBODY;
            }
        }
    }
}

/// Gives what is free to members that lack something: up to the topic's even share, then one above it, then anything.
fn fill(problem: &Problem<'_>, owners: &mut Owners, mut lacks: Vec<usize>, counts: &mut Counts) {
    let mut free: Vec<Vec<u32>> = owners
        .iter()
        .map(|owners| {
            let places = owners.iter().enumerate().rev();
            places
                .filter(|(_, owner)| **owner == NOBODY)
                .map(|(place, _)| place as u32)
                .collect()
        })
        .collect();
    let mut give = |topic: usize, place: u32, member: u32, counts: &mut Counts| {
        owners[topic][place as usize] = member;
        *counts.of(topic, member) += 1;
    };
    for (topic, lot) in problem.lots.iter().enumerate() {
        let even = (lot.numbers.len() / lot.members.len()) as u32;
        for member in &lot.members {
            while *counts.of(topic, *member) < even
                && lacks[*member as usize] > 0
                && let Some(place) = free[topic].pop()
            {
                give(topic, place, *member, counts);
                lacks[*member as usize] -= 1;
            }
        }
    }
    for (topic, lot) in problem.lots.iter().enumerate() {
        if free[topic].is_empty() {
            continue;
        }
        let even = (lot.numbers.len() / lot.members.len()) as u32;
        // Whoever lacks most first: it has the fewest other topics to make up for it.
        let mut candidates: Vec<u32> = lot
            .members
            .iter()
            .copied()
            .filter(|m| lacks[*m as usize] > 0 && *counts.of(topic, *m) <= even)
            .collect();
        candidates.sort_by_key(|member| Reverse(lacks[*member as usize]));
        for member in candidates {
            let Some(place) = free[topic].pop() else {
                break;
            };
            give(topic, place, member, counts);
            lacks[member as usize] -= 1;
        }
    }
    for (topic, lot) in problem.lots.iter().enumerate() {
        if free[topic].is_empty() {
            continue;
        }
        let mut poorest: BinaryHeap<Reverse<(u32, u32)>> = lot
            .members
            .iter()
            .filter(|member| lacks[**member as usize] > 0)
            .map(|member| Reverse((*counts.of(topic, *member), *member)))
            .collect();
        while let Some(Reverse((count, member))) = poorest.pop()
            && let Some(place) = free[topic].pop()
        {
            give(topic, place, member, counts);
            lacks[member as usize] -= 1;
            if lacks[member as usize] > 0 {
                poorest.push(Reverse((count + 1, member)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Question, Subscriber, flow};
    use super::*;
    use crate::partitions::Partitions;
    use crate::topics::TopicImage;

    fn moves(holders: &Owners, owners: &Owners) -> usize {
        let pairs = holders.iter().flatten().zip(owners.iter().flatten());
        pairs
            .filter(|(from, to)| **from != NOBODY && from != to)
            .count()
    }

    /// The quotas' loads and moves are final: the flow, which is exact, finds nothing to better but the spread of topics.
    #[test]
    fn quotas_alone_give_the_best_loads_and_the_fewest_moves() {
        let image = TopicImage::default();
        let sizes = [("a", 7), ("b", 3), ("c", 5)];
        let available: Partitions = sizes
            .iter()
            .flat_map(|(topic, size)| (0..*size).map(|number| ((*topic).into(), number)))
            .collect();
        let mut random = 7_u32;
        let mut next = |below: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 16) % below
        };
        for _ in 0..2_000 {
            let subscribers: Vec<Subscriber> = (0..=next(6))
                .map(|at| Subscriber {
                    member_id: at.to_string(),
                    topics: vec!["a".into(), "b".into(), "c".into()],
                    ..Subscriber::default()
                })
                .collect();
            let problem = Problem::new(&Question {
                subscribers: &subscribers,
                available: &available,
                topics: &image,
            });
            let many = subscribers.len() as u32;
            // Few claimants, so that some hold far too much.
            let claimants = 1 + next(many);
            let mut holders = problem.nobody();
            for holder in holders.iter_mut().flatten() {
                let claimant = next(claimants + 1);
                *holder = if claimant < claimants {
                    claimant
                } else {
                    NOBODY
                };
            }
            let owners = share(&problem, &holders);
            let (base, extra) = (15 / many as usize, 15 % many as usize);
            let mut loads = problem.loads(&owners);
            loads.sort_unstable();
            let rich = loads.split_off(many as usize - extra);
            assert!(
                loads.iter().all(|load| *load == base) && rich.iter().all(|load| *load == base + 1)
            );
            let best = flow::settle(&problem, &holders, owners.clone());
            assert_eq!(moves(&holders, &owners), moves(&holders, &best));
        }
    }
}
