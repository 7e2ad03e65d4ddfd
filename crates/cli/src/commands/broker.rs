//! `kohort broker`: the embedded broker as a process.

use crate::failure::Failure;
use crate::properties::PropertyArguments;
use std::path::PathBuf;

/// Runs a Kafka broker, in memory or on disk.
///
/// Prints one line, `ready ADDRESS`, on stdout when it serves. Ctrl-C or SIGTERM ends it.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  kohort broker --listen 127.0.0.1:9092 --data ./data -X num.partitions=12"
)]
pub(crate) struct Arguments {
    /// Where to listen; port 0 picks a free one (Kafka: listeners).
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9092")]
    listen: String,
    /// Keeps everything in this folder (Kafka: log.dirs); without it, in memory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    properties: PropertyArguments,
}

/// Runs until told to end.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let _ = arguments.properties.read(&[])?;
    let _ = (arguments.listen, arguments.data);
    Err(Failure::failed("the broker is not built yet"))
}
