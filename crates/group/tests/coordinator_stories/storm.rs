//! 5,000 members at once. The work is counted, never timed: what is answered, appended and sent grows with the members.

use super::script::{Script, config, join};
use bytes::Bytes;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{CoordinatorConfig, RequestId};
use kohort_wire::ErrorCode;
use kohort_wire::messages::JoinGroupResponse;

/// A group of so many at the end of its first join phase: what each member was told, the leader first.
fn storm(members: usize) -> (Script, Vec<JoinGroupResponse>) {
    let mut script = Script::new(CoordinatorConfig {
        initial_rebalance_delay_ms: 3_000,
        ..config()
    });
    let joins: Vec<RequestId> = (0..members)
        .map(|_| {
            script.pass(1);
            script.enter().1
        })
        .collect();
    assert!(joins.iter().all(|id| script.waits(*id)), "the delay holds");
    script.pass(6_000);
    let mut joined: Vec<_> = joins.iter().map(|id| script.joined(*id)).collect();
    joined.sort_by_key(|answer| answer.member_id != answer.leader);
    (script, joined)
}

fn again(script: &mut Script, members: &[JoinGroupResponse]) -> Vec<JoinGroupResponse> {
    let joins: Vec<RequestId> = members
        .iter()
        .map(|member| script.join(join(&member.member_id)))
        .collect();
    let mut joined: Vec<_> = joins.iter().map(|id| script.joined(*id)).collect();
    joined.sort_by_key(|answer| answer.member_id != answer.leader);
    joined
}

/// Everybody asks for its assignment, the leader last; `size` bytes for each member.
fn sync(
    script: &mut Script,
    members: &[JoinGroupResponse],
    size: usize,
) -> Vec<(ErrorCode, Bytes)> {
    let part: &'static str = "x".repeat(size).leak();
    let generation = members[0].generation_id;
    let gives: Vec<(&str, &'static str)> = members
        .iter()
        .map(|member| (member.member_id.as_str(), part))
        .collect();
    let followers = members[1..].iter();
    let mut syncs: Vec<RequestId> = followers
        .map(|member| script.sync(&member.member_id, generation, &[]))
        .collect();
    assert!(syncs.iter().all(|id| script.waits(*id)));
    syncs.insert(0, script.sync(&members[0].member_id, generation, &gives));
    syncs.into_iter().map(|id| script.synced(id)).collect()
}

#[test]
fn a_storm_of_5_000_joins_is_one_generation_and_one_record() {
    const MEMBERS: usize = 5_000;
    let (mut script, joined) = storm(MEMBERS);
    assert!(joined.iter().all(|answer| answer.error_code.is_none()));
    assert!(joined.iter().all(|answer| answer.generation_id == 1));
    let listed: usize = joined.iter().map(|answer| answer.members.len()).sum();
    assert_eq!(listed, MEMBERS, "the leader alone is told the members");
    assert_eq!(joined[0].members.len(), MEMBERS);

    let appended = script.log.len();
    let synced = sync(&mut script, &joined, 50);
    assert!(
        synced
            .iter()
            .all(|(error, part)| error.is_none() && part.len() == 50)
    );
    assert_eq!(script.log.len() - appended, 1, "one record for all of them");
    for member in &joined {
        assert_eq!(script.beat(&member.member_id, 1), ErrorCode::None);
    }
    assert_eq!(script.log.len() - appended, 1, "beats append nothing");
}

#[test]
fn one_that_leaves_500_costs_one_more_generation() {
    let (mut script, joined) = storm(500);
    sync(&mut script, &joined, 50);
    assert_eq!(script.leave(&joined[7].member_id), ErrorCode::None);
    let mut rest = joined;
    rest.remove(7);
    for member in &rest {
        let told = script.beat(&member.member_id, 1);
        assert_eq!(told, ErrorCode::RebalanceInProgress);
    }
    let rejoined = again(&mut script, &rest);
    assert!(rejoined.iter().all(|answer| answer.generation_id == 2));
    let synced = sync(&mut script, &rejoined, 50);
    assert!(synced.iter().all(|(error, _)| error.is_none()));
    assert_eq!(script.state().members.len(), 499);
}

/// Kafka maps MESSAGE_TOO_LARGE to UNKNOWN_SERVER_ERROR and rebalances; once the assignment fits, the group settles.
#[test]
fn an_assignment_larger_than_a_record_may_be_is_refused_to_all_and_the_group_goes_on() {
    let (mut script, joined) = storm(500);
    let appended = script.log.len();
    let synced = sync(&mut script, &joined, 3_000);
    assert!(
        synced
            .iter()
            .all(|(error, _)| *error == ErrorCode::UnknownServerError)
    );
    let causes = |record: &Record| matches!(record, Record::Causes { .. });
    assert!(
        script.log[appended..].iter().all(causes),
        "no half of it is stored"
    );
    let rejoined = again(&mut script, &joined);
    assert!(rejoined.iter().all(|answer| answer.generation_id == 2));
    let synced = sync(&mut script, &rejoined, 50);
    assert!(synced.iter().all(|(error, _)| error.is_none()));
}

/// All sessions end at the same moment, and the coordinator that loads the log finds them again.
#[test]
fn five_hundred_sessions_end_together() {
    let (mut script, joined) = storm(500);
    sync(&mut script, &joined, 50);
    let mut successor = Script::resume(config(), script.log.clone(), 2);
    for script in [&mut script, &mut successor] {
        assert_eq!(script.state().members.len(), 500);
        script.pass(9_999);
        assert_eq!(script.state().members.len(), 500);
        script.pass(60_000);
        assert_eq!(script.state().group_state, "Empty");
        assert!(script.state().members.is_empty());
    }
}
