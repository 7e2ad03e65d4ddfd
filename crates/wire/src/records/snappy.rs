//! Snappy, raw and in the frame of the Java library (xerial): a header of 16 bytes, then blocks of int32 size and raw snappy.

use super::{Compression, RecordError};

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Version and lowest version that can read it, both 1.
const VERSIONS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
/// What Java puts into a block.
const BLOCK_SIZE: usize = 32 * 1024;
/// The most bytes that one byte of snappy can stand for: a copy of 64 bytes takes three.
const EXPANSION: usize = 22;

pub(super) fn compress(plain: &[u8], to: &mut Vec<u8>) -> Result<(), RecordError> {
    to.extend_from_slice(&MAGIC);
    to.extend_from_slice(&VERSIONS);
    let mut encoder = snap::raw::Encoder::new();
    for block in plain.chunks(BLOCK_SIZE) {
        let start = to.len();
        to.resize(start + 4 + snap::raw::max_compress_len(block.len()), 0);
        let size = encoder
            .compress(block, &mut to[start + 4..])
            .map_err(|error| Compression::Snappy.failed(error))?;
        to[start..start + 4].copy_from_slice(&(size as u32).to_be_bytes());
        to.truncate(start + 4 + size);
    }
    Ok(())
}

pub(super) fn decompress(packed: &[u8], limit: usize) -> Result<Vec<u8>, RecordError> {
    let mut plain = Vec::new();
    if !packed.starts_with(&MAGIC) {
        block(packed, limit, &mut plain)?;
        return Ok(plain);
    }
    let cut = || Compression::Snappy.failed("a frame is cut short");
    let mut rest = packed.get(MAGIC.len() + VERSIONS.len()..).ok_or_else(cut)?;
    while !rest.is_empty() {
        // Streams that were written one after the other repeat the header.
        if let Some(next) = rest.strip_prefix(&MAGIC) {
            rest = next.get(VERSIONS.len()..).ok_or_else(cut)?;
            continue;
        }
        let (size, next) = rest.split_first_chunk().ok_or_else(cut)?;
        let size = u32::from_be_bytes(*size) as usize;
        let packed = next.get(..size).ok_or_else(cut)?;
        block(packed, limit, &mut plain)?;
        rest = &next[size..];
    }
    Ok(plain)
}

/// Decompresses one raw block to the end of `plain`.
fn block(packed: &[u8], limit: usize, plain: &mut Vec<u8>) -> Result<(), RecordError> {
    let failed = |error: snap::Error| Compression::Snappy.failed(error);
    let size = snap::raw::decompress_len(packed).map_err(failed)?;
    if size > packed.len().saturating_mul(EXPANSION) {
        return Err(Compression::Snappy.failed("a block announces more than its bytes can hold"));
    }
    if size > limit - plain.len() {
        return Err(RecordError::TooLarge { limit });
    }
    let start = plain.len();
    plain.resize(start + size, 0);
    snap::raw::Decoder::new()
        .decompress(packed, &mut plain[start..])
        .map_err(failed)?;
    Ok(())
}
