//! Reading partitions without a group.

use crate::cluster::Cluster;
use crate::connect::Connector;
use crate::error::Error;
use crate::fetch::{Fetcher, Position};
use crate::records::Records;
use crate::settings::Settings;
use kohort_group::partitions::{Topic, TopicPartition};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Reads partitions that it is told, and commits nothing. For sharing the work among several, see the consumer.
///
/// ```no_run
/// # async fn example() -> Result<(), kohort::Error> {
/// let mut settings = kohort::Settings::default();
/// settings.set("auto.offset.reset", "earliest")?;
/// let mut reader = kohort::Reader::connect(settings).await?;
/// reader.read_topic("orders").await?;
/// while !reader.at_end() {
///     let Some(records) = reader.next().await? else { continue };
///     println!("{} records of {:?}", records.len(), records.partition());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reader {
    cluster: std::sync::Arc<Cluster>,
    fetcher: Fetcher,
    failures: mpsc::UnboundedReceiver<Error>,
}

impl Reader {
    /// Connects.
    ///
    /// # Errors
    /// [`Error::Config`], [`Error::Connection`] or [`Error::Peer`].
    pub async fn connect(settings: Settings) -> Result<Self, Error> {
        let may_create = settings.allow_auto_create_topics;
        let cluster = Cluster::connect(settings, Connector::default(), may_create).await?;
        let (sender, failures) = mpsc::unbounded_channel();
        let fetcher = Fetcher::new(cluster.clone(), sender);
        Ok(Self {
            cluster,
            fetcher,
            failures,
        })
    }

    /// Reads all partitions that a topic has now, from where `auto.offset.reset` says; gives their number.
    ///
    /// # Errors
    /// [`Error::Broker`] if the topic does not exist.
    pub async fn read_topic(&mut self, topic: &str) -> Result<usize, Error> {
        let topic: Topic = topic.into();
        self.cluster.add_interest(&topic);
        let view = self
            .cluster
            .refresh(Some(BTreeSet::from([topic.clone()])))
            .await?;
        let found = view.topics.get(&topic);
        let code = found.map_or(ErrorCode::UnknownTopicOrPartition, |found| found.error);
        if !code.is_none() {
            return Err(Error::broker(
                ApiKey::Metadata,
                code,
                format!("topic {topic}"),
            ));
        }
        let numbers: Vec<i32> = found
            .map(|found| found.partitions.keys().copied().collect())
            .unwrap_or_default();
        for partition in &numbers {
            self.fetcher
                .start(&TopicPartition::new(topic.clone(), *partition), None);
        }
        Ok(numbers.len())
    }

    /// Reads a partition from an offset on, in place of where it was read before.
    pub fn read(&mut self, partition: &TopicPartition, offset: i64) {
        self.cluster.add_interest(&partition.topic);
        let position = Position {
            offset,
            leader_epoch: -1,
        };
        self.fetcher.start(partition, Some(position));
    }

    /// Waits for the next records; `None` when all partitions have been read to their ends meanwhile.
    ///
    /// # Errors
    /// What cannot be mended by trying again.
    pub async fn next(&mut self) -> Result<Option<Records>, Error> {
        loop {
            if let Some(records) = self.fetcher.next() {
                if records.is_empty() {
                    continue;
                }
                return Ok(Some(records));
            }
            if self.fetcher.at_end_news() {
                return Ok(None);
            }
            tokio::select! {
                () = self.fetcher.filled() => {}
                failure = self.failures.recv() => return Err(failure.unwrap_or(Error::Closed)),
            }
        }
    }

    /// Whether all partitions have been read up to their ends at some time.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.fetcher.at_end()
    }
}
