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
        let mut headers: Vec<(u64, BatchHeader)> = Vec::new();
        let mut next = self.end_offset;
        let mut failure = None;
        let end = segment.walk(0, |position, header| {
            let whole = || -> io::Result<bool> {
                let mut bytes = segment.read_at(position, header.size)?;
                let batch = Batch::split_from(&mut bytes);
                Ok(batch.is_ok_and(|batch| batch.is_some_and(|batch| batch.check_crc().is_ok())))
            };
            let good =
                header.magic == 2 && header.base_offset >= next && header.last_offset_delta >= 0;
            match (good, check.then(whole)) {
                (true, None | Some(Ok(true))) => {
                    next = header.last_offset() + 1;
                    headers.push((position, *header));
                    true
                }
                (_, Some(Err(error))) => {
                    failure = Some(error);
                    false
                }
                _ => false,
            }
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        if end < segment.size() {
            let torn = segment.size() - end;
            tracing::warn!(
                "{name}: cut {torn} bytes off the segment that begins at {}: they are no whole batch",
                segment.base_offset
            );
            segment.truncate(end)?;
        }
        for (position, header) in headers {
            segment.note(&header, position);
            self.producers.appended(&header, header.max_timestamp, now);
        }
        self.end_offset = next;
        Ok(())
    }
}
