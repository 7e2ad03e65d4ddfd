//! Commits: what is committed when, and what becomes of those that fail.

use crate::script::{Script, at, of, one, plain};
use kohort_group::member::{Alarm, CommitError, CommitId, Input, Output, StateName};
use kohort_group::partitions::TopicPartition;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;

fn commit(script: &mut Script, id: u64, offset: i64, retry: bool) {
    script.give(Input::Commit {
        id: CommitId(id),
        offsets: Some(BTreeMap::from([(one(0), at(offset))])),
        retry,
    });
}

/// The results of commits since the last look.
fn results(script: &mut Script) -> Vec<(u64, Result<i64, CommitError>)> {
    let results = script.out.drain(..).filter_map(|output| match output {
        Output::Committed(CommitId(id), result) => Some((
            id,
            result.map(|offsets| offsets.get(&one(0)).map_or(-1, |offset| offset.offset)),
        )),
        _ => None,
    });
    results.collect()
}

#[test]
fn a_commit_names_generation_member_and_instance() {
    let mut script = Script::stable(
        |config| config.group_instance_id = Some("i".to_owned()),
        &of(&[0]),
    );
    commit(&mut script, 1, 5, false);
    let (token, request) = script.take_commit();
    assert_eq!(request.generation_id_or_member_epoch, 1);
    assert_eq!(request.member_id, "m");
    assert_eq!(request.group_instance_id.as_deref(), Some("i"));
    script.answer_commit(token, &request, ErrorCode::None);
    assert_eq!(results(&mut script), [(1, Ok(5))]);
}

/// F3: a partition that is not owned is refused here, without asking anybody.
#[test]
fn what_is_not_owned_is_refused_locally() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    let foreign = TopicPartition::new("t", 9);
    script.give(Input::Commit {
        id: CommitId(1),
        offsets: Some(BTreeMap::from([(foreign, at(1)), (one(0), at(1))])),
        retry: true,
    });
    assert_eq!(
        results(&mut script),
        [(1, Err(CommitError::NotOwned(of(&[9]))))]
    );
    assert!(!script.waits(ApiKey::OffsetCommit));
}

/// Everything consumed, and only that.
#[test]
fn a_commit_without_offsets_takes_what_was_consumed() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    script.consume(0, 8);
    let all = Input::Commit {
        id: CommitId(1),
        offsets: None,
        retry: true,
    };
    script.give(all.clone());
    let (token, request) = script.take_commit();
    assert_eq!(request.topics[0].partitions.len(), 1);
    script.answer_commit(token, &request, ErrorCode::None);
    assert_eq!(results(&mut script), [(1, Ok(8))]);
}

/// franz-go v1.13.2: a commit and a join exclude each other. The one that began first is answered before the join is sent; one that
/// comes during the round waits for its end. Nobody hears of a rebalance.
#[test]
fn commits_and_joins_exclude_each_other() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    commit(&mut script, 1, 5, false);
    let (first, request) = script.take_commit();
    script.beat(ErrorCode::RebalanceInProgress);
    assert!(!script.waits(ApiKey::JoinGroup));
    script.answer_commit(first, &request, ErrorCode::None);
    let (token, _) = script.take_join();
    commit(&mut script, 2, 6, false);
    assert!(!script.waits(ApiKey::OffsetCommit));
    script.answer_join(token, Script::join_answer(2));
    assert!(!script.waits(ApiKey::OffsetCommit));
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(&of(&[0])));
    let (second, request) = script.take_commit();
    assert_eq!(request.generation_id_or_member_epoch, 2);
    script.answer_commit(second, &request, ErrorCode::None);
    assert_eq!(results(&mut script), [(1, Ok(5)), (2, Ok(6))]);
}

/// A partition that went away during the round is not committed afterwards: its new owner may be further.
#[test]
fn a_commit_that_waited_for_a_round_is_refused_for_what_is_gone() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    commit(&mut script, 1, 6, true);
    let (token, _) = script.take_join();
    script.refuse_join(token, ErrorCode::UnknownMemberId);
    assert_eq!(
        results(&mut script),
        [(1, Err(CommitError::NotOwned(of(&[0]))))]
    );
}

/// A join waits for a commit in flight, but not for ever.
#[test]
fn a_commit_that_is_never_answered_does_not_hold_the_join_for_ever() {
    let mut script = Script::stable(|config| config.session_timeout_ms = 60_000, &of(&[0]));
    commit(&mut script, 1, 5, true);
    script.beat(ErrorCode::RebalanceInProgress);
    for _ in 0..40 {
        script.pass(1_000);
        while script.waits(ApiKey::Heartbeat) {
            script.beat(ErrorCode::RebalanceInProgress);
        }
    }
    assert!(script.waits(ApiKey::JoinGroup));
}

/// Passing errors of a commit are tried again where that was asked for, and told where not.
#[test]
fn passing_errors_are_tried_again() {
    for code in [
        ErrorCode::NotCoordinator,
        ErrorCode::CoordinatorNotAvailable,
        ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::RequestTimedOut,
        ErrorCode::UnknownTopicOrPartition,
    ] {
        let mut script = Script::stable(|_| {}, &of(&[0]));
        commit(&mut script, 1, 5, true);
        let (token, request) = script.take_commit();
        script.answer_commit(token, &request, code);
        assert!(!script.waits(ApiKey::OffsetCommit), "a pause for {code:?}");
        script.pass(130);
        let (token, request) = script.take_commit();
        script.answer_commit(token, &request, ErrorCode::None);
        assert_eq!(results(&mut script), [(1, Ok(5))]);

        commit(&mut script, 2, 6, false);
        let (token, request) = script.take_commit();
        script.answer_commit(token, &request, code);
        assert_eq!(results(&mut script), [(2, Err(CommitError::Refused(code)))]);
        assert_eq!(script.member.state(), StateName::Stable);
    }
}

/// Errors that are the caller's business end the commit and nothing else.
#[test]
fn errors_of_the_offsets_reach_the_caller() {
    for code in [
        ErrorCode::TopicAuthorizationFailed,
        ErrorCode::GroupAuthorizationFailed,
        ErrorCode::OffsetMetadataTooLarge,
        ErrorCode::InvalidCommitOffsetSize,
    ] {
        let mut script = Script::stable(|_| {}, &of(&[0]));
        commit(&mut script, 1, 5, true);
        let (token, request) = script.take_commit();
        script.answer_commit(token, &request, code);
        assert_eq!(results(&mut script), [(1, Err(CommitError::Refused(code)))]);
        assert_eq!(script.member.state(), StateName::Stable);
    }
}

/// franz-go#1326, kafkajs#1466: a commit that says that the membership is gone is acted on at once, not at the next heartbeat.
#[test]
fn a_commit_may_bring_the_news_of_a_loss() {
    for (code, id) in [
        (ErrorCode::UnknownMemberId, ""),
        (ErrorCode::IllegalGeneration, "m"),
        (ErrorCode::GroupIdNotFound, ""),
    ] {
        let mut script = Script::stable(|_| {}, &of(&[0]));
        commit(&mut script, 1, 5, true);
        let (token, request) = script.take_commit();
        script.answer_commit(token, &request, code);
        let (_, join) = script.take_join();
        assert_eq!(join.member_id, id, "{code:?}");
        let lost = |output: &Output| matches!(output, Output::Lost { .. });
        assert!(script.out.iter().any(lost));
        assert_eq!(results(&mut script), [(1, Err(CommitError::Refused(code)))]);
    }
}

/// REBALANCE_IN_PROGRESS on a commit asks for a join; the commit is made after it, if it may be tried again.
#[test]
fn a_commit_may_bring_the_news_of_a_rebalance() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    commit(&mut script, 1, 5, true);
    let (token, request) = script.take_commit();
    script.answer_commit(token, &request, ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0])));
    script.pass(130);
    let (token, request) = script.take_commit();
    script.answer_commit(token, &request, ErrorCode::None);
    assert_eq!(results(&mut script), [(1, Ok(5))]);
}

/// librdkafka#2933: not for ever.
#[test]
fn a_commit_is_not_tried_for_ever() {
    let mut script = Script::stable(
        |config| {
            config.default_api_timeout_ms = 5_000;
            config.session_timeout_ms = 60_000;
        },
        &of(&[0]),
    );
    commit(&mut script, 1, 5, true);
    let begun = script.now;
    let mut tries = 0;
    while script.now.since(begun) < 20_000 {
        if script.waits(ApiKey::OffsetCommit) {
            tries += 1;
            let (token, request) = script.take_commit();
            script.answer_commit(token, &request, ErrorCode::CoordinatorLoadInProgress);
        }
        script.pass(10);
    }
    assert!(tries < 15, "{tries}");
    assert_eq!(results(&mut script), [(1, Err(CommitError::Unknown))]);
}

/// librdkafka v1.7.0, getsentry/arroyo#168: automatic commits: at the interval, only what changed, and not while a join is under way.
#[test]
fn automatic_commits_keep_their_interval() {
    let mut script = Script::stable(
        |config| {
            config.auto_commit_interval_ms = Some(500);
            config.session_timeout_ms = 60_000;
        },
        &of(&[0]),
    );
    script.pass(2_000);
    assert!(!script.waits(ApiKey::OffsetCommit));
    script.consume(0, 1);
    script.pass(500);
    let (token, request) = script.take_commit();
    script.answer_commit(token, &request, ErrorCode::None);
    script.pass(2_000);
    assert!(!script.waits(ApiKey::OffsetCommit));
    script.beat(ErrorCode::RebalanceInProgress);
    script.consume(0, 2);
    script.pass(5_000);
    assert!(!script.waits(ApiKey::OffsetCommit));
    script.round(2, plain(&of(&[0])));
    script.pass(500);
    let (_, request) = script.take_commit();
    assert_eq!(request.generation_id_or_member_epoch, 2);
    assert_eq!(request.topics[0].partitions[0].committed_offset, 2);
}

/// An input at the very moment at which the commit is due does not put it off: heartbeats at the same interval did so for ever.
#[test]
fn another_input_does_not_put_an_automatic_commit_off() {
    let mut script = Script::stable(
        |config| config.auto_commit_interval_ms = Some(500),
        &of(&[0]),
    );
    script.consume(0, 1);
    let due = script.due(&Alarm::AutoCommit).unwrap();
    script.now = due;
    script.give(Input::Polled);
    assert_eq!(script.due(&Alarm::AutoCommit), Some(due));
    script.give(Input::Alarm(Alarm::AutoCommit));
    assert!(script.waits(ApiKey::OffsetCommit));
}

/// F5: an automatic commit never takes back what the application committed itself, unless it reads on from before.
#[test]
fn automatic_commits_do_not_lower_manual_ones() {
    let auto = |config: &mut kohort_group::member::MemberConfig| {
        config.auto_commit_interval_ms = Some(500);
    };
    let mut script = Script::stable(auto, &of(&[0]));
    commit(&mut script, 1, 100, true);
    let (token, request) = script.take_commit();
    script.answer_commit(token, &request, ErrorCode::None);
    script.consume(0, 7);
    assert_eq!(script.due(&Alarm::AutoCommit), None);
    script.consume(0, 101);
    assert!(script.due(&Alarm::AutoCommit).is_some());
    script.consume(0, 3);
    assert!(script.due(&Alarm::AutoCommit).is_some());
}

fn commit_of(script: &mut Script, id: u64, offsets: &[(i32, i64)]) {
    let offsets = offsets
        .iter()
        .map(|(number, offset)| (one(*number), at(*offset)));
    script.give(Input::Commit {
        id: CommitId(id),
        offsets: Some(offsets.collect()),
        retry: true,
    });
}

fn committed(request: &kohort_wire::messages::OffsetCommitRequest) -> Vec<(i32, i64)> {
    let partitions = request.topics.iter().flat_map(|topic| &topic.partitions);
    let mut all: Vec<_> = partitions
        .map(|partition| (partition.partition_index, partition.committed_offset))
        .collect();
    all.sort_unstable();
    all
}

type Outcome = Result<Vec<(i32, i64)>, CommitError>;

/// All results, in order, with everything that each says was committed.
fn outcomes(script: &mut Script) -> Vec<(u64, Outcome)> {
    let all = script.out.drain(..).filter_map(|output| match output {
        Output::Committed(CommitId(id), result) => Some((
            id,
            result.map(|offsets| {
                let offsets = offsets.into_iter();
                offsets
                    .map(|(one, at)| (one.partition, at.offset))
                    .collect()
            }),
        )),
        _ => None,
    });
    all.collect()
}

/// An application that commits faster than the coordinator answers: what waits goes out together, the newest of each partition, and
/// everybody is answered. So a release waits for one answer, however many commits were asked for.
#[test]
fn commits_that_wait_go_out_together() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    commit_of(&mut script, 0, &[(0, 1)]);
    let (first, request) = script.take_commit();
    for id in 1..=1_000 {
        commit_of(&mut script, id, &[((id % 2) as i32, 10 + id as i64)]);
    }
    assert!(!script.waits(ApiKey::OffsetCommit));
    script.answer_commit(first, &request, ErrorCode::None);
    let (second, request) = script.take_commit();
    assert_eq!(committed(&request), [(0, 1_010), (1, 1_009)]);
    script.answer_commit(second, &request, ErrorCode::None);
    assert!(!script.waits(ApiKey::OffsetCommit));
    let outcomes = outcomes(&mut script);
    assert_eq!(outcomes.len(), 1_001);
    assert_eq!(outcomes[0], (0, Ok(vec![(0, 1)])));
    assert_eq!(outcomes[7], (7, Ok(vec![(1, 17)])), "each hears of its own");
}

/// What one of them may not commit does not spoil the others.
#[test]
fn commits_that_went_out_together_fail_each_by_itself() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    commit_of(&mut script, 0, &[(0, 1)]);
    let (first, request) = script.take_commit();
    commit_of(&mut script, 1, &[(0, 2)]);
    commit_of(&mut script, 2, &[(0, 3), (1, 5)]);
    commit_of(&mut script, 3, &[(1, 6)]);
    script.answer_commit(first, &request, ErrorCode::None);
    let (second, request) = script.take_commit();
    assert_eq!(committed(&request), [(0, 3), (1, 6)]);
    let codes = |index| match index {
        0 => ErrorCode::None,
        _ => ErrorCode::OffsetMetadataTooLarge,
    };
    script.answer_commit_by(second, &request, codes);
    let refused = || Err(CommitError::Refused(ErrorCode::OffsetMetadataTooLarge));
    assert_eq!(
        outcomes(&mut script),
        [
            (0, Ok(vec![(0, 1)])),
            (1, Ok(vec![(0, 2)])),
            (2, refused()),
            (3, refused())
        ]
    );
}

/// What is tried again goes out with what was asked for meanwhile.
#[test]
fn commits_are_tried_again_together() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    commit_of(&mut script, 1, &[(0, 2), (1, 2)]);
    let (first, request) = script.take_commit();
    commit_of(&mut script, 2, &[(0, 3)]);
    script.answer_commit(first, &request, ErrorCode::CoordinatorLoadInProgress);
    assert_eq!(outcomes(&mut script), []);
    script.pass(500);
    let (second, request) = script.take_commit();
    assert_eq!(committed(&request), [(0, 3), (1, 2)]);
    script.answer_commit(second, &request, ErrorCode::None);
    assert_eq!(
        outcomes(&mut script),
        [(1, Ok(vec![(0, 2), (1, 2)])), (2, Ok(vec![(0, 3)]))]
    );
}
