//! `range`: of each topic, a run of partitions for each subscriber.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::problem::{Lot, NOBODY, Owners, Problem};
use super::{Assignor, Question, Shares};
use crate::partitions::{Partitions, Topic};
use crate::topics::TopicImage;

/// Kafka's `RangeAssignor`, with racks (KIP-881): topic by topic, members in order, runs of partitions whose lengths differ by
/// at most one. Topics of the same size and subscribers give each member the same partition numbers. Where racks make a
/// difference, each member first gets what has a replica in its rack; topics of the same size move together or not at all.
/// Eager; looks at nothing that was owned.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range;

impl Assignor for Range {
    fn name(&self) -> &str {
        "range"
    }

    fn is_eager(&self) -> bool {
        true
    }

    fn user_data(&self, _: &[Topic], _: &Partitions, _: i32) -> Option<Bytes> {
        None
    }

    fn assign(&self, question: &Question<'_>) -> Shares {
        let problem = Problem::new(question);
        let racks: Vec<Option<&str>> = problem
            .members
            .iter()
            .map(|member| member.rack.as_deref().filter(|rack| !rack.is_empty()))
            .collect();
        let mut owners = problem.nobody();
        let mut quotas: Vec<Quotas> = problem.lots.iter().map(Quotas::new).collect();
        let placed: Vec<Placement<'_>> = problem
            .lots
            .iter()
            .map(|lot| Placement::new(lot, &racks, question.topics))
            .collect();
        if placed.iter().any(|placement| placement.matters) {
            by_rack(&problem, &placed, &mut quotas, &mut owners);
        }
        for ((lot, quotas), owners) in problem.lots.iter().zip(&mut quotas).zip(&mut owners) {
            fill(lot, quotas, owners, |_, _| true);
        }
        problem.shares(&owners)
    }
}

/// How many partitions of a topic each subscriber may still get.
#[derive(Debug)]
struct Quotas {
    base: usize,
    /// How many subscribers may still have one more than the base.
    extra: usize,
    /// How many each subscriber has.
    given: Vec<usize>,
}

impl Quotas {
    fn new(lot: &Lot<'_>) -> Self {
        Self {
            base: lot.numbers.len() / lot.members.len(),
            extra: lot.numbers.len() % lot.members.len(),
            given: vec![0; lot.members.len()],
        }
    }

    /// How many more the subscriber may get now.
    fn left(&self, subscriber: usize) -> usize {
        (self.base + usize::from(self.extra > 0)).saturating_sub(self.given[subscriber])
    }

    /// One for this subscriber. The first above the base uses up an extra.
    fn give(&mut self, subscriber: usize) {
        self.given[subscriber] += 1;
        if self.given[subscriber] > self.base {
            self.extra -= 1;
        }
    }
}

/// Where a topic's replicas and its subscribers are.
#[derive(Debug)]
struct Placement<'a> {
    /// The racks of the subscribers, in their order.
    members: Vec<Option<&'a str>>,
    /// The racks of each partition's replicas.
    partitions: Vec<Option<&'a BTreeSet<Arc<str>>>>,
    /// Whether racks make a difference: some subscriber is where some replica is, and not every partition is everywhere.
    matters: bool,
}

impl<'a> Placement<'a> {
    fn new(lot: &Lot<'_>, racks: &[Option<&'a str>], topics: &'a TopicImage) -> Self {
        let members: Vec<_> = lot.members.iter().map(|m| racks[*m as usize]).collect();
        let known = topics.get(lot.topic).map_or(&[][..], |info| &info.racks);
        let partitions: Vec<_> = lot
            .numbers
            .iter()
            .map(|number| usize::try_from(*number).ok().and_then(|n| known.get(n)))
            .collect();
        let all: BTreeSet<&str> = partitions
            .iter()
            .flatten()
            .flat_map(|racks| racks.iter().map(|rack| &**rack))
            .collect();
        let met = members.iter().flatten().any(|rack| all.contains(rack));
        let everywhere = |racks: &Option<&BTreeSet<_>>| racks.map_or(0, BTreeSet::len) == all.len();
        let matters = met && !partitions.iter().all(everywhere);
        Self {
            members,
            partitions,
            matters,
        }
    }

    /// Whether a subscriber has a replica of the partition in its rack, or does not care.
    fn suits(&self, subscriber: usize, place: usize) -> bool {
        self.members[subscriber]
            .is_none_or(|rack| self.partitions[place].is_some_and(|racks| racks.contains(rack)))
    }
}

/// Gives each subscriber in order what it may still get of what `suits` it.
fn fill(
    lot: &Lot<'_>,
    quotas: &mut Quotas,
    owners: &mut [u32],
    suits: impl Fn(usize, usize) -> bool,
) {
    // Without a choice to make, nothing before this place is left over.
    let mut from = 0;
    for (subscriber, member) in lot.members.iter().enumerate() {
        let mut left = quotas.left(subscriber);
        while from < owners.len() && owners[from] != NOBODY {
            from += 1;
        }
        for (place, owner) in owners.iter_mut().enumerate().skip(from) {
            if left == 0 {
                break;
            }
            if *owner == NOBODY && suits(subscriber, place) {
                *owner = *member;
                quotas.give(subscriber);
                left -= 1;
            }
        }
    }
}

/// Topics with the same partitions and the same subscribers go together, so that equal keys meet at one member.
fn by_rack(
    problem: &Problem<'_>,
    placed: &[Placement<'_>],
    quotas: &mut [Quotas],
    owners: &mut Owners,
) {
    let mut together: BTreeMap<(&[u32], &[i32]), Vec<usize>> = BTreeMap::new();
    for (at, lot) in problem.lots.iter().enumerate() {
        let key = (lot.members.as_slice(), lot.numbers);
        together.entry(key).or_default().push(at);
    }
    for lots in together.values() {
        if let [at] = lots[..] {
            if placed[at].matters {
                let suits = |subscriber, place| placed[at].suits(subscriber, place);
                fill(&problem.lots[at], &mut quotas[at], &mut owners[at], suits);
            }
        } else {
            fill_together(problem, lots, placed, quotas, owners);
        }
    }
}

/// Gives partition after partition, in all of these topics at once, to the first subscriber that it suits in all of them.
fn fill_together(
    problem: &Problem<'_>,
    lots: &[usize],
    placed: &[Placement<'_>],
    quotas: &mut [Quotas],
    owners: &mut Owners,
) {
    let first = &problem.lots[lots[0]];
    let mut remaining: Vec<usize> = (0..first.members.len()).collect();
    let places = 0..first.numbers.len();
    for place in places {
        let found = remaining.iter().position(|subscriber| {
            lots.iter().all(|at| {
                placed[*at].suits(*subscriber, place) && quotas[*at].left(*subscriber) > 0
            })
        });
        let Some(found) = found else { continue };
        let subscriber = remaining[found];
        for at in lots {
            owners[*at][place] = first.members[subscriber];
            quotas[*at].give(subscriber);
        }
        if lots.iter().all(|at| quotas[*at].left(subscriber) == 0) {
            remaining.remove(found);
        }
    }
}
