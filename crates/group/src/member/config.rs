//! A member's settings, with Kafka's names and defaults.

use crate::assign::Assignor;
use std::fmt;
use std::hash::{Hash, Hasher};
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

impl MemberConfig {
    /// Kafka's defaults, for this group with these assignors (automatic commits off, draining on).
    #[must_use]
    pub fn new(group_id: impl Into<String>, assignors: Vec<Arc<dyn Assignor>>) -> Self {
        Self {
            group_id: group_id.into(),
            group_instance_id: None,
            client_id: String::new(),
            rack: None,
            session_timeout_ms: 45_000,
            heartbeat_interval_ms: 3_000,
            max_poll_interval_ms: 300_000,
            request_timeout_ms: 30_000,
            retry_backoff_ms: 100,
            retry_backoff_max_ms: 1_000,
            default_api_timeout_ms: 60_000,
            auto_commit_interval_ms: None,
            close_drain_ms: 5_000,
            assignors,
            explicit_revocation: true,
            seed: 0,
        }
    }

    /// How the member gives partitions up. Any eager assignor makes it eager, whichever the group picks: what to give up is
    /// decided before that is known (KIP-429).
    ///
    /// # Errors
    /// All that is wrong with the settings, at once.
    pub fn validate(&self) -> Result<Mode, ConfigErrors> {
        let mut errors = Vec::new();
        if self.group_id.is_empty() {
            errors.push(ConfigError::EmptyGroupId);
        }
        if self.group_instance_id.as_deref() == Some("") {
            errors.push(ConfigError::EmptyInstanceId);
        }
        self.validate_times(&mut errors);
        let mode = self.validate_assignors(&mut errors);
        match mode {
            Some(mode) if errors.is_empty() => Ok(mode),
            Some(_) | None => Err(ConfigErrors(errors)),
        }
    }

    fn validate_times(&self, errors: &mut Vec<ConfigError>) {
        if self.heartbeat_interval_ms >= self.session_timeout_ms {
            errors.push(ConfigError::HeartbeatNotBelowSession {
                heartbeat: self.heartbeat_interval_ms,
                session: self.session_timeout_ms,
            });
        }
        if self.retry_backoff_max_ms < self.retry_backoff_ms {
            errors.push(ConfigError::BackoffMaximumBelowFirst {
                first: self.retry_backoff_ms,
                maximum: self.retry_backoff_max_ms,
            });
        }
        for (name, value) in [
            ("session.timeout.ms", self.session_timeout_ms),
            ("heartbeat.interval.ms", self.heartbeat_interval_ms),
            ("max.poll.interval.ms", self.max_poll_interval_ms),
            ("request.timeout.ms", self.request_timeout_ms),
            (
                "auto.commit.interval.ms",
                self.auto_commit_interval_ms.unwrap_or(1),
            ),
        ] {
            if value == 0 {
                errors.push(ConfigError::Zero(name));
            }
        }
        for (name, value) in [
            ("session.timeout.ms", self.session_timeout_ms),
            ("max.poll.interval.ms", self.max_poll_interval_ms),
        ] {
            if value > i32::MAX as u64 {
                errors.push(ConfigError::TooLarge(name, value));
            }
        }
    }

    fn validate_assignors(&self, errors: &mut Vec<ConfigError>) -> Option<Mode> {
        if self.assignors.is_empty() {
            errors.push(ConfigError::NoAssignor);
            return None;
        }
        for (at, assignor) in self.assignors.iter().enumerate() {
            if assignor.name().is_empty() {
                errors.push(ConfigError::EmptyAssignorName);
            }
            if self.assignors[..at]
                .iter()
                .any(|other| other.name() == assignor.name())
            {
                errors.push(ConfigError::DuplicateAssignor(assignor.name().to_owned()));
            }
        }
        let eager = self.assignors.iter().any(|assignor| assignor.is_eager());
        Some(if eager {
            Mode::Eager
        } else {
            Mode::Cooperative
        })
    }

    fn parts(&self) -> impl Eq + Hash + '_ {
        let assignors: Vec<&str> = self.assignors.iter().map(|a| a.name()).collect();
        let names = (
            &self.group_id,
            &self.group_instance_id,
            &self.client_id,
            &self.rack,
            assignors,
        );
        let times = (
            self.session_timeout_ms,
            self.heartbeat_interval_ms,
            self.max_poll_interval_ms,
            self.request_timeout_ms,
            self.retry_backoff_ms,
            self.retry_backoff_max_ms,
            self.default_api_timeout_ms,
            self.auto_commit_interval_ms,
            self.close_drain_ms,
        );
        (names, times, self.explicit_revocation, self.seed)
    }
}

/// Assignors are compared by their names.
impl PartialEq for MemberConfig {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for MemberConfig {}

impl Hash for MemberConfig {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// How a member gives partitions up. Fixed for its life, and the same whichever assignor the group picks (KIP-429).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Everything, before it joins.
    Eager,
    /// What it is told to, after the sync.
    Cooperative,
}

/// Something wrong with a member's settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ConfigError {
    /// A group has a name.
    #[error("group.id is empty; name the group")]
    EmptyGroupId,
    /// An empty instance id is no instance id.
    #[error("group.instance.id is empty; leave it out for a dynamic member")]
    EmptyInstanceId,
    /// A session must hold at least one beat.
    #[error(
        "heartbeat.interval.ms ({heartbeat}) is not below session.timeout.ms ({session}); a third of it is usual"
    )]
    HeartbeatNotBelowSession {
        /// `heartbeat.interval.ms`.
        heartbeat: u64,
        /// `session.timeout.ms`.
        session: u64,
    },
    /// The longest pause is shorter than the first.
    #[error("retry.backoff.max.ms ({maximum}) is below retry.backoff.ms ({first})")]
    BackoffMaximumBelowFirst {
        /// `retry.backoff.ms`.
        first: u64,
        /// `retry.backoff.max.ms`.
        maximum: u64,
    },
    /// A time that must be more than nothing.
    #[error("{0} is 0; it must be at least 1 ms")]
    Zero(&'static str),
    /// A time that the protocol cannot carry.
    #[error("{0} is {1}; the protocol carries at most 2147483647 ms")]
    TooLarge(&'static str, u64),
    /// Nobody could lead.
    #[error("partition.assignment.strategy is empty; name at least one assignor")]
    NoAssignor,
    /// An assignor without a name.
    #[error("an assignor has an empty name; brokers refuse that")]
    EmptyAssignorName,
    /// The same name twice.
    #[error("assignor {0} is listed twice")]
    DuplicateAssignor(String),
}

/// All that is wrong with a member's settings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
