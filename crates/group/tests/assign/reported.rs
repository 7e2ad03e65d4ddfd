//! More public reports about assignors and the leader's step, with the very numbers that were reported.

use bytes::Bytes;
use kohort_group::assign::decode::{candidate, encode_plan};
use kohort_group::assign::leader::{Candidate, Round, Situation, lead};
use kohort_group::assign::{
    Assignor, CooperativeSticky, Range, RoundRobin, Shares, Sticky, Subscriber,
};
use kohort_group::partitions::Partitions;
use kohort_group::topics::TopicImage;
use kohort_wire::embedded::{Assignment, StickyUserData, Subscription, TopicPartitions};
use std::collections::BTreeMap;

use crate::support::*;

fn round(members: &[Subscriber], image: &TopicImage) -> Round {
    let members = members.iter().map(|one| Candidate {
        subscriber: one.clone(),
        version: 3,
        marked: false,
    });
    lead(Situation {
        members: members.collect(),
        topics: image,
        assignor: &CooperativeSticky,
        keep_owners: false,
    })
    .unwrap()
}

fn assigned(told: &Round) -> Shares {
    told.plans
        .iter()
        .map(|(id, plan)| (id.clone(), plan.assigned.clone()))
        .collect()
}

/// librdkafka#4044: two topics of 18 partitions, and a ninth member comes: each of the nine has two of each topic.
#[test]
fn two_topics_of_eighteen_are_even_among_nine() {
    let image = topics(&[("p", 18), ("q", 18)]);
    let names: Vec<String> = (0..9).map(|at| format!("m{at}")).collect();
    let mut members: Vec<Subscriber> = Vec::new();
    let mut shares = Shares::new();
    for name in &names {
        members = after(&members, &shares, 1);
        members.push(member(name, "p q", "", -1));
        shares = assign(&CooperativeSticky, &members, &image);
    }
    for (id, share) in &shares {
        let each = (share.numbers("p").len(), share.numbers("q").len());
        assert_eq!(each, (2, 2), "{id}");
    }
}

/// KAFKA-12464: the partition that a member over its quota gives up is withheld in the round that takes it, and given in the next.
#[test]
fn the_one_partition_that_moves_takes_two_rounds() {
    let image = topics(&[("p", 2), ("q", 2)]);
    let mut members = [
        member("a", "p q", "p-0 q-0", 1),
        member("b", "p q", "p-1 q-1", 1),
        member("c", "p q", "", -1),
    ]
    .to_vec();
    let told = round(&members, &image);
    let first = assigned(&told);
    assert_eq!(sizes(&first)[2], 0, "nothing in the first round");
    assert_eq!(sizes(&first).iter().sum::<usize>(), 3);
    assert_eq!(told.withheld.len(), 1);
    members = after(&members, &first, 2);
    let told = round(&members, &image);
    assert_eq!(told.plans["c"].assigned.len(), 1);
    assert!(told.withheld.is_empty());
    for id in ["a", "b"] {
        assert_eq!(told.plans[id].assigned, first[id]);
    }
}

/// KAFKA-12464: who is at the quota keeps it all, and the rest makes one of them the largest.
#[test]
fn of_two_with_two_each_one_ends_with_three() {
    let image = topics(&[("p", 2), ("q", 3)]);
    let members = [
        member("a", "p q", "p-0 q-1", 1),
        member("b", "p q", "p-1 q-2", 1),
    ];
    let told = round(&members, &image);
    let mut counts = sizes(&assigned(&told));
    counts.sort_unstable();
    assert_eq!(counts, [2, 3]);
    assert!(told.withheld.is_empty());
}

/// KAFKA-9987: two thousand members share 200 topics of 2,000 partitions, all in seconds even without an optimised build: a second run
/// moves nothing, and when one goes only its partitions move. Anything that is done for each member and each partition would take hours.
#[test]
fn two_thousand_members_are_no_burden() {
    let names: Vec<String> = (0..200).map(|topic| format!("t{topic}")).collect();
    let list: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 2_000)).collect();
    let image = topics(&list);
    let wants = names.join(" ");
    let members: Vec<Subscriber> = (0..2_000)
        .map(|at| member(&format!("m{at:04}"), &wants, "", -1))
        .collect();
    let first = round(&members, &image);
    let shares = assigned(&first);
    assert!(sizes(&shares).iter().all(|size| *size == 200));
    let settled = after(&members, &shares, 1);
    let second = round(&settled, &image);
    assert_eq!(assigned(&second), shares);
    let third = round(&settled[1..], &image);
    assert_eq!(moves(&shares, &assigned(&third)), shares["m0000"].len());
}

/// librdkafka#2121: the member whose turn it is does not subscribe, and is the last in order: the circle goes on from its beginning.
#[test]
fn the_circle_goes_round_past_the_last_member() {
    let image = topics(&[("x", 3), ("y", 3)]);
    let members = [
        member("m1", "x y", "", -1),
        member("m2", "y", "", -1),
        member("m3", "x", "", -1),
    ];
    let shares = assign(&RoundRobin, &members, &image);
    assert_eq!(shares["m1"], set("x-0 x-2 y-1"));
    assert_eq!(shares["m2"], set("y-0 y-2"));
    assert_eq!(shares["m3"], set("x-1"));
}

/// KAFKA-18688: the smaller share comes first in order, and stays, whichever order the members are listed in.
#[test]
fn five_partitions_stay_with_the_two_that_have_them() {
    let image = topics(&[("t", 5)]);
    for (a, b) in [
        ("t-0 t-1", "t-2 t-3 t-4"),
        ("t-0 t-1 t-2", "t-3 t-4"),
        ("t-4 t-0", "t-2 t-3 t-1"),
    ] {
        let members = [member("a", "t", a, 1), member("b", "t", b, 1)];
        // `assign` asks in the other order, too.
        let shares = assign(&CooperativeSticky, &members, &image);
        assert_eq!((&shares["a"], &shares["b"]), (&set(a), &set(b)));
    }
}

/// sarama#2243: whatever the member ids are, two topics of one size go the same way.
#[test]
fn range_pairs_topics_for_any_ids() {
    let image = topics(&[("u", 6), ("v", 6)]);
    let mut random = 7_u64;
    for count in [3, 4].repeat(50) {
        let members: Vec<Subscriber> = (0..count)
            .map(|_| {
                random = next(random);
                member(&format!("{random:x}"), "u v", "", -1)
            })
            .collect();
        let shares = assign(&Range, &members, &image);
        let mut first = Vec::new();
        for share in shares.values() {
            assert_eq!(share.numbers("u"), share.numbers("v"));
            first.extend(share.numbers("u").iter().copied());
        }
        assert!(first.is_sorted(), "in the order of ids: {first:?}");
    }
}

fn next(random: u64) -> u64 {
    random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// franz-go 4deed686: any subscriptions with any claims of any age: never a panic, each partition to one subscriber, and a second round
/// of the answer changes nothing.
#[test]
fn any_claims_of_any_age_end_in_a_valid_answer() {
    let names = ["t0", "t1", "t2"];
    let seeds = if cfg!(debug_assertions) {
        5_000
    } else {
        100_000
    };
    for seed in 0..seeds {
        let mut random = next(next(seed));
        let mut pick = |below: u64| {
            random = next(random);
            (random >> 33) % below
        };
        let list: Vec<(&str, usize)> = names.iter().map(|n| (*n, pick(5) as usize)).collect();
        let image = topics(&list);
        let count = 1 + pick(5);
        let members: Vec<Subscriber> = (0..count)
            .map(|at| {
                let wants: Vec<&str> = names.into_iter().filter(|_| pick(3) > 0).collect();
                let owned: Vec<String> = (0..pick(6))
                    .map(|_| format!("t{}-{}", pick(4), pick(6)))
                    .collect();
                let generation = pick(5) as i32 - 1;
                member(
                    &format!("m{at}"),
                    &wants.join(" "),
                    &owned.join(" "),
                    generation,
                )
            })
            .collect();
        // `assign` checks that the answer is whole, and the same in another order.
        let shares = assign(&CooperativeSticky, &members, &image);
        let settled = after(&members, &shares, 9);
        assert_eq!(
            assign(&CooperativeSticky, &settled, &image),
            shares,
            "{seed}"
        );
        let told = round(&members, &image);
        for (topic, partition) in told.plans.values().flat_map(|plan| plan.assigned.iter()) {
            let owners = told.plans.values();
            let owners = owners.filter(|plan| plan.assigned.contains(topic, partition));
            assert_eq!(owners.count(), 1, "{seed}: {topic}-{partition}");
        }
    }
}

/// kafka-python#2305, sarama#1493: sticky alone in the list: what was owned goes into the next metadata with its generation, comes out of
/// it again, and is kept.
#[test]
fn sticky_alone_keeps_what_it_wrote() {
    let image = topics(&[("t", 6)]);
    let wants = ["t".into()];
    let metadata = |owned: &Partitions, generation: i32| {
        Subscription {
            topics: wants.to_vec(),
            user_data: Sticky.user_data(&wants, owned, generation),
            ..Subscription::default()
        }
        .encode()
    };
    for owned in ["", "t-3", "t-0 t-1 t-2 t-3 t-4 t-5"] {
        let owned = set(owned);
        let a = candidate("a", None, metadata(&owned, 4), "sticky").unwrap();
        let b = candidate("b", None, metadata(&set(""), -1), "sticky").unwrap();
        let told = lead(Situation {
            members: vec![a, b],
            topics: &image,
            assignor: &Sticky,
            keep_owners: false,
        })
        .unwrap();
        let kept = told.shares["a"].intersection(&owned).len();
        assert_eq!(kept, owned.len().min(3));
        assert_eq!(sizes(&told.shares), [3, 3]);
    }
    let data = Sticky.user_data(&wants, &set("t-3"), 4).unwrap();
    let read = StickyUserData::decode(&data);
    assert_eq!(read.generation, Some(4));
    assert_eq!(
        read.previous,
        [TopicPartitions {
            topic: "t".into(),
            partitions: vec![3]
        }]
    );
}

/// kafkajs#550, kfake a260afb9: three members and two partitions: the leader writes something for everybody, and it can be read.
#[test]
fn who_gets_nothing_is_told_so_in_bytes() {
    let image = topics(&[("t", 2)]);
    let members = ["a", "b", "c"].map(|id| member(id, "t", "", -1));
    for assignor in [&CooperativeSticky as &dyn Assignor, &Range, &RoundRobin] {
        let told = lead(Situation {
            members: members
                .iter()
                .map(|one| Candidate {
                    subscriber: one.clone(),
                    ..Candidate::default()
                })
                .collect(),
            topics: &image,
            assignor,
            keep_owners: false,
        })
        .unwrap();
        let bytes: BTreeMap<&str, Bytes> = told
            .plans
            .iter()
            .map(|(id, plan)| (id.as_str(), encode_plan(plan)))
            .collect();
        assert_eq!(bytes.len(), 3);
        assert!(bytes.values().all(|bytes| bytes.len() >= 6));
        let read = Assignment::decode(bytes["c"].clone()).unwrap();
        assert!(read.assigned.is_empty());
    }
}
