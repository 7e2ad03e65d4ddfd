//! JoinReason (KIP-423): what the coordinator decides by it.

use super::script::{Script, config, join, subscription};
use kohort_group::history::CauseKind;
use kohort_group::reason::JoinReason;
use kohort_wire::ErrorCode;
use kohort_wire::messages::JoinGroupRequest;

/// A join of a known member for this reason; unchanged, or with another topic.
fn because(member: &str, reason: i8, changed: bool) -> JoinGroupRequest {
    let mut request = join(member);
    request.join_reason = reason;
    if changed {
        request.protocols[0].metadata = subscription(&["t", "u"]);
    }
    request
}

/// The table of PROTOCOL.md: for each reason, whether the leader's and a follower's join makes a Stable group rebalance.
#[test]
fn the_decision_table() {
    use JoinReason::*;
    // reason, leader unchanged, follower unchanged; a change always does
    let table = [
        (Unknown.number(), true, false),
        (NewMember.number(), true, false),
        (Restart.number(), false, false),
        (TopicMetadataChanged.number(), true, true),
        (SubscriptionChanged.number(), true, true),
        (RevocationDone.number(), true, true),
        (Upgrade.number(), true, true),
        (StateReady.number(), true, true),
        (Lost.number(), true, false),
        (Requested.number(), true, true),
        (Retry.number(), false, false),
        (99, true, false),
    ];
    for (reason, leader, follower) in table {
        for (leads, expected) in [(true, leader), (false, follower)] {
            for changed in [false, true] {
                let mut script = Script::new(config());
                let (a, b, generation) = script.pair();
                let member = if leads { &a } else { &b };
                let id = script.join(because(member, reason, changed));
                let rebalances = script.waits(id);
                assert_eq!(
                    rebalances,
                    expected || changed,
                    "reason {reason}, leads {leads}, changed {changed}"
                );
                if !rebalances {
                    let answer = script.joined(id);
                    assert_eq!(
                        (answer.generation_id, answer.error_code),
                        (generation, ErrorCode::None)
                    );
                    assert_eq!(answer.skip_assignment, leads);
                }
            }
        }
    }
}

/// A leader whose client knows no SkipAssignment gets the follower's answer.
#[test]
fn a_leader_of_an_old_version_is_answered_as_a_follower() {
    let mut script = Script::new(config());
    let (a, _, generation) = script.pair();
    script.version = 8;
    let id = script.join(because(&a, JoinReason::Restart.number(), false));
    let answer = script.joined(id);
    assert_eq!(answer.generation_id, generation);
    assert!(answer.members.is_empty() && answer.leader != answer.member_id);
}

#[test]
fn the_record_names_the_cause_and_whether_it_was_stated() {
    for (reason, kind, stated) in [
        (JoinReason::Requested, JoinReason::Requested, true),
        (JoinReason::Unknown, JoinReason::SubscriptionChanged, false),
    ] {
        let mut script = Script::new(config());
        let (a, b, generation) = script.pair();
        let first = script.join(because(&b, reason.number(), reason == JoinReason::Unknown));
        let second = script.join(join(&a));
        script.joined(second);
        script.joined(first);
        script.settle(&[&a, &b], generation + 1);
        let record = script.rebalances.last().unwrap();
        assert_eq!(record.causes[0].kind, CauseKind::Joined(kind));
        assert_eq!(
            (record.causes[0].stated, &record.causes[0].member_id),
            (stated, &b)
        );
        assert_eq!(record.generation, generation + 1);
    }
}
