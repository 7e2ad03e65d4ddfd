//! Removes what is too old, and compacts; in the background, now and then.

use crate::node::Node;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How often logs are looked at for compaction (Kafka: `log.cleaner.backoff.ms`).
const COMPACTION_INTERVAL: Duration = Duration::from_secs(15);

/// Runs until it is aborted.
pub(crate) async fn run(node: Arc<Node>) {
    let interval = Duration::from_millis(node.settings.log_retention_check_interval_ms as u64);
    let mut next_retention = Instant::now() + interval;
    let mut next_compaction = Instant::now();
    loop {
        sleep_until(next_retention.min(next_compaction)).await;
        next_compaction = Instant::now() + COMPACTION_INTERVAL;
        if Instant::now() >= next_retention {
            expire(&node);
            next_retention = Instant::now() + interval;
        }
        if node.topics.all().is_empty() {
            continue;
        }
        // Away from the tasks that serve: a large log takes its time.
        let cleaning = Arc::clone(&node);
        let _ = tokio::task::spawn_blocking(move || compact(&cleaning)).await;
    }
}

fn expire(node: &Node) {
    let now = node.clock.wall();
    for topic in node.topics.all() {
        for partition in &topic.partitions {
            let silent = i64::from(node.settings.producer_id_expiration_ms);
            match partition.log().expire(now, silent) {
                Ok(0) => {}
                Ok(removed) => tracing::info!(
                    "{}-{}: removed {removed} old segments",
                    topic.name,
                    partition.index
                ),
                Err(error) => tracing::warn!(
                    "{}-{}: cannot remove old segments: {error}",
                    topic.name,
                    partition.index
                ),
            }
        }
    }
}

/// Compacts every log that asks for it and has grown enough.
pub(crate) fn compact(node: &Node) {
    let now = node.clock.wall();
    for topic in node.topics.all() {
        let tombstones = topic.configs.get("delete.retention.ms");
        let tombstones = tombstones
            .and_then(|text| text.parse().ok())
            .unwrap_or(86_400_000);
        for partition in &topic.partitions {
            match partition.log().compact(now, tombstones) {
                Ok(0) => {}
                Ok(bytes) => tracing::info!(
                    "{}-{}: compaction freed {bytes} bytes",
                    topic.name,
                    partition.index
                ),
                Err(error) => tracing::warn!(
                    "{}-{}: cannot compact: {error}",
                    topic.name,
                    partition.index
                ),
            }
        }
    }
}
