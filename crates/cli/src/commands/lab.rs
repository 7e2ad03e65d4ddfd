//! `kohort lab`: the laboratory.

use crate::failure::Failure;
use crate::stdout;
use kohort_sim::{Case, Outcome, Summary};
use std::io::{IsTerminal, Write};
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Breaks simulated groups on purpose, one run a seed, and says what held.
///
/// Exit status 1 if a rule was broken; the first failing seed's last events are shown, and it is shrunk to a file for `kohort replay`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  kohort lab --seeds 0..10000\n  kohort lab --seeds 17..18 --trace 200"
)]
pub(crate) struct Arguments {
    /// The seeds to run: from A to B, B not included.
    #[arg(long, value_name = "A..B", default_value = "0..1000")]
    seeds: Seeds,
    /// How many runs at a time; 0 means one for each processor.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Shows the last N events of the first seed, whether it holds or not.
    #[arg(long, value_name = "N")]
    trace: Option<usize>,
    /// Breaks nothing, and changes one thing at a time: what does each change cost?
    #[arg(long)]
    calm: bool,
    /// Goes on after a failure.
    #[arg(long)]
    keep_going: bool,
}

/// A range of seeds.
#[derive(Clone, Copy, Debug)]
struct Seeds {
    from: u64,
    to: u64,
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("expected A..B with A below B, such as 0..1000, not {text:?}");
        let (from, to) = text.split_once("..").ok_or_else(expected)?;
        let from = from.parse().map_err(|_| expected())?;
        let to = to.parse().map_err(|_| expected())?;
        if from < to {
            Ok(Self { from, to })
        } else {
            Err(expected())
        }
    }
}

/// Runs the seeds.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    tokio::task::spawn_blocking(move || run_all(&arguments))
        .await
        .map_err(Failure::failed)?
}

fn run_all(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(keep) = arguments.trace {
        let case = case(arguments.calm, arguments.seeds.from);
        return show(&kohort_sim::run_case(&case, keep));
    }
    let started = Instant::now();
    let threads = match arguments.threads {
        0 => std::thread::available_parallelism().map_or(1, Into::into),
        threads => threads,
    };
    let board = Board::new(arguments);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| board.work());
        }
        if std::io::stderr().is_terminal() {
            scope.spawn(|| board.show_progress(started));
        }
    });
    board.verdict(started.elapsed())
}

fn case(calm: bool, seed: u64) -> Case {
    if calm {
        Case::calm(seed)
    } else {
        Case::of(seed)
    }
}

fn show(outcome: &Outcome) -> Result<(), Failure> {
    for line in &outcome.last {
        stdout::line(line)?;
    }
    let violated = outcome.violation.is_some();
    stdout::line(Outcome {
        last: Vec::new(),
        ..outcome.clone()
    })?;
    if violated { Err(Failure::Told) } else { Ok(()) }
}

/// Shrinks a failing seed and writes the case to a file.
fn leave_trace(case: &Case) -> Result<(), Failure> {
    let file = format!("lab-{}.trace", case.seed);
    let (case, outcome) = case.shrink();
    std::fs::write(&file, case.file())
        .map_err(|error| Failure::failed(format!("{file} cannot be written: {error}")))?;
    stdout::line(format_args!(
        "shrunk to {} strikes and {} events; see it step by step: kohort replay {file}\n",
        outcome.strikes.saturating_sub(case.skip.len() as u64),
        outcome.events
    ))?;
    Ok(())
}

/// What the threads share.
struct Board {
    next: AtomicU64,
    seeds: Seeds,
    calm: bool,
    keep_going: bool,
    summary: Mutex<Summary>,
    first: Mutex<Option<Outcome>>,
}

impl Board {
    fn new(arguments: &Arguments) -> Self {
        let seeds = arguments.seeds;
        Self {
            next: AtomicU64::new(seeds.from),
            seeds,
            calm: arguments.calm,
            keep_going: arguments.keep_going,
            summary: Mutex::default(),
            first: Mutex::default(),
        }
    }

    /// Runs seed after seed.
    fn work(&self) {
        let mut summary = Summary::default();
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.seeds.to {
                break;
            }
            let outcome = kohort_sim::run_and_tell(&case(self.calm, seed));
            summary.add(&outcome);
            if outcome.violation.is_some() {
                if let Ok(mut first) = self.first.lock()
                    && first.as_ref().is_none_or(|first| first.seed > seed)
                {
                    *first = Some(outcome);
                }
                if !self.keep_going {
                    self.next.store(self.seeds.to, Ordering::Relaxed);
                }
            }
        }
        if let Ok(mut all) = self.summary.lock() {
            all.merge(&summary);
        }
    }

    /// Says on stderr how far it is.
    fn show_progress(&self, started: Instant) {
        loop {
            let next = self.next.load(Ordering::Relaxed).min(self.seeds.to);
            let done = next - self.seeds.from;
            let all = self.seeds.to - self.seeds.from;
            let seconds = started.elapsed().as_secs_f64();
            eprint!(
                "\r{done} of {all} runs, {:.0} a second ",
                done as f64 / seconds
            );
            let _ = std::io::stderr().flush();
            if next == self.seeds.to {
                eprintln!();
                return;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn verdict(self, took: Duration) -> Result<(), Failure> {
        let summary = self.summary.into_inner().map_err(Failure::failed)?;
        let first = self.first.into_inner().map_err(Failure::failed)?;
        if let Some(first) = &first {
            stdout::line(format_args!("{first}\n"))?;
            leave_trace(&case(self.calm, first.seed))?;
        }
        stdout::line(format_args!(
            "{summary}{:.1} s, {:.0} runs a minute",
            took.as_secs_f64(),
            summary.runs as f64 * 60.0 / took.as_secs_f64()
        ))?;
        if first.is_some() {
            Err(Failure::Told)
        } else {
            Ok(())
        }
    }
}
