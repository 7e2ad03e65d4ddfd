//! The coordinators: one for each partition of the offsets topic, made when it is first needed.

mod published;
mod shard;

pub(crate) use shard::OnRebalance;

use crate::clock::Clock;
use crate::node::{Exchange, Node};
use crate::router::Session;
use crate::settings::Settings;
use crate::topics::{OFFSETS_TOPIC, REBALANCES_TOPIC, Refusal, Topics};
use kohort_group::coordinator::{ConnectionId, Coordinator, GroupRequest, GroupResponse, Input};
use kohort_group::topics::{TopicImage, TopicInfo};
use published::Published;
use shard::Shard;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::task::JoinSet;

/// The coordinators of a broker.
pub(crate) struct Groups {
    settings: Arc<Settings>,
    clock: Clock,
    shards: OnceLock<Vec<OnceLock<Arc<Shard>>>>,
    seed: u64,
    /// Topic images go out one at a time, in order.
    images: Mutex<()>,
    tasks: Mutex<Option<JoinSet<()>>>,
    on_rebalance: Option<OnRebalance>,
}

impl Groups {
    pub(crate) fn new(
        settings: &Arc<Settings>,
        clock: Clock,
        on_rebalance: Option<OnRebalance>,
        seed: u64,
    ) -> Self {
        Self {
            settings: Arc::clone(settings),
            clock,
            shards: OnceLock::new(),
            seed,
            images: Mutex::default(),
            tasks: Mutex::new(Some(JoinSet::new())),
            on_rebalance,
        }
    }

    /// Loads what the log holds: coordinators with records begin at once, in the background.
    pub(crate) fn load(&self, topics: &Topics) {
        let Some(offsets) = topics.get(OFFSETS_TOPIC) else {
            return;
        };
        if let Err((_, why)) = self.ensure_topic(topics) {
            tracing::warn!("rebalances will not be published: {why}");
        }
        for partition in &offsets.partitions {
            if partition.log().end_offset() > 0 {
                self.shard(topics, partition.index as usize);
            }
        }
    }

    /// Makes the topics of the coordinators when they are needed for the first time, as Kafka does.
    pub(crate) fn ensure_topic(&self, topics: &Topics) -> Result<(), Refusal> {
        let segment = self.settings.offsets_topic_segment_bytes.to_string();
        let configs = [("cleanup.policy", "compact"), ("segment.bytes", &segment)];
        let partitions = self.settings.offsets_topic_num_partitions;
        // The second one first: where the offsets topic is, both are.
        self.make(topics, REBALANCES_TOPIC, 1, &published::CONFIGS)?;
        self.make(topics, OFFSETS_TOPIC, partitions, &configs)
    }

    fn make(
        &self,
        topics: &Topics,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Result<(), Refusal> {
        if topics.get(name).is_some() {
            return Ok(());
        }
        let configs = configs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        match topics.create(name, partitions, configs, false, self.clock.wall()) {
            Ok(_) => {
                self.topics_changed(topics);
                Ok(())
            }
            Err(_) if topics.get(name).is_some() => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    /// Tells all coordinators which topics there are now.
    pub(crate) fn topics_changed(&self, topics: &Topics) {
        let _order = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(shards) = self.shards.get() else {
            return;
        };
        let image = image(topics);
        for shard in shards.iter().filter_map(OnceLock::get) {
            shard.feed(Input::Topics(image.clone()));
        }
    }

    pub(crate) fn disconnected(&self, connection: ConnectionId, partitions: &BTreeSet<usize>) {
        let Some(shards) = self.shards.get() else {
            return;
        };
        for partition in partitions {
            if let Some(shard) = shards.get(*partition).and_then(OnceLock::get) {
                shard.disconnected(connection);
            }
        }
    }

    /// The partitions whose coordinators have been needed so far.
    pub(crate) fn active(&self) -> Vec<usize> {
        let shards = self.shards.get().map(Vec::as_slice).unwrap_or_default();
        (0..shards.len())
            .filter(|at| shards[*at].get().is_some())
            .collect()
    }

    /// Asks the coordinator of a group; `None` if there will be no answer.
    pub(crate) async fn ask(
        &self,
        node: &Node,
        session: &mut Session,
        exchange: &Exchange,
        group: &str,
        request: GroupRequest,
    ) -> Option<GroupResponse> {
        self.ensure_topic(&node.topics).ok()?;
        let count = node.topics.get(OFFSETS_TOPIC)?.partitions.len();
        self.ask_partition(node, session, exchange, partition_of(group, count), request)
            .await
    }

    /// Asks the coordinator of a partition.
    pub(crate) async fn ask_partition(
        &self,
        node: &Node,
        session: &mut Session,
        exchange: &Exchange,
        partition: usize,
        request: GroupRequest,
    ) -> Option<GroupResponse> {
        let shard = self.shard(&node.topics, partition)?;
        session.coordinators.insert(partition);
        shard.ask(exchange, request).await
    }

    fn shard(&self, topics: &Topics, partition: usize) -> Option<Arc<Shard>> {
        let offsets = topics.get(OFFSETS_TOPIC)?;
        let shards = self.shards.get_or_init(|| {
            let mut shards = Vec::new();
            shards.resize_with(offsets.partitions.len(), OnceLock::new);
            shards
        });
        let slot = shards.get(partition)?;
        if let Some(shard) = slot.get() {
            return Some(Arc::clone(shard));
        }
        let log = Arc::clone(offsets.partition(partition as i32)?);
        let published = topics
            .get(REBALANCES_TOPIC)
            .and_then(|topic| Some(Published::to(Arc::clone(topic.partition(0)?), self.clock)));
        // No image may go out between the one that the new coordinator gets and its being there for others.
        let _order = self.images.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = slot.get_or_init(|| {
            let config = self.settings.coordinator(self.clock.wall_offset);
            let seed = self.seed.wrapping_add(partition as u64);
            let machine = Coordinator::new(config, seed);
            let empty = log.log().end_offset() == 0;
            let shard = Arc::new(Shard::new(
                machine,
                log,
                self.clock,
                self.on_rebalance.clone(),
                published,
            ));
            shard.feed(Input::Topics(image(topics)));
            self.start(&shard, empty);
            shard
        });
        Some(Arc::clone(shard))
    }

    /// Loads a coordinator's log and watches its alarms.
    fn start(&self, shard: &Arc<Shard>, empty: bool) {
        if empty {
            shard.load();
        }
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tasks) = &mut *tasks {
            tasks.spawn(Arc::clone(shard).watch());
            if !empty {
                let shard = Arc::clone(shard);
                tasks.spawn_blocking(move || shard.load());
            }
        }
    }

    /// Ends all tasks; no new ones are begun.
    pub(crate) fn stop(&self) -> JoinSet<()> {
        let mut tasks = self
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .unwrap_or_default();
        tasks.abort_all();
        tasks
    }
}

/// The topics as coordinators see them.
fn image(topics: &Topics) -> TopicImage {
    let entry = |topic: Arc<crate::topics::Topic>| {
        let info = TopicInfo {
            id: topic.id,
            internal: topic.is_internal(),
            ..TopicInfo::with_partitions(topic.partitions.len())
        };
        (topic.name.as_str().into(), info)
    };
    TopicImage::new(topics.all().into_iter().map(entry).collect())
}

/// The partition of a group, as Kafka has it.
fn partition_of(group: &str, partitions: usize) -> usize {
    (java_hash(group) & 0x7fff_ffff) as usize % partitions.max(1)
}

/// `String.hashCode` of Java: over UTF-16 units.
fn java_hash(text: &str) -> u32 {
    let units = text.encode_utf16();
    units.fold(0_u32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(u32::from(unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread_as_kafka_spreads_them() {
        // What Java's "…".hashCode() gives.
        assert_eq!(java_hash(""), 0);
        assert_eq!(java_hash("hello"), 99_162_322);
        assert_eq!(java_hash("polygenelubricants") as i32, i32::MIN);
        assert_eq!(partition_of("polygenelubricants", 50), 0);
        assert_eq!(partition_of("hello", 50), 22);
    }
}
