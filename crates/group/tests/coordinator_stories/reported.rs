//! Faults that were reported in public against other coordinators, as stories. Each names its report.

use super::script::{Script, config, join, join_as, subscription};
use bytes::Bytes;
use kohort_group::coordinator::record::{GroupValue, GroupValueMember, Record};
use kohort_group::coordinator::{
    Client, ConnectionId, Coordinator, CoordinatorConfig, GroupRequest, GroupResponse, Input,
    Output, RequestId,
};
use kohort_group::time::Timestamp;
use kohort_group::topics::TopicInfo;
use kohort_wire::ErrorCode;
use kohort_wire::messages::*;
use std::sync::Arc;

/// A static member of a Stable group with a dynamic leader: leader, static member, generation.
fn leader_and_instance(script: &mut Script) -> (String, String, i32) {
    let (a, first) = script.enter();
    script.pass(1);
    script.joined(first);
    let second = script.join(join_as("i1", ""));
    let again = script.join(join(&a));
    let generation = script.joined(again).generation_id;
    let b = script.joined(second).member_id;
    script.settle(&[&a, &b], generation);
    (a, b, generation)
}

fn sync_as(instance: Option<&str>, member: &str, generation: i32) -> GroupRequest {
    GroupRequest::SyncGroup(SyncGroupRequest {
        group_id: "g".into(),
        generation_id: generation,
        member_id: member.into(),
        group_instance_id: instance.map(str::to_owned),
        ..SyncGroupRequest::default()
    })
}

fn commit_as(instance: Option<&str>, member: &str, generation: i32) -> GroupRequest {
    GroupRequest::OffsetCommit(OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: generation,
        member_id: member.into(),
        group_instance_id: instance.map(str::to_owned),
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![OffsetCommitRequestPartition {
                committed_offset: 3,
                ..OffsetCommitRequestPartition::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    })
}

/// The code in an answer, wherever that API has it.
fn code(answer: GroupResponse) -> ErrorCode {
    match answer {
        GroupResponse::JoinGroup(answer) => answer.error_code,
        GroupResponse::SyncGroup(answer) => answer.error_code,
        GroupResponse::Heartbeat(answer) => answer.error_code,
        GroupResponse::LeaveGroup(answer) if answer.members.is_empty() => answer.error_code,
        GroupResponse::LeaveGroup(answer) => answer.members[0].error_code,
        GroupResponse::OffsetCommit(answer) => answer.topics[0].partitions[0].error_code,
        GroupResponse::OffsetFetch(answer) => answer
            .groups
            .first()
            .map_or(answer.error_code, |group| group.error_code),
        other => panic!("{other:?}"),
    }
}

fn ask(script: &mut Script, version: i16, request: GroupRequest) -> ErrorCode {
    let id = script.send(version, request);
    code(script.answer(id).expect("an answer at once"))
}

/// KAFKA-8653, ruby-kafka#786, brod#465, kaffe#92, kafka-node#1362: a join that brings no time to come back (v0), a negative one or zero
/// does not push the member that is there out, however short a time that one had asked for itself: one rebalance, both are in.
#[test]
fn a_join_without_a_rebalance_timeout_pushes_nobody_out() {
    for (version, timeout) in [(0, -1), (3, -1), (3, 0), (9, 0)] {
        let mut script = Script::new(config());
        let quick = |member: &str| JoinGroupRequest {
            rebalance_timeout_ms: timeout,
            ..join(member)
        };
        script.version = 3;
        let first = script.join(quick(""));
        script.pass(1);
        let a = script.joined(first).member_id;
        script.settle(&[&a], 1);
        script.version = version;
        let mut second = script.join(quick(""));
        if version >= 4 {
            let b = script.joined(second).member_id;
            second = script.join(quick(&b));
        }
        script.pass(9_000);
        assert!(script.waits(second), "v{version} {timeout}");
        assert_eq!(script.beat(&a, 1), ErrorCode::RebalanceInProgress);
        script.version = 3;
        let again = script.join(quick(&a));
        let answer = script.joined(again);
        assert_eq!((answer.generation_id, answer.members.len()), (2, 2));
        let b = script.joined(second).member_id;
        script.settle(&[&a, &b], 2);
        script.pass(9_000);
        assert_eq!(script.beat(&a, 2), ErrorCode::None);
    }
}

/// streamnative/kop#380: whatever way the last missing member goes, the join phase ends then.
#[test]
fn the_join_phase_ends_when_the_last_missing_member_goes() {
    for leaves in [true, false] {
        let mut script = Script::new(config());
        let (a, b, generation) = script.pair();
        let (_, c) = script.enter();
        let again = script.join(join(&a));
        if leaves {
            assert_eq!(script.leave(&b), ErrorCode::None);
        } else {
            script.pass(9_998);
            assert!(script.waits(again));
            script.pass(3);
        }
        let answer = script.joined(again);
        assert_eq!(
            (answer.generation_id, answer.members.len()),
            (generation + 1, 2)
        );
        assert_eq!(script.joined(c).generation_id, generation + 1);
    }
}

/// moosestack#4006: the answer to a join is made once, when the join phase ends. That the leader has synced, and the group is Stable,
/// before anybody looks changes none of them.
#[test]
fn answers_to_joins_do_not_depend_on_who_looks_when() {
    let mut script = Script::new(CoordinatorConfig {
        initial_rebalance_delay_ms: 1_000,
        ..config()
    });
    let joins: Vec<_> = (0..60).map(|_| script.enter()).collect();
    assert!(joins.iter().all(|(_, join)| script.waits(*join)));
    script.pass(2_000);
    let mut joins = joins.into_iter();
    let (leader, join) = joins.next().unwrap();
    let answer = script.joined(join);
    assert_eq!((answer.leader, answer.members.len()), (leader.clone(), 60));
    let sync = script.sync(&leader, 1, &[(&leader, "A")]);
    assert_eq!(script.synced(sync).0, ErrorCode::None);
    assert_eq!(script.state().group_state, "Stable");
    for (member, join) in joins {
        let answer = script.joined(join);
        assert_eq!(
            (answer.generation_id, &answer.leader, answer.error_code),
            (1, &leader, ErrorCode::None)
        );
        let sync = script.sync(&member, 1, &[]);
        assert_eq!(script.synced(sync).0, ErrorCode::None);
    }
}

/// KAFKA-8500: in every state a start without an id replaces the id, twice in a row as well; what is parked under the id before is
/// answered FENCED_INSTANCE_ID at once, and only the last start is in the group.
#[test]
fn the_last_of_three_starts_holds_the_instance_in_every_state() {
    for state in ["PreparingRebalance", "CompletingRebalance", "Stable"] {
        let mut script = Script::new(config());
        let (a, m1, _) = leader_and_instance(&mut script);
        let (c, third) = script.enter();
        let joins = [script.join(join(&a)), script.join(join_as("i1", &m1))];
        let generation = script.joined(third).generation_id;
        let _ = joins.map(|id| script.joined(id));
        script.settle(&[&a, &m1, &c], generation);
        if state != "Stable" {
            let again = script.join(join(&a));
            if state == "CompletingRebalance" {
                let joins = [
                    again,
                    script.join(join_as("i1", &m1)),
                    script.join(join(&c)),
                ];
                let _ = joins.map(|id| script.joined(id));
            }
        }
        assert_eq!(script.state().group_state, state);
        let sync = (state == "CompletingRebalance")
            .then(|| script.send(4, sync_as(Some("i1"), &m1, generation + 1)));
        let one = script.join(join_as("i1", ""));
        if let Some(sync) = sync {
            assert_eq!(script.synced(sync).0, ErrorCode::FencedInstanceId);
        }
        let parked = script.waits(one);
        assert_eq!(parked, state != "Stable");
        let two = script.join(join_as("i1", ""));
        let first = script.joined(one);
        assert_eq!(first.error_code == ErrorCode::FencedInstanceId, parked);
        for other in [&a, &c] {
            if script.waits(two) {
                script.join(join(other));
            }
        }
        let last = script.joined(two);
        assert_eq!(last.error_code, ErrorCode::None, "{state}");
        let described = script.state();
        let holders: Vec<&str> = described
            .members
            .iter()
            .filter(|member| member.group_instance_id.as_deref() == Some("i1"))
            .map(|member| member.member_id.as_str())
            .collect();
        assert_eq!(holders, [last.member_id.as_str()], "{state}");
        for old in [&m1, &first.member_id] {
            let answer = script.beat_as(Some("i1"), old, last.generation_id);
            assert_eq!(answer, ErrorCode::FencedInstanceId, "{state}");
        }
    }
}

/// KAFKA-13435, KIP-814: the id that led before the restart is good for nothing any more, and the group goes on as it was.
#[test]
fn the_id_of_a_leader_that_was_restarted_is_fenced() {
    let mut script = Script::new(config());
    let first = script.join(join_as("i1", ""));
    script.pass(1);
    let m1 = script.joined(first).member_id;
    script.settle(&[&m1], 1);
    let back = script.join(join_as("i1", ""));
    let answer = script.joined(back);
    assert_eq!((answer.generation_id, answer.skip_assignment), (1, true));
    assert_eq!(answer.leader, answer.member_id);
    assert_ne!(answer.member_id, m1);
    let again = script.join(join_as("i1", &m1));
    assert_eq!(script.joined(again).error_code, ErrorCode::FencedInstanceId);
    assert_eq!(
        ask(&mut script, 4, sync_as(Some("i1"), &m1, 1)),
        ErrorCode::FencedInstanceId
    );
    assert_eq!(
        ask(&mut script, 4, sync_as(None, &m1, 1)),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(script.beat(&answer.member_id, 1), ErrorCode::None);
}

/// KAFKA-14009: a restart in Stable brings its session timeout and its rebalance timeout, and both count from then on.
#[test]
fn a_restart_in_stable_brings_both_timeouts() {
    let mut script = Script::new(config());
    let with = |session: i32, rebalance: i32| JoinGroupRequest {
        session_timeout_ms: session,
        rebalance_timeout_ms: rebalance,
        ..join_as("i1", "")
    };
    let first = script.join(with(10_000, 300_000));
    script.pass(1);
    let m1 = script.joined(first).member_id;
    script.settle(&[&m1], 1);
    let back = script.join(with(20_000, 30_000));
    let m2 = script.joined(back).member_id;
    script.pass(19_000);
    assert_eq!(script.beat(&m2, 1), ErrorCode::None, "20 s of session");
    // Somebody comes, and the static member beats without joining: the newcomer waits for 30 s and not for 300.
    let (_, newcomer) = script.enter();
    for _ in 0..2 {
        script.pass(14_999);
        assert_eq!(script.beat(&m2, 1), ErrorCode::RebalanceInProgress);
    }
    assert!(script.waits(newcomer));
    script.pass(3);
    assert_eq!(script.joined(newcomer).generation_id, 2);
}

/// KAFKA-14201: a commit outside any membership is taken although it names a member and an instance, as long as nobody is in the group.
#[test]
fn a_simple_commit_may_name_an_instance() {
    let mut script = Script::new(config());
    for (instance, member) in [(Some("i1"), ""), (Some("i1"), "m"), (None, "m")] {
        assert_eq!(
            ask(&mut script, 8, commit_as(instance, member, -1)),
            ErrorCode::None
        );
    }
    assert_eq!(script.committed(), 3);
    script.pair();
    assert_eq!(
        ask(&mut script, 8, commit_as(Some("i1"), "", -1)),
        ErrorCode::UnknownMemberId
    );
}

/// KAFKA-7862, KAFKA-8225: two live processes with one instance id. The older id is fenced in every API; an instance that nobody holds,
/// and a member that is not there, are unknown.
#[test]
fn the_older_of_two_processes_is_fenced_in_every_request() {
    let mut script = Script::new(config());
    let (_, m1, generation) = leader_and_instance(&mut script);
    let back = script.join(join_as("i1", ""));
    let m2 = script.joined(back).member_id;
    for (instance, member, expected) in [
        ("i1", m1.as_str(), ErrorCode::FencedInstanceId),
        ("i1", "somebody", ErrorCode::FencedInstanceId),
        ("i9", m2.as_str(), ErrorCode::UnknownMemberId),
    ] {
        let heartbeat = GroupRequest::Heartbeat(HeartbeatRequest {
            group_id: "g".into(),
            generation_id: generation,
            member_id: member.into(),
            group_instance_id: Some(instance.into()),
        });
        for (version, request) in [
            (4, heartbeat),
            (4, sync_as(Some(instance), member, generation)),
            (8, commit_as(Some(instance), member, generation)),
            (9, GroupRequest::JoinGroup(join_as(instance, member))),
        ] {
            let got = ask(&mut script, version, request);
            assert_eq!(got, expected, "{instance} {member} v{version}");
        }
    }
    assert_eq!(script.beat_as(Some("i1"), &m2, generation), ErrorCode::None);
}

/// librdkafka#3818: the assignor that all list first is the one that is chosen, whatever the alphabet says.
#[test]
fn the_protocol_that_all_prefer_is_chosen() {
    let mut script = Script::new(config());
    let both = |member: &str| {
        let mut request = join(member);
        request.protocols = ["roundrobin", "range"]
            .map(|name| JoinGroupProtocol {
                name: name.into(),
                metadata: subscription(&["t"]),
            })
            .to_vec();
        request
    };
    script.version = 3;
    let first = script.join(both(""));
    script.pass(1);
    let a = script.joined(first);
    assert_eq!(a.protocol_name.as_deref(), Some("roundrobin"));
    let second = script.join(both(""));
    let again = script.join(both(&a.member_id));
    for id in [second, again] {
        let answer = script.joined(id);
        assert_eq!(answer.protocol_name.as_deref(), Some("roundrobin"));
    }
}

/// KAFKA-12477: a group that has gone cooperative does not go back unnoticed: who lists only an eager assignor is refused, and the
/// group does not even rebalance.
#[test]
fn a_member_without_a_common_protocol_is_refused() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let mut request = join("");
    request.protocols[0].name = "roundrobin".into();
    let stranger = script.join(request);
    assert_eq!(
        script.joined(stranger).error_code,
        ErrorCode::InconsistentGroupProtocol
    );
    for member in [a, b] {
        assert_eq!(script.beat(&member, generation), ErrorCode::None);
    }
}

/// KAFKA-13636: offsets do not expire in CompletingRebalance either. In Stable they do, where nobody subscribes to the topic.
#[test]
fn only_topics_that_nobody_wants_expire_in_a_living_group() {
    let short = CoordinatorConfig {
        offsets_retention_ms: 1_000,
        offsets_retention_check_interval_ms: 100,
        ..config()
    };
    for (topic, state, expected) in [
        ("t", "Stable", 3),
        ("u", "Stable", -1),
        ("u", "CompletingRebalance", 3),
    ] {
        let mut script = Script::new(short.clone());
        script.version = 3;
        let request = |member: &str| {
            let mut request = join(member);
            request.protocols[0].metadata = subscription(&[topic]);
            request
        };
        let first = script.join(request(""));
        script.pass(1);
        let a = script.joined(first).member_id;
        let everything = "\0\u{3}\0\0\0\0\0\0\0\0";
        let sync = script.sync(&a, 1, &[(&a, everything)]);
        script.synced(sync);
        let committed = ask(&mut script, 8, commit_as(None, &a, 1));
        assert_eq!(committed, ErrorCode::None);
        if state != "Stable" {
            let again = script.join(request(&a));
            script.joined(again);
        }
        script.pass(5_000);
        assert_eq!(script.state().group_state, state);
        assert_eq!(script.committed(), expected, "{topic} {state}");
    }
}

/// Every request that names a group, from a member that thinks it is in it.
fn requests() -> Vec<(i16, GroupRequest)> {
    let fetch = OffsetFetchRequest {
        group_id: "g".into(),
        topics: Some(vec![OffsetFetchRequestTopic {
            name: "t".into(),
            partition_indexes: vec![0],
        }]),
        ..Default::default()
    };
    vec![
        (
            4,
            GroupRequest::Heartbeat(HeartbeatRequest {
                group_id: "g".into(),
                generation_id: 1,
                member_id: "m".into(),
                group_instance_id: None,
            }),
        ),
        (4, sync_as(None, "m", 1)),
        (9, GroupRequest::JoinGroup(join("m"))),
        (8, commit_as(None, "m", 1)),
        (7, GroupRequest::OffsetFetch(fetch)),
    ]
}

fn answers_of(coordinator: &mut Coordinator, now: Timestamp) -> Vec<(GroupRequest, ErrorCode)> {
    let mut answers = Vec::new();
    for (number, (version, request)) in requests().into_iter().enumerate() {
        let mut out = Vec::new();
        let input = Input::Request {
            id: RequestId(9_000 + number as u64),
            connection: ConnectionId(1),
            client: Arc::new(Client::default()),
            version,
            request: request.clone(),
        };
        coordinator.handle(now, input, &mut out);
        let answer = out.into_iter().find_map(|output| match output {
            Output::Reply { response, .. } => Some(code(response)),
            _ => None,
        });
        answers.push((request, answer.expect("an answer at once")));
    }
    answers
}

/// KAFKA-8386, redpanda#5428, redpanda#6301: while a coordinator loads it does not know, and says so: to a member that it does not know
/// yet nothing sounds like "you are out", and no offset reads as "none committed". Heartbeats and syncs are answered as Kafka does, in
/// words that older clients bear.
#[test]
fn a_coordinator_that_loads_knows_nothing_and_says_so() {
    let mut coordinator = Coordinator::new(config(), 1);
    let codes: Vec<ErrorCode> = answers_of(&mut coordinator, Timestamp(0))
        .into_iter()
        .map(|(_, code)| code)
        .collect();
    assert_eq!(
        codes,
        [
            ErrorCode::None,
            ErrorCode::RebalanceInProgress,
            ErrorCode::CoordinatorLoadInProgress,
            ErrorCode::CoordinatorLoadInProgress,
            ErrorCode::CoordinatorLoadInProgress,
        ]
    );
    let mut out = Vec::new();
    let topics = [("t".into(), TopicInfo::with_partitions(1))];
    for input in [Input::Topics(topics.into_iter().collect()), Input::Loaded] {
        coordinator.handle(Timestamp(0), input, &mut out);
    }
    let codes: Vec<ErrorCode> = answers_of(&mut coordinator, Timestamp(0))
        .into_iter()
        .map(|(_, code)| code)
        .collect();
    assert_eq!(
        codes,
        [
            ErrorCode::UnknownMemberId,
            ErrorCode::UnknownMemberId,
            ErrorCode::UnknownMemberId,
            ErrorCode::IllegalGeneration,
            ErrorCode::None,
        ]
    );
}

/// KAFKA-8386: on unload what is parked is answered NOT_COORDINATOR, and so is all that comes later.
#[test]
fn an_unloaded_coordinator_sends_its_members_on() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let joins = [script.join(join(&a)), script.join(join(&b))];
    let _ = joins.map(|id| script.joined(id));
    let sync = script.sync(&b, generation + 1, &[]);
    let mut other = join("");
    other.group_id = "h".into();
    let first = script.join(other.clone());
    other.member_id = script.joined(first).member_id;
    script.join(other.clone());
    let mut newcomer = other.clone();
    newcomer.member_id.clear();
    let id = script.join(newcomer.clone());
    newcomer.member_id = script.joined(id).member_id;
    let parked = script.join(newcomer);
    assert!(script.waits(parked) && script.waits(sync));
    script.feed(Input::Unload);
    assert_eq!(script.joined(parked).error_code, ErrorCode::NotCoordinator);
    assert_eq!(script.synced(sync).0, ErrorCode::NotCoordinator);
    for (request, answer) in answers_of(&mut script.coordinator, script.now) {
        assert_eq!(answer, ErrorCode::NotCoordinator, "{request:?}");
    }
}

/// KAFKA-7286: a group whose record has 20 MiB is loaded like any other.
#[test]
fn a_record_of_twenty_mebibytes_is_loaded() {
    let members = (0..1_000)
        .map(|at| GroupValueMember {
            member_id: format!("m{at:04}"),
            group_instance_id: None,
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout_ms: 30_000,
            session_timeout_ms: 10_000,
            subscription: Bytes::from(vec![0; 21 * 1024]),
            assignment: Bytes::from_static(b"A"),
        })
        .collect();
    let record = Record::Group {
        group: "g".into(),
        value: Some(GroupValue {
            protocol_type: "consumer".into(),
            generation: 7,
            protocol: Some("range".into()),
            leader: Some("m0000".into()),
            current_state_timestamp: -1,
            members,
        }),
    };
    let value = record.encode_value().unwrap();
    assert!(value.len() > 20 * 1024 * 1024);
    let read = Record::decode(record.encode_key(), Some(value)).unwrap();
    let mut script = Script::resume(config(), vec![read.unwrap()], 2);
    assert_eq!(script.state().members.len(), 1_000);
    assert_eq!(script.beat("m0999", 7), ErrorCode::None);
}

/// kafkajs#550, kfake a260afb9: three members, two partitions: the one that the leader leaves out, or gives no bytes, stays in the group.
#[test]
fn a_member_that_is_given_no_bytes_stays() {
    for empty in [true, false] {
        let mut script = Script::new(CoordinatorConfig {
            initial_rebalance_delay_ms: 1_000,
            ..config()
        });
        let people: Vec<_> = (0..3).map(|_| script.enter()).collect();
        script.pass(2_000);
        let ids: Vec<String> = people
            .into_iter()
            .map(|(id, join)| {
                script.joined(join);
                id
            })
            .collect();
        let mut gives = vec![(ids[0].as_str(), "A"), (ids[1].as_str(), "B")];
        if empty {
            gives.push((ids[2].as_str(), ""));
        }
        let leader = script.sync(&ids[0], 1, &gives);
        let sync = script.sync(&ids[2], 1, &[]);
        assert_eq!(script.synced(leader).1, "A");
        assert_eq!(script.synced(sync), (ErrorCode::None, Bytes::new()));
        assert_eq!(script.beat(&ids[2], 1), ErrorCode::None);
    }
}

/// KAFKA-13998, KAFKA-13828, KAFKA-14013: reasons of any length are taken, and so are none and empty ones.
#[test]
fn reasons_of_any_length_are_taken() {
    for reason in [
        None,
        Some(String::new()),
        Some("stack trace\n\t\u{1b}[31mé".repeat(5_000)),
    ] {
        let mut script = Script::new(config());
        let (a, b, generation) = script.pair();
        let mut request = join(&a);
        request.reason.clone_from(&reason);
        script.join(request);
        assert_eq!(script.beat(&b, generation), ErrorCode::RebalanceInProgress);
        let leave = GroupRequest::LeaveGroup(LeaveGroupRequest {
            group_id: "g".into(),
            members: vec![LeaveGroupMember {
                member_id: b.clone(),
                reason: reason.clone(),
                ..Default::default()
            }],
            ..Default::default()
        });
        assert_eq!(ask(&mut script, 5, leave), ErrorCode::None);
        for cause in script.coordinator.causes("g") {
            let text = format!("{cause:?}");
            assert!(text.len() < 2_000 && !text.contains("\\n"), "{text}");
        }
    }
}

/// KAFKA-6005: no group comes of a join that names no protocol type, no protocol or no group; nor of a name that the log cannot hold.
#[test]
fn a_join_that_names_too_little_makes_no_group() {
    let mut nameless = join("");
    nameless.group_id.clear();
    let mut long = join("");
    long.group_id = "g".repeat(40_000);
    let endless = join_as(&"i".repeat(40_000), "");
    let mut typeless = join("");
    typeless.protocol_type.clear();
    let mut without = join("");
    without.protocols.clear();
    for (request, expected) in [
        (typeless, ErrorCode::InconsistentGroupProtocol),
        (without, ErrorCode::InconsistentGroupProtocol),
        (nameless, ErrorCode::InvalidGroupId),
        (long, ErrorCode::InvalidGroupId),
        (endless, ErrorCode::InvalidRequest),
    ] {
        let mut script = Script::new(config());
        let id = script.join(request);
        assert_eq!(script.joined(id).error_code, expected);
        assert!(script.log.is_empty());
        let list = script.send(4, GroupRequest::ListGroups(ListGroupsRequest::default()));
        match script.answer(list) {
            Some(GroupResponse::ListGroups(answer)) => assert!(answer.groups.is_empty()),
            other => panic!("{other:?}"),
        }
    }
    let mut script = Script::new(config());
    let GroupRequest::OffsetCommit(mut commit) = commit_as(None, "", -1) else {
        unreachable!()
    };
    commit.group_id = "g".repeat(40_000);
    let commit = GroupRequest::OffsetCommit(commit);
    assert_eq!(ask(&mut script, 8, commit), ErrorCode::InvalidGroupId);
    assert!(script.log.is_empty());
}

/// KAFKA-7641: ten thousand first contacts leave nothing behind once their session timeout is over; a full group takes nobody, and other
/// groups go on.
#[test]
fn ids_that_nobody_comes_back_for_are_forgotten() {
    let mut script = Script::new(CoordinatorConfig {
        max_size: 10,
        ..config()
    });
    let resting = script.coordinator.deadline();
    for _ in 0..10_000 {
        let id = script.join(join(""));
        assert_eq!(script.joined(id).error_code, ErrorCode::MemberIdRequired);
    }
    assert!(script.state().members.is_empty());
    assert_ne!(script.coordinator.deadline(), resting);
    script.pass(10_000);
    assert_eq!(script.coordinator.deadline(), resting);
    let mut other = join("");
    other.group_id = "h".into();
    script.version = 3;
    let first = script.join(other.clone());
    script.pass(1);
    other.member_id = script.joined(first).member_id;
    let mut full = 0;
    for _ in 0..10_000 {
        let id = script.join(join(""));
        if !script.waits(id) && script.joined(id).error_code == ErrorCode::GroupMaxSizeReached {
            full += 1;
        }
    }
    assert_eq!(full, 9_990);
    let again = script.join(other);
    assert_eq!(script.joined(again).error_code, ErrorCode::None);
}
