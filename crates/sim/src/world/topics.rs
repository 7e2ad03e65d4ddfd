//! The topics and their records, and the producer that fills them.

use super::{Event, World};
use crate::fact::Fact;
use kohort_group::partitions::{Topic, TopicPartition};
use kohort_group::topics::{TopicImage, TopicInfo};
use std::collections::{BTreeMap, BTreeSet};

/// How many topic names there are. A name is never used again after its topic is deleted.
const NAMES: usize = 6;

/// The topics that exist.
#[derive(Debug)]
pub(super) struct Topics {
    counts: BTreeMap<Topic, i32>,
    records: BTreeMap<TopicPartition, Vec<u64>>,
    used: usize,
    next_value: u64,
}

impl Topics {
    pub(super) fn new(sizes: &[usize]) -> Self {
        let counts = sizes
            .iter()
            .enumerate()
            .map(|(i, size)| (name(i), *size as i32))
            .collect();
        Self {
            counts,
            records: BTreeMap::new(),
            used: sizes.len(),
            next_value: 0,
        }
    }

    /// Each topic's number of partitions.
    pub(super) fn counts(&self) -> &BTreeMap<Topic, i32> {
        &self.counts
    }

    /// What metadata says of these topics, or of all.
    pub(super) fn image(&self, only: Option<&BTreeSet<Topic>>) -> TopicImage {
        self.counts
            .iter()
            .filter(|(topic, _)| only.is_none_or(|only| only.contains(*topic)))
            .map(|(topic, count)| (topic.clone(), TopicInfo::with_partitions(*count as usize)))
            .collect()
    }

    /// The records of a partition from an offset on.
    pub(super) fn read(&self, partition: &TopicPartition, from: i64, most: usize) -> Vec<u64> {
        let records = self.records.get(partition).map_or(&[][..], Vec::as_slice);
        let from = usize::try_from(from).unwrap_or(0).min(records.len());
        records[from..].iter().take(most).copied().collect()
    }

    /// All partitions that exist, with the offset after their last record.
    pub(super) fn ends(&self) -> impl Iterator<Item = (TopicPartition, i64)> {
        self.counts.iter().flat_map(|(topic, count)| {
            (0..*count).map(|partition| {
                let at = TopicPartition::new(topic.clone(), partition);
                let end = self.records.get(&at).map_or(0, Vec::len) as i64;
                (at, end)
            })
        })
    }

    /// Every name that a topic has or may get.
    pub(super) fn names() -> Vec<Topic> {
        (0..NAMES).map(name).collect()
    }
}

fn name(number: usize) -> Topic {
    format!("t{number}").into()
}

impl World {
    /// A record is acknowledged.
    pub(super) fn produce(&mut self) {
        let goes_on = match &self.calm {
            Some(calm) => self.now < calm.produce_until,
            None => self.peace.is_none(),
        };
        if !goes_on {
            return;
        }
        let every = self.scenario.produce_ms;
        self.after(every, Event::Produce);
        let topics: Vec<(Topic, i32)> = self
            .topics
            .counts
            .iter()
            .map(|(topic, count)| (topic.clone(), *count))
            .collect();
        if topics.is_empty() {
            return;
        }
        let (topic, count) = self.random.pick(&topics).clone();
        let number = self.random.between(0, count as u64 - 1) as i32;
        let partition = TopicPartition::new(topic, number);
        self.topics.next_value += 1;
        let value = self.topics.next_value;
        self.observe(&Fact::Produced {
            partition: &partition,
            value,
        });
        let records = self.topics.records.entry(partition).or_default();
        records.push(value);
    }

    /// A topic gets more partitions; false if there is none.
    pub(super) fn grow_topic(&mut self) -> bool {
        let topics: Vec<Topic> = self.topics.counts.keys().cloned().collect();
        if topics.is_empty() {
            return false;
        }
        let topic = self.random.pick(&topics).clone();
        let more = self.random.between(1, 3) as i32;
        if let Some(count) = self.topics.counts.get_mut(&topic) {
            *count += more;
        }
        self.topics_changed();
        true
    }

    /// A topic appears; false if all names are used.
    pub(super) fn create_topic(&mut self) -> bool {
        if self.topics.used == NAMES {
            return false;
        }
        let topic = name(self.topics.used);
        self.topics.used += 1;
        let count = self.random.between(1, 4) as i32;
        self.topics.counts.insert(topic, count);
        self.topics_changed();
        true
    }

    /// A topic vanishes; false if it would be the last.
    pub(super) fn delete_topic(&mut self) -> bool {
        let topics: Vec<Topic> = self.topics.counts.keys().cloned().collect();
        if topics.len() < 2 {
            return false;
        }
        let topic = self.random.pick(&topics).clone();
        self.topics.counts.remove(&topic);
        self.topics.records.retain(|at, _| at.topic != topic);
        self.topics_changed();
        true
    }

    fn topics_changed(&mut self) {
        let counts = self.topics.counts.clone();
        self.observe(&Fact::Topics(&counts));
        let delay = self.random.between(0, 200);
        self.after(delay, Event::TopicsAtBroker);
        for process in self.live.clone() {
            let age = self.random.between(0, 5_000);
            self.after(age, Event::Metadata(process));
        }
    }
}
