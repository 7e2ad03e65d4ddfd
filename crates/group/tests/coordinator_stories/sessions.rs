//! Sessions: who is alive.

use super::script::{Script, config, join};
use kohort_group::history::CauseKind;
use kohort_wire::ErrorCode;

#[test]
fn a_silent_member_is_removed_after_its_session() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    script.pass(9_000);
    assert_eq!(script.beat(&a, generation), ErrorCode::None);
    script.pass(1_500);
    assert_eq!(script.beat(&b, generation), ErrorCode::UnknownMemberId);
    assert_eq!(script.beat(&a, generation), ErrorCode::RebalanceInProgress);
    let again = script.join(join(&a));
    assert_eq!(script.joined(again).members.len(), 1);
    script.settle(&[&a], generation + 1);
    let record = script.rebalances.last().unwrap();
    assert_eq!(record.causes[0].kind, CauseKind::SessionExpired);
    assert_eq!(record.causes[0].member_id, b);
}

/// A heartbeat while a rebalance is prepared says so, and renews the session.
#[test]
fn a_beat_in_a_rebalance_renews_the_session() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let _ = script.join(join(&a));
    script.pass(6_000);
    assert_eq!(script.beat(&b, generation), ErrorCode::RebalanceInProgress);
    script.pass(6_000);
    assert_eq!(script.beat(&b, generation), ErrorCode::RebalanceInProgress);
    script.pass(10_000);
    assert_eq!(script.beat(&b, generation), ErrorCode::UnknownMemberId);
}

/// A parked join is a sign of life: the session does not run.
#[test]
fn a_member_whose_join_is_parked_does_not_expire() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let waiting = script.join(join(&a));
    for _ in 0..4 {
        script.pass(7_000);
        script.beat(&b, generation);
    }
    assert!(script.waits(waiting));
    let other = script.join(join(&b));
    assert_eq!(script.joined(waiting).members.len(), 2);
    script.joined(other);
}

/// KAFKA-7196: a member that did not come back leaves no alarm behind.
#[test]
fn a_member_that_did_not_come_back_is_forgotten_for_good() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let again = script.join(join(&a));
    for _ in 0..3 {
        script.pass(9_000);
        script.beat(&b, generation);
    }
    script.pass(3_000);
    assert_eq!(script.joined(again).members.len(), 1);
    script.settle(&[&a], generation + 1);
    for _ in 0..5 {
        script.pass(5_000);
        assert_eq!(script.beat(&a, generation + 1), ErrorCode::None);
    }
}

/// KAFKA-3470: an accepted commit is a sign of life, too.
#[test]
fn a_commit_renews_the_session() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    for _ in 0..3 {
        script.pass(8_000);
        assert_eq!(script.commit(&a, generation, 1), ErrorCode::None);
        assert_eq!(script.beat(&b, generation), ErrorCode::None);
    }
}
