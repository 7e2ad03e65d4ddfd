//! The broker's settings: Kafka's property names and defaults, in one table.

use kohort_group::coordinator::CoordinatorConfig;
use std::fmt::Display;
use std::str::FromStr;

/// A setting that is unknown, or whose value makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is no such property.
    #[error("unknown broker property {0:?}")]
    Unknown(String),
    /// The value cannot be read, or is out of range.
    #[error("{name}={value}: expected {expected}")]
    Invalid {
        /// The property.
        name: &'static str,
        /// What was given.
        value: String,
        /// What would do.
        expected: String,
    },
}

trait Value: Sized + Display + FromStr {
    const KIND: &'static str;
    /// The type as DescribeConfigs numbers it.
    const CODE: i8;
    fn within(&self, _low: i64, _high: i64) -> bool {
        true
    }
}

impl Value for i32 {
    const KIND: &'static str = "a whole number";
    const CODE: i8 = 3;
    fn within(&self, low: i64, high: i64) -> bool {
        (low..=high).contains(&i64::from(*self))
    }
}

impl Value for i64 {
    const KIND: &'static str = "a whole number";
    const CODE: i8 = 5;
    fn within(&self, low: i64, high: i64) -> bool {
        (low..=high).contains(self)
    }
}

impl Value for bool {
    const KIND: &'static str = "true or false";
    const CODE: i8 = 1;
}

impl Value for String {
    const KIND: &'static str = "text";
    const CODE: i8 = 2;
}

macro_rules! settings {
    ($( $(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $name:literal, $low:expr => $high:expr; )*) => {
        /// What a broker can be told. Each field names Kafka's property and has Kafka's default.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings { $( $(#[$doc])* #[doc = concat!("\n\n`", $name, "`")] pub $field: $type, )* }

        impl Default for Settings {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl Settings {
            /// All property names.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// Sets a property by its name.
            ///
            /// # Errors
            /// [`SettingsError`] if there is no such property or the value does not fit.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
                match name {
                    $($name => self.$field = read($name, value, $low, $high)?,)*
                    _ => return Err(SettingsError::Unknown(name.to_owned())),
                }
                Ok(())
            }

            /// All properties: name, value, default, type as DescribeConfigs numbers it.
            #[must_use]
            pub fn list(&self) -> Vec<(&'static str, String, String, i8)> {
                let default = Self::default();
                vec![$(($name, self.$field.to_string(), default.$field.to_string(), <$type as Value>::CODE),)*]
            }
        }
    };
}

fn read<T: Value>(
    name: &'static str,
    value: &str,
    low: i64,
    high: i64,
) -> Result<T, SettingsError> {
    let read = value
        .parse::<T>()
        .ok()
        .filter(|read| read.within(low, high));
    read.ok_or_else(|| SettingsError::Invalid {
        name,
        value: value.to_owned(),
        expected: if T::CODE == 3 || T::CODE == 5 {
            format!("{} from {low} to {high}", T::KIND)
        } else {
            T::KIND.to_owned()
        },
    })
}

const MAX32: i64 = i32::MAX as i64;
const MAX64: i64 = i64::MAX;

settings! {
    /// The broker's number in Metadata answers.
    node_id: i32 = 1, "node.id", 0 => MAX32;
    /// `HOST:PORT` that clients are told to connect to; empty for the address at which they did.
    advertised_listeners: String = String::new(), "advertised.listeners", 0 => 0;
    /// How long the first join of an empty group waits for others, milliseconds.
    group_initial_rebalance_delay_ms: i32 = 3_000, "group.initial.rebalance.delay.ms", 0 => MAX32;
    /// The shortest session timeout that a member may ask for, milliseconds.
    group_min_session_timeout_ms: i32 = 6_000, "group.min.session.timeout.ms", 0 => MAX32;
    /// The longest session timeout that a member may ask for, milliseconds.
    group_max_session_timeout_ms: i32 = 1_800_000, "group.max.session.timeout.ms", 0 => MAX32;
    /// The most members of a group.
    group_max_size: i32 = i32::MAX, "group.max.size", 1 => MAX32;
    /// Partitions of `__consumer_offsets`; each has a coordinator of its own.
    offsets_topic_num_partitions: i32 = 50, "offsets.topic.num.partitions", 1 => 10_000;
    /// When a segment of `__consumer_offsets` is full, bytes.
    offsets_topic_segment_bytes: i32 = 104_857_600, "offsets.topic.segment.bytes", 1 => MAX32;
    /// How long offsets of an empty group are kept, minutes.
    offsets_retention_minutes: i32 = 10_080, "offsets.retention.minutes", 1 => MAX32;
    /// How often expired offsets are looked for, milliseconds.
    offsets_retention_check_interval_ms: i64 = 600_000, "offsets.retention.check.interval.ms", 1 => MAX64;
    /// The longest text committed with an offset, bytes.
    offset_metadata_max_bytes: i32 = 4_096, "offset.metadata.max.bytes", 0 => MAX32;
    /// Partitions of a topic that does not say.
    num_partitions: i32 = 1, "num.partitions", 1 => 100_000;
    /// Replicas of a topic that does not say; there is one broker, so one.
    default_replication_factor: i32 = 1, "default.replication.factor", 1 => 1;
    /// Whether a topic that a client asks for is made.
    auto_create_topics_enable: bool = true, "auto.create.topics.enable", 0 => 0;
    /// Whether topics may be deleted.
    delete_topic_enable: bool = true, "delete.topic.enable", 0 => 0;
    /// The largest record batch, bytes.
    message_max_bytes: i32 = 1_048_588, "message.max.bytes", 0 => MAX32;
    /// `CreateTime` keeps the producer's timestamps, `LogAppendTime` overwrites them.
    log_message_timestamp_type: String = "CreateTime".to_owned(), "log.message.timestamp.type", 0 => 0;
    /// The largest request, bytes.
    socket_request_max_bytes: i32 = 104_857_600, "socket.request.max.bytes", 1 => MAX32;
    /// The largest answer to a fetch, bytes.
    fetch_max_bytes: i32 = 57_671_680, "fetch.max.bytes", 1_024 => MAX32;
    /// The most connections at once.
    max_connections: i32 = i32::MAX, "max.connections", 1 => MAX32;
    /// Silence after which a connection is closed, milliseconds.
    connections_max_idle_ms: i64 = 600_000, "connections.max.idle.ms", 1 => MAX64;
    /// `delete` removes old segments, `compact` keeps the last record of each key.
    log_cleanup_policy: String = "delete".to_owned(), "log.cleanup.policy", 0 => 0;
    /// How long records are kept, milliseconds; −1 for ever (Kafka's default says 168 hours).
    log_retention_ms: i64 = 604_800_000, "log.retention.ms", -1 => MAX64;
    /// How many bytes of a partition are kept; −1 for all.
    log_retention_bytes: i64 = -1, "log.retention.bytes", -1 => MAX64;
    /// How often old segments are looked for, milliseconds.
    log_retention_check_interval_ms: i64 = 300_000, "log.retention.check.interval.ms", 1 => MAX64;
    /// When a segment is full, bytes.
    log_segment_bytes: i32 = 1_073_741_824, "log.segment.bytes", 1_024 => MAX32;
    /// When a segment is old, milliseconds (Kafka's default says 168 hours).
    log_roll_ms: i64 = 604_800_000, "log.roll.ms", 1 => MAX64;
    /// After how many records of a partition its file is synced to the disk, before they are acknowledged. Without it
    /// the operating system decides: what was acknowledged survives the end of the process, not that of the machine.
    log_flush_interval_messages: i64 = i64::MAX, "log.flush.interval.messages", 1 => MAX64;
    /// How long an idempotent producer that is silent is remembered, milliseconds.
    producer_id_expiration_ms: i32 = 86_400_000, "producer.id.expiration.ms", 1 => MAX32;
}

impl Settings {
    /// What a test wants: a group forms without delay.
    #[must_use]
    pub fn for_tests() -> Self {
        Self {
            group_initial_rebalance_delay_ms: 0,
            ..Self::default()
        }
    }

    /// The part that coordinators need; `wall_clock_offset_ms` is Unix time at `Timestamp(0)`.
    pub(crate) fn coordinator(&self, wall_clock_offset_ms: u64) -> CoordinatorConfig {
        CoordinatorConfig {
            initial_rebalance_delay_ms: self.group_initial_rebalance_delay_ms as u64,
            min_session_timeout_ms: self.group_min_session_timeout_ms,
            max_session_timeout_ms: self.group_max_session_timeout_ms,
            max_size: self.group_max_size as usize,
            offset_metadata_max_bytes: self.offset_metadata_max_bytes as usize,
            offsets_retention_ms: self.offsets_retention_minutes as u64 * 60_000,
            offsets_retention_check_interval_ms: self.offsets_retention_check_interval_ms as u64,
            max_record_bytes: self.message_max_bytes as usize,
            wall_clock_offset_ms,
            ..CoordinatorConfig::default()
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_property_is_set_by_its_kafka_name() {
        let mut settings = Settings::default();
        settings.set("num.partitions", "12").unwrap();
        settings.set("auto.create.topics.enable", "false").unwrap();
        assert_eq!(
            (settings.num_partitions, settings.auto_create_topics_enable),
            (12, false)
        );
        let error = settings.set("num.partitions", "0").unwrap_err().to_string();
        assert!(error.contains("from 1 to"), "{error}");
        assert!(matches!(
            settings.set("num.partition", "1"),
            Err(SettingsError::Unknown(_))
        ));
    }

    #[test]
    fn every_default_is_within_its_range() {
        let defaults = Settings::default();
        for (name, value, _, _) in defaults.list() {
            assert_eq!(Settings::default().set(name, &value), Ok(()), "{name}");
        }
    }
}
