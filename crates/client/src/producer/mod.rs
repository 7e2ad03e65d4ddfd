//! The producer.
//!
//! ```text
//!   send ─▶ accumulator (a queue for each partition) ─▶ sender (one request for each leader) ─▶ Delivery
//! ```

mod accumulator;
mod outcome;
mod partitioner;
mod sender;

pub use outcome::{Delivery, Stored};

use crate::cluster::{Cluster, lock};
use crate::connect::Connector;
use crate::error::Error;
use crate::metadata::TopicView;
use crate::record::NewRecord;
use crate::settings::{Acks, Codec, Settings};
use crate::task::spawn_watched;
use accumulator::{Accumulator, Identity};
use kohort_group::partitions::{Topic, TopicPartition};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// For so long a topic that does not exist is waited for: it may have been created a moment ago.
const UNKNOWN_TOPIC_PATIENCE: Duration = Duration::from_secs(3);

/// Sends records. Idempotent by default: a batch that is sent again after a lost answer is stored once.
///
/// Records of one partition are stored in the order of the calls of [`send`](Producer::send).
///
/// ```no_run
/// # async fn example() -> Result<(), kohort::Error> {
/// use kohort::{NewRecord, Producer};
///
/// let producer = Producer::builder().bootstrap("127.0.0.1:9092").build().await?;
/// let delivery = producer.send(NewRecord::to("orders").key("7").value("3 apples")).await?;
/// println!("stored at offset {}", delivery.wait().await?.offset);
/// producer.close().await
/// # }
/// ```
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cluster: Arc<Cluster>,
    queues: Mutex<Accumulator>,
    identity: Mutex<Option<Identity>>,
    /// The sender has something to do.
    wake: Notify,
    /// A batch was settled.
    settled: Notify,
    room: Semaphore,
    closing: AtomicBool,
}

/// How a [`Producer`] is to be.
#[derive(Clone, Debug, Default)]
pub struct ProducerBuilder {
    settings: Settings,
    properties: BTreeMap<String, String>,
    connector: Connector,
}

impl ProducerBuilder {
    /// Where the cluster is: `host:port`, several separated by commas (`bootstrap.servers`).
    #[must_use]
    pub fn bootstrap(mut self, addresses: &str) -> Self {
        self.properties
            .insert("bootstrap.servers".into(), addresses.into());
        self
    }

    /// Who must have a record before it counts as acknowledged (`acks`).
    #[must_use]
    pub fn acks(mut self, acks: Acks) -> Self {
        self.settings.acks = acks;
        self
    }

    /// How batches are compressed (`compression.type`).
    #[must_use]
    pub fn compression(mut self, codec: Codec) -> Self {
        self.settings.compression = codec;
        self
    }

    /// Any setting, by Kafka's name; [`Settings::table`] lists them.
    #[must_use]
    pub fn set(mut self, property: &str, value: &str) -> Self {
        self.properties.insert(property.into(), value.into());
        self
    }

    /// All settings at once, in place of what was set before.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// How brokers are reached, in place of TCP.
    #[must_use]
    pub fn connector(mut self, connector: Connector) -> Self {
        self.connector = connector;
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// [`Error::Config`] names what is wrong with the settings; [`Error::Connection`] or [`Error::Peer`], who answers, or does not.
    pub async fn build(self) -> Result<Producer, Error> {
        let mut settings = self.settings;
        settings.set_all(&self.properties)?;
        let room = Semaphore::new(settings.buffer_memory as usize);
        let cluster = Cluster::connect(settings, self.connector, true).await?;
        let shared = Arc::new(Shared {
            cluster,
            queues: Mutex::default(),
            identity: Mutex::default(),
            wake: Notify::new(),
            settled: Notify::new(),
            room,
            closing: AtomicBool::new(false),
        });
        let given_up = shared.clone();
        spawn_watched(sender::run(shared.clone()), move |error| {
            given_up.room.close();
            sender::fail_all(&given_up, &error);
        });
        Ok(Producer { shared })
    }
}

impl Producer {
    /// Begins to describe one.
    #[must_use]
    pub fn builder() -> ProducerBuilder {
        ProducerBuilder::default()
    }

    /// Accepts a record for sending. Waits only while `buffer.memory` is full or the topic is not known yet.
    ///
    /// # Errors
    /// The topic does not exist (or not within `max.block.ms`), the partition does not, or the record is larger than
    /// `max.request.size`.
    pub async fn send(&self, record: NewRecord) -> Result<Delivery, Error> {
        let settings = &self.shared.cluster.settings;
        let size = accumulator::size_of(&record);
        let limit = settings.max_request_size.min(settings.buffer_memory) as usize;
        if size > limit {
            return Err(Error::Config(format!(
                "a record of {size} bytes is larger than the {limit} that max.request.size (and buffer.memory) allow; \
                 raise it, and the broker's message.max.bytes, or send less at once"
            )));
        }
        let topic = self.shared.topic(&record.topic).await?;
        let permit = self.shared.room.acquire_many(size as u32).await;
        permit.map_err(|_| Error::Closed)?.forget();
        let mut queues = lock(&self.shared.queues);
        let count = topic.partitions.len();
        let partition = match record.partition {
            Some(partition) if topic.partitions.contains_key(&partition) => partition,
            Some(partition) => {
                self.shared.room.add_permits(size);
                return Err(Error::Config(format!(
                    "{} has {count} partitions: there is no partition {partition}",
                    record.topic
                )));
            }
            None => queues.partition_for(&record.topic, record.key.as_deref(), count),
        };
        let to = TopicPartition {
            topic: record.topic.clone(),
            partition,
        };
        let batch_size = (settings.batch_size as usize).min(limit);
        let (delivery, wake) = queues.push(&to, record, batch_size, Instant::now());
        drop(queues);
        if wake {
            self.shared.wake.notify_one();
        }
        Ok(delivery)
    }

    /// Waits until everything that was accepted is stored or has failed; the failures are told to those who wait for them.
    pub async fn flush(&self) {
        lock(&self.shared.queues).flushing += 1;
        self.shared.wake.notify_one();
        loop {
            let settled = self.shared.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if lock(&self.shared.queues).undone == 0 {
                break;
            }
            settled.await;
        }
        lock(&self.shared.queues).flushing -= 1;
    }

    /// Flushes and ends.
    ///
    /// # Errors
    /// None at present; what became of each record its [`Delivery`] says.
    pub async fn close(self) -> Result<(), Error> {
        self.flush().await;
        Ok(())
    }
}

impl Drop for Producer {
    /// Does not wait: what was accepted is still sent in the background, as long as the runtime lives.
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        self.shared.wake.notify_one();
    }
}

impl Shared {
    /// A topic that exists, with its partitions.
    async fn topic(&self, topic: &Topic) -> Result<Arc<TopicView>, Error> {
        let known = self.cluster.view().topics.get(topic).cloned();
        if let Some(known) =
            known.filter(|known| known.error.is_none() && !known.partitions.is_empty())
        {
            return Ok(known);
        }
        let mut views = self.cluster.watch();
        self.cluster.add_interest(topic);
        let started = Instant::now();
        let patience = Duration::from_millis(self.cluster.settings.max_block_ms.into());
        loop {
            let found = views.borrow_and_update().topics.get(topic).cloned();
            let error = match found {
                Some(found) if found.error.is_none() && !found.partitions.is_empty() => {
                    return Ok(found);
                }
                Some(found) => self.unusable(topic, found.error, started)?,
                None => Error::TimedOut {
                    what: format!(
                        "no metadata for topic {topic} within {} ms",
                        patience.as_millis()
                    ),
                },
            };
            let left = patience.saturating_sub(started.elapsed());
            let pause = left.min(Duration::from_millis(500));
            if left.is_zero() {
                return Err(self.cluster.trouble().unwrap_or(error));
            }
            self.cluster.want_refresh();
            let _ = tokio::time::timeout(pause, views.changed()).await;
        }
    }

    /// Why a topic cannot be used now; an error if waiting will not help.
    fn unusable(&self, topic: &Topic, code: ErrorCode, started: Instant) -> Result<Error, Error> {
        let unknown = matches!(code, ErrorCode::UnknownTopicOrPartition);
        let code = if code.is_none() {
            ErrorCode::LeaderNotAvailable
        } else {
            code
        };
        let error = Error::broker(ApiKey::Metadata, code, format!("topic {topic}"));
        let patient =
            error.is_retriable() && !(unknown && started.elapsed() > UNKNOWN_TOPIC_PATIENCE);
        if patient { Ok(error) } else { Err(error) }
    }
}
