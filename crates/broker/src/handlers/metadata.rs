//! Metadata: the broker, the topics and their partitions; makes topics on demand.

use crate::node::{Exchange, Node};
use crate::topics::Topic;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};

pub(crate) fn handle(
    node: &Node,
    exchange: &Exchange,
    request: MetadataRequest,
) -> MetadataResponse {
    let all = match &request.topics {
        None => true,
        // Before v1 there was no null: an empty list asks for all.
        Some(topics) => topics.is_empty() && exchange.version == 0,
    };
    let topics = if all {
        node.topics
            .all()
            .iter()
            .map(|topic| describe(node, topic))
            .collect()
    } else {
        let may_create =
            request.allow_auto_topic_creation && node.settings.auto_create_topics_enable;
        let wanted = request.topics.unwrap_or_default();
        wanted
            .into_iter()
            .map(|topic| find(node, topic, may_create))
            .collect()
    };
    let (host, port) = node.advertised(exchange);
    MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: node.settings.node_id,
            host,
            port,
            rack: None,
        }],
        cluster_id: Some(node.cluster_id.clone()),
        controller_id: node.settings.node_id,
        topics,
        ..Default::default()
    }
}

fn find(node: &Node, wanted: MetadataRequestTopic, may_create: bool) -> MetadataResponseTopic {
    let name = wanted.name.clone().unwrap_or_default();
    let by_name = wanted.topic_id == [0; 16];
    let found = node.topics.find(&name, wanted.topic_id);
    let error_code = match found {
        Ok(topic) => return describe(node, &topic),
        Err(_) if by_name && may_create => match node.create_on_demand(&name) {
            Ok(topic) => return describe(node, &topic),
            Err((code, _)) => code,
        },
        Err(_) if by_name && crate::topics::check_name(&name).is_err() => {
            ErrorCode::InvalidTopicException
        }
        Err(code) => code,
    };
    MetadataResponseTopic {
        error_code,
        name: wanted.name,
        topic_id: wanted.topic_id,
        ..Default::default()
    }
}

fn describe(node: &Node, topic: &Topic) -> MetadataResponseTopic {
    let me = node.settings.node_id;
    let partition =
        |partition: &std::sync::Arc<crate::partition::Partition>| MetadataResponsePartition {
            partition_index: partition.index,
            leader_id: me,
            leader_epoch: 0,
            replica_nodes: vec![me],
            isr_nodes: vec![me],
            ..Default::default()
        };
    MetadataResponseTopic {
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.is_internal(),
        partitions: topic.partitions.iter().map(partition).collect(),
        ..Default::default()
    }
}
