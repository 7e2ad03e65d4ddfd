//! What leaves a log at its beginning: by age, by size, by request.

use super::PartitionLog;
use kohort_wire::ErrorCode;
use std::io;

impl PartitionLog {
    /// Removes segments that are too old or too many, and forgets silent producers; gives how many segments went.
    /// The active segment goes too if all of it is too old (`now`: Unix milliseconds).
    pub(crate) fn expire(&mut self, now: i64, producers_silent_ms: i64) -> io::Result<usize> {
        self.producers.expire(now - producers_silent_ms);
        if !self.config.delete {
            return Ok(0);
        }
        let mut removed = 0;
        while let Some(first) = self.segments.first() {
            let old = self.config.retention_ms >= 0
                && first.size() > 0
                && now - first.max_timestamp > self.config.retention_ms;
            let beyond = self.config.retention_bytes >= 0
                && self.segments.len() > 1
                && self.size() - first.size() >= self.config.retention_bytes as u64;
            if !old && !beyond {
                break;
            }
            if self.segments.len() == 1 {
                self.roll(now)?;
            }
            self.remove_first()?;
            removed += 1;
        }
        Ok(removed)
    }

    fn remove_first(&mut self) -> io::Result<()> {
        let mut first = self.segments.remove(0);
        first.remove()?;
        if let Some(next) = self.segments.first() {
            self.start_offset = self.start_offset.max(next.base_offset);
        }
        Ok(())
    }

    /// Makes `offset` the first one that can be read (DeleteRecords); −1 stands for the end.
    pub(crate) fn delete_before(&mut self, offset: i64) -> Result<i64, ErrorCode> {
        let offset = if offset == -1 {
            self.end_offset
        } else {
            offset
        };
        if offset < 0 || offset > self.end_offset {
            return Err(ErrorCode::OffsetOutOfRange);
        }
        if offset > self.start_offset {
            self.store
                .keep_start_offset(offset)
                .map_err(super::storage_error)?;
            self.start_offset = offset;
            while self.segments.len() > 1 && self.segments[1].base_offset <= offset {
                self.remove_first().map_err(super::storage_error)?;
            }
        }
        Ok(self.start_offset)
    }

    /// Removes everything, when the topic is deleted.
    pub(crate) fn remove_all(&mut self) {
        for mut segment in self.segments.drain(..) {
            if let Err(error) = segment.remove() {
                tracing::warn!("cannot remove a segment of a deleted topic: {error}");
            }
        }
        self.start_offset = self.end_offset;
    }
}
