//! Writing.

use bytes::{BufMut, BytesMut};

/// Writes into a growing buffer.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    bytes: BytesMut,
}

impl Encoder {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues at the end of `bytes`.
    #[must_use]
    pub fn from_buffer(bytes: BytesMut) -> Self {
        Self { bytes }
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> BytesMut {
        self.bytes
    }

    /// How many bytes were written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The buffer itself, to patch what was written.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.bytes
    }

    /// Bytes as they are, without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.put_slice(bytes);
    }

    /// One signed byte.
    pub fn i8(&mut self, value: i8) {
        self.bytes.put_i8(value);
    }

    /// A big-endian int16.
    pub fn i16(&mut self, value: i16) {
        self.bytes.put_i16(value);
    }

    /// A big-endian int32.
    pub fn i32(&mut self, value: i32) {
        self.bytes.put_i32(value);
    }

    /// A big-endian int64.
    pub fn i64(&mut self, value: i64) {
        self.bytes.put_i64(value);
    }

    /// An unsigned varint.
    pub fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.put_u8((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.bytes.put_u8(value as u8);
    }

    /// A zigzag varint of 32 bits.
    pub fn varint(&mut self, value: i32) {
        self.unsigned_varint(((value << 1) ^ (value >> 31)) as u32);
    }

    /// A zigzag varint of 64 bits.
    pub fn varlong(&mut self, value: i64) {
        let mut raw = ((value << 1) ^ (value >> 63)) as u64;
        while raw >= 0x80 {
            self.bytes.put_u8((raw as u8 & 0x7f) | 0x80);
            raw >>= 7;
        }
        self.bytes.put_u8(raw as u8);
    }

    /// A length prefix; `None` is null. A string longer than int16 can say is cut by nobody: see [`String`]'s impl.
    pub fn length(&mut self, length: Option<usize>, flexible: bool, wide: bool) {
        match (flexible, wide) {
            (true, _) => self.unsigned_varint(length.map_or(0, |n| n as u32 + 1)),
            (false, true) => self.i32(length.map_or(-1, |n| n as i32)),
            (false, false) => self.i16(length.map_or(-1, |n| n as i16)),
        }
    }
}
