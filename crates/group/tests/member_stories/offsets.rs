//! Where reading starts.

use crate::script::{Script, of, plain};
use kohort_group::member::{Input, Output};
use kohort_wire::{ApiKey, ErrorCode};

/// librdkafka v1.8.0: passing errors never reset a position; only "none is stored" without an error does.
#[test]
fn passing_errors_do_not_reset_a_position() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&[0])));
    let (token, _) = script.take_fetch();
    script.break_off(token);
    for code in [
        ErrorCode::NotCoordinator,
        ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::UnstableOffsetCommit,
        ErrorCode::UnknownTopicOrPartition,
    ] {
        while !script.waits(ApiKey::OffsetFetch) {
            script.pass(1);
            if script.waits(ApiKey::Heartbeat) {
                script.beat(ErrorCode::None);
            }
        }
        script.answer_fetch(-1, code);
    }
    script.pass(1_200);
    script.answer_fetch(42, ErrorCode::None);
    assert_eq!(script.seen(), ["assign t-0", "start t-0@42"]);
}

/// A partition that cannot be read is told once, and asked for again and again: the member never sits assigned and silent.
#[test]
fn a_forbidden_topic_is_told_once_and_tried_again() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&[0])));
    for _ in 0..3 {
        script.answer_fetch(-1, ErrorCode::TopicAuthorizationFailed);
        script.pass(1_200);
    }
    let told = |output: &&Output| matches!(output, Output::Warning { code: Some(_), .. });
    assert_eq!(script.out.iter().filter(told).count(), 1);
    assert!(script.waits(ApiKey::OffsetFetch));
}

/// franz-go v1.17.0: an answer from before a partition went and came back says nothing about where the other owner has got to.
#[test]
fn an_answer_from_before_a_move_is_not_used() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&[0])));
    let (stale, _) = script.take_fetch();
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[])));
    script.give(Input::Released(of(&[0])));
    script.round(3, plain(&of(&[0])));
    let fresh = script.take_fetch();
    script.out.clear();
    script.waiting.push(crate::script::Waiting {
        token: stale,
        lane: kohort_group::member::Lane::Control,
        version: 9,
        request: kohort_group::coordinator::GroupRequest::OffsetFetch(fresh.1.clone()),
    });
    script.answer_fetch(5, ErrorCode::None);
    assert_eq!(script.seen(), Vec::<String>::new());
}

/// A rebalance that moves nothing does not ask again, and does not disturb a slow answer.
#[test]
fn a_slow_answer_outlasts_a_rebalance() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&[0])));
    let waiting = script.take(ApiKey::OffsetFetch);
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0])));
    assert!(!script.waits(ApiKey::OffsetFetch));
    script.waiting.push(waiting);
    script.answer_fetch(6, ErrorCode::None);
    assert_eq!(
        script.seen(),
        ["assign t-0", "assign nothing", "start t-0@6"]
    );
}
