//! Commits in a group that rebalances.

use crate::room::Room;
use kohort_group::member::{CommitError, CommitId, Input, Offset};
use kohort_group::partitions::TopicPartition;

fn at(offset: i64) -> Offset {
    Offset {
        offset,
        leader_epoch: -1,
        metadata: String::new(),
    }
}

/// franz-go v1.13.2: commits from all sides during twenty rebalances; nobody hears of them, unless the partition has gone.
#[test]
fn no_rebalance_reaches_a_committer() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    let mut id = 0;
    for round in 0..20 {
        let asker = if round % 2 == 0 { a } else { b };
        room.tell(
            asker,
            Input::RequestRebalance(kohort_group::reason::JoinReason::Requested),
        );
        for _ in 0..15 {
            for who in [a, b] {
                let (topic, partition) = {
                    let (topic, partition) = room.people[who].owned.iter().next().unwrap();
                    (topic.clone(), partition)
                };
                id += 1;
                let offsets = [(TopicPartition { topic, partition }, at(id as i64))].into();
                let commit = Input::Commit {
                    id: CommitId(id),
                    offsets: Some(offsets),
                    retry: id % 2 == 0,
                };
                room.tell(who, commit);
            }
            room.pass(1);
        }
        room.pass(30);
    }
    room.pass(1_000);
    let results: Vec<_> = room
        .people
        .iter()
        .flat_map(|p| p.commits.values())
        .collect();
    assert_eq!(results.len() as u64, id);
    for result in results {
        assert!(result.is_ok(), "{result:?}");
    }
}

/// F4: with automatic commits the new owner starts exactly where the old one ended.
#[test]
fn the_new_owner_starts_where_the_old_one_ended() {
    for eager in [false, true] {
        let mut room = Room::new(&[("t", 2)]);
        let change = |config: &mut kohort_group::member::MemberConfig| {
            config.auto_commit_interval_ms = Some(60_000);
            if eager {
                let range = kohort_group::assign::by_name("range").unwrap();
                config.assignors = vec![range];
            }
        };
        let a = room.enter(change);
        room.settle(1_000);
        for partition in 0..2 {
            let one = TopicPartition::new("t", partition);
            room.tell(a, Input::Consumed(one, at(40 + i64::from(partition))));
        }
        let b = room.enter(change);
        room.until(5_000, "shared", |room| room.sizes() == [1, 1]);
        room.pass(100);
        let (start, offset) = room.people[b].starts.iter().next().unwrap();
        assert_eq!(*offset, Some(40 + i64::from(start.partition)), "{start}");
    }
}

/// Closing commits what was consumed.
#[test]
fn a_close_commits_what_was_consumed() {
    let mut room = Room::new(&[("t", 1)]);
    let a = room.enter(|config| config.auto_commit_interval_ms = Some(60_000));
    room.settle(1_000);
    room.tell(a, Input::Consumed(TopicPartition::new("t", 0), at(7)));
    room.tell(a, Input::Close { drain: true });
    room.pass(1_000);
    let b = room.enter(|_| {});
    room.pass(1_000);
    assert_eq!(room.people[b].starts[&TopicPartition::new("t", 0)], Some(7));
}

/// A commit of what has gone meanwhile says so.
#[test]
fn a_commit_of_what_has_gone_is_refused() {
    let mut room = Room::new(&[("t", 2)]);
    let a = room.enter(|_| {});
    room.settle(1_000);
    room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [1, 1]);
    let gone = (0..2)
        .map(|partition| TopicPartition::new("t", partition))
        .find(|one| !room.people[a].owned.contains("t", one.partition))
        .unwrap();
    let commit = Input::Commit {
        id: CommitId(1),
        offsets: Some([(gone, at(1))].into()),
        retry: true,
    };
    room.tell(a, commit);
    assert!(matches!(
        room.people[a].commits[&1],
        Err(CommitError::NotOwned(_))
    ));
}
