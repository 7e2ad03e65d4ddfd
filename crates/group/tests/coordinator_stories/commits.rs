//! Commits: when they are taken, by whom, and how long they last.

use super::script::{Log, Script, config, join};
use kohort_group::coordinator::{CoordinatorConfig, GroupRequest, GroupResponse, Input};
use kohort_group::topics::TopicImage;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    DeleteGroupsRequest, OffsetDeleteRequest, OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
};

#[test]
fn a_commit_is_taken_from_a_member_of_the_current_generation() {
    let mut script = Script::new(config());
    let (a, _, generation) = script.pair();
    assert_eq!(script.commit(&a, generation, 7), ErrorCode::None);
    assert_eq!(
        script.commit(&a, generation - 1, 3),
        ErrorCode::IllegalGeneration
    );
    assert_eq!(
        script.commit("stranger", generation, 3),
        ErrorCode::UnknownMemberId
    );
    assert_eq!(script.commit("", -1, 3), ErrorCode::UnknownMemberId);
    assert_eq!(script.committed(), 7);
}

/// The old owner's last commit passes while the rebalance is prepared, and not after the join phase.
#[test]
fn a_commit_before_the_join_phase_ends_is_taken_and_one_after_is_not() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let again = script.join(join(&a));
    assert_eq!(script.commit(&b, generation, 5), ErrorCode::None);
    let other = script.join(join(&b));
    script.joined(again);
    script.joined(other);
    assert_eq!(
        script.commit(&b, generation, 6),
        ErrorCode::IllegalGeneration
    );
    assert_eq!(
        script.commit(&b, generation + 1, 6),
        ErrorCode::RebalanceInProgress
    );
    assert_eq!(script.committed(), 5);
}

/// F1: what was not stored is not acknowledged, and is not seen.
#[test]
fn a_commit_that_cannot_be_stored_is_refused_and_unseen() {
    let mut script = Script::new(config());
    assert_eq!(script.commit("", -1, 4), ErrorCode::None);
    script.fate = Log::Fails(ErrorCode::NotEnoughReplicas);
    assert_eq!(script.commit("", -1, 9), ErrorCode::CoordinatorNotAvailable);
    assert_eq!(script.committed(), 4);
}

#[test]
fn offsets_of_an_empty_group_expire_and_the_group_with_them() {
    let week = 7 * 24 * 3_600_000;
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    assert_eq!(script.commit(&a, generation, 7), ErrorCode::None);
    script.leave(&a);
    script.leave(&b);
    script.pass(week - 3_600_000);
    assert_eq!(script.committed(), 7);
    script.pass(2 * 3_600_000);
    assert_eq!(script.committed(), -1);
    assert_eq!(script.state().group_state, "Dead");
}

/// KAFKA-13636: nothing expires while the group rebalances, however old it is.
#[test]
fn nothing_expires_while_the_group_rebalances() {
    let short = CoordinatorConfig {
        offsets_retention_ms: 1_000,
        offsets_retention_check_interval_ms: 100,
        ..config()
    };
    let mut script = Script::new(short);
    let (a, b, generation) = script.pair();
    assert_eq!(script.commit(&a, generation, 7), ErrorCode::None);
    let _ = script.join(join(&a));
    for _ in 0..3 {
        script.pass(5_000);
        script.beat(&b, generation);
    }
    assert_eq!(script.state().group_state, "PreparingRebalance");
    assert_eq!(script.committed(), 7);
}

#[test]
fn a_deleted_topic_takes_its_offsets_along() {
    let mut script = Script::new(config());
    assert_eq!(script.commit("", -1, 4), ErrorCode::None);
    script.feed(Input::Topics(TopicImage::default()));
    assert_eq!(script.committed(), -1);
}

/// A deletion whose tombstones cannot be stored is answered all the same, with why.
#[test]
fn a_deletion_that_is_not_stored_is_answered() {
    for error in [ErrorCode::NotEnoughReplicas, ErrorCode::None] {
        let expected = if error.is_none() {
            ErrorCode::UnknownServerError
        } else {
            ErrorCode::CoordinatorNotAvailable
        };
        let mut script = Script::new(config());
        assert_eq!(script.commit("", -1, 7), ErrorCode::None);
        script.fate = Log::Fails(error);
        let offsets = script.send(
            0,
            GroupRequest::OffsetDelete(OffsetDeleteRequest {
                group_id: "g".into(),
                topics: vec![OffsetDeleteRequestTopic {
                    name: "t".into(),
                    partitions: vec![OffsetDeleteRequestPartition { partition_index: 0 }],
                }],
            }),
        );
        let Some(GroupResponse::OffsetDelete(answer)) = script.answer(offsets) else {
            panic!("OffsetDelete is not answered");
        };
        assert_eq!((answer.error_code, answer.topics), (expected, vec![]));
        let groups = script.send(
            2,
            GroupRequest::DeleteGroups(DeleteGroupsRequest {
                groups_names: vec!["g".into(), "other".into()],
            }),
        );
        let Some(GroupResponse::DeleteGroups(answer)) = script.answer(groups) else {
            panic!("DeleteGroups is not answered");
        };
        let codes: Vec<ErrorCode> = answer.results.iter().map(|r| r.error_code).collect();
        assert_eq!(codes, [expected, ErrorCode::GroupIdNotFound]);
    }
}
