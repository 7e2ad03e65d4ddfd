//! Pauses: after failures, and between quick heartbeats. Jitter comes from a counter with a seed, so that a trace repeats.

use crate::time::Timestamp;

/// A generator of numbers that look random (SplitMix64); the same seed gives the same numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Jitter(u64);

impl Jitter {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound` (0 if that is 0).
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).checked_rem(bound).unwrap_or(0)
    }
}

/// The pauses of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pauses {
    pub(super) first: u64,
    pub(super) longest: u64,
}

impl Pauses {
    /// The pause after so many failures (from 1): doubling, bounded, a fifth of jitter either way (KIP-580).
    fn after(self, failures: u32, jitter: &mut Jitter) -> u64 {
        let factor = 1_u64
            .checked_shl(failures.saturating_sub(1))
            .unwrap_or(u64::MAX);
        let pause = self.first.saturating_mul(factor).min(self.longest);
        (pause - pause / 5 + jitter.below(2 * (pause / 5) + 1)).max(1)
    }
}

/// When something that failed may be tried again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Retry {
    failures: u32,
    not_before: Timestamp,
}

impl Retry {
    /// It failed: pause.
    pub(super) fn failed(&mut self, now: Timestamp, pauses: Pauses, jitter: &mut Jitter) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + pauses.after(self.failures, jitter);
    }

    /// It was refused in a way that asks for another try: the first one at once, then with pauses, or a coordinator that
    /// always says so would be stormed.
    pub(super) fn refused(&mut self, now: Timestamp, pauses: Pauses, jitter: &mut Jitter) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = match self.failures {
            1 => now,
            more => now + pauses.after(more - 1, jitter),
        };
    }

    /// It worked: the next failure is the first.
    pub(super) fn worked(&mut self) {
        *self = Self::default();
    }

    /// No try before this.
    pub(super) fn not_before(&mut self, time: Timestamp) {
        self.not_before = self.not_before.max(time);
    }

    /// When a try may be made.
    pub(super) fn time(&mut self) -> &mut Timestamp {
        &mut self.not_before
    }

    /// The pause is over (an alarm said so).
    pub(super) fn over(&mut self) {
        self.not_before = Timestamp::default();
    }

    /// Whether a try may be made now.
    pub(super) fn may(&self, now: Timestamp) -> bool {
        self.not_before <= now
    }

    /// When the next try may be made, if that is later than now.
    pub(super) fn due(&self, now: Timestamp) -> Option<Timestamp> {
        (self.not_before > now).then_some(self.not_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSES: Pauses = Pauses {
        first: 100,
        longest: 1000,
    };

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut jitter = Jitter::new(1);
        let mut retry = Retry::default();
        for expected in [100, 200, 400, 800, 1000, 1000] {
            retry.failed(Timestamp(0), PAUSES, &mut jitter);
            let due = retry.due(Timestamp(0)).map_or(0, |due| due.0);
            assert!(due >= expected - expected / 5 && due <= expected + expected / 5);
        }
        for _ in 0..200 {
            retry.failed(Timestamp(u64::MAX - 5), PAUSES, &mut jitter);
        }
    }

    #[test]
    fn the_first_refusal_is_free() {
        let mut jitter = Jitter::new(1);
        let mut retry = Retry::default();
        retry.refused(Timestamp(7), PAUSES, &mut jitter);
        assert!(retry.may(Timestamp(7)));
        retry.refused(Timestamp(7), PAUSES, &mut jitter);
        assert!(!retry.may(Timestamp(70)) && retry.may(Timestamp(127)));
    }
}
