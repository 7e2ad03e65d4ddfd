//! `kohort group` against a broker.

#![allow(clippy::unwrap_used)]

mod process;

use process::{Running, broker, kohort, with_input};
use serde_json::Value;

/// A topic `orders` with ten records in each of two partitions, and a group that has read them.
fn read_group(at: &str) {
    kohort(&["topic", "create", "orders", "--partitions", "2", "-b", at]).done();
    for partition in ["0", "1"] {
        let produce = ["produce", "-b", at, "--topic", "orders", "-p", partition];
        with_input(&produce, "x\n".repeat(10).as_bytes()).done();
    }
    let read = ["consume", "-b", at, "--group", "g", "--topic", "orders"];
    kohort(&[&read[..], &["--from", "beginning", "--at-end"]].concat()).done();
}

fn group(at: &str, arguments: &[&str]) -> process::Ended {
    kohort(&[&["group"], arguments, &["-b", at]].concat())
}

fn json(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The words of the line that begins with these.
fn row(table: &str, begin: &[&str]) -> Vec<String> {
    let rows = table
        .lines()
        .map(|line| line.split_whitespace().map(str::to_owned));
    let mut rows = rows.map(Iterator::collect::<Vec<_>>);
    let found =
        rows.find(|row| row.iter().zip(begin).all(|(a, b)| a == b) && row.len() >= begin.len());
    found.unwrap_or_else(|| panic!("no {begin:?} in {table}"))
}

fn member(at: &str, more: &[&str]) -> Running {
    let consume = ["consume", "-b", at, "--group", "g", "--topic", "orders"];
    let mut member = Running::start(&[&consume[..], &["--format", "json"], more].concat());
    member.until("\"assigned\"");
    member
}

#[test]
fn a_group_is_listed_and_described() {
    let (_broker, at) = broker(&[]);
    assert_eq!(group(&at, &["list"]).done(), "");
    read_group(&at);
    let listed = group(&at, &["list"]).done();
    assert_eq!(row(&listed, &["g"]), ["g", "Empty", "consumer"]);
    let listed = group(&at, &["list", "--state", "stable", "--format", "json"]);
    assert_eq!(listed.done(), "");

    let empty = group(&at, &["describe", "g"]);
    assert!(empty.err.contains("no members"), "{empty:?}");
    assert!(empty.out.contains("last rebalance:"), "{empty:?}");
    let rows = row(&empty.out, &["g", "orders", "0"]);
    assert_eq!(rows[3..], ["10", "10", "0", "-", "-", "-"]);

    let _member = member(&at, &["--client-id", "anna", "--instance-id", "i1"]);
    let produce = ["produce", "-b", &at, "--topic", "orders", "-p", "1"];
    with_input(&produce, b"y\n").done();
    let members = group(&at, &["describe", "g", "--members", "--verbose"]).done();
    let line = row(&members, &["g"]);
    assert_eq!(
        line[2..],
        ["i1", "/127.0.0.1", "anna", "2", "orders(0,1)", "orders"]
    );
    let state = group(&at, &["describe", "g", "--state"]).done();
    assert!(
        row(&state, &["g"]).contains(&"Stable".to_owned()),
        "{state}"
    );
    let offsets = group(&at, &["describe", "g", "--offsets"]).done();
    assert_eq!(row(&offsets, &["g", "orders", "0"])[8], "anna");

    let all = group(&at, &["describe", "--all-groups", "--format", "json"]).done();
    let all = json(&all);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0]["state"], "Stable");
    assert_eq!(all[0]["protocol"], "cooperative-sticky");
    assert_eq!(all[0]["members"][0]["assigned"][1][1], 1);
    assert_eq!(all[0]["offsets"][1]["end"], 11);
    assert_eq!(all[0]["last_rebalance"]["group"], "g");

    group(&at, &["describe", "other"]).refused(1, &["other", "does not exist", "group list"]);
    group(&at, &["list", "--state", "great"]).refused(2, &["great", "Stable"]);
}

#[test]
fn offsets_are_reset_when_nobody_reads() {
    let (_broker, at) = broker(&[]);
    read_group(&at);
    let reset = |more: &[&str]| group(&at, &[&["reset-offsets", "g"], more].concat());
    let offset = |partition: &str| {
        let described = group(&at, &["describe", "g", "--offsets"]).done();
        row(&described, &["g", "orders", partition])[3].clone()
    };
    // A dry run changes nothing.
    let dry = reset(&["--topic", "orders", "--to-earliest"]);
    assert!(dry.err.contains("dry run"), "{dry:?}");
    assert_eq!(row(&dry.done(), &["g", "orders", "0"])[3..], ["10", "0"]);
    assert_eq!(offset("0"), "10");

    reset(&["--topic", "orders:0", "--shift-by", "-4", "--execute"]).done();
    assert_eq!((offset("0"), offset("1")), ("6".into(), "10".into()));
    let far = reset(&["--all-topics", "--to-offset", "99", "--execute"]);
    assert!(far.err.contains("outside 0 to 10"), "{far:?}");
    assert_eq!(offset("0"), "10");
    reset(&[
        "--all-topics",
        "--to-datetime",
        "2020-01-01T00:00:00",
        "--execute",
    ])
    .done();
    assert_eq!(offset("1"), "0");
    reset(&["--all-topics", "--by-duration", "PT0S", "--execute"]).done();
    assert_eq!(offset("1"), "10");

    // What is exported can be taken back.
    let exported = reset(&["--all-topics", "--to-current", "--export"]).done();
    assert_eq!(exported, "orders,0,10\norders,1,10\n");
    let file = std::env::temp_dir().join(format!("kohort-reset-{}.csv", std::process::id()));
    std::fs::write(&file, "orders,1,7\n").unwrap();
    reset(&["--from-file", file.to_str().unwrap(), "--execute"]).done();
    assert_eq!((offset("0"), offset("1")), ("10".into(), "7".into()));
    std::fs::write(&file, "orders,one,7\n").unwrap();
    reset(&["--from-file", file.to_str().unwrap()])
        .refused(2, &["line 1", "topic,partition,offset"]);
    std::fs::remove_file(file).unwrap();

    reset(&["--topic", "orders", "--to-datetime", "today"]).refused(2, &["today", "YYYY-MM-DD"]);
    reset(&["--topic", "nowhere", "--to-latest"]).refused(1, &["topic nowhere", "UNKNOWN_TOPIC"]);
    reset(&["--topic", "orders:7", "--to-latest"]).refused(1, &["no partition 7"]);
    assert_eq!(reset(&["--topic", "orders"]).status, Some(2));
    assert_eq!(reset(&["--to-latest"]).status, Some(2));

    let _member = member(&at, &[]);
    reset(&["--topic", "orders", "--to-latest", "--execute"])
        .refused(1, &["in use", "Stable", "stop them"]);
}

#[test]
fn offsets_members_and_groups_are_removed() {
    let (_broker, at) = broker(&[]);
    read_group(&at);
    let mut first = member(
        &at,
        &["--instance-id", "i1", "-X", "session.timeout.ms=45000"],
    );
    group(&at, &["delete", "g"]).refused(1, &["NON_EMPTY_GROUP", "remove-member"]);
    group(&at, &["delete-offsets", "g", "--topic", "orders"])
        .refused(1, &["GROUP_SUBSCRIBED_TO_TOPIC"]);
    // A static member that is killed stays, until somebody removes it.
    first.child.kill().unwrap();
    group(&at, &["remove-member", "g", "--instance-id", "i2"])
        .refused(1, &["i2", "UNKNOWN_MEMBER_ID"]);
    assert_eq!(group(&at, &["remove-member", "g"]).status, Some(2));
    let removed = group(&at, &["remove-member", "g", "--all"]).done();
    assert_eq!(removed, "removed i1\n");
    let listed = group(&at, &["list"]).done();
    assert_eq!(row(&listed, &["g"])[1], "Empty");

    let gone = group(&at, &["delete-offsets", "g", "--topic", "orders:1"]).done();
    assert_eq!(gone, "deleted the offset of orders-1\n");
    group(&at, &["delete-offsets", "g", "--topic", "orders:1"])
        .refused(1, &["no committed offsets there"]);
    let both = group(&at, &["delete", "nowhere", "g"]);
    both.refused(1, &["group nowhere", "GROUP_ID_NOT_FOUND"]);
    assert_eq!(both.out, "deleted g\n");
    assert_eq!(group(&at, &["list"]).done(), "");
}
