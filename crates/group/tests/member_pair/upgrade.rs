//! Rolling from eager to cooperative, and members of several kinds in one group.

use crate::room::Room;
use kohort_group::assign::by_name;
use kohort_group::member::{Input, MemberConfig};

fn with(names: &[&str], explicit: bool) -> impl FnOnce(&mut MemberConfig) {
    let assignors = names.iter().map(|name| by_name(name).unwrap()).collect();
    move |config: &mut MemberConfig| {
        config.assignors = assignors;
        config.explicit_revocation = explicit;
    }
}

/// Replaces a member by one with another list, as a rolling bounce does.
fn bounce(room: &mut Room, old: usize, names: &[&str]) -> usize {
    room.tell(old, Input::Close { drain: true });
    room.pass(500);
    let new = room.enter(with(names, true));
    room.until(15_000, "settled after a bounce", |room| {
        room.settled() && !room.people[new].owned.is_empty()
    });
    room.pass(4_000);
    new
}

/// KIP-429's two rolling bounces, and back again: at no step two owners, and everything owned after each (franz-go#686, librdkafka#4368,
/// confluent-kafka-go#605).
#[test]
fn two_rolling_bounces_and_back() {
    let mut room = Room::new(&[("t", 6)]);
    let mut people: Vec<usize> = (0..3).map(|_| room.enter(with(&["range"], true))).collect();
    room.until(10_000, "shared", |room| room.sizes() == [2, 2, 2]);
    room.pass(4_000);
    let steps: [&[&str]; 4] = [
        &["cooperative-sticky", "range"],
        &["cooperative-sticky"],
        &["cooperative-sticky", "range"],
        &["range"],
    ];
    for names in steps {
        for person in &mut people {
            *person = bounce(&mut room, *person, names);
        }
        let sizes: Vec<usize> = people.iter().map(|p| room.people[*p].owned.len()).collect();
        assert_eq!(sizes, [2, 2, 2], "{names:?}");
    }
    for person in &room.people {
        assert!(
            !person
                .seen
                .iter()
                .any(|(_, text)| text.starts_with("fatal"))
        );
    }
}

/// The six orders of three.
const ORDERS: [[usize; 3]; 6] = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
];

/// One group of three on range, for a story of bounces.
fn ranged() -> (Room, Vec<usize>) {
    let mut room = Room::new(&[("t", 6)]);
    let people: Vec<usize> = (0..3).map(|_| room.enter(with(&["range"], true))).collect();
    room.until(10_000, "shared", |room| room.sizes() == [2, 2, 2]);
    room.pass(4_000);
    (room, people)
}

/// The same in every order of both bounces, the leader's place among them: 36 ways up, each with another way down.
#[test]
fn bounces_in_every_order() {
    for first in ORDERS {
        for second in ORDERS {
            let (mut room, mut people) = ranged();
            let ways: [(&[&str], [usize; 3]); 4] = [
                (&["cooperative-sticky", "range"], first),
                (&["cooperative-sticky"], second),
                (&["cooperative-sticky", "range"], first),
                (&["range"], second),
            ];
            for (names, order) in ways {
                for who in order {
                    people[who] = bounce(&mut room, people[who], names);
                }
                let sizes: Vec<usize> =
                    people.iter().map(|p| room.people[*p].owned.len()).collect();
                assert_eq!(sizes, [2, 2, 2], "{first:?} {second:?} {names:?}");
            }
        }
    }
}

/// A member that never gets its second bounce stays eager in a cooperative group, whichever it is, and the group goes on around it.
#[test]
fn a_member_that_is_forgotten_half_way() {
    for forgotten in 0..3 {
        let (mut room, mut people) = ranged();
        for person in &mut people {
            *person = bounce(&mut room, *person, &["cooperative-sticky", "range"]);
        }
        for who in (0..3).filter(|who| *who != forgotten) {
            people[who] = bounce(&mut room, people[who], &["cooperative-sticky"]);
        }
        let fourth = room.enter(with(&["cooperative-sticky"], true));
        room.until(15_000, "shared by four", |room| {
            room.settled() && !room.people[fourth].owned.is_empty()
        });
        people[forgotten] = bounce(&mut room, people[forgotten], &["cooperative-sticky"]);
        assert!(people.iter().all(|p| !room.people[*p].owned.is_empty()));
    }
}

/// Members that know the explicit form, and members that do not, lead and follow each other.
#[test]
fn marked_and_unmarked_members_share_a_group() {
    for pattern in 0..8_u32 {
        let mut room = Room::new(&[("t", 6)]);
        for bit in 0..3 {
            let explicit = pattern >> bit & 1 == 1;
            room.enter(with(&["cooperative-sticky"], explicit));
            room.until(10_000, "settled", |room| {
                room.settled()
                    && room
                        .people
                        .iter()
                        .all(|p| p.owned.len() >= 6 / room.people.len())
            });
        }
        assert_eq!(room.sizes(), [2, 2, 2], "{pattern:03b}");
    }
}

/// [range, cooperative-sticky] is eager whatever the group picks (KIP-429), and shares a group with a cooperative member.
#[test]
fn eager_and_cooperative_members_share_a_group() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(with(&["cooperative-sticky"], true));
    room.settle(1_000);
    let b = room.enter(with(&["cooperative-sticky", "range"], true));
    room.until(15_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(5_000);
    room.enter(with(&["cooperative-sticky"], true));
    room.until(15_000, "shared", |room| {
        room.settled() && room.sizes().iter().all(|size| *size >= 1)
    });
    assert!(!room.story(a).iter().any(|text| text.starts_with("lost")));
    assert!(!room.story(b).iter().any(|text| text.starts_with("lost")));
}
