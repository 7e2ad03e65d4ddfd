//! `kohort produce`: lines become records.

use super::cluster::{ClusterArguments, Format};
use crate::failure::Failure;
use crate::stdout;
use kohort::settings::Acks;
use kohort::{Delivery, Error, NewRecord, Producer};
use serde_json::json;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

/// How many lines are read ahead of what is sent.
const READ_AHEAD: usize = 1024;
/// How many records may be under way before the first of them is waited for.
const UNDER_WAY: usize = 100_000;
/// When the last records are not acknowledged after so long, it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// Sends each line of a file, or of standard input, as a record.
///
/// Ends when all are acknowledged, and says how many.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  kohort produce --topic orders --key-separator : < orders.txt\n  kohort produce --topic logs --compression zstd access.log"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// The topic.
    #[arg(long, short)]
    topic: String,
    /// What separates a line's key from its value; without it lines have no key.
    #[arg(long, value_name = "TEXT")]
    key_separator: Option<String>,
    /// Sends everything to this partition, whatever the keys.
    #[arg(long, short)]
    partition: Option<i32>,
    /// Who must have a record before it counts: all, 1 or 0 (Kafka: acks; default all).
    #[arg(long)]
    acks: Option<String>,
    /// none, gzip, snappy, lz4 or zstd (Kafka: compression.type; default none).
    #[arg(long, short = 'z')]
    compression: Option<String>,
    /// text for people, json (one object) for programs.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// The file; standard input if there is none.
    file: Option<PathBuf>,
}

/// Sends until the lines end.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let options = [
        ("acks", arguments.acks.clone()),
        ("compression.type", arguments.compression.clone()),
    ];
    let settings = arguments.cluster.settings(&options)?;
    let unacknowledged = settings.acks == Acks::None;
    let input = open(&arguments)?;
    let producer = Producer::builder().settings(settings).build().await?;
    let mut lines = read_lines(input);
    let mut progress = Progress::new();
    let mut signals = count_signals()?;
    let mut second = signals.clone();
    let outcome = tokio::select! {
        outcome = send_all(&producer, &arguments, &mut lines, &mut progress, &mut signals) => outcome,
        Ok(_) = second.wait_for(|count| *count > 1) => Err(Failure::failed(
            "ended by a second signal: what was read and is not acknowledged may or may not be stored",
        )),
    };
    progress.finish();
    let word = if unacknowledged {
        "sent"
    } else {
        "acknowledged"
    };
    let told = match arguments.format {
        Format::Text if progress.done == 1 => stdout::line(format_args!("1 record {word}")),
        Format::Text => stdout::line(format_args!("{} records {word}", progress.done)),
        Format::Json => stdout::line(json!({word: progress.done})),
    };
    outcome.and(told)
}

fn open(arguments: &Arguments) -> Result<Box<dyn BufRead + Send>, Failure> {
    let Some(path) = &arguments.file else {
        if std::io::stdin().is_terminal() {
            eprintln!("Each line becomes a record; end with Ctrl-D.");
        }
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    };
    if path.is_dir() {
        return Err(Failure::usage(format!(
            "{} is a folder: expected a file of lines",
            path.display()
        )));
    }
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

type Lines = mpsc::Receiver<std::io::Result<Vec<u8>>>;

/// Reads on a thread of its own: standard input may block for ever.
fn read_lines(mut input: Box<dyn BufRead + Send>) -> Lines {
    let (to, lines) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        loop {
            let mut line = Vec::new();
            let read = input
                .read_until(b'\n', &mut line)
                .map(|size| (size > 0).then_some(line));
            let next = match read {
                Ok(None) => return,
                Ok(Some(mut line)) => {
                    if line.last() == Some(&b'\n') {
                        line.pop();
                    }
                    Ok(line)
                }
                Err(error) => Err(error),
            };
            let last = next.is_err();
            if to.blocking_send(next).is_err() || last {
                return;
            }
        }
    });
    lines
}

/// How many signals have come: after the first one nothing more is read, and what is under way is sent.
fn count_signals() -> Result<watch::Receiver<u32>, Failure> {
    let cannot = |error| Failure::failed(format!("cannot listen to signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let (counter, count) = watch::channel(0);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            counter.send_modify(|count| *count += 1);
        }
    });
    Ok(count)
}

async fn send_all(
    producer: &Producer,
    arguments: &Arguments,
    lines: &mut Lines,
    progress: &mut Progress,
    signals: &mut watch::Receiver<u32>,
) -> Result<(), Failure> {
    let topic: Arc<str> = arguments.topic.as_str().into();
    let mut under_way: VecDeque<(u64, Delivery)> = VecDeque::new();
    let mut number = 0;
    let stopped = loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            Ok(_) = signals.wait_for(|count| *count > 0) => break Ok(()),
        };
        let line = match line {
            None => break Ok(()),
            Some(Ok(line)) => line,
            Some(Err(error)) => {
                break Err(Failure::failed(format!(
                    "reading line {}: {error}",
                    number + 1
                )));
            }
        };
        number += 1;
        match producer.send(record(&topic, arguments, line)).await {
            Ok(delivery) => under_way.push_back((number, delivery)),
            Err(error) => break Err(at_line(number, error)),
        }
        if under_way.len() >= UNDER_WAY
            && let Some(oldest) = under_way.pop_front()
        {
            settle(oldest, progress).await?;
        }
    };
    let flushing = producer.flush();
    tokio::pin!(flushing);
    if tokio::time::timeout(PATIENCE, &mut flushing).await.is_err() {
        eprintln!(
            "kohort: waiting for the broker to acknowledge what was sent (up to {} of {number} records)",
            under_way.len()
        );
        flushing.await;
    }
    for delivery in under_way {
        settle(delivery, progress).await?;
    }
    stopped
}

fn record(topic: &Arc<str>, arguments: &Arguments, line: Vec<u8>) -> NewRecord {
    let mut record = NewRecord::to_topic(topic);
    record.partition = arguments.partition;
    let line = bytes::Bytes::from(line);
    let separator = arguments
        .key_separator
        .as_deref()
        .unwrap_or_default()
        .as_bytes();
    let at = (!separator.is_empty())
        .then(|| {
            line.windows(separator.len())
                .position(|window| window == separator)
        })
        .flatten();
    match at {
        Some(at) => record
            .key(line.slice(..at))
            .value(line.slice(at + separator.len()..)),
        None => record.value(line),
    }
}

fn at_line(number: u64, error: Error) -> Failure {
    Failure::failed(format!("line {number}: {error}"))
}

async fn settle(
    (number, delivery): (u64, Delivery),
    progress: &mut Progress,
) -> Result<(), Failure> {
    delivery
        .wait()
        .await
        .map_err(|error| at_line(number, error))?;
    progress.one_more();
    Ok(())
}

/// A counter on stderr while it runs, if that is a terminal.
struct Progress {
    done: u64,
    shown: bool,
    started: Instant,
    last: Instant,
}

impl Progress {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            done: 0,
            shown: std::io::stderr().is_terminal(),
            started: now,
            last: now,
        }
    }

    fn one_more(&mut self) {
        self.done += 1;
        if self.shown
            && self.done.is_multiple_of(1000)
            && self.last.elapsed() > Duration::from_millis(200)
        {
            self.last = Instant::now();
            let rate = self.done as f64 / self.started.elapsed().as_secs_f64();
            let _ = write!(
                std::io::stderr(),
                "\r{} records acknowledged, {rate:.0} a second ",
                self.done
            );
        }
    }

    fn finish(&self) {
        if self.shown && self.last > self.started {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
