//! `kohort broker` as a process: what it prints, and how it ends.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

fn kohort() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kohort"))
}

/// Starts a broker and gives it with the address that it says.
fn started(arguments: &[&str]) -> (Child, String) {
    let mut broker = kohort()
        .args(["broker", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(broker.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = line.trim().strip_prefix("ready ").unwrap().to_owned();
    (broker, address)
}

fn terminate(broker: &Child) {
    let status = Command::new("kill")
        .arg(broker.id().to_string())
        .status()
        .unwrap();
    assert!(status.success());
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn it_says_when_it_serves_and_ends_on_sigterm() {
    let (mut broker, address) = started(&[]);
    assert!(std::net::TcpStream::connect(&address).is_ok());
    terminate(&broker);
    assert_eq!(broker.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    broker
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(said.contains("in memory"), "{said}");
}

#[test]
fn a_port_in_use_is_one_clear_sentence() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = kohort()
        .args(["broker", "--listen", &address])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    assert_eq!(text(&output).lines().count(), 1);
    assert!(
        text(&output).contains(&address) && text(&output).contains("in use"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_folder_in_use_is_one_clear_sentence() {
    let folder = std::env::temp_dir().join(format!("kohort-command-{}", std::process::id()));
    let folder_text = folder.to_str().unwrap();
    let (mut broker, _) = started(&["--data", folder_text]);
    let second = kohort()
        .args(["broker", "--listen", "127.0.0.1:0", "--data", folder_text])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(
        text(&second).contains("is in use by another broker"),
        "{}",
        text(&second)
    );
    terminate(&broker);
    broker.wait().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_usage_is_told_apart_from_failure() {
    let wrong: &[(&[&str], &str)] = &[
        (&["-X", "num.partition=3"], "num.partitions"),
        (&["-X", "num.partitions=many"], "from 1 to"),
        (&["-X", "num.partitions"], "KEY=VALUE"),
        (&["--config", "/nowhere/at.all"], "/nowhere/at.all"),
        (&["--lisen", "x"], "--listen"),
    ];
    for (arguments, hint) in wrong {
        let output = kohort().arg("broker").args(*arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output).contains(hint),
            "{arguments:?}: {}",
            text(&output)
        );
    }
    let help = kohort().args(["broker", "--help"]).output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&help.stdout).contains("Example:"));
}
