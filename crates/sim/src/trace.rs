//! The trace of a run: a hash that two runs of one seed must share, and the last events in words.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

/// A hash that is the same on every machine of the same word size and endianness, whatever the standard library does.
#[derive(Clone, Debug)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.0 ^= self.0 >> 29;
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// Longer lines are cut, bytes.
const LONGEST: usize = 4_000;

/// What happened in a run.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: Mix,
    events: u64,
    keep: usize,
    lines: VecDeque<String>,
}

impl Trace {
    /// A trace that keeps the last `keep` events in words; 0 only hashes, which is much faster.
    #[must_use]
    pub(crate) fn new(keep: usize) -> Self {
        Self {
            hash: Mix(0),
            events: 0,
            keep,
            lines: VecDeque::new(),
        }
    }

    /// Adds an event: `what` is hashed, `line` is made only if it is kept, and an empty one never is.
    pub(crate) fn event(&mut self, now: u64, what: &impl Hash, line: impl FnOnce() -> String) {
        self.events += 1;
        now.hash(&mut self.hash);
        what.hash(&mut self.hash);
        if self.keep > 0 {
            let mut line = line();
            if line.is_empty() {
                return;
            }
            if self.lines.len() == self.keep {
                self.lines.pop_front();
            }
            if line.len() > LONGEST {
                let cut = (0..=LONGEST).rev().find(|at| line.is_char_boundary(*at));
                line.truncate(cut.unwrap_or(0));
                line.push('…');
            }
            self.lines.push_back(format!("{now:>8} {line}"));
        }
    }

    /// The hash of all events so far.
    #[must_use]
    pub(crate) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    /// How many events there were.
    #[must_use]
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// The last events in words, the oldest first.
    #[must_use]
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.into()
    }
}
