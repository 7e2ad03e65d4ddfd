//! Joining and syncing.

use crate::script::{COOPERATIVE, Script, cooperative, eager, of, plain};
use kohort_group::member::{ConfigError, Member, MemberConfig, Output, StateName};
use kohort_group::reason::JoinReason;
use kohort_wire::messages::JoinGroupResponseMember;
use kohort_wire::{ApiKey, ErrorCode};

/// KIP-394: the first join has no id, the second uses the one that was given; nothing else differs.
#[test]
fn the_first_join_is_repeated_with_the_id_that_was_given() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    let (token, first) = script.take_join();
    assert_eq!((first.member_id.as_str(), first.join_reason), ("", 1));
    assert_eq!(Script::said(&first).generation, None);
    script.refuse_join(token, ErrorCode::MemberIdRequired);
    let (_, second) = script.take_join();
    assert_eq!(second.member_id, "m");
    assert_eq!(second.protocols, first.protocols);
    assert_eq!(second.join_reason, JoinReason::NewMember.number());
}

/// Found by hostile traces: an answer that names no generation, or no member, is no membership; and asking at once again and again
/// would be a storm.
#[test]
fn a_join_that_is_answered_with_nothing_is_sent_again_after_a_pause() {
    for (generation, id, code) in [
        (-1, "m", ErrorCode::None),
        (1, "", ErrorCode::None),
        (-1, "", ErrorCode::MemberIdRequired),
    ] {
        let mut script = Script::new(|_| {});
        script.subscribe(&["t"]);
        let mut at_once = 0;
        while script.waits(ApiKey::JoinGroup) {
            at_once += 1;
            assert!(at_once <= 2, "{code:?}: a storm");
            let (token, _) = script.take_join();
            let mut answer = Script::join_answer(generation);
            (answer.member_id, answer.error_code) = (id.to_owned(), code);
            script.answer_join(token, answer);
        }
        script.pass(1_000);
        script.round(2, plain(&of(&[0])));
        assert_eq!(script.member.generation(), 2);
    }
}

#[test]
fn a_member_joins_syncs_and_starts_where_nothing_is_committed() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.round(1, plain(&of(&[0, 1])));
    assert_eq!(script.seen(), ["assign t-0 t-1"]);
    script.answer_fetch(-1, ErrorCode::None);
    assert_eq!(script.seen(), ["start t-0@none t-1@none"]);
    assert_eq!(script.member.state(), StateName::Stable);
    assert_eq!(script.member.generation(), 1);
}

/// Versions are the highest that both sides know, but those that name topics by id.
#[test]
fn the_highest_common_version_is_sent() {
    let mut script = Script::new(|_| {});
    script.versions.insert(ApiKey::JoinGroup, (0, 3));
    script.subscribe(&["t"]);
    assert_eq!(script.take(ApiKey::JoinGroup).version, 3);
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0, 1])));
    assert_eq!(script.take(ApiKey::OffsetFetch).version, 9);
}

/// kafka-go#509, KAFKA-13126: a join may take as long as a rebalance, and the sum does not overflow.
#[test]
fn a_parked_join_is_waited_for_beyond_the_rebalance_timeout() {
    let mut script = Script::new(|config| {
        config.max_poll_interval_ms = 2_147_483_647;
        config.request_timeout_ms = 1_500;
    });
    script.subscribe(&["t"]);
    script.pass(2_147_000_000);
    assert!(script.waits(ApiKey::JoinGroup));
}

/// A leader that nobody helps: it asks for the topics of all members, waits for them, and shares out.
#[test]
fn a_leader_asks_for_the_topics_of_all_members() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    let (token, request) = script.take_join();
    let mut answer = Script::join_answer(1);
    answer.leader = "m".to_owned();
    let mut foreign = request.clone();
    foreign.protocols[0].metadata = kohort_wire::embedded::Subscription {
        topics: vec!["u".into()],
        ..kohort_wire::embedded::Subscription::default()
    }
    .encode();
    answer.members = [("m", &request), ("n", &foreign)]
        .map(|(id, request)| JoinGroupResponseMember {
            member_id: id.to_owned(),
            metadata: request.protocols[0].metadata.clone(),
            ..JoinGroupResponseMember::default()
        })
        .to_vec();
    script.out.clear();
    script.answer_join(token, answer);
    let asked = ["t", "u"].map(Into::into).into();
    assert!(script.out.contains(&Output::RefreshTopics(Some(asked))));
    assert!(!script.waits(ApiKey::SyncGroup));
    script.topics(&[("t", 2), ("u", 2)]);
    let (_, sync) = script.take_sync();
    assert_eq!(sync.assignments.len(), 2);
    assert_eq!(sync.protocol_name.as_deref(), Some(COOPERATIVE));
}

/// KAFKA-13419, KAFKA-13891: a sync that failed does not make the claim look newer than it is.
#[test]
fn a_claim_keeps_the_generation_that_assigned_it() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let (token, first) = script.take_join();
    assert_eq!(first.join_reason, JoinReason::Unknown.number());
    script.answer_join(token, Script::join_answer(7));
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::RebalanceInProgress, bytes::Bytes::new());
    let (_, second) = script.take_join();
    let said = Script::said(&second);
    assert_eq!(said.generation, Some(1));
    assert_eq!(said.owned, crate::script::wire(&of(&[0])));
    assert_eq!(second.join_reason, JoinReason::Retry.number());
    assert_eq!(second.member_id, "m");
    assert_eq!(script.seen(), Vec::<String>::new());
}

/// A released partition must move even if the join that says so gets lost.
#[test]
fn a_strong_reason_outlives_a_lost_answer() {
    let mut script = Script::stable(|_| {}, &of(&[0, 1]));
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0])));
    script.give(kohort_group::member::Input::Released(of(&[1])));
    let (token, request) = script.take_join();
    assert_eq!(request.join_reason, JoinReason::RevocationDone.number());
    script.break_off(token);
    script.pass(200);
    let (_, request) = script.take_join();
    assert_eq!(request.join_reason, JoinReason::RevocationDone.number());
}

/// KAFKA-9140: the result of a sync is dropped when the member was reset meanwhile; a join is on the wire at once.
#[test]
fn a_sync_that_was_overtaken_by_a_reset_is_dropped() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.beat(ErrorCode::RebalanceInProgress);
    let (token, _) = script.take_join();
    script.answer_join(token, Script::join_answer(5));
    let (sync, _) = script.take_sync();
    script.beat(ErrorCode::UnknownMemberId);
    assert_eq!(script.seen(), ["lost t-0"]);
    script.answer_sync(sync, ErrorCode::None, plain(&of(&[0])));
    assert_eq!(script.seen(), Vec::<String>::new());
    let (_, request) = script.take_join();
    assert_eq!((request.member_id.as_str(), request.join_reason), ("", 8));
}

/// KAFKA-13435, KIP-814: a returning static leader that is told not to assign hands nothing out, but watches the topics.
#[test]
fn a_leader_that_skips_the_assignment_watches_all_the_same() {
    let mut script = Script::new(|config| config.group_instance_id = Some("i".to_owned()));
    script.subscribe(&["t"]);
    script.topics(&[("t", 1)]);
    let (token, request) = script.take_join();
    let mut answer = Script::join_answer(4);
    answer.leader = "m".to_owned();
    answer.skip_assignment = true;
    answer.members = vec![JoinGroupResponseMember {
        member_id: "m".to_owned(),
        group_instance_id: Some("i".to_owned()),
        metadata: request.protocols[0].metadata.clone(),
    }];
    script.answer_join(token, answer);
    let (token, sync) = script.take_sync();
    assert!(sync.assignments.is_empty());
    script.answer_sync(token, ErrorCode::None, plain(&of(&[0])));
    script.topics(&[("t", 2)]);
    let (_, request) = script.take_join();
    assert_eq!(
        request.join_reason,
        JoinReason::TopicMetadataChanged.number()
    );
}

/// KAFKA-17733: no bytes at all are an empty assignment.
#[test]
fn no_bytes_are_an_empty_assignment() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.round(1, bytes::Bytes::new());
    assert_eq!(script.seen(), ["assign nothing"]);
    assert_eq!(script.member.state(), StateName::Stable);
}

/// KAFKA-20570: bytes that cannot be read assign nothing; the member tries again with pauses and gives up in the end.
#[test]
fn an_assignment_that_cannot_be_read_is_not_taken() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    for generation in 1..=3 {
        script.round(
            generation,
            bytes::Bytes::from_static(&[0, 3, 0x7f, 0xff, 0xff, 0xff]),
        );
        script.pass(1_500);
    }
    let (token, _) = script.take_leave();
    script.answer_leave(token);
    assert_eq!(script.seen(), ["fatal"]);
}

/// KAFKA-7961: a topic that was not asked for is not taken, and the leader gets one chance to do better.
#[test]
fn a_foreign_topic_is_not_taken() {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    let mut both = of(&[0]);
    both.extend(&crate::script::on("u", &[0]));
    script.round(1, plain(&both));
    assert_eq!(script.seen(), ["assign t-0"]);
    script.round(2, plain(&both));
    assert_eq!(script.seen(), ["assign nothing"]);
    assert_eq!(script.member.state(), StateName::Stable);
}

/// KIP-345: an instance id needs JoinGroup version 5; a member that cannot send it says so and does not join as dynamic.
#[test]
fn an_old_broker_is_no_place_for_a_static_member() {
    let mut script = Script::new(|config| config.group_instance_id = Some("i".to_owned()));
    script.versions.insert(ApiKey::JoinGroup, (0, 4));
    script.subscribe(&["t"]);
    assert!(!script.waits(ApiKey::JoinGroup));
    assert_eq!(script.seen(), ["fatal"]);
}

/// librdkafka#2944, platformatic/kafka#381, KAFKA-12639: whatever a broker answers for ever, requests keep pauses.
#[test]
fn a_coordinator_that_always_refuses_is_not_stormed() {
    for code in [
        ErrorCode::NotCoordinator,
        ErrorCode::RebalanceInProgress,
        ErrorCode::CoordinatorLoadInProgress,
        ErrorCode::UnknownMemberId,
        ErrorCode::IllegalGeneration,
        ErrorCode::MemberIdRequired,
        ErrorCode::UnknownServerError,
    ] {
        let mut script = Script::new(|_| {});
        script.subscribe(&["t"]);
        let mut joins = 0;
        let end = script.now + 10_000;
        while script.now < end {
            if script.waits(ApiKey::JoinGroup) {
                joins += 1;
                let (token, _) = script.take_join();
                script.refuse_join(token, code);
            }
            script.pass(1);
        }
        assert!((8..=20).contains(&joins), "{code:?}: {joins} joins in 10 s");
        assert!(
            script.searches <= 20,
            "{code:?}: {} searches",
            script.searches
        );
    }
}

/// Configurations that cannot work are refused with all their problems at once.
#[test]
fn a_bad_configuration_names_all_its_problems() {
    let mut config = MemberConfig::new("", vec![cooperative(), eager(), cooperative()]);
    config.heartbeat_interval_ms = 45_000;
    let errors = Member::new(config).unwrap_err();
    assert_eq!(
        errors.0,
        [
            ConfigError::EmptyGroupId,
            ConfigError::HeartbeatNotBelowSession {
                heartbeat: 45_000,
                session: 45_000
            },
            ConfigError::DuplicateAssignor(COOPERATIVE.to_owned()),
        ]
    );
    assert!(errors.to_string().contains("group.id is empty"));
}

/// KIP-345: an id that no assignment was stored under may be gone with the coordinator that gave it, and its successor knows the
/// instance by the id of its time before. FENCED_INSTANCE_ID then names no other process: the member asks once for a new id. Kafka's
/// client ends there.
#[test]
fn a_coordinator_that_lost_the_id_fences_nobody() {
    let mut script = Script::new(|config| config.group_instance_id = Some("i".to_owned()));
    script.subscribe(&["t"]);
    let (token, _) = script.take_join();
    script.answer_join(token, Script::join_answer(1));
    let (token, _) = script.take_sync();
    script.break_off(token);
    script.pass(1_000);
    let (token, join) = script.take_join();
    assert_eq!(join.member_id, "m");
    script.refuse_join(token, ErrorCode::FencedInstanceId);
    script.pass(1_000);
    let (token, join) = script.take_join();
    assert_eq!(join.member_id, "");
    script.refuse_join(token, ErrorCode::FencedInstanceId);
    assert_eq!(script.seen().last().unwrap(), "fatal");
}

/// The same where the id could not be stored because the log failed: the next coordinator does not know it.
#[test]
fn an_id_that_could_not_be_stored_fences_nobody() {
    let mut script = Script::new(|config| config.group_instance_id = Some("i".to_owned()));
    script.subscribe(&["t"]);
    let (token, _) = script.take_join();
    script.answer_join(token, Script::join_answer(1));
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::UnknownServerError, bytes::Bytes::new());
    script.pass(1_000);
    let (token, _) = script.take_join();
    script.refuse_join(token, ErrorCode::FencedInstanceId);
    script.pass(1_000);
    let (_, join) = script.take_join();
    assert_eq!(join.member_id, "");
}
