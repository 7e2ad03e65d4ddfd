//! Members leave, in good order and otherwise.

use crate::room::Room;
use kohort_group::member::{Input, StateName};
use kohort_wire::ApiKey;

/// A close hands over before it leaves: nobody waits for a heartbeat interval to hear of it.
#[test]
fn a_close_leaves_no_gap() {
    let mut room = Room::new(&[("t", 6)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    let c = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2, 2]);
    room.pass(20_000);
    for leaver in [c, a] {
        room.longest_free = 0;
        room.tell(leaver, Input::Close { drain: true });
        room.until(10_000, "closed", |room| {
            room.people[leaver].member.state() == StateName::Closed
        });
        room.until(10_000, "taken over", Room::settled);
        assert!(room.longest_free <= 120, "{} ms", room.longest_free);
        room.pass(20_000);
    }
    assert_eq!(room.people[b].owned.len(), 6);
    assert!(!room.story(b).iter().any(|text| text.starts_with("lost")));
}

/// The last member has nobody to hand over to: it leaves at once.
#[test]
fn the_last_member_just_leaves() {
    let mut room = Room::new(&[("t", 2)]);
    let a = room.enter(|_| {});
    room.settle(1_000);
    let joins = room.people[a].sent[&ApiKey::JoinGroup];
    room.tell(a, Input::Close { drain: true });
    let took = room.until(1_000, "closed", |room| {
        room.people[a].member.state() == StateName::Closed
    });
    assert!(took < 20);
    assert_eq!(room.people[a].sent[&ApiKey::JoinGroup], joins);
}

/// Without draining the others hear of it by heartbeat, in the interval at the latest.
#[test]
fn a_plain_leave_is_heard_of_by_heartbeat() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(20_000);
    room.tell(a, Input::Close { drain: false });
    let took = room.until(5_000, "taken over", |room| room.people[b].owned.len() == 4);
    assert!(took <= 3_050);
}

/// KIP-345: a static member that closes and comes back gets its partitions, and the others see nothing.
#[test]
fn a_static_restart_causes_no_rebalance() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|config| config.group_instance_id = Some("a".to_owned()));
    let b = room.enter(|config| config.group_instance_id = Some("b".to_owned()));
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(5_000);
    for leader_or_follower in [a, b] {
        let mine = room.people[leader_or_follower].owned.clone();
        let generation = room.generations;
        room.tell(leader_or_follower, Input::Close { drain: true });
        room.pass(1_000);
        assert_eq!(
            room.people[leader_or_follower]
                .sent
                .get(&ApiKey::LeaveGroup),
            None
        );
        let name = if leader_or_follower == a { "a" } else { "b" };
        let back = room.enter(|config| config.group_instance_id = Some(name.to_owned()));
        room.until(5_000, "back", |room| room.people[back].owned == mine);
        room.pass(10_000);
        assert_eq!(room.generations, generation);
        if leader_or_follower == a {
            // The one that leads now watches the topics: partitions that are added are shared out.
            continue;
        }
    }
    let before = room.generations;
    room.change_topics("t", 8);
    room.until(5_000, "shared", Room::settled);
    assert_eq!(room.generations, before + 1);
}

/// librdkafka#2635, franz-go#931, KIP-345: of two processes with one instance id the older one ends, and does not remove the other by
/// leaving.
#[test]
fn the_older_of_two_instances_is_fenced() {
    let mut room = Room::new(&[("t", 2)]);
    room.strict = false;
    let old = room.enter(|config| config.group_instance_id = Some("i".to_owned()));
    room.settle(1_000);
    room.pass(10_000);
    room.people[old].fenced = true;
    let new = room.enter(|config| config.group_instance_id = Some("i".to_owned()));
    room.until(5_000, "fenced", |room| {
        room.people[old].member.state() == StateName::Fatal
    });
    room.pass(30_000);
    assert_eq!(room.people[new].member.state(), StateName::Stable);
    assert_eq!(room.people[new].owned.len(), 2);
    assert_eq!(room.people[old].sent.get(&ApiKey::LeaveGroup), None);
    assert_eq!(room.people[old].sent[&ApiKey::JoinGroup], 1);
}

/// librdkafka#4527: five members that open and close at random moments: all end, and nobody is left at the coordinator.
#[test]
fn members_that_close_while_joining_all_end() {
    for moment in 0..60 {
        let mut room = Room::new(&[("t", 5)]);
        for who in 0..5 {
            room.enter(|_| {});
            room.pass((who * 7 + moment) % 11);
        }
        room.pass(moment);
        for who in 0..5 {
            room.tell(
                who,
                Input::Close {
                    drain: who % 2 == 0,
                },
            );
            room.pass((who as u64 + moment) % 5);
        }
        room.until(12_000, "all closed", |room| {
            room.people
                .iter()
                .all(|p| p.member.state() == StateName::Closed && p.owned.is_empty())
        });
        // Whoever comes next does not wait for a session to end.
        room.enter(|_| {});
        let took = room.settle(15_000);
        assert!(took < 1_000, "moment {moment}: {took} ms");
    }
}
