//! The fixed part of a record batch (v2), as the log needs it: batches are kept as they came, so no more than this is read.

use kohort_wire::records;

/// Bytes before the first record.
pub(crate) const BATCH_HEADER: usize = records::HEADER_SIZE;
/// Bytes before the part that the length field counts.
const PREFIX: usize = 12;

/// The fields of a batch header that the log looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) base_offset: i64,
    /// The whole batch, bytes.
    pub(crate) size: usize,
    pub(crate) magic: i8,
    pub(crate) last_offset_delta: i32,
    pub(crate) max_timestamp: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) count: i32,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl BatchHeader {
    /// Reads a header; `None` if the bytes are too few or its length is impossible.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < BATCH_HEADER {
            return None;
        }
        let length = i32::from_be_bytes(number(bytes, 8));
        let size = usize::try_from(length).ok()? + PREFIX;
        if size < BATCH_HEADER {
            return None;
        }
        Some(Self {
            base_offset: i64::from_be_bytes(number(bytes, 0)),
            size,
            magic: bytes[16] as i8,
            last_offset_delta: i32::from_be_bytes(number(bytes, 23)),
            max_timestamp: i64::from_be_bytes(number(bytes, 35)),
            producer_id: i64::from_be_bytes(number(bytes, 43)),
            producer_epoch: i16::from_be_bytes(number(bytes, 51)),
            base_sequence: i32::from_be_bytes(number(bytes, 53)),
            count: i32::from_be_bytes(number(bytes, 57)),
        })
    }

    pub(crate) fn last_offset(&self) -> i64 {
        self.base_offset + i64::from(self.last_offset_delta)
    }

    pub(crate) fn last_sequence(&self) -> i32 {
        // Sequences go round from the largest to 0.
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        (last % (i64::from(i32::MAX) + 1)) as i32
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A batch whose records are not looked into: `payload` stands for them.
    pub(crate) fn batch(
        count: i32,
        timestamp: i64,
        producer: (i64, i16, i32),
        payload: &[u8],
    ) -> Vec<u8> {
        let mut bytes = vec![0; BATCH_HEADER];
        bytes.extend_from_slice(payload);
        let length = (bytes.len() - PREFIX) as i32;
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        bytes[16] = 2;
        bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
        bytes[27..35].copy_from_slice(&timestamp.to_be_bytes());
        bytes[35..43].copy_from_slice(&timestamp.to_be_bytes());
        bytes[43..51].copy_from_slice(&producer.0.to_be_bytes());
        bytes[51..53].copy_from_slice(&producer.1.to_be_bytes());
        bytes[53..57].copy_from_slice(&producer.2.to_be_bytes());
        bytes[57..61].copy_from_slice(&count.to_be_bytes());
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    #[test]
    fn a_length_that_cannot_be_is_no_header() {
        let mut bytes = batch(1, 0, (-1, -1, -1), b"");
        bytes[8..12].copy_from_slice(&(-5_i32).to_be_bytes());
        assert_eq!(BatchHeader::read(&bytes), None);
        assert_eq!(BatchHeader::read(&bytes[..60]), None);
    }
}
