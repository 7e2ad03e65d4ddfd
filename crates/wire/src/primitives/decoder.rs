//! Reading.

use super::WireError;
use bytes::{Buf, Bytes};

/// Reads from a shared buffer; slices that it hands out share that buffer.
#[derive(Clone, Debug)]
pub struct Decoder {
    pub(super) bytes: Bytes,
}

impl Decoder {
    /// A reader of `bytes` from its beginning.
    #[must_use]
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// The next `n` bytes, shared with the buffer.
    ///
    /// # Errors
    /// [`WireError::TooShort`] if fewer are left.
    pub fn take(&mut self, n: usize) -> Result<Bytes, WireError> {
        self.need(n)?;
        Ok(self.bytes.split_to(n))
    }

    /// What is left, without reading it.
    #[must_use]
    pub fn rest(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn need(&self, wanted: usize) -> Result<(), WireError> {
        let left = self.bytes.len();
        if wanted > left {
            Err(WireError::TooShort { wanted, left })
        } else {
            Ok(())
        }
    }

    /// One signed byte.
    ///
    /// # Errors
    /// [`WireError::TooShort`] at the end of the buffer; so for all readers of numbers.
    pub fn i8(&mut self) -> Result<i8, WireError> {
        self.need(1)?;
        Ok(self.bytes.get_i8())
    }

    /// A big-endian int16.
    ///
    /// # Errors
    /// See [`Decoder::i8`].
    pub fn i16(&mut self) -> Result<i16, WireError> {
        self.need(2)?;
        Ok(self.bytes.get_i16())
    }

    /// A big-endian int32.
    ///
    /// # Errors
    /// See [`Decoder::i8`].
    pub fn i32(&mut self) -> Result<i32, WireError> {
        self.need(4)?;
        Ok(self.bytes.get_i32())
    }

    /// A big-endian int64.
    ///
    /// # Errors
    /// See [`Decoder::i8`].
    pub fn i64(&mut self) -> Result<i64, WireError> {
        self.need(8)?;
        Ok(self.bytes.get_i64())
    }

    /// An unsigned varint of at most 32 bits.
    ///
    /// # Errors
    /// [`WireError::BadVarint`] if it takes more than five bytes or 32 bits.
    pub fn unsigned_varint(&mut self) -> Result<u32, WireError> {
        let (value, size) = leading_unsigned_varint(&self.bytes)?;
        self.bytes.advance(size);
        Ok(value)
    }

    /// A zigzag varint of 32 bits, as records use it.
    ///
    /// # Errors
    /// See [`Decoder::unsigned_varint`].
    pub fn varint(&mut self) -> Result<i32, WireError> {
        let raw = self.unsigned_varint()?;
        Ok(((raw >> 1) as i32) ^ -((raw & 1) as i32))
    }

    /// A zigzag varint of 64 bits, as records use it.
    ///
    /// # Errors
    /// [`WireError::BadVarint`] if it takes more than ten bytes.
    pub fn varlong(&mut self) -> Result<i64, WireError> {
        let (value, size) = leading_varlong(&self.bytes)?;
        self.bytes.advance(size);
        Ok(value)
    }

    /// A length prefix: compact, int16 (`wide` false) or int32. `None` is null.
    ///
    /// # Errors
    /// [`WireError::BadLength`] below −1, [`WireError::TooShort`] if fewer bytes than that are left (each element of
    /// anything takes at least one).
    pub fn length(&mut self, flexible: bool, wide: bool) -> Result<Option<usize>, WireError> {
        let length = if flexible {
            i64::from(self.unsigned_varint()?) - 1
        } else if wide {
            i64::from(self.i32()?)
        } else {
            i64::from(self.i16()?)
        };
        match length {
            -1 => Ok(None),
            0.. => {
                let length = length as usize;
                self.need(length)?;
                Ok(Some(length))
            }
            _ => Err(WireError::BadLength(length)),
        }
    }

    /// Succeeds if everything has been read.
    ///
    /// # Errors
    /// [`WireError::LeftOver`] otherwise.
    pub fn finish(&self) -> Result<(), WireError> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(WireError::LeftOver(self.bytes.len()))
        }
    }
}

/// The unsigned varint at the beginning of `bytes`, and its size.
pub(crate) fn leading_unsigned_varint(bytes: &[u8]) -> Result<(u32, usize), WireError> {
    let (value, size) = leading_raw_varint(bytes, 5)?;
    let value = u32::try_from(value).map_err(|_| WireError::BadVarint)?;
    Ok((value, size))
}

/// The zigzag varint of 64 bits at the beginning of `bytes`, and its size.
pub(crate) fn leading_varlong(bytes: &[u8]) -> Result<(i64, usize), WireError> {
    let (raw, size) = leading_raw_varint(bytes, 10)?;
    Ok((((raw >> 1) as i64) ^ -((raw & 1) as i64), size))
}

fn leading_raw_varint(bytes: &[u8], longest: usize) -> Result<(u64, usize), WireError> {
    let mut value: u64 = 0;
    for (i, &byte) in bytes.iter().take(longest).enumerate() {
        // The tenth byte has room for one bit.
        if i == 9 && byte > 1 {
            return Err(WireError::BadVarint);
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Ok((value, i + 1));
        }
    }
    if bytes.len() < longest {
        Err(WireError::TooShort { wanted: 1, left: 0 })
    } else {
        Err(WireError::BadVarint)
    }
}
