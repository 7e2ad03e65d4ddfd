//! A data folder that cannot be used, and a disk that fills: one clear sentence each, on both sides.

#![allow(clippy::unwrap_used)]

mod process;

use process::{Running, broker, kohort, with_input};
use std::path::PathBuf;
use std::process::Command;

fn at<'a>(command: &[&'a str], address: &'a str) -> Vec<&'a str> {
    [command, &["--bootstrap", address]].concat()
}

/// A folder or file of this test's own.
fn place(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("kohort-bad-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    place
}

#[test]
fn a_data_folder_that_cannot_be_used_is_named() {
    let folder = place("folder");
    let path = folder.to_str().unwrap();
    let start = |path: &str| kohort(&["broker", "--listen", "127.0.0.1:0", "--data", path]);
    let (running, _) = broker(&["--data", path]);
    start(path).refused(1, &[path, "in use by another broker", "process"]);
    running.signal("TERM");
    running.end().done();
    std::fs::write(folder.join("format"), "kohort data 9\n").unwrap();
    start(path).refused(1, &[path, "format 9, expected 1", "newer kohort"]);
    std::fs::write(folder.join("format"), "kohort data 1\n").unwrap();
    std::fs::write(folder.join("catalog.json"), "{").unwrap();
    start(path).refused(1, &["catalog.json", "is damaged"]);
    std::fs::remove_file(folder.join("format")).unwrap();
    start(path).refused(
        1,
        &[
            path,
            "no data of a kohort broker",
            "choose an empty or a new folder",
        ],
    );
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::write(&folder, "").unwrap();
    start(path).refused(1, &[path, "expected a folder"]);
    std::fs::remove_file(&folder).unwrap();
}

/// A limit on the size of files fails writes as a full disk does.
#[test]
fn a_full_disk_is_named_on_both_sides_and_what_is_there_can_be_read() {
    let folder = place("full");
    let script = r#"trap "" XFSZ; ulimit -f 64; exec "$0" broker --listen 127.0.0.1:0 --data "$1" -X group.initial.rebalance.delay.ms=0"#;
    let mut command = Command::new("sh");
    command
        .args(["-c", script, env!("CARGO_BIN_EXE_kohort")])
        .arg(&folder);
    let mut broker = Running::of(&mut command);
    let ready = broker.until("ready ");
    let address = ready.trim().strip_prefix("ready ").unwrap();
    kohort(&at(&["topic", "create", "t", "--partitions", "1"], address)).done();
    let produce = at(&["produce", "--topic", "t"], address);
    with_input(&produce, b"first\n").done();
    let hasty = [
        "-X",
        "delivery.timeout.ms=1500",
        "-X",
        "request.timeout.ms=1000",
    ];
    let much = format!("{}\n", "x".repeat(500)).repeat(200);
    let ended = with_input(&[&produce[..], &hasty].concat(), much.as_bytes());
    ended.refused(
        1,
        &["line ", "KAFKA_STORAGE_ERROR", "the broker's log says why"],
    );
    broker.until_said("cannot append to the log");
    full_offsets_are_named(address);
    let read = [
        "consume",
        "--topic",
        "t",
        "--from",
        "beginning",
        "--count",
        "1",
    ];
    assert_eq!(kohort(&at(&read, address)).done(), "first\n");
    broker.signal("TERM");
    broker.end().done();
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Resets offsets until they cannot be stored: it is said what is tried again, and for how long.
#[track_caller]
fn full_offsets_are_named(address: &str) {
    kohort(&at(
        &["topic", "create", "wide", "--partitions", "100"],
        address,
    ))
    .done();
    let reset = ["group", "reset-offsets", "g", "--topic", "wide"];
    let hasty = ["--execute", "-X", "default.api.timeout.ms=4000"];
    let reset = [&at(&reset, address)[..], &["--to-latest"], &hasty].concat();
    let refused = (0..20)
        .map(|_| kohort(&reset))
        .find(|ended| ended.status != Some(0));
    let refused = refused.unwrap();
    assert!(
        refused.err.contains("trying again for 4000 ms in all"),
        "{refused:?}"
    );
    refused.refused(1, &["OffsetCommit", "group g"]);
}
