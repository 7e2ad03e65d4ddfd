//! Produce: appends record batches.

use crate::node::{Exchange, Node};
use crate::router::Answer;
use crate::topics::Topic;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    ProduceRequest, ProduceRequestPartition, ProduceResponse, ProduceResponsePartition,
    ProduceResponseTopic,
};

pub(crate) fn handle(node: &Node, _: &Exchange, request: ProduceRequest) -> ProduceResponse {
    let refused = if !(-1..=1).contains(&request.acks) {
        Some((ErrorCode::InvalidRequiredAcks, None))
    } else if request.transactional_id.is_some() {
        Some((
            ErrorCode::UnsupportedVersion,
            Some("transactions are not served here"),
        ))
    } else {
        None
    };
    let responses = request.topic_data.into_iter().map(|topic| {
        let found = node.topics.find(&topic.name, topic.topic_id);
        let found = match (refused, found) {
            (Some(refused), _) => Err(refused),
            (None, Err(code)) => Err((code, None)),
            (None, Ok(found)) if found.is_internal() => Err((
                ErrorCode::InvalidTopicException,
                Some("the topic is the broker's own"),
            )),
            (None, Ok(found)) => Ok(found),
        };
        let partitions = topic.partition_data.into_iter();
        ProduceResponseTopic {
            name: topic.name,
            topic_id: topic.topic_id,
            partition_responses: partitions
                .map(|partition| match &found {
                    Ok(topic) => append(node, topic, partition),
                    Err((code, text)) => failed(partition.index, *code, *text),
                })
                .collect(),
        }
    });
    ProduceResponse {
        responses: responses.collect(),
        ..Default::default()
    }
}

fn append(node: &Node, topic: &Topic, data: ProduceRequestPartition) -> ProduceResponsePartition {
    let Some(partition) = topic.partition(data.index) else {
        return failed(data.index, ErrorCode::UnknownTopicOrPartition, None);
    };
    let records = data.records.unwrap_or_default();
    match partition.append(&records, node.clock.wall()) {
        Ok(info) => ProduceResponsePartition {
            index: data.index,
            base_offset: info.base_offset,
            log_append_time_ms: info.log_append_time,
            log_start_offset: info.start_offset,
            ..Default::default()
        },
        Err(code) => {
            tracing::debug!("refused a batch for {}-{}: {code}", topic.name, data.index);
            failed(data.index, code, Some(code.meaning()))
        }
    }
}

fn failed(index: i32, error_code: ErrorCode, text: Option<&str>) -> ProduceResponsePartition {
    ProduceResponsePartition {
        index,
        error_code,
        base_offset: -1,
        error_message: text.map(str::to_owned),
        ..Default::default()
    }
}

/// With acks=0 nobody waits for an answer; after an error the connection is closed, so that the producer looks again.
pub(crate) fn unacknowledged(response: &ProduceResponse) -> Answer {
    let mut partitions = response
        .responses
        .iter()
        .flat_map(|topic| &topic.partition_responses);
    if partitions.all(|partition| partition.error_code.is_none()) {
        Answer::Nothing
    } else {
        Answer::Close
    }
}
