//! Where the bytes of a segment are: the small trait behind which memory and disk are alike.

use bytes::{Bytes, BytesMut};
use std::io;

/// The bytes of one segment: append at the end, read anywhere.
pub(crate) trait SegmentBytes: Send {
    /// How many bytes there are.
    fn size(&self) -> u64;
    /// Appends all of `batch`, or fails and leaves the segment as it was.
    fn append(&mut self, batch: Bytes) -> io::Result<()>;
    /// Up to `length` bytes from `position`; fewer only at the end.
    fn read(&self, position: u64, length: usize) -> io::Result<Bytes>;
    /// Cuts off all bytes from `size` on.
    fn truncate(&mut self, size: u64) -> io::Result<()>;
    /// Makes everything appended so far survive the end of the machine.
    fn sync(&mut self) -> io::Result<()>;
    /// No more appends are to come: whatever they need may be let go.
    fn seal(&mut self) -> io::Result<()>;
    /// Removes the segment from where it is kept.
    fn remove(&mut self) -> io::Result<()>;
}

/// Makes the segments of one partition.
pub(crate) trait SegmentStore: Send {
    /// The segments that are there, by base offset.
    fn list(&mut self) -> io::Result<Vec<(i64, Box<dyn SegmentBytes>)>>;
    /// A new, empty segment.
    fn create(&mut self, base_offset: i64) -> io::Result<Box<dyn SegmentBytes>>;
    /// A segment with these batches, in place of the one that begins at the same offset.
    fn replace(&mut self, base_offset: i64, batches: &[Bytes])
    -> io::Result<Box<dyn SegmentBytes>>;
    /// The offset that was kept last.
    fn start_offset(&mut self) -> io::Result<Option<i64>>;
    /// Keeps the offset before which records are gone (DeleteRecords).
    fn keep_start_offset(&mut self, offset: i64) -> io::Result<()>;
}

/// A segment in memory: the batches as they were appended.
#[derive(Default)]
struct MemorySegment {
    /// Where each batch begins, and the batch.
    batches: Vec<(u64, Bytes)>,
    size: u64,
}

impl SegmentBytes for MemorySegment {
    fn size(&self) -> u64 {
        self.size
    }

    fn append(&mut self, batch: Bytes) -> io::Result<()> {
        let at = self.size;
        self.size += batch.len() as u64;
        self.batches.push((at, batch));
        Ok(())
    }

    fn read(&self, position: u64, length: usize) -> io::Result<Bytes> {
        let first = self.batches.partition_point(|(at, _)| *at <= position);
        let Some((at, batch)) = first.checked_sub(1).and_then(|i| self.batches.get(i)) else {
            return Ok(Bytes::new());
        };
        let skip = (position - at) as usize;
        if skip >= batch.len() {
            return Ok(Bytes::new());
        }
        let head = batch.slice(skip..);
        if head.len() >= length {
            return Ok(head.slice(..length));
        }
        let wanted = length.min((self.size - position) as usize);
        let mut all = BytesMut::with_capacity(wanted);
        all.extend_from_slice(&head);
        for (_, batch) in &self.batches[first..] {
            let room = wanted - all.len();
            if room == 0 {
                break;
            }
            all.extend_from_slice(&batch[..batch.len().min(room)]);
        }
        Ok(all.freeze())
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.batches.retain(|(at, _)| *at < size);
        self.size = self.size.min(size);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn seal(&mut self) -> io::Result<()> {
        self.batches.shrink_to_fit();
        Ok(())
    }

    fn remove(&mut self) -> io::Result<()> {
        *self = Self::default();
        Ok(())
    }
}

/// Segments in memory.
pub(crate) struct MemoryStore;

impl SegmentStore for MemoryStore {
    fn list(&mut self) -> io::Result<Vec<(i64, Box<dyn SegmentBytes>)>> {
        Ok(Vec::new())
    }

    fn create(&mut self, _: i64) -> io::Result<Box<dyn SegmentBytes>> {
        Ok(Box::<MemorySegment>::default())
    }

    fn replace(&mut self, _: i64, batches: &[Bytes]) -> io::Result<Box<dyn SegmentBytes>> {
        let mut segment = MemorySegment::default();
        for batch in batches {
            segment.append(batch.clone())?;
        }
        Ok(Box::new(segment))
    }

    fn start_offset(&mut self) -> io::Result<Option<i64>> {
        Ok(None)
    }

    fn keep_start_offset(&mut self, _: i64) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_read_may_begin_and_end_anywhere() {
        let mut segment = MemoryStore.create(0).unwrap();
        for batch in ["abc", "de", "fghi"] {
            segment
                .append(Bytes::from_static(batch.as_bytes()))
                .unwrap();
        }
        let all = b"abcdefghi";
        for from in 0..=all.len() {
            for length in 0..=10 {
                let to = (from + length).min(all.len());
                assert_eq!(
                    &segment.read(from as u64, length).unwrap()[..],
                    &all[from..to]
                );
            }
        }
    }
}
