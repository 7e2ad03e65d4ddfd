//! A1–A8: what is true of every answer. Small cases are compared with the best of all answers, found by trying them all.

use std::collections::BTreeMap;

use bytes::Bytes;
use kohort_group::assign::{
    Assignor, CooperativeSticky, Range, RoundRobin, Shares, Sticky, Subscriber,
};
use kohort_group::partitions::{Partitions, Topic};
use kohort_group::topics::TopicImage;
use proptest::prelude::*;

use crate::support::*;

const MEMBERS: [&str; 5] = ["m0", "m1", "m2", "m3", "m4"];
const TOPICS: [&str; 4] = ["t0", "t1", "t2", "t3"];

/// Squares of loads, moves, squares of what each member has of each topic: the less the better, the first counts most.
type Cost = (usize, usize, usize);

fn square(n: usize) -> usize {
    n * n
}

fn cost(members: &[Subscriber], shares: &Shares) -> Cost {
    let loads = shares.values().map(|share| square(share.len())).sum();
    let wanted = |one: &Subscriber| {
        let mut owned = one.owned.clone();
        owned.retain(|topic, _| one.topics.contains(topic));
        owned
    };
    let moves = members
        .iter()
        .map(|one| wanted(one).minus(&shares[&one.member_id]).len())
        .sum();
    let of_topics = |share: &Partitions| -> usize {
        share
            .by_topic()
            .map(|(_, numbers)| square(numbers.len()))
            .sum()
    };
    (loads, moves, shares.values().map(of_topics).sum())
}

/// The least cost of all answers, by trying them.
fn best(members: &[Subscriber], image: &TopicImage) -> Cost {
    let all = image.partitions_of(members.iter().flat_map(|one| &one.topics));
    let partitions: Vec<(&Topic, i32)> = all.iter().collect();
    let mut choice: Vec<usize> = Vec::new();
    let mut best = (usize::MAX, 0, 0);
    try_all(members, &partitions, &mut choice, &mut best);
    best
}

fn try_all(
    members: &[Subscriber],
    partitions: &[(&Topic, i32)],
    choice: &mut Vec<usize>,
    best: &mut Cost,
) {
    let Some((topic, number)) = partitions.get(choice.len()) else {
        *best = (*best).min(cost_of(members, partitions, choice));
        return;
    };
    let _ = number;
    for (at, one) in members.iter().enumerate() {
        if one.topics.contains(topic) {
            choice.push(at);
            try_all(members, partitions, choice, best);
            choice.pop();
        }
    }
}

fn cost_of(members: &[Subscriber], partitions: &[(&Topic, i32)], choice: &[usize]) -> Cost {
    let mut loads = [0; MEMBERS.len()];
    let mut cells: BTreeMap<(&Topic, usize), usize> = BTreeMap::new();
    let mut moves = 0;
    for ((topic, number), to) in partitions.iter().zip(choice) {
        loads[*to] += 1;
        *cells.entry((topic, *to)).or_default() += 1;
        let holder = members
            .iter()
            .position(|one| one.owned.contains(topic, *number) && one.topics.contains(*topic));
        moves += usize::from(holder.is_some_and(|holder| holder != *to));
    }
    (
        loads.into_iter().map(square).sum(),
        moves,
        cells.into_values().map(square).sum(),
    )
}

/// A2–A5 for claims that are all true: the best cost, and an answer that answers itself.
fn judge(members: &[Subscriber], image: &TopicImage) {
    let shares = assign(&CooperativeSticky, members, image);
    let got = cost(members, &shares);
    assert_eq!(
        got,
        best(members, image),
        "{members:#?} {image:?} {shares:?}"
    );
    let settled = after(members, &shares, 9);
    assert_eq!(assign(&CooperativeSticky, &settled, image), shares, "A5");
}

/// Every subscription of three members to two topics, and every true claim.
#[test]
fn small_groups_get_the_best_answer_there_is() {
    for sizes in [(1, 1), (2, 1), (2, 2), (4, 0)] {
        let image = topics(&[("t0", sizes.0), ("t1", sizes.1)]);
        let all: Vec<(Topic, i32)> = image
            .partitions_of(&["t0".into(), "t1".into()])
            .iter()
            .map(|(topic, number)| (topic.clone(), number))
            .collect();
        for wants in 0..64_usize {
            for claims in 0..4_usize.pow(all.len() as u32) {
                let mut members: Vec<Subscriber> = (0..3)
                    .map(|at| {
                        let mask = wants >> (2 * at) & 3;
                        let list = ["", "t0", "t1", "t0 t1"][mask];
                        member(MEMBERS[at], list, "", 1)
                    })
                    .collect();
                let mut digits = claims;
                for (topic, number) in &all {
                    if let Some(one) = members.get_mut(digits % 4) {
                        one.owned.insert(topic, *number);
                    }
                    digits /= 4;
                }
                judge(&members, &image);
            }
        }
    }
}

/// A subscription, as a mask of topics.
fn subscribed(id: &str, mask: u8) -> Subscriber {
    let list: Vec<&str> = (0..TOPICS.len())
        .filter(|topic| mask >> topic & 1 == 1)
        .map(|topic| TOPICS[topic])
        .collect();
    member(id, &list.join(" "), "", 1)
}

fn images(largest: usize) -> impl Strategy<Value = TopicImage> {
    prop::collection::vec(0..=largest, TOPICS.len()).prop_map(|sizes| {
        let sizes: Vec<_> = TOPICS.into_iter().zip(sizes).collect();
        topics(&sizes)
    })
}

/// Groups whose claims are true: each partition is held by at most one member.
fn honest(
    largest: usize,
    masks: impl Strategy<Value = Vec<u8>>,
) -> impl Strategy<Value = (Vec<Subscriber>, TopicImage)> {
    let holders = prop::collection::vec(0..8_usize, TOPICS.len() * largest);
    (images(largest), masks, holders).prop_map(move |(image, masks, holders)| {
        let mut members: Vec<Subscriber> = MEMBERS
            .iter()
            .zip(masks)
            .map(|(id, mask)| subscribed(id, mask))
            .collect();
        for (at, (topic, info)) in image.iter().enumerate() {
            for number in 0..info.partitions() {
                let holder = holders[at * largest + number as usize];
                if let Some(one) = members.get_mut(holder) {
                    one.owned.insert(topic, number);
                }
            }
        }
        (members, image)
    })
}

/// Anything that members may claim: twice, stale, of topics that are gone, negative.
fn claims() -> impl Strategy<Value = (Partitions, i32)> {
    let one = (0..6_usize, -1..8_i32);
    (prop::collection::vec(one, 0..10), -1..4_i32).prop_map(|(list, generation)| {
        let named = |at: usize| TOPICS.get(at).copied().unwrap_or("gone");
        let set = list.into_iter().map(|(at, n)| (Topic::from(named(at)), n));
        (set.collect(), generation)
    })
}

fn messy() -> impl Strategy<Value = (Vec<Subscriber>, TopicImage)> {
    let one = (
        0..MEMBERS.len(),
        0..16_u8,
        claims(),
        prop::option::of("[xy]"),
    );
    (images(6), prop::collection::vec(one, 1..7)).prop_map(|(image, list)| {
        let members = list
            .into_iter()
            .map(|(id, mask, (owned, generation), rack)| {
                let mut one = subscribed(MEMBERS[id], mask);
                one.owned = owned;
                one.generation = (generation >= 0).then_some(generation);
                one.rack = rack;
                one
            });
        (members.collect(), image)
    })
}

/// What `sticky` reads is in the user data.
fn as_eager(members: &[Subscriber]) -> Vec<Subscriber> {
    let data = |one: &Subscriber| -> Option<Bytes> {
        Sticky.user_data(&one.topics, &one.owned, one.generation.unwrap_or(-1))
    };
    members
        .iter()
        .map(|one| Subscriber {
            user_data: data(one),
            owned: Partitions::new(),
            generation: None,
            ..one.clone()
        })
        .collect()
}

/// A2: nobody has a partition that another subscriber with at least two fewer could have.
fn fair(members: &[Subscriber], shares: &Shares) {
    for one in members {
        for (topic, _) in shares[&one.member_id].by_topic() {
            let rich = shares[&one.member_id].len();
            for other in members.iter().filter(|other| other.topics.contains(topic)) {
                let poor = shares[&other.member_id].len();
                assert!(
                    rich < poor + 2,
                    "{} has {rich}, {} {poor}",
                    one.member_id,
                    other.member_id
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn true_claims_and_any_subscriptions_get_the_best(
        (members, image) in honest(2, prop::collection::vec(0..16_u8, 1..4))
    ) {
        judge(&members, &image);
    }

    #[test]
    fn true_claims_and_equal_subscriptions_get_the_best(
        (members, image) in honest(2, (1..4_usize).prop_map(|n| vec![15; n]))
    ) {
        judge(&members, &image);
    }

    #[test]
    fn any_claims_are_repaired((members, image) in messy()) {
        // `assign` itself checks A1 and A6.
        assign(&Range, &members, &image);
        assign(&RoundRobin, &members, &image);
        let shares = assign(&CooperativeSticky, &members, &image);
        let once: BTreeMap<&str, usize> = members.iter().map(|one| (one.member_id.as_str(), 0)).collect();
        if once.len() == members.len() {
            fair(&members, &shares);
            let settled = after(&members, &shares, 9);
            prop_assert_eq!(&assign(&CooperativeSticky, &settled, &image), &shares);
            let eager = as_eager(&members);
            prop_assert_eq!(&assign(&Sticky, &eager, &image), &shares);
        }
    }
}
