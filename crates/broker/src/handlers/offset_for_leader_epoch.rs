//! OffsetForLeaderEpoch: there was never more than one leader, whose epoch is 0.

use crate::node::{Exchange, Node};
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponsePartition, OffsetForLeaderEpochResponseTopic,
};

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|wanted| {
        let topic = node.topics.get(&wanted.topic);
        let partitions = wanted.partitions.iter().map(|wanted| {
            let empty = OffsetForLeaderEpochResponsePartition {
                partition: wanted.partition,
                ..Default::default()
            };
            let partition = topic
                .as_ref()
                .and_then(|topic| topic.partition(wanted.partition));
            let Some(partition) = partition else {
                return OffsetForLeaderEpochResponsePartition {
                    error_code: ErrorCode::UnknownTopicOrPartition,
                    ..empty
                };
            };
            if wanted.current_leader_epoch > 0 {
                return OffsetForLeaderEpochResponsePartition {
                    error_code: ErrorCode::UnknownLeaderEpoch,
                    ..empty
                };
            }
            if wanted.leader_epoch != 0 {
                return empty;
            }
            OffsetForLeaderEpochResponsePartition {
                leader_epoch: 0,
                end_offset: partition.log().end_offset(),
                ..empty
            }
        });
        OffsetForLeaderEpochResponseTopic {
            partitions: partitions.collect(),
            topic: wanted.topic,
        }
    });
    OffsetForLeaderEpochResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}
