//! Closing, unsubscribing, leaving.

use crate::script::{Script, explicit, of, on, plain};
use kohort_group::member::{Input, MemberConfig, Output, StateName};
use kohort_group::reason::JoinReason;
use kohort_wire::embedded::AssignmentError;
use kohort_wire::{ApiKey, ErrorCode};

fn auto(config: &mut MemberConfig) {
    config.auto_commit_interval_ms = Some(60_000);
}

fn close(script: &mut Script) {
    script.give(Input::Close { drain: true });
}

/// KAFKA-7540: revoke, commit, revoked, LeaveGroup, closed: in this order, each after the answer to the one before.
#[test]
fn a_plain_close_commits_before_it_leaves() {
    let mut script = Script::stable(auto, &of(&[0]));
    script.consume(0, 7);
    script.give(Input::Close { drain: false });
    assert_eq!(script.seen(), ["revoke t-0"]);
    script.pass(1_200);
    assert!(!script.waits(ApiKey::LeaveGroup));
    script.give(Input::Released(of(&[0])));
    let (token, commit) = script.take_commit();
    assert_eq!(commit.topics[0].partitions[0].committed_offset, 7);
    assert!(!script.waits(ApiKey::LeaveGroup));
    script.answer_commit(token, &commit, ErrorCode::None);
    let (token, leave) = script.take_leave();
    assert_eq!(leave.members[0].member_id, "m");
    assert_eq!(script.seen(), ["revoked t-0"]);
    script.answer_leave(token);
    assert_eq!(script.seen(), ["closed"]);
    assert_eq!(script.member.deadline(), None);
}

/// A close hands over in a round first: it joins with no topics while it works on, lets go when told to, then leaves.
#[test]
fn a_close_drains() {
    let mut script = Script::stable(auto, &of(&[0, 1]));
    close(&mut script);
    assert_eq!(script.seen(), Vec::<String>::new());
    script.consume(0, 9);
    let told = explicit(&of(&[]), &of(&[0, 1]), AssignmentError::NeedRejoin);
    let join = script.round(2, told);
    assert_eq!(join.join_reason, JoinReason::SubscriptionChanged.number());
    let said = Script::said(&join);
    assert!(said.topics.is_empty());
    assert_eq!(said.owned, crate::script::wire(&of(&[0, 1])));
    assert_eq!(script.seen(), ["assign nothing", "revoke t-0 t-1"]);
    script.give(Input::Released(of(&[0, 1])));
    let (token, commit) = script.take_commit();
    script.answer_commit(token, &commit, ErrorCode::None);
    let (token, _) = script.take_leave();
    script.answer_leave(token);
    assert_eq!(script.seen(), ["revoked t-0 t-1", "closed"]);
}

/// Draining is bounded: a round that does not come to an end in time is left the plain way.
#[test]
fn draining_is_bounded() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    close(&mut script);
    assert!(script.waits(ApiKey::JoinGroup));
    script.pass(5_000);
    assert_eq!(script.seen(), ["revoke t-0"]);
    assert!(!script.waits(ApiKey::JoinGroup));
    script.give(Input::Released(of(&[0])));
    let (token, _) = script.take_leave();
    script.answer_leave(token);
    assert_eq!(script.seen(), ["revoked t-0", "closed"]);
}

/// A static member keeps its place (KIP-345): nothing is drained, nobody leaves.
#[test]
fn a_static_member_closes_without_leaving() {
    let mut script = Script::stable(
        |config| {
            auto(config);
            config.group_instance_id = Some("i".to_owned());
        },
        &of(&[0]),
    );
    script.consume(0, 3);
    close(&mut script);
    script.give(Input::Released(of(&[0])));
    let (token, commit) = script.take_commit();
    script.answer_commit(token, &commit, ErrorCode::None);
    assert!(!script.waits(ApiKey::LeaveGroup));
    assert_eq!(script.seen(), ["revoke t-0", "revoked t-0", "closed"]);
}

/// librdkafka#4527, franz-go v1.13.3: closed while the first join with an id is parked: LeaveGroup for that id, over the other lane.
#[test]
fn a_close_during_a_parked_join_leaves() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    let (token, _) = script.take_join();
    script.refuse_join(token, ErrorCode::MemberIdRequired);
    close(&mut script);
    let (token, leave) = script.take_leave();
    assert_eq!(leave.members[0].member_id, "m");
    assert!(!script.waits(ApiKey::JoinGroup));
    script.answer_leave(token);
    assert_eq!(script.seen(), ["closed"]);
}

/// Closed before the first answer: the id that it brings is given back, or a join of others would wait for it.
#[test]
fn an_id_that_comes_too_late_is_given_back() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    close(&mut script);
    let (token, _) = script.take_join();
    script.refuse_join(token, ErrorCode::MemberIdRequired);
    let (token, leave) = script.take_leave();
    assert_eq!(leave.members[0].member_id, "m");
    script.answer_leave(token);
    assert_eq!(script.seen(), ["closed"]);

    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    close(&mut script);
    script.pass(5_000);
    assert_eq!(script.seen(), ["closed"]);
}

/// Closed while its join is parked and it owns something: a round that ends soon is waited for, so that what was consumed can be
/// committed; one that does not is left.
#[test]
fn a_close_during_a_parked_join_waits_a_little() {
    let mut script = Script::stable(auto, &of(&[0]));
    script.consume(0, 3);
    script.beat(ErrorCode::RebalanceInProgress);
    close(&mut script);
    assert_eq!(script.seen(), Vec::<String>::new());
    script.pass(2_000);
    assert_eq!(script.seen(), ["revoke t-0"]);
    script.pass(3_000);
    assert!(
        !script.waits(ApiKey::Heartbeat),
        "its generation may be over"
    );
    script.give(Input::Released(of(&[0])));
    let (token, commit) = script.take_commit();
    script.answer_commit(token, &commit, ErrorCode::IllegalGeneration);
    let (token, leave) = script.take_leave();
    assert_eq!(leave.members[0].member_id, "m");
    script.answer_leave(token);
    assert_eq!(script.seen(), ["revoked t-0", "closed"]);
}

/// librdkafka#4527: an assignment that arrives after the close is not taken.
#[test]
fn a_close_while_syncing_takes_nothing_new() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let (token, _) = script.take_join();
    script.answer_join(token, Script::join_answer(2));
    close(&mut script);
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(&of(&[0, 1])));
    assert_eq!(script.seen(), ["assign nothing"]);
    // The round had begun before the close, so another one hands over.
    let (_, join) = script.take_join();
    assert!(Script::said(&join).topics.is_empty());
    assert_eq!(Script::said(&join).owned, crate::script::wire(&of(&[0])));
}

/// A coordinator that is away holds nobody up for long.
#[test]
fn a_close_without_a_coordinator_ends_soon() {
    let mut script = Script::stable(auto, &of(&[0]));
    script.consume(0, 3);
    script.finds = false;
    script.pass(3_000);
    let (token, _) = script.take_beat();
    script.break_off(token);
    close(&mut script);
    script.give(Input::Released(of(&[0])));
    script.pass(2_100);
    assert_eq!(script.seen(), ["revoke t-0", "revoked t-0", "closed"]);
}

/// sarama#1581, sarama#1351: a silent coordinator neither.
#[test]
fn a_close_with_a_silent_coordinator_ends() {
    let mut script = Script::stable(auto, &of(&[0]));
    script.consume(0, 3);
    script.pass(4_000);
    close(&mut script);
    script.give(Input::Released(of(&[0])));
    script.pass(8_100);
    assert_eq!(script.seen(), ["revoke t-0", "revoked t-0", "closed"]);
}

/// A second close waits for nobody.
#[test]
fn a_second_close_is_at_once() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    close(&mut script);
    close(&mut script);
    assert_eq!(script.seen(), ["revoke t-0", "lost t-0"]);
    assert!(script.waits(ApiKey::LeaveGroup));
    script.pass(300);
    assert_eq!(script.seen(), ["closed"]);
}

/// KAFKA-7862, KAFKA-8225, librdkafka#2635, franz-go#931: another process has the instance id (KIP-345): everything lost, an error, no
/// join, no LeaveGroup that would remove the other.
#[test]
fn a_fenced_instance_ends_without_leaving() {
    let mut script = Script::stable(
        |config| config.group_instance_id = Some("i".to_owned()),
        &of(&[0]),
    );
    script.beat(ErrorCode::FencedInstanceId);
    assert_eq!(script.seen(), ["lost t-0", "fatal"]);
    assert!(script.waiting.is_empty());
    assert_eq!(script.member.state(), StateName::Fatal);
    close(&mut script);
    assert_eq!(script.seen(), ["closed"]);
}

/// KAFKA-8972, librdkafka v1.7.0: unsubscribe revokes while it is still a member, then leaves; a later subscription joins afresh.
#[test]
fn unsubscribe_revokes_and_leaves() {
    let mut script = Script::stable(auto, &of(&[0]));
    script.consume(0, 3);
    script.give(Input::Unsubscribe);
    script.give(Input::Released(of(&[0])));
    let (token, commit) = script.take_commit();
    script.answer_commit(token, &commit, ErrorCode::None);
    let (token, _) = script.take_leave();
    script.answer_leave(token);
    assert_eq!(script.seen(), ["revoke t-0", "revoked t-0"]);
    assert_eq!(script.member.state(), StateName::Unsubscribed);
    assert_eq!(script.member.deadline(), None);
    script.subscribe(&["u"]);
    let join = script.round(1, plain(&on("u", &[0])));
    assert_eq!(join.member_id, "");
    assert_eq!(script.seen(), ["assign u-0"]);
}

/// KAFKA-8972: after a loss nothing is revoked or committed.
#[test]
fn unsubscribe_after_a_loss_commits_nothing() {
    let mut script = Script::stable(auto, &of(&[0]));
    script.consume(0, 3);
    script.beat(ErrorCode::UnknownMemberId);
    script.give(Input::Unsubscribe);
    assert_eq!(script.seen(), ["lost t-0"]);
    assert!(!script.waits(ApiKey::OffsetCommit));
}

/// Errors that trying again does not heal end in good order.
#[test]
fn a_fatal_answer_hands_back_first() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let (token, _) = script.take_join();
    script.refuse_join(token, ErrorCode::GroupAuthorizationFailed);
    assert_eq!(script.seen(), ["revoke t-0"]);
    script.give(Input::Released(of(&[0])));
    let (token, _) = script.take_leave();
    script.answer_leave(token);
    let fatal = script.out.iter().find_map(|output| match output {
        Output::Fatal(fatal) => Some(fatal.code),
        _ => None,
    });
    assert_eq!(fatal, Some(Some(ErrorCode::GroupAuthorizationFailed)));
}
