//! Public bug reports about assignors, as cases. Each names the report that it stands for.

use crate::support::*;
use kohort_group::assign::{CooperativeSticky, Range, RoundRobin, Subscriber};
use kohort_group::partitions::Partitions;

fn ids(members: &[&str], topics: &str) -> Vec<Subscriber> {
    members
        .iter()
        .map(|id| member(id, topics, "", -1))
        .collect()
}

/// KAFKA-16277, librdkafka#4044: equal totals are not enough, each topic must be spread too.
#[test]
fn every_topic_stays_even_when_members_come_and_go() {
    let image = topics(&[("p", 12), ("q", 12)]);
    let mut members = ids(&["a"], "p q");
    let mut shares = assign(&CooperativeSticky, &members, &image);
    for (generation, group) in [&["a", "b"][..], &["a", "b", "c", "d"], &["c", "d"]]
        .into_iter()
        .enumerate()
    {
        members = ids(group, "p q");
        for one in &mut members {
            if let Some(owned) = shares.get(&one.member_id) {
                one.owned = owned.clone();
                one.generation = Some(generation as i32);
            }
        }
        shares = assign(&CooperativeSticky, &members, &image);
        for share in shares.values() {
            let each = 12 / group.len();
            assert_eq!(
                (share.numbers("p").len(), share.numbers("q").len()),
                (each, each)
            );
        }
    }
}

/// KAFKA-12464: of two members at the upper quota only one may stay there, and only one partition moves.
#[test]
fn one_of_two_members_above_the_quota_gives_up_one() {
    let image = topics(&[("p", 2), ("q", 2)]);
    let members = [
        member("a", "p q", "p-0 q-0", 1),
        member("b", "p q", "p-1 q-1", 1),
        member("c", "p q", "", -1),
    ];
    let shares = assign(&CooperativeSticky, &members, &image);
    let mut counts = sizes(&shares);
    assert_eq!(counts.pop(), Some(1));
    counts.sort_unstable();
    assert_eq!(counts, [1, 2]);
    let kept: usize = members
        .iter()
        .map(|m| shares[&m.member_id].intersection(&m.owned).len())
        .sum();
    assert_eq!(kept, 3);
}

/// librdkafka#2121: the circle of members skips who does not subscribe, and wraps round.
#[test]
fn round_robin_skips_who_does_not_subscribe() {
    let image = topics(&[("x", 3), ("y", 3)]);
    let members = [
        member("m1", "x", "", -1),
        member("m2", "x y", "", -1),
        member("m3", "y", "", -1),
    ];
    let shares = assign(&RoundRobin, &members, &image);
    assert_eq!(shares["m1"], set("x-0 x-2"));
    assert_eq!(shares["m2"], set("x-1 y-0 y-2"));
    assert_eq!(shares["m3"], set("y-1"));
}

/// sarama#2243, KAFKA-14891: topics of one size give each member the same partition numbers.
#[test]
fn range_gives_the_same_numbers_of_topics_of_one_size() {
    let image = topics(&[("u", 6), ("v", 6)]);
    for group in [&["x", "b", "q"][..], &["x", "b", "q", "0"]] {
        let shares = assign(&Range, &ids(group, "u v"), &image);
        assert!(
            shares
                .values()
                .all(|share| share.numbers("u") == share.numbers("v"))
        );
    }
    let shares = assign(&Range, &ids(&["b", "a", "c", "d"], "u"), &image);
    let runs: Vec<Partitions> = ["u-0 u-1", "u-2 u-3", "u-4", "u-5"].map(set).into();
    assert_eq!(shares.into_values().collect::<Vec<_>>(), runs);
}
