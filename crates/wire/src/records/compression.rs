//! The codecs of record batches.

use super::{RecordError, lz4, snappy};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fmt;
use std::io::{Read, Write};
use std::str::FromStr;

/// How a batch's records are compressed (`compression.type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy: read in its raw form and in the framed one of Java (xerial), written in the framed one, which all clients read.
    Snappy,
    /// LZ4's frame format.
    Lz4,
    /// RFC 8878 (KIP-110).
    Zstd,
}

impl Compression {
    /// All codecs, by number.
    pub const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// The codec with this number.
    ///
    /// # Errors
    /// [`RecordError::UnknownCompression`] above 4.
    pub fn from_number(number: u8) -> Result<Self, RecordError> {
        Self::ALL
            .get(usize::from(number))
            .copied()
            .ok_or(RecordError::UnknownCompression(number))
    }

    /// The number in a batch's attributes.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Kafka's name, as `compression.type` has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Snappy => "snappy",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// Compresses `plain`, appending to `to`.
    pub(super) fn compress(self, plain: &[u8], to: &mut Vec<u8>) -> Result<(), RecordError> {
        match self {
            Compression::None => to.extend_from_slice(plain),
            Compression::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(to, flate2::Compression::default());
                writer
                    .write_all(plain)
                    .and_then(|()| writer.finish().map(drop))
                    .map_err(|error| self.failed(error))?;
            }
            Compression::Snappy => snappy::compress(plain, to)?,
            Compression::Lz4 => lz4::compress(plain, to),
            Compression::Zstd => {
                ruzstd::encoding::compress(plain, to, ruzstd::encoding::CompressionLevel::Fastest);
            }
        }
        Ok(())
    }

    /// Decompresses `packed` into at most `limit` bytes. What is reserved grows with what comes out, never with what the bytes
    /// announce.
    ///
    /// # Errors
    /// [`RecordError::TooLarge`] if more than `limit` bytes would come out, [`RecordError::Decompression`] if `packed` is not
    /// in the codec's format.
    pub fn decompress(self, packed: &[u8], limit: usize) -> Result<Vec<u8>, RecordError> {
        match self {
            Compression::None if packed.len() > limit => Err(RecordError::TooLarge { limit }),
            Compression::None => Ok(packed.to_vec()),
            Compression::Gzip => gunzip(packed, limit),
            Compression::Snappy => snappy::decompress(packed, limit),
            Compression::Lz4 => lz4::decompress(packed, limit),
            Compression::Zstd => unzstd(packed, limit),
        }
    }

    pub(super) fn failed(self, why: impl fmt::Display) -> RecordError {
        RecordError::Decompression {
            codec: self,
            why: why.to_string(),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.name() == name)
            .ok_or_else(|| {
                format!("expected none, gzip, snappy, lz4 or zstd as compression, got {name:?}")
            })
    }
}

fn gunzip(packed: &[u8], limit: usize) -> Result<Vec<u8>, RecordError> {
    let mut plain = Vec::new();
    flate2::bufread::MultiGzDecoder::new(packed)
        .take(limit as u64 + 1)
        .read_to_end(&mut plain)
        .map_err(|error| Compression::Gzip.failed(error))?;
    if plain.len() > limit {
        return Err(RecordError::TooLarge { limit });
    }
    Ok(plain)
}

/// Decodes frame after frame. A decoder is made anew for each, because one that is used again reserves the window that the frame
/// announces; the blocks of a frame are decoded only until they exceed the limit.
fn unzstd(mut packed: &[u8], limit: usize) -> Result<Vec<u8>, RecordError> {
    let failed = |error: &dyn fmt::Display| Compression::Zstd.failed(error);
    let mut plain = Vec::new();
    while !packed.is_empty() {
        if let Some(rest) = after_skippable(packed) {
            packed = rest.ok_or_else(|| failed(&"a skippable frame is cut short"))?;
            continue;
        }
        let mut decoder = FrameDecoder::new();
        decoder.init(&mut packed).map_err(|error| failed(&error))?;
        let room = limit - plain.len();
        let strategy = BlockDecodingStrategy::UptoBytes(room.saturating_add(1));
        let finished = decoder
            .decode_blocks(&mut packed, strategy)
            .map_err(|error| failed(&error))?;
        if !finished || decoder.can_collect() > room {
            return Err(RecordError::TooLarge { limit });
        }
        decoder
            .collect_to_writer(&mut plain)
            .map_err(|error| failed(&error))?;
    }
    Ok(plain)
}

/// What follows a skippable frame (RFC 8878, 3.1.2), or `None` if `packed` does not begin with one.
fn after_skippable(packed: &[u8]) -> Option<Option<&[u8]>> {
    let magic = u32::from_le_bytes(*packed.first_chunk()?);
    if magic & 0xffff_fff0 != 0x184d_2a50 {
        return None;
    }
    let rest = packed.get(4..).and_then(|rest| rest.split_first_chunk());
    Some(rest.and_then(|(size, rest)| rest.get(u32::from_le_bytes(*size) as usize..)))
}
