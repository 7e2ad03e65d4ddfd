//! The basic types of the protocol and how they are read and written.
//!
//! Classic versions write lengths as int16 (strings) or int32 (bytes, arrays), −1 for null; flexible versions (KIP-482)
//! write them as unsigned varints of length + 1, 0 for null.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Bytes that do not fit the layout of the message they should hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The message ends before a field does.
    #[error("the message is too short: {wanted} more bytes expected, {left} left")]
    TooShort {
        /// Bytes that the field needs.
        wanted: usize,
        /// Bytes that are left.
        left: usize,
    },
    /// A length or count that cannot be true, such as −2.
    #[error("a length or count of {0} makes no sense")]
    BadLength(i64),
    /// A varint that goes on for too long.
    #[error("a variable-length number does not end")]
    BadVarint,
    /// A string that is not UTF-8.
    #[error("a string is not valid UTF-8")]
    NotUtf8,
    /// Null where the version has no null.
    #[error("null where this version of the message allows none")]
    UnexpectedNull,
    /// Bytes after the last field.
    #[error("{0} bytes are left over after the last field")]
    LeftOver(usize),
    /// A message version that this code does not know.
    #[error("version {version} of {api} is not known here")]
    UnknownVersion {
        /// The API's name.
        api: &'static str,
        /// The version asked for.
        version: i16,
    },
    /// Anything else, in words.
    #[error("{0}")]
    Invalid(&'static str),
}

/// How one field is to be read or written: which encoding, and whether null is allowed there.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The version of the message.
    pub version: i16,
    /// Whether lengths are compact and structures end with tagged fields (KIP-482).
    pub flexible: bool,
    /// Whether the field at hand may be null in this version.
    pub nullable: bool,
}

/// Reads from a shared buffer; slices that it hands out share that buffer.
#[derive(Clone, Debug)]
pub struct Decoder {
    bytes: Bytes,
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

    fn need(&self, wanted: usize) -> Result<(), WireError> {
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

/// A type that can stand in a field of a message.
pub trait WireType: Sized {
    /// Reads one value.
    ///
    /// # Errors
    /// [`WireError`] if the bytes do not hold one.
    fn decode(from: &mut Decoder, context: Context) -> Result<Self, WireError>;
    /// Writes the value.
    fn encode(&self, to: &mut Encoder, context: Context);
}

macro_rules! number {
    ($($type:ident)*) => {$(
        impl WireType for $type {
            fn decode(from: &mut Decoder, _: Context) -> Result<Self, WireError> {
                from.$type()
            }
            fn encode(&self, to: &mut Encoder, _: Context) {
                to.$type(*self);
            }
        }
    )*};
}
number!(i8 i16 i32 i64);

impl WireType for u16 {
    fn decode(from: &mut Decoder, _: Context) -> Result<Self, WireError> {
        Ok(from.i16()? as u16)
    }
    fn encode(&self, to: &mut Encoder, _: Context) {
        to.i16(*self as i16);
    }
}

impl WireType for bool {
    fn decode(from: &mut Decoder, _: Context) -> Result<Self, WireError> {
        Ok(from.i8()? != 0)
    }
    fn encode(&self, to: &mut Encoder, _: Context) {
        to.i8(i8::from(*self));
    }
}

/// A UUID, as topic ids are.
pub type Uuid = [u8; 16];

impl WireType for Uuid {
    fn decode(from: &mut Decoder, _: Context) -> Result<Self, WireError> {
        let mut id = [0; 16];
        from.need(16)?;
        from.bytes.copy_to_slice(&mut id);
        Ok(id)
    }
    fn encode(&self, to: &mut Encoder, _: Context) {
        to.raw(self);
    }
}

fn decode_string(from: &mut Decoder, context: Context) -> Result<Option<String>, WireError> {
    let Some(length) = from.length(context.flexible, false)? else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&from.rest()[..length])
        .map_err(|_| WireError::NotUtf8)?
        .to_owned();
    from.bytes.advance(length);
    Ok(Some(text))
}

/// Classic strings hold at most 32,767 bytes: a longer one is cut at a character boundary, so that the message stays readable.
fn encode_string(text: &str, to: &mut Encoder, flexible: bool) {
    let text = if flexible {
        text
    } else {
        cut(text, i16::MAX as usize)
    };
    to.length(Some(text.len()), flexible, false);
    to.raw(text.as_bytes());
}

/// The longest prefix of `text` that has at most `limit` bytes and ends at a character boundary.
#[must_use]
pub fn cut(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl WireType for String {
    fn decode(from: &mut Decoder, context: Context) -> Result<Self, WireError> {
        decode_string(from, context)?.ok_or(WireError::UnexpectedNull)
    }
    fn encode(&self, to: &mut Encoder, context: Context) {
        encode_string(self, to, context.flexible);
    }
}

impl WireType for Option<String> {
    fn decode(from: &mut Decoder, context: Context) -> Result<Self, WireError> {
        refuse_null(decode_string(from, context)?, context)
    }
    fn encode(&self, to: &mut Encoder, context: Context) {
        match self {
            None if context.nullable => to.length(None, context.flexible, false),
            None => encode_string("", to, context.flexible),
            Some(text) => encode_string(text, to, context.flexible),
        }
    }
}

impl WireType for Bytes {
    fn decode(from: &mut Decoder, context: Context) -> Result<Self, WireError> {
        let length = from
            .length(context.flexible, true)?
            .ok_or(WireError::UnexpectedNull)?;
        from.take(length)
    }
    fn encode(&self, to: &mut Encoder, context: Context) {
        to.length(Some(self.len()), context.flexible, true);
        to.raw(self);
    }
}

impl WireType for Option<Bytes> {
    fn decode(from: &mut Decoder, context: Context) -> Result<Self, WireError> {
        let bytes = match from.length(context.flexible, true)? {
            None => None,
            Some(length) => Some(from.take(length)?),
        };
        refuse_null(bytes, context)
    }
    fn encode(&self, to: &mut Encoder, context: Context) {
        match self {
            None if context.nullable => to.length(None, context.flexible, true),
            None => to.length(Some(0), context.flexible, true),
            Some(bytes) => bytes.encode(to, context),
        }
    }
}

/// Null is an error where the version has none.
fn refuse_null<T>(value: Option<T>, context: Context) -> Result<Option<T>, WireError> {
    if value.is_none() && !context.nullable {
        Err(WireError::UnexpectedNull)
    } else {
        Ok(value)
    }
}

fn decode_array<T: WireType>(
    from: &mut Decoder,
    context: Context,
) -> Result<Option<Vec<T>>, WireError> {
    let Some(count) = from.length(context.flexible, true)? else {
        return Ok(None);
    };
    // Reserve no more than what is left could fill, then grow with what is really there, up to the count and not beyond.
    let room = from.remaining() / size_of::<T>().max(1);
    let mut items = Vec::with_capacity(count.min(room));
    for _ in 0..count {
        if items.len() == items.capacity() {
            items.reserve_exact((count - items.len()).min(items.len().max(4)));
        }
        items.push(T::decode(
            from,
            Context {
                nullable: false,
                ..context
            },
        )?);
    }
    Ok(Some(items))
}

fn encode_array<T: WireType>(items: &[T], to: &mut Encoder, context: Context) {
    to.length(Some(items.len()), context.flexible, true);
    for item in items {
        item.encode(
            to,
            Context {
                nullable: false,
                ..context
            },
        );
    }
}

impl<T: WireType> WireType for Vec<T> {
    fn decode(from: &mut Decoder, context: Context) -> Result<Self, WireError> {
        decode_array(from, context)?.ok_or(WireError::UnexpectedNull)
    }
    fn encode(&self, to: &mut Encoder, context: Context) {
        encode_array(self, to, context);
    }
}

impl<T: WireType> WireType for Option<Vec<T>> {
    fn decode(from: &mut Decoder, context: Context) -> Result<Self, WireError> {
        refuse_null(decode_array(from, context)?, context)
    }
    fn encode(&self, to: &mut Encoder, context: Context) {
        match self {
            None if context.nullable => to.length(None, context.flexible, true),
            None => to.length(Some(0), context.flexible, true),
            Some(items) => encode_array(items, to, context),
        }
    }
}
