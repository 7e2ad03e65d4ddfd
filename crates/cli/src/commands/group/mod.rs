//! `kohort group`: list, describe, reset and delete offsets, delete groups, remove members.

mod describe;
mod moment;
mod reset;
mod table;
mod topics;

use super::cluster::{ClusterArguments, Format};
use crate::failure::Failure;
use crate::stdout;
use kohort::{Admin, TopicPartition};
use serde_json::json;
use table::Table;
use topics::TopicArguments;

/// Lists and describes groups, moves their offsets, removes members.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  kohort group list\n  kohort group describe billing\n  kohort group describe billing --members --verbose\n  kohort group reset-offsets billing --topic orders --to-earliest --execute"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Names, states and kinds of all groups.
    List {
        /// Only groups in these states, separated by commas: Empty, PreparingRebalance, CompletingRebalance, Stable.
        #[arg(long, value_name = "STATE", value_delimiter = ',')]
        state: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    Describe(describe::Arguments),
    ResetOffsets(reset::Arguments),
    /// Deletes the offsets that a group has committed for topics which none of its members reads.
    DeleteOffsets {
        /// The group.
        group: String,
        #[command(flatten)]
        topics: TopicArguments,
        #[command(flatten)]
        common: Common,
    },
    /// Deletes groups without members, with their offsets.
    Delete {
        /// Their names.
        #[arg(required = true)]
        groups: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Removes members at once, where one does not want to wait until their sessions end (such as a static member that stays away).
    RemoveMember {
        /// The group.
        group: String,
        /// A static member (Kafka: group.instance.id); may be repeated.
        #[arg(long, value_name = "ID")]
        instance_id: Vec<String>,
        /// A member by the id that describe shows; may be repeated.
        #[arg(long, value_name = "ID")]
        member_id: Vec<String>,
        /// All of them.
        #[arg(long, conflicts_with_all = ["instance_id", "member_id"])]
        all: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    cluster: ClusterArguments,
    /// text for people, json (one object a line) for programs.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl Common {
    async fn admin(&self) -> Result<Admin, Failure> {
        Ok(Admin::with(self.cluster.settings(&[])?).await?)
    }

    fn say(&self, text: &str, json: &serde_json::Value) -> Result<(), Failure> {
        match self.format {
            Format::Text => stdout::line(text),
            Format::Json => stdout::line(json),
        }
    }
}

/// Does it.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::List { state, common } => list(&common, &state).await,
        Action::Describe(arguments) => describe::run(&arguments).await,
        Action::ResetOffsets(arguments) => reset::run(&arguments).await,
        Action::DeleteOffsets {
            group,
            topics,
            common,
        } => delete_offsets(&common, &group, &topics).await,
        Action::Delete { groups, common } => delete(&common, &groups).await,
        Action::RemoveMember {
            group,
            instance_id,
            member_id,
            all,
            common,
        } => remove(&common, &group, instance_id, member_id, all).await,
    }
}

async fn list(common: &Common, states: &[String]) -> Result<(), Failure> {
    const STATES: [&str; 5] = [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
    ];
    for state in states {
        if !STATES.iter().any(|known| known.eq_ignore_ascii_case(state)) {
            let known = STATES.join(", ");
            return Err(Failure::usage(format!(
                "--state {state}: expected one of {known}"
            )));
        }
    }
    let groups = common.admin().await?.groups().await?;
    let wanted = groups.into_iter().filter(|one| {
        states.is_empty() || states.iter().any(|s| s.eq_ignore_ascii_case(&one.state))
    });
    let mut table = Table::new(&["GROUP", "STATE", "PROTOCOL-TYPE"]);
    for one in wanted {
        match common.format {
            Format::Text => table.row([one.group, one.state, one.protocol_type]),
            Format::Json => stdout::line(
                json!({"group": one.group, "state": one.state, "protocol_type": one.protocol_type}),
            )?,
        }
    }
    table.print()
}

/// Does it for each, also after one has failed.
async fn delete(common: &Common, groups: &[String]) -> Result<(), Failure> {
    let admin = common.admin().await?;
    let mut told = Ok(());
    for group in groups {
        match admin.delete_group(group).await {
            Ok(()) => common.say(&format!("deleted {group}"), &json!({"deleted": group}))?,
            Err(error) => {
                eprintln!("kohort: {error}");
                told = Err(Failure::Told);
            }
        }
    }
    told
}

async fn delete_offsets(
    common: &Common,
    group: &str,
    topics: &TopicArguments,
) -> Result<(), Failure> {
    topics.check()?;
    let admin = common.admin().await?;
    let committed = admin.committed(group).await?;
    let wanted: Vec<TopicPartition> = topics.of_committed(&committed)?;
    if wanted.is_empty() {
        return Err(Failure::failed(format!(
            "group {group} has no committed offsets there; `kohort group describe {group}` shows those that it has"
        )));
    }
    admin.delete_offsets(group, &wanted).await?;
    for one in wanted {
        common.say(
            &format!("deleted the offset of {one}"),
            &json!({"group": group, "topic": &*one.topic, "partition": one.partition, "deleted": committed[&one]}),
        )?;
    }
    Ok(())
}

async fn remove(
    common: &Common,
    group: &str,
    mut instances: Vec<String>,
    mut members: Vec<String>,
    all: bool,
) -> Result<(), Failure> {
    if !all && instances.is_empty() && members.is_empty() {
        return Err(Failure::usage(
            "whom to remove: name an --instance-id or a --member-id, or --all",
        ));
    }
    let admin = common.admin().await?;
    if all {
        for member in admin.describe_group(group).await?.members {
            match member.instance_id {
                Some(instance) => instances.push(instance),
                None => members.push(member.member_id),
            }
        }
    }
    let (of_members, of_instances): (Vec<&str>, Vec<&str>) = (
        members.iter().map(String::as_str).collect(),
        instances.iter().map(String::as_str).collect(),
    );
    if all && of_members.is_empty() && of_instances.is_empty() {
        eprintln!("kohort: group {group} has no members");
        return Ok(());
    }
    admin
        .remove_members(
            group,
            &of_members,
            &of_instances,
            "removed by kohort group remove-member",
        )
        .await?;
    for id in instances.iter().chain(&members) {
        common.say(
            &format!("removed {id}"),
            &json!({"group": group, "removed": id}),
        )?;
    }
    Ok(())
}
