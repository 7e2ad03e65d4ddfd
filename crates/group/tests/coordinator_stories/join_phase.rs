//! Joining: ids, the initial delay, and when a join phase ends.

use super::script::{Script, config, join};
use kohort_group::coordinator::CoordinatorConfig;
use kohort_group::reason::JoinReason;
use kohort_wire::ErrorCode;
use kohort_wire::embedded::Subscription;

fn delayed(delay: u64) -> Script {
    Script::new(CoordinatorConfig {
        initial_rebalance_delay_ms: delay,
        ..config()
    })
}

#[test]
fn a_first_contact_is_given_an_id_and_is_no_member_yet() {
    let mut script = Script::new(config());
    let first = script.join(join(""));
    let answer = script.joined(first);
    assert_eq!(answer.error_code, ErrorCode::MemberIdRequired);
    assert!(answer.member_id.starts_with("c-"));
    assert!(script.state().members.is_empty());
}

#[test]
fn a_lone_member_waits_for_the_initial_delay_exactly() {
    let mut script = delayed(3_000);
    let (_, join) = script.enter();
    script.pass(2_999);
    assert!(script.waits(join));
    script.pass(1);
    assert_eq!(script.joined(join).generation_id, 1);
}

#[test]
fn a_newcomer_extends_the_initial_delay_by_one_more() {
    let mut script = delayed(3_000);
    let (_, a) = script.enter();
    script.pass(2_999);
    let (_, b) = script.enter();
    script.pass(3_000);
    assert!(script.waits(a) && script.waits(b));
    script.pass(1);
    assert_eq!(
        (
            script.joined(a).generation_id,
            script.joined(b).generation_id
        ),
        (1, 1)
    );
}

#[test]
fn extensions_end_at_the_rebalance_timeout() {
    let mut script = delayed(15_000);
    let (_, a) = script.enter();
    let (_, b) = script.enter();
    script.pass(15_001);
    let (_, c) = script.enter();
    script.pass(14_998);
    assert!(script.waits(a) && script.waits(b) && script.waits(c));
    script.pass(1);
    assert_eq!(script.joined(c).generation_id, 1);
}

/// KAFKA-7909: an id that was handed out holds the join phase open, until it joins, expires or leaves.
#[test]
fn a_pending_id_holds_the_phase_open_until_it_is_gone() {
    for way in ["joins", "expires", "leaves"] {
        let mut script = Script::new(config());
        let (a, b, _) = script.pair();
        let first = script.join(join(""));
        let pending = script.joined(first).member_id;
        let joins = [script.join(join(&a)), script.join(join(&b))];
        assert!(script.waits(joins[0]) && script.waits(joins[1]), "{way}");
        let expected = match way {
            "joins" => {
                script.join(join(&pending));
                3
            }
            "expires" => {
                script.pass(10_000);
                2
            }
            _ => {
                assert_eq!(script.leave(&pending), ErrorCode::None);
                2
            }
        };
        assert_eq!(script.joined(joins[0]).members.len(), expected, "{way}");
    }
}

/// KAFKA-8653: v0 has no rebalance timeout; members of the group get the session timeout to come back.
#[test]
fn a_member_of_version_0_does_not_push_the_others_out() {
    let mut script = Script::new(config());
    let (a, _, _) = script.pair();
    script.version = 0;
    let newcomer = script.join(join(""));
    script.version = 9;
    script.pass(5_000);
    assert!(script.waits(newcomer));
    let again = script.join(join(&a));
    script.pass(25_000);
    assert_eq!(script.joined(again).members.len(), 2);
}

/// streamnative/kop#380: who leaves is not waited for.
#[test]
fn a_member_that_leaves_while_others_wait_ends_the_phase() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let (_, c) = script.enter();
    let again = script.join(join(&a));
    assert!(script.waits(again) && script.waits(c));
    assert_eq!(script.leave(&b), ErrorCode::None);
    assert_eq!(script.joined(again).generation_id, generation + 1);
}

/// KAFKA-6005: a member cannot be the first without saying what the group is to speak.
#[test]
fn a_first_member_must_name_a_type_and_a_protocol() {
    let mut script = Script::new(config());
    let mut request = join("");
    request.protocols.clear();
    let id = script.join(request);
    assert_eq!(
        script.joined(id).error_code,
        ErrorCode::InconsistentGroupProtocol
    );
    assert_eq!(script.state().group_state, "Dead");
}

#[test]
fn the_group_size_is_kept_and_the_first_to_come_back_stay() {
    let mut script = Script::new(CoordinatorConfig {
        max_size: 2,
        ..config()
    });
    let (a, _, _) = script.pair();
    let first = script.join(join(""));
    assert_eq!(
        script.joined(first).error_code,
        ErrorCode::GroupMaxSizeReached
    );
    let again = script.join(join(&a));
    assert!(script.waits(again));
}

/// A broken connection's join comes after the next one, with what its member owned before. Kafka lets it take the parked one's place,
/// and the leader gives away what the member has come to own since.
#[test]
fn a_join_with_older_claims_does_not_replace_a_newer_one() {
    let claiming = |member: &str, generation: i32| {
        let mut request = join(member);
        request.protocols[0].metadata = Subscription {
            topics: vec!["t".into()],
            generation: Some(generation),
            ..Subscription::default()
        }
        .encode();
        request
    };
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let parked = script.join(claiming(&b, generation));
    let zombie = script.join(claiming(&b, generation - 1));
    assert_eq!(
        script.joined(zombie).error_code,
        ErrorCode::RebalanceInProgress
    );
    assert!(script.waits(parked));
    // Who has lost everything says -1, and means it; who says it because it was new then does not.
    let mut new = claiming(&b, -1);
    new.join_reason = JoinReason::NewMember.number();
    let zombie = script.join(new);
    assert_eq!(
        script.joined(zombie).error_code,
        ErrorCode::RebalanceInProgress
    );
    let lost = script.join(claiming(&b, -1));
    assert_eq!(
        script.joined(parked).error_code,
        ErrorCode::RebalanceInProgress
    );
    assert!(script.waits(lost));
    let _ = a;
}
