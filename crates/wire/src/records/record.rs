//! The records of a batch.

use super::{BatchHeader, RecordError, TimestampType};
use crate::primitives::{WireError, leading_unsigned_varint, leading_varlong};
use bytes::Bytes;

/// A record. Key, value and header values are slices of the batch, or of what it was decompressed to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    /// Its place in the partition.
    pub offset: i64,
    /// Milliseconds since 1970, −1 if it has none.
    pub timestamp: i64,
    /// The key.
    pub key: Option<Bytes>,
    /// The value; null is a tombstone in compacted topics.
    pub value: Option<Bytes>,
    /// The headers in their order; a key may come more than once (KIP-82).
    pub headers: Vec<RecordHeader>,
}

/// A header of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordHeader {
    /// The key. Bytes that are not UTF-8 come out as U+FFFD, as in the Java client.
    pub key: String,
    /// The value.
    pub value: Option<Bytes>,
}

/// What a control batch says, by its record's key: version int16, type int16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlType {
    /// The producer's transaction was aborted.
    Abort,
    /// The producer's transaction was committed.
    Commit,
    /// Something else, of no meaning to consumers.
    Other(i16),
}

impl ControlType {
    /// Reads the key of a control record; `None` if it is too short.
    #[must_use]
    pub fn of_key(key: &[u8]) -> Option<Self> {
        let number = i16::from_be_bytes(*key.get(2..)?.first_chunk()?);
        Some(match number {
            0 => ControlType::Abort,
            1 => ControlType::Commit,
            other => ControlType::Other(other),
        })
    }
}

/// The records of a batch, one after the other. It ends after an error; where the header's count and the records differ, that is
/// the last error.
#[derive(Clone, Debug)]
pub struct Records {
    payload: Bytes,
    at: usize,
    declared: i32,
    left: i32,
    base_offset: i64,
    from_offset: i64,
    base_timestamp: i64,
    log_append_time: Option<i64>,
}

impl Records {
    pub(super) fn new(header: &BatchHeader, payload: Bytes) -> Self {
        Self {
            payload,
            at: 0,
            declared: header.record_count,
            left: header.record_count,
            base_offset: header.base_offset,
            from_offset: i64::MIN,
            base_timestamp: header.base_timestamp,
            log_append_time: match header.attributes.timestamp_type() {
                TimestampType::CreateTime => None,
                TimestampType::LogAppendTime => Some(header.max_timestamp),
            },
        }
    }

    /// Passes over records before `offset` without taking them apart: a fetch may begin in the middle of a batch.
    #[must_use]
    pub fn starting_at(self, offset: i64) -> Self {
        Self {
            from_offset: offset,
            ..self
        }
    }

    fn bad_count(&self, found: &'static str) -> RecordError {
        RecordError::BadCount {
            declared: self.declared,
            found,
        }
    }

    /// The next record, `None` after the last, or `Some(None)` for one that is passed over.
    fn step(&mut self) -> Result<Option<Option<Record>>, RecordError> {
        if self.left <= 0 {
            return if self.left < 0 {
                Err(self.bad_count("that cannot be"))
            } else if self.at < self.payload.len() {
                Err(self.bad_count("bytes are left after that many"))
            } else {
                Ok(None)
            };
        }
        if self.at >= self.payload.len() {
            return Err(self.bad_count("they end before that many"));
        }
        self.left -= 1;
        let mut cursor = Cursor {
            payload: &self.payload,
            at: self.at,
            end: self.payload.len(),
        };
        let size = cursor.varint()?;
        let size = usize::try_from(size).map_err(|_| WireError::BadLength(i64::from(size)))?;
        cursor.need(size)?;
        cursor.end = cursor.at + size;
        self.at = cursor.end;
        cursor.skip(1)?; // attributes, none of which are in use
        let timestamp = self.base_timestamp.wrapping_add(cursor.varlong()?);
        let offset = self.base_offset.wrapping_add(i64::from(cursor.varint()?));
        if offset < self.from_offset {
            return Ok(Some(None));
        }
        let record = Record {
            offset,
            timestamp: self.log_append_time.unwrap_or(timestamp),
            key: cursor.nullable_bytes()?,
            value: cursor.nullable_bytes()?,
            headers: cursor.headers()?,
        };
        if cursor.at < cursor.end {
            return Err(WireError::LeftOver(cursor.end - cursor.at).into());
        }
        Ok(Some(Some(record)))
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.step() {
                Ok(Some(Some(record))) => return Some(Ok(record)),
                Ok(Some(None)) => {}
                Ok(None) => return None,
                Err(error) => {
                    (self.left, self.at) = (0, self.payload.len());
                    return Some(Err(error));
                }
            }
        }
    }
}

/// A place in the payload of one record.
struct Cursor<'a> {
    payload: &'a Bytes,
    at: usize,
    end: usize,
}

impl Cursor<'_> {
    fn need(&self, wanted: usize) -> Result<(), WireError> {
        let left = self.end - self.at;
        if wanted > left {
            Err(WireError::TooShort { wanted, left })
        } else {
            Ok(())
        }
    }

    fn skip(&mut self, n: usize) -> Result<(), WireError> {
        self.need(n)?;
        self.at += n;
        Ok(())
    }

    fn varint(&mut self) -> Result<i32, WireError> {
        let (raw, size) = leading_unsigned_varint(&self.payload[self.at..self.end])?;
        self.at += size;
        Ok(((raw >> 1) as i32) ^ -((raw & 1) as i32))
    }

    fn varlong(&mut self) -> Result<i64, WireError> {
        let (value, size) = leading_varlong(&self.payload[self.at..self.end])?;
        self.at += size;
        Ok(value)
    }

    /// The range of the next field of bytes; `None` is null.
    fn range(&mut self) -> Result<Option<std::ops::Range<usize>>, WireError> {
        match self.varint()? {
            -1 => Ok(None),
            size @ 0.. => {
                let start = self.at;
                self.skip(size as usize)?;
                Ok(Some(start..self.at))
            }
            size => Err(WireError::BadLength(i64::from(size))),
        }
    }

    fn nullable_bytes(&mut self) -> Result<Option<Bytes>, WireError> {
        Ok(self.range()?.map(|range| self.payload.slice(range)))
    }

    fn headers(&mut self) -> Result<Vec<RecordHeader>, WireError> {
        let count = self.varint()?;
        // Each header takes at least two bytes, so a larger count is a lie. The vector grows with what is really there.
        let limit = (self.end - self.at) / 2;
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= limit)
            .ok_or(WireError::BadLength(i64::from(count)))?;
        let mut headers = Vec::new();
        for _ in 0..count {
            let key = self.range()?.ok_or(WireError::UnexpectedNull)?;
            headers.push(RecordHeader {
                key: String::from_utf8_lossy(&self.payload[key]).into_owned(),
                value: self.nullable_bytes()?,
            });
        }
        Ok(headers)
    }
}
