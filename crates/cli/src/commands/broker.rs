//! `kohort broker`: the embedded broker as a process.

use crate::failure::Failure;
use crate::properties::PropertyArguments;
use kohort_broker::{Broker, BrokerError, Settings};
use std::io::Write;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};

/// Runs a Kafka broker, in memory or on disk.
///
/// Prints one line, `ready ADDRESS`, on stdout when it serves. Ctrl-C or SIGTERM ends it.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  kohort broker --listen 127.0.0.1:9092 --data ./data -X num.partitions=12"
)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 picks a free one (Kafka: listeners).
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:9092")]
    listen: String,
    /// Keeps everything in this folder (Kafka: log.dirs); without it, in memory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    properties: PropertyArguments,
}

/// Runs until told to end.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut settings = Settings::default();
    for (name, value) in arguments.properties.read(Settings::NAMES)? {
        settings.set(&name, &value).map_err(Failure::usage)?;
    }
    let mut ended = signal(SignalKind::terminate()).map_err(Failure::failed)?;
    let mut builder = Broker::builder()
        .listen(&arguments.listen)
        .settings(settings);
    if let Some(folder) = &arguments.data {
        builder = builder.data(folder);
    }
    let broker = builder.start().await.map_err(|error| match error {
        BrokerError::Address { .. } => Failure::usage(error),
        other => Failure::failed(other),
    })?;
    if arguments.data.is_none() {
        eprintln!("in memory: nothing is kept when this broker ends (--data DIR keeps it)");
    }
    let mut stdout = std::io::stdout().lock();
    // Nobody may be reading: that is no reason not to serve.
    let _ = writeln!(stdout, "ready {}", broker.address()).and_then(|()| stdout.flush());
    drop(stdout);
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {}
        _ = ended.recv() => {}
    }
    tracing::info!("ending");
    tokio::select! {
        biased;
        // A second one ends it at once.
        _ = tokio::signal::ctrl_c() => {}
        _ = ended.recv() => {}
        () = broker.shutdown() => {}
    }
    Ok(())
}
