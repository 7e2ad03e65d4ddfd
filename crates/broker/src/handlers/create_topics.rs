//! CreateTopics.

use crate::node::{Exchange, Node};
use crate::topic_config::{self, TopicConfigs};
use crate::topics::Refusal;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    CreateTopicsRequest, CreateTopicsRequestTopic, CreateTopicsResponse,
    CreateTopicsResponseConfig, CreateTopicsResponseTopic,
};
use std::collections::BTreeMap;

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse {
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *named.entry(&topic.name).or_default() += 1;
    }
    let mut topics = Vec::with_capacity(named.len());
    for topic in &request.topics {
        let made = match named.get_mut(topic.name.as_str()) {
            // Named more than once: refused once (Kafka answers such a name once).
            Some(times) if *times > 1 => {
                *times = 0;
                Err((
                    ErrorCode::InvalidRequest,
                    "Duplicate topic name.".to_owned(),
                ))
            }
            Some(1) => create(node, topic, request.validate_only),
            _ => continue,
        };
        topics.push(answer(node, topic, made));
    }
    if !request.validate_only {
        node.groups.topics_changed(&node.topics);
    }
    CreateTopicsResponse {
        topics,
        ..Default::default()
    }
}

struct Made {
    id: kohort_wire::primitives::Uuid,
    partitions: i32,
    configs: TopicConfigs,
}

fn create(node: &Node, topic: &CreateTopicsRequestTopic, dry_run: bool) -> Result<Made, Refusal> {
    crate::topics::check_name(&topic.name)?;
    let partitions = count(node, topic)?;
    let configs: TopicConfigs = topic
        .configs
        .iter()
        .filter_map(|config| Some((config.name.clone(), config.value.clone()?)))
        .collect();
    let made = node
        .topics
        .create(&topic.name, partitions, configs, dry_run, node.clock.wall())?;
    Ok(Made {
        id: if dry_run { [0; 16] } else { made.id },
        partitions,
        configs: made.configs.clone(),
    })
}

/// How many partitions are asked for, if the request makes sense on one broker.
fn count(node: &Node, topic: &CreateTopicsRequestTopic) -> Result<i32, Refusal> {
    if topic.assignments.is_empty() {
        if topic.replication_factor != -1 && topic.replication_factor != 1 {
            let text = format!(
                "Unable to replicate the partition {} time(s): this is a single broker, so the replication factor is 1.",
                topic.replication_factor
            );
            return Err((ErrorCode::InvalidReplicationFactor, text));
        }
        return match topic.num_partitions {
            -1 => Ok(node.settings.num_partitions),
            count => Ok(count),
        };
    }
    if topic.num_partitions != -1 || topic.replication_factor != -1 {
        let text = "With replica assignments, partitions and replication factor must both be -1.";
        return Err((ErrorCode::InvalidRequest, text.into()));
    }
    let mut indexes: Vec<i32> = topic
        .assignments
        .iter()
        .map(|assignment| assignment.partition_index)
        .collect();
    indexes.sort_unstable();
    let consecutive = indexes
        .iter()
        .enumerate()
        .all(|(i, index)| i as i32 == *index);
    let mine = topic
        .assignments
        .iter()
        .all(|assignment| assignment.broker_ids == [node.settings.node_id]);
    if consecutive && mine {
        Ok(indexes.len() as i32)
    } else {
        let text = format!(
            "Partitions must be consecutive from 0, each on broker {} alone.",
            node.settings.node_id
        );
        Err((ErrorCode::InvalidReplicaAssignment, text))
    }
}

fn answer(
    node: &Node,
    topic: &CreateTopicsRequestTopic,
    made: Result<Made, Refusal>,
) -> CreateTopicsResponseTopic {
    let name = topic.name.clone();
    match made {
        Err((error_code, text)) => CreateTopicsResponseTopic {
            name,
            error_code,
            error_message: Some(text),
            ..Default::default()
        },
        Ok(made) => CreateTopicsResponseTopic {
            name,
            topic_id: made.id,
            num_partitions: made.partitions,
            replication_factor: 1,
            configs: Some(list(node, &made.configs)),
            ..Default::default()
        },
    }
}

fn list(node: &Node, configs: &TopicConfigs) -> Vec<CreateTopicsResponseConfig> {
    let row = |(name, _, default): &(&str, topic_config::Kind, fn(&crate::Settings) -> String)| {
        let set = configs.get(*name);
        CreateTopicsResponseConfig {
            name: (*name).to_owned(),
            value: Some(set.cloned().unwrap_or_else(|| default(&node.settings))),
            config_source: if set.is_some() {
                super::describe_configs::TOPIC
            } else {
                super::describe_configs::DEFAULT
            },
            ..Default::default()
        }
    };
    topic_config::TABLE.iter().map(row).collect()
}
