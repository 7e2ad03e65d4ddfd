//! `kohort group describe`: offsets and lag, members, state.

use super::super::explain;
use super::table::Table;
use super::{Common, Format};
use crate::failure::Failure;
use crate::stdout;
use kohort::{
    Admin, Error, ErrorCode, GroupDescription, MemberDescription, Partitions, TopicPartition,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// State, members, assignment, offsets and lag of groups.
///
/// Without --offsets, --members or --state: the state, the offsets, and what the last rebalance was about.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  kohort group describe billing\n  kohort group describe billing --members --verbose\n  kohort group describe --all-groups --state"
)]
pub(super) struct Arguments {
    /// The groups.
    #[arg(required_unless_present = "all_groups")]
    groups: Vec<String>,
    /// All groups.
    #[arg(long, conflicts_with = "groups")]
    all_groups: bool,
    /// Committed offsets, ends and lag of each partition, and who reads it.
    #[arg(long)]
    offsets: bool,
    /// The members.
    #[arg(long)]
    members: bool,
    /// The group as a whole.
    #[arg(long)]
    state: bool,
    /// With --members: also what they have and want. (Elsewhere: says more on stderr.)
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(flatten)]
    common: Common,
}

/// A partition as the group sees it.
struct Row {
    what: TopicPartition,
    committed: Option<i64>,
    end: Option<i64>,
    owner: Option<MemberDescription>,
}

impl Row {
    fn lag(&self) -> Option<i64> {
        Some((self.end? - self.committed?).max(0))
    }
}

pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let admin = arguments.common.admin().await?;
    let groups = if arguments.all_groups {
        let all = admin.groups().await?.into_iter();
        all.map(|one| one.group).collect()
    } else {
        arguments.groups.clone()
    };
    let mut told = Ok(());
    for (number, group) in groups.iter().enumerate() {
        if number > 0 && arguments.common.format == Format::Text {
            stdout::line("")?;
        }
        match one(arguments, &admin, group).await {
            Ok(lines) => lines.iter().try_for_each(stdout::line)?,
            Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => {
                eprintln!(
                    "kohort: group {group} does not exist; `kohort group list` shows those that do"
                );
                told = Err(Failure::Told);
            }
            Err(error) if groups.len() > 1 => {
                eprintln!("kohort: {error}");
                told = Err(Failure::Told);
            }
            Err(error) => return Err(error.into()),
        }
    }
    told
}

/// What there is to say about one group.
async fn one(arguments: &Arguments, admin: &Admin, group: &str) -> Result<Vec<String>, Error> {
    let described = admin.describe_group(group).await?;
    let whole = !arguments.offsets && !arguments.members && !arguments.state;
    let rows = if whole || arguments.offsets {
        rows(admin, &described).await?
    } else {
        Vec::new()
    };
    let last = if whole {
        last_rebalance(arguments, admin, group).await
    } else {
        None
    };
    if arguments.common.format == Format::Json {
        return Ok(vec![object(arguments, &described, &rows, last).to_string()]);
    }
    remark(&described);
    let mut lines = Vec::new();
    if arguments.state {
        lines.extend(state_table(&described).lines());
    }
    if arguments.members {
        lines.extend(members_table(&described, arguments.verbose > 0).lines());
    }
    if whole {
        lines.push(summary(&described, &rows));
    }
    if whole || arguments.offsets {
        lines.extend(offsets_table(&described, &rows).lines());
    }
    if let Some(last) = last {
        lines.push(format!("last rebalance: {}", last.text.trim_end()));
    }
    Ok(lines)
}

/// A cluster other than kohort's own keeps no records: then there is nothing to say.
async fn last_rebalance(
    arguments: &Arguments,
    admin: &Admin,
    group: &str,
) -> Option<explain::Last> {
    let last = explain::last(&arguments.common.cluster, admin, group).await;
    last.unwrap_or_else(|error| {
        tracing::debug!("no rebalance records: {error:?}");
        None
    })
}

/// What the numbers below do not say.
fn remark(described: &GroupDescription) {
    let group = &described.group;
    match described.state.as_str() {
        "Empty" => eprintln!("kohort: group {group} has no members"),
        "PreparingRebalance" | "CompletingRebalance" => {
            eprintln!("kohort: group {group} is rebalancing: who reads what is about to change");
        }
        _ => {}
    }
}

async fn rows(admin: &Admin, described: &GroupDescription) -> Result<Vec<Row>, Error> {
    let committed = admin.committed(&described.group).await?;
    let mut owners: BTreeMap<TopicPartition, &MemberDescription> = BTreeMap::new();
    for member in &described.members {
        for (topic, partition) in member.assigned.iter() {
            owners.insert(TopicPartition::new(topic.clone(), partition), member);
        }
    }
    let all: BTreeSet<TopicPartition> = committed.keys().chain(owners.keys()).cloned().collect();
    let names: BTreeSet<&str> = all.iter().map(|one| &*one.topic).collect();
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    // A topic that was deleted, or a partition without a leader, has no end.
    let view = admin.topics(Some(&names)).await?;
    let led = all
        .iter()
        .filter(|one| view.leader(&one.topic, one.partition).is_some());
    let led: Vec<TopicPartition> = led.cloned().collect();
    let ends = admin.offsets_at(&led, -1).await?;
    Ok(all
        .into_iter()
        .map(|what| Row {
            committed: committed.get(&what).copied(),
            end: ends.get(&what).copied(),
            owner: owners.get(&what).map(|owner| (*owner).clone()),
            what,
        })
        .collect())
}

fn summary(described: &GroupDescription, rows: &[Row]) -> String {
    let mut parts = vec![described.state.clone()];
    let members = described.members.len();
    parts.push(format!(
        "{members} member{}",
        if members == 1 { "" } else { "s" }
    ));
    if !described.protocol.is_empty() {
        parts.push(described.protocol.clone());
    }
    parts.push(format!("lag {}", total_lag(rows)));
    let coordinator = &described.coordinator;
    parts.push(format!(
        "coordinator {} ({})",
        coordinator.address, coordinator.id
    ));
    format!("group {}: {}", described.group, parts.join(", "))
}

fn total_lag(rows: &[Row]) -> i64 {
    rows.iter().filter_map(Row::lag).sum()
}

fn number(number: Option<i64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

fn offsets_table(described: &GroupDescription, rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]);
    for row in rows {
        let of = |cell: fn(&MemberDescription) -> &str| {
            row.owner
                .as_ref()
                .map_or(String::new(), |owner| cell(owner).to_owned())
        };
        table.row([
            described.group.clone(),
            row.what.topic.to_string(),
            row.what.partition.to_string(),
            number(row.committed),
            number(row.end),
            number(row.lag()),
            of(|owner| &owner.member_id),
            of(|owner| &owner.host),
            of(|owner| &owner.client_id),
        ]);
    }
    table
}

fn members_table(described: &GroupDescription, verbose: bool) -> Table {
    let mut head = vec![
        "GROUP",
        "CONSUMER-ID",
        "GROUP-INSTANCE-ID",
        "HOST",
        "CLIENT-ID",
        "#PARTITIONS",
    ];
    if verbose {
        head.extend(["ASSIGNMENT", "TOPICS"]);
    }
    let mut table = Table::new(&head);
    for member in &described.members {
        let mut cells = vec![
            described.group.clone(),
            member.member_id.clone(),
            member.instance_id.clone().unwrap_or_default(),
            member.host.clone(),
            member.client_id.clone(),
            member.assigned.len().to_string(),
        ];
        if verbose {
            cells.extend([assignment(&member.assigned), member.topics.join(",")]);
        }
        table.row(cells);
    }
    table
}

/// `orders(0,1),users(2)`.
fn assignment(assigned: &Partitions) -> String {
    let topics: Vec<String> = assigned
        .by_topic()
        .map(|(topic, numbers)| {
            let numbers: Vec<String> = numbers.iter().map(i32::to_string).collect();
            format!("{topic}({})", numbers.join(","))
        })
        .collect();
    topics.join(",")
}

fn state_table(described: &GroupDescription) -> Table {
    let mut table = Table::new(&[
        "GROUP",
        "COORDINATOR (ID)",
        "ASSIGNMENT-STRATEGY",
        "STATE",
        "#MEMBERS",
    ]);
    let coordinator = &described.coordinator;
    table.row([
        described.group.clone(),
        format!("{} ({})", coordinator.address, coordinator.id),
        described.protocol.clone(),
        described.state.clone(),
        described.members.len().to_string(),
    ]);
    table
}

/// The whole, or what was asked for: `members` and `offsets` are lists, `last_rebalance` a record as `kohort explain` writes it.
fn object(
    arguments: &Arguments,
    described: &GroupDescription,
    rows: &[Row],
    last: Option<explain::Last>,
) -> Value {
    let whole = !arguments.offsets && !arguments.members && !arguments.state;
    let mut object = json!({
        "group": described.group,
        "state": described.state,
        "protocol_type": described.protocol_type,
        "protocol": described.protocol,
        "coordinator": {"id": described.coordinator.id, "address": described.coordinator.address},
    });
    if whole || arguments.members {
        object["members"] = described.members.iter().map(member_object).collect();
    }
    if whole || arguments.offsets {
        object["offsets"] = rows
            .iter()
            .map(|row| {
                json!({
                    "topic": &*row.what.topic, "partition": row.what.partition,
                    "committed": row.committed, "end": row.end, "lag": row.lag(),
                    "member_id": row.owner.as_ref().map(|owner| &owner.member_id),
                })
            })
            .collect();
        object["lag"] = total_lag(rows).into();
    }
    if whole {
        object["last_rebalance"] = last.map_or(Value::Null, |last| last.record);
    }
    object
}

fn member_object(member: &MemberDescription) -> Value {
    let assigned = member.assigned.iter();
    let assigned: Vec<Value> = assigned
        .map(|(topic, partition)| json!([&**topic, partition]))
        .collect();
    let topics: Vec<&str> = member.topics.iter().map(|topic| &**topic).collect();
    json!({
        "member_id": member.member_id, "instance_id": member.instance_id, "client_id": member.client_id,
        "host": member.host, "assigned": assigned, "topics": topics,
    })
}
