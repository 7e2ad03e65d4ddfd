//! The shell's clock: milliseconds since its start, which never go back, and the wall clock derived from them.

use kohort_group::time::Timestamp;
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

/// Read once from the wall at the start; after that it only goes on, whatever happens to the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// Unix milliseconds at the start.
    pub(crate) wall_offset: u64,
}

impl Clock {
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self {
            start: Instant::now(),
            wall_offset: wall.map_or(0, |since| since.as_millis() as u64),
        }
    }

    /// Milliseconds since the start.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(self.start.elapsed().as_millis() as u64)
    }

    /// Unix milliseconds.
    pub(crate) fn wall(&self) -> i64 {
        (self.wall_offset + self.now().0) as i64
    }

    /// The instant of a timestamp. One millisecond is added because timestamps are rounded down: an alarm must not come early.
    pub(crate) fn instant(&self, at: Timestamp) -> Instant {
        self.start + Duration::from_millis(at.0)
    }
}
