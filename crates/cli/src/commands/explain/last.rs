//! What a group's last rebalance was about, for other commands.

use super::super::cluster::ClusterArguments;
use super::names::Names;
use super::{TOPIC, decode, text};
use crate::failure::Failure;
use kohort::{Admin, Reader, RebalanceRecord, TopicPartition};
use serde_json::Value;

/// So many of the newest records of each partition are looked through: a group that rebalanced before them has been quiet since.
const NEWEST: i64 = 2_000;

/// A group's last rebalance.
pub(in super::super) struct Last {
    /// In words.
    pub(in super::super) text: String,
    /// The record, as `kohort explain --format json` writes it.
    pub(in super::super) record: Value,
}

/// The group's last rebalance, if the cluster keeps records and has one.
pub(in super::super) async fn last(
    cluster: &ClusterArguments,
    admin: &Admin,
    group: &str,
) -> Result<Option<Last>, Failure> {
    let view = admin.topics(Some(&[TOPIC])).await?;
    let Some(topic) = view.topics.get(TOPIC).filter(|topic| topic.error.is_none()) else {
        return Ok(None);
    };
    let partitions = topic.partitions.keys();
    let partitions: Vec<_> = partitions
        .map(|number| TopicPartition::new(TOPIC, *number))
        .collect();
    let (begins, ends) = (
        admin.offsets_at(&partitions, -2).await?,
        admin.offsets_at(&partitions, -1).await?,
    );
    let never = ("allow.auto.create.topics", Some("false".to_owned()));
    let mut reader = Reader::connect(cluster.settings(&[never])?).await?;
    let mut any = false;
    for (what, end) in &ends {
        let begin = begins.get(what).copied().unwrap_or(0).max(end - NEWEST);
        if begin < *end {
            reader.read(what, begin);
            any = true;
        }
    }
    let mut newest: Option<RebalanceRecord> = None;
    while any && let Some(batch) = reader.next().await? {
        for record in batch.iter() {
            let record = record?.value.as_deref().and_then(decode);
            newest = record.filter(|record| record.group == group).or(newest);
        }
    }
    let Some(record) = newest else {
        return Ok(None);
    };
    let mut names = Names::default();
    names.learn(&record);
    Ok(Some(Last {
        text: text::record(&record, &names),
        record: serde_json::to_value(&record).map_err(Failure::failed)?,
    }))
}
