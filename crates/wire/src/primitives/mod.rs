//! The basic types of the protocol and how they are read and written.
//!
//! Classic versions write lengths as int16 (strings) or int32 (bytes, arrays), −1 for null; flexible versions (KIP-482)
//! write them as unsigned varints of length + 1, 0 for null.

mod decoder;
mod encoder;
mod types;

pub use decoder::Decoder;
pub(crate) use decoder::{leading_unsigned_varint, leading_varlong};
pub use encoder::Encoder;
pub use types::cut;

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

/// A UUID, as topic ids are.
pub type Uuid = [u8; 16];
