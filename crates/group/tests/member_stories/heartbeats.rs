//! Signs of life, the session, and the poll deadline.

use crate::script::{Script, of, plain};
use kohort_group::coordinator::GroupResponse;
use kohort_group::member::{Alarm, Input, Output, StateName};
use kohort_group::reason::JoinReason;
use kohort_wire::messages::HeartbeatResponse;
use kohort_wire::{ApiKey, ErrorCode};

/// After a sync: quick beats, doubling up to the interval, so that a second round does not wait for it.
#[test]
fn beats_are_quick_after_a_sync_and_settle_at_the_interval() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&[0])));
    let mut gaps = Vec::new();
    for _ in 0..14 {
        let before = script.now;
        script.beat(ErrorCode::None);
        gaps.push(script.now.since(before));
    }
    assert!((5..=8).contains(&gaps[0]), "{gaps:?}");
    assert!(gaps.is_sorted(), "{gaps:?}");
    assert_eq!(gaps[11..], [3_000, 3_000, 3_000]);
}

/// KAFKA-9246: commits are no heartbeats, and a rebalance is heard of by heartbeat although commits succeed.
#[test]
fn a_rebalance_keeps_everything_and_joins_at_once() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    assert!(script.waits(ApiKey::JoinGroup));
    assert_eq!(script.seen(), Vec::<String>::new());
}

/// kafka-python#2617, sarama-cluster#25: from the join until its answer nobody beats; from the answer on, at once.
#[test]
fn beats_stop_while_a_join_is_parked() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    script.pass(60_000);
    assert!(!script.waits(ApiKey::Heartbeat));
    let (token, _) = script.take_join();
    script.answer_join(token, Script::join_answer(2));
    script.pass(3_000);
    let (_, beat) = script.take_beat();
    assert_eq!(beat.generation_id, 2);
}

/// Nothing answered for a session, counted from the sending of the last request that was: lost, before another owner can appear.
#[test]
fn the_session_counts_from_the_sending() {
    let mut script = Script::stable(
        |config| {
            config.session_timeout_ms = 1_500;
            config.heartbeat_interval_ms = 300;
            config.request_timeout_ms = 10_000;
        },
        &of(&[0]),
    );
    for _ in 0..12 {
        script.beat(ErrorCode::None);
    }
    let due = script.due(&Alarm::Heartbeat).unwrap();
    script.pass(due.since(script.now));
    let sent = script.now;
    script.pass(800);
    let (token, _) = script.take_beat();
    script.answer_beat(token, ErrorCode::None);
    while script.member.state() == StateName::Stable {
        script.pass(1);
    }
    assert_eq!(script.now.since(sent), 1_500);
    assert_eq!(script.seen(), ["lost t-0"]);
    let (_, join) = script.take_join();
    assert_eq!((join.member_id.as_str(), join.join_reason), ("m", 8));
    assert_eq!(Script::said(&join).generation, None);
    assert!(Script::said(&join).owned.is_empty());
}

/// A process that was stopped for longer than its session loses everything before it does anything else.
#[test]
fn a_sleeper_wakes_up_without_its_partitions() {
    let auto = |config: &mut kohort_group::member::MemberConfig| {
        config.auto_commit_interval_ms = Some(500);
    };
    let mut script = Script::stable(auto, &of(&[0]));
    script.consume(0, 5);
    script.now = script.now + 20_000;
    script.give(Input::Polled);
    assert_eq!(script.seen(), ["lost t-0"]);
    assert!(!script.waits(ApiKey::OffsetCommit));
}

/// A beat that is not answered leaves time for another: the lane is closed, the coordinator looked up, and the next one sent.
#[test]
fn a_silent_connection_is_given_up_within_the_session() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.pass(3_000);
    assert!(script.waits(ApiKey::Heartbeat));
    script.out.clear();
    script.searches = 0;
    script.pass(6_700);
    let closed = |output: &Output| matches!(output, Output::Disconnect(_));
    assert!(script.out.iter().any(closed));
    assert_eq!(script.searches, 1);
    let (token, _) = script.take_beat();
    script.answer_beat(token, ErrorCode::None);
    assert_eq!(script.member.state(), StateName::Stable);
}

/// confluent-kafka-go#344, confluent-kafka-python#629, confluent-kafka-python#552, confluent-kafka-dotnet#1220, rust-rdkafka#433,
/// KIP-62: an application that does not poll costs the membership; the next poll brings a fresh join.
#[test]
fn a_missed_poll_deadline_leaves_and_the_next_poll_joins() {
    let mut script = Script::stable(|config| config.max_poll_interval_ms = 5_000, &of(&[0]));
    script.give(Input::Polled);
    script.pass(3_000);
    script.beat(ErrorCode::None);
    script.pass(2_000);
    assert_eq!(script.seen(), ["lost t-0"]);
    let (_, leave) = script.take_leave();
    assert!(leave.members[0].reason.is_some());
    script.pass(60_000);
    assert!(!script.waits(ApiKey::JoinGroup));
    script.give(Input::Polled);
    let (_, join) = script.take_join();
    assert_eq!(
        (join.member_id.as_str(), join.join_reason),
        ("", JoinReason::Lost.number())
    );
}

/// confluent-kafka-go#344: a static member that misses the deadline does not leave (KIP-345): it goes silent and is replaced by itself.
#[test]
fn a_static_member_does_not_leave_for_a_missed_poll() {
    let mut script = Script::stable(
        |config| {
            config.max_poll_interval_ms = 2_000;
            config.group_instance_id = Some("i".to_owned());
        },
        &of(&[0]),
    );
    script.pass(2_000);
    assert_eq!(script.seen(), ["lost t-0"]);
    assert!(!script.waits(ApiKey::LeaveGroup));
    assert_eq!(script.member.state(), StateName::Fenced);
}

/// A group that never calms down does not make its members beat like mad.
#[test]
fn rounds_without_calm_are_slowed_down() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    let begun = script.now;
    for generation in 1..=40 {
        while !script.waits(ApiKey::JoinGroup) {
            script.pass(1);
        }
        script.round(generation, plain(&of(&[0])));
        script.beat(ErrorCode::RebalanceInProgress);
    }
    assert!(
        script.now.since(begun) > 3_000,
        "{}",
        script.now.since(begun)
    );
}

/// The canonical form forgets when things happened and how many came before, and nothing else: a quiet member looks the same at each
/// beat, a day later, and not in between.
#[test]
fn the_canonical_form_forgets_the_clock() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    for _ in 0..20 {
        script.give(Input::Polled);
        script.beat(ErrorCode::None);
    }
    let form = |script: &Script| script.member.canonical(script.now).0;
    let before = form(&script);
    for _ in 0..100 {
        script.give(Input::Polled);
        script.beat(ErrorCode::None);
        assert_eq!(form(&script), before);
    }
    script.pass(3_000);
    let (beating, names) = script.member.canonical(script.now);
    assert_ne!(beating, before);
    let (token, _) = script.take_beat();
    assert_eq!(names.get(&token), Some(&kohort_group::member::Token(1)));
}

/// KIP-219: a broker that is over quota asks for silence on the connection, and gets it.
#[test]
fn a_throttled_member_is_quiet() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.pass(20);
    let (token, _) = script.take_beat();
    let answer = HeartbeatResponse {
        throttle_time_ms: 1_500,
        ..HeartbeatResponse::default()
    };
    script.answer(token, GroupResponse::Heartbeat(answer));
    script.pass(1_490);
    assert!(!script.waits(ApiKey::Heartbeat));
    script.pass(20);
    assert!(script.waits(ApiKey::Heartbeat));
}

/// A beat that is slower than the rebalance timeout hears of each rebalance when it is over: the group goes on without the member, whose
/// return is the next rebalance, without end.
#[test]
fn a_slow_heartbeat_still_hears_of_a_rebalance_in_time() {
    let mut script = Script::stable(
        |config| {
            config.heartbeat_interval_ms = 5_000;
            config.max_poll_interval_ms = 4_000;
        },
        &of(&[0]),
    );
    for _ in 0..14 {
        script.give(Input::Polled);
        script.beat(ErrorCode::None);
    }
    let due = script.due(&Alarm::Heartbeat).unwrap();
    assert!(due.0 <= script.now.0 + 2_000, "the next beat is at {due}");
}
