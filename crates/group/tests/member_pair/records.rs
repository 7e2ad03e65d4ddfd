//! The rebalance record: one for each rebalance, from the coordinator and from the members.

use crate::room::Room;
use kohort_group::assign::by_name;
use kohort_group::history::{CauseKind, RebalanceRecord, WaitedTo};
use kohort_group::member::{Input, MemberConfig};
use kohort_group::reason::JoinReason;

fn plain(config: &mut MemberConfig) {
    config.explicit_revocation = false;
}

fn eager(config: &mut MemberConfig) {
    config.assignors = vec![by_name("range").unwrap()];
}

/// The records since the last look.
fn news(room: &mut Room) -> Vec<RebalanceRecord> {
    std::mem::take(&mut room.records)
}

/// Two generations, one cause, one record: what moved, what had to, and what it cost.
#[test]
fn two_rounds_of_one_cause_are_one_record() {
    for change in [(|_| {}) as fn(&mut MemberConfig), plain] {
        let mut room = Room::new(&[("t", 4)]);
        let a = room.enter(change);
        room.settle(1_000);
        room.pass(20_000);
        news(&mut room);
        room.people[a].records.clear();
        room.people[a].release_ms = 40;
        let b = room.enter(change);
        room.until(5_000, "B owns two", |room| room.people[b].owned.len() == 2);
        room.pass(5_000);
        let records = news(&mut room);
        let [record] = records.as_slice() else {
            panic!("expected one record, got {records:#?}");
        };
        assert_eq!((record.rounds, record.phases.len()), (2, 2));
        assert_eq!(record.generation, room.generations);
        let [cause] = record.causes.as_slice() else {
            panic!("expected one cause, got {:#?}", record.causes);
        };
        assert_eq!(cause.kind, CauseKind::Joined(JoinReason::NewMember));
        assert_eq!(cause.member_id, room.people[b].member.member_id());
        assert!(cause.stated);
        assert_eq!((record.moved, record.minimum_moves), (2, Some(2)));
        assert!(record.pauses.is_empty());
        // The first round waited for A to hear of it; between the two it was A that let go.
        let a_id = room.people[a].member.member_id();
        assert_eq!(record.waited_for[0].0, a_id);
        let release = record.phases[1].waits.iter();
        let release: Vec<_> = release.filter(|w| w.to == WaitedTo::Release).collect();
        assert!(release.len() == 1 && release[0].member_id == a_id && release[0].ms >= 40);
        // From A's second join until B's assignment: what the room saw, but for the way of A's join.
        for one in &record.moves {
            assert_eq!(one.from.as_deref(), Some(a_id));
            assert_eq!(one.to.as_deref(), Some(room.people[b].member.member_id()));
            let ms = one.ownerless_ms.unwrap();
            assert!(ms.abs_diff(room.longest_free) <= 3, "{ms}");
        }
        // What A saw of it: the same two rounds, and when it let go.
        let [seen] = room.people[a].records.as_slice() else {
            panic!("expected one record, got {:#?}", room.people[a].records);
        };
        assert_eq!((seen.rounds, seen.seen_by.as_deref()), (2, Some(a_id)));
        assert_eq!(seen.moves.len(), 2);
        assert!(
            seen.moves
                .iter()
                .all(|m| m.released.is_some() && m.to.is_none())
        );
    }
}

/// An eager group gives up everything: nothing that stays moves, and all of it costs.
#[test]
fn an_eager_rebalance_pauses_everything() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(eager);
    room.settle(1_000);
    room.pass(5_000);
    news(&mut room);
    room.people[a].records.clear();
    room.enter(eager);
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(1_000);
    let record = news(&mut room).pop().unwrap();
    assert_eq!((record.rounds, record.moved), (1, 2));
    assert_eq!(record.pauses.len(), 2);
    assert!(
        record
            .pauses
            .iter()
            .all(|p| p.ownerless_ms > Some(0) && p.from == p.to)
    );
    let sum = record.moves.iter().chain(&record.pauses);
    let sum: u64 = sum.filter_map(|one| one.ownerless_ms).sum();
    assert_eq!(record.ownerless_ms, sum);
    // The member knows its own pauses to the millisecond, from the release to the assignment.
    let seen = &room.people[a].records[0];
    assert_eq!((seen.moves.len(), seen.pauses.len()), (2, 2));
    assert!(
        seen.pauses.iter().all(|p| p.ownerless_ms >= Some(4)),
        "{seen:#?}"
    );
}

/// A crash: the cause is the silence, and the time before the expiry is told apart from the hand-over.
#[test]
fn a_crash_tells_the_silence_apart() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(5_000);
    news(&mut room);
    let dead = room.people[a].member.member_id().to_owned();
    room.kill(a);
    room.until(20_000, "taken over", |room| room.people[b].owned.len() == 4);
    room.pass(1_000);
    let records = news(&mut room);
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(record.causes[0].kind, CauseKind::SessionExpired);
    assert_eq!(record.causes[0].member_id, dead);
    assert_eq!((record.moved, record.minimum_moves), (2, Some(2)));
    assert_eq!(record.silent_ms, 2 * 10_000);
    assert!(record.moves.iter().all(|m| m.from.as_ref() == Some(&dead)));
    // The session had run out; then B had to hear of it and join: at most its heartbeat interval for each partition.
    assert!(record.ownerless_ms <= 2 * 3_100, "{}", record.ownerless_ms);
}

/// A member that closes hands over first: one record, whose cause is the close.
#[test]
fn a_close_is_one_record() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|_| {});
    let b = room.enter(|_| {});
    room.until(5_000, "shared", |room| room.sizes() == [2, 2]);
    room.pass(5_000);
    news(&mut room);
    room.tell(b, Input::Close { drain: true });
    room.until(5_000, "handed over", |room| room.people[a].owned.len() == 4);
    room.pass(5_000);
    let records = news(&mut room);
    assert_eq!(records.len(), 1, "{records:#?}");
    assert_eq!(
        records[0].causes[0].kind,
        CauseKind::Joined(JoinReason::SubscriptionChanged)
    );
    assert_eq!(records[0].moved, 2);
}

/// One that does not come back within its rebalance timeout is named as the one that was waited for.
#[test]
fn whom_a_join_phase_waited_for_in_vain() {
    let mut room = Room::new(&[("t", 4)]);
    let a = room.enter(|config| {
        config.max_poll_interval_ms = 20_000;
        config.session_timeout_ms = 60_000;
        config.heartbeat_interval_ms = 3_000;
    });
    room.settle(1_000);
    let id = room.people[a].member.member_id().to_owned();
    news(&mut room);
    room.kill(a);
    let b = room.enter(|config| config.max_poll_interval_ms = 20_000);
    room.until(40_000, "alone", |room| room.people[b].owned.len() == 4);
    room.pass(1_000);
    let record = news(&mut room).pop().unwrap();
    assert_eq!(record.waited_for[0].0, id);
    assert!(record.waited_for[0].1 > 19_000);
    assert_eq!(record.phases[0].waits[0].to, WaitedTo::JoinInVain);
    let kinds: Vec<CauseKind> = record.causes.iter().map(|cause| cause.kind).collect();
    assert_eq!(
        kinds,
        [
            CauseKind::Joined(JoinReason::NewMember),
            CauseKind::RebalanceTimedOut
        ]
    );
}

/// KIP-345 with a reason: ten static members are restarted one after the other, the leader among them, and nothing rebalances;
/// also where the broker and the client are too old for SkipAssignment.
#[test]
fn a_static_roll_costs_no_rebalance() {
    for join_version in [9, 8, 6] {
        let mut room = Room::new(&[("t", 20)]);
        let version = kohort_wire::ApiKey::JoinGroup;
        room.versions.insert(version, (0, join_version));
        let fixed = |number: usize| {
            move |config: &mut MemberConfig| {
                config.group_instance_id = Some(format!("i{number}"));
            }
        };
        for number in 0..10 {
            room.enter(fixed(number));
        }
        room.until(30_000, "shared", |room| {
            room.people.iter().all(|person| person.owned.len() == 2)
        });
        room.pass(10_000);
        let before = room.generations;
        news(&mut room);
        assert!((0..10).any(|who| room.people[who].member.leads()));
        for number in 0..10 {
            room.kill(number);
            room.pass(500);
            let who = room.enter(fixed(number));
            room.until(2_000, "back", |room| room.people[who].owned.len() == 2);
            room.pass(1_000);
        }
        room.pass(20_000);
        assert_eq!(room.generations, before, "JoinGroup v{join_version}");
        assert_eq!(news(&mut room), []);
        // A leader that was answered as a follower watches no topics: the coordinator does it in its place.
        room.change_topics("t", 30);
        room.until(10_000, "shared", |room| {
            room.people[10..]
                .iter()
                .all(|person| person.owned.len() == 3)
        });
        room.pass(5_000);
        assert_eq!(room.generations - before, 1, "JoinGroup v{join_version}");
        let record = news(&mut room).pop().unwrap();
        assert_eq!(
            record.causes[0].kind,
            CauseKind::Joined(JoinReason::TopicMetadataChanged)
        );
    }
}
