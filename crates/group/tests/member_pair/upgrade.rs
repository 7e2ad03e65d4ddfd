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

/// KIP-429's two rolling bounces, and back again: at no step two owners, and everything owned after each (franz-go#686).
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
