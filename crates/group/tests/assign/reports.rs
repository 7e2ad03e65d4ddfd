//! Public bug reports about assignors, as cases. Each names the report that it stands for.

use crate::support::*;
use std::sync::Arc;

use kohort_group::assign::{CooperativeSticky, Range, RoundRobin, Subscriber, by_name};
use kohort_group::partitions::{Partitions, Topic};
use kohort_group::topics::TopicInfo;

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

/// KAFKA-12464: where the quotas can be met without a move, nothing moves.
#[test]
fn nothing_moves_where_the_quotas_are_met_already() {
    let image = topics(&[("p", 2), ("q", 3)]);
    let members = [
        member("a", "p q", "p-0", 1),
        member("b", "p q", "p-1", 1),
        member("c", "p q", "", -1),
    ];
    let shares = assign(&CooperativeSticky, &members, &image);
    assert!(shares["a"].contains("p", 0) && shares["b"].contains("p", 1));
    let mut counts = sizes(&shares);
    counts.sort_unstable();
    assert_eq!(counts, [1, 2, 2]);

    let members = [
        member("a", "p q", "p-0 q-1", 1),
        member("b", "p q", "p-1 q-2", 1),
    ];
    let shares = assign(&CooperativeSticky, &members, &image);
    for one in &members {
        assert!(shares[&one.member_id].is_superset_of(&one.owned));
    }
}

/// confluent-kafka-go#622, librdkafka#3306: members that stay swap nothing when another comes or goes.
#[test]
fn members_that_stay_swap_nothing() {
    let image = topics(&[("t", 10)]);
    let first = assign(&CooperativeSticky, &ids(&["a", "b"], "t"), &image);
    assert_eq!(sizes(&first), [5, 5]);
    let mut three = after(&ids(&["a", "b"], "t"), &first, 1);
    three.extend(ids(&["c"], "t"));
    let joined = assign(&CooperativeSticky, &three, &image);
    let mut counts = sizes(&joined);
    counts.sort_unstable();
    assert_eq!(counts, [3, 3, 4]);
    assert_eq!(moves(&first, &joined), 3);
    assert_eq!(joined["c"].len(), 3);

    let two: Vec<Subscriber> = after(&three, &joined, 2).into_iter().take(2).collect();
    let left = assign(&CooperativeSticky, &two, &image);
    assert_eq!(sizes(&left), [5, 5]);
    assert!(
        two.iter()
            .all(|one| left[&one.member_id].is_superset_of(&one.owned))
    );
}

/// KAFKA-18688: the odd partitions stay where they are, not with the first members in order.
#[test]
fn a_balanced_group_stays_as_it_is_whoever_has_the_odd_ones() {
    let image = topics(&[("t", 11)]);
    let members = [
        member("a", "t", "t-0 t-1 t-2", 1),
        member("b", "t", "t-3 t-4 t-5 t-6", 1),
        member("c", "t", "t-7 t-8 t-9 t-10", 1),
    ];
    let shares = assign(&CooperativeSticky, &members, &image);
    assert!(
        members
            .iter()
            .all(|one| shares[&one.member_id] == one.owned)
    );
}

/// KAFKA-7962, KAFKA-3661: a topic without metadata or without partitions is skipped by every assignor.
#[test]
fn topics_that_are_gone_are_skipped() {
    let members = [
        member("a", "t x", "t-0 x-0", 1),
        member("b", "t x", "t-1", 1),
    ];
    for image in [topics(&[("t", 2)]), topics(&[("t", 2), ("x", 0)])] {
        for name in ["range", "roundrobin", "sticky", "cooperative-sticky"] {
            let shares = assign(&*by_name(name).unwrap(), &members, &image);
            assert_eq!(
                (&shares["a"], &shares["b"]),
                (&set("t-0"), &set("t-1")),
                "{name}"
            );
        }
    }
    for name in ["range", "roundrobin", "sticky", "cooperative-sticky"] {
        let shares = assign(
            &*by_name(name).unwrap(),
            &ids(&["a", "b"], "x"),
            &topics(&[]),
        );
        assert_eq!(sizes(&shares), [0, 0], "{name}");
    }
}

/// franz-go 2d65fcb4: a member that is listed twice is one, for every assignor.
#[test]
fn a_member_listed_twice_loses_nothing() {
    let members = ids(&["a", "b", "a"], "t");
    for name in ["range", "roundrobin", "sticky", "cooperative-sticky"] {
        let shares = assign(&*by_name(name).unwrap(), &members, &topics(&[("t", 4)]));
        assert_eq!(sizes(&shares), [2, 2], "{name}");
    }
}

/// franz-go 4deed686: a claim won by a member that no longer subscribes does not hide the older one.
#[test]
fn a_claim_of_who_does_not_subscribe_hides_no_other() {
    let members = [member("a", "t", "t-0", 1), member("b", "u", "t-0", 2)];
    let shares = assign(&CooperativeSticky, &members, &topics(&[("t", 1), ("u", 1)]));
    assert_eq!((&shares["a"], &shares["b"]), (&set("t-0"), &set("u-0")));
}

/// aiokafka#1176: 84 members, seven subscriptions, no generations and clashing claims: an answer, and then rest.
#[test]
fn many_subscriptions_without_generations_settle() {
    let names: Vec<String> = (0..7).map(|topic| format!("t{topic}")).collect();
    let sizes: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 24)).collect();
    let image = topics(&sizes);
    let members: Vec<Subscriber> = (0..84)
        .map(|at| {
            let wants: Vec<&str> = (0..=at % 7).map(|topic| names[topic].as_str()).collect();
            let claim = format!("t0-{} t{}-{}", at % 24, at % 7, at % 12);
            member(&format!("m{at:02}"), &wants.join(" "), &claim, -1)
        })
        .collect();
    let shares = assign(&CooperativeSticky, &members, &image);
    let settled = after(&members, &shares, 1);
    assert_eq!(assign(&CooperativeSticky, &settled, &image), shares);
}

/// A static member keeps its place in the order when its member id changes: those with an instance id come first.
#[test]
fn static_members_come_first() {
    let mut members = ids(&["a", "b", "z"], "t");
    members[2].instance_id = Some("i".to_owned());
    let shares = assign(&Range, &members, &topics(&[("t", 4)]));
    assert_eq!(shares["z"], set("t-0 t-1"));
    assert_eq!(shares["a"], set("t-2"));
}

/// A topic whose partition n has replicas in the racks that the n-th text names, letter by letter.
fn in_racks(image: &mut Vec<(Topic, TopicInfo)>, topic: &str, racks: &[&str]) {
    let racks = racks.iter().map(|names| {
        let names = names.chars().map(|name| Arc::from(name.to_string()));
        names.collect()
    });
    let info = TopicInfo {
        racks: racks.collect(),
        ..TopicInfo::default()
    };
    image.push((topic.into(), info));
}

fn with_racks(members: &[(&str, &str)], topics: &str) -> Vec<Subscriber> {
    let one = |(id, rack): &(&str, &str)| Subscriber {
        rack: Some((*rack).to_owned()),
        ..member(id, topics, "", -1)
    };
    members.iter().map(one).collect()
}

/// KIP-881: a member first gets what has a replica in its rack; the counts stay those of range.
#[test]
fn range_prefers_the_members_rack() {
    let mut image = Vec::new();
    in_racks(&mut image, "t", &["y", "x", "y", "x"]);
    let image = image.into_iter().collect();
    let members = with_racks(&[("a", "x"), ("b", "y")], "t");
    let shares = assign(&Range, &members, &image);
    assert_eq!(
        (&shares["a"], &shares["b"]),
        (&set("t-1 t-3"), &set("t-0 t-2"))
    );
    // Where every partition is in every rack, or no member is where a replica is, racks say nothing.
    let everywhere = {
        let mut image = Vec::new();
        in_racks(&mut image, "t", &["xy", "xy", "xy", "xy"]);
        image.into_iter().collect()
    };
    let shares = assign(&Range, &members, &everywhere);
    assert_eq!(
        (&shares["a"], &shares["b"]),
        (&set("t-0 t-1"), &set("t-2 t-3"))
    );
    let strangers = with_racks(&[("a", "q"), ("b", "r")], "t");
    let shares = assign(&Range, &strangers, &image);
    assert_eq!(
        (&shares["a"], &shares["b"]),
        (&set("t-0 t-1"), &set("t-2 t-3"))
    );
}

/// KAFKA-14891: with racks, topics of one size move together, or the rack is not looked at.
#[test]
fn racks_do_not_part_topics_of_one_size() {
    let mut image = Vec::new();
    in_racks(&mut image, "u", &["x", "y", "x", "y", "x", "y"]);
    in_racks(&mut image, "v", &["y", "x", "x", "y", "y", "y"]);
    let image = image.into_iter().collect();
    let members = with_racks(&[("a", "x"), ("b", "y"), ("c", "z")], "u v");
    let shares = assign(&Range, &members, &image);
    assert!(
        shares
            .values()
            .all(|share| share.numbers("u") == share.numbers("v"))
    );
    assert!(shares["a"].contains("u", 2), "in rack x for both");
    assert_eq!(sizes(&shares), [4, 4, 4]);
}

/// KAFKA-9987: an equal group is shared out in one pass; a second run moves nothing, a leaver's partitions alone move.
#[test]
fn large_equal_groups_settle_with_the_fewest_moves() {
    let names: Vec<String> = (0..20).map(|topic| format!("t{topic:02}")).collect();
    let list: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 200)).collect();
    let image = topics(&list);
    let members: Vec<String> = (0..200).map(|at| format!("m{at:03}")).collect();
    let members: Vec<&str> = members.iter().map(String::as_str).collect();
    let members = ids(&members, &names.join(" "));
    let first = assign(&CooperativeSticky, &members, &image);
    let settled = after(&members, &first, 1);
    assert_eq!(assign(&CooperativeSticky, &settled, &image), first);
    let left = assign(&CooperativeSticky, &settled[1..], &image);
    assert_eq!(moves(&first, &left), first["m000"].len());
    assert!(sizes(&left).iter().all(|size| [20, 21].contains(size)));
}
