//! `kohort` as a process, for tests: what it says, how it ends, and within what time.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod stranger;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Longer than this nothing may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a command has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    /// It did what it was asked for.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!(self.status, Some(0), "{self:?}");
        self.out
    }

    /// It ended with this status, and with one sentence that has all these parts.
    #[track_caller]
    pub(crate) fn refused(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:?}");
        let sentences: Vec<&str> = self.sentences();
        assert_eq!(sentences.len(), 1, "one sentence: {self:?}");
        for part in parts {
            assert!(sentences[0].contains(part), "{part:?} in {self:?}");
        }
    }

    /// What it said itself; log lines, which begin with a time, are something else.
    pub(crate) fn sentences(&self) -> Vec<&str> {
        self.err
            .lines()
            .filter(|line| line.starts_with("kohort: "))
            .collect()
    }
}

/// Runs a command to its end.
pub(crate) fn kohort(arguments: &[&str]) -> Ended {
    with_input(arguments, b"")
}

/// The same with something on standard input.
pub(crate) fn with_input(arguments: &[&str], input: &[u8]) -> Ended {
    let mut running = Running::start(arguments);
    if let Some(mut to) = running.child.stdin.take() {
        let input = input.to_owned();
        std::thread::spawn(move || to.write_all(&input));
    }
    running.end()
}

/// A command that runs; killed when the test ends.
pub(crate) struct Running {
    pub(crate) child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    seen: String,
    said: String,
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (to, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

impl Running {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::of(Command::new(env!("CARGO_BIN_EXE_kohort")).args(arguments))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command
            .env_remove("RUST_LOG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out: ChildStdout = child.stdout.take().unwrap();
        let (out, err) = (lines(out), lines(child.stderr.take().unwrap()));
        let (seen, said) = (String::new(), String::new());
        Self {
            child,
            out,
            err,
            seen,
            said,
        }
    }

    /// Waits for a line on standard output with this in it.
    #[track_caller]
    pub(crate) fn until(&mut self, part: &str) -> String {
        let line = wait_for(&self.out, part, &mut self.seen);
        line.unwrap_or_else(|| {
            self.all_said();
            panic!("no {part:?} in {:?}; {:?}", self.seen, self.said)
        })
    }

    /// The same on standard error.
    #[track_caller]
    pub(crate) fn until_said(&mut self, part: &str) -> String {
        let line = wait_for(&self.err, part, &mut self.said);
        line.unwrap_or_else(|| panic!("no {part:?} in {:?}", self.said))
    }

    fn all_said(&mut self) -> &str {
        while let Ok(line) = self.err.try_recv() {
            self.said += &line;
            self.said.push('\n');
        }
        &self.said
    }

    pub(crate) fn write(&mut self, text: &str) {
        let to = self.child.stdin.as_mut().unwrap();
        to.write_all(text.as_bytes()).unwrap();
        to.flush().unwrap();
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if started.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("still running; {:?}", self.all_said());
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let (mut out, mut err) = (
            std::mem::take(&mut self.seen),
            std::mem::take(&mut self.said),
        );
        for (from, to) in [(&self.out, &mut out), (&self.err, &mut err)] {
            while let Ok(line) = from.recv_timeout(PATIENCE) {
                *to += &line;
                to.push('\n');
            }
        }
        Ended { status, out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait_for(lines: &Receiver<String>, part: &str, all: &mut String) -> Option<String> {
    let started = Instant::now();
    loop {
        let left = PATIENCE.saturating_sub(started.elapsed());
        let line = lines.recv_timeout(left).ok()?;
        *all += &line;
        all.push('\n');
        if line.contains(part) {
            return Some(line);
        }
    }
}

/// A broker in memory whose groups form without delay, and its address.
pub(crate) fn broker(arguments: &[&str]) -> (Running, String) {
    let quick = ["-X", "group.initial.rebalance.delay.ms=0"];
    let listen = ["broker", "--listen", "127.0.0.1:0"];
    let mut broker = Running::start(&[&listen[..], &quick, arguments].concat());
    let ready = broker.until("ready ");
    let address = ready.trim().strip_prefix("ready ").unwrap().to_owned();
    (broker, address)
}
