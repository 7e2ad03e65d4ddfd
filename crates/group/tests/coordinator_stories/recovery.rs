//! What a restarted coordinator knows.

use super::script::{Script, config, join, join_as};
use kohort_group::coordinator::CoordinatorConfig;
use kohort_wire::ErrorCode;

/// redpanda#3732: members, generation and assignments survive, and everybody has a full session.
#[test]
fn a_stable_group_goes_on_after_a_restart() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    script.commit(&a, generation, 7);
    let mut script = Script::resume(config(), script.log, 2);
    assert_eq!(script.state().group_state, "Stable");
    assert_eq!(
        (script.beat(&a, generation), script.beat(&b, generation)),
        (ErrorCode::None, ErrorCode::None)
    );
    assert_eq!(script.committed(), 7);
    let sync = script.sync(&b, generation, &[]);
    assert_eq!(script.synced(sync).1, "B");
    script.pass(9_999);
    assert_eq!(script.state().members.len(), 2);
    script.pass(1);
    assert_eq!(script.state().members.len(), 0);
}

/// A round that was not stored never was: members hear that its generation is not the current one.
#[test]
fn a_round_in_the_making_is_forgotten() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    let joins = [script.join(join(&a)), script.join(join(&b))];
    let _ = joins.map(|id| script.joined(id));
    let mut script = Script::resume(config(), script.log, 2);
    assert_eq!(
        script.beat(&a, generation + 1),
        ErrorCode::IllegalGeneration
    );
    assert_eq!(script.beat(&a, generation), ErrorCode::None);
}

#[test]
fn a_group_that_is_too_large_after_loading_rebalances() {
    let mut script = Script::new(config());
    let (a, _, generation) = script.pair();
    let small = CoordinatorConfig {
        max_size: 1,
        ..config()
    };
    let mut script = Script::resume(small, script.log, 2);
    assert_eq!(script.state().group_state, "PreparingRebalance");
    assert_eq!(script.beat(&a, generation), ErrorCode::RebalanceInProgress);
}

/// G8: the same records give the same groups, whatever happened between them.
#[test]
fn replaying_twice_gives_the_same_state() {
    let mut script = Script::new(config());
    let (a, b, generation) = script.pair();
    script.commit(&a, generation, 7);
    script.leave(&b);
    let again = script.join(join(&a));
    script.joined(again);
    script.settle(&[&a], generation + 1);
    let fixed = script.join(join_as("i", ""));
    assert!(script.waits(fixed));
    let one = Script::resume(config(), script.log.clone(), 5);
    let two = Script::resume(config(), script.log.clone(), 5);
    assert_eq!(one.coordinator, two.coordinator);
    let mut live = script;
    let mut loaded = one;
    assert_eq!(loaded.committed(), live.committed());
    assert_eq!(loaded.state().members.len(), 1);
}
