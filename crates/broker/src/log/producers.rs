//! Idempotent producers (KIP-98): what each one appended last, so that a batch sent again is not stored again.

use super::header::BatchHeader;
use kohort_wire::ErrorCode;
use std::collections::{BTreeMap, VecDeque};

/// Kafka remembers this many batches of a producer, as many as one may have in flight.
const REMEMBERED: usize = 5;

#[derive(Clone, Copy, Debug)]
struct Appended {
    first_sequence: i32,
    last_sequence: i32,
    base_offset: i64,
    timestamp: i64,
}

#[derive(Clone, Debug)]
struct Producer {
    epoch: i16,
    batches: VecDeque<Appended>,
    last_seen: i64,
}

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Append,
    /// It is there already: its base offset and the time of its append.
    Duplicate(i64, i64),
    Refuse(ErrorCode),
}

/// The producers of one partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct Producers {
    known: BTreeMap<i64, Producer>,
}

impl Producers {
    /// Whether a batch is the next one of its producer. A producer that is not known (any more) may begin anywhere.
    pub(crate) fn judge(&self, batch: &BatchHeader) -> Verdict {
        if batch.producer_id < 0 {
            return Verdict::Append;
        }
        let Some(producer) = self.known.get(&batch.producer_id) else {
            return Verdict::Append;
        };
        if batch.producer_epoch < producer.epoch {
            return Verdict::Refuse(ErrorCode::InvalidProducerEpoch);
        }
        if batch.producer_epoch > producer.epoch {
            return if batch.base_sequence == 0 {
                Verdict::Append
            } else {
                Verdict::Refuse(ErrorCode::OutOfOrderSequenceNumber)
            };
        }
        let range = (batch.base_sequence, batch.last_sequence());
        let same = |old: &&Appended| (old.first_sequence, old.last_sequence) == range;
        if let Some(old) = producer.batches.iter().find(same) {
            return Verdict::Duplicate(old.base_offset, old.timestamp);
        }
        let expected = producer
            .batches
            .back()
            .map_or(0, |last| last.last_sequence.checked_add(1).unwrap_or(0));
        if batch.base_sequence == expected {
            Verdict::Append
        } else {
            Verdict::Refuse(ErrorCode::OutOfOrderSequenceNumber)
        }
    }

    /// Remembers a batch that was appended (or found in the log while loading it).
    pub(crate) fn appended(&mut self, batch: &BatchHeader, timestamp: i64, now: i64) {
        if batch.producer_id < 0 || batch.base_sequence < 0 {
            return;
        }
        let producer = self.known.entry(batch.producer_id).or_insert(Producer {
            epoch: batch.producer_epoch,
            batches: VecDeque::new(),
            last_seen: now,
        });
        if producer.epoch != batch.producer_epoch {
            producer.epoch = batch.producer_epoch;
            producer.batches.clear();
        }
        if producer.batches.len() == REMEMBERED {
            producer.batches.pop_front();
        }
        producer.last_seen = now;
        producer.batches.push_back(Appended {
            first_sequence: batch.base_sequence,
            last_sequence: batch.last_sequence(),
            base_offset: batch.base_offset,
            timestamp,
        });
    }

    /// Forgets producers that have been silent since `before`.
    pub(crate) fn expire(&mut self, before: i64) {
        self.known
            .retain(|_, producer| producer.last_seen >= before);
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::tests::batch;
    use super::*;

    fn header(sequence: i32, count: i32, epoch: i16) -> BatchHeader {
        let bytes = batch(count, 0, (9, epoch, sequence), b"");
        BatchHeader::read(&bytes).unwrap_or_else(|| panic!("no header"))
    }

    #[test]
    fn a_batch_sent_again_is_known_and_a_gap_is_refused() {
        let mut producers = Producers::default();
        for sequence in [0, 2, 4] {
            let batch = BatchHeader {
                base_offset: 100 + i64::from(sequence),
                ..header(sequence, 2, 0)
            };
            assert_eq!(producers.judge(&batch), Verdict::Append);
            producers.appended(&batch, 7, 7);
        }
        assert_eq!(
            producers.judge(&header(2, 2, 0)),
            Verdict::Duplicate(102, 7)
        );
        let refused = Verdict::Refuse(ErrorCode::OutOfOrderSequenceNumber);
        assert_eq!(producers.judge(&header(8, 1, 0)), refused);
        assert_eq!(producers.judge(&header(3, 1, 0)), refused);
        assert_eq!(producers.judge(&header(5, 1, 1)), refused);
        assert_eq!(producers.judge(&header(0, 1, 1)), Verdict::Append);
        producers.appended(&header(0, 1, 1), 7, 7);
        let fenced = Verdict::Refuse(ErrorCode::InvalidProducerEpoch);
        assert_eq!(producers.judge(&header(6, 1, 0)), fenced);
    }

    #[test]
    fn sequences_go_round() {
        let mut producers = Producers::default();
        producers.appended(&header(i32::MAX - 1, 2, 0), 0, 0);
        assert_eq!(producers.judge(&header(0, 1, 0)), Verdict::Append);
        producers.expire(1);
        assert_eq!(producers.judge(&header(55, 1, 0)), Verdict::Append);
    }
}
