//! ListOffsets: the first, the last, and by time.

use crate::node::{Exchange, Node};
use crate::partition::Partition;
use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsResponse,
    ListOffsetsResponsePartition, ListOffsetsResponseTopic,
};
use kohort_wire::records::Batch;

/// A batch that grows beyond this is not searched record by record.
const MOST_DECOMPRESSED: usize = 64 << 20;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
/// The first offset on this broker's own disk (KIP-405); here all are.
const EARLIEST_LOCAL: i64 = -4;

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: ListOffsetsRequest,
) -> ListOffsetsResponse {
    let topics = request.topics.into_iter().map(|wanted| {
        let topic = node.topics.get(&wanted.name);
        let partitions = wanted.partitions.iter().map(|wanted| {
            let partition = topic
                .as_ref()
                .and_then(|topic| topic.partition(wanted.partition_index));
            let found = match partition {
                None => Err(ErrorCode::UnknownTopicOrPartition),
                Some(_) if wanted.current_leader_epoch > 0 => Err(ErrorCode::UnknownLeaderEpoch),
                Some(partition) => find(partition, wanted.timestamp),
            };
            answer(wanted, found)
        });
        ListOffsetsResponseTopic {
            partitions: partitions.collect(),
            name: wanted.name,
        }
    });
    ListOffsetsResponse {
        topics: topics.collect(),
        ..Default::default()
    }
}

fn answer(
    wanted: &ListOffsetsRequestPartition,
    found: Result<Option<(i64, i64)>, ErrorCode>,
) -> ListOffsetsResponsePartition {
    let empty = ListOffsetsResponsePartition {
        partition_index: wanted.partition_index,
        ..Default::default()
    };
    match found {
        Ok(None) => empty,
        Ok(Some((offset, timestamp))) => ListOffsetsResponsePartition {
            offset,
            timestamp,
            leader_epoch: 0,
            ..empty
        },
        Err(error_code) => ListOffsetsResponsePartition {
            error_code,
            ..empty
        },
    }
}

/// Offset and timestamp.
fn find(partition: &Partition, timestamp: i64) -> Result<Option<(i64, i64)>, ErrorCode> {
    let log = partition.log();
    let wanted = match timestamp {
        LATEST => return Ok(Some((log.end_offset(), -1))),
        EARLIEST | EARLIEST_LOCAL => return Ok(Some((log.start_offset(), -1))),
        MAX_TIMESTAMP => match log.max_timestamp() {
            None => return Ok(None),
            Some(latest) => latest,
        },
        time if time < 0 => return Ok(None),
        time => time,
    };
    let start = log.start_offset();
    let bytes = log.batch_at_time(wanted)?;
    drop(log);
    match bytes {
        None => Ok(None),
        Some(bytes) => Ok(Some(within(bytes, wanted, start)?)),
    }
}

/// The first record of a batch that is late enough; the batch itself where its records cannot be read.
fn within(mut bytes: Bytes, wanted: i64, start: i64) -> Result<(i64, i64), ErrorCode> {
    let batch = Batch::split_from(&mut bytes).ok().flatten();
    let batch = batch.ok_or(ErrorCode::CorruptMessage)?;
    if let Ok(records) = batch.records(MOST_DECOMPRESSED) {
        let mut late = records
            .flatten()
            .filter(|record| record.timestamp >= wanted && record.offset >= start);
        if let Some(record) = late.next() {
            return Ok((record.offset, record.timestamp));
        }
    }
    let header = batch.header();
    Ok((header.base_offset.max(start), header.max_timestamp))
}
