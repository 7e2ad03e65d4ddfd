//! Words for writing assignor cases, and the judge that knows the best answer by other means.

#![allow(dead_code)]

use kohort_group::assign::{Assignor, Question, Shares, Subscriber, check};
use kohort_group::partitions::{Partitions, Topic};
use kohort_group::topics::{TopicImage, TopicInfo};

/// `topics(&[("a", 3)])`: topics and their sizes.
pub(crate) fn topics(sizes: &[(&str, usize)]) -> TopicImage {
    sizes
        .iter()
        .map(|(topic, size)| (Topic::from(*topic), TopicInfo::with_partitions(*size)))
        .collect()
}

/// `set("a-0 a-1")`.
pub(crate) fn set(list: &str) -> Partitions {
    list.split_whitespace()
        .map(|one| {
            let (topic, partition) = one.split_once('-').unwrap();
            (Topic::from(topic), partition.parse().unwrap())
        })
        .collect()
}

/// `member("m", "a b", "a-0", 3)`: what it wants, what it claims, since which generation (−1: it does not say).
pub(crate) fn member(id: &str, topics: &str, owned: &str, generation: i32) -> Subscriber {
    Subscriber {
        member_id: id.to_owned(),
        topics: topics.split_whitespace().map(Topic::from).collect(),
        owned: set(owned),
        generation: (generation >= 0).then_some(generation),
        ..Subscriber::default()
    }
}

/// What the assignor makes of it; the answer is checked, and must not depend on the order of members.
pub(crate) fn assign(
    assignor: &dyn Assignor,
    members: &[Subscriber],
    topics: &TopicImage,
) -> Shares {
    let available = topics.partitions_of(members.iter().flat_map(|one| &one.topics));
    let question = Question {
        subscribers: members,
        available: &available,
        topics,
    };
    let shares = assignor.assign(&question);
    check::check(assignor.name(), &question, &shares).unwrap();
    let mut reversed = members.to_vec();
    reversed.reverse();
    let question = Question {
        subscribers: &reversed,
        ..question
    };
    assert_eq!(
        assignor.assign(&question),
        shares,
        "A6: members in another order"
    );
    shares
}

/// The members after they have applied their shares in `generation`.
pub(crate) fn after(members: &[Subscriber], shares: &Shares, generation: i32) -> Vec<Subscriber> {
    members
        .iter()
        .map(|one| Subscriber {
            owned: shares[&one.member_id].clone(),
            generation: Some(generation),
            ..one.clone()
        })
        .collect()
}

/// How many partitions each member has, by member id.
pub(crate) fn sizes(shares: &Shares) -> Vec<usize> {
    shares.values().map(Partitions::len).collect()
}

/// How many partitions left the member that held them before.
pub(crate) fn moves(before: &Shares, after: &Shares) -> usize {
    before
        .iter()
        .map(|(id, held)| {
            after
                .get(id)
                .map_or(held.clone(), |now| held.minus(now))
                .len()
        })
        .sum()
}
