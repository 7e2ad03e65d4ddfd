//! `--topic T`, `--topic T:0,1`, `--all-topics`: which partitions.

use super::super::topic::no_such_topic;
use crate::failure::Failure;
use kohort::{Admin, TopicPartition};
use std::collections::BTreeMap;

/// Which partitions.
#[derive(clap::Args, Clone, Debug)]
#[group(multiple = false)]
pub(super) struct TopicArguments {
    /// A topic, or some of its partitions, such as orders:0,3; may be repeated.
    #[arg(long, value_name = "TOPIC[:P,P…]")]
    topic: Vec<String>,
    /// All topics of which the group has committed offsets.
    #[arg(long)]
    all_topics: bool,
}

/// A topic and the partitions of it, or all.
type Named = (String, Option<Vec<i32>>);

impl TopicArguments {
    /// Something must be named.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.is_empty() {
            return Err(Failure::usage(
                "which partitions: name a --topic, or --all-topics",
            ));
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.topic.is_empty() && !self.all_topics
    }

    fn named(&self) -> Result<Vec<Named>, Failure> {
        self.topic
            .iter()
            .map(|text| {
                let Some((topic, numbers)) = text.split_once(':') else {
                    return Ok((text.clone(), None));
                };
                let numbers = numbers.split(',').map(|number| number.trim().parse::<i32>());
                match numbers.collect::<Result<Vec<_>, _>>() {
                    Ok(numbers) if numbers.iter().all(|number| *number >= 0) => {
                        Ok((topic.to_owned(), Some(numbers)))
                    }
                    _ => Err(Failure::usage(format!(
                        "--topic {text}: expected TOPIC, or TOPIC:P,P with partition numbers, such as orders:0,3"
                    ))),
                }
            })
            .collect()
    }

    /// Those among the committed ones.
    pub(super) fn of_committed(
        &self,
        committed: &BTreeMap<TopicPartition, i64>,
    ) -> Result<Vec<TopicPartition>, Failure> {
        let named = self.named()?;
        let wanted = |one: &&TopicPartition| {
            self.all_topics
                || named.iter().any(|(topic, numbers)| {
                    *one.topic == **topic
                        && numbers
                            .as_ref()
                            .is_none_or(|numbers| numbers.contains(&one.partition))
                })
        };
        Ok(committed.keys().filter(wanted).cloned().collect())
    }

    /// Those that exist in the cluster: named ones that do not are an error.
    pub(super) async fn of_cluster(
        &self,
        admin: &Admin,
        committed: &BTreeMap<TopicPartition, i64>,
    ) -> Result<Vec<TopicPartition>, Failure> {
        if self.all_topics {
            return self.of_committed(committed);
        }
        let named = self.named()?;
        let names: Vec<&str> = named.iter().map(|(topic, _)| topic.as_str()).collect();
        let view = admin.topics(Some(&names)).await?;
        let mut all = Vec::new();
        for (topic, numbers) in named {
            let found = view.topics.get(topic.as_str());
            let found = found.filter(|found| found.error.is_none()).ok_or_else(|| {
                let code = found.map(|found| found.error).unwrap_or_default();
                no_such_topic(&topic, code)
            })?;
            let numbers = numbers.unwrap_or_else(|| found.partitions.keys().copied().collect());
            for number in numbers {
                if !found.partitions.contains_key(&number) {
                    return Err(Failure::failed(format!(
                        "topic {topic} has no partition {number}: it has {} of them, from 0 on",
                        found.partitions.len()
                    )));
                }
                all.push(TopicPartition::new(topic.as_str(), number));
            }
        }
        all.sort();
        all.dedup();
        Ok(all)
    }
}
