//! How each type of field is read and written.

use super::{Context, Decoder, Encoder, Uuid, WireError, WireType};
use bytes::{Buf, Bytes};

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
