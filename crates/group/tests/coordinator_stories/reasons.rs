//! JoinReason (KIP-423): what the coordinator decides by it, and what it remembers.

use super::script::{Script, config, join, join_as, subscription};
use kohort_group::coordinator::record::Record;
use kohort_group::history::CauseKind;
use kohort_group::reason::JoinReason;
use kohort_group::topics::TopicInfo;
use kohort_wire::ErrorCode;
use kohort_wire::embedded::{CooperativeUserData, Subscription, TopicPartitions};
use kohort_wire::messages::JoinGroupRequest;

/// Who joins a Stable group.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Leader,
    Follower,
    /// A static member by its instance id, with an empty member id: its process was restarted.
    LeaderAfresh,
    FollowerAfresh,
}

/// What is other than before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Other {
    Nothing,
    /// What it claims, its generation, the marker: nothing that an assignor shares out by.
    Claims,
    Topics,
    /// The group's topic has more partitions.
    Partitions,
}

use Other::{Claims, Nothing, Partitions, Topics};
use Who::{Follower, FollowerAfresh, Leader, LeaderAfresh};

/// The design's table: does this join make a Stable group rebalance? `None` in the column of the reason is a foreign client.
fn rebalances(who: Who, reason: Option<i8>, other: Other) -> bool {
    let reason = reason.map(JoinReason::from_number);
    let afresh = matches!(who, LeaderAfresh | FollowerAfresh);
    let kafka = match (who, other) {
        // Kafka compares bytes, and a leader's join is enough.
        (Leader, _) => true,
        (Follower, Claims | Topics) => true,
        (Follower, Nothing | Partitions) => false,
        // KIP-345, KIP-814: a restart is not looked at.
        (LeaderAfresh | FollowerAfresh, _) => false,
    };
    match reason {
        None | Some(JoinReason::Unknown) => kafka,
        Some(_) if other == Topics => true,
        // Nobody watched while a static member was away, and a leader that retries may have missed it.
        Some(_) if other == Partitions && (afresh || who == Leader) => true,
        Some(JoinReason::Restart | JoinReason::Retry) => false,
        Some(JoinReason::RevocationDone) if afresh => false,
        Some(
            JoinReason::TopicMetadataChanged
            | JoinReason::SubscriptionChanged
            | JoinReason::RevocationDone
            | JoinReason::Upgrade
            | JoinReason::StateReady
            | JoinReason::Requested,
        ) => true,
        Some(JoinReason::NewMember | JoinReason::Lost) => kafka,
    }
}

fn metadata(topics: &[&str], owned: &[i32]) -> bytes::Bytes {
    let owned = TopicPartitions {
        topic: "t".into(),
        partitions: owned.to_vec(),
    };
    Subscription {
        topics: topics.iter().map(|topic| (*topic).into()).collect(),
        owned: vec![owned],
        user_data: Some(
            CooperativeUserData {
                generation: 2,
                explicit: true,
            }
            .encode(),
        ),
        ..Subscription::default()
    }
    .encode()
}

/// What two members of a group with four partitions are given.
const LED: &str = "\0\u{3}\0\0\0\u{1}\0\u{1}t\0\0\0\u{2}\0\0\0\0\0\0\0\u{1}\0\0\0\0";
const FOLLOWED: &str = "\0\u{3}\0\0\0\u{1}\0\u{1}t\0\0\0\u{2}\0\0\0\u{2}\0\0\0\u{3}\0\0\0\0";

/// Two members of a Stable group in generation 2, the leader first, as their joins named them.
fn pair(script: &mut Script, named: impl Fn(usize, &str) -> JoinGroupRequest) -> [String; 2] {
    let enter = |script: &mut Script, number: usize| {
        let mut id = script.join(named(number, ""));
        let mut member = String::new();
        if !script.waits(id) {
            let answer = script.joined(id);
            member = answer.member_id;
            if answer.error_code == ErrorCode::MemberIdRequired {
                id = script.join(named(number, &member));
            }
        }
        (member, id)
    };
    let (mut a, first) = enter(script, 0);
    script.pass(1);
    if let Some(kohort_group::coordinator::GroupResponse::JoinGroup(answer)) = script.answer(first)
    {
        a = answer.member_id;
    }
    let (_, second) = enter(script, 1);
    let again = script.join(named(0, &a));
    script.joined(again);
    let b = script.joined(second).member_id;
    let gives = [(a.as_str(), LED), (b.as_str(), FOLLOWED)];
    let lead = script.sync(&a, 2, &gives);
    let follow = script.sync(&b, 2, &[]);
    assert_eq!(script.synced(lead).0, ErrorCode::None);
    assert_eq!(script.synced(follow).0, ErrorCode::None);
    [a, b]
}

/// Every row of the table: who, which reason (and none, and one that is not known), what is other than before, which version.
#[test]
fn the_decision_table() {
    let reasons = JoinReason::ALL.iter().map(|reason| Some(reason.number()));
    let reasons: Vec<Option<i8>> = reasons.chain([None, Some(99)]).collect();
    let mut rows = 0;
    for who in [Leader, Follower, LeaderAfresh, FollowerAfresh] {
        for other in [Nothing, Claims, Topics, Partitions] {
            for (reason, version) in reasons.iter().flat_map(|r| [(*r, 9), (*r, 8)]) {
                rows += 1;
                let row = format!("{who:?}, reason {reason:?}, other: {other:?}, v{version}");
                let mut script = Script::new(config());
                let fixed = matches!(who, LeaderAfresh | FollowerAfresh);
                let named = |number: usize, member: &str| {
                    let mut request = if fixed {
                        join_as(["i0", "i1"][number], member)
                    } else {
                        join(member)
                    };
                    request.protocols[0].metadata = metadata(&["t"], &[]);
                    request
                };
                let members = pair(&mut script, named);
                if other == Partitions {
                    let topics = [("t".into(), TopicInfo::with_partitions(5))];
                    script.feed(kohort_group::coordinator::Input::Topics(
                        topics.into_iter().collect(),
                    ));
                }
                script.version = version;
                let number = usize::from(matches!(who, Follower | FollowerAfresh));
                let mut request = named(number, if fixed { "" } else { &members[number] });
                request.join_reason = reason.unwrap_or(0);
                request.protocols[0].metadata = match other {
                    Nothing | Partitions => metadata(&["t"], &[]),
                    Claims => metadata(&["t"], &[number as i32 * 2]),
                    Topics => metadata(&["t", "u"], &[]),
                };
                let id = script.join(request);
                let expected = rebalances(who, reason, other);
                assert_eq!(script.waits(id), expected, "{row}");
                if expected {
                    assert_eq!(script.state().group_state, "PreparingRebalance", "{row}");
                    continue;
                }
                assert_eq!(script.state().group_state, "Stable", "{row}");
                let answer = script.joined(id);
                assert_eq!(answer.error_code, ErrorCode::None, "{row}");
                assert_eq!(answer.generation_id, 2, "{row}");
                let leads = matches!(who, Leader | LeaderAfresh);
                assert_eq!(answer.skip_assignment, leads && version >= 9, "{row}");
                if version < 9 && leads {
                    // It must not take itself for the leader, or it would assign.
                    assert!(answer.members.is_empty(), "{row}");
                    assert_ne!(answer.leader, answer.member_id, "{row}");
                }
                // What it asks for next is its assignment, as it was.
                let sync = script.sync(&answer.member_id, 2, &[]);
                let expected = if leads { LED } else { FOLLOWED };
                assert_eq!(script.synced(sync).1, expected, "{row}");
            }
        }
    }
    assert_eq!(rows, 4 * 4 * 13 * 2);
}

/// A join of a known member for this reason; unchanged, or with another topic.
fn because(member: &str, reason: i8, changed: bool) -> JoinGroupRequest {
    let mut request = join(member);
    request.join_reason = reason;
    if changed {
        request.protocols[0].metadata = subscription(&["t", "u"]);
    }
    request
}

/// The last record's first cause, after the leader made (or followed) a round with this join.
fn cause_of(change: impl Fn(&mut JoinGroupRequest)) -> (CauseKind, bool, Option<String>) {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let mut request = join(&a);
    change(&mut request);
    let first = script.join(request);
    let second = script.join(join(&b));
    script.joined(second);
    script.joined(first);
    script.settle(&[&a, &b], generation + 1);
    let record = script.rebalances.last().unwrap();
    assert_eq!(record.generation, generation + 1);
    let cause = &record.causes[0];
    assert_eq!(
        (&cause.member_id, cause.client_host.as_str()),
        (&a, "/127.0.0.1")
    );
    (cause.kind, cause.stated, cause.text.clone())
}

/// A typed reason is stated; words of known clients, and what changed, are inferred from.
#[test]
fn the_record_names_the_cause_and_whether_it_was_stated() {
    let said = |text: &'static str| {
        move |request: &mut JoinGroupRequest| request.reason = Some(text.to_owned())
    };
    let joined = CauseKind::Joined;
    let stated = cause_of(|request| request.join_reason = JoinReason::Requested.number());
    assert_eq!(stated, (joined(JoinReason::Requested), true, None));
    let words = [
        (
            "cached metadata has changed",
            JoinReason::TopicMetadataChanged,
        ),
        (
            "need to revoke partitions and re-join",
            JoinReason::RevocationDone,
        ),
        ("rejoin from ForceRebalance", JoinReason::Requested),
    ];
    for (text, reason) in words {
        let expected = (joined(reason), false, Some(text.to_owned()));
        assert_eq!(cause_of(said(text)), expected);
    }
    // Without words: librdkafka, sarama, and Java before 3.2.
    let changed = cause_of(|request| request.protocols[0].metadata = subscription(&["t", "u"]));
    assert_eq!(
        changed,
        (joined(JoinReason::SubscriptionChanged), false, None)
    );
    let owned = cause_of(|request| {
        request.protocols[0].metadata = Subscription {
            topics: vec!["t".into()],
            owned: vec![TopicPartitions {
                topic: "t".into(),
                partitions: vec![1],
            }],
            ..Subscription::default()
        }
        .encode();
    });
    assert_eq!(owned, (joined(JoinReason::RevocationDone), false, None));
    let leader = cause_of(|_| {});
    assert_eq!(
        leader,
        (joined(JoinReason::TopicMetadataChanged), false, None)
    );
}

/// Outside Stable a reason changes nothing but the memory.
#[test]
fn a_reason_during_a_rebalance_is_remembered() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let first = script.join(because(&a, JoinReason::Requested.number(), false));
    let second = script.join(because(&b, JoinReason::SubscriptionChanged.number(), true));
    script.joined(first);
    script.joined(second);
    script.settle(&[&a, &b], generation + 1);
    let kinds: Vec<CauseKind> = script
        .rebalances
        .last()
        .unwrap()
        .causes
        .iter()
        .map(|c| c.kind)
        .collect();
    let expected = [JoinReason::Requested, JoinReason::SubscriptionChanged];
    assert_eq!(kinds, expected.map(CauseKind::Joined));
}

/// Metadata that is no subscription leaves gaps in the record and changes nothing else.
#[test]
fn hostile_metadata_only_leaves_gaps_in_the_record() {
    let hostile: [&'static [u8]; 4] = [
        b"",
        b"\0\x03\x7f\xff\xff\xff",
        b"\0\x03\0\0\0\x01\0\x01t\xff\xff\xff\xff\x7f\xff\xff\xff",
        b"\xff\xff",
    ];
    for bytes in hostile {
        let mut script = Script::new(config());
        let (a, b, generation) = script.pair();
        let mut request = because(&a, JoinReason::Requested.number(), false);
        request.protocols[0].metadata = bytes::Bytes::from_static(bytes);
        let first = script.join(request);
        let second = script.join(join(&b));
        script.joined(second);
        script.joined(first);
        let garbage: &'static str = std::str::from_utf8(bytes).unwrap_or("\0\u{3}\u{7f}");
        let lead = script.sync(&a, generation + 1, &[(&a, garbage), (&b, "?")]);
        let follow = script.sync(&b, generation + 1, &[]);
        assert_eq!(script.synced(lead).0, ErrorCode::None);
        assert_eq!(script.synced(follow).0, ErrorCode::None);
        let record = script.rebalances.last().unwrap();
        assert_eq!((record.minimum_moves, record.moves.len()), (None, 0));
        assert_eq!(
            record.causes[0].kind,
            CauseKind::Joined(JoinReason::Requested)
        );
    }
}

/// Each move to PreparingRebalance is remembered, with who and when; also by the next coordinator.
#[test]
fn causes_outlive_the_coordinator() {
    let config = kohort_group::coordinator::CoordinatorConfig {
        wall_clock_offset_ms: 1_000_000,
        ..config()
    };
    let mut script = Script::new(config.clone());
    let (a, b, generation) = script.pair();
    let at = script.now;
    let first = script.join(because(&b, JoinReason::StateReady.number(), false));
    let second = script.join(join(&a));
    script.joined(first);
    script.joined(second);
    script.settle(&[&a, &b], generation + 1);
    script.leave(&b);
    let mut kinds = vec![JoinReason::NewMember; 2];
    kinds.push(JoinReason::StateReady);
    let mut kinds: Vec<CauseKind> = kinds.into_iter().map(CauseKind::Joined).collect();
    kinds.push(CauseKind::Left);
    let next = Script::resume(config, script.log.clone(), 2);
    let mut later = script.log.clone();
    // As a compacted log has it: the group's record was written again after its causes.
    let group = later
        .iter()
        .rposition(|record| matches!(record, Record::Group { .. }));
    let record = later.remove(group.unwrap());
    later.push(record);
    let compacted = Script::resume(
        kohort_group::coordinator::CoordinatorConfig::default(),
        later,
        3,
    );
    for coordinator in [
        &script.coordinator,
        &next.coordinator,
        &compacted.coordinator,
    ] {
        let causes = coordinator.causes("g");
        let seen: Vec<CauseKind> = causes.iter().map(|cause| cause.kind).collect();
        assert_eq!(seen, kinds);
        let cause = &causes[2];
        assert_eq!((&cause.member_id, cause.stated), (&b, true));
        assert_eq!(
            (cause.client_id.as_str(), cause.client_host.as_str()),
            ("c", "/127.0.0.1")
        );
        assert_eq!(cause.at.0, 1_000_000 + at.0);
    }
    // There are not more and more of them.
    for _ in 0..50 {
        let id = script.join(because(&a, JoinReason::Requested.number(), false));
        let generation = script.joined(id).generation_id;
        script.settle(&[&a], generation);
    }
    assert_eq!(script.coordinator.causes("g").len(), 16);
    assert!(script.coordinator.causes("h").is_empty());
}

/// A member that is to let go and never says that it has: after the rebalance timeout the record is written as it is.
#[test]
fn a_round_that_does_not_follow_keeps_no_record_back() {
    let mut script = Script::new(config());
    let named = |_: usize, member: &str| JoinGroupRequest {
        protocols: vec![kohort_wire::messages::JoinGroupProtocol {
            name: "cooperative-sticky".into(),
            metadata: metadata(&["t"], &[]),
        }],
        ..join(member)
    };
    let [a, b] = pair(&mut script, named);
    let before = script.rebalances.len();
    let claims = |member: &str, owned: &[i32]| {
        let mut request = named(0, member);
        request.protocols[0].metadata = metadata(&["t"], owned);
        request
    };
    let lead = script.join(claims(&a, &[0, 1]));
    let follow = script.join(claims(&b, &[2, 3]));
    script.joined(lead);
    script.joined(follow);
    // B is given less than it claims, and goes on as if nothing were the matter.
    let less = "\0\u{3}\0\0\0\u{1}\0\u{1}t\0\0\0\u{1}\0\0\0\u{2}\0\0\0\0";
    let lead = script.sync(&a, 3, &[(&a, LED), (&b, less)]);
    let follow = script.sync(&b, 3, &[]);
    script.synced(lead);
    script.synced(follow);
    for _ in 0..6 {
        assert_eq!(script.rebalances.len(), before);
        script.pass(5_000);
        script.beat(&a, 3);
        script.beat(&b, 3);
    }
    script.pass(5_000);
    script.beat(&a, 3);
    assert_eq!(script.rebalances.len(), before + 1);
    let record = script.rebalances.last().unwrap();
    assert_eq!((record.rounds, record.generation), (1, 3));
    assert!(record.ended.since(record.started) < 10);
}
