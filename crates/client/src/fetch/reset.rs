//! Where reading starts if no offset is known: ListOffsets to the partitions' leaders.

use super::{Position, Shared};
use crate::cluster::{Purpose, lock};
use crate::error::Error;
use crate::settings::Reset;
use kohort_group::partitions::TopicPartition;
use kohort_wire::messages::{
    ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The offset behind the last record, as a time.
pub(crate) const LATEST: i64 = -1;
/// The first offset there is, as a time.
pub(crate) const EARLIEST: i64 = -2;

/// Asks for the offsets of all partitions that need one.
pub(super) fn start(shared: &Arc<Shared>) {
    let view = shared.cluster.view();
    let mut by_leader: BTreeMap<i32, BTreeMap<TopicPartition, u64>> = BTreeMap::new();
    let mut orphans = false;
    let now = Instant::now();
    for (what, partition) in &mut lock(&shared.state).partitions {
        let waits = partition.not_before.is_some_and(|moment| moment > now);
        if partition.fetch_from.is_some() || partition.under_way || waits {
            continue;
        }
        match view.leader(&what.topic, what.partition) {
            Some((leader, _)) => {
                partition.under_way = true;
                by_leader
                    .entry(leader)
                    .or_default()
                    .insert(what.clone(), partition.incarnation);
            }
            None => orphans = true,
        }
    }
    if orphans {
        shared.cluster.want_refresh();
    }
    for (leader, partitions) in by_leader {
        shared.spawn(reset(shared.clone(), leader, partitions));
    }
}

async fn reset(shared: Arc<Shared>, leader: i32, partitions: BTreeMap<TopicPartition, u64>) {
    let timestamp = match shared.cluster.settings.auto_offset_reset {
        Reset::Earliest => EARLIEST,
        Reset::Latest => LATEST,
        Reset::None => {
            // Stays marked as under way: the consumer ends.
            let (first, more) = (partitions.keys().next(), partitions.len().saturating_sub(1));
            let first = first.map(ToString::to_string).unwrap_or_default();
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            let _ = shared.failures.send(Error::Config(format!(
                "no offset is committed for {first}{more}, and auto.offset.reset=none forbids to choose one; \
                 commit offsets, or say earliest or latest"
            )));
            return;
        }
    };
    let times = partitions
        .keys()
        .map(|what| (what.clone(), timestamp))
        .collect();
    let found = list_offsets(&shared, leader, &times).await;
    if let Err(error) = &found {
        tracing::debug!("offsets from broker {leader}: {error}");
        shared.cluster.want_refresh();
    }
    let mut found = found.unwrap_or_default();
    let pause = Duration::from_millis(shared.cluster.settings.retry_backoff_ms.into());
    for (what, incarnation) in partitions {
        let outcome = found.remove(&what);
        let mut state = lock(&shared.state);
        let Some(partition) = state
            .partitions
            .get_mut(&what)
            .filter(|it| it.incarnation == incarnation)
        else {
            continue;
        };
        partition.under_way = false;
        match outcome {
            Some(Ok(position)) => partition.fetch_from = Some(position),
            Some(Err(code)) if !crate::error::is_retriable(code) => {
                partition.under_way = true;
                let _ = shared.failures.send(Error::broker(
                    ApiKey::ListOffsets,
                    code,
                    what.to_string(),
                ));
            }
            Some(Err(_)) | None => {
                partition.not_before = Some(Instant::now() + pause);
                shared.cluster.want_refresh();
            }
        }
    }
    shared.work.notify_one();
}

type Found = BTreeMap<TopicPartition, Result<Position, ErrorCode>>;

async fn list_offsets(
    shared: &Shared,
    leader: i32,
    times: &BTreeMap<TopicPartition, i64>,
) -> Result<Found, Error> {
    let connection = shared
        .cluster
        .connection(leader, Purpose::Questions)
        .await?;
    let view = shared.cluster.view();
    let mut topics: Vec<ListOffsetsRequestTopic> = Vec::new();
    for (what, timestamp) in times {
        let partition = ListOffsetsRequestPartition {
            partition_index: what.partition,
            current_leader_epoch: view
                .leader(&what.topic, what.partition)
                .map_or(-1, |(_, epoch)| epoch),
            timestamp: *timestamp,
        };
        match topics.last_mut() {
            Some(topic) if topic.name == *what.topic => topic.partitions.push(partition),
            _ => topics.push(ListOffsetsRequestTopic {
                name: what.topic.to_string(),
                partitions: vec![partition],
            }),
        }
    }
    let limit = shared.cluster.request_limit();
    let request = ListOffsetsRequest {
        topics,
        timeout_ms: i32::try_from(shared.cluster.settings.request_timeout_ms).unwrap_or(i32::MAX),
        ..Default::default()
    };
    let answer = connection.call(&request, limit).await?;
    let mut found = Found::new();
    for topic in answer.topics {
        for partition in topic.partitions {
            let outcome = if partition.error_code.is_none() {
                Ok(Position {
                    offset: partition.offset,
                    leader_epoch: partition.leader_epoch,
                })
            } else {
                Err(partition.error_code)
            };
            found.insert(
                TopicPartition::new(topic.name.as_str(), partition.partition_index),
                outcome,
            );
        }
    }
    Ok(found)
}
