//! Fetch: reads record batches; waits until there are enough of them, or long enough.

use crate::node::{Exchange, Node};
use crate::partition::{Partition, Watch};
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    FetchRequest, FetchRequestPartition, FetchRequestTopic, FetchResponse, FetchResponsePartition,
    FetchResponseTopic,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

pub(crate) async fn handle(node: &Node, _: &Exchange, request: FetchRequest) -> FetchResponse {
    if request.session_id != 0 {
        // No session is ever given out: every answer says id 0, and every request says all (KIP-227).
        return FetchResponse {
            error_code: ErrorCode::FetchSessionIdNotFound,
            ..Default::default()
        };
    }
    if !ready(node, &request) {
        let deadline = Instant::now() + Duration::from_millis(request.max_wait_ms.max(0) as u64);
        loop {
            let watch = Watch::over(partitions(node, &request));
            // Something may have come before the watch began.
            if ready(node, &request) || timeout_at(deadline, watch.grown()).await.is_err() {
                break;
            }
        }
    }
    let mut room = Room {
        left: request.max_bytes.min(node.settings.fetch_max_bytes).max(0) as usize,
        taken: 0,
        committed_only: request.isolation_level == 1,
    };
    let responses = request
        .topics
        .iter()
        .map(|topic| room.topic(node, topic))
        .collect();
    FetchResponse {
        responses,
        ..Default::default()
    }
}

/// The partitions that are asked for; `None` for one that is not there.
fn each<'a>(
    node: &'a Node,
    request: &'a FetchRequest,
) -> impl Iterator<Item = (Option<Arc<Partition>>, &'a FetchRequestPartition)> {
    request.topics.iter().flat_map(move |topic| {
        let found = node.topics.find(&topic.topic, topic.topic_id).ok();
        topic.partitions.iter().map(move |wanted| {
            let partition = found
                .as_ref()
                .and_then(|topic| topic.partition(wanted.partition));
            (partition.map(Arc::clone), wanted)
        })
    })
}

fn partitions(node: &Node, request: &FetchRequest) -> Vec<Arc<Partition>> {
    each(node, request)
        .filter_map(|(partition, _)| partition)
        .collect()
}

/// Whether there is enough to answer: the bytes asked for, or an error.
fn ready(node: &Node, request: &FetchRequest) -> bool {
    let wanted = request.min_bytes.max(0) as u64;
    let mut bytes = 0;
    for (partition, wanted) in each(node, request) {
        let Some(partition) = partition else {
            return true;
        };
        let log = partition.log();
        let inside = (log.start_offset()..=log.end_offset()).contains(&wanted.fetch_offset);
        if !inside || wanted.current_leader_epoch > 0 {
            return true;
        }
        bytes += log.available(wanted.fetch_offset);
    }
    bytes >= wanted
}

struct Room {
    left: usize,
    taken: u64,
    committed_only: bool,
}

impl Room {
    fn topic(&mut self, node: &Node, wanted: &FetchRequestTopic) -> FetchResponseTopic {
        let topic = node.topics.find(&wanted.topic, wanted.topic_id);
        let partitions = wanted.partitions.iter().map(|wanted| match &topic {
            Ok(topic) => self.partition(topic.partition(wanted.partition), wanted),
            Err(code) => fail(wanted, *code),
        });
        FetchResponseTopic {
            partitions: partitions.collect(),
            topic: wanted.topic.clone(),
            topic_id: wanted.topic_id,
        }
    }

    fn partition(
        &mut self,
        partition: Option<&Arc<Partition>>,
        wanted: &FetchRequestPartition,
    ) -> FetchResponsePartition {
        let Some(partition) = partition else {
            return fail(wanted, ErrorCode::UnknownTopicOrPartition);
        };
        if wanted.current_leader_epoch > 0 {
            return fail(wanted, ErrorCode::UnknownLeaderEpoch);
        }
        let log = partition.log();
        let limit = self.left.min(wanted.partition_max_bytes.max(0) as usize);
        // The first batch is given even if it is too large, or the consumer could not go on (KIP-74).
        let read = log.read(wanted.fetch_offset, limit, self.taken == 0);
        let (start, end) = (log.start_offset(), log.end_offset());
        drop(log);
        let records = match read {
            Ok(records) => records,
            Err(code) => {
                return FetchResponsePartition {
                    log_start_offset: start,
                    ..fail(wanted, code)
                };
            }
        };
        self.left = self.left.saturating_sub(records.len());
        self.taken += records.len() as u64;
        FetchResponsePartition {
            partition_index: wanted.partition,
            high_watermark: end,
            last_stable_offset: end,
            log_start_offset: start,
            aborted_transactions: self.committed_only.then(Vec::new),
            records: Some(records),
            ..Default::default()
        }
    }
}

fn fail(wanted: &FetchRequestPartition, error_code: ErrorCode) -> FetchResponsePartition {
    FetchResponsePartition {
        partition_index: wanted.partition,
        error_code,
        high_watermark: -1,
        records: Some(bytes::Bytes::new()),
        ..Default::default()
    }
}
