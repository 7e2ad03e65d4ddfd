//! What the application has done, as the driver finds it when it next looks: consumed positions, and signs of life.
//!
//! The application does not wake the driver for each batch; the driver looks here before it gives the member anything else.

use kohort_group::member::Offset;
use kohort_group::partitions::TopicPartition;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Application {
    consumed: BTreeMap<TopicPartition, Offset>,
    /// It has called `next` since the driver looked.
    polled: bool,
    /// It waits inside `next`.
    waiting: bool,
    /// When the driver was last woken for a sign of life.
    told: Instant,
    /// How old that may become.
    stale_after: Duration,
    /// The member is out because of a missed poll and waits for the next one.
    pub(super) awaited: bool,
}

impl Application {
    pub(super) fn new(max_poll_interval_ms: u32) -> Self {
        Self {
            consumed: BTreeMap::new(),
            polled: false,
            waiting: false,
            told: Instant::now(),
            stale_after: Duration::from_millis(u64::from(max_poll_interval_ms / 10).min(1000)),
            awaited: false,
        }
    }

    /// It has called `next`; true if the driver should hear of it now.
    pub(super) fn poll(&mut self, now: Instant) -> bool {
        self.polled = true;
        let tell = self.awaited || now >= self.told + self.stale_after;
        if tell {
            self.told = now;
        }
        tell
    }

    pub(super) fn wait(&mut self, waiting: bool) {
        self.waiting = waiting;
        self.polled = true;
    }

    pub(super) fn consume(&mut self, what: TopicPartition, position: Offset) {
        self.consumed.insert(what, position);
    }

    /// What was consumed, and whether the application is alive, since the last look.
    pub(super) fn take(&mut self) -> (BTreeMap<TopicPartition, Offset>, bool) {
        let alive = self.polled || self.waiting;
        self.polled = false;
        (std::mem::take(&mut self.consumed), alive)
    }
}
