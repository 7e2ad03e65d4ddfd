//! What each error of each API does, as a table.

use crate::script::{Script, of, plain};
use kohort_group::member::{Output, StateName};
use kohort_wire::ApiKey;
use kohort_wire::ErrorCode::{self, *};

/// What a member does about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// The same request again, or the next heartbeat, without a search.
    Again,
    /// The same, after a pause.
    Pauses,
    /// Looks for the coordinator, and goes on with the same id and claim.
    Finds,
    /// Joins, with the id and the claim.
    Joins,
    /// Loses everything, and joins with this id.
    Loses(&'static str),
    /// Ends.
    Ends,
}

/// What became of a member that owned `t-0`, after the error has had its effect.
fn effect(script: &mut Script, api: ApiKey, claims: bool) -> Does {
    let lost = script
        .out
        .iter()
        .any(|output| matches!(output, Output::Lost { .. }));
    let ends = script
        .out
        .iter()
        .any(|output| matches!(output, Output::Revoke { .. } | Output::Fatal(_)));
    if ends {
        return Does::Ends;
    }
    let paused = !script.waits(ApiKey::JoinGroup) && !script.waits(api);
    if script.searches > 0 {
        script.pass(3_500);
        let join = script
            .waits(ApiKey::JoinGroup)
            .then(|| script.take_join().1);
        assert!(!lost && join.is_none_or(|join| join.member_id == "m"));
        return Does::Finds;
    }
    script.pass(3_500);
    if script.waits(ApiKey::JoinGroup) {
        let (_, join) = script.take_join();
        let claimed = !Script::said(&join).owned.is_empty();
        assert_eq!(claimed, claims && !lost);
        return match (lost, join.member_id.as_str(), api, paused) {
            (true, "m", _, _) => Does::Loses("m"),
            (true, _, _, _) => Does::Loses(""),
            (false, _, ApiKey::JoinGroup, true) => Does::Pauses,
            (false, _, ApiKey::JoinGroup, false) => Does::Again,
            (false, _, _, true) => Does::Pauses,
            (false, _, _, false) => Does::Joins,
        };
    }
    Does::Again
}

fn fresh() -> Script {
    let mut script = Script::stable(|config| config.session_timeout_ms = 60_000, &of(&[0]));
    script.searches = 0;
    script
}

/// librdkafka v2.0.0, librdkafka#2944; KIP-394, KIP-345, KIP-62 and the classic consumer's own handling of JoinGroup.
#[test]
fn join_group() {
    for (code, expected) in [
        (CoordinatorLoadInProgress, Does::Pauses),
        (CoordinatorNotAvailable, Does::Finds),
        (NotCoordinator, Does::Finds),
        (RequestTimedOut, Does::Finds),
        (IllegalGeneration, Does::Loses("m")),
        (UnknownMemberId, Does::Loses("")),
        (RebalanceInProgress, Does::Again),
        (MemberIdRequired, Does::Again),
        (FencedInstanceId, Does::Ends),
        (InconsistentGroupProtocol, Does::Ends),
        (InvalidGroupId, Does::Ends),
        (InvalidSessionTimeout, Does::Ends),
        (GroupMaxSizeReached, Does::Ends),
        (GroupAuthorizationFailed, Does::Ends),
        (UnsupportedVersion, Does::Ends),
        (UnknownServerError, Does::Pauses),
        (Other(999), Does::Pauses),
    ] {
        let mut script = fresh();
        script.beat(RebalanceInProgress);
        let (token, _) = script.take_join();
        script.refuse_join(token, code);
        let does = effect(&mut script, ApiKey::JoinGroup, true);
        assert_eq!(does, expected, "{code:?}");
    }
}

/// kafkajs#1466, kafkajs#1474, kafkajs#1712: ILLEGAL_GENERATION is a reason to join again with the same id, never an end.
#[test]
fn sync_group() {
    for (code, expected) in [
        (CoordinatorLoadInProgress, Does::Joins),
        (CoordinatorNotAvailable, Does::Finds),
        (NotCoordinator, Does::Finds),
        (RequestTimedOut, Does::Finds),
        (IllegalGeneration, Does::Loses("m")),
        (UnknownMemberId, Does::Loses("")),
        (RebalanceInProgress, Does::Joins),
        (FencedInstanceId, Does::Ends),
        (InconsistentGroupProtocol, Does::Ends),
        (GroupAuthorizationFailed, Does::Ends),
        (UnknownServerError, Does::Pauses),
        (Other(999), Does::Pauses),
    ] {
        let mut script = fresh();
        script.beat(RebalanceInProgress);
        let (token, _) = script.take_join();
        script.answer_join(token, Script::join_answer(2));
        let (token, _) = script.take_sync();
        script.answer_sync(token, code, bytes::Bytes::new());
        let does = effect(&mut script, ApiKey::SyncGroup, true);
        assert_eq!(does, expected, "{code:?}");
    }
}

/// kafkajs#1466, kafkajs#1474, kafkajs#1712: so it is here.
#[test]
fn heartbeat() {
    for (code, expected) in [
        (None, Does::Again),
        (CoordinatorLoadInProgress, Does::Again),
        (CoordinatorNotAvailable, Does::Finds),
        (NotCoordinator, Does::Finds),
        (RequestTimedOut, Does::Again),
        (IllegalGeneration, Does::Loses("m")),
        (UnknownMemberId, Does::Loses("")),
        (RebalanceInProgress, Does::Joins),
        (FencedInstanceId, Does::Ends),
        (GroupAuthorizationFailed, Does::Again),
        (UnknownServerError, Does::Again),
        (Other(999), Does::Again),
    ] {
        let mut script = fresh();
        script.beat(code);
        let does = effect(&mut script, ApiKey::Heartbeat, true);
        assert_eq!(does, expected, "{code:?}");
    }
}

/// A connection that breaks under any request: the coordinator is looked for, nothing is lost, the id stays.
#[test]
fn broken_connections_lose_nothing() {
    for api in [
        ApiKey::JoinGroup,
        ApiKey::SyncGroup,
        ApiKey::Heartbeat,
        ApiKey::OffsetFetch,
    ] {
        let mut script = Script::new(|config| config.session_timeout_ms = 60_000);
        script.subscribe(&["t"]);
        script.round(1, plain(&of(&[0])));
        if api != ApiKey::OffsetFetch {
            script.answer_fetch(-1, None);
            script.beat(RebalanceInProgress);
        }
        if api == ApiKey::Heartbeat {
            script.round(2, plain(&of(&[0])));
            script.pass(10);
        }
        if api == ApiKey::SyncGroup {
            let (token, _) = script.take_join();
            script.answer_join(token, Script::join_answer(2));
        }
        script.searches = 0;
        script.out.clear();
        let token = script.take(api).token;
        script.break_off(token);
        assert_eq!(script.searches, 1, "{}", api.name());
        // A second report of the same failure means nothing.
        script.break_off(token);
        script.pass(500);
        let again = match api {
            ApiKey::SyncGroup => ApiKey::JoinGroup,
            other => other,
        };
        assert!(script.waits(again), "{}", api.name());
        assert_eq!(script.seen(), Vec::<String>::new());
    }
}

/// Duplicated and late answers, and answers with another API's body, change nothing or count as lost.
#[test]
fn answers_that_do_not_belong_are_ignored() {
    let mut script = fresh();
    script.beat(RebalanceInProgress);
    let (token, _) = script.take_join();
    script.answer_join(token, Script::join_answer(2));
    script.answer_join(token, Script::join_answer(3));
    assert_eq!(script.member.generation(), 2);
    let (token, _) = script.take_sync();
    script.answer_beat(token, None);
    script.pass(500);
    assert!(script.waits(ApiKey::JoinGroup));
    assert_eq!(script.member.state(), StateName::Joining);
}

/// franz-go#37, KAFKA-13917: FindCoordinator: authorisation is final, all else is asked again with pauses.
#[test]
fn find_coordinator() {
    let mut script = Script::new(|_| {});
    script.finds = false;
    script.subscribe(&["t"]);
    for _ in 0..5 {
        let searches = script.searches;
        let error = kohort_group::member::Input::CoordinatorNotFound(CoordinatorNotAvailable);
        script.give(error);
        assert_eq!(script.searches, searches, "a pause");
        script.pass(1_300);
        assert_eq!(script.searches, searches + 1);
    }
    let error = ErrorCode::GroupAuthorizationFailed;
    script.give(kohort_group::member::Input::CoordinatorNotFound(error));
    assert_eq!(script.seen(), ["fatal"]);
}
