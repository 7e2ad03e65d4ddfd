//! `kohort replay`: a shrunk run of the laboratory, step by step.

use crate::failure::Failure;
use crate::stdout;
use kohort_sim::Case;
use std::io::BufRead;
use std::path::PathBuf;

/// Runs a trace file of the laboratory again and shows what happens.
///
/// Exit status 1 if a rule is broken, as it was when the file was written.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  kohort replay lab-1646.trace --last 40")]
pub(crate) struct Arguments {
    /// The file that a failed run of `kohort lab` has left.
    file: PathBuf,
    /// Shows the last N events alone.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Waits for Enter after each event.
    #[arg(long)]
    step: bool,
}

/// Replays the file.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    tokio::task::spawn_blocking(move || replay(&arguments))
        .await
        .map_err(Failure::failed)?
}

fn replay(arguments: &Arguments) -> Result<(), Failure> {
    let file = arguments.file.display();
    let text = std::fs::read_to_string(&arguments.file)
        .map_err(|error| Failure::failed(format!("{file} cannot be read: {error}")))?;
    let case: Case = text
        .parse()
        .map_err(|error: String| Failure::failed(format!("{file}: {error}")))?;
    let mut outcome = kohort_sim::run_case(&case, arguments.last.unwrap_or(usize::MAX));
    let mut answer = String::new();
    for line in std::mem::take(&mut outcome.last) {
        stdout::line(line)?;
        if arguments.step {
            let read = std::io::stdin().lock().read_line(&mut answer);
            read.map_err(Failure::failed)?;
        }
    }
    match &outcome.violation {
        Some(violation) => {
            println!(
                "broke {} at {} ms: {}",
                violation.rule, violation.at, violation.what
            );
            Err(Failure::Told)
        }
        None => {
            stdout::line("all rules held")?;
            Ok(())
        }
    }
}
