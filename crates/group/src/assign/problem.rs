//! A question with members and partitions as numbers, and the way back from numbers to shares.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::claims::Claim;
use super::{Question, Shares, Subscriber};
use crate::partitions::{Partitions, Topic};

/// No member: a partition that is not given to anybody yet.
pub(super) const NOBODY: u32 = u32::MAX;

/// For each topic of a [`Problem`], the member that has each of its partitions, or [`NOBODY`].
pub(super) type Owners = Vec<Vec<u32>>;

/// What there is to share out, and among whom.
#[derive(Debug)]
pub(super) struct Problem<'a> {
    /// Each member once, in member order. A member is its place in this list.
    pub(super) members: Vec<Cow<'a, Subscriber>>,
    /// Each available topic that somebody wants, by name.
    pub(super) lots: Vec<Lot<'a>>,
}

/// A topic's partitions, and who wants them.
#[derive(Debug)]
pub(super) struct Lot<'a> {
    pub(super) topic: &'a Topic,
    /// The partitions that may be given away, ascending.
    pub(super) numbers: &'a [i32],
    /// The members that subscribe, in member order.
    pub(super) members: Vec<u32>,
}

impl<'a> Problem<'a> {
    pub(super) fn new(question: &Question<'a>) -> Self {
        let members = roster(question.subscribers);
        let mut lots: BTreeMap<&Topic, Lot<'a>> = question
            .available
            .by_topic()
            .map(|(topic, numbers)| {
                let lot = Lot {
                    topic,
                    numbers,
                    members: Vec::new(),
                };
                (topic, lot)
            })
            .collect();
        for (member, subscriber) in members.iter().enumerate() {
            for topic in &subscriber.topics {
                if let Some(lot) = lots.get_mut(topic)
                    && lot.members.last() != Some(&(member as u32))
                {
                    lot.members.push(member as u32);
                }
            }
        }
        let wanted = lots.into_values().filter(|lot| !lot.members.is_empty());
        Self {
            lots: wanted.collect(),
            members,
        }
    }

    /// Owners that nobody is one of.
    pub(super) fn nobody(&self) -> Owners {
        self.lots
            .iter()
            .map(|lot| vec![NOBODY; lot.numbers.len()])
            .collect()
    }

    /// The member whose claim of each partition stands, among those that subscribe to it. `claims` has an entry for each member.
    pub(super) fn holders(&self, claims: &[(Cow<'_, Partitions>, Option<i32>)]) -> Owners {
        let mut met: Vec<Vec<Claim>> = self
            .lots
            .iter()
            .map(|lot| vec![Claim::default(); lot.numbers.len()])
            .collect();
        for (member, (owned, generation)) in claims.iter().enumerate() {
            let member = member as u32;
            for (topic, numbers) in owned.by_topic() {
                let Ok(at) = self.lots.binary_search_by(|lot| lot.topic.cmp(topic)) else {
                    continue;
                };
                let lot = &self.lots[at];
                if lot.members.binary_search(&member).is_err() {
                    continue;
                }
                for number in numbers {
                    if let Some(place) = lot.place(*number) {
                        met[at][place].add(member, *generation);
                    }
                }
            }
        }
        met.iter()
            .map(|claims| {
                let holders = claims.iter().map(|claim| claim.holder().unwrap_or(NOBODY));
                holders.collect()
            })
            .collect()
    }

    /// Whether everybody who wants anything wants the same.
    pub(super) fn is_equal(&self) -> bool {
        self.lots
            .windows(2)
            .all(|pair| pair[0].members == pair[1].members)
    }

    /// How many partitions each member has.
    pub(super) fn loads(&self, owners: &Owners) -> Vec<usize> {
        let mut loads = vec![0; self.members.len()];
        for owner in owners.iter().flatten().filter(|owner| **owner != NOBODY) {
            loads[*owner as usize] += 1;
        }
        loads
    }

    /// What each member gets.
    pub(super) fn shares(&self, owners: &Owners) -> Shares {
        let mut sets = vec![Partitions::new(); self.members.len()];
        let mut numbers: Vec<Vec<i32>> = vec![Vec::new(); self.members.len()];
        for (lot, owners) in self.lots.iter().zip(owners) {
            for (number, owner) in lot.numbers.iter().zip(owners) {
                if *owner != NOBODY {
                    numbers[*owner as usize].push(*number);
                }
            }
            for member in &lot.members {
                let numbers = &mut numbers[*member as usize];
                sets[*member as usize].insert_all(lot.topic, std::mem::take(numbers));
            }
        }
        let ids = self.members.iter().map(|member| member.member_id.clone());
        ids.zip(sets).collect()
    }
}

impl Lot<'_> {
    /// Where a partition number stands in the list.
    pub(super) fn place(&self, number: i32) -> Option<usize> {
        // Mostly all partitions of a topic are there, and a number is its own place.
        let guess = usize::try_from(number).ok()?;
        if self.numbers.get(guess) == Some(&number) {
            return Some(guess);
        }
        self.numbers.binary_search(&number).ok()
    }
}

/// The members in Kafka's order: those with an instance id first, by that; then the others by member id. So a static member
/// keeps its place when its member id changes. A member that is listed twice is one, with all that either entry says.
pub(super) fn roster(subscribers: &[Subscriber]) -> Vec<Cow<'_, Subscriber>> {
    let mut by_id: BTreeMap<&str, Cow<'_, Subscriber>> = BTreeMap::new();
    for one in subscribers {
        match by_id.get_mut(one.member_id.as_str()) {
            Some(first) => merge(first.to_mut(), one),
            None => {
                by_id.insert(&one.member_id, Cow::Borrowed(one));
            }
        }
    }
    let mut members: Vec<_> = by_id.into_values().collect();
    members.sort_by(|a, b| place(a).cmp(&place(b)));
    members
}

fn merge(first: &mut Subscriber, second: &Subscriber) {
    first.topics.extend(second.topics.iter().cloned());
    first.topics.sort_unstable();
    first.topics.dedup();
    first.owned.extend(&second.owned);
    first.generation = first.generation.max(second.generation);
    // Whichever entry comes first: the greater of the two, so that the order does not matter.
    first.instance_id = first.instance_id.take().max(second.instance_id.clone());
    first.rack = first.rack.take().max(second.rack.clone());
    first.user_data = first.user_data.take().max(second.user_data.clone());
}

fn place(member: &Subscriber) -> (bool, Option<&str>, &str) {
    let instance = member.instance_id.as_deref();
    (instance.is_none(), instance, &member.member_id)
}
