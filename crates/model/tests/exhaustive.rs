//! Two members, one of which starts at any moment, with two faults at all places: always. `--ignored`, in release: every order of messages,
//! and three members.

use kohort_model::{Explored, Fault, Kind, Setup, explore};

const MOST: usize = 3_000_000;

fn search(what: &str, setup: &Setup) -> Explored {
    let explored = explore(setup, MOST).unwrap_or_else(|broken| panic!("{what}: {broken}"));
    println!("model: {what}: {explored:?}");
    assert!(
        explored.converged > 0 && (setup.faults == 0 || explored.faults > 0),
        "{what}"
    );
    explored
}

/// The last member starts at any moment, so that partitions move.
fn setup(members: &[Kind], fixed: bool, faults: u32, every_order: bool) -> Setup {
    Setup {
        members: members.to_vec(),
        late: 1,
        then: None,
        fixed,
        faults,
        kinds: Fault::ALL.to_vec(),
        every_order,
    }
}

const MODES: [(&str, [Kind; 3]); 4] = [
    ("explicit", [Kind::Explicit; 3]),
    ("cooperative", [Kind::Cooperative; 3]),
    ("eager", [Kind::Eager; 3]),
    ("mixed", [Kind::Explicit, Kind::Cooperative, Kind::Explicit]),
];

#[test]
fn two_members_and_a_fault() {
    for (name, kinds) in MODES {
        for fixed in [false, true] {
            let what = format!("2 {name} members, static {fixed}, 1 fault");
            search(&what, &setup(&kinds[..2], fixed, 1, false));
        }
    }
}

fn two_faults(modes: &[(&str, [Kind; 3])]) {
    for (name, kinds) in modes {
        for fixed in [false, true] {
            search(
                &format!("2 {name} members, static {fixed}, 2 faults"),
                &setup(&kinds[..2], fixed, 2, false),
            );
        }
    }
}

#[test]
fn two_explicit_members_and_two_faults() {
    two_faults(&MODES[..1]);
}

#[test]
fn two_mixed_members_and_two_faults() {
    two_faults(&MODES[3..]);
}

#[test]
#[ignore = "for CI, in release"]
fn two_members_of_other_modes_and_two_faults() {
    two_faults(&MODES[1..3]);
}

/// Each process is stopped and another of the other kind is started: at all places, those between its join and its sync included.
#[test]
fn two_members_are_downgraded_and_upgraded() {
    let (explicit, cooperative) = (Kind::Explicit, Kind::Cooperative);
    for (from, to) in [(explicit, cooperative), (cooperative, explicit)] {
        for fixed in [false, true] {
            let setup = Setup {
                then: Some(to),
                kinds: vec![Fault::MemberCrash],
                ..setup(&[from; 2], fixed, 2, false)
            };
            let what = format!("2 members from {from:?} to {to:?}, static {fixed}, 2 restarts");
            search(&what, &setup);
        }
    }
}

#[test]
#[ignore = "minutes: for CI, in release"]
fn three_members_and_one_fault() {
    for (name, kinds) in MODES {
        for fixed in [false, true] {
            let what = format!("3 {name} members, static {fixed}, 1 fault");
            search(&what, &setup(&kinds, fixed, 1, false));
        }
    }
}

#[test]
#[ignore = "minutes: for CI, in release"]
fn two_members_in_every_order() {
    for (name, kinds) in MODES {
        search(
            &format!("2 {name} members, every order, 1 fault"),
            &setup(&kinds[..2], false, 1, true),
        );
    }
}

fn three_in_every_order((name, kinds): &(&str, [Kind; 3])) {
    for fixed in [false, true] {
        search(
            &format!("3 {name} members, static {fixed}, every order, 1 fault"),
            &setup(kinds, fixed, 1, true),
        );
    }
}

#[test]
#[ignore = "minutes: for CI, in release"]
fn three_explicit_members_in_every_order() {
    three_in_every_order(&MODES[0]);
}

#[test]
#[ignore = "minutes: for CI, in release"]
fn three_cooperative_members_in_every_order() {
    three_in_every_order(&MODES[1]);
}

#[test]
#[ignore = "minutes: for CI, in release"]
fn three_eager_members_in_every_order() {
    three_in_every_order(&MODES[2]);
}

#[test]
#[ignore = "minutes: for CI, in release"]
fn three_mixed_members_in_every_order() {
    three_in_every_order(&MODES[3]);
}
