//! The `kohort` command line.
//!
//! Text goes to stdout, logs to stderr (`-v`, `RUST_LOG`). Exit status: 0 done, 1 it failed, 2 wrong usage.

mod commands;
mod demo;
mod failure;
mod properties;
mod stdout;

use clap::{ArgAction, Parser, Subcommand};
use failure::Failure;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Kafka consumer groups that rebalance without stopping the world.
#[derive(Parser)]
#[command(name = "kohort", version, arg_required_else_help = true)]
struct Arguments {
    /// Says more on stderr; twice says all (RUST_LOG overrides).
    #[arg(short, long, action = ArgAction::Count, global = true)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Arguments),
    Broker(commands::broker::Arguments),
    Consume(commands::consume::Arguments),
    Produce(commands::produce::Arguments),
    Group(commands::group::Arguments),
    Topic(commands::topic::Arguments),
    Explain(commands::explain::Arguments),
    Lab(commands::lab::Arguments),
    Replay(commands::replay::Arguments),
}

impl Command {
    async fn run(self) -> Result<(), Failure> {
        match self {
            Command::Demo(arguments) => commands::demo::run(arguments).await,
            Command::Broker(arguments) => commands::broker::run(arguments).await,
            Command::Consume(arguments) => commands::consume::run(arguments).await,
            Command::Produce(arguments) => commands::produce::run(arguments).await,
            Command::Group(arguments) => commands::group::run(arguments).await,
            Command::Topic(arguments) => commands::topic::run(arguments).await,
            Command::Explain(arguments) => commands::explain::run(arguments).await,
            Command::Lab(arguments) => commands::lab::run(arguments).await,
            Command::Replay(arguments) => commands::replay::run(arguments).await,
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log_to_stderr(arguments.verbose);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return Failure::failed(format!("cannot start: {error}")).report(),
    };
    let outcome = runtime.block_on(arguments.command.run());
    // A blocking read of stdin must not keep the process.
    runtime.shutdown_background();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn log_to_stderr(verbose: u8) {
    let level = ["warn", "info,kohort=debug", "debug", "trace"][usize::from(verbose.min(3))];
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .init();
}
