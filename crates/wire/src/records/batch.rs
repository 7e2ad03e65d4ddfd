//! A batch and its header.

use super::{Compression, RecordError, Records};
use bytes::{Buf, Bytes, BytesMut};

/// Bytes before a batch's records.
pub const HEADER_SIZE: usize = 61;
/// Bytes that the length field does not count: the base offset and itself.
const BEFORE_LENGTH: usize = 12;
const MAGIC_AT: usize = 16;
const CRC_AT: usize = 17;
const ATTRIBUTES_AT: usize = 21;
const MAX_TIMESTAMP_AT: usize = 35;

/// What a record's timestamp means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimestampType {
    /// The producer's time.
    CreateTime,
    /// The time at which the broker appended the batch, the same for all its records.
    LogAppendTime,
}

/// A batch's flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes(
    /// The bits: 0–2 codec, 3 LogAppendTime, 4 transactional, 5 control, 6 delete horizon.
    pub i16,
);

impl Attributes {
    pub(super) const LOG_APPEND_TIME: i16 = 1 << 3;
    pub(super) const TRANSACTIONAL: i16 = 1 << 4;
    pub(super) const CONTROL: i16 = 1 << 5;

    /// The codec of the records.
    ///
    /// # Errors
    /// [`RecordError::UnknownCompression`] above 4.
    pub fn compression(self) -> Result<Compression, RecordError> {
        Compression::from_number((self.0 & 7) as u8)
    }

    /// What the timestamps mean.
    #[must_use]
    pub fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Whether it holds a marker of the broker, such as the end of a transaction, and nothing for applications.
    #[must_use]
    pub fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is the time after which tombstones may go (KIP-534).
    #[must_use]
    pub fn has_delete_horizon(self) -> bool {
        self.0 & 1 << 6 != 0
    }
}

/// What stands before a batch's records.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BatchHeader {
    /// The offset that the deltas count from; the producer writes 0, the broker the real one.
    pub base_offset: i64,
    /// Bytes of the batch after this field.
    pub batch_length: i32,
    /// The epoch of the leader that appended it, −1 from producers.
    pub partition_leader_epoch: i32,
    /// CRC-32C of everything from the attributes on.
    pub crc: u32,
    /// The flags.
    pub attributes: Attributes,
    /// The last offset less the base offset. It survives compaction, even where the last record does not.
    pub last_offset_delta: i32,
    /// Milliseconds since 1970 that the records' timestamps count from.
    pub base_timestamp: i64,
    /// The largest timestamp, milliseconds since 1970; with LogAppendTime that of all records.
    pub max_timestamp: i64,
    /// The producer's id, −1 if it is not idempotent.
    pub producer_id: i64,
    /// The producer's epoch, −1 if it is not idempotent.
    pub producer_epoch: i16,
    /// The first record's sequence number, −1 if the producer is not idempotent.
    pub base_sequence: i32,
    /// How many records it says it has; not to be trusted.
    pub record_count: i32,
}

impl BatchHeader {
    fn read(mut from: &[u8]) -> Self {
        let (base_offset, batch_length, partition_leader_epoch) =
            (from.get_i64(), from.get_i32(), from.get_i32());
        from.advance(1);
        Self {
            base_offset,
            batch_length,
            partition_leader_epoch,
            crc: from.get_u32(),
            attributes: Attributes(from.get_i16()),
            last_offset_delta: from.get_i32(),
            base_timestamp: from.get_i64(),
            max_timestamp: from.get_i64(),
            producer_id: from.get_i64(),
            producer_epoch: from.get_i16(),
            base_sequence: from.get_i32(),
            record_count: from.get_i32(),
        }
    }

    /// The offset of the last record that the batch had when it was written.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.base_offset
            .saturating_add(i64::from(self.last_offset_delta))
    }

    /// The first offset after the batch: where a reader goes on, whatever compaction left of the records.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// The last record's sequence number, −1 if the producer is not idempotent. Sequence numbers start again at 0 after the maximum.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        let last = i64::from(self.base_sequence) + i64::from(self.last_offset_delta);
        last.rem_euclid(i64::from(i32::MAX) + 1) as i32
    }
}

/// A whole batch, kept as it came: a slice of the buffer it was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
}

impl Batch {
    /// Splits the first batch off `from`; `None` if `from` is empty or its first batch is cut short.
    ///
    /// # Errors
    /// [`RecordError::UnknownMagic`] or [`RecordError::BadLength`].
    pub fn split_from(from: &mut Bytes) -> Result<Option<Self>, RecordError> {
        if let Some(&magic) = from.get(MAGIC_AT)
            && magic != 2
        {
            return Err(RecordError::UnknownMagic(magic as i8));
        }
        let Some(length) = declared_length(from) else {
            return Ok(None);
        };
        if length < (HEADER_SIZE - BEFORE_LENGTH) as i32 {
            return Err(RecordError::BadLength(length));
        }
        let size = BEFORE_LENGTH + length as usize;
        if from.len() < size {
            return Ok(None);
        }
        let bytes = from.split_to(size);
        Ok(Some(Self {
            header: BatchHeader::read(&bytes),
            bytes,
        }))
    }

    /// The one batch that a producer sent, checked as Kafka checks it before it looks at the records: whole, nothing after it,
    /// checksum, count, no control batch, a sequence number where there is a producer id. Nothing is decompressed.
    ///
    /// # Errors
    /// [`RecordError`]; see [`RecordError::error_code`] for what to answer.
    pub fn produced(mut records: Bytes) -> Result<Self, RecordError> {
        let batch = Self::split_from(&mut records)?
            .ok_or(RecordError::Refused("expected one whole batch, got less"))?;
        if !records.is_empty() {
            return Err(RecordError::Refused(
                "expected exactly one batch, but bytes follow it",
            ));
        }
        batch.check_crc()?;
        let header = &batch.header;
        header.attributes.compression()?;
        if header.record_count <= 0
            || i64::from(header.last_offset_delta) + 1 != i64::from(header.record_count)
        {
            return Err(RecordError::BadCount {
                declared: header.record_count,
                found: "its offsets span another number",
            });
        }
        if header.attributes.is_control() {
            return Err(RecordError::Refused(
                "only brokers may write control batches",
            ));
        }
        if header.producer_id >= 0 && header.base_sequence < 0 {
            return Err(RecordError::Refused(
                "it has a producer id, but no sequence number",
            ));
        }
        if header.attributes.is_transactional() && header.producer_id < 0 {
            return Err(RecordError::Refused(
                "it is transactional, but has no producer id",
            ));
        }
        Ok(batch)
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch, header and all.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole batch, header and all.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The records, compressed as they are.
    #[must_use]
    pub fn payload(&self) -> Bytes {
        self.bytes.slice(HEADER_SIZE..)
    }

    /// Compares the checksum with the bytes.
    ///
    /// # Errors
    /// [`RecordError::BadChecksum`].
    pub fn check_crc(&self) -> Result<(), RecordError> {
        let (stored, computed) = (
            self.header.crc,
            crc32c::crc32c(&self.bytes[ATTRIBUTES_AT..]),
        );
        if stored == computed {
            Ok(())
        } else {
            Err(RecordError::BadChecksum { stored, computed })
        }
    }

    /// The records. They are decompressed at once, into at most `limit` bytes; without compression nothing is copied.
    /// The checksum is not looked at; see [`Batch::check_crc`].
    ///
    /// # Errors
    /// [`RecordError::UnknownCompression`], [`RecordError::Decompression`], [`RecordError::TooLarge`]; the iterator yields what
    /// is wrong with a record.
    pub fn records(&self, limit: usize) -> Result<Records, RecordError> {
        let payload = match self.header.attributes.compression()? {
            Compression::None => self.payload(),
            codec => codec.decompress(&self.bytes[HEADER_SIZE..], limit)?.into(),
        };
        Ok(Records::new(&self.header, payload))
    }

    /// The batch at its place in a log. The bytes are changed where they are if nobody shares their buffer, and copied otherwise.
    #[must_use]
    pub fn placed(self, base_offset: i64, partition_leader_epoch: i32) -> Self {
        let mut bytes = self
            .bytes
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        place(&mut bytes, base_offset, partition_leader_epoch);
        Self {
            header: BatchHeader {
                base_offset,
                partition_leader_epoch,
                ..self.header
            },
            bytes: bytes.freeze(),
        }
    }
}

/// Writes base offset and leader epoch into a batch's bytes. The checksum does not cover them, so it stays valid.
///
/// # Panics
/// If `batch` is shorter than [`HEADER_SIZE`].
pub fn place(batch: &mut [u8], base_offset: i64, partition_leader_epoch: i32) {
    assert!(batch.len() >= HEADER_SIZE, "not a whole batch");
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[BEFORE_LENGTH..MAGIC_AT].copy_from_slice(&partition_leader_epoch.to_be_bytes());
}

/// Gives all records of a batch the broker's time (`message.timestamp.type=LogAppendTime`), without touching the records; the
/// checksum is computed anew.
///
/// # Panics
/// If `batch` is shorter than [`HEADER_SIZE`].
pub fn set_log_append_time(batch: &mut [u8], timestamp: i64) {
    assert!(batch.len() >= HEADER_SIZE, "not a whole batch");
    batch[ATTRIBUTES_AT + 1] |= Attributes::LOG_APPEND_TIME as u8;
    batch[MAX_TIMESTAMP_AT..MAX_TIMESTAMP_AT + 8].copy_from_slice(&timestamp.to_be_bytes());
    seal(batch);
}

/// Writes the checksum.
pub(super) fn seal(batch: &mut [u8]) {
    let crc = crc32c::crc32c(&batch[ATTRIBUTES_AT..]);
    batch[CRC_AT..ATTRIBUTES_AT].copy_from_slice(&crc.to_be_bytes());
}

fn declared_length(bytes: &[u8]) -> Option<i32> {
    let length = bytes.get(8..)?.first_chunk::<4>()?;
    Some(i32::from_be_bytes(*length))
}

/// The batches of a fetch or of a part of a log. A last one that is cut short is left out, as brokers may cut it (KIP-74).
#[must_use]
pub fn batches(bytes: Bytes) -> Batches {
    Batches { rest: bytes }
}

/// See [`batches`]. It ends after an error: where the next batch begins is then unknown.
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
}

impl Batches {
    /// What was not read: after the end, a batch that is cut short.
    #[must_use]
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }

    /// After the end: how many bytes the batch that was cut short would take, as far as it says so. A fetch that brought
    /// nothing else has to be repeated with at least that much.
    #[must_use]
    pub fn wanted(&self) -> Option<usize> {
        let length = declared_length(&self.rest)?;
        Some(BEFORE_LENGTH + usize::try_from(length).ok()?)
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = Batch::split_from(&mut self.rest).transpose();
        if let Some(Err(_)) = next {
            self.rest = Bytes::new();
        }
        next
    }
}
