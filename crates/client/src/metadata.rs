//! What is known about the cluster: brokers, topics, leaders.

use kohort_group::partitions::Topic;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{MetadataResponse, MetadataResponseTopic};
use kohort_wire::primitives::Uuid;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A broker of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: i32,
    /// `host:port`, as it advertises itself.
    pub address: String,
    /// Where it is.
    pub rack: Option<String>,
}

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionView {
    /// The broker that leads it, −1 if none does at the moment.
    pub leader: i32,
    /// How often its leader has changed, −1 if the broker does not say.
    pub leader_epoch: i32,
    /// The brokers that hold it.
    pub replicas: Vec<i32>,
    /// Those of them that are in sync.
    pub in_sync: Vec<i32>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicView {
    /// Its id (KIP-516), zero if the broker does not say.
    pub id: Uuid,
    /// Whether it is one of Kafka's own.
    pub internal: bool,
    /// Its partitions by number.
    pub partitions: BTreeMap<i32, PartitionView>,
    /// Why nothing else is known of it.
    pub error: ErrorCode,
}

/// The cluster as it was last seen.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// How often it was looked at.
    pub(crate) serial: u64,
    /// The cluster's id.
    pub cluster_id: Option<String>,
    /// The broker that creates and deletes topics, −1 if unknown.
    pub controller: i32,
    /// The brokers.
    pub nodes: BTreeMap<i32, Node>,
    /// The topics that were asked for, with those that do not exist (see their `error`).
    pub topics: BTreeMap<Topic, Arc<TopicView>>,
}

impl View {
    /// Who leads a partition, and its leader epoch.
    #[must_use]
    pub fn leader(&self, topic: &str, partition: i32) -> Option<(i32, i32)> {
        let view = self.topics.get(topic)?.partitions.get(&partition)?;
        (view.leader >= 0 && self.nodes.contains_key(&view.leader))
            .then_some((view.leader, view.leader_epoch))
    }

    /// The name of the topic with this id.
    pub(crate) fn topic_name(&self, id: &Uuid) -> Option<&Topic> {
        self.topics
            .iter()
            .find(|(_, topic)| topic.id == *id)
            .map(|(name, _)| name)
    }

    /// Takes over what an answer says about the topics that were asked for (`None`: all there are).
    pub(crate) fn learn(&mut self, answer: MetadataResponse, asked: Option<&BTreeSet<Topic>>) {
        self.serial += 1;
        self.cluster_id = answer.cluster_id;
        self.controller = answer.controller_id;
        self.nodes = answer
            .brokers
            .into_iter()
            .map(|broker| {
                let node = Node {
                    id: broker.node_id,
                    address: address(&broker.host, broker.port),
                    rack: broker.rack,
                };
                (node.id, node)
            })
            .collect();
        let mut before = std::mem::take(&mut self.topics);
        for topic in answer.topics {
            let Some(name) = topic.name.clone() else {
                continue;
            };
            let name: Topic = name.into();
            let older = before.remove(&name);
            self.topics
                .insert(name, Arc::new(topic_view(topic, older.as_deref())));
        }
        if let Some(asked) = asked {
            before.retain(|name, _| !asked.contains(name));
            self.topics.append(&mut before);
        }
    }
}

/// `host:port`; IPv6 addresses need brackets before a port.
pub(crate) fn address(host: &str, port: i32) -> String {
    if host.contains(':') && !host.starts_with('[') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn topic_view(topic: MetadataResponseTopic, older: Option<&TopicView>) -> TopicView {
    let older = older.filter(|older| older.id == topic.topic_id);
    let partitions = topic.partitions.into_iter().map(|partition| {
        let seen = PartitionView {
            leader: partition.leader_id,
            leader_epoch: partition.leader_epoch,
            replicas: partition.replica_nodes,
            in_sync: partition.isr_nodes,
        };
        // A broker that lags behind must not bring an old leader back (KIP-320).
        let newer = older
            .and_then(|older| older.partitions.get(&partition.partition_index))
            .filter(|known| seen.leader_epoch >= 0 && known.leader_epoch > seen.leader_epoch);
        (partition.partition_index, newer.cloned().unwrap_or(seen))
    });
    TopicView {
        id: topic.topic_id,
        internal: topic.is_internal,
        partitions: partitions.collect(),
        error: topic.error_code,
    }
}
