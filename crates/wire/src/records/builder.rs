//! Writes a batch.

use super::batch::{Attributes, HEADER_SIZE, seal};
use super::{Compression, RecordError, RecordHeader};
use crate::primitives::Encoder;
use bytes::{Bytes, BytesMut};

/// Collects records and makes a batch of them.
///
/// ```
/// use kohort_wire::records::{BatchBuilder, Compression, batches};
///
/// let mut builder = BatchBuilder::new(Compression::Lz4);
/// builder.push(1_700_000_000_000, Some(b"key"), Some(b"value"), &[])?;
/// let bytes = builder.build()?;
///
/// for batch in batches(bytes) {
///     let batch = batch?;
///     batch.check_crc()?;
///     for record in batch.records(1 << 20)? {
///         assert_eq!(record?.value.as_deref(), Some(&b"value"[..]));
///     }
/// }
/// # Ok::<(), kohort_wire::records::RecordError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    /// Room for the header, then the records.
    buffer: Encoder,
    compression: Compression,
    attributes: i16,
    base_offset: i64,
    partition_leader_epoch: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    count: i32,
}

impl BatchBuilder {
    /// An empty batch of a producer that is not idempotent.
    #[must_use]
    pub fn new(compression: Compression) -> Self {
        Self {
            buffer: Encoder::from_buffer(BytesMut::zeroed(HEADER_SIZE)),
            compression,
            attributes: i16::from(compression.number()),
            base_offset: 0,
            partition_leader_epoch: -1,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: 0,
        }
    }

    /// The idempotent producer's id and epoch, and the first record's sequence number (KIP-98).
    #[must_use]
    pub fn producer(self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        Self {
            producer_id: id,
            producer_epoch: epoch,
            base_sequence,
            ..self
        }
    }

    /// Makes it a part of the producer's transaction.
    #[must_use]
    pub fn transactional(mut self) -> Self {
        self.attributes |= Attributes::TRANSACTIONAL;
        self
    }

    /// Makes it a control batch, which only brokers may write.
    #[must_use]
    pub fn control(mut self) -> Self {
        self.attributes |= Attributes::CONTROL;
        self
    }

    /// Its place in a log; 0 and −1 from producers.
    #[must_use]
    pub fn placed(self, base_offset: i64, partition_leader_epoch: i32) -> Self {
        Self {
            base_offset,
            partition_leader_epoch,
            ..self
        }
    }

    /// How many records it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether it has no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its size in bytes without compression, header included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.buffer.len()
    }

    /// The most bytes by which such a record could make a batch grow.
    #[must_use]
    pub fn record_size(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader],
    ) -> usize {
        // Length 5, attributes 1, timestamp 10, offset 5, and the lengths of key, value and headers, 5 each.
        let fixed = 5 + 1 + 10 + 5 + 3 * 5;
        let headers = headers
            .iter()
            .map(|header| 10 + header.key.len() + header.value.as_ref().map_or(0, Bytes::len));
        fixed + key.map_or(0, <[u8]>::len) + value.map_or(0, <[u8]>::len) + headers.sum::<usize>()
    }

    /// Adds a record; `timestamp` in milliseconds since 1970.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`] if the batch would have more than 2 GiB or 2³¹ − 1 records; it then stays as it was.
    pub fn push(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[RecordHeader],
    ) -> Result<(), RecordError> {
        let limit = i32::MAX as usize;
        if self.count == i32::MAX || self.size() + Self::record_size(key, value, headers) > limit {
            return Err(RecordError::TooLarge { limit });
        }
        if self.count == 0 {
            (self.base_timestamp, self.max_timestamp) = (timestamp, timestamp);
        }
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let size = 1
            + varlong_size(timestamp_delta)
            + varint_size(self.count)
            + bytes_size(key)
            + bytes_size(value)
            + varint_size(headers.len() as i32)
            + headers
                .iter()
                .map(|header| {
                    bytes_size(Some(header.key.as_bytes())) + bytes_size(header.value.as_deref())
                })
                .sum::<usize>();
        let to = &mut self.buffer;
        to.varint(size as i32);
        to.i8(0);
        to.varlong(timestamp_delta);
        to.varint(self.count);
        put_bytes(to, key);
        put_bytes(to, value);
        to.varint(headers.len() as i32);
        for header in headers {
            put_bytes(to, Some(header.key.as_bytes()));
            put_bytes(to, header.value.as_deref());
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        self.count += 1;
        Ok(())
    }

    /// The batch.
    ///
    /// # Errors
    /// [`RecordError::Refused`] if it has no records.
    pub fn build(self) -> Result<Bytes, RecordError> {
        if self.count == 0 {
            return Err(RecordError::Refused("a batch needs at least one record"));
        }
        let header = self.header();
        let plain = self.buffer.into_bytes();
        if self.compression == Compression::None {
            let mut batch = plain;
            finish(header, &mut batch);
            return Ok(batch.freeze());
        }
        let mut batch = Vec::with_capacity(HEADER_SIZE + plain.len() / 2);
        batch.resize(HEADER_SIZE, 0);
        self.compression
            .compress(&plain[HEADER_SIZE..], &mut batch)?;
        finish(header, &mut batch);
        Ok(batch.into())
    }

    /// The header, but for length and checksum.
    fn header(&self) -> BytesMut {
        let mut to = Encoder::from_buffer(BytesMut::with_capacity(HEADER_SIZE));
        to.i64(self.base_offset);
        to.i32(0);
        to.i32(self.partition_leader_epoch);
        to.i8(2);
        to.i32(0);
        to.i16(self.attributes);
        to.i32(self.count - 1);
        to.i64(self.base_timestamp);
        to.i64(self.max_timestamp);
        to.i64(self.producer_id);
        to.i16(self.producer_epoch);
        to.i32(self.base_sequence);
        to.i32(self.count);
        to.into_bytes()
    }
}

fn finish(header: BytesMut, batch: &mut [u8]) {
    let length = (batch.len() - 12) as i32;
    batch[..HEADER_SIZE].copy_from_slice(&header);
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    seal(batch);
}

fn put_bytes(to: &mut Encoder, bytes: Option<&[u8]>) {
    match bytes {
        None => to.varint(-1),
        Some(bytes) => {
            to.varint(bytes.len() as i32);
            to.raw(bytes);
        }
    }
}

fn bytes_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint_size(bytes.len() as i32) + bytes.len())
}

fn varint_size(value: i32) -> usize {
    varlong_size(i64::from(value))
}

/// Bytes of a zigzag varint, seven bits in each.
fn varlong_size(value: i64) -> usize {
    let raw = ((value << 1) ^ (value >> 63)) as u64;
    (64 - (raw | 1).leading_zeros() as usize).div_ceil(7)
}
