//! A member's settings, with Kafka's names and defaults.

use crate::assign::Assignor;
use std::sync::Arc;

/// Settings of a member. Times are in milliseconds.
#[derive(Clone, Debug)]
pub struct MemberConfig {
    /// The group (`group.id`).
    pub group_id: String,
    /// The static member's own id (`group.instance.id`).
    pub group_instance_id: Option<String>,
    /// The client id, for the records and causes that the member writes (`client.id`).
    pub client_id: String,
    /// Where the client is (`client.rack`).
    pub rack: Option<String>,
    /// Without a sign of life for so long the member is out (`session.timeout.ms`, 45,000).
    pub session_timeout_ms: u64,
    /// How often it beats when nothing happens (`heartbeat.interval.ms`, 3000; below the session timeout).
    pub heartbeat_interval_ms: u64,
    /// How long the application may take between polls, and a rebalance waits for the member (`max.poll.interval.ms`, 300,000).
    pub max_poll_interval_ms: u64,
    /// How long an ordinary request may take (`request.timeout.ms`, 30,000). JoinGroup and SyncGroup wait for the rebalance timeout and 5 s more.
    pub request_timeout_ms: u64,
    /// The first pause after a failure (`retry.backoff.ms`, 100).
    pub retry_backoff_ms: u64,
    /// The longest pause after failures (`retry.backoff.max.ms`, 1000).
    pub retry_backoff_max_ms: u64,
    /// How long a commit that the application waits for is retried (`default.api.timeout.ms`, 60,000).
    pub default_api_timeout_ms: u64,
    /// How often positions are committed, if at all (`enable.auto.commit`, `auto.commit.interval.ms`, 5000).
    pub auto_commit_interval_ms: Option<u64>,
    /// How long a close may drain before the member leaves the plain way (5000; 0 does not drain).
    pub close_drain_ms: u64,
    /// The assignors, the best first (`partition.assignment.strategy`; default `cooperative-sticky` alone).
    pub assignors: Vec<Arc<dyn Assignor>>,
    /// Whether to take part in explicit revocation with members that know it (default true).
    pub explicit_revocation: bool,
    /// The seed of jitter and phases, fresh for each incarnation of the process.
    pub seed: u64,
}
