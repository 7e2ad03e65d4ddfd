//! A process's own clock: it shows another time than the world's, and runs faster or slower.

use crate::random::Random;

/// How many thousandths a skewed clock may be off.
pub(crate) const MOST_OFF: u64 = 50;

/// A clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// What it shows when the world begins, in milliseconds.
    ahead: u64,
    /// How many milliseconds it shows to have gone by in a second.
    rate: u64,
}

impl Clock {
    /// A clock that shows the world's time.
    pub(super) const RIGHT: Self = Self {
        ahead: 0,
        rate: 1_000,
    };

    /// Some other clock.
    pub(super) fn skewed(random: &mut Random) -> Self {
        Self {
            ahead: random.between(0, 1_000_000_000),
            rate: random.between(1_000 - MOST_OFF, 1_000 + MOST_OFF),
        }
    }

    /// What it shows at this moment of the world.
    pub(super) fn shows(self, now: u64) -> u64 {
        self.ahead + now * self.rate / 1_000
    }

    /// The first moment of the world at which it shows this time.
    pub(super) fn moment(self, time: u64) -> u64 {
        (time.saturating_sub(self.ahead) * 1_000).div_ceil(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_the_first_that_shows_the_time() {
        let mut random = Random::new(1);
        for _ in 0..1_000 {
            let clock = Clock::skewed(&mut random);
            let time = clock.shows(random.between(1, 1_000_000));
            let moment = clock.moment(time);
            assert!(clock.shows(moment) >= time, "{clock:?} {time}");
            assert!(clock.shows(moment - 1) < time, "{clock:?} {time}");
        }
    }
}
