//! One segment: its bytes, and a sparse index over them.

use super::header::{BATCH_HEADER, BatchHeader};
use super::storage::SegmentBytes;
use bytes::Bytes;
use std::io;

/// One index entry for about this many bytes, as in Kafka (`index.interval.bytes`).
const INDEX_INTERVAL: u64 = 4_096;

#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    base_offset: i64,
    position: u64,
    /// The latest timestamp before this entry.
    max_timestamp_before: i64,
}

/// One segment of a log.
pub(crate) struct Segment {
    pub(crate) base_offset: i64,
    /// Unix milliseconds.
    pub(crate) created: i64,
    pub(crate) max_timestamp: i64,
    index: Vec<IndexEntry>,
    bytes: Box<dyn SegmentBytes>,
}

impl Segment {
    pub(crate) fn new(base_offset: i64, created: i64, bytes: Box<dyn SegmentBytes>) -> Self {
        Self {
            base_offset,
            created,
            max_timestamp: i64::MIN,
            index: Vec::new(),
            bytes,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.bytes.size()
    }

    pub(crate) fn append(&mut self, header: &BatchHeader, batch: Bytes) -> io::Result<()> {
        let position = self.bytes.size();
        self.bytes.append(batch)?;
        self.note(header, position);
        Ok(())
    }

    /// Takes a batch at `position` into the index.
    pub(crate) fn note(&mut self, header: &BatchHeader, position: u64) {
        let last = self.index.last().map(|entry| entry.position);
        if last.is_none_or(|last| position - last >= INDEX_INTERVAL) {
            self.index.push(IndexEntry {
                base_offset: header.base_offset,
                position,
                max_timestamp_before: self.max_timestamp,
            });
        }
        self.max_timestamp = self.max_timestamp.max(header.max_timestamp);
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.bytes.sync()
    }

    pub(crate) fn seal(&mut self) -> io::Result<()> {
        self.index.shrink_to_fit();
        self.bytes.seal()
    }

    pub(crate) fn remove(&mut self) -> io::Result<()> {
        self.bytes.remove()
    }

    /// A position at or before the batch that holds `offset`.
    pub(crate) fn position_before(&self, offset: i64) -> u64 {
        let after = self
            .index
            .partition_point(|entry| entry.base_offset <= offset);
        after.checked_sub(1).map_or(0, |i| self.index[i].position)
    }

    /// Whole batches from the one that holds `offset` on; `None` if all end before it.
    pub(crate) fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> io::Result<Option<Bytes>> {
        if max_bytes == 0 && !at_least_one {
            return Ok(Some(Bytes::new()));
        }
        let mut position = self.position_before(offset);
        let want = max_bytes
            .saturating_add(INDEX_INTERVAL as usize)
            .max(BATCH_HEADER);
        let mut bytes = self.bytes.read(position, want)?;
        loop {
            let Some(header) = BatchHeader::read(&bytes) else {
                if bytes.len() >= BATCH_HEADER {
                    return Err(io::Error::other("a record batch has an impossible length"));
                }
                if position + bytes.len() as u64 >= self.size() {
                    return Ok(None);
                }
                bytes = self.bytes.read(position, want)?;
                continue;
            };
            if header.last_offset() >= offset {
                return self
                    .take(position, &header, bytes, max_bytes, at_least_one)
                    .map(Some);
            }
            position += header.size as u64;
            bytes = if header.size <= bytes.len() {
                bytes.slice(header.size..)
            } else {
                self.bytes.read(position, want)?
            };
        }
    }

    /// Cuts `bytes`, which begins with the batch of `header` at `position`, after the last whole batch within `max_bytes`.
    fn take(
        &self,
        position: u64,
        header: &BatchHeader,
        bytes: Bytes,
        max_bytes: usize,
        at_least_one: bool,
    ) -> io::Result<Bytes> {
        if header.size > max_bytes {
            return if !at_least_one {
                Ok(Bytes::new())
            } else if header.size <= bytes.len() {
                Ok(bytes.slice(..header.size))
            } else {
                self.bytes.read(position, header.size)
            };
        }
        let bytes = if bytes.len() < max_bytes && position + (bytes.len() as u64) < self.size() {
            self.bytes.read(position, max_bytes)?
        } else {
            bytes
        };
        let limit = max_bytes.min(bytes.len());
        let mut end = 0;
        while let Some(next) = BatchHeader::read(&bytes[end..limit]) {
            if end + next.size > limit {
                break;
            }
            end += next.size;
        }
        Ok(bytes.slice(..end))
    }

    /// The first batch that is `wanted`, skipping what is surely before `timestamp`.
    pub(crate) fn find(
        &self,
        timestamp: i64,
        wanted: impl Fn(&BatchHeader) -> bool,
    ) -> io::Result<Option<Bytes>> {
        let after = self
            .index
            .partition_point(|entry| entry.max_timestamp_before < timestamp);
        let from = after.checked_sub(1).map_or(0, |i| self.index[i].position);
        let mut found = None;
        self.walk(from, |position, header| {
            if wanted(header) {
                found = Some((position, header.size));
            }
            found.is_none()
        })?;
        found
            .map(|(position, size)| self.bytes.read(position, size))
            .transpose()
    }

    /// Visits batch headers from `position` on until told to stop; gives where it ended.
    fn walk(
        &self,
        mut position: u64,
        mut visit: impl FnMut(u64, &BatchHeader) -> bool,
    ) -> io::Result<u64> {
        const CHUNK: usize = 64 * 1_024;
        let mut bytes = Bytes::new();
        loop {
            let Some(header) = BatchHeader::read(&bytes) else {
                if bytes.len() >= BATCH_HEADER || position + bytes.len() as u64 >= self.size() {
                    return Ok(position);
                }
                bytes = self.bytes.read(position, CHUNK)?;
                if bytes.len() < BATCH_HEADER {
                    return Ok(position);
                }
                continue;
            };
            if position + header.size as u64 > self.size() || !visit(position, &header) {
                return Ok(position);
            }
            position += header.size as u64;
            bytes = bytes.slice(header.size.min(bytes.len())..);
        }
    }

    /// Builds the index of bytes that are there already.
    pub(crate) fn index_all(&mut self) -> io::Result<()> {
        let mut position = 0;
        loop {
            let headers = self.headers(position)?;
            let Some((at, last)) = headers.last() else {
                return Ok(());
            };
            position = at + last.size as u64;
            for (at, header) in headers {
                self.note(&header, at);
            }
        }
    }

    /// The next headers from `position` on, some at a time: a segment may have more than fit in memory. Empty at the end, or
    /// where there is no whole batch.
    pub(crate) fn headers(&self, position: u64) -> io::Result<Vec<(u64, BatchHeader)>> {
        const AT_ONCE: usize = 4_096;
        let mut found = Vec::new();
        self.walk(position, |position, header| {
            found.push((position, *header));
            found.len() < AT_ONCE
        })?;
        Ok(found)
    }

    /// Bytes as they are.
    pub(crate) fn read_at(&self, position: u64, length: usize) -> io::Result<Bytes> {
        self.bytes.read(position, length)
    }

    pub(crate) fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.index.retain(|entry| entry.position < size);
        self.bytes.truncate(size)
    }
}
