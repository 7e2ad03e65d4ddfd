//! Partitions move: who has them when, how many rounds it takes, and for how long nobody has them.

use crate::room::Room;
use kohort_group::assign::by_name;
use kohort_group::member::{Input, MemberConfig};
use kohort_group::reason::JoinReason;
use kohort_wire::ApiKey;

fn plain(config: &mut MemberConfig) {
    config.explicit_revocation = false;
}

fn eager(config: &mut MemberConfig) {
    config.assignors = vec![by_name("range").unwrap()];
}

/// A owns four, B joins: A revokes two and keeps two untouched; two rounds, and two round trips without an owner.
#[test]
fn explicit_moves_in_two_round_trips() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    room.settle(1_000);
    room.pass(20_000);
    let before = room.generations;
    let b = room.enter(|_| {});
    room.until(5_000, "B owns two", |room| room.people[b].owned.len() == 2);
    room.settle(1_000);
    assert_eq!(room.sizes(), [2, 2]);
    assert_eq!(room.generations - before, 2);
    assert_eq!(room.story(a).len(), 3, "{:?}", room.story(a));
    assert!(room.story(a)[1].starts_with("revoke "));
    // The releasing member joins at once, the other hears of it by a quick heartbeat.
    assert!(room.longest_free <= 100, "{} ms", room.longest_free);
}

/// The shipped form: the same moves; the quick heartbeats find the second round here too.
#[test]
fn plain_moves_without_waiting_for_the_interval() {
    let mut room = Room::new(&[("t", 4)]);
    room.enter(plain);
    room.settle(1_000);
    let b = room.enter(plain);
    room.until(5_000, "B owns two", |room| room.people[b].owned.len() == 2);
    room.settle(4_000);
    assert_eq!(room.sizes(), [2, 2]);
    assert!(room.longest_free <= 200, "{} ms", room.longest_free);
}

#[test]
fn eager_needs_one_round() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(eager);
    room.settle(1_000);
    let before = room.generations;
    room.enter(eager);
    room.until(5_000, "settled", |room| room.sizes() == [2, 2]);
    assert_eq!(room.generations - before, 1);
    let story = room.story(a);
    assert_eq!(story.len(), 4, "{story:?}");
    assert_eq!(story[1], "revoke t-0 t-1 t-2 t-3");
}

/// Members one after the other: never two owners, at most two rounds for each, and in the end equal shares.
#[test]
fn six_members_share_twelve_partitions() {
    for change in [(|_| {}) as fn(&mut MemberConfig), plain, eager] {
        let mut room = Room::new(&[("t", 7), ("u", 5)]);
        for count in 1..=6 {
            room.enter(change);
            room.until(10_000, "each has a share", |room| {
                // range shares each topic out for itself: four and three, three and two.
                room.settled() && room.people.iter().all(|p| p.owned.len() + 1 >= 12 / count)
            });
            room.pass(5_000);
        }
        let (least, most) = (
            room.sizes().into_iter().min(),
            room.sizes().into_iter().max(),
        );
        assert!(least >= Some(1) && most <= Some(3), "{:?}", room.sizes());
        assert!(room.generations <= 12, "{}", room.generations);
    }
}

/// The draft's herd, KAFKA-14382: the SyncGroup of a member that has to release is late each time, and the group settles all the same.
#[test]
fn a_late_sync_is_no_livelock() {
    let mut room = Room::new(&[("t", 6)]);
    room.enter(|_| {});
    room.settle(1_000);
    let a = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [3, 3]);
    room.people[a].late = Some((ApiKey::SyncGroup, 100));
    let before = room.generations;
    room.enter(|_| {});
    room.until(10_000, "shared", |room| room.sizes() == [2, 2, 2]);
    room.pass(2_000);
    assert!(
        room.generations - before <= 5,
        "{}",
        room.generations - before
    );
}

/// An application that takes two seconds to let go delays nobody else's additions and unsettles nothing.
#[test]
fn a_slow_release_delays_only_itself() {
    let mut room = Room::new(&[("t", 6)]);
    let a = room.enter(|_| {});
    room.settle(1_000);
    room.people[a].release_ms = 2_000;
    let before = room.generations;
    let b = room.enter(|_| {});
    let took = room.until(10_000, "shared", |room| room.sizes() == [3, 3]);
    assert!((2_000..2_500).contains(&took), "{took}");
    assert!(room.generations - before <= 2);
    assert_eq!(room.story(b).len(), 1);
}

/// A group that is left alone has no rebalance in a day (L4), and its members do nothing but beat.
#[test]
fn a_quiet_group_stays_quiet() {
    let mut room = Room::new(&[("t", 4)]);
    for _ in 0..3 {
        room.enter(|_| {});
    }
    room.until(5_000, "settled", Room::settled);
    room.pass(10_000);
    let (generations, joins) = (room.generations, room.people[0].sent[&ApiKey::JoinGroup]);
    let beats = room.people[0].sent[&ApiKey::Heartbeat];
    room.pass(3_600_000);
    assert_eq!(room.generations, generations);
    assert_eq!(room.people[0].sent[&ApiKey::JoinGroup], joins);
    let beats = room.people[0].sent[&ApiKey::Heartbeat] - beats;
    assert!(
        (1_150..=1_201).contains(&beats),
        "{beats} heartbeats in an hour"
    );
}

/// A dead member is out within its session timeout plus one beat (L5).
#[test]
fn the_partitions_of_the_dead_are_taken_over() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.kill(a);
    let took = room.until(20_000, "taken over", |room| room.people[b].owned.len() == 4);
    assert!(took <= 13_100, "{took}");
}

/// Partitions that are added are shared out, once.
#[test]
fn added_partitions_are_shared_out() {
    let mut room = Room::new(&[("t", 2)]);
    room.enter(|_| {});
    room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [1, 1]);
    let before = room.generations;
    room.change_topics("t", 6);
    room.until(5_000, "shared", |room| room.sizes() == [3, 3]);
    room.pass(5_000);
    assert_eq!(room.generations - before, 1);
}

/// The application asks for a rebalance: one round, nothing moves.
#[test]
fn a_rebalance_on_request_moves_nothing() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(5_000);
    for who in [a, b] {
        let (before, story) = (room.generations, room.story(who).len());
        room.tell(who, Input::RequestRebalance(JoinReason::Requested));
        room.until(5_000, "another generation", |room| {
            room.generations > before
        });
        room.pass(5_000);
        assert_eq!(room.generations - before, 1);
        assert_eq!(room.story(who).len(), story);
    }
}

/// A process that was stopped for longer than its session wakes up, loses everything first, and comes back.
#[test]
fn a_stopped_process_loses_everything_first() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|config| config.auto_commit_interval_ms = Some(500));
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(5_000);
    room.people[a].stopped = room.now + 20_000;
    room.until(15_000, "taken over", |room| room.people[b].owned.len() == 4);
    let before = room.story(a).len();
    room.pass(20_000);
    assert!(
        room.story(a)[before].starts_with("lost "),
        "{:?}",
        room.story(a)
    );
    room.until(5_000, "shared again", |room| room.sizes() == [2, 2]);
}
