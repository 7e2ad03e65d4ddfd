//! Topics: what is wanted, and what changes.

use crate::script::{Script, of, on, plain};
use kohort_group::member::{Input, Output, Subscription};
use kohort_group::reason::JoinReason;
use kohort_wire::ErrorCode;
use kohort_wire::embedded::{Assignment, Subscription as Said};
use kohort_wire::messages::JoinGroupResponseMember;

/// A leader of a group of one, in generation 1, that owns `t-0` of one.
fn leader() -> Script {
    let mut script = Script::new(|_| {});
    script.subscribe(&["t"]);
    script.topics(&[("t", 1)]);
    lead(&mut script, 1, &of(&[0]));
    script
}

fn lead(script: &mut Script, generation: i32, assigned: &kohort_group::partitions::Partitions) {
    let (token, request) = script.take_join();
    let mut answer = Script::join_answer(generation);
    answer.leader = "m".to_owned();
    answer.members = vec![JoinGroupResponseMember {
        member_id: "m".to_owned(),
        metadata: request.protocols[0].metadata.clone(),
        ..JoinGroupResponseMember::default()
    }];
    script.answer_join(token, answer);
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(assigned));
    script.out.clear();
}

/// kafka-go#646, kafka-go#1134, kafka-go#1262, sarama-cluster#235, kafkajs#923: partitions that are added are noticed
/// by the leader, which joins again and says why.
#[test]
fn a_leader_notices_new_partitions() {
    let mut script = leader();
    script.topics(&[("t", 1), ("other", 5)]);
    assert!(
        script
            .waiting
            .iter()
            .all(|one| crate::script::key(&one.request) != kohort_wire::ApiKey::JoinGroup)
    );
    script.topics(&[("t", 3)]);
    let (_, join) = script.take_join();
    assert_eq!(join.join_reason, JoinReason::TopicMetadataChanged.number());
    assert_eq!(join.reason.as_deref(), Some("cached metadata has changed"));
}

/// A leader that leads again shares out the topics of those who came in the meantime, too, and waits until it knows them.
#[test]
fn a_leader_asks_for_the_topics_of_a_newcomer() {
    let mut script = leader();
    script.beat(ErrorCode::RebalanceInProgress);
    let (token, request) = script.take_join();
    let newcomer = Said {
        topics: vec!["new".into()],
        ..Said::default()
    };
    let mut answer = Script::join_answer(2);
    answer.leader = "m".to_owned();
    answer.members = vec![
        JoinGroupResponseMember {
            member_id: "m".to_owned(),
            metadata: request.protocols[0].metadata.clone(),
            ..JoinGroupResponseMember::default()
        },
        JoinGroupResponseMember {
            member_id: "n".to_owned(),
            metadata: newcomer.encode(),
            ..JoinGroupResponseMember::default()
        },
    ];
    script.answer_join(token, answer);
    assert!(!script.waits(kohort_wire::ApiKey::SyncGroup));
    script.topics(&[("t", 1), ("new", 2)]);
    let (_, sync) = script.take_sync();
    let theirs = sync.assignments.iter().find(|one| one.member_id == "n");
    let theirs = Assignment::decode(theirs.unwrap().assignment.clone()).unwrap();
    assert_eq!(&*theirs.assigned[0].topic, "new");
}

/// A follower leaves that to the leader.
#[test]
fn a_follower_does_not_watch() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.topics(&[("t", 3)]);
    assert!(!script.waits(kohort_wire::ApiKey::JoinGroup));
}

/// KAFKA-9181: who does not lead any more forgets the others' topics.
#[test]
fn a_former_leader_forgets_the_topics_of_others() {
    let mut script = leader();
    script.beat(ErrorCode::RebalanceInProgress);
    script.round(2, plain(&of(&[0])));
    script.topics(&[("t", 9)]);
    assert!(!script.waits(kohort_wire::ApiKey::JoinGroup));
}

/// A changed subscription joins at once, and once; the same subscription again does nothing.
#[test]
fn a_changed_subscription_joins_again() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.subscribe(&["t"]);
    assert!(!script.waits(kohort_wire::ApiKey::JoinGroup));
    script.subscribe(&["t", "u"]);
    let (token, join) = script.take_join();
    assert_eq!(join.join_reason, JoinReason::SubscriptionChanged.number());
    script.subscribe(&["t", "u", "v"]);
    // The join in flight says what it says; the next one follows its round.
    script.answer_join(token, Script::join_answer(2));
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(&of(&[0])));
    let (_, join) = script.take_join();
    assert_eq!(Script::said(&join).topics.len(), 3);
}

/// KAFKA-3854, KAFKA-4248: a new pattern is matched at once against what is known, and one refresh is asked for.
#[test]
fn a_pattern_is_matched_at_once() {
    let mut script = Script::new(|_| {});
    script.give(Input::Subscribe(Subscription::Pattern("a.*".to_owned())));
    script.topics(&[("aa", 1), ("bb", 1)]);
    script.round(1, plain(&on("aa", &[0])));
    script.out.clear();
    script.give(Input::Subscribe(Subscription::Pattern("[ab]+".to_owned())));
    assert!(script.out.contains(&Output::RefreshTopics(None)));
    script.topics(&[("aa", 1), ("bb", 1)]);
    let (_, join) = script.take_join();
    assert_eq!(Script::said(&join).topics, ["aa".into(), "bb".into()]);
}

#[test]
fn a_topic_that_appears_and_matches_joins_again() {
    let mut script = Script::new(|_| {});
    script.give(Input::Subscribe(Subscription::Pattern("a.*".to_owned())));
    script.topics(&[("a", 1)]);
    script.round(1, plain(&on("a", &[0])));
    script.topics(&[("a", 1), ("ab", 1)]);
    script.topics(&[("a", 1), ("ab", 1)]);
    let (_, join) = script.take_join();
    assert_eq!(join.join_reason, JoinReason::TopicMetadataChanged.number());
}

#[test]
fn a_pattern_that_cannot_be_read_changes_nothing() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.give(Input::Subscribe(Subscription::Pattern("(".to_owned())));
    assert!(!script.waits(kohort_wire::ApiKey::JoinGroup));
    let told = |output: &Output| matches!(output, Output::Warning { text, .. } if text.contains("expected a regular expression"));
    assert!(script.out.iter().any(told));
}

/// The application asks for a rebalance: one join, the same id, the whole claim; during a round it is kept for later.
#[test]
fn the_application_asks_for_a_rebalance() {
    let mut script = Script::stable(|_| {}, &of(&[0]));
    script.give(Input::RequestRebalance(JoinReason::Requested));
    let (token, join) = script.take_join();
    assert_eq!(join.join_reason, JoinReason::Requested.number());
    assert_eq!(Script::said(&join).owned, crate::script::wire(&of(&[0])));
    script.answer_join(token, Script::join_answer(2));
    script.give(Input::RequestRebalance(JoinReason::StateReady));
    let (token, _) = script.take_sync();
    script.answer_sync(token, ErrorCode::None, plain(&of(&[0])));
    let (_, join) = script.take_join();
    assert_eq!(join.join_reason, JoinReason::StateReady.number());
}

/// A leader that knows a topic sooner is obeyed where it matches the pattern, and no further round is needed for it.
#[test]
fn a_topic_that_the_leader_knows_sooner_is_taken_if_it_matches() {
    let mut script = Script::new(|_| {});
    script.give(Input::Subscribe(Subscription::Pattern("a.*".to_owned())));
    script.topics(&[("a", 1)]);
    let mut both = on("a", &[0]);
    both.extend(&on("ab", &[0]));
    script.round(1, plain(&both));
    assert_eq!(script.seen(), ["assign a-0 ab-0"]);
    script.topics(&[("a", 1), ("ab", 1)]);
    assert!(!script.waits(kohort_wire::ApiKey::JoinGroup));
}

/// KAFKA-13310: what was consumed of a deleted topic is not committed for seconds before the join.
#[test]
fn a_deleted_topic_is_let_go_without_a_commit() {
    let mut script = Script::new(|config| config.auto_commit_interval_ms = Some(60_000));
    script.subscribe(&["t", "u"]);
    script.topics(&[("t", 1), ("u", 1)]);
    let mut both = of(&[0]);
    both.extend(&on("u", &[0]));
    lead(&mut script, 1, &both);
    script.give(Input::Consumed(
        kohort_group::partitions::TopicPartition::new("u", 0),
        crate::script::at(4),
    ));
    script.topics(&[("t", 1)]);
    lead(&mut script, 2, &of(&[0]));
    script.give(Input::Released(on("u", &[0])));
    let (token, commit) = script.take_commit();
    script.answer_commit(token, &commit, ErrorCode::UnknownTopicOrPartition);
    assert!(script.waits(kohort_wire::ApiKey::JoinGroup));
    let failed = |output: &Output| matches!(output, Output::AutoCommitFailed(_));
    assert!(!script.out.iter().any(failed));
}
