//! Record batches of version 2 (magic 2, KIP-98), as Produce and Fetch carry them and as logs keep them.
//!
//! ```text
//!   Bytes ─▶ batches() ─▶ Batch ─▶ records(limit) ─▶ Record (slices of the batch, or of what it was decompressed to)
//!                          └─ header, checksum, checks of a broker: without decompressing
//!   BatchBuilder ─▶ Bytes
//! ```
//!
//! What a batch holds is trusted in nothing: lengths and counts are checked against the bytes at hand before anything is
//! reserved, and decompression stops at the limit that the caller gives.

mod batch;
mod builder;
mod compression;
mod lz4;
mod record;
mod snappy;

pub use batch::{
    Attributes, Batch, BatchHeader, Batches, HEADER_SIZE, TimestampType, batches, place,
    set_log_append_time,
};
pub use builder::BatchBuilder;
pub use compression::Compression;
pub use record::{ControlType, Record, RecordHeader, Records};

use crate::error_code::ErrorCode;
use crate::primitives::WireError;

/// Bytes that are no record batch, or one that cannot be read here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A message set of Kafka before 0.11 (magic 0 or 1), or something newer than magic 2.
    #[error(
        "records of format {0} where format 2 was expected; formats 0 and 1 ended with Kafka 0.11, so write these records anew"
    )]
    UnknownMagic(i8),
    /// A batch whose length is less than that of an empty one.
    #[error("a record batch says that it is {0} bytes long, expected at least 49")]
    BadLength(i32),
    /// A batch that was damaged on its way or on disk.
    #[error(
        "a record batch has the checksum {stored:#010x}, but its bytes give {computed:#010x}: it is damaged"
    )]
    BadChecksum {
        /// What the batch says.
        stored: u32,
        /// What its bytes give (CRC-32C).
        computed: u32,
    },
    /// A codec that Kafka does not have.
    #[error(
        "a record batch is compressed with codec {0}, expected 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)"
    )]
    UnknownCompression(u8),
    /// Compressed bytes that cannot be decompressed.
    #[error("a record batch cannot be decompressed with {codec}: {why}")]
    Decompression {
        /// The codec.
        codec: Compression,
        /// What its decoder says.
        why: String,
    },
    /// A batch that grows beyond what the caller allows.
    #[error(
        "a record batch would take more than {limit} bytes; a larger limit is needed to read it"
    )]
    TooLarge {
        /// The caller's limit in bytes.
        limit: usize,
    },
    /// A record that does not fit its length.
    #[error("a record is malformed: {0}")]
    Malformed(#[from] WireError),
    /// A count that the records do not bear out.
    #[error("a record batch says that it has {declared} records, but {found}")]
    BadCount {
        /// What the header says.
        declared: i32,
        /// What is there.
        found: &'static str,
    },
    /// A batch that is well formed, but that a producer may not send.
    #[error("a record batch is refused: {0}")]
    Refused(&'static str),
}

impl RecordError {
    /// What a broker answers to a producer, as Kafka's `LogValidator` does.
    #[must_use]
    pub fn error_code(&self) -> ErrorCode {
        match self {
            RecordError::BadLength(_)
            | RecordError::BadChecksum { .. }
            | RecordError::Decompression { .. }
            | RecordError::Malformed(_) => ErrorCode::CorruptMessage,
            RecordError::UnknownCompression(_) => ErrorCode::UnsupportedCompressionType,
            RecordError::TooLarge { .. } => ErrorCode::MessageTooLarge,
            RecordError::UnknownMagic(_)
            | RecordError::BadCount { .. }
            | RecordError::Refused(_) => ErrorCode::InvalidRecord,
        }
    }
}
