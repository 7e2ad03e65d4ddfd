//! The topics of the broker: made, widened, deleted, found by name and by id.

use crate::log::PartitionLog;
use crate::partition::Partition;
use crate::settings::Settings;
use crate::storage::{Catalog, CatalogTopic, Storage};
use crate::topic_config::{self, TopicConfigs};
use kohort_wire::ErrorCode;
use kohort_wire::primitives::Uuid;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Where coordinators keep their records.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// Where coordinators publish what happened in each rebalance.
pub(crate) const REBALANCES_TOPIC: &str = "__kohort_rebalances";
/// Kafka refuses larger batches of work as a policy; here it also bounds memory.
const MOST_PARTITIONS: usize = 10_000;

/// The catalog is saved once for so many producer ids; those that a crash leaves unused are skipped.
const PRODUCER_ID_BLOCK: i64 = 1_000;

/// What went wrong with a topic, and the same in words.
pub(crate) type Refusal = (ErrorCode, String);

/// A topic as it is now. A change makes a new value; who holds the old one sees no change.
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) id: Uuid,
    pub(crate) configs: TopicConfigs,
    pub(crate) partitions: Vec<Arc<Partition>>,
}

impl Topic {
    /// Whether it is the broker's own.
    pub(crate) fn is_internal(&self) -> bool {
        self.name == OFFSETS_TOPIC || self.name == REBALANCES_TOPIC
    }

    pub(crate) fn partition(&self, index: i32) -> Option<&Arc<Partition>> {
        usize::try_from(index)
            .ok()
            .and_then(|index| self.partitions.get(index))
    }
}

#[derive(Clone, Default)]
struct Table {
    by_name: BTreeMap<String, Arc<Topic>>,
    by_id: HashMap<Uuid, Arc<Topic>>,
}

/// The topics of a broker.
pub(crate) struct Topics {
    settings: Arc<Settings>,
    storage: Arc<Storage>,
    table: RwLock<Arc<Table>>,
    /// Changes are made one at a time; the catalog as it was last saved.
    catalog: Mutex<Catalog>,
}

impl Topics {
    /// The topics that the storage holds.
    pub(crate) fn open(
        settings: Arc<Settings>,
        storage: Arc<Storage>,
        catalog: Catalog,
        now: i64,
    ) -> io::Result<Self> {
        let topics = Self {
            settings,
            storage,
            table: RwLock::default(),
            catalog: Mutex::new(catalog.clone()),
        };
        let mut table = Table::default();
        for entry in &catalog.topics {
            let topic = topics.build(entry, &[], now)?;
            table.insert(topic);
        }
        *topics.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        Ok(topics)
    }

    /// Builds a topic, taking over the partitions that are open already.
    fn build(&self, entry: &CatalogTopic, open: &[Arc<Partition>], now: i64) -> io::Result<Topic> {
        let config = topic_config::log_config(&entry.configs, &self.settings);
        let mut partitions = open.to_vec();
        for index in open.len() as i32..entry.partitions {
            let store = self.storage.partition(&entry.name, entry.id, index);
            let name = format!("{}-{index}", entry.name);
            let log = PartitionLog::open(config.clone(), store, now, &name)?;
            partitions.push(Arc::new(Partition::new(index, log)));
        }
        Ok(Topic {
            name: entry.name.clone(),
            id: entry.id,
            configs: entry.configs.clone(),
            partitions,
        })
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn catalog(&self) -> MutexGuard<'_, Catalog> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Topic>> {
        self.table().by_name.get(name).cloned()
    }

    pub(crate) fn get_by_id(&self, id: Uuid) -> Option<Arc<Topic>> {
        self.table().by_id.get(&id).cloned()
    }

    /// All topics, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Topic>> {
        self.table().by_name.values().cloned().collect()
    }

    /// The topic that a request names by its id where that is not zero, else by its name.
    pub(crate) fn find(&self, name: &str, id: Uuid) -> Result<Arc<Topic>, ErrorCode> {
        if id == [0; 16] {
            self.get(name).ok_or(ErrorCode::UnknownTopicOrPartition)
        } else {
            self.get_by_id(id).ok_or(ErrorCode::UnknownTopicId)
        }
    }

    /// Makes a topic; with `dry_run` only says whether it could be made.
    pub(crate) fn create(
        &self,
        name: &str,
        partitions: i32,
        configs: TopicConfigs,
        dry_run: bool,
        now: i64,
    ) -> Result<Arc<Topic>, Refusal> {
        check_name(name)?;
        let mut catalog = self.catalog();
        let table = self.table();
        if table.by_name.contains_key(name) {
            return Err((
                ErrorCode::TopicAlreadyExists,
                format!("Topic '{name}' already exists."),
            ));
        }
        let alike = |other: &&String| other.replace('.', "_") == name.replace('.', "_");
        if let Some(other) = table.by_name.keys().find(alike) {
            let text = format!("Topic '{name}' collides with existing topic: {other}");
            return Err((ErrorCode::InvalidTopicException, text));
        }
        check_count(partitions)?;
        for (key, value) in &configs {
            topic_config::check(key, value).map_err(|why| (ErrorCode::InvalidConfig, why))?;
        }
        let entry = CatalogTopic {
            name: name.to_owned(),
            id: new_id(),
            partitions,
            configs,
        };
        let topic = self.build(&entry, &[], now).map_err(refuse)?;
        if dry_run {
            return Ok(Arc::new(topic));
        }
        let mut next = catalog.clone();
        next.topics.push(entry);
        self.commit(&mut catalog, next, |table| table.insert(topic))?;
        self.get(name)
            .ok_or_else(|| refuse(io::Error::other("the topic is gone")))
    }

    /// Adds partitions to a topic, up to `count`.
    pub(crate) fn widen(
        &self,
        name: &str,
        count: i32,
        dry_run: bool,
        now: i64,
    ) -> Result<(), Refusal> {
        let mut catalog = self.catalog();
        let Some(topic) = self.get(name) else {
            return Err((
                ErrorCode::UnknownTopicOrPartition,
                format!("The topic '{name}' does not exist."),
            ));
        };
        if count <= topic.partitions.len() as i32 {
            let text = format!(
                "The topic {name} currently has {} partition(s); {count} would not be an increase.",
                topic.partitions.len()
            );
            return Err((ErrorCode::InvalidPartitions, text));
        }
        check_count(count)?;
        if dry_run {
            return Ok(());
        }
        let mut next = catalog.clone();
        let Some(entry) = next.topics.iter_mut().find(|entry| entry.name == name) else {
            return Err(refuse(io::Error::other("the topic is not in the catalog")));
        };
        entry.partitions = count;
        let wider = self.build(entry, &topic.partitions, now).map_err(refuse)?;
        self.commit(&mut catalog, next, |table| table.insert(wider))
    }

    /// Changes settings of a topic.
    pub(crate) fn configure(
        &self,
        name: &str,
        configs: TopicConfigs,
        dry_run: bool,
    ) -> Result<(), Refusal> {
        let mut catalog = self.catalog();
        let Some(topic) = self.get(name) else {
            return Err((
                ErrorCode::UnknownTopicOrPartition,
                format!("The topic '{name}' does not exist."),
            ));
        };
        for (key, value) in &configs {
            topic_config::check(key, value).map_err(|why| (ErrorCode::InvalidConfig, why))?;
        }
        if dry_run {
            return Ok(());
        }
        let mut next = catalog.clone();
        if let Some(entry) = next.topics.iter_mut().find(|entry| entry.name == name) {
            entry.configs = configs.clone();
        }
        let config = topic_config::log_config(&configs, &self.settings);
        let changed = Topic {
            name: topic.name.clone(),
            id: topic.id,
            configs,
            partitions: topic.partitions.clone(),
        };
        self.commit(&mut catalog, next, |table| table.insert(changed))?;
        for partition in &topic.partitions {
            partition.log().set_config(config.clone());
        }
        Ok(())
    }

    /// Deletes a topic with all its records.
    pub(crate) fn delete(&self, topic: &Topic) -> Result<(), Refusal> {
        let mut catalog = self.catalog();
        let mut next = catalog.clone();
        next.topics.retain(|entry| entry.id != topic.id);
        if next.topics.len() == catalog.topics.len() {
            return Err((
                ErrorCode::UnknownTopicOrPartition,
                "This server does not host this topic-partition.".into(),
            ));
        }
        self.commit(&mut catalog, next, |table| {
            table.by_name.remove(&topic.name);
            table.by_id.remove(&topic.id);
        })?;
        for partition in &topic.partitions {
            partition.log().remove_all();
            partition.wake();
        }
        self.storage.remove_topic(&topic.name, topic.id);
        Ok(())
    }

    /// Saves the catalog, then lets everybody see the change.
    fn commit(
        &self,
        catalog: &mut Catalog,
        next: Catalog,
        change: impl FnOnce(&mut Table),
    ) -> Result<(), Refusal> {
        self.storage.save(&next).map_err(refuse)?;
        *catalog = next;
        let mut table = Table::clone(&self.table());
        change(&mut table);
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
        Ok(())
    }

    /// A producer id that was never given out before.
    pub(crate) fn next_producer_id(&self) -> Result<i64, ErrorCode> {
        let mut catalog = self.catalog();
        if catalog.next_producer_id == catalog.reserved_producer_id {
            let mut next = catalog.clone();
            next.reserved_producer_id += PRODUCER_ID_BLOCK;
            self.storage.save(&next).map_err(|error| refuse(error).0)?;
            *catalog = next;
        }
        catalog.next_producer_id += 1;
        Ok(catalog.next_producer_id - 1)
    }

    /// The cluster's id.
    pub(crate) fn cluster_id(&self) -> String {
        self.catalog().cluster_id.clone()
    }
}

impl Table {
    fn insert(&mut self, topic: Topic) {
        let topic = Arc::new(topic);
        self.by_id.insert(topic.id, Arc::clone(&topic));
        self.by_name.insert(topic.name.clone(), topic);
    }
}

fn refuse(error: io::Error) -> Refusal {
    tracing::error!("cannot store a change of the topics: {error}");
    (
        ErrorCode::KafkaStorageError,
        format!("the broker cannot store it: {error}"),
    )
}

fn check_count(partitions: i32) -> Result<(), Refusal> {
    if partitions < 1 {
        return Err((
            ErrorCode::InvalidPartitions,
            "Number of partitions must be larger than 0.".into(),
        ));
    }
    if partitions as usize > MOST_PARTITIONS {
        let text = format!(
            "{partitions} partitions are more than the {MOST_PARTITIONS} that this broker allows for a topic."
        );
        return Err((ErrorCode::PolicyViolation, text));
    }
    Ok(())
}

/// Kafka's rules for names of topics.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let why = if name.is_empty() {
        "the empty string is not allowed"
    } else if name == "." || name == ".." {
        "'.' and '..' are not allowed"
    } else if name.len() > 249 {
        "it is longer than 249 characters"
    } else if !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    {
        "it contains characters other than ASCII alphanumerics, '.', '_' and '-'"
    } else {
        return Ok(());
    };
    Err((
        ErrorCode::InvalidTopicException,
        format!("Topic name is invalid: {why}"),
    ))
}

/// An id that is as good as random (version 4).
pub(crate) fn new_id() -> Uuid {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut id = [0; 16];
    for half in id.chunks_mut(8) {
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_be_bytes());
    }
    id[6] = (id[6] & 0x0f) | 0x40;
    id[8] = (id[8] & 0x3f) | 0x80;
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_kafkas_rules() {
        for good in ["a", "A.b-c_9", &"x".repeat(249)] {
            assert_eq!(check_name(good), Ok(()));
        }
        for bad in ["", ".", "..", "a/b", "ä", "a b", &"x".repeat(250)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_differ() {
        let mut ids: Vec<Uuid> = (0..1_000).map(|_| new_id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1_000);
    }
}
