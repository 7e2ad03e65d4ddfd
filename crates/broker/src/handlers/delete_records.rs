//! DeleteRecords: removes the oldest records of partitions.

use crate::node::{Exchange, Node};
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsResponsePartition,
    DeleteRecordsResponseTopic,
};

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let topics = request.topics.into_iter().map(|wanted| {
        let topic = node.topics.get(&wanted.name);
        let partitions = wanted.partitions.iter().map(|wanted| {
            let partition = topic
                .as_ref()
                .and_then(|topic| topic.partition(wanted.partition_index));
            let deleted = match (partition, &topic) {
                (_, Some(topic)) if topic.is_internal() => Err(ErrorCode::InvalidTopicException),
                (Some(partition), _) => partition.log().delete_before(wanted.offset),
                (None, _) => Err(ErrorCode::UnknownTopicOrPartition),
            };
            DeleteRecordsResponsePartition {
                partition_index: wanted.partition_index,
                low_watermark: deleted.unwrap_or(-1),
                error_code: deleted.err().unwrap_or_default(),
            }
        });
        DeleteRecordsResponseTopic {
            partitions: partitions.collect(),
            name: wanted.name,
        }
    });
    DeleteRecordsResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}
