//! `kohort explain`: a group's rebalances, from a broker and from a file.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

fn kohort(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kohort"));
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).into_owned()
}

/// A broker that ends with the test.
struct Broker(Child);

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_groups_rebalances_are_explained() {
    let mut broker = Command::new(env!("CARGO_BIN_EXE_kohort"))
        .args(["broker", "--listen", "127.0.0.1:0"])
        .args(["-X", "group.initial.rebalance.delay.ms=0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(broker.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let _broker = Broker(broker);
    let at = line.trim().strip_prefix("ready ").unwrap();

    let none = kohort(&["explain", "g", "--bootstrap", at]);
    assert_eq!(none.status.code(), Some(1), "{}", said(&none));
    assert!(said(&none).contains("__kohort_rebalances"));

    let made = kohort(&[
        "topic",
        "create",
        "t",
        "--partitions",
        "4",
        "--bootstrap",
        at,
    ]);
    assert!(made.status.success(), "{}", said(&made));
    let member = ["consume", "--bootstrap", at, "--group", "g", "--topic", "t"];
    let read = kohort(&[&member[..], &["--client-id", "anna", "--at-end"]].concat());
    assert!(read.status.success(), "{}", said(&read));

    let explained = kohort(&["explain", "g", "--bootstrap", at]);
    let text = said(&explained);
    assert_eq!(explained.status.code(), Some(0), "{text}");
    assert!(text.starts_with("group g: 2 rebalances"), "{text}");
    for part in [
        "anna (127.0.0.1) joined: new member",
        "nobody → anna: t 0-3",
        "anna (127.0.0.1) left",
        "the group is empty now",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }

    let other = kohort(&["explain", "h", "--bootstrap", at]);
    assert_eq!(other.status.code(), Some(1));
    assert!(
        said(&other).contains("there are some of g"),
        "{}",
        said(&other)
    );

    // What json writes, a file holds, and it reads the same.
    let json = kohort(&["explain", "g", "--bootstrap", at, "--format", "json"]);
    let file = std::env::temp_dir().join(format!("kohort-explain-{}.jsonl", std::process::id()));
    std::fs::write(&file, &json.stdout).unwrap();
    let again = kohort(&["explain", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(said(&again), text);
    let last = kohort(&["explain", "g", "--bootstrap", at, "--last", "1"]);
    assert!(
        said(&last).starts_with("group g: 1 rebalance in"),
        "{}",
        said(&last)
    );
}
