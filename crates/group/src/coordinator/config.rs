//! The coordinator's settings, with Kafka's names and defaults.

/// Settings of a coordinator. Times are in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorConfig {
    /// How long the first join of an empty group waits for others (`group.initial.rebalance.delay.ms`, 3000).
    pub initial_rebalance_delay_ms: u64,
    /// The shortest session timeout allowed (`group.min.session.timeout.ms`, 6000).
    pub min_session_timeout_ms: i32,
    /// The longest session timeout allowed (`group.max.session.timeout.ms`, 1,800,000).
    pub max_session_timeout_ms: i32,
    /// The most members a group may have (`group.max.size`, unlimited).
    pub max_size: usize,
    /// The longest text that may be committed with an offset, bytes (`offset.metadata.max.bytes`, 4096).
    pub offset_metadata_max_bytes: usize,
    /// How long offsets of an empty group are kept (`offsets.retention.minutes`, 7 days).
    pub offsets_retention_ms: u64,
    /// How often expired offsets are looked for (`offsets.retention.check.interval.ms`, 600,000).
    pub offsets_retention_check_interval_ms: u64,
    /// How long a new member that cannot beat yet may wait for its join (a constant in Kafka, 300,000).
    pub new_member_join_timeout_ms: u64,
    /// The largest record that the log takes, bytes (`message.max.bytes` of the offsets topic, 1,048,588).
    pub max_record_bytes: usize,
    /// Wall-clock milliseconds (Unix) at `Timestamp(0)`, for commit times and retention.
    pub wall_clock_offset_ms: u64,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        Self {
            initial_rebalance_delay_ms: 3_000,
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            max_size: i32::MAX as usize,
            offset_metadata_max_bytes: 4_096,
            offsets_retention_ms: 7 * 24 * 3_600_000,
            offsets_retention_check_interval_ms: 600_000,
            new_member_join_timeout_ms: 300_000,
            max_record_bytes: 1_048_588,
            wall_clock_offset_ms: 0,
        }
    }
}
