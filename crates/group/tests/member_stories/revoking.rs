//! Giving partitions up: eager, cooperative, explicit, and lost.

use crate::script::{Script, at, eager, explicit, of, on, one, plain};
use kohort_group::member::{Alarm, Input, Output, StateName, Subscription};
use kohort_group::reason::JoinReason;
use kohort_wire::embedded::{AssignmentError, CooperativeUserData};
use kohort_wire::{ApiKey, ErrorCode};

/// KAFKA-8179: what is owned and no longer assigned is revoked after the sync; the join that says so follows the release at once.
#[test]
fn cooperative_revokes_after_the_sync_and_joins_again() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1, 2, 3]));
    script.beat(ErrorCode::RebalanceInProgress);
    let join = script.round(2, plain(&of(&[0, 1])));
    assert_eq!(
        Script::said(&join).owned,
        crate::script::wire(&of(&[0, 1, 2, 3]))
    );
    assert_eq!(script.seen(), ["assign nothing", "revoke t-2 t-3"]);
    assert_eq!(script.member.state(), StateName::Reconciling);
    assert!(!script.waits(ApiKey::JoinGroup));
    script.give(Input::Released(of(&[2])));
    assert_eq!(script.seen(), Vec::<String>::new());
    script.give(Input::Released(of(&[3])));
    assert_eq!(script.seen(), ["revoked t-2 t-3"]);
    let join = script.round(3, plain(&of(&[0, 1])));
    assert_eq!(join.join_reason, JoinReason::RevocationDone.number());
    let said = Script::said(&join);
    assert_eq!(
        (said.owned, said.generation),
        (crate::script::wire(&of(&[0, 1])), Some(2))
    );
    assert_eq!(script.seen(), ["assign nothing"]);
}

/// Eager: everything is released before the join; what comes back is all new (I7, franz-go#686).
#[test]
fn eager_gives_everything_up_before_it_joins() {
    let eager = |config: &mut kohort_group::member::MemberConfig| config.assignors = vec![eager()];
    let mut script = Script::stable(eager, &of(&[0, 1]));
    script.beat(ErrorCode::RebalanceInProgress);
    assert_eq!(script.seen(), ["revoke t-0 t-1"]);
    assert!(!script.waits(ApiKey::JoinGroup));
    script.give(Input::Released(of(&[0, 1])));
    let join = script.round(2, plain(&of(&[0, 1])));
    assert!(Script::said(&join).owned.is_empty());
    assert_eq!(script.seen(), ["revoked t-0 t-1", "assign t-0 t-1"]);
}

/// KAFKA-14196: what was consumed before an eager release is committed before the join, once, and nothing after.
#[test]
fn eager_commits_once_before_it_joins() {
    let mut script = Script::stable(
        |config| {
            config.assignors = vec![eager()];
            config.auto_commit_interval_ms = Some(60_000);
        },
        &of(&[0]),
    );
    script.consume(0, 5);
    script.beat(ErrorCode::RebalanceInProgress);
    script.give(Input::Released(of(&[0])));
    let (token, commit) = script.take_commit();
    assert_eq!(commit.topics[0].partitions[0].committed_offset, 5);
    script.pass(700);
    assert!(!script.waits(ApiKey::JoinGroup) && !script.waits(ApiKey::OffsetCommit));
    assert_eq!(script.seen(), ["revoke t-0"]);
    script.answer_commit(token, &commit, ErrorCode::None);
    assert_eq!(script.seen(), ["revoked t-0"]);
    assert!(script.waits(ApiKey::JoinGroup));
}

/// KAFKA-13310: a commit that a deleted topic makes fail for good does not hold the join up until the member is thrown out.
#[test]
fn a_commit_that_fails_for_good_does_not_hold_up_the_join() {
    let mut script = Script::stable(
        |config| {
            config.assignors = vec![eager()];
            config.auto_commit_interval_ms = Some(60_000);
        },
        &of(&[0]),
    );
    script.consume(0, 5);
    script.beat(ErrorCode::RebalanceInProgress);
    script.give(Input::Released(of(&[0])));
    let begun = script.now;
    let mut commits = 0;
    while !script.waits(ApiKey::JoinGroup) {
        if script.waits(ApiKey::OffsetCommit) {
            commits += 1;
            let (token, commit) = script.take_commit();
            script.answer_commit(token, &commit, ErrorCode::UnknownTopicOrPartition);
        }
        if script.waits(ApiKey::Heartbeat) {
            script.beat(ErrorCode::RebalanceInProgress);
        }
        script.pass(1);
    }
    assert!(
        script.now.since(begun) < 5_000 && commits <= 30,
        "{commits} commits"
    );
    assert_eq!(script.seen(), ["revoke t-0", "revoked t-0"]);
}

/// The explicit form: additions come at once, whatever a release takes; the join follows the release.
#[test]
fn explicit_adds_before_a_slow_release() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, explicit(&of(&[0, 3]), &of(&[1]), AssignmentError::None));
    assert_eq!(script.seen(), ["assign t-3", "revoke t-1"]);
    script.answer_fetch(9, ErrorCode::None);
    assert_eq!(script.seen(), ["start t-3@9"]);
    script.pass(500);
    script.give(Input::Released(of(&[1])));
    let (_, join) = script.take_join();
    assert_eq!(Script::said(&join).owned, crate::script::wire(&of(&[0, 3])));
}

/// The marker: user data is the generation and five bytes; without the switch it is the assignor's own.
#[test]
fn a_member_marks_itself() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let (_, join) = script.take_join();
    let data = Script::said(&join).user_data.unwrap();
    let expected = CooperativeUserData {
        generation: 1,
        explicit: true,
    };
    assert_eq!(CooperativeUserData::decode(&data), Some(expected));

    let mut script = Script::new(|config| config.explicit_revocation = false);
    script.subscribe(&["t"]);
    let (_, join) = script.take_join();
    let data = Script::said(&join).user_data.unwrap();
    assert_eq!(data, [0xff; 4][..]);
}

/// NEED_REJOIN with nothing to release: quick heartbeats, at most 100 ms apart, and a join only when one says so.
#[test]
fn need_rejoin_waits_for_a_heartbeat() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let told = explicit(&of(&[0]), &of(&[]), AssignmentError::NeedRejoin);
    script.round(2, told);
    let mut last = script.now;
    for _ in 0..20 {
        script.beat(ErrorCode::None);
        assert!(
            script.now.since(last) <= 130,
            "{} ms",
            script.now.since(last)
        );
        last = script.now;
    }
    assert!(!script.waits(ApiKey::JoinGroup));
    script.beat(ErrorCode::RebalanceInProgress);
    assert!(script.waits(ApiKey::JoinGroup));
}

/// The draft of KIP-429: an assignment that forgets a claim is fatal; nothing is given away silently, everything in good order.
#[test]
fn an_inconsistent_explicit_assignment_is_fatal() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1, 2]));
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, explicit(&of(&[0, 3]), &of(&[]), AssignmentError::None));
    assert_eq!(script.seen(), ["revoke t-0 t-1 t-2"]);
    script.give(Input::Released(of(&[0, 1, 2])));
    let (token, leave) = script.take_leave();
    assert_eq!(leave.members[0].member_id, "m");
    script.answer_leave(token);
    let fatal = script
        .out
        .iter()
        .find_map(|output| match output {
            Output::Fatal(fatal) => Some(fatal.to_string()),
            _ => None,
        })
        .unwrap();
    let expected = "expected at least t-0 t-1 t-2 (claimed, and not revoked), got t-0 t-3";
    assert!(fatal.contains(expected), "{fatal}");
    assert_eq!(script.seen(), ["revoked t-0 t-1 t-2", "fatal"]);
}

#[test]
fn an_unknown_error_code_is_fatal_and_named() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let told = explicit(&of(&[0, 1]), &of(&[]), AssignmentError::Unknown(7));
    script.round(2, told);
    script.give(Input::Released(of(&[0])));
    let (token, _) = script.take_leave();
    script.answer_leave(token);
    let named = |output: &Output| matches!(output, Output::Fatal(f) if f.reason.contains("code 7"));
    assert!(script.out.iter().any(named));
}

/// A trailer that is cut off: told, and the plain part followed cooperatively.
#[test]
fn a_broken_trailer_is_told_and_the_plain_part_followed() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    script.beat(ErrorCode::RebalanceInProgress);
    let whole = explicit(&of(&[0]), &of(&[1]), AssignmentError::None);
    script.round(2, whole.slice(..whole.len() - 3));
    let told = |output: &Output| matches!(output, Output::Warning { text, .. } if text.contains("expected"));
    assert!(script.out.iter().any(told));
    assert_eq!(script.seen(), ["assign nothing", "revoke t-1"]);
}

/// KAFKA-12983: lost once, before the next join, which claims nothing.
#[test]
fn an_unknown_member_loses_everything_before_it_joins_again() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let (token, _) = script.take_join();
    script.refuse_join(token, ErrorCode::UnknownMemberId);
    assert_eq!(script.seen(), ["lost t-0"]);
    let (_, join) = script.take_join();
    let said = Script::said(&join);
    assert_eq!(join.member_id, "");
    assert_eq!((said.owned, said.generation), (vec![], None));
    assert_eq!(join.join_reason, JoinReason::Lost.number());
}

/// Topics that are no longer wanted are revoked before the join, so that the group needs no second round for them.
#[test]
fn topics_that_are_not_wanted_any_more_go_before_the_join() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t", "u"]);
    let mut both = of(&[0]);
    both.extend(&on("u", &[0]));
    script.round(1, plain(&both));
    script.out.clear();
    script.subscribe(&["u"]);
    assert_eq!(script.seen(), ["revoke t-0"]);
    script.give(Input::Released(of(&[0])));
    let (_, join) = script.take_join();
    assert_eq!(
        Script::said(&join).owned,
        crate::script::wire(&on("u", &[0]))
    );
    assert_eq!(join.join_reason, JoinReason::SubscriptionChanged.number());
}

/// KAFKA-9741, rust-rdkafka#627: positions of what was released are committed before it is told as revoked, under the new generation.
#[test]
fn a_cooperative_release_commits_what_it_gives_away() {
    let auto = |config: &mut kohort_group::member::MemberConfig| {
        config.auto_commit_interval_ms = Some(60_000);
    };
    let mut script = Script::stable(auto, &of(&[0, 1]));
    script.consume(0, 3);
    script.consume(1, 4);
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0])));
    script.give(Input::Consumed(one(1), at(6)));
    script.give(Input::Released(of(&[1])));
    let (token, commit) = script.take_commit();
    assert_eq!(commit.generation_id_or_member_epoch, 2);
    assert_eq!(commit.topics[0].partitions.len(), 1);
    assert_eq!(commit.topics[0].partitions[0].committed_offset, 6);
    script.answer_commit(token, &commit, ErrorCode::None);
    assert_eq!(
        script.seen(),
        ["assign nothing", "revoke t-1", "revoked t-1"]
    );
    assert!(script.waits(ApiKey::JoinGroup));
}

/// KIP-62: who does not release in time leaves by itself, so that the group need not wait, and comes back when the application polls.
#[test]
fn a_release_that_overruns_costs_the_membership() {
    let mut script = Script::stable(|config| config.max_poll_interval_ms = 2_000, &of(&[0, 1]));
    script.give(Input::Polled);
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0])));
    script.give(Input::Polled);
    for _ in 0..2_100 {
        script.pass(1);
        if script.waits(ApiKey::Heartbeat) {
            script.beat(ErrorCode::None);
        }
    }
    let (left, leave) = script.take_leave();
    assert_eq!(leave.members[0].member_id, "m");
    assert_eq!(
        script.seen(),
        ["assign nothing", "revoke t-1", "lost t-0 t-1"]
    );
    assert_eq!(script.member.state(), StateName::Fenced);
    assert_eq!(script.due(&Alarm::Heartbeat), None);
    script.give(Input::Polled);
    // The group would wait for the old membership in the round that the new one asks for.
    assert!(!script.waits(ApiKey::JoinGroup));
    script.answer_leave(left);
    let (_, join) = script.take_join();
    assert_eq!((join.member_id.as_str(), join.join_reason), ("", 8));
}

/// A pattern's topics are looked up before the join.
#[test]
fn a_pattern_joins_when_its_topics_are_known() {
    let mut script = Script::new(|_| {});
    script.give(Input::Subscribe(Subscription::Pattern("t|u".to_owned())));
    assert!(script.out.contains(&Output::RefreshTopics(None)));
    assert!(!script.waits(ApiKey::JoinGroup));
    script.topics(&[("t", 1), ("tt", 1), ("u", 1)]);
    let (_, join) = script.take_join();
    assert_eq!(Script::said(&join).topics, ["t".into(), "u".into()]);
}
