//! `kohort demo`: the main job, by itself, in under half a minute.

use super::cluster::Format;
use crate::demo::{Demo, Mode};
use crate::failure::Failure;
use std::path::PathBuf;

/// Shows a consumer group that does not stop the world, beside one that does.
///
/// Starts an embedded broker, a steady flow of records, and two groups of real consumers over TCP that play the same story: members join,
/// leave, restart under an instance id, take 50 ms to let go, and crash. Draws who owns which partition, says what each rebalance cost, and
/// adds up. Exit status 1 if a record is missing, or if two members held a partition at once.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  kohort demo\n  kohort demo --mode cooperative --format json\n  kohort demo --bootstrap kafka-1:9092"
)]
pub(crate) struct Arguments {
    /// How the group that is shown rebalances.
    #[arg(long, value_enum, default_value_t = Mode::Explicit)]
    mode: Mode,
    /// How many members there are at the beginning, 3 to 8.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(3..=8))]
    members: u8,
    /// How many partitions the topic has, 1 to 100.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u8).range(1..=100))]
    partitions: u8,
    /// Which partitions the records go to.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Uses this file's lines as records, and checks that each of them comes out.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Plays on this cluster instead of an embedded broker (Kafka: bootstrap.servers). It takes longer: the session is 20 s.
    #[arg(long, value_name = "HOST:PORT")]
    bootstrap: Option<String>,
    /// text: a picture while it runs, and totals; json: one object at the end.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Plays.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let demo = Demo {
        mode: arguments.mode,
        members: arguments.members.into(),
        partitions: arguments.partitions.into(),
        seed: arguments.seed,
        input: arguments.input,
        bootstrap: arguments.bootstrap,
        format: arguments.format,
    };
    demo.run().await
}
