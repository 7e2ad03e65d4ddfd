//! A generation is never issued twice: nobody hears of it before the end of its join phase is in the log.

#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    Client, ConnectionId, Coordinator, CoordinatorConfig, GroupRequest, GroupResponse, Input,
    Output, RequestId,
};
use kohort_group::time::Timestamp;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    HeartbeatRequest, JoinGroupProtocol, JoinGroupRequest, JoinGroupResponse, SyncGroupAssignment,
    SyncGroupRequest,
};
use std::sync::Arc;

fn fresh(log: &[Record], seed: u64) -> Coordinator {
    let config = CoordinatorConfig {
        initial_rebalance_delay_ms: 0,
        ..CoordinatorConfig::default()
    };
    let mut coordinator = Coordinator::new(config, seed);
    for record in log {
        feed(&mut coordinator, Input::Replay(record.clone()));
    }
    feed(&mut coordinator, Input::Loaded);
    coordinator
}

fn feed(coordinator: &mut Coordinator, input: Input) -> Vec<Output> {
    let mut out = Vec::new();
    coordinator.handle(Timestamp(1), input, &mut out);
    out
}

fn ask(coordinator: &mut Coordinator, id: u64, version: i16, request: GroupRequest) -> Vec<Output> {
    feed(
        coordinator,
        Input::Request {
            id: RequestId(id),
            connection: ConnectionId(1),
            client: Arc::new(Client::default()),
            version,
            request,
        },
    )
}

/// A join of version 3, which needs no id from before.
fn join(coordinator: &mut Coordinator, id: u64, member: &str) -> Vec<Output> {
    let request = JoinGroupRequest {
        group_id: "g".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        member_id: member.into(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupProtocol {
            name: "range".into(),
            metadata: Bytes::from_static(b"m"),
        }],
        ..JoinGroupRequest::default()
    };
    let mut out = ask(coordinator, id, 3, GroupRequest::JoinGroup(request));
    if let Some(alarm) = coordinator.wakeup()
        && matches!(alarm, kohort_group::coordinator::Alarm::InitialDelay(_))
    {
        out.extend(feed(coordinator, Input::Alarm(alarm)));
    }
    out
}

/// The records that are appended, and the answer to a join with the append that it waits for.
fn joined(out: &[Output]) -> (Vec<(u64, Record)>, JoinGroupResponse, Option<u64>) {
    let mut appends = Vec::new();
    let mut answer = None;
    for output in out {
        match output {
            Output::Append(n, record) => appends.push((*n, record.clone())),
            Output::Reply {
                response: GroupResponse::JoinGroup(response),
                after,
                ..
            } => answer = Some((response.clone(), *after)),
            _ => {}
        }
    }
    let (response, after) = answer.unwrap();
    (appends, response, after)
}

#[test]
fn a_generation_waits_for_its_record() {
    let (appends, response, after) = joined(&join(&mut fresh(&[], 1), 1, ""));
    assert_eq!(response.generation_id, 1);
    assert_eq!(after, appends.last().map(|(n, _)| *n));
}

#[test]
fn a_generation_that_could_not_be_stored_is_not_told() {
    let mut coordinator = fresh(&[], 1);
    let (appends, _, _) = joined(&join(&mut coordinator, 1, ""));
    let n = appends.last().unwrap().0;
    let failed = Input::AppendFailed(n, ErrorCode::NotEnoughReplicas);
    let (_, response, after) = joined(&feed(&mut coordinator, failed));
    assert_eq!(response.error_code, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(after, None);
    // The group prepares the next one; the failed number is not used again.
    let (_, again, _) = joined(&join(&mut coordinator, 2, &response.member_id));
    assert_eq!(again.generation_id, 2);
}

#[test]
fn a_round_in_the_making_is_begun_anew_after_a_restart() {
    let mut coordinator = fresh(&[], 1);
    let (appends, first, _) = joined(&join(&mut coordinator, 1, ""));
    let mut log: Vec<Record> = appends.iter().map(|(_, record)| record.clone()).collect();
    let sync = SyncGroupRequest {
        group_id: "g".into(),
        generation_id: 1,
        member_id: first.member_id.clone(),
        assignments: vec![SyncGroupAssignment {
            member_id: first.member_id.clone(),
            assignment: Bytes::from_static(b"a"),
        }],
        ..SyncGroupRequest::default()
    };
    for (n, _) in appends {
        feed(&mut coordinator, Input::Appended(n));
    }
    for output in ask(&mut coordinator, 2, 3, GroupRequest::SyncGroup(sync)) {
        if let Output::Append(n, record) = output {
            log.push(record);
            feed(&mut coordinator, Input::Appended(n));
        }
    }
    // The leader joins, is told generation 2, and the coordinator dies before it has synced.
    let (appends, second, _) = joined(&join(&mut coordinator, 3, &first.member_id));
    assert_eq!(second.generation_id, 2);
    log.extend(appends.into_iter().map(|(_, record)| record));
    let mut coordinator = fresh(&log, 2);
    let beat = HeartbeatRequest {
        group_id: "g".into(),
        generation_id: 2,
        member_id: first.member_id.clone(),
        group_instance_id: None,
    };
    let answer = ask(&mut coordinator, 4, 3, GroupRequest::Heartbeat(beat));
    let [
        Output::Reply {
            response: GroupResponse::Heartbeat(beat),
            ..
        },
    ] = &answer[..]
    else {
        panic!("expected the answer to a heartbeat, got {answer:?}");
    };
    assert_eq!(beat.error_code, ErrorCode::RebalanceInProgress);
    let (_, third, _) = joined(&join(&mut coordinator, 5, &first.member_id));
    assert_eq!(third.generation_id, 3);
}
