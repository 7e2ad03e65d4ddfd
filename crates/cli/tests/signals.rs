//! Signals on `kohort consume`: the first one drains, commits and leaves; a second one ends it at once.

#![allow(clippy::unwrap_used)]

mod process;

use process::{Ended, Running, broker, kohort, with_input};
use serde_json::Value;
use std::time::{Duration, Instant};

/// A topic of four partitions with ten records in each.
fn filled(at: &str) {
    kohort(&["topic", "create", "t", "--partitions", "4", "-b", at]).done();
    for partition in ["0", "1", "2", "3"] {
        let produce = ["produce", "-b", at, "--topic", "t", "-p", partition];
        with_input(&produce, "x\n".repeat(10).as_bytes()).done();
    }
}

fn member(at: &str, name: &str, more: &[&str]) -> Running {
    let consume = [
        "consume", "-b", at, "--group", "g", "--topic", "t", "--name", name,
    ];
    let json = ["--from", "beginning", "--format", "json"];
    Running::start(&[&consume[..], &json, more].concat())
}

fn events(of: &str) -> Vec<Value> {
    let lines = of.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn describe(at: &str) -> Value {
    let described = ["group", "describe", "g", "--format", "json", "-b", at];
    events(&kohort(&described).done()).remove(0)
}

/// Reads until all forty records have been told.
fn until_all_is_read(member: &mut Running) {
    let mut count = 0;
    while count < 40 {
        let line: Value = serde_json::from_str(&member.until("\"records\"")).unwrap();
        let partitions = line["partitions"].as_array().unwrap();
        count += partitions
            .iter()
            .map(|one| one[2].as_u64().unwrap())
            .sum::<u64>();
    }
}

fn has(ended: &Ended, event: &str) -> bool {
    events(&ended.out).iter().any(|one| one["event"] == event)
}

#[test]
fn a_signal_commits_and_leaves() {
    for signal in ["TERM", "INT"] {
        let (_broker, at) = broker(&[]);
        filled(&at);
        // Nothing is committed by the timer.
        let mut one = member(&at, "a", &["-X", "auto.commit.interval.ms=600000"]);
        until_all_is_read(&mut one);
        one.signal(signal);
        let started = Instant::now();
        let ended = one.end();
        assert_eq!(ended.status, Some(0), "{signal}: {ended:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{signal}");
        assert!(has(&ended, "revoked") && !has(&ended, "lost"), "{ended:?}");
        let last = events(&ended.out).pop().unwrap();
        assert_eq!(last["event"], "closed");
        let group = describe(&at);
        assert_eq!(
            (&group["state"], &group["lag"]),
            (&"Empty".into(), &0.into())
        );
        assert_eq!(group["offsets"].as_array().unwrap().len(), 4);
    }
}

/// Partitions go over one after the other: the other member has all of them when this one is closed.
#[test]
fn a_signal_hands_over_before_it_ends() {
    let (_broker, at) = broker(&[]);
    filled(&at);
    let mut stays = member(&at, "stays", &[]);
    stays.until("\"owned\":4}");
    let mut goes = member(&at, "goes", &[]);
    goes.until("\"owned\":2}");
    stays.until("\"owned\":2}");
    goes.signal("TERM");
    stays.until("\"owned\":4}");
    let ended = goes.end();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(!has(&ended, "lost"), "{ended:?}");
    stays.signal("TERM");
    let stayed = stays.end();
    assert!(!has(&stayed, "lost"), "{stayed:?}");
    // By the clock of both: what was handed over was never with both.
    let gone = events(&ended.out);
    let gone = gone.iter().rfind(|one| one["event"] == "revoked").unwrap();
    let taken = events(&stayed.out);
    let taken = taken
        .iter()
        .rfind(|one| one["event"] == "assigned")
        .unwrap();
    assert!(gone["t"].as_f64() <= taken["t"].as_f64(), "{gone} {taken}");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (_broker, at) = broker(&[]);
    filled(&at);
    let slow = [
        "--revoke-ms",
        "25000",
        "-X",
        "auto.commit.interval.ms=600000",
    ];
    let mut one = member(&at, "a", &slow);
    until_all_is_read(&mut one);
    one.signal("TERM");
    std::thread::sleep(Duration::from_millis(500));
    assert!(one.child.try_wait().unwrap().is_none(), "it lets go first");
    one.signal("TERM");
    let started = Instant::now();
    assert_eq!(one.end().status, Some(0));
    assert!(started.elapsed() < Duration::from_secs(1));
    assert_eq!(describe(&at)["lag"], 0, "committed nevertheless");
}

/// A coordinator that does not answer does not keep the process for long.
#[test]
fn a_signal_is_obeyed_while_the_broker_is_silent() {
    let (broker, at) = broker(&[]);
    filled(&at);
    let mut one = member(&at, "a", &[]);
    until_all_is_read(&mut one);
    broker.signal("STOP");
    one.signal("TERM");
    let started = Instant::now();
    let ended = one.end();
    assert!(started.elapsed() < Duration::from_secs(15), "{ended:?}");
    let mut two = member(&at, "b", &["-X", "bootstrap.timeout.ms=60000"]);
    two.until_said("has not answered yet");
    two.signal("INT");
    assert_eq!(two.end().status, Some(0), "it had not begun");
    broker.signal("CONT");
}

/// With a group or without: who is still looking for a broker has nothing to close.
#[test]
fn a_signal_ends_the_search_for_a_broker() {
    let nobody = process::stranger::nobody();
    let patient = ["-X", "bootstrap.timeout.ms=60000"];
    for group in [&[][..], &["--group", "g"]] {
        for signal in ["TERM", "INT"] {
            let consume = ["consume", "-b", &nobody, "--topic", "t"];
            let mut one = Running::start(&[&consume[..], &patient, group].concat());
            one.until_said("trying again for 60000 ms");
            one.signal(signal);
            let started = Instant::now();
            let ended = one.end();
            assert_eq!(ended.status, Some(0), "{group:?} {signal}: {ended:?}");
            assert!(started.elapsed() < Duration::from_secs(2), "{ended:?}");
        }
    }
}

/// What was read is sent; a second signal does not wait for a broker that is silent.
#[test]
fn a_producer_sends_what_it_has_read() {
    let (broker, at) = broker(&[]);
    filled(&at);
    let arguments = ["produce", "-b", &at, "--topic", "t"];
    let mut one = Running::start(&arguments);
    one.write("a\nb\n");
    std::thread::sleep(Duration::from_millis(500));
    one.signal("TERM");
    assert_eq!(one.end().done(), "2 records acknowledged\n");
    let mut two = Running::start(&arguments);
    two.write("a\n");
    std::thread::sleep(Duration::from_millis(500));
    broker.signal("STOP");
    two.write("b\n");
    std::thread::sleep(Duration::from_millis(200));
    two.signal("INT");
    std::thread::sleep(Duration::from_millis(200));
    assert!(
        two.child.try_wait().unwrap().is_none(),
        "it waits for the answer"
    );
    two.signal("INT");
    let ended = two.end();
    broker.signal("CONT");
    ended.refused(1, &["second signal", "not acknowledged"]);
}

/// Who reads the output has stopped reading: even then it can be ended.
#[test]
fn a_blocked_output_does_not_keep_it() {
    let (_broker, at) = broker(&[]);
    kohort(&["topic", "create", "t", "--partitions", "1", "-b", &at]).done();
    let line = format!("{}\n", "x".repeat(1_000));
    with_input(
        &["produce", "-b", &at, "--topic", "t"],
        line.repeat(1_000).as_bytes(),
    )
    .done();
    let mut consume = std::process::Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args([
            "consume",
            "-b",
            &at,
            "--group",
            "g",
            "--topic",
            "t",
            "--from",
            "beginning",
        ])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(1_000));
    for _ in 0..2 {
        let id = consume.id().to_string();
        std::process::Command::new("kill")
            .arg(&id)
            .status()
            .unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    let started = Instant::now();
    while consume.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(5) {
            consume.kill().unwrap();
            panic!("still running");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
