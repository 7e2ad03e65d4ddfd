//! What a seed draws before its run begins: sizes, settings, and which faults it knows (swarm testing).

use crate::faults::Fault;
use crate::random::Random;
use std::collections::BTreeSet;

/// How the members of a run rebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Everything is let go before each join; the assignor with this name.
    Eager(&'static str),
    /// `cooperative-sticky` as Kafka ships it.
    Cooperative,
    /// `cooperative-sticky` with explicit revocation.
    Explicit,
    /// Some members know explicit revocation, some do not.
    Mixed,
}

/// The settings of a run. Times are in milliseconds.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// How the members rebalance.
    pub mode: Mode,
    /// How many consumers there are at first, and at most.
    pub consumers: (u64, u64),
    /// How many consumers of a hundred are static members.
    pub static_percent: u64,
    /// The partitions of each topic at first.
    pub topics: Vec<usize>,
    /// `session.timeout.ms`.
    pub session_ms: u64,
    /// `heartbeat.interval.ms`.
    pub heartbeat_ms: u64,
    /// `max.poll.interval.ms`, which is also the rebalance timeout.
    pub max_poll_ms: u64,
    /// `request.timeout.ms`.
    pub request_timeout_ms: u64,
    /// `auto.commit.interval.ms`, if commits are automatic.
    pub auto_commit_ms: Option<u64>,
    /// `group.initial.rebalance.delay.ms`.
    pub initial_delay_ms: u64,
    /// How long a close may drain.
    pub close_drain_ms: u64,
    /// The slowest way of a frame.
    pub latency_ms: u64,
    /// The slowest append.
    pub append_ms: u64,
    /// How often the application polls, at the slowest.
    pub poll_ms: u64,
    /// How long the application takes to let go, at the slowest, when nothing is wrong.
    pub release_ms: u64,
    /// A record is produced this often.
    pub produce_ms: u64,
    /// How long things are broken.
    pub trouble_ms: u64,
    /// The longest pause between two faults.
    pub fault_gap_ms: u64,
    /// The faults that this run knows.
    pub faults: BTreeSet<Fault>,
    /// Whether the broker serves older versions.
    pub old_versions: bool,
}

impl Scenario {
    /// What the seed draws.
    #[must_use]
    pub fn draw(random: &mut Random) -> Self {
        let mode = match random.next() % 10 {
            0 => Mode::Eager("range"),
            1 => Mode::Eager("roundrobin"),
            2 => Mode::Eager("sticky"),
            3 | 4 => Mode::Cooperative,
            5 | 6 => Mode::Mixed,
            _ => Mode::Explicit,
        };
        let session_ms = *random.pick(&[6_000, 10_000, 15_000]);
        let many = random.percent(20);
        let first = random.between(1, if many { 8 } else { 4 });
        let quiet = random.percent(5);
        let share = random.between(10, 70);
        let faults = Fault::ALL
            .iter()
            .copied()
            .filter(|_| !quiet && random.percent(share))
            .collect();
        Self {
            mode,
            consumers: (first, first + random.between(1, 4)),
            static_percent: *random.pick(&[0, 0, 30, 100]),
            topics: (0..random.between(1, 3))
                .map(|_| random.between(1, 8) as usize)
                .collect(),
            session_ms,
            heartbeat_ms: *random.pick(&[500, 1_000, session_ms / 3]),
            max_poll_ms: *random.pick(&[4_000, 10_000, 30_000]),
            request_timeout_ms: *random.pick(&[2_000, 5_000, 30_000]),
            auto_commit_ms: *random.pick(&[Some(200), Some(1_000), Some(5_000), None]),
            initial_delay_ms: *random.pick(&[0, 300, 3_000]),
            close_drain_ms: *random.pick(&[0, 1_000, 5_000]),
            latency_ms: *random.pick(&[1, 5, 30, 200]),
            append_ms: *random.pick(&[0, 2, 20, 300]),
            poll_ms: *random.pick(&[20, 100, 500]),
            release_ms: *random.pick(&[0, 10, 200]),
            produce_ms: *random.pick(&[20, 100]),
            trouble_ms: random.between(20_000, 60_000),
            fault_gap_ms: *random.pick(&[300, 1_500, 6_000]),
            faults,
            old_versions: random.percent(20),
        }
    }

    /// Within how many milliseconds after the last fault the group must have converged: a dead member's session and rebalance
    /// timeout, requests that wait for theirs, and some rounds.
    #[must_use]
    pub fn patience_ms(&self) -> u64 {
        2 * (self.session_ms + self.max_poll_ms + self.initial_delay_ms)
            + 2 * self.request_timeout_ms
            + self.max_poll_ms
            + 60_000
    }
}
