//! Syncing: who gets what, and what becomes of those that are late.

use super::script::{Log, Script, config, join};
use kohort_group::coordinator::{ConnectionId, GroupRequest, Input, Output, RequestId};
use kohort_wire::ErrorCode;
use kohort_wire::messages::SyncGroupRequest;
use std::sync::Arc;

/// KAFKA-12898: an unchanged follower is answered at once, the leader always makes the group rebalance.
#[test]
fn in_stable_an_unchanged_follower_costs_nothing_and_a_leader_a_rebalance() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let follower = script.join(join(&b));
    assert_eq!(script.joined(follower).generation_id, generation);
    assert_eq!(script.beat(&a, generation), ErrorCode::None);
    let leader = script.join(join(&a));
    assert!(script.waits(leader));
    assert_eq!(script.beat(&b, generation), ErrorCode::RebalanceInProgress);
}

#[test]
fn members_that_do_not_sync_are_removed_together() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let joins = [script.join(join(&a)), script.join(join(&b))];
    assert_eq!(script.joined(joins[1]).generation_id, generation + 1);
    script.joined(joins[0]);
    let sync = script.sync(&b, generation + 1, &[]);
    for _ in 0..4 {
        script.pass(7_000);
        script.beat(&a, generation + 1);
    }
    assert!(script.waits(sync));
    script.pass(2_000);
    assert_eq!(script.synced(sync).0, ErrorCode::RebalanceInProgress);
    assert_eq!(script.beat(&a, generation + 1), ErrorCode::UnknownMemberId);
    assert_eq!(script.state().members.len(), 1);
}

#[test]
fn a_late_sync_is_told_that_the_group_went_on() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let _ = script.join(join(&a));
    let sync = script.sync(&b, generation, &[]);
    assert_eq!(script.synced(sync).0, ErrorCode::RebalanceInProgress);
    let sync = script.sync(&b, generation - 1, &[]);
    assert_eq!(script.synced(sync).0, ErrorCode::IllegalGeneration);
}

#[test]
fn an_assignment_that_cannot_be_stored_starts_another_round() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let joins = [script.join(join(&a)), script.join(join(&b))];
    let _ = joins.map(|id| script.joined(id));
    let follower = script.sync(&b, generation + 1, &[]);
    script.fate = Log::Fails(ErrorCode::NotEnoughReplicas);
    let leader = script.sync(&a, generation + 1, &[(&a, "A")]);
    assert_eq!(script.synced(leader).0, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(
        script.synced(follower).0,
        ErrorCode::CoordinatorNotAvailable
    );
    assert_eq!(script.state().group_state, "PreparingRebalance");
}

/// kafkajs#550, KAFKA-17733: the assignment of a member that the leader forgot is empty; what it gave to a stranger is ignored.
#[test]
fn a_forgotten_member_gets_nothing_and_a_stranger_is_ignored() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let joins = [script.join(join(&a)), script.join(join(&b))];
    let _ = joins.map(|id| script.joined(id));
    let leader = script.sync(&a, generation + 1, &[(&a, "A"), ("stranger", "X")]);
    let follower = script.sync(&b, generation + 1, &[]);
    assert_eq!(script.synced(leader).1, "A");
    assert_eq!(script.synced(follower).1, "");
}

/// KAFKA-20938: a sync that is parked when its member leaves is answered.
#[test]
fn a_parked_sync_of_a_member_that_leaves_is_answered() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let joins = [script.join(join(&a)), script.join(join(&b))];
    let _ = joins.map(|id| script.joined(id));
    let sync = script.sync(&b, generation + 1, &[]);
    assert_eq!(script.leave(&b), ErrorCode::None);
    assert_eq!(script.synced(sync).0, ErrorCode::UnknownMemberId);
}

/// The log may take longer with the leader's assignments than members were given to sync: nobody is late then.
#[test]
fn a_slow_log_is_no_reason_to_remove_anybody() {
    let mut script = Script::new(config());
    let (a, first) = script.enter();
    script.pass(1);
    let generation = script.joined(first).generation_id;
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: generation,
        member_id: a.clone(),
        protocol_type: Some("consumer".into()),
        protocol_name: Some("range".into()),
        ..SyncGroupRequest::default()
    };
    let mut out = Vec::new();
    let input = Input::Request {
        id: RequestId(1_001),
        connection: ConnectionId(1),
        client: Arc::default(),
        version: 5,
        request: GroupRequest::SyncGroup(sync),
    };
    script.coordinator.handle(script.now, input, &mut out);
    script.pass(40_000);
    for output in out {
        if let Output::Append(n, _) = output {
            script.feed(Input::Appended(n));
        }
    }
    assert_eq!(script.state().group_state, "Stable");
    assert_eq!(script.state().members.len(), 1);
}
