//! The log of one partition: record batches, kept as they came, in segments.
//!
//! ```text
//!   start_offset                                  end_offset
//!        ▼                                             ▼
//!   [ segment 0 ][ segment 40 ][ segment 71 (active)   ]
//!                  └ index: an entry every few KiB → position → batch headers → the batch
//! ```

mod compaction;
mod disk;
mod header;
mod producers;
mod recovery;
mod retention;
mod segment;
mod storage;

use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::records::{self, Batch};
use producers::{Producers, Verdict};
use segment::Segment;
use std::io;

pub(crate) use disk::{DiskStore, write_whole};
pub(crate) use header::BatchHeader;
pub(crate) use storage::{MemoryStore, SegmentStore};

/// What the log of a partition obeys; from the topic's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogConfig {
    pub(crate) segment_bytes: u64,
    pub(crate) roll_ms: i64,
    /// −1: for ever.
    pub(crate) retention_ms: i64,
    /// −1: all.
    pub(crate) retention_bytes: i64,
    pub(crate) max_message_bytes: usize,
    pub(crate) log_append_time: bool,
    /// How far ahead of the broker's clock a producer's timestamps may be, milliseconds.
    pub(crate) timestamp_after_max_ms: i64,
    pub(crate) delete: bool,
    pub(crate) compact: bool,
    /// Records after which the file is synced before they are acknowledged.
    pub(crate) flush_messages: i64,
}

/// A batch that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppendInfo {
    pub(crate) base_offset: i64,
    /// −1 unless the broker stamped the batch.
    pub(crate) log_append_time: i64,
    pub(crate) start_offset: i64,
}

/// The log of one partition.
pub(crate) struct PartitionLog {
    config: LogConfig,
    store: Box<dyn SegmentStore>,
    /// Oldest first; the last one is appended to. Empty until the first append.
    segments: Vec<Segment>,
    start_offset: i64,
    end_offset: i64,
    producers: Producers,
    unflushed: i64,
    /// The last append failed; it was said once.
    failing: bool,
    /// What the last compaction left.
    compacted_size: u64,
}

impl PartitionLog {
    /// An empty log.
    pub(crate) fn new(config: LogConfig, store: Box<dyn SegmentStore>) -> Self {
        Self {
            config,
            store,
            segments: Vec::new(),
            start_offset: 0,
            end_offset: 0,
            producers: Producers::default(),
            unflushed: 0,
            failing: false,
            compacted_size: 0,
        }
    }

    pub(crate) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    pub(crate) fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The largest batch that is taken, bytes.
    pub(crate) fn max_message_bytes(&self) -> usize {
        self.config.max_message_bytes
    }

    pub(crate) fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// Bytes of all segments.
    pub(crate) fn size(&self) -> u64 {
        self.segments.iter().map(Segment::size).sum()
    }

    /// Appends one batch as a producer sent it; `now` is Unix milliseconds.
    pub(crate) fn append(&mut self, batch: &Bytes, now: i64) -> Result<AppendInfo, ErrorCode> {
        let mut header = self.check(batch, now)?;
        match self.producers.judge(&header) {
            Verdict::Append => {}
            Verdict::Refuse(code) => return Err(code),
            Verdict::Duplicate(base_offset, timestamp) => {
                return Ok(self.info(base_offset, timestamp));
            }
        }
        let mut bytes = batch.to_vec();
        records::place(&mut bytes, self.end_offset, 0);
        header.base_offset = self.end_offset;
        if self.config.log_append_time {
            records::set_log_append_time(&mut bytes, now);
            header.max_timestamp = now;
        }
        let stored = self.store_batch(&header, bytes.into(), now);
        if let Err(error) = &stored
            && !self.failing
        {
            tracing::error!(
                "cannot append to the log: {error}; batches are refused until that is mended"
            );
        } else if stored.is_ok() && self.failing {
            tracing::warn!("the log can be appended to again");
        }
        self.failing = stored.is_err();
        stored.map_err(|_| ErrorCode::KafkaStorageError)?;
        self.end_offset = header.last_offset() + 1;
        self.producers.appended(&header, now, now);
        Ok(self.info(header.base_offset, now))
    }

    fn info(&self, base_offset: i64, appended: i64) -> AppendInfo {
        AppendInfo {
            base_offset,
            log_append_time: if self.config.log_append_time {
                appended
            } else {
                -1
            },
            start_offset: self.start_offset,
        }
    }

    /// What a batch must be before it is stored.
    fn check(&self, batch: &Bytes, now: i64) -> Result<BatchHeader, ErrorCode> {
        let produced = Batch::produced(batch.clone()).map_err(|error| {
            tracing::debug!("{error}");
            error.error_code()
        })?;
        if batch.len() > self.config.max_message_bytes {
            return Err(ErrorCode::MessageTooLarge);
        }
        if produced.header().attributes.is_transactional() {
            return Err(ErrorCode::InvalidRecord);
        }
        let ahead = produced.header().max_timestamp.saturating_sub(now);
        if !self.config.log_append_time && ahead > self.config.timestamp_after_max_ms {
            return Err(ErrorCode::InvalidTimestamp);
        }
        BatchHeader::read(batch).ok_or(ErrorCode::CorruptMessage)
    }

    fn store_batch(&mut self, header: &BatchHeader, bytes: Bytes, now: i64) -> io::Result<()> {
        let full = self.segments.last().is_none_or(|active| {
            active.size() > 0
                && (active.size() + bytes.len() as u64 > self.config.segment_bytes
                    || now - active.created > self.config.roll_ms)
        });
        if full {
            self.roll(now)?;
        }
        let Some(active) = self.segments.last_mut() else {
            return Err(io::Error::other("the log has no segment"));
        };
        let before = active.size();
        active.append(header, bytes)?;
        self.unflushed = self.unflushed.saturating_add(i64::from(header.count));
        if self.unflushed >= self.config.flush_messages {
            if let Err(error) = active.sync() {
                // What cannot be acknowledged must not be there either.
                active.truncate(before)?;
                return Err(error);
            }
            self.unflushed = 0;
        }
        Ok(())
    }

    /// Closes the active segment and begins another.
    fn roll(&mut self, now: i64) -> io::Result<()> {
        if let Some(active) = self.segments.last_mut() {
            active.seal()?;
        }
        let bytes = self.store.create(self.end_offset)?;
        self.segments
            .push(Segment::new(self.end_offset, now, bytes));
        Ok(())
    }

    /// Whole batches from the one that holds `offset` on, as many as fit into `max_bytes`; the first one even if it does not
    /// where `at_least_one` says so. Nothing at the end of the log.
    pub(crate) fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        at_least_one: bool,
    ) -> Result<Bytes, ErrorCode> {
        if offset < self.start_offset || offset > self.end_offset {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        let first = self
            .segments
            .partition_point(|segment| segment.base_offset <= offset);
        // A gap left by compaction may make the search go on in the next segment.
        for segment in &self.segments[first.saturating_sub(1)..] {
            let found = segment.read(offset, max_bytes, at_least_one);
            match found.map_err(storage_error)? {
                Some(bytes) => return Ok(bytes),
                None => continue,
            }
        }
        Ok(Bytes::new())
    }

    /// How many bytes there are from `offset` to the end, roughly; enough to decide whether a fetch has to wait.
    pub(crate) fn available(&self, offset: i64) -> u64 {
        if offset >= self.end_offset {
            return 0;
        }
        let first = self
            .segments
            .partition_point(|segment| segment.base_offset <= offset);
        let segments = &self.segments[first.saturating_sub(1)..];
        let total: u64 = segments.iter().map(Segment::size).sum();
        total.saturating_sub(
            segments
                .first()
                .map_or(0, |first| first.position_before(offset)),
        )
    }

    /// The first batch that may hold a record with this timestamp or a later one.
    pub(crate) fn batch_at_time(&self, timestamp: i64) -> Result<Option<Bytes>, ErrorCode> {
        for segment in &self.segments {
            if segment.max_timestamp < timestamp {
                continue;
            }
            let wanted = |header: &BatchHeader| {
                header.max_timestamp >= timestamp && header.last_offset() >= self.start_offset
            };
            if let Some(batch) = segment.find(timestamp, wanted).map_err(storage_error)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// The latest timestamp in the log.
    pub(crate) fn max_timestamp(&self) -> Option<i64> {
        self.segments
            .iter()
            .filter(|segment| segment.size() > 0)
            .map(|segment| segment.max_timestamp)
            .max()
    }
}

fn storage_error(error: io::Error) -> ErrorCode {
    tracing::error!("cannot read the log: {error}");
    ErrorCode::KafkaStorageError
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
