//! `kohort explain`: what happened in each rebalance of a group, why, whom it waited for and what it cost.

mod clock;
mod last;
mod names;
mod sum;
mod text;

use super::cluster::{ClusterArguments, Format};
use crate::failure::Failure;
use kohort::{ErrorCode, Reader, RebalanceRecord};
pub(super) use last::{Last, last};
use names::Names;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use sum::Sum;

/// Where kohort's broker publishes the records.
const TOPIC: &str = "__kohort_rebalances";

/// Explains the rebalances of a group: why, who, whom it waited for, what moved, what it cost.
///
/// The records are those that kohort's broker keeps in the internal topic __kohort_rebalances for a week, or the lines of a file
/// (what --format json wrote). Costs are in partition time: two partitions without an owner for 10 ms each cost 20 ms.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  kohort explain orders-group\n  kohort explain orders-group --last 3\n  kohort explain orders-group --format json > rebalances.jsonl\n  kohort explain rebalances.jsonl"
)]
pub(crate) struct Arguments {
    /// The group; or a file with records (one JSON object a line), - for stdin.
    #[arg(value_name = "GROUP|FILE")]
    of: String,
    /// Only the last so many rebalances.
    #[arg(long, value_name = "N")]
    last: Option<usize>,
    /// Go on, and explain each rebalance when it has ended.
    #[arg(long, short)]
    follow: bool,
    /// text for people, json (one record a line, and a last line with the sum) for programs.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Does it.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let path = Path::new(&arguments.of);
    let is_file = arguments.of == "-" || path.is_file();
    if is_file && arguments.follow {
        return Err(Failure::usage("--follow follows a group, not a file"));
    }
    let (mut records, source) = if is_file {
        (from_file(&arguments.of)?, None)
    } else {
        let (records, reader) = from_cluster(&arguments).await?;
        (records, Some(reader))
    };
    // By when they began: coordinators of several groups, and members, write into one file.
    records.sort_by_key(|record| record.started);
    if let Some(last) = arguments.last {
        records.drain(..records.len().saturating_sub(last));
    }
    let mut report = Report::new(arguments.format, &records);
    report.begin(&records)?;
    for record in &records {
        report.record(record)?;
    }
    if let (true, Some(reader)) = (arguments.follow, source) {
        follow(reader, &arguments.of, &mut report).await?;
    }
    report.end()
}

/// What is printed.
struct Report {
    format: Format,
    out: io::Stdout,
    /// On a terminal, unless NO_COLOR says otherwise.
    bold: bool,
    names: Names,
    sum: Sum,
}

impl Report {
    fn new(format: Format, records: &[RebalanceRecord]) -> Self {
        let mut names = Names::default();
        records.iter().for_each(|record| names.learn(record));
        Self {
            format,
            out: io::stdout(),
            bold: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
            names,
            sum: Sum::default(),
        }
    }

    fn line(&mut self, line: &str) -> Result<(), Failure> {
        match writeln!(self.out, "{line}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::Told),
            written => written.map_err(Failure::failed),
        }
    }

    fn begin(&mut self, records: &[RebalanceRecord]) -> Result<(), Failure> {
        match self.format {
            Format::Text => self.line(&text::opening(records)),
            Format::Json => Ok(()),
        }
    }

    fn record(&mut self, record: &RebalanceRecord) -> Result<(), Failure> {
        self.sum.add(record);
        match self.format {
            Format::Text => {
                let text = text::record(record, &self.names);
                match text.split_once('\n').filter(|_| self.bold) {
                    Some((first, rest)) => self.line(&format!("\x1b[1m{first}\x1b[0m\n{rest}")),
                    None => self.line(&text),
                }
            }
            Format::Json => {
                let json = serde_json::to_string(record).map_err(Failure::failed)?;
                self.line(&json)
            }
        }
    }

    fn end(mut self) -> Result<(), Failure> {
        let line = match self.format {
            Format::Text => self.sum.text(&self.names),
            Format::Json => self.sum.json().to_string(),
        };
        self.line(&line)
    }
}

/// The records in a file; lines that are none are passed over, a file without any is wrong.
fn from_file(path: &str) -> Result<Vec<RebalanceRecord>, Failure> {
    let cannot = |error: io::Error| Failure::failed(format!("cannot read {path}: {error}"));
    let input: Box<dyn Read> = if path == "-" {
        Box::new(io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(cannot)?)
    };
    let mut records = Vec::new();
    for line in BufReader::new(input).lines() {
        records.extend(decode(line.map_err(cannot)?.as_bytes()));
    }
    if records.is_empty() {
        return Err(Failure::failed(format!(
            "no rebalance records in {path}: expected lines such as `kohort explain GROUP --format json` writes"
        )));
    }
    Ok(records)
}

/// A record, if these bytes are one.
fn decode(bytes: &[u8]) -> Option<RebalanceRecord> {
    let record: RebalanceRecord = serde_json::from_slice(bytes).ok()?;
    // Every field may be missing, so that older and newer records can be read; but one without a group is something else.
    (!record.group.is_empty()).then_some(record)
}

/// What the cluster holds of the group, and the reader that stands at the end.
async fn from_cluster(arguments: &Arguments) -> Result<(Vec<RebalanceRecord>, Reader), Failure> {
    let earliest = ("auto.offset.reset", Some("earliest".to_owned()));
    let never = ("allow.auto.create.topics", Some("false".to_owned()));
    let settings = arguments.cluster.settings(&[earliest, never])?;
    let mut reader = Reader::connect(settings).await?;
    match reader.read_topic(TOPIC).await {
        Ok(_) => {}
        Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => {
            return Err(Failure::failed(format!(
                "this cluster keeps no rebalance records (there is no topic {TOPIC}): kohort's own broker writes them once a group is used; {:?} is no file either",
                arguments.of
            )));
        }
        Err(error) => return Err(error.into()),
    }
    let (mut records, mut others) = (Vec::new(), BTreeSet::new());
    while let Some(batch) = reader.next().await? {
        for record in batch.iter() {
            let Some(record) = record?.value.as_deref().and_then(decode) else {
                continue;
            };
            if record.group == arguments.of {
                records.push(record);
            } else if others.len() < 20 {
                others.insert(record.group);
            }
        }
    }
    if records.is_empty() && !arguments.follow {
        let known: Vec<&str> = others.iter().map(String::as_str).collect();
        let known = match known.as_slice() {
            [] => "no group has any yet".to_owned(),
            some => format!("there are some of {}", some.join(", ")),
        };
        return Err(Failure::failed(format!(
            "no rebalance records of group {:?}, and no such file: {known}",
            arguments.of
        )));
    }
    Ok((records, reader))
}

/// Explains what comes, until Ctrl-C.
async fn follow(mut reader: Reader, group: &str, report: &mut Report) -> Result<(), Failure> {
    loop {
        let next = tokio::select! {
            next = reader.next() => next?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let Some(batch) = next else { continue };
        for record in batch.iter() {
            let record = record?.value.as_deref().and_then(decode);
            if let Some(record) = record.filter(|record| record.group == group) {
                report.names.learn(&record);
                report.record(&record)?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
