//! Records that wait: one queue for each partition, filled by `send`, emptied by the sender, one batch under way at a time.
//!
//! One at a time keeps their order without any case analysis, and while a batch is under way the next one fills by itself.

use super::outcome::{Delivery, Outcome};
use super::partitioner;
use crate::error::Error;
use crate::record::NewRecord;
use kohort_group::partitions::{Topic, TopicPartition};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What a record costs beyond its bytes, about.
const OVERHEAD: usize = 32;

/// Who sends, as the broker knows it (KIP-98).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) producer_id: i64,
    pub(super) epoch: i16,
}

/// Some records for one partition.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) records: Vec<NewRecord>,
    pub(super) bytes: usize,
    pub(super) created: Instant,
    pub(super) outcome: Arc<Outcome>,
    pub(super) attempts: u32,
    /// Identity and first sequence number: the same at each attempt, so that the broker stores it once.
    pub(super) sequence: Option<(Identity, i32)>,
    pub(super) last_error: Option<Error>,
}

impl Batch {
    fn new(now: Instant) -> Self {
        Self {
            records: Vec::new(),
            bytes: 0,
            created: now,
            outcome: Outcome::new(),
            attempts: 0,
            sequence: None,
            last_error: None,
        }
    }

    /// Two batches of half the records each, for a broker that found this one too large.
    fn halves(self) -> [Batch; 2] {
        let mut first = self.records;
        let second = first.split_off(first.len() / 2);
        let half = |records: Vec<NewRecord>| Batch {
            bytes: records.iter().map(size_of).sum(),
            records,
            ..Batch::new(self.created)
        };
        let halves = [half(first), half(second)];
        let at = halves[0].records.len();
        self.outcome.split(vec![
            (0, halves[0].outcome.clone()),
            (at, halves[1].outcome.clone()),
        ]);
        halves
    }
}

pub(super) fn size_of(record: &NewRecord) -> usize {
    let headers: usize = record
        .headers
        .iter()
        .map(|(name, value)| name.len() + value.as_ref().map_or(0, bytes::Bytes::len) + 8)
        .sum();
    let part = |part: &Option<bytes::Bytes>| part.as_ref().map_or(0, bytes::Bytes::len);
    part(&record.key) + part(&record.value) + headers + OVERHEAD
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Batch>,
    under_way: bool,
    not_before: Option<Instant>,
    identity: Option<Identity>,
    next_sequence: i32,
}

/// All queues.
#[derive(Debug, Default)]
pub(super) struct Accumulator {
    queues: BTreeMap<TopicPartition, Queue>,
    /// The partitions that have something waiting and nothing under way.
    idle: BTreeSet<TopicPartition>,
    /// Where records without a key go at the moment (KIP-480).
    sticky: BTreeMap<Topic, usize>,
    pub(super) flushing: usize,
    pub(super) undone: usize,
}

impl Accumulator {
    /// The partition for a record of a topic that has `count`.
    pub(super) fn partition_for(&mut self, topic: &Topic, key: Option<&[u8]>, count: usize) -> i32 {
        match key {
            Some(key) => partitioner::of_key(key, count),
            None => (*self.sticky.entry(topic.clone()).or_insert(0) % count.max(1)) as i32,
        }
    }

    /// Appends a record; the flag says whether the sender has something new to do.
    pub(super) fn push(
        &mut self,
        to: &TopicPartition,
        record: NewRecord,
        batch_size: usize,
        now: Instant,
    ) -> (Delivery, bool) {
        let size = size_of(&record);
        let queue = self.queues.entry(to.clone()).or_default();
        let full = queue.waiting.back().is_none_or(|last| {
            last.sequence.is_some() || last.attempts > 0 || last.bytes + size > batch_size
        });
        if full {
            queue.waiting.push_back(Batch::new(now));
            self.undone += 1;
            if let Some(sticky) = self.sticky.get_mut(&to.topic) {
                *sticky = sticky.wrapping_add(1);
            }
        }
        let wake = !queue.under_way && full;
        if !queue.under_way {
            self.idle.insert(to.clone());
        }
        let Some(batch) = queue.waiting.back_mut() else {
            unreachable!("a batch was pushed if there was none");
        };
        batch.bytes += size;
        batch.records.push(record);
        let delivery = Delivery {
            outcome: batch.outcome.clone(),
            index: batch.records.len() - 1,
        };
        (delivery, wake)
    }

    /// Takes every batch that may go now, one for each partition, and when to look again.
    pub(super) fn take_ready(
        &mut self,
        now: Instant,
        linger: Duration,
        batch_size: usize,
        identity: Option<Identity>,
        may_go: impl Fn(&TopicPartition) -> bool,
    ) -> (Vec<(TopicPartition, Batch)>, Option<Instant>) {
        let mut taken = Vec::new();
        let mut look_again: Option<Instant> = None;
        let flushing = self.flushing > 0;
        let queues = &mut self.queues;
        self.idle.retain(|of| {
            let Some(queue) = queues.get_mut(of) else {
                return false;
            };
            let Some(head) = queue.waiting.front() else {
                return false;
            };
            let complete = flushing
                || queue.waiting.len() > 1
                || head.attempts > 0
                || head.bytes >= batch_size;
            let due = if complete {
                head.created
            } else {
                head.created + linger
            };
            let due = due.max(queue.not_before.unwrap_or(due));
            if due > now {
                look_again = Some(look_again.map_or(due, |earlier| earlier.min(due)));
                return true;
            }
            if !may_go(of) {
                return true;
            }
            if let Some(batch) = queue.take(identity) {
                taken.push((of.clone(), batch));
            }
            false
        });
        (taken, look_again)
    }

    /// Whether something waits, for a partition or for any.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &TopicPartition> {
        self.idle.iter()
    }

    /// The batch is settled: the next one may go.
    pub(super) fn done(&mut self, of: &TopicPartition) {
        self.undone = self.undone.saturating_sub(1);
        self.release(of);
    }

    fn release(&mut self, of: &TopicPartition) {
        if let Some(queue) = self.queues.get_mut(of) {
            queue.under_way = false;
            if !queue.waiting.is_empty() {
                self.idle.insert(of.clone());
            }
        }
    }

    /// The batch goes again after a pause, before all others.
    pub(super) fn retry(&mut self, of: &TopicPartition, batch: Batch, not_before: Instant) {
        if let Some(queue) = self.queues.get_mut(of) {
            queue.waiting.push_front(batch);
            queue.not_before = Some(not_before);
        }
        self.release(of);
    }

    /// The broker found the batch too large; its halves go instead. Its sequence numbers were not used.
    pub(super) fn split(&mut self, of: &TopicPartition, batch: Batch) {
        self.take_back(of, &batch);
        if let Some(queue) = self.queues.get_mut(of) {
            let [first, second] = batch.halves();
            queue.waiting.push_front(second);
            queue.waiting.push_front(first);
            self.undone += 1;
        }
        self.release(of);
    }

    /// The broker refused a batch for good: its sequence numbers are free again.
    pub(super) fn take_back(&mut self, of: &TopicPartition, batch: &Batch) {
        if let (Some(queue), Some((identity, first))) = (self.queues.get_mut(of), batch.sequence)
            && queue.identity == Some(identity)
        {
            queue.next_sequence = first;
        }
    }

    /// Nobody knows what the broker has of this identity: the next batch starts afresh with another one.
    pub(super) fn forget_identity(&mut self, of: &TopicPartition) {
        if let Some(queue) = self.queues.get_mut(of) {
            queue.identity = None;
            queue.next_sequence = 0;
        }
    }

    /// Takes all that waits for longer than `limit`, or everything (`limit` zero).
    pub(super) fn take_expired(
        &mut self,
        now: Instant,
        limit: Duration,
    ) -> Vec<(TopicPartition, Batch)> {
        let mut expired = Vec::new();
        for of in self.idle.clone() {
            let Some(queue) = self.queues.get_mut(&of) else {
                continue;
            };
            while let Some(batch) = queue
                .waiting
                .pop_front_if(|batch| now >= batch.created + limit)
            {
                expired.push((of.clone(), batch));
            }
            if queue.waiting.is_empty() {
                self.idle.remove(&of);
            }
        }
        self.undone = self.undone.saturating_sub(expired.len());
        expired
    }
}

impl Queue {
    /// The first batch, numbered, if the queue may send one.
    fn take(&mut self, current: Option<Identity>) -> Option<Batch> {
        let mut batch = self.waiting.pop_front()?;
        if let (None, Some(current)) = (batch.sequence, current) {
            let identity = *self.identity.get_or_insert(current);
            batch.sequence = Some((identity, self.next_sequence));
            self.next_sequence = after(self.next_sequence, batch.records.len());
        }
        batch.attempts += 1;
        self.under_way = true;
        self.not_before = None;
        Some(batch)
    }
}

/// Sequence numbers go from 2³¹−1 back to 0.
fn after(sequence: i32, count: usize) -> i32 {
    ((i64::from(sequence) + count as i64) % (i64::from(i32::MAX) + 1)) as i32
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tp() -> TopicPartition {
        TopicPartition {
            topic: "t".into(),
            partition: 0,
        }
    }

    fn record(bytes: usize) -> NewRecord {
        NewRecord::to("t").value(vec![b'x'; bytes])
    }

    fn take(queues: &mut Accumulator, now: Instant) -> Vec<Batch> {
        let identity = Some(Identity {
            producer_id: 7,
            epoch: 0,
        });
        let (taken, _) = queues.take_ready(now, Duration::ZERO, 1000, identity, |_| true);
        taken.into_iter().map(|(_, batch)| batch).collect()
    }

    #[test]
    fn one_batch_is_under_way_and_the_next_one_fills() {
        let (mut queues, now) = (Accumulator::default(), Instant::now());
        queues.push(&tp(), record(10), 1000, now);
        let first = take(&mut queues, now);
        assert_eq!(first[0].sequence.unwrap().1, 0);
        for _ in 0..3 {
            queues.push(&tp(), record(10), 1000, now);
        }
        assert!(take(&mut queues, now).is_empty());
        queues.done(&tp());
        let second = take(&mut queues, now);
        assert_eq!(
            (second[0].records.len(), second[0].sequence.unwrap().1),
            (3, 1)
        );
    }

    #[test]
    fn a_retry_keeps_its_place_and_its_sequence() {
        let (mut queues, now) = (Accumulator::default(), Instant::now());
        queues.push(&tp(), record(10), 1000, now);
        let batch = take(&mut queues, now).pop().unwrap();
        queues.push(&tp(), record(10), 1000, now);
        queues.retry(&tp(), batch, now);
        let again = take(&mut queues, now).pop().unwrap();
        assert_eq!(
            (
                again.records.len(),
                again.attempts,
                again.sequence.unwrap().1
            ),
            (1, 2, 0)
        );
    }

    #[test]
    fn halves_are_numbered_afresh() {
        let (mut queues, now) = (Accumulator::default(), Instant::now());
        for _ in 0..4 {
            queues.push(&tp(), record(10), 1000, now);
        }
        let batch = take(&mut queues, now).pop().unwrap();
        queues.split(&tp(), batch);
        let half = take(&mut queues, now).pop().unwrap();
        assert_eq!((half.records.len(), half.sequence.unwrap().1), (2, 0));
        queues.done(&tp());
        assert_eq!(take(&mut queues, now)[0].sequence.unwrap().1, 2);
        assert_eq!(queues.undone, 1);
    }

    #[test]
    fn sequence_numbers_wrap_to_zero() {
        assert_eq!(after(i32::MAX, 1), 0);
        assert_eq!(after(i32::MAX - 1, 3), 1);
    }
}
