//! Static members (KIP-345, KIP-814).

use super::script::{Log, Script, config, join, join_as, subscription};
use kohort_group::coordinator::{ConnectionId, GroupRequest, Input, Output, RequestId};
use kohort_group::reason::JoinReason;
use kohort_group::topics::TopicInfo;
use kohort_wire::ErrorCode;
use std::sync::Arc;

/// Two static members of a Stable group at generation 2, the leader first.
fn pair(script: &mut Script) -> (String, String) {
    let first = script.join(join_as("i1", ""));
    script.pass(1);
    let a = script.joined(first).member_id;
    let second = script.join(join_as("i2", ""));
    let again = script.join(join_as("i1", &a));
    script.joined(again);
    let b = script.joined(second).member_id;
    script.settle(&[&a, &b], 2);
    (a, b)
}

#[test]
fn a_restart_in_stable_costs_no_rebalance_and_fences_the_old_id() {
    let mut script = Script::new(config());
    let (a, b) = pair(&mut script);
    let back = script.join(join_as("i2", ""));
    let answer = script.joined(back);
    assert_eq!(
        (answer.generation_id, answer.error_code),
        (2, ErrorCode::None)
    );
    assert_ne!(answer.member_id, b);
    assert_eq!(script.beat(&a, 2), ErrorCode::None);
    assert_eq!(
        script.beat_as(Some("i2"), &b, 2),
        ErrorCode::FencedInstanceId
    );
    assert_eq!(script.beat(&b, 2), ErrorCode::UnknownMemberId);
    let sync = script.sync(&answer.member_id, 2, &[]);
    assert_eq!(script.synced(sync).1, "B");
}

/// KAFKA-13435: a leader that comes back is told to skip the assignment, or (before v9) does not learn that it leads.
#[test]
fn a_leader_that_comes_back_does_not_assign() {
    for (version, leads) in [(9, true), (8, false)] {
        let mut script = Script::new(config());
        let (a, _) = pair(&mut script);
        script.version = version;
        let back = script.join(join_as("i1", ""));
        let answer = script.joined(back);
        assert_eq!(answer.skip_assignment, leads);
        assert_eq!(answer.members.len(), if leads { 2 } else { 0 });
        assert_eq!(answer.leader == answer.member_id, leads);
        assert_eq!(answer.leader == a, !leads);
    }
}

/// KAFKA-9801: a restart between join and sync rebalances, or the new id would get nothing.
#[test]
fn a_restart_while_completing_rebalances() {
    let mut script = Script::new(config());
    let (a, b) = pair(&mut script);
    let joins = [
        script.join(join_as("i1", &a)),
        script.join(join_as("i2", &b)),
    ];
    let _ = joins.map(|id| script.joined(id));
    let parked = script.sync(&b, 3, &[]);
    let back = script.join(join_as("i2", ""));
    assert_eq!(script.synced(parked).0, ErrorCode::FencedInstanceId);
    assert!(script.waits(back));
    assert_eq!(script.beat(&a, 3), ErrorCode::RebalanceInProgress);
}

/// KAFKA-8500: whatever the state, the last one to start holds the instance id.
#[test]
fn a_second_start_while_the_first_is_parked_fences_it() {
    let mut script = Script::new(config());
    let (a, _) = pair(&mut script);
    let _ = script.join(join_as("i1", &a));
    let first = script.join(join_as("i2", ""));
    let _ = script.joined(first);
    let (_, newcomer) = script.enter();
    let _ = newcomer;
    let one = script.join(join_as("i3", ""));
    assert!(script.waits(one));
    let two = script.join(join_as("i3", ""));
    assert_eq!(script.joined(one).error_code, ErrorCode::FencedInstanceId);
    assert!(script.waits(two));
}

#[test]
fn a_restart_that_cannot_be_stored_leaves_the_old_id_valid() {
    let mut script = Script::new(config());
    let (_, b) = pair(&mut script);
    script.fate = Log::Fails(ErrorCode::NotEnoughReplicas);
    let back = script.join(join_as("i2", ""));
    assert_eq!(
        script.joined(back).error_code,
        ErrorCode::CoordinatorNotAvailable
    );
    assert_eq!(script.beat_as(Some("i2"), &b, 2), ErrorCode::None);
}

/// KAFKA-14009: the restarted member's own timeouts hold from then on.
#[test]
fn a_restart_brings_its_own_session_timeout() {
    let mut script = Script::new(config());
    let (a, _) = pair(&mut script);
    let mut request = join_as("i2", "");
    request.session_timeout_ms = 20_000;
    let back = script.join(request);
    let id = script.joined(back).member_id;
    for _ in 0..2 {
        script.pass(9_000);
        script.beat(&a, 2);
    }
    assert_eq!(script.beat(&id, 2), ErrorCode::None);
}

#[test]
fn static_members_that_are_away_stay_when_a_join_phase_times_out() {
    let mut script = Script::new(config());
    let (a, _) = pair(&mut script);
    let (_, newcomer) = script.enter();
    let again = script.join(join_as("i1", &a));
    for _ in 0..3 {
        script.pass(9_000);
        script.join(join_as("i9", "nobody"));
    }
    script.pass(3_000);
    let answer = script.joined(again);
    // The silent one's session ran out long before: only those two are left.
    assert_eq!(answer.members.len(), 2);
    script.joined(newcomer);
}

/// KAFKA-20601: a static member that comes back to a full group replaces itself.
#[test]
fn a_restart_into_a_full_group_is_accepted() {
    let mut script = Script::new(kohort_group::coordinator::CoordinatorConfig {
        max_size: 2,
        ..config()
    });
    pair(&mut script);
    let back = script.join(join_as("i2", ""));
    assert_eq!(script.joined(back).error_code, ErrorCode::None);
    let stranger = script.join(join_as("i3", ""));
    assert_eq!(
        script.joined(stranger).error_code,
        ErrorCode::GroupMaxSizeReached
    );
    let _ = join("");
}

/// KAFKA-8715: each start gets an id that was never used, also right after loading.
#[test]
fn a_thousand_starts_get_a_thousand_ids() {
    let mut script = Script::new(config());
    pair(&mut script);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..500 {
        let back = script.join(join_as("i2", ""));
        assert!(ids.insert(script.joined(back).member_id));
    }
    let mut script = Script::resume(config(), script.log, 2);
    for _ in 0..500 {
        let back = script.join(join_as("i2", ""));
        assert!(ids.insert(script.joined(back).member_id));
    }
}

/// A static leader that was away has missed what happened to the topics: with a reason, its return is the moment to look.
#[test]
fn a_static_leader_that_comes_back_to_other_topics_rebalances() {
    for (partitions, rebalances) in [(4, false), (5, true)] {
        let mut script = Script::new(config());
        let first = script.join(join_as("i1", ""));
        script.pass(1);
        let leader = script.joined(first).member_id;
        let everything = "\0\u{3}\0\0\0\u{1}\0\u{1}t\0\0\0\u{4}\0\0\0\0\0\0\0\u{1}\0\0\0\u{2}\0\0\0\u{3}\0\0\0\0";
        let sync = script.sync(&leader, 1, &[(&leader, everything)]);
        assert_eq!(script.synced(sync).0, ErrorCode::None);
        let topics = [("t".into(), TopicInfo::with_partitions(partitions))];
        script.feed(Input::Topics(topics.into_iter().collect()));
        let mut request = join_as("i1", "");
        request.join_reason = JoinReason::Restart.number();
        let back = script.join(request);
        let answer = script.joined(back);
        assert_eq!(
            answer.skip_assignment, !rebalances,
            "{partitions} partitions"
        );
        assert_eq!(answer.generation_id, if rebalances { 2 } else { 1 });
    }
}

/// With a reason, a static member that comes back wanting other topics is heard at once (KIP-423); without one Kafka does not look.
#[test]
fn a_restart_with_another_subscription_rebalances_if_it_gives_a_reason() {
    for (reason, rebalances) in [(JoinReason::Unknown, false), (JoinReason::Restart, true)] {
        let mut script = Script::new(config());
        let _ = pair(&mut script);
        let mut request = join_as("i2", "");
        request.join_reason = reason.number();
        request.protocols[0].metadata = subscription(&["t", "u"]);
        let back = script.join(request);
        assert_eq!(script.waits(back), rebalances, "{reason}");
    }
}

/// Two restarts whose records cannot be written are taken back, the later one first.
#[test]
fn two_restarts_that_cannot_be_stored_leave_the_oldest_id_valid() {
    let mut script = Script::new(config());
    let (_, b) = pair(&mut script);
    let ask = |script: &mut Script, id: u64| {
        let mut out = Vec::new();
        let input = Input::Request {
            id: RequestId(id),
            connection: ConnectionId(1),
            client: Arc::default(),
            version: 9,
            request: GroupRequest::JoinGroup(join_as("i2", "")),
        };
        script.coordinator.handle(script.now, input, &mut out);
        out.iter().find_map(|output| match output {
            Output::Append(n, _) => Some(*n),
            _ => None,
        })
    };
    let first = ask(&mut script, 1_001).unwrap();
    assert!(ask(&mut script, 1_002).is_some());
    script.feed(Input::AppendFailed(first, ErrorCode::NotEnoughReplicas));
    assert_eq!(script.beat_as(Some("i2"), &b, 2), ErrorCode::None);
}

/// KIP-814: a leader that skips the assignment compares the topics from then on with what it finds, which may be newer than the
/// assignment. So the coordinator watches too, also one that has just loaded the group and does not know whether anybody does.
#[test]
fn topics_that_grow_while_a_static_leader_is_away_are_assigned() {
    for reloaded in [false, true] {
        let mut script = Script::new(config());
        let first = script.join(join_as("i1", ""));
        script.pass(1);
        let leader = script.joined(first).member_id;
        let everything = "\0\u{3}\0\0\0\u{1}\0\u{1}t\0\0\0\u{4}\0\0\0\0\0\0\0\u{1}\0\0\0\u{2}\0\0\0\u{3}\0\0\0\0";
        let sync = script.sync(&leader, 1, &[(&leader, everything)]);
        assert_eq!(script.synced(sync).0, ErrorCode::None);
        let back = script.join(join_as("i1", ""));
        let answer = script.joined(back);
        assert!(answer.skip_assignment);
        if reloaded {
            script = Script::resume(config(), script.log, 2);
        }
        assert_eq!(script.beat(&answer.member_id, 1), ErrorCode::None);
        let topics = [("t".into(), TopicInfo::with_partitions(5))];
        script.feed(Input::Topics(topics.into_iter().collect()));
        let beat = script.beat(&answer.member_id, 1);
        assert_eq!(beat, ErrorCode::RebalanceInProgress, "reloaded: {reloaded}");
    }
}
