//! Which partition a record goes to, as Kafka's default partitioner decides: by the key's hash, or else whichever is at hand.

/// MurmurHash2 with Kafka's seed, so that equal keys meet in one partition whichever client sent them.
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ data.len() as u32;
    let mut chunks = data.chunks_exact(4);
    for chunk in &mut chunks {
        let mut k = chunk
            .iter()
            .rev()
            .fold(0_u32, |k, byte| k << 8 | u32::from(*byte));
        k = k.wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let k = rest
            .iter()
            .rev()
            .fold(0_u32, |k, byte| k << 8 | u32::from(*byte));
        hash = (hash ^ k).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

/// The partition of a key, of `count` partitions.
pub(super) fn of_key(key: &[u8], count: usize) -> i32 {
    ((murmur2(key) & 0x7fff_ffff) % count.max(1) as u32) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those of Kafka's own test (UtilsTest.testMurmur2).
    #[test]
    fn hashes_as_kafka_does() {
        for (text, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(text.as_bytes()) as i32, hash, "{text}");
        }
    }
}
