//! Compaction: of records with the same key, the last one stays.
//!
//! A batch goes when all its records have been superseded (or are tombstones that have had their time); others stay as they
//! are. So some superseded records stay too, which compaction allows, and nothing is ever encoded anew: offsets, timestamps
//! and checksums are those of the producer.

use super::PartitionLog;
use super::segment::Segment;
use bytes::Bytes;
use kohort_wire::records::{Batch, batches};
use std::collections::HashMap;
use std::io;

/// Less than this is not worth the work.
const LEAST_DIRTY: u64 = 1 << 20;
/// A batch that grows beyond this stays as it is.
const MOST_DECOMPRESSED: usize = 64 << 20;

impl PartitionLog {
    /// Compacts if the log obeys that policy and has grown enough since the last time; gives how many bytes went.
    /// Tombstones go `tombstones_ms` after they were written (`now`: Unix milliseconds).
    pub(crate) fn compact(&mut self, now: i64, tombstones_ms: i64) -> io::Result<u64> {
        let before = self.size();
        let dirty = before.saturating_sub(self.compacted_size);
        if !self.config.compact || dirty < LEAST_DIRTY.max(self.compacted_size / 2) {
            return Ok(0);
        }
        if self.segments.last().is_some_and(|active| active.size() > 0) {
            self.roll(now)?;
        }
        let latest = self.latest_offsets()?;
        for at in 0..self.segments.len() - 1 {
            let keeper = Keeper {
                latest: &latest,
                tombstones_before: now - tombstones_ms,
            };
            let kept = keeper.kept(&self.segments[at])?;
            let size: usize = kept.iter().map(Bytes::len).sum();
            if size as u64 == self.segments[at].size() {
                continue;
            }
            let (base_offset, created) = (self.segments[at].base_offset, self.segments[at].created);
            let bytes = self.store.replace(base_offset, &kept)?;
            let mut segment = Segment::new(base_offset, created, bytes);
            segment.index_all()?;
            self.segments[at] = segment;
        }
        self.compacted_size = self.size();
        Ok(before - self.compacted_size)
    }

    /// Of each key, the offset of its last record.
    fn latest_offsets(&self) -> io::Result<HashMap<Bytes, i64>> {
        let mut latest = HashMap::new();
        for segment in &self.segments {
            for batch in batches(segment.read_at(0, segment.size() as usize)?) {
                let batch = batch.map_err(io::Error::other)?;
                for record in batch
                    .records(MOST_DECOMPRESSED)
                    .into_iter()
                    .flatten()
                    .flatten()
                {
                    if let Some(key) = record.key {
                        latest.insert(Bytes::copy_from_slice(&key), record.offset);
                    }
                }
            }
        }
        Ok(latest)
    }
}

struct Keeper<'a> {
    latest: &'a HashMap<Bytes, i64>,
    tombstones_before: i64,
}

impl Keeper<'_> {
    /// The batches of a segment that stay.
    fn kept(&self, segment: &Segment) -> io::Result<Vec<Bytes>> {
        let mut kept = Vec::new();
        for batch in batches(segment.read_at(0, segment.size() as usize)?) {
            let batch = batch.map_err(io::Error::other)?;
            if self.stays(&batch) {
                kept.push(batch.into_bytes());
            }
        }
        Ok(kept)
    }

    fn stays(&self, batch: &Batch) -> bool {
        let Ok(mut records) = batch.records(MOST_DECOMPRESSED) else {
            return true;
        };
        records.any(|record| match record {
            Err(_) => true,
            Ok(record) => match &record.key {
                None => true,
                Some(key) => {
                    let last = self
                        .latest
                        .get(key)
                        .is_none_or(|latest| *latest <= record.offset);
                    let expired =
                        record.value.is_none() && record.timestamp < self.tombstones_before;
                    last && !expired
                }
            },
        })
    }
}
