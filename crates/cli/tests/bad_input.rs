//! Bad input: each case ends in one clear sentence and the right exit status, and nothing hangs in silence.

#![allow(clippy::unwrap_used)]

mod process;

use process::stranger::{forbidding, nobody, silent, stranger};
use process::{Running, broker, kohort, with_input};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Commands that talk to a cluster.
const CLIENTS: [&[&str]; 5] = [
    &["topic", "list"],
    &["group", "list"],
    &["consume", "--topic", "t"],
    &["consume", "--topic", "t", "--group", "g"],
    &["explain", "some-group"],
];

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
fn who_is_no_broker_is_named() {
    let http = stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let tls = stranger(&[0x15, 3, 1, 0, 2, 2, 70]);
    let newer_tls = stranger(&[0x15, 3, 3, 0, 2, 2, 70]);
    let garbage = stranger(&[0xff; 64]);
    for command in CLIENTS {
        let ended = kohort(&at(command, &http));
        ended.refused(
            1,
            &[
                &http,
                "expected a Kafka broker",
                "HTTP server",
                "correct host and port",
            ],
        );
        for tls in [&tls, &newer_tls] {
            kohort(&at(command, tls)).refused(1, &[tls, "a TLS server", "only plaintext"]);
        }
        kohort(&at(command, &garbage)).refused(1, &[&garbage, "expected a Kafka broker"]);
    }
    let produce = ["produce", "--topic", "t", "--bootstrap", &http];
    with_input(&produce, b"x\n").refused(1, &[&http, "HTTP server"]);
}

#[test]
fn who_is_absent_or_hangs_up_is_waited_for_with_words() {
    for (address, parts) in [
        (
            nobody(),
            [
                "nobody listens there",
                "start the broker or correct the address",
            ],
        ),
        (
            stranger(b""),
            [
                "closed before the first answer",
                "plaintext listener of a Kafka broker",
            ],
        ),
    ] {
        let mut waiting = Running::start(&at(&["topic", "list"], &address));
        waiting.until_said("trying again for 5000 ms");
        drop(waiting);
        let hasty = ["-X", "bootstrap.timeout.ms=100"];
        for command in CLIENTS {
            let ended = kohort(&[&at(command, &address)[..], &hasty].concat());
            ended.refused(1, &[&address, parts[0], parts[1]]);
        }
    }
    let unknown = ["topic", "list", "-b", "no.such.host.invalid:9092"];
    let ended = kohort(&[&unknown[..], &["-X", "bootstrap.timeout.ms=0"]].concat());
    ended.refused(
        1,
        &[
            "no.such.host.invalid",
            "cannot be found",
            "correct its name",
        ],
    );
    for address in ["localhost", "localhost:x", ":9092", "a:99999"] {
        kohort(&at(&["topic", "list"], address)).refused(2, &[address, "expected host:port"]);
    }
}

#[test]
fn who_is_silent_is_mentioned_and_given_up() {
    let address = silent();
    let mut waiting = Running::start(&at(&["topic", "list"], &address));
    waiting.until_said("has not answered yet; waiting for up to 10000 ms");
    drop(waiting);
    let hasty = [
        "-X",
        "bootstrap.timeout.ms=0",
        "-X",
        "socket.connection.setup.timeout.ms=200",
    ];
    let ended = kohort(&[&at(&["topic", "list"], &address)[..], &hasty].concat());
    ended.refused(
        1,
        &[&address, "did not answer", "expected a plaintext listener"],
    );
}

#[test]
fn an_unknown_topic_is_named() {
    let (_broker, address) = broker(&["-X", "auto.create.topics.enable=false"]);
    let plain = kohort(&at(&["consume", "--topic", "nowhere"], &address));
    plain.refused(
        1,
        &[
            "topic nowhere",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "kohort topic create",
        ],
    );
    let describe = kohort(&at(&["topic", "describe", "nowhere"], &address));
    describe.refused(1, &["topic nowhere", "kohort topic list"]);
    kohort(&at(&["topic", "delete", "nowhere"], &address))
        .refused(1, &["nowhere", "kohort topic list"]);
    let produce = with_input(&at(&["produce", "--topic", "nowhere"], &address), b"x\n");
    produce.refused(1, &["line 1", "topic nowhere", "kohort topic create"]);
    // A member waits for it, and says so; with an end to reach it does not.
    let member = at(&["consume", "--topic", "nowhere", "--group", "g"], &address);
    let mut waiting = Running::start(&member);
    waiting.until_said("kohort: topic nowhere does not exist (yet)");
    waiting.signal("TERM");
    assert_eq!(waiting.end().status, Some(0));
    let ended = kohort(&[&member[..], &["--at-end"]].concat());
    ended.refused(1, &["topic nowhere", "--at-end does not wait"]);
}

#[test]
fn what_is_not_allowed_is_named() {
    let address = forbidding();
    let parts = ["topic t", "TOPIC_AUTHORIZATION_FAILED", "READ", "granted"];
    kohort(&at(&["consume", "--topic", "t"], &address)).refused(1, &parts);
    kohort(&at(&["topic", "describe", "t"], &address)).refused(1, &parts);
    let produce = with_input(&at(&["produce", "--topic", "t"], &address), b"x\n");
    produce.refused(1, &["topic t", "TOPIC_AUTHORIZATION_FAILED", "WRITE"]);
    let member = kohort(&at(&["consume", "--topic", "t", "--group", "g"], &address));
    member.refused(1, &["AUTHORIZATION_FAILED", "READ"]);
    let describe = kohort(&at(&["group", "describe", "g"], &address));
    describe.refused(1, &["group g", "GROUP_AUTHORIZATION_FAILED", "READ"]);
}

#[test]
fn a_group_with_another_protocol_is_named() {
    let (_broker, address) = broker(&[]);
    kohort(&at(&["topic", "create", "t"], &address)).done();
    let member = at(&["consume", "--topic", "t", "--group", "g"], &address);
    let first = ["--assignor", "range", "--format", "json"];
    let mut first = Running::start(&[&member[..], &first].concat());
    first.until("\"assigned\"");
    let ended = kohort(&[&member[..], &["--assignor", "sticky"]].concat());
    ended.refused(
        1,
        &[
            "group g",
            "INCONSISTENT_GROUP_PROTOCOL",
            "sticky",
            "list an assignor that the group uses",
        ],
    );
    let ended = kohort(&[&member[..], &["--assignor", "best"]].concat());
    ended.refused(2, &["no assignor \"best\"", "cooperative-sticky"]);
    let ended = kohort(&[&member[..], &["-X", "session.timeout.ms=2000000000"]].concat());
    ended.refused(
        1,
        &["INVALID_SESSION_TIMEOUT", "group.max.session.timeout.ms"],
    );
    kohort(&["consume", "--topic", "t", "--group", ""]).refused(2, &["--group is empty"]);
}

#[test]
fn a_broken_properties_file_is_named() {
    let file = place("properties");
    let path = file.to_str().unwrap();
    let cases: [(&[u8], &[&str]); 5] = [
        (b"a=\\u00zz", &["line 1", "is not a character"]),
        (
            b"# ok\nsession.timeout=1",
            &["line 2", "did you mean \"session.timeout.ms\"?"],
        ),
        (b"\xff\xfe", &["not UTF-8"]),
        (b"acks=most", &["acks", "expected one of", "\"most\""]),
        (b"security.protocol=SSL", &["only PLAINTEXT"]),
    ];
    for (bytes, parts) in cases {
        std::fs::write(&file, bytes).unwrap();
        kohort(&["topic", "list", "--config", path]).refused(2, parts);
    }
    std::fs::remove_file(&file).unwrap();
    kohort(&["topic", "list", "--config", path]).refused(2, &[path, "cannot read"]);
    kohort(&["broker", "--config", path]).refused(2, &[path, "cannot read"]);
}

#[test]
fn where_a_broker_cannot_listen_is_named() {
    let (_broker, address) = broker(&[]);
    let listen = |address: &str| kohort(&["broker", "--listen", address]);
    listen(&address).refused(1, &[&address, "in use", "choose another port"]);
    for wrong in ["127.0.0.1:x", "127.0.0.1:99999", "9092"] {
        listen(wrong).refused(2, &[wrong, "expected HOST:PORT"]);
    }
    listen("192.0.2.1:9092").refused(
        1,
        &["192.0.2.1:9092", "expected an address of this machine"],
    );
}

#[test]
fn a_line_that_is_too_long_is_named() {
    let (_broker, address) = broker(&["-X", "message.max.bytes=1000"]);
    kohort(&at(
        &["topic", "create", "t", "--partitions", "1"],
        &address,
    ))
    .done();
    let produce = at(&["produce", "--topic", "t"], &address);
    let long = format!("short\n{}\n", "x".repeat(5_000));
    let ended = with_input(&produce, long.as_bytes());
    ended.refused(
        1,
        &["line 2", "t-0", "MESSAGE_TOO_LARGE", "max.message.bytes"],
    );
    assert!(ended.out.contains("1 record acknowledged"), "{ended:?}");
    let longer = format!("{}\n", "x".repeat(2_000_000));
    let ended = with_input(&produce, longer.as_bytes());
    ended.refused(1, &["line 1", "max.request.size"]);
    let folder = std::env::temp_dir();
    let folder = folder.to_str().unwrap();
    kohort(&[&produce[..], &[folder]].concat()).refused(2, &[folder, "expected a file"]);
    kohort(&[&produce[..], &["/no/such/file"]].concat())
        .refused(2, &["/no/such/file", "cannot read"]);
}

/// The one that came last runs; programs see the code, people what to do.
#[test]
fn a_static_member_whose_place_is_taken_is_named() {
    let (_broker, address) = broker(&[]);
    kohort(&at(&["topic", "create", "t"], &address)).done();
    let consume = at(&["consume", "--topic", "t", "--group", "g"], &address);
    let json = ["--instance-id", "i", "--format", "json"];
    let member = [&consume[..], &json, &["-X", "heartbeat.interval.ms=100"]].concat();
    let mut first = Running::start(&member);
    first.until("\"assigned\"");
    let mut second = Running::start(&member);
    second.until("\"assigned\"");
    let ended = first.end();
    assert!(ended.out.contains("\"number\":82"), "{ended:?}");
    ended.refused(1, &["FENCED_INSTANCE_ID", "i; give each process its own"]);
}

/// Standard output that is full or closed is no reason to panic.
#[test]
fn an_output_that_cannot_be_written_is_named() {
    let (_broker, address) = broker(&[]);
    kohort(&at(&["topic", "create", "t"], &address)).done();
    with_input(&at(&["produce", "--topic", "t"], &address), b"x\n").done();
    let consume = ["consume", "--topic", "t", "--from", "beginning", "--at-end"];
    let member = [&consume[..], &["--group", "g"]].concat();
    let each = [&member[..], &["--commit", "each"]].concat();
    let describe = ["group", "describe", "g"];
    let commands: [&[&str]; 5] = [&consume, &member, &each, &["topic", "list"], &describe];
    for command in commands {
        let full = Command::new(env!("CARGO_BIN_EXE_kohort"))
            .args(at(command, &address))
            .stdin(Stdio::null())
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&full.stderr);
        assert_eq!(full.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("cannot write to standard output"), "{said}");
        assert!(!said.contains("panicked"), "{said}");
        // Nobody reads: the end, without words.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = Command::new(env!("CARGO_BIN_EXE_kohort"))
            .args(at(command, &address))
            .stdin(Stdio::null())
            .stdout(writer)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&closed.stderr);
        assert_eq!(closed.status.code(), Some(1), "{command:?}: {said}");
        assert!(
            !said.contains("panicked") && !said.contains("cannot write"),
            "{said}"
        );
    }
}

/// What could not be written was not consumed, and the group does not wait for the one that has ended.
#[test]
fn what_was_not_written_is_not_committed() {
    let (_broker, address) = broker(&[]);
    kohort(&at(&["topic", "create", "t"], &address)).done();
    with_input(&at(&["produce", "--topic", "t"], &address), b"x\n").done();
    let consume = ["consume", "--topic", "t", "--from", "beginning", "--at-end"];
    let member = [&at(&consume, &address)[..], &["--group", "g"]].concat();
    for commit in ["auto", "each"] {
        let full = Command::new(env!("CARGO_BIN_EXE_kohort"))
            .args([&member[..], &["--commit", commit]].concat())
            .stdin(Stdio::null())
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        assert_eq!(full.status.code(), Some(1));
    }
    assert_eq!(kohort(&member).done(), "x\n");
}

/// Somebody who waits for records is told why none come.
#[test]
fn nothing_waits_in_silence() {
    let (_broker, address) = broker(&[]);
    kohort(&at(&["topic", "create", "t"], &address)).done();
    let consume = at(&["consume", "--topic", "t"], &address);
    let mut plain = Running::start(&consume);
    let mut member = Running::start(&[&consume[..], &["--group", "g"]].concat());
    for waiting in [&mut plain, &mut member] {
        waiting.until_said("kohort: waiting for new records (--from beginning");
    }
}
