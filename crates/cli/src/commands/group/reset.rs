//! `kohort group reset-offsets`: where a group goes on reading. A dry run unless it is told otherwise.

use super::moment::{duration_ms, unix_ms};
use super::table::Table;
use super::topics::TopicArguments;
use super::{Common, Format};
use crate::failure::Failure;
use crate::stdout;
use kohort::{Admin, ErrorCode, TopicPartition};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

const END: i64 = -1;
const BEGINNING: i64 = -2;

type Offsets = BTreeMap<TopicPartition, i64>;

/// Sets where a group without members goes on reading; only shows what would be done unless --execute is given.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  kohort group reset-offsets billing --topic orders --to-earliest\n  kohort group reset-offsets billing --all-topics --to-datetime 2026-12-01T08:00:00 --execute\n  kohort group reset-offsets billing --topic orders:0,3 --shift-by -100 --execute"
)]
pub(super) struct Arguments {
    /// The group.
    group: String,
    #[command(flatten)]
    topics: TopicArguments,
    #[command(flatten)]
    whither: Whither,
    /// Does it, instead of only showing what would be done.
    #[arg(long)]
    execute: bool,
    /// Prints lines of topic,partition,offset, as --from-file reads them.
    #[arg(long)]
    export: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Whither {
    /// To the first offset there is.
    #[arg(long, alias = "to-beginning")]
    to_earliest: bool,
    /// To the end.
    #[arg(long, alias = "to-end")]
    to_latest: bool,
    /// To where it is; to the end where nothing is committed.
    #[arg(long)]
    to_current: bool,
    /// To this offset, or the nearest one there is.
    #[arg(long, value_name = "N")]
    to_offset: Option<i64>,
    /// Forward by so many, backward if negative.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    shift_by: Option<i64>,
    /// To the first record at or after a time: YYYY-MM-DDTHH:MM:SS.sss, UTC unless a zone follows.
    #[arg(long, value_name = "TIME")]
    to_datetime: Option<String>,
    /// To the first record that is not older than this: PnDTnHnMnS.
    #[arg(long, value_name = "DURATION")]
    by_duration: Option<String>,
    /// To what a file says in lines of topic,partition,offset.
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
}

impl Whither {
    /// What to ask the brokers for, if it is about a time.
    fn timestamp(&self) -> Result<Option<i64>, Failure> {
        if let Some(text) = &self.to_datetime {
            return unix_ms(text).map(Some).ok_or_else(|| {
                Failure::usage(format!(
                    "--to-datetime {text}: expected YYYY-MM-DDTHH:MM:SS.sss, such as 2026-12-01T08:00:00.000"
                ))
            });
        }
        if let Some(text) = &self.by_duration {
            let back = duration_ms(text).ok_or_else(|| {
                Failure::usage(format!(
                    "--by-duration {text}: expected PnDTnHnMnS, such as PT1H30M or P7D"
                ))
            })?;
            let now = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            return Ok(Some((now.as_millis() as i64 - back).max(0)));
        }
        Ok(self
            .to_earliest
            .then_some(BEGINNING)
            .or(self.to_latest.then_some(END)))
    }
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let group = &arguments.group;
    let timestamp = arguments.whither.timestamp()?;
    let file = arguments.whither.from_file.as_ref();
    let file = file.map(read).transpose()?;
    if file.is_none() {
        arguments.topics.check()?;
    }
    let admin = arguments.common.admin().await?;
    nobody_reads(arguments, &admin).await?;
    let committed = admin.committed(group).await?;
    let partitions = match &file {
        Some(file) if arguments.topics.is_empty() => file.keys().cloned().collect(),
        _ => arguments.topics.of_cluster(&admin, &committed).await?,
    };
    if partitions.is_empty() {
        return Err(Failure::failed(format!(
            "group {group} has no committed offsets: name the topics with --topic"
        )));
    }
    let new = match timestamp {
        Some(timestamp) => admin.offsets_at(&partitions, timestamp).await?,
        None => {
            within(&admin, &partitions, |what, end| {
                wanted(&arguments.whither, file.as_ref(), what, &committed, end)
            })
            .await?
        }
    };
    if arguments.execute {
        admin.commit(group, &new).await?;
    }
    show(arguments, &committed, &new)
}

/// Members would overwrite what is set here, so there must be none.
async fn nobody_reads(arguments: &Arguments, admin: &Admin) -> Result<(), Failure> {
    let group = &arguments.group;
    let described = match admin.describe_group(group).await {
        Ok(described) => described,
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if described.state == "Empty" {
        return Ok(());
    }
    let why = format!(
        "group {group} is in use (state {}, {} members): its offsets can only be reset while it has none; stop them first",
        described.state,
        described.members.len()
    );
    if arguments.execute {
        return Err(Failure::failed(why));
    }
    eprintln!("kohort: {why}");
    Ok(())
}

fn wanted(
    whither: &Whither,
    file: Option<&Offsets>,
    what: &TopicPartition,
    committed: &Offsets,
    end: i64,
) -> Result<i64, Failure> {
    if let Some(file) = file {
        return file
            .get(what)
            .copied()
            .ok_or_else(|| Failure::usage(format!("--from-file says nothing about {what}")));
    }
    if let Some(offset) = whither.to_offset {
        return Ok(offset);
    }
    let current = committed.get(what).copied();
    match whither.shift_by {
        None => Ok(current.unwrap_or(end)),
        Some(by) => current.map(|at| at.saturating_add(by)).ok_or_else(|| {
            Failure::failed(format!(
                "{what}: nothing is committed that could be shifted; use --to-offset, --to-earliest or --to-latest"
            ))
        }),
    }
}

/// What is wanted, moved to the nearest offset that exists; says so where it is.
async fn within(
    admin: &Admin,
    partitions: &[TopicPartition],
    wanted: impl Fn(&TopicPartition, i64) -> Result<i64, Failure>,
) -> Result<Offsets, Failure> {
    let begins = admin.offsets_at(partitions, BEGINNING).await?;
    let ends = admin.offsets_at(partitions, END).await?;
    let mut found = Offsets::new();
    for (what, end) in &ends {
        let begin = begins.get(what).copied().unwrap_or(0).min(*end);
        let offset = wanted(what, *end)?;
        let there = offset.clamp(begin, *end);
        if there != offset {
            eprintln!(
                "kohort: {what}: offset {offset} is outside {begin} to {end}; taking {there}"
            );
        }
        found.insert(what.clone(), there);
    }
    Ok(found)
}

fn read(path: &PathBuf) -> Result<Offsets, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    let mut offsets = Offsets::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let parsed = parse(line).ok_or_else(|| {
            Failure::usage(format!(
                "{} line {}: expected topic,partition,offset, found {line:?}",
                path.display(),
                number + 1
            ))
        })?;
        offsets.insert(parsed.0, parsed.1);
    }
    if offsets.is_empty() {
        return Err(Failure::usage(format!(
            "{} is empty: expected lines of topic,partition,offset",
            path.display()
        )));
    }
    Ok(offsets)
}

/// Kafka's tool writes the topic in quotes.
fn parse(line: &str) -> Option<(TopicPartition, i64)> {
    let mut cells = line.split(',').map(|cell| cell.trim().trim_matches('"'));
    let (topic, partition) = (cells.next()?, cells.next()?.parse().ok()?);
    let offset = cells.next()?.parse().ok()?;
    let right = !topic.is_empty() && partition >= 0 && offset >= 0 && cells.next().is_none();
    right.then(|| (TopicPartition::new(topic, partition), offset))
}

fn show(arguments: &Arguments, committed: &Offsets, new: &Offsets) -> Result<(), Failure> {
    let mut table = Table::new(&["GROUP", "TOPIC", "PARTITION", "OLD-OFFSET", "NEW-OFFSET"]);
    for (what, offset) in new {
        let (topic, partition) = (&*what.topic, what.partition);
        let old = committed.get(what);
        if arguments.export {
            stdout::line(format_args!("{topic},{partition},{offset}"))?;
        } else if arguments.common.format == Format::Json {
            stdout::line(
                json!({"group": arguments.group, "topic": topic, "partition": partition, "old": old, "new": offset, "executed": arguments.execute}),
            )?;
        } else {
            table.row([
                arguments.group.clone(),
                topic.to_owned(),
                partition.to_string(),
                old.map_or(String::new(), i64::to_string),
                offset.to_string(),
            ]);
        }
    }
    table.print()?;
    if !arguments.execute {
        eprintln!("kohort: a dry run: nothing was changed; --execute does it");
    }
    Ok(())
}
