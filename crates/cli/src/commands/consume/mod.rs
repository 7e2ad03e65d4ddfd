//! `kohort consume`: a member of a group, or a plain reader, on the command line.

mod member;
mod output;
mod plain;

use super::cluster::{ClusterArguments, Format};
use crate::failure::Failure;
use output::Output;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// When nothing has come after so long, it is said what is waited for. The first rebalance of a group takes 3 s where the broker has
/// Kafka's default `group.initial.rebalance.delay.ms`.
const PATIENCE: Duration = Duration::from_secs(4);
/// How long a close may take beside draining and letting go: commits, and the leave.
const CLOSE_PATIENCE: Duration = Duration::from_secs(15);
/// How long the end may take after a second signal.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Reads topics: as a member of a group, or, without --group, all partitions by itself.
///
/// Text: the values, one a line. JSON: events, one a line. In JSON, lines on standard input steer it: close, commit, pause,
/// resume, rejoin.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  kohort consume --group billing --topic orders\n  kohort consume --topic orders --from beginning --at-end | sort\n  kohort consume --group g --topic a --topic b --format json --assignor cooperative-sticky"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// The group (Kafka: group.id); without it, every partition is read and nothing is committed.
    #[arg(long, short)]
    group: Option<String>,
    /// A topic; may be repeated.
    #[arg(long, short)]
    topic: Vec<String>,
    /// All topics whose whole name matches this regular expression, now and later.
    #[arg(long, conflicts_with = "topic")]
    pattern: Option<String>,
    /// The assignors, the best first, separated by commas: cooperative-sticky, range, roundrobin, sticky
    /// (Kafka: partition.assignment.strategy; default cooperative-sticky).
    #[arg(long, value_name = "NAME")]
    assignor: Option<String>,
    /// The static member's own id (Kafka: group.instance.id).
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    /// Where the member is (Kafka: client.rack).
    #[arg(long)]
    rack: Option<String>,
    /// Where to start where no offset is committed: beginning, end or none, which is an error then
    /// (Kafka: auto.offset.reset; default end).
    #[arg(long, value_enum)]
    from: Option<From>,
    /// auto: now and then, and when partitions go; each: after each batch; none (Kafka: enable.auto.commit).
    #[arg(long, value_enum)]
    commit: Option<Commit>,
    /// Stops after so many records.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stops when every partition that it owns is read to its end.
    #[arg(long)]
    at_end: bool,
    /// Takes so many milliseconds to let go of partitions.
    #[arg(long, value_name = "N", default_value_t = 0)]
    revoke_ms: u64,
    /// The member's name in JSON events (default: the client id).
    #[arg(long)]
    name: Option<String>,
    /// text for people, json (events, one a line) for programs.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum From {
    #[value(alias = "earliest")]
    Beginning,
    #[value(alias = "latest")]
    End,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Commit {
    Auto,
    Each,
    None,
}

/// Reads until it is told to end.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let from = arguments.from.map(|from| match from {
        From::Beginning => "earliest",
        From::End => "latest",
        From::None => "none",
    });
    let auto_commit = arguments.commit.map(|commit| commit == Commit::Auto);
    let options = [
        ("group.id", arguments.group.clone()),
        ("partition.assignment.strategy", arguments.assignor.clone()),
        ("group.instance.id", arguments.instance_id.clone()),
        ("client.rack", arguments.rack.clone()),
        ("auto.offset.reset", from.map(str::to_owned)),
        ("enable.auto.commit", auto_commit.map(|on| on.to_string())),
    ];
    let settings = arguments.cluster.settings(&options)?;
    if arguments.group.as_deref() == Some("") {
        return Err(Failure::usage(
            "--group is empty: name a group, or leave it out to read without one",
        ));
    }
    if arguments.topic.is_empty() && arguments.pattern.is_none() {
        return Err(Failure::usage(
            "nothing to read: name at least one --topic, or a --pattern",
        ));
    }
    let name = arguments
        .name
        .clone()
        .unwrap_or_else(|| settings.client_id.clone());
    let output = Output::new(arguments.format, name);
    let longest = Duration::from_millis(settings.close_drain_ms.into())
        + Duration::from_millis(arguments.revoke_ms)
        + CLOSE_PATIENCE;
    let orders = listen(arguments.format, longest)?;
    if settings.group_id.is_some() {
        member::run(arguments, settings, output, orders).await
    } else {
        plain::run(arguments, settings, output, orders).await
    }
}

/// What standard input or a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Close,
    CloseNow,
    Commit,
    Pause,
    Resume,
    Rejoin,
}

/// Listens to signals, and to standard input if programs steer. A close takes `longest` at most.
fn listen(format: Format, longest: Duration) -> Result<mpsc::UnboundedReceiver<Order>, Failure> {
    let (orders, queue) = mpsc::unbounded_channel();
    let signals = orders.clone();
    let cannot = |error| Failure::failed(format!("cannot listen to signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    tokio::spawn(async move {
        let (mut order, mut patience) = (Order::Close, longest);
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if signals.send(order).is_err() {
                return;
            }
            end_after(patience);
            (order, patience) = (Order::CloseNow, AT_ONCE);
        }
    });
    if format == Format::Json {
        std::thread::spawn(move || obey_lines(&orders));
    }
    Ok(queue)
}

/// Ends the process if it still runs then: nothing else helps where standard output is blocked because nobody reads it.
fn end_after(patience: Duration) {
    std::thread::spawn(move || {
        std::thread::sleep(patience);
        eprintln!(
            "kohort: not closed within {} ms after the signal (is standard output blocked?): ended without leaving the group; what was not committed will be read again",
            patience.as_millis()
        );
        std::process::exit(1);
    });
}

/// On a thread of its own: a read of standard input cannot be given up.
fn obey_lines(orders: &mpsc::UnboundedSender<Order>) {
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let order = match line.trim() {
            "close" => Order::Close,
            "commit" => Order::Commit,
            "pause" => Order::Pause,
            "resume" => Order::Resume,
            "rejoin" => Order::Rejoin,
            "" => continue,
            other => {
                tracing::warn!(
                    "{other:?} on standard input: expected close, commit, pause, resume or rejoin"
                );
                continue;
            }
        };
        if orders.send(order).is_err() {
            return;
        }
    }
}

/// Does what comes before the first record, unless the end is asked for first: nothing is there to be closed then.
async fn unless_closed<T>(
    doing: impl Future<Output = T>,
    orders: &mut mpsc::UnboundedReceiver<Order>,
) -> Option<T> {
    tokio::pin!(doing);
    loop {
        tokio::select! {
            done = &mut doing => return Some(done),
            order = orders.recv() => {
                if matches!(order, Some(Order::Close | Order::CloseNow) | None) {
                    return None;
                }
            }
        }
    }
}

/// Why nothing comes, as far as that can be seen from here.
fn waiting_for_records(arguments: &Arguments) -> &'static str {
    match arguments.from {
        None | Some(From::End) => {
            "kohort: waiting for new records (--from beginning reads those that are there, where no offset is committed)"
        }
        Some(From::Beginning | From::None) => "kohort: waiting for records",
    }
}

/// Sleeps until a moment, or for ever.
async fn until(moment: Option<std::time::Instant>) {
    match moment {
        Some(moment) => {
            let left = moment.saturating_duration_since(std::time::Instant::now());
            tokio::time::sleep(left.min(Duration::from_secs(3600))).await;
        }
        None => std::future::pending().await,
    }
}
