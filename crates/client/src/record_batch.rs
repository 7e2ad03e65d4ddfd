//! From records to the batch that is sent.

use crate::error::Error;
use crate::record::NewRecord;
use crate::settings::Codec;
use bytes::Bytes;
use kohort_wire::records::{BatchBuilder, Compression, RecordError, RecordHeader};
use std::time::{SystemTime, UNIX_EPOCH};

/// Who sends a batch, and the number of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) first: i32,
}

/// One batch of these records.
pub(crate) fn encode(
    records: &[NewRecord],
    codec: Codec,
    sequence: Option<Sequence>,
) -> Result<Bytes, Error> {
    let explain =
        |error: RecordError| Error::Config(format!("the records cannot be sent: {error}"));
    let mut builder = BatchBuilder::new(match codec {
        Codec::None => Compression::None,
        Codec::Gzip => Compression::Gzip,
        Codec::Snappy => Compression::Snappy,
        Codec::Lz4 => Compression::Lz4,
        Codec::Zstd => Compression::Zstd,
    });
    if let Some(sequence) = sequence {
        builder = builder.producer(sequence.producer_id, sequence.epoch, sequence.first);
    }
    let now = unix_milliseconds();
    for record in records {
        let headers: Vec<RecordHeader> = record
            .headers
            .iter()
            .map(|(key, value)| RecordHeader {
                key: key.clone(),
                value: value.clone(),
            })
            .collect();
        builder
            .push(
                record.timestamp.unwrap_or(now),
                record.key.as_deref(),
                record.value.as_deref(),
                &headers,
            )
            .map_err(explain)?;
    }
    builder.build().map_err(explain)
}

fn unix_milliseconds() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
