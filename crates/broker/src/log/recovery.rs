//! Opening a log that was written before: the index and the producers are rebuilt, a torn tail is cut off.

use super::header::BatchHeader;
use super::segment::Segment;
use super::storage::SegmentStore;
use super::{LogConfig, PartitionLog};
use kohort_wire::records::Batch;
use std::io;

impl PartitionLog {
    /// The log that `store` holds; `now` is Unix milliseconds, `name` is for messages.
    pub(crate) fn open(
        config: LogConfig,
        mut store: Box<dyn SegmentStore>,
        now: i64,
        name: &str,
    ) -> io::Result<Self> {
        let found = store.list()?;
        let kept_start = store.start_offset()?;
        let mut log = Self::new(config, store);
        let count = found.len();
        for (i, (base_offset, bytes)) in found.into_iter().enumerate() {
            let mut segment = Segment::new(base_offset, now, bytes);
            let last = i + 1 == count;
            log.end_offset = log.end_offset.max(base_offset);
            log.scan(&mut segment, last, now, name)?;
            log.segments.push(segment);
        }
        log.start_offset = log.segments.first().map_or(0, |first| first.base_offset);
        if let Some(kept) = kept_start {
            log.start_offset = log.start_offset.max(kept);
            log.end_offset = log.end_offset.max(kept);
        }
        Ok(log)
    }

    /// Reads the headers of a segment; of the last one, which a crash may have torn, also the checksums.
    fn scan(&mut self, segment: &mut Segment, check: bool, now: i64, name: &str) -> io::Result<()> {
        let mut end = 0;
        'segment: loop {
            let headers = segment.headers(end)?;
            if headers.is_empty() {
                break;
            }
            for (position, header) in headers {
                if !self.follows(&header) || (check && !is_whole(segment, position, &header)?) {
                    break 'segment;
                }
                segment.note(&header, position);
                self.producers.appended(&header, header.max_timestamp, now);
                self.end_offset = header.last_offset() + 1;
                end = position + header.size as u64;
            }
        }
        if end < segment.size() {
            let (torn, base) = (segment.size() - end, segment.base_offset);
            tracing::warn!(
                "{name}: cut {torn} bytes off the segment that begins at {base}: they are no whole batch"
            );
            segment.truncate(end)?;
        }
        Ok(())
    }

    /// Whether a batch may be the next one.
    fn follows(&self, header: &BatchHeader) -> bool {
        header.magic == 2 && header.base_offset >= self.end_offset && header.last_offset_delta >= 0
    }
}

/// Whether a batch has the checksum that it says.
fn is_whole(segment: &Segment, position: u64, header: &BatchHeader) -> io::Result<bool> {
    let mut bytes = segment.read_at(position, header.size)?;
    let batch = Batch::split_from(&mut bytes).ok().flatten();
    Ok(batch.is_some_and(|batch| batch.check_crc().is_ok()))
}
