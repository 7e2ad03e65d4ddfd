//! `kohort topic`: list, describe, create, delete, add partitions.

use super::cluster::{ClusterArguments, Format};
use crate::failure::Failure;
use crate::stdout;
use kohort::error::advice;
use kohort::metadata::{TopicView, View};
use kohort::{Admin, ErrorCode, NewTopic};
use serde_json::json;
use std::collections::BTreeMap;

/// Lists, describes, creates and deletes topics.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  kohort topic create orders --partitions 12\n  kohort topic describe orders"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Names and numbers of partitions of all topics.
    List {
        /// Kafka's own topics, too.
        #[arg(long)]
        internal: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Leader, replicas and replicas in sync of each partition.
    Describe {
        /// The topics; all if none is named.
        topics: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Makes a topic.
    Create {
        /// Its name.
        topic: String,
        /// How many partitions (default: what the broker thinks right).
        #[arg(long, default_value_t = -1, hide_default_value = true)]
        partitions: i32,
        /// How many replicas of each (default: what the broker thinks right).
        #[arg(long, default_value_t = -1, hide_default_value = true)]
        replicas: i16,
        /// A setting of the topic by Kafka's name, such as retention.ms=60000; may be repeated.
        #[arg(long = "set", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Deletes topics and all that is in them.
    Delete {
        /// Their names.
        #[arg(required = true)]
        topics: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Gives a topic more partitions.
    AddPartitions {
        /// The topic.
        topic: String,
        /// How many it is to have in all.
        #[arg(long)]
        total: i32,
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
        Action::List { internal, common } => list(&common, internal).await,
        Action::Describe { topics, common } => describe(&common, &topics).await,
        Action::Create {
            topic,
            partitions,
            replicas,
            settings,
            common,
        } => {
            let topic = NewTopic {
                name: topic,
                partitions,
                replicas,
                settings: pairs(&settings)?,
            };
            create(&common, topic).await
        }
        Action::Delete { topics, common } => {
            let admin = common.admin().await?;
            for topic in topics {
                admin.delete_topic(&topic).await?;
                common.say(&format!("deleted {topic}"), &json!({"deleted": topic}))?;
            }
            Ok(())
        }
        Action::AddPartitions {
            topic,
            total,
            common,
        } => {
            common.admin().await?.add_partitions(&topic, total).await?;
            common.say(
                &format!("{topic} has {total} partitions"),
                &json!({"topic": topic, "partitions": total}),
            )?;
            Ok(())
        }
    }
}

fn pairs(set: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    set.iter()
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(Failure::usage(format!("--set {pair}: expected KEY=VALUE"))),
        })
        .collect()
}

async fn list(common: &Common, internal: bool) -> Result<(), Failure> {
    let view = common.admin().await?.topics(None).await?;
    for (name, topic) in view
        .topics
        .iter()
        .filter(|(_, topic)| internal || !topic.internal)
    {
        let count = topic.partitions.len();
        common.say(
            &format!("{name}\t{count}"),
            &json!({"topic": &**name, "partitions": count, "internal": topic.internal}),
        )?;
    }
    Ok(())
}

async fn describe(common: &Common, topics: &[String]) -> Result<(), Failure> {
    let names: Vec<&str> = topics.iter().map(String::as_str).collect();
    let admin = common.admin().await?;
    let view = admin.topics((!names.is_empty()).then_some(&names)).await?;
    let missing = view.topics.iter().find(|(_, topic)| !topic.error.is_none());
    for (name, topic) in view
        .topics
        .iter()
        .filter(|(_, topic)| topic.error.is_none())
    {
        show(common, &view, name, topic)?;
    }
    match missing {
        Some((name, topic)) => Err(no_such_topic(name, topic.error)),
        None => Ok(()),
    }
}

/// A topic that cannot be had, and what to do.
pub(super) fn no_such_topic(name: &str, code: ErrorCode) -> Failure {
    let advice = advice(code).map_or(String::new(), |advice| format!("; {advice}"));
    Failure::failed(format!("topic {name}: {code}{advice}"))
}

fn show(common: &Common, view: &View, name: &str, topic: &TopicView) -> Result<(), Failure> {
    if common.format == Format::Text {
        stdout::line(format_args!(
            "{name}: {} partitions",
            topic.partitions.len()
        ))?;
    }
    for (number, partition) in &topic.partitions {
        let leader = view
            .nodes
            .get(&partition.leader)
            .map(|node| node.address.as_str());
        common.say(
            &format!(
                "  {number}\tleader {} ({})\treplicas {:?}\tin sync {:?}",
                partition.leader,
                leader.unwrap_or("none"),
                partition.replicas,
                partition.in_sync
            ),
            &json!({
                "topic": name, "partition": number, "leader": partition.leader, "address": leader,
                "leader_epoch": partition.leader_epoch, "replicas": partition.replicas, "in_sync": partition.in_sync,
            }),
        )?;
    }
    Ok(())
}

async fn create(common: &Common, topic: NewTopic) -> Result<(), Failure> {
    let name = topic.name.clone();
    common.admin().await?.create(topic).await?;
    common.say(&format!("created {name}"), &json!({"created": name}))?;
    Ok(())
}
