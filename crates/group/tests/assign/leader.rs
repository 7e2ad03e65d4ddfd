//! The leader's step: what members are told, around any assignor, in any mix of members.

use std::collections::BTreeMap;

use bytes::Bytes;
use kohort_group::assign::decode::{candidate, encode_plan, partitions_to_wire, user_data};
use kohort_group::assign::leader::{Candidate, Round, Situation, lead};
use kohort_group::assign::{
    AssignError, Assignor, CooperativeSticky, Question, Range, Shares, Subscriber, by_name,
};
use kohort_group::partitions::{Partitions, Topic};
use kohort_group::topics::TopicImage;
use kohort_wire::embedded::{Assignment, AssignmentError, Subscription};
use proptest::prelude::*;

use crate::support::*;

/// A cooperative assignor of somebody's own, which looks at no claims: what `deal` makes of the question.
#[derive(Debug)]
struct Custom(fn(&Question<'_>) -> Shares);

impl Assignor for Custom {
    fn name(&self) -> &str {
        "custom"
    }
    fn is_eager(&self) -> bool {
        false
    }
    fn user_data(&self, _: &[Topic], _: &Partitions, _: i32) -> Option<Bytes> {
        None
    }
    fn assign(&self, question: &Question<'_>) -> Shares {
        self.0(question)
    }
}

const IN_RUNS: Custom = Custom(|question| Range.assign(question));

fn marked(subscriber: Subscriber) -> Candidate {
    Candidate {
        subscriber,
        version: 3,
        marked: true,
    }
}

fn plain(subscriber: Subscriber) -> Candidate {
    Candidate {
        marked: false,
        ..marked(subscriber)
    }
}

fn round(assignor: &dyn Assignor, members: &[Candidate], topics: &TopicImage) -> Round {
    lead(Situation {
        members: members.to_vec(),
        topics,
        assignor,
        keep_owners: false,
    })
    .unwrap()
}

#[test]
fn what_moves_is_withheld_and_what_nobody_claims_goes_at_once() {
    let image = topics(&[("t", 5)]);
    let members = [
        marked(member("a", "t", "t-0 t-1 t-2 t-3", 1)),
        marked(member("b", "t", "", -1)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    let (a, b) = (&told.plans["a"], &told.plans["b"]);
    assert_eq!(a.assigned.len(), 3);
    assert_eq!(b.assigned, set("t-4"));
    let trailer = a.trailer.clone().unwrap();
    assert_eq!(trailer.revoked, told.withheld);
    assert!(trailer.need_rejoin);
    let trailer = b.trailer.clone().unwrap();
    assert!(trailer.revoked.is_empty() && trailer.need_rejoin);
}

#[test]
fn members_without_the_mark_get_a_plain_assignment() {
    let image = topics(&[("t", 2)]);
    let members = [
        plain(member("a", "t", "t-0 t-1", 1)),
        marked(member("b", "t", "", -1)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(told.plans["a"].trailer, None);
    assert_eq!(told.plans["a"].assigned.len(), 1);
    assert!(told.plans["b"].assigned.is_empty());
    assert!(told.plans["b"].trailer.clone().unwrap().need_rejoin);
}

/// Whatever the reason: a topic deleted, a topic no longer wanted, a partition that never was. Nobody waits for those.
#[test]
fn what_is_gone_or_unwanted_is_revoked_without_another_round() {
    let image = topics(&[("t", 1), ("u", 1)]);
    let claims = "t-0 t--3 t-9 u-0 gone-0";
    let told = round(
        &CooperativeSticky,
        &[marked(member("a", "t", claims, 1))],
        &image,
    );
    let trailer = told.plans["a"].trailer.clone().unwrap();
    assert_eq!(told.plans["a"].assigned, set("t-0"));
    assert_eq!(trailer.revoked, set("t--3 t-9 u-0 gone-0"));
    assert!(!trailer.need_rejoin);
}

/// KAFKA-7026, KIP-341: the claim of the newer generation stands, and the sleeper is told to let go.
#[test]
fn a_member_that_slept_loses_to_the_newer_claim() {
    let image = topics(&[("t", 1)]);
    let members = [
        marked(member("a", "t", "t-0", 1)),
        marked(member("b", "t", "t-0", 2)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(told.plans["b"].assigned, set("t-0"));
    let trailer = told.plans["a"].trailer.clone().unwrap();
    assert_eq!(trailer.revoked, set("t-0"));
    assert!(!trailer.need_rejoin, "nothing is on its way");

    let image = topics(&[("t", 6)]);
    let members = [
        marked(member("a", "t", "t-0 t-3", 1)),
        marked(member("b", "t", "t-0 t-1 t-4", 2)),
        marked(member("c", "t", "t-2 t-3 t-5", 2)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(sizes(&told.shares), [2, 2, 2]);
    assert!(
        told.plans["a"].assigned.is_empty(),
        "the owners give up first"
    );
    assert_eq!(told.withheld, told.shares["a"]);
}

/// KAFKA-14639: clashes go to the newest, what nobody contests stays, and nothing is revoked and given away in one round.
#[test]
fn stale_claims_that_nobody_contests_stand() {
    let image = topics(&[("p", 3), ("q", 3), ("r", 3)]);
    let members = [
        marked(member("a", "p q r", "p-0 q-0 r-0", 10)),
        marked(member("b", "p q r", "p-1 q-1 r-1", 9)),
        marked(member("c", "p q r", "q-1 r-0 r-2", 8)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(told.plans["a"].assigned, set("p-0 q-0 r-0"));
    assert_eq!(told.plans["b"].assigned, set("p-1 q-1 r-1"));
    assert_eq!(told.plans["c"].assigned, set("p-2 q-2 r-2"));
    assert!(told.withheld.is_empty());
}

/// KAFKA-12984: two claims of one generation: neither is believed, and nobody gets the partition before both have let go.
#[test]
fn a_partition_claimed_twice_in_one_generation_is_withheld() {
    let image = topics(&[("t", 3)]);
    let members = [
        marked(member("a", "t", "t-0 t-1", 4)),
        marked(member("b", "t", "t-0 t-2", 4)),
        marked(member("c", "t", "", -1)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(told.plans["a"].assigned, set("t-1"));
    assert_eq!(told.plans["b"].assigned, set("t-2"));
    assert!(told.plans["c"].assigned.is_empty());
    assert_eq!(told.withheld, set("t-0"));
    for id in ["a", "b"] {
        assert_eq!(told.plans[id].trailer.clone().unwrap().revoked, set("t-0"));
    }
}

/// Some clients claim without a generation; a leader that does not believe them takes nearly all from them each time.
#[test]
fn claims_without_a_generation_are_believed_where_nobody_contradicts() {
    let image = topics(&[("t", 4)]);
    let members = [
        plain(member("a", "t", "t-2 t-3", -1)),
        marked(member("b", "t", "t-0 t-1", 7)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(told.plans["a"].assigned, set("t-2 t-3"));
    assert!(told.withheld.is_empty());
}

/// franz-go 4deed686: who wins the clash no longer subscribes. The other gets the partition, once the winner has let go.
#[test]
fn a_winner_that_does_not_subscribe_is_waited_for() {
    let image = topics(&[("t", 1), ("u", 1)]);
    let members = [
        marked(member("a", "t", "t-0", 1)),
        marked(member("b", "u", "t-0", 2)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(told.shares["a"], set("t-0"));
    assert_eq!(told.withheld, set("t-0"));
    assert_eq!(told.plans["b"].trailer.clone().unwrap().revoked, set("t-0"));
    assert_eq!(told.plans["a"].trailer.clone().unwrap().revoked, set("t-0"));
}

/// Under an eager assignor all was given up before the join, whatever a client still writes.
#[test]
fn an_eager_answer_is_handed_on_as_it_is() {
    let image = topics(&[("t", 2)]);
    let members = [
        plain(member("a", "t", "t-1", 1)),
        marked(member("b", "t", "t-0", 1)),
    ];
    let told = round(&Range, &members, &image);
    assert_eq!(told.plans["a"].assigned, set("t-0"));
    assert_eq!(told.plans["b"].assigned, set("t-1"));
    assert!(told.plans.values().all(|plan| plan.trailer.is_none()));
    assert!(told.withheld.is_empty());
}

/// Around an assignor that ignores claims, a group with eager members pins: one round, nothing revoked.
#[test]
fn a_mixed_group_pins_claims_where_the_assignor_ignores_them() {
    let image = topics(&[("t", 8)]);
    let members = [
        marked(member("a", "t", "t-6 t-7", 1)),
        marked(member("b", "t", "", -1)),
        plain(member("c", "t", "", -1)),
    ];
    let told = round(&IN_RUNS, &members, &image);
    assert!(told.pinned && told.withheld.is_empty());
    assert!(told.plans["a"].assigned.is_superset_of(&set("t-6 t-7")));
    assert!(told.plans.values().all(|plan| plan.assigned.len() >= 2));
}

#[test]
fn nobody_starves_for_the_sake_of_pinning() {
    let image = topics(&[("t", 4)]);
    let members = [
        marked(member("a", "t", "t-0 t-1 t-2 t-3", 1)),
        plain(member("b", "t", "", -1)),
    ];
    for assignor in [&IN_RUNS as &dyn Assignor, &CooperativeSticky] {
        let told = round(assignor, &members, &image);
        assert!(!told.pinned);
        assert_eq!(told.plans["a"].assigned.len(), 2);
        assert_eq!(told.withheld.len(), 2);
    }
}

/// An assignor that never settles is stopped: the owners are kept, and only what is free is shared out.
#[test]
fn owners_are_kept_when_nothing_settles() {
    let image = topics(&[("t", 4)]);
    let members = [
        marked(member("a", "t", "t-2 t-3", 3)),
        marked(member("b", "t", "t-0", 3)),
    ];
    let told = lead(Situation {
        members: members.to_vec(),
        topics: &image,
        assignor: &IN_RUNS,
        keep_owners: true,
    })
    .unwrap();
    assert!(told.pinned && told.withheld.is_empty());
    assert!(told.plans["a"].assigned.is_superset_of(&set("t-2 t-3")));
    assert!(told.plans["b"].assigned.contains("t", 0));
}

/// franz-go 2d65fcb4: a member that is listed twice is one, and all is assigned.
#[test]
fn a_member_that_is_listed_twice_is_one() {
    let image = topics(&[("t", 3)]);
    let members = [
        marked(member("a", "t", "t-0", 1)),
        marked(member("a", "t", "t-1", 1)),
        marked(member("b", "t", "", -1)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    assert_eq!(told.plans.len(), 2);
    assert_eq!(told.plans["a"].assigned, set("t-0 t-1"));
    assert_eq!(told.plans["b"].assigned, set("t-2"));
}

fn answer(list: &[(&str, &str)]) -> Shares {
    list.iter()
        .map(|(id, parts)| ((*id).to_owned(), set(parts)))
        .collect()
}

/// A custom assignor's mistakes are named before anybody hears of them.
#[test]
fn a_wrong_answer_is_named() {
    let image = topics(&[("t", 2), ("u", 1)]);
    type Case = (fn(&Question<'_>) -> Shares, &'static str);
    let wrong: [Case; 6] = [
        (|_| answer(&[("a", "t-0"), ("b", "u-0")]), "lost t-1"),
        (
            |_| answer(&[("a", "t-0 t-1"), ("b", "t-1 u-0")]),
            "gave t-1 twice: to a and to b",
        ),
        (
            |_| answer(&[("a", "t-0 t-1 u-0"), ("b", "")]),
            "gave u-0 to a, which does not subscribe",
        ),
        (
            |_| answer(&[("a", "t-0 t-1 t-2"), ("b", "u-0")]),
            "gave t-2 to a, which was not to be given",
        ),
        (|_| answer(&[("a", "t-0 t-1 u-0")]), "b is missing"),
        (
            |_| answer(&[("a", "t-0 t-1"), ("b", "u-0"), ("x", "")]),
            "x is not in the group",
        ),
    ];
    for (deal, expected) in wrong {
        let outcome = lead(Situation {
            members: vec![
                marked(member("a", "t", "", 0)),
                marked(member("b", "t u", "", 0)),
            ],
            topics: &image,
            assignor: &Custom(deal),
            keep_owners: false,
        });
        let text = outcome
            .map_err(|error: AssignError| error.to_string())
            .unwrap_err();
        assert!(text.contains(expected) && text.contains("custom"), "{text}");
    }
}

#[test]
fn a_candidate_is_read_from_its_metadata() {
    let said = |generation, user_data| Subscription {
        version: 3,
        topics: vec!["b".into(), "a".into(), "b".into()],
        user_data,
        owned: partitions_to_wire(&set("a-1")),
        generation,
        rack: None,
    };
    let topics: Vec<Topic> = vec!["a".into(), "b".into()];
    let explicit = user_data(&CooperativeSticky, &topics, &set("a-1"), 6, true);
    let read = |bytes, protocol| candidate("m", Some("i"), bytes, protocol).unwrap();

    let one = read(
        said(Some(5), explicit.clone()).encode(),
        "cooperative-sticky",
    );
    assert!(one.marked);
    assert_eq!(one.subscriber.topics, topics);
    assert_eq!(one.subscriber.generation, Some(5), "the field comes first");
    assert_eq!(one.subscriber.instance_id.as_deref(), Some("i"));
    let one = read(said(None, explicit).encode_as(1), "custom");
    assert_eq!((one.version, one.subscriber.generation), (1, Some(6)));

    let shipped = user_data(&CooperativeSticky, &topics, &set("a-1"), 6, false);
    assert_eq!(shipped.as_deref(), Some(&[0, 0, 0, 6][..]));
    let one = read(said(None, shipped.clone()).encode(), "cooperative-sticky");
    assert_eq!((one.marked, one.subscriber.generation), (false, Some(6)));
    let one = read(said(None, shipped).encode(), "custom");
    assert_eq!(
        one.subscriber.generation, None,
        "others' user data is their own"
    );
    assert!(candidate("m", None, Bytes::from_static(b"\0"), "range").is_err());
    assert_eq!(user_data(&Range, &topics, &set(""), 1, true), None);
}

#[test]
fn a_plan_is_written_with_its_trailer() {
    let image = topics(&[("t", 2)]);
    let members = [
        marked(member("a", "t", "t-0 t-1", 1)),
        plain(member("b", "t", "", -1)),
    ];
    let told = round(&CooperativeSticky, &members, &image);
    let a = Assignment::decode(encode_plan(&told.plans["a"])).unwrap();
    let trailer = a.trailer.unwrap();
    assert_eq!(trailer.error, AssignmentError::NeedRejoin);
    assert_eq!(trailer.revoked, partitions_to_wire(&told.withheld));
    let b = Assignment::decode(encode_plan(&told.plans["b"])).unwrap();
    assert_eq!(
        b,
        Assignment {
            version: 3,
            ..Assignment::default()
        }
    );
}

#[test]
fn the_built_in_assignors_go_by_kafkas_names() {
    for (name, eager) in [
        ("range", true),
        ("roundrobin", true),
        ("sticky", true),
        ("cooperative-sticky", false),
    ] {
        let assignor = by_name(name).unwrap();
        assert_eq!((assignor.name(), assignor.is_eager()), (name, eager));
    }
    assert!(by_name("stream").is_none());
}

/// What kind of member it is: it knows the explicit form, it is cooperative without it, or it gives all up before it joins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Explicit,
    Cooperative,
    Eager,
}

fn group() -> impl Strategy<Value = Vec<(Kind, Subscriber)>> {
    let kind = prop::sample::select(vec![Kind::Explicit, Kind::Cooperative, Kind::Eager]);
    let claim = (prop::sample::select(vec!["s", "t", "u", "gone"]), -1..6_i32);
    let one = (kind, 1..8_u8, prop::collection::vec(claim, 0..6), -1..4_i32);
    prop::collection::vec(one, 1..6).prop_map(|list| {
        let members = list
            .into_iter()
            .enumerate()
            .map(|(at, (kind, mask, claims, generation))| {
                let wants: Vec<&str> = ["s", "t", "u"]
                    .into_iter()
                    .enumerate()
                    .filter(|(bit, _)| mask >> bit & 1 == 1)
                    .map(|(_, topic)| topic)
                    .collect();
                let mut one = member(&format!("m{at}"), &wants.join(" "), "", generation);
                if kind != Kind::Eager {
                    one.owned = claims
                        .into_iter()
                        .map(|(t, n)| (Topic::from(t), n))
                        .collect();
                }
                (kind, one)
            });
        members.collect()
    })
}

/// What holds in each round: see the names of the assertions.
fn examine(members: &[(Kind, Subscriber)], told: &Round) {
    let mut given = Partitions::new();
    for (kind, one) in members {
        let plan = &told.plans[&one.member_id];
        assert!(given.intersection(&plan.assigned).is_empty(), "two owners");
        given.extend(&plan.assigned);
        for (topic, number) in plan.assigned.iter() {
            let newest = members
                .iter()
                .map(|(_, other)| other)
                .filter(|other| other.owned.contains(topic, number))
                .max_by_key(|other| other.generation);
            let newest_is_mine = newest.is_none_or(|newest| newest.member_id == one.member_id);
            assert!(
                newest_is_mine,
                "{topic}-{number} was given away under its claimant"
            );
        }
        assert_eq!(plan.trailer.is_some(), *kind == Kind::Explicit);
        if let Some(trailer) = &plan.trailer {
            assert_eq!(trailer.revoked, one.owned.minus(&plan.assigned));
            assert_eq!(trailer.need_rejoin, !told.withheld.is_empty());
        }
    }
    assert!(given.intersection(&told.withheld).is_empty());
}

fn settles(assignor: &dyn Assignor, mut members: Vec<(Kind, Subscriber)>, image: &TopicImage) {
    for generation in 10.. {
        assert!(
            generation < 13,
            "A group that is left alone settles in two rounds"
        );
        let candidates: Vec<Candidate> = members
            .iter()
            .map(|(kind, one)| Candidate {
                subscriber: one.clone(),
                version: 3,
                marked: *kind == Kind::Explicit,
            })
            .collect();
        let told = round(assignor, &candidates, image);
        examine(&members, &told);
        for (kind, one) in &mut members {
            if *kind != Kind::Eager {
                one.owned = told.plans[&one.member_id].assigned.clone();
                one.generation = Some(generation);
            }
        }
        if told.withheld.is_empty() {
            let all: usize = told.plans.values().map(|plan| plan.assigned.len()).sum();
            let wanted = members.iter().flat_map(|(_, one)| &one.topics);
            assert_eq!(all, image.partitions_of(wanted).len());
            no_one_starves(assignor, &members, image, &told);
            return;
        }
    }
}

fn no_one_starves(
    assignor: &dyn Assignor,
    members: &[(Kind, Subscriber)],
    image: &TopicImage,
    told: &Round,
) {
    let subscribers: Vec<Subscriber> = members.iter().map(|(_, one)| one.clone()).collect();
    let available = image.partitions_of(subscribers.iter().flat_map(|one| &one.topics));
    let free = assignor.assign(&Question {
        subscribers: &subscribers,
        available: &available,
        topics: image,
    });
    let by_id: BTreeMap<&String, usize> = told
        .plans
        .iter()
        .map(|(id, plan)| (id, plan.assigned.len()))
        .collect();
    for (id, share) in free {
        assert!(share.is_empty() || by_id[&id] > 0, "{id} starves");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_mix_of_members_is_safe_and_settles(members in group()) {
        let image = topics(&[("s", 2), ("t", 5), ("u", 3)]);
        settles(&CooperativeSticky, members.clone(), &image);
        settles(&IN_RUNS, members, &image);
    }
}
