//! Faults that were reported in public against other clients, as stories. Each names its report.

use crate::script::{Script, at, eager, of, on, one, plain, wire};
use bytes::Bytes;
use kohort_group::assign::by_name;
use kohort_group::coordinator::GroupRequest;
use kohort_group::member::{CommitId, Input, MemberConfig, Output, StateName};
use kohort_group::reason::JoinReason;
use kohort_wire::embedded::{self, StickyUserData};
use kohort_wire::messages::JoinGroupResponseMember;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;

fn commit(script: &mut Script, id: u64, partition: i32, offset: i64, retry: bool) {
    script.give(Input::Commit {
        id: CommitId(id),
        offsets: Some(BTreeMap::from([(one(partition), at(offset))])),
        retry,
    });
}

/// sarama#1493, franz-go v1.10.0, aiokafka#1176: "sticky" is no word: the next join carries what the member had, and since when.
#[test]
fn a_sticky_member_says_what_it_had() {
    let sticky = |config: &mut MemberConfig| config.assignors = vec![by_name("sticky").unwrap()];
    let mut script = Script::new(sticky);
    script.subscribe(&["t"]);
    let first = script.round(5, plain(&of(&[0, 1, 2, 3, 4, 5])));
    let data = Script::said(&first).user_data.unwrap_or_default();
    assert_eq!(StickyUserData::decode(&data), StickyUserData::default());
    script.answer_fetch(-1, ErrorCode::None);
    script.beat(ErrorCode::RebalanceInProgress);
    script.give(Input::Released(of(&[0, 1, 2, 3, 4, 5])));
    let (_, second) = script.take_join();
    let data = Script::said(&second).user_data.unwrap();
    let said = StickyUserData::decode(&data);
    assert_eq!(said.previous, wire(&of(&[0, 1, 2, 3, 4, 5])));
    assert_eq!(said.generation, Some(5));
}

/// aiokafka#1176: after each sync, the generation is in the next metadata.
#[test]
fn each_join_names_the_generation_of_the_last_assignment() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    for generation in 2..=6 {
        script.beat(ErrorCode::RebalanceInProgress);
        let join = script.round(generation, plain(&of(&[0])));
        assert_eq!(Script::said(&join).generation, Some(generation - 1));
    }
}

/// kafka-go#509, kafka-go#510, ruby-kafka#941: with a request timeout of 5 s, a join that is parked for 20 s of a rebalance timeout of
/// 60 s is sent once. KAFKA-13126: so it is with the largest poll interval there is.
#[test]
fn a_parked_join_is_sent_once() {
    for interval in [60_000, 2_147_483_647] {
        let mut script = Script::new(|config| {
            config.max_poll_interval_ms = interval;
            config.request_timeout_ms = 5_000;
        });
        script.subscribe(&["t"]);
        let sent = |script: &Script| {
            let join = |output: &&Output| {
                matches!(
                    output,
                    Output::Send {
                        request: GroupRequest::JoinGroup(_),
                        ..
                    }
                )
            };
            script.out.iter().filter(join).count()
        };
        script.pass(if interval == 60_000 { 20_000 } else { 60_000 });
        assert_eq!(sent(&script), 1);
        assert!(script.waits(ApiKey::JoinGroup));
        script.round(1, plain(&of(&[0])));
        assert_eq!(script.seen(), ["assign t-0"]);
    }
}

/// platformatic/kafka#381: whatever the coordinator answers for ever, a close gets through.
#[test]
fn a_close_gets_through_endless_refusals() {
    for code in [
        ErrorCode::RebalanceInProgress,
        ErrorCode::MemberIdRequired,
        ErrorCode::UnknownMemberId,
        ErrorCode::IllegalGeneration,
    ] {
        let mut script = Script::new(|_| {});
        script.subscribe(&["t"]);
        let end = script.now + 3_000;
        while script.now < end {
            if script.waits(ApiKey::JoinGroup) {
                let (token, _) = script.take_join();
                script.refuse_join(token, code);
            }
            script.pass(1);
        }
        script.give(Input::Close { drain: true });
        let begun = script.now;
        while script.member.state() != StateName::Closed {
            assert!(script.now.since(begun) < 6_000, "{code:?}");
            if script.waits(ApiKey::JoinGroup) {
                let (token, _) = script.take_join();
                script.refuse_join(token, code);
            }
            if script.waits(ApiKey::LeaveGroup) {
                let (token, _) = script.take_leave();
                script.answer_leave(token);
            }
            script.pass(1);
        }
    }
}

/// KAFKA-9741: a commit from inside a release names the generation that is valid then: after a cooperative sync the new one, before an
/// eager join the old one.
#[test]
fn a_commit_inside_a_release_names_the_valid_generation() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0])));
    assert_eq!(script.seen(), ["assign nothing", "revoke t-1"]);
    commit(&mut script, 1, 1, 8, true);
    let (token, request) = script.take_commit();
    assert_eq!(request.generation_id_or_member_epoch, 2);
    script.answer_commit(token, &request, ErrorCode::None);

    let eager = |config: &mut MemberConfig| config.assignors = vec![eager()];
    let mut script = Script::stable(eager, &of(&[0, 1]));
    script.beat(ErrorCode::RebalanceInProgress);
    assert_eq!(script.seen(), ["revoke t-0 t-1"]);
    commit(&mut script, 1, 1, 8, true);
    let (_, request) = script.take_commit();
    assert_eq!(request.generation_id_or_member_epoch, 1);
}

/// librdkafka#598: an application that is busy for 5 s of a session of 1 s costs nothing: its member beats.
#[test]
fn a_busy_application_does_not_stop_the_heart() {
    let mut script = Script::new(|config| {
        config.session_timeout_ms = 1_000;
        config.heartbeat_interval_ms = 300;
        config.max_poll_interval_ms = 60_000;
    });
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&[0])));
    assert_eq!(script.seen(), ["assign t-0"]);
    script.answer_fetch(-1, ErrorCode::None);
    let end = script.now + 5_000;
    let mut last = script.now;
    while script.now < end {
        if script.waits(ApiKey::Heartbeat) {
            assert!(script.now.since(last) <= 300);
            last = script.now;
            script.beat(ErrorCode::None);
        }
        script.pass(1);
    }
    assert!(script.now.since(last) <= 300);
    assert!(!script.waits(ApiKey::JoinGroup));
    assert_eq!(script.seen(), ["start t-0@none"]);
}

/// franz-go#686, franz-go#720: all was released before an eager join, so what comes back is new, each partition, also where another
/// assignor is chosen now.
#[test]
fn what_comes_back_after_an_eager_release_is_new() {
    let both = |config: &mut MemberConfig| {
        config.assignors = vec![by_name("cooperative-sticky").unwrap(), eager()];
    };
    let mut script = Script::stable(both, &of(&[0, 1, 2]));
    script.beat(ErrorCode::RebalanceInProgress);
    assert_eq!(script.seen(), ["revoke t-0 t-1 t-2"]);
    script.give(Input::Released(of(&[0, 1, 2])));
    let (token, _) = script.take_join();
    script.answer_join(token, Script::join_answer(2));
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(&of(&[0, 1, 2, 3, 4, 5])));
    assert_eq!(
        script.seen(),
        ["revoked t-0 t-1 t-2", "assign t-0 t-1 t-2 t-3 t-4 t-5"]
    );
    let (_, fetch) = script.take_fetch();
    let asked = &fetch.groups[0].topics.as_ref().unwrap()[0];
    assert_eq!(asked.partition_indexes, [0, 1, 2, 3, 4, 5]);
}

/// librdkafka#3818, Dekaf#329: what was configured is what is sent, in that order.
#[test]
fn assignors_are_listed_in_the_configured_order() {
    for names in [
        &["roundrobin", "range"][..],
        &["range", "roundrobin"],
        &["sticky", "cooperative-sticky", "range"],
    ] {
        let mut script = Script::new(|config| {
            config.assignors = names.iter().map(|name| by_name(name).unwrap()).collect();
        });
        script.subscribe(&["t"]);
        let (_, join) = script.take_join();
        let sent: Vec<&str> = join.protocols.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(sent, names);
    }
    assert!(
        by_name("fastest").is_none(),
        "no assignor stands in for one that is not known"
    );
}

/// KAFKA-7540: a commit that is under way is answered before the last one is made, and that before LeaveGroup.
#[test]
fn a_close_waits_for_the_commit_under_way() {
    let auto = |config: &mut MemberConfig| config.auto_commit_interval_ms = Some(60_000);
    let mut script = Script::stable(auto, &of(&[0]));
    commit(&mut script, 1, 0, 5, false);
    let (first, request) = script.take_commit();
    script.consume(0, 9);
    script.give(Input::Close { drain: false });
    script.give(Input::Released(of(&[0])));
    assert!(!script.waits(ApiKey::LeaveGroup));
    script.answer_commit(first, &request, ErrorCode::None);
    let (last, request) = script.take_commit();
    assert_eq!(request.topics[0].partitions[0].committed_offset, 9);
    assert!(!script.waits(ApiKey::LeaveGroup));
    script.answer_commit(last, &request, ErrorCode::None);
    let (token, _) = script.take_leave();
    script.answer_leave(token);
    assert_eq!(script.seen(), ["revoke t-0", "revoked t-0", "closed"]);
}

/// librdkafka#2944, librdkafka#3082, librdkafka#3396, racecar#208: ten seconds of NOT_COORDINATOR: each time the coordinator is looked
/// for afresh, with pauses, and when it is there again all goes on.
#[test]
fn a_coordinator_that_comes_back_is_found() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    let end = script.now + 10_000;
    let mut joins = 0;
    while script.now < end {
        if script.waits(ApiKey::JoinGroup) {
            joins += 1;
            let (token, _) = script.take_join();
            script.refuse_join(token, ErrorCode::NotCoordinator);
        }
        script.pass(1);
    }
    assert!((8..=20).contains(&joins), "{joins} joins");
    assert!(script.searches >= joins, "{} searches", script.searches);
    script.pass(1_500);
    script.round(1, plain(&of(&[0])));
    assert_eq!(script.seen(), ["assign t-0"]);
}

/// librdkafka v2.0.0: a coordinator that loads is asked again with the same id and claim, after a pause.
#[test]
fn a_coordinator_that_loads_is_asked_again() {
    let mut script = Script::stable(|config| config.session_timeout_ms = 60_000, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    for _ in 0..5 {
        let (token, join) = script.take_join();
        assert_eq!(join.member_id, "m");
        assert_eq!(Script::said(&join).owned, wire(&of(&[0])));
        script.refuse_join(token, ErrorCode::CoordinatorLoadInProgress);
        assert!(!script.waits(ApiKey::JoinGroup), "a pause");
        script.pass(1_300);
    }
    script.round(2, plain(&of(&[0])));
    assert_eq!(script.seen(), ["assign nothing"]);
}

/// kafka-python#2617, kafka-python#2610: polls of 5 ms around a join that takes 300 ms: heartbeats come at their interval afterwards.
#[test]
fn short_polls_do_not_keep_the_heart_from_beating() {
    let mut script = Script::new(|config| config.heartbeat_interval_ms = 500);
    script.subscribe(&["t"]);
    let (token, _) = script.take_join();
    let poll = |script: &mut Script, milliseconds: u64| {
        for _ in 0..milliseconds / 5 {
            script.give(Input::Polled);
            script.pass(5);
        }
    };
    poll(&mut script, 300);
    script.answer_join(token, Script::join_answer(1));
    poll(&mut script, 50);
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(&of(&[0])));
    script.answer_fetch(-1, ErrorCode::None);
    for _ in 0..30 {
        let mut waited = 0;
        while !script.waits(ApiKey::Heartbeat) {
            poll(&mut script, 5);
            waited += 5;
            assert!(waited <= 505);
        }
        script.beat(ErrorCode::None);
    }
}

/// sarama-cluster#25: five hundred partitions whose positions are slow to come: the heart beats from the sync on.
#[test]
fn heartbeats_do_not_wait_for_positions() {
    let all: Vec<i32> = (0..500).collect();
    let mut script = Script::new(|config| {
        config.session_timeout_ms = 1_000;
        config.heartbeat_interval_ms = 300;
    });
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&all)));
    assert!(script.waits(ApiKey::OffsetFetch));
    let begun = script.now;
    let mut beats = 0;
    while script.now.since(begun) < 5_000 {
        if script.waits(ApiKey::Heartbeat) {
            beats += 1;
            script.beat(ErrorCode::None);
        }
        script.pass(1);
    }
    assert!(beats >= 16, "{beats}");
    assert_eq!(script.member.state(), StateName::Stable);
    assert!(!script.waits(ApiKey::JoinGroup));
}

/// franz-go 0bfaf64f, KAFKA-9181: a leader that wants foo alone notices that bar, which another wants, has grown; and goes on asking for
/// foo alone.
#[test]
fn a_leader_watches_what_only_others_want() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["foo"]);
    script.topics(&[("foo", 1)]);
    let (token, request) = script.take_join();
    let mut answer = Script::join_answer(1);
    answer.leader = "m".to_owned();
    let theirs = embedded::Subscription {
        topics: vec!["bar".into()],
        ..embedded::Subscription::default()
    };
    let member = |id: &str, metadata: Bytes| JoinGroupResponseMember {
        member_id: id.to_owned(),
        metadata,
        ..JoinGroupResponseMember::default()
    };
    answer.members = vec![
        member("m", request.protocols[0].metadata.clone()),
        member("n", theirs.encode()),
    ];
    script.answer_join(token, answer);
    script.topics(&[("foo", 1), ("bar", 1)]);
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(&on("foo", &[0])));
    assert_eq!(script.seen(), ["assign foo-0"]);
    let (_, fetch) = script.take_fetch();
    let asked = fetch.groups[0].topics.as_ref().unwrap();
    assert_eq!(asked.len(), 1);
    script.topics(&[("foo", 1), ("bar", 2)]);
    let (_, join) = script.take_join();
    assert_eq!(Script::said(&join).topics, ["foo".into()]);
    assert_eq!(join.join_reason, JoinReason::TopicMetadataChanged.number());
}

/// librdkafka#2933, librdkafka#1142: a commit that is refused, or never answered, does not keep what was assigned from starting.
#[test]
fn a_lost_commit_does_not_hold_up_what_was_assigned() {
    for answered in [true, false] {
        let mut script = Script::stable(|config| config.session_timeout_ms = 60_000, &of(&[0]));
        commit(&mut script, 1, 0, 5, false);
        let (token, request) = script.take_commit();
        script.beat(ErrorCode::RebalanceInProgress);
        if answered {
            script.answer_commit(token, &request, ErrorCode::RebalanceInProgress);
        }
        let begun = script.now;
        while !script.waits(ApiKey::JoinGroup) {
            script.pass(100);
            if script.waits(ApiKey::Heartbeat) {
                script.beat(ErrorCode::RebalanceInProgress);
            }
            assert!(script.now.since(begun) < 31_000);
        }
        script.round(2, plain(&of(&[0, 1])));
        script.answer_fetch(7, ErrorCode::None);
        assert_eq!(script.seen(), ["assign t-1", "start t-1@7"]);
    }
}

/// KAFKA-13998, KAFKA-13828, KAFKA-14013: reasons go out in few words, whatever they are about.
#[test]
fn reasons_are_short() {
    let pattern = format!("({}", "é".repeat(50_000));
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.give(Input::Subscribe(
        kohort_group::member::Subscription::Pattern(pattern),
    ));
    script.subscribe(&["t", &"é".repeat(40_000)]);
    let (token, join) = script.take_join();
    assert!(join.reason.unwrap().chars().count() <= 255);
    script.refuse_join(token, ErrorCode::GroupAuthorizationFailed);
    script.give(Input::Released(of(&[0])));
    let (_, leave) = script.take_leave();
    assert!(leave.members[0].reason.as_ref().unwrap().chars().count() <= 255);
}

/// KAFKA-14867: where the member names its rack, other racks of replicas are a reason to share out again; where it does not, they are not.
#[test]
fn racks_that_change_matter_to_who_has_one() {
    use kohort_group::topics::TopicInfo;
    for (rack, rejoins) in [(Some("x".to_owned()), true), (None, false)] {
        let mut script = Script::new(|config| config.rack.clone_from(&rack));
        let image = |rack: &str| {
            let info = TopicInfo {
                racks: vec![[rack.into()].into()],
                ..TopicInfo::default()
            };
            Input::Topics([("t".into(), info)].into_iter().collect())
        };
        script.subscribe(&["t"]);
        script.give(image("x"));
        let (token, request) = script.take_join();
        let mut answer = Script::join_answer(1);
        answer.leader = "m".to_owned();
        answer.members = vec![JoinGroupResponseMember {
            member_id: "m".to_owned(),
            metadata: request.protocols[0].metadata.clone(),
            ..JoinGroupResponseMember::default()
        }];
        script.answer_join(token, answer);
        let (token, _) = script.take_sync();
        script.answer_sync(token, ErrorCode::None, plain(&of(&[0])));
        script.give(image("x"));
        assert!(!script.waits(ApiKey::JoinGroup));
        script.give(image("y"));
        assert_eq!(script.waits(ApiKey::JoinGroup), rejoins);
    }
}

/// KAFKA-13419: a member that was late with its sync keeps its id and what it reads, and claims it with the generation it is from.
#[test]
fn a_late_sync_costs_nothing() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    script.beat(ErrorCode::RebalanceInProgress);
    for generation in 2..5 {
        let (token, join) = script.take_join();
        assert_eq!(join.member_id, "m");
        let said = Script::said(&join);
        assert_eq!((said.owned, said.generation), (wire(&of(&[0, 1])), Some(1)));
        script.answer_join(token, Script::join_answer(generation));
        script.pass(1_000);
        let (token, _) = script.take_sync();
        script.answer_sync(token, ErrorCode::RebalanceInProgress, Bytes::new());
        script.pass(1_300);
    }
    assert_eq!(script.seen(), Vec::<String>::new());
    commit(&mut script, 1, 0, 3, true);
    script.round(5, plain(&of(&[0, 1])));
    assert_eq!(script.take_commit().1.generation_id_or_member_epoch, 5);
}
