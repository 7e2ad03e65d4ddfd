#![allow(clippy::unwrap_used)]

use super::*;
use kohort::history::{Cause, CauseKind, Move, Participation, Phase, Wait, WaitedTo};
use kohort_group::partitions::TopicPartition;
use kohort_group::reason::JoinReason;
use kohort_group::time::Timestamp;

const A: &str = "a-00000001-0000-4000-8000-000000000001";
const B: &str = "b-00000002-0000-4000-8000-000000000002";

fn sample() -> RebalanceRecord {
    let start = Timestamp(1_796_093_999_000);
    let moved = |partition| Move {
        partition: TopicPartition::new("orders", partition),
        from: Some(A.into()),
        to: Some(B.into()),
        released: Some(start + 100),
        assigned: Some(start + 112),
        ownerless_ms: Some(12),
        silent_ms: 0,
    };
    let member = |id: &str| Participation {
        member_id: id.into(),
        ..Participation::default()
    };
    RebalanceRecord {
        group: "g".into(),
        generation: 7,
        protocol: Some("cooperative-sticky".into()),
        causes: vec![Cause {
            kind: CauseKind::Joined(JoinReason::NewMember),
            member_id: B.into(),
            client_host: "/10.0.0.7".into(),
            stated: true,
            text: Some("new member".into()),
            at: start,
            ..Cause::default()
        }],
        started: start,
        ended: start + 112,
        rounds: 2,
        phases: vec![Phase {
            generation: 7,
            members: vec![member(A), member(B)],
            size: 2,
            waits: vec![Wait {
                member_id: A.into(),
                to: WaitedTo::Release,
                ms: 40,
            }],
            ..Phase::default()
        }],
        waited_for: vec![(A.into(), 40)],
        moves: vec![moved(0), moved(1), moved(2), moved(5)],
        moved: 4,
        minimum_moves: Some(4),
        ownerless_ms: 48,
        ..RebalanceRecord::default()
    }
}

#[test]
fn a_record_in_words() {
    let record = sample();
    let mut names = Names::default();
    names.learn(&record);
    let expected = "\
2026-12-01 02:59:59.000  generation 7, 112 ms, 2 rounds, 2 members, cooperative-sticky
  why     b (10.0.0.7) joined: new member
  waited  round 1: 40 ms for a to let go and join again
  moved   4 partitions, which is the fewest possible
          a → b: orders 0-2,5, 12 ms without an owner
  cost    48 ms of partition time without an owner (4 partitions, the longest 12 ms)
";
    assert_eq!(text::record(&record, &names), expected);
    let mut sum = Sum::default();
    sum.add(&record);
    let sum = sum.text(&names);
    assert!(sum.contains("new member"), "{sum}");
    assert!(sum.contains("waited for: a 40 ms"), "{sum}");
}

/// What is written as JSON is read again, with fields that are missing or new.
#[test]
fn records_come_back_from_json() {
    let json = serde_json::to_string(&sample()).unwrap();
    assert_eq!(decode(json.as_bytes()), Some(sample()));
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["causes"][0]["kind"], "joined");
    assert_eq!(value["causes"][0]["reason"], "new-member");
    assert_eq!(
        value["moves"][0]["partition"],
        serde_json::json!(["orders", 0])
    );
    value["something-new"] = 1.into();
    value.as_object_mut().unwrap().remove("pauses");
    assert_eq!(decode(value.to_string().as_bytes()), Some(sample()));
    for other in ["{}", "[]", "x", r#"{"event":"assigned"}"#, r#"{"sum":{}}"#] {
        assert_eq!(decode(other.as_bytes()), None, "{other}");
    }
}

#[test]
fn members_that_begin_alike_are_told_apart() {
    let mut record = sample();
    let twin = "a-00000003-0000-4000-8000-000000000003";
    record.phases[0].members.push(Participation {
        member_id: twin.into(),
        ..Participation::default()
    });
    let mut names = Names::default();
    names.learn(&record);
    assert_eq!((names.of(A), names.of(B)), ("a-00000", "b"));
    assert_eq!(names.of("no uuid"), "no uuid");
}
