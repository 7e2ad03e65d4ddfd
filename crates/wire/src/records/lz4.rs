//! LZ4's frame format over the block codec. Hand-made, because a frame's header announces block sizes of up to 4 MiB that a
//! general decoder reserves at once. Checksums of the frame are passed over: the batch has its own.

use super::{Compression, RecordError};

const MAGIC: u32 = 0x184d_2204;
/// Version 1, independent blocks (all that Java reads), no checksums; blocks of up to 64 KiB; the header's own checksum, which is
/// always this for such a header.
const HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
const BLOCK_SIZE: usize = 64 * 1024;
/// Marks a block that is stored as it is.
const STORED: u32 = 1 << 31;
/// How far back linked blocks look.
const WINDOW: usize = 64 * 1024;
/// The most bytes that one byte of LZ4 can stand for, and what a block's first bytes can beyond that.
const EXPANSION: (usize, usize) = (255, 64);

pub(super) fn compress(plain: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(&HEADER);
    for block in plain.chunks(BLOCK_SIZE) {
        let packed = lz4_flex::block::compress(block);
        let (size, bytes) = if packed.len() < block.len() {
            (packed.len() as u32, &packed[..])
        } else {
            (block.len() as u32 | STORED, block)
        };
        to.extend_from_slice(&size.to_le_bytes());
        to.extend_from_slice(bytes);
    }
    to.extend_from_slice(&0u32.to_le_bytes());
}

pub(super) fn decompress(packed: &[u8], limit: usize) -> Result<Vec<u8>, RecordError> {
    let mut from = Reader(packed);
    let mut plain = Vec::new();
    while !from.0.is_empty() {
        let magic = from.u32()?;
        if magic & 0xffff_fff0 == 0x184d_2a50 {
            let size = from.u32()? as usize;
            from.take(size)?;
        } else if magic == MAGIC {
            frame(&mut from, limit, &mut plain)?;
        } else {
            return Err(failed("no frame begins here"));
        }
    }
    Ok(plain)
}

fn frame(from: &mut Reader<'_>, limit: usize, plain: &mut Vec<u8>) -> Result<(), RecordError> {
    let head = from.take(2)?;
    let (flags, block_size) = (head[0], head[1] >> 4 & 7);
    if flags >> 6 != 1 {
        return Err(failed("the frame's version is not 1"));
    }
    if flags & 1 != 0 {
        return Err(failed("the frame needs a dictionary"));
    }
    if block_size < 4 {
        return Err(failed("the frame's block size is unknown"));
    }
    let block_size = 1usize << (8 + 2 * block_size);
    let (linked, block_checksums) = (flags & 0x20 == 0, flags & 0x10 != 0);
    let (has_size, has_checksum) = (flags & 8 != 0, flags & 4 != 0);
    from.take(if has_size { 9 } else { 1 })?;
    let start = plain.len();
    loop {
        let size = from.u32()?;
        if size == 0 {
            break;
        }
        let bytes = from.take((size & !STORED) as usize)?;
        if size & STORED != 0 {
            if bytes.len() > block_size {
                return Err(failed("a block is larger than the frame allows"));
            }
            if bytes.len() > limit - plain.len() {
                return Err(RecordError::TooLarge { limit });
            }
            plain.extend_from_slice(bytes);
        } else {
            let window = if linked { start } else { plain.len() };
            block(bytes, block_size, limit, window, plain)?;
        }
        if block_checksums {
            from.take(4)?;
        }
    }
    if has_checksum {
        from.take(4)?;
    }
    Ok(())
}

/// Decompresses a block to the end of `plain`; it may look back as far as `window`.
fn block(
    packed: &[u8],
    block_size: usize,
    limit: usize,
    window: usize,
    plain: &mut Vec<u8>,
) -> Result<(), RecordError> {
    let start = plain.len();
    let most = block_size.min(
        packed
            .len()
            .saturating_mul(EXPANSION.0)
            .saturating_add(EXPANSION.1),
    );
    let room = most.min(limit - start);
    plain.resize(start + room, 0);
    let (before, to) = plain.split_at_mut(start);
    let window = &before[window.max(start.saturating_sub(WINDOW))..];
    match lz4_flex::block::decompress_into_with_dict(packed, to, window) {
        Ok(size) => {
            plain.truncate(start + size);
            Ok(())
        }
        Err(lz4_flex::block::DecompressError::OutputTooSmall { .. }) if room < most => {
            Err(RecordError::TooLarge { limit })
        }
        Err(error) => Err(failed(error)),
    }
}

fn failed(why: impl std::fmt::Display) -> RecordError {
    Compression::Lz4.failed(why)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], RecordError> {
        let (taken, rest) = self
            .0
            .split_at_checked(n)
            .ok_or_else(|| failed("a frame is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32, RecordError> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}
