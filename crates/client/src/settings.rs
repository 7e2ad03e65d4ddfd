//! All settings in one table: our name, Kafka's property, our default beside Kafka's.

use crate::error::Error;
use std::collections::BTreeMap;

/// A value that can stand in a properties file.
trait Value: Sized {
    fn read(text: &str) -> Result<Self, String>;
    fn write(&self) -> String;
}

macro_rules! number_value {
    ($($type:ident)*) => {$(
        impl Value for $type {
            fn read(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|_| {
                    format!("expected a whole number from {} to {}, got {text:?}", $type::MIN, $type::MAX)
                })
            }
            fn write(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
number_value!(u32 i32 u64);

impl Value for bool {
    fn read(text: &str) -> Result<Self, String> {
        match text.trim() {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("expected true or false, got {other:?}")),
        }
    }
    fn write(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn read(text: &str) -> Result<Self, String> {
        Ok(text.trim().to_owned())
    }
    fn write(&self) -> String {
        self.clone()
    }
}

impl Value for Option<String> {
    fn read(text: &str) -> Result<Self, String> {
        Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
    }
    fn write(&self) -> String {
        self.clone().unwrap_or_default()
    }
}

impl Value for Vec<String> {
    fn read(text: &str) -> Result<Self, String> {
        let items = text
            .split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty());
        Ok(items.map(str::to_owned).collect())
    }
    fn write(&self) -> String {
        self.join(",")
    }
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $($text:literal)|+,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $word,)* }

        impl Value for $name {
            fn read(text: &str) -> Result<Self, String> {
                match text.trim().to_ascii_lowercase().as_str() {
                    $($($text)|+ => Ok($name::$word),)*
                    other => {
                        let known = [$(stringify!($($text)or+),)*].join(", ").replace('"', "");
                        Err(format!("expected one of {known}; got {other:?}"))
                    }
                }
            }
            fn write(&self) -> String {
                match self { $($name::$word => first(&[$($text),+]),)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;
            fn from_str(text: &str) -> Result<Self, Error> {
                Value::read(text).map_err(Error::Config)
            }
        }
    };
}

fn first(words: &[&str]) -> String {
    words.first().copied().unwrap_or_default().to_owned()
}

words! {
    /// How many copies must exist before a record counts as acknowledged.
    Acks {
        /// All replicas that are in sync.
        All = "all" | "-1",
        /// The partition's leader.
        Leader = "1",
        /// Nobody: the broker does not even answer.
        None = "0",
    }
}

words! {
    /// Where reading starts if no offset is committed (or the one that is does not exist any more).
    Reset {
        /// At the first record.
        Earliest = "earliest",
        /// Behind the last record: only what comes from now on.
        Latest = "latest",
        /// Nowhere: it is an error.
        None = "none",
    }
}

words! {
    /// How record batches are compressed.
    Codec {
        /// Not at all.
        None = "none",
        /// gzip.
        Gzip = "gzip",
        /// Snappy, in the framing of Kafka's Java client.
        Snappy = "snappy",
        /// LZ4 frames.
        Lz4 = "lz4",
        /// Zstandard (broker 2.1 and later).
        Zstd = "zstd",
    }
}

/// One row of the table of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Kafka's property name (or ours, where Kafka has none).
    pub property: &'static str,
    /// Our default.
    pub default: String,
    /// Kafka's own default; `-` where Kafka has no such property.
    pub kafka: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

macro_rules! settings {
    ($( #[doc = $doc:literal] $field:ident: $type:ty = $default:expr, $property:literal, kafka $kafka:literal; )*) => {
        /// The settings of consumer, producer and admin. The table is [`Settings::table`].
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings { $( #[doc = $doc] pub $field: $type, )* }

        impl Default for Settings {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl Settings {
            /// All settings: property, our default, Kafka's, and what it means.
            #[must_use]
            pub fn table() -> Vec<Row> {
                let defaults = Self::default();
                vec![$( Row {
                    property: $property,
                    default: defaults.$field.write(),
                    kafka: $kafka,
                    meaning: $doc.trim_ascii(),
                }, )*]
            }

            /// The names of all properties.
            pub const PROPERTIES: &'static [&'static str] = &[$($property),*];

            /// Sets one by Kafka's property name.
            ///
            /// # Errors
            /// [`Error::Config`]: the name is not known (it names the nearest that is), or the value makes no sense.
            pub fn set(&mut self, property: &str, value: &str) -> Result<(), Error> {
                match property {
                    $( $property => {
                        self.$field = Value::read(value)
                            .map_err(|reason| Error::Config(format!("{property}: {reason}")))?;
                    } )*
                    _ => return Err(unknown(property)),
                }
                Ok(())
            }
        }
    };
}

settings! {
    /// Where to find the cluster, `host:port`, several separated by commas.
    bootstrap: Vec<String> = vec!["127.0.0.1:9092".into()], "bootstrap.servers", kafka "none";
    /// The client's own name, for the brokers' logs and quotas.
    client_id: String = "kohort".into(), "client.id", kafka "made up";
    /// The consumer group.
    group_id: Option<String> = None, "group.id", kafka "none";
    /// The static member's own id (KIP-345): a member that comes back with it within the session timeout causes no rebalance.
    group_instance_id: Option<String> = None, "group.instance.id", kafka "none";
    /// Which rack the client is in.
    rack: Option<String> = None, "client.rack", kafka "none";
    /// The assignors, the best first: cooperative-sticky, range, roundrobin, sticky.
    assignors: Vec<String> = vec!["cooperative-sticky".into()], "partition.assignment.strategy", kafka "range,cooperative-sticky";
    /// Whether cooperative-sticky members revoke what the leader says and rejoin at once, where both know it.
    explicit_revocation: bool = true, "explicit.revocation", kafka "-";
    /// Milliseconds without a sign of life after which a member is out.
    session_timeout_ms: u32 = 45_000, "session.timeout.ms", kafka "45000";
    /// Milliseconds between heartbeats when nothing happens.
    heartbeat_interval_ms: u32 = 3_000, "heartbeat.interval.ms", kafka "3000";
    /// Milliseconds that the application may take between two calls of `next`; also how long a rebalance waits for the member.
    max_poll_interval_ms: u32 = 300_000, "max.poll.interval.ms", kafka "300000";
    /// Whether positions are committed by themselves.
    enable_auto_commit: bool = true, "enable.auto.commit", kafka "true";
    /// Milliseconds between such commits.
    auto_commit_interval_ms: u32 = 5_000, "auto.commit.interval.ms", kafka "5000";
    /// Where reading starts if no offset is committed: earliest, latest or none.
    auto_offset_reset: Reset = Reset::Latest, "auto.offset.reset", kafka "latest";
    /// Milliseconds for which a close may drain (hand partitions over) before it leaves the plain way; 0 does not drain.
    close_drain_ms: u32 = 5_000, "close.drain.ms", kafka "-";
    /// Bytes that must be there before a fetch is answered, within its wait.
    fetch_min_bytes: i32 = 1, "fetch.min.bytes", kafka "1";
    /// Bytes that one fetch may bring, about.
    fetch_max_bytes: i32 = 52_428_800, "fetch.max.bytes", kafka "52428800";
    /// Bytes that one fetch may bring of one partition, about.
    max_partition_fetch_bytes: i32 = 1_048_576, "max.partition.fetch.bytes", kafka "1048576";
    /// Milliseconds for which the broker may hold a fetch that finds nothing.
    fetch_max_wait_ms: u32 = 500, "fetch.max.wait.ms", kafka "500";
    /// Whether the checksums of record batches are verified.
    check_crcs: bool = true, "check.crcs", kafka "true";
    /// Whether reading or subscribing may create a topic that does not exist.
    allow_auto_create_topics: bool = false, "allow.auto.create.topics", kafka "true";
    /// Who must have a record before it counts as acknowledged: all, 1 or 0.
    acks: Acks = Acks::All, "acks", kafka "all";
    /// Whether a batch that is sent twice is stored once (KIP-98); needs acks=all.
    enable_idempotence: bool = true, "enable.idempotence", kafka "true";
    /// How batches are compressed: none, gzip, snappy, lz4 or zstd.
    compression: Codec = Codec::None, "compression.type", kafka "none";
    /// Bytes of records in one batch, about.
    batch_size: u32 = 131_072, "batch.size", kafka "16384";
    /// Milliseconds for which a batch waits for more records, if none is under way; one that is fills the next by itself.
    linger_ms: u32 = 0, "linger.ms", kafka "5";
    /// Bytes of records that may wait to be sent; `send` waits beyond that.
    buffer_memory: u32 = 33_554_432, "buffer.memory", kafka "33554432";
    /// Milliseconds for which `send` waits for a topic's metadata.
    max_block_ms: u32 = 60_000, "max.block.ms", kafka "60000";
    /// Bytes of a record or request at most.
    max_request_size: u32 = 1_048_576, "max.request.size", kafka "1048576";
    /// Milliseconds after which a record that is not acknowledged counts as failed.
    delivery_timeout_ms: u32 = 120_000, "delivery.timeout.ms", kafka "120000";
    /// Milliseconds that a request may take.
    request_timeout_ms: u32 = 30_000, "request.timeout.ms", kafka "30000";
    /// Milliseconds for which a call that retries does so.
    default_api_timeout_ms: u32 = 60_000, "default.api.timeout.ms", kafka "60000";
    /// Milliseconds before the first retry.
    retry_backoff_ms: u32 = 100, "retry.backoff.ms", kafka "100";
    /// Milliseconds between retries at most; they double up to it.
    retry_backoff_max_ms: u32 = 1_000, "retry.backoff.max.ms", kafka "1000";
    /// Milliseconds before the first attempt to reconnect to a broker.
    reconnect_backoff_ms: u32 = 50, "reconnect.backoff.ms", kafka "50";
    /// Milliseconds between such attempts at most; they double up to it.
    reconnect_backoff_max_ms: u32 = 1_000, "reconnect.backoff.max.ms", kafka "1000";
    /// Milliseconds for a connection to be opened and to answer for the first time.
    connection_setup_timeout_ms: u32 = 10_000, "socket.connection.setup.timeout.ms", kafka "10000";
    /// Milliseconds for which the first connection is tried while nobody listens there.
    bootstrap_timeout_ms: u32 = 5_000, "bootstrap.timeout.ms", kafka "-";
    /// Milliseconds after which what is known about brokers and topics is asked for afresh.
    metadata_max_age_ms: u32 = 300_000, "metadata.max.age.ms", kafka "300000";
    /// How to talk to brokers; only PLAINTEXT is there yet.
    security_protocol: String = "PLAINTEXT".into(), "security.protocol", kafka "PLAINTEXT";
}

fn unknown(property: &str) -> Error {
    let nearest = Settings::table()
        .into_iter()
        .map(|row| (distance(property, row.property), row.property))
        .min();
    let hint = nearest.map_or(String::new(), |(_, name)| {
        format!("; the nearest that is known is {name}")
    });
    Error::Config(format!("{property}: there is no such setting{hint}"))
}

/// How many letters to insert, remove or replace to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

impl Settings {
    /// Sets many, and collects what is wrong with any of them.
    ///
    /// # Errors
    /// [`Error::Config`] with every problem, one a line.
    pub fn set_all(&mut self, properties: &BTreeMap<String, String>) -> Result<(), Error> {
        let problems: Vec<String> = properties
            .iter()
            .filter_map(|(property, value)| self.set(property, value).err())
            .map(|error| error.to_string())
            .collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Error::Config(problems.join("\n")))
        }
    }

    /// Looks at what does not fit together.
    ///
    /// # Errors
    /// [`Error::Config`] with every problem, one a line.
    pub fn check(&self) -> Result<(), Error> {
        let mut problems = Vec::new();
        let mut demand = |holds: bool, problem: &str| {
            if !holds {
                problems.push(problem.to_owned());
            }
        };
        demand(
            !self.bootstrap.is_empty(),
            "bootstrap.servers: name at least one host:port",
        );
        demand(
            self.security_protocol.eq_ignore_ascii_case("plaintext"),
            "security.protocol: only PLAINTEXT is supported; connect to a plaintext listener",
        );
        demand(
            self.heartbeat_interval_ms < self.session_timeout_ms,
            "heartbeat.interval.ms must be below session.timeout.ms (a third of it is usual), or the member is put out between two beats",
        );
        demand(
            self.session_timeout_ms > 0,
            "session.timeout.ms must be above 0",
        );
        demand(
            self.heartbeat_interval_ms > 0,
            "heartbeat.interval.ms must be above 0",
        );
        demand(
            self.max_poll_interval_ms > 0,
            "max.poll.interval.ms must be above 0",
        );
        demand(
            self.max_poll_interval_ms <= i32::MAX as u32,
            "max.poll.interval.ms must be at most 2147483647",
        );
        demand(
            self.session_timeout_ms <= i32::MAX as u32,
            "session.timeout.ms must be at most 2147483647",
        );
        demand(self.fetch_max_bytes > 0, "fetch.max.bytes must be above 0");
        demand(
            self.max_partition_fetch_bytes > 0,
            "max.partition.fetch.bytes must be above 0",
        );
        if problems.is_empty() {
            Ok(())
        } else {
            Err(Error::Config(problems.join("\n")))
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn kafkas_names_set_values() {
        let mut settings = Settings::default();
        settings.set("session.timeout.ms", "6000").unwrap();
        settings.set("compression.type", "LZ4").unwrap();
        settings.set("acks", "-1").unwrap();
        settings.set("bootstrap.servers", "a:1, b:2").unwrap();
        assert_eq!(settings.session_timeout_ms, 6000);
        assert_eq!(settings.compression, Codec::Lz4);
        assert_eq!(settings.acks, Acks::All);
        assert_eq!(settings.bootstrap, ["a:1", "b:2"]);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest() {
        let error = Settings::default()
            .set("session.timout.ms", "1")
            .unwrap_err();
        assert!(error.to_string().ends_with("session.timeout.ms"), "{error}");
    }

    #[test]
    fn every_default_can_be_read_back() {
        let defaults = Settings::default();
        let mut again = defaults.clone();
        for row in Settings::table() {
            again.set(row.property, &row.default).unwrap();
        }
        assert_eq!(again, defaults);
    }

    #[test]
    fn a_bad_value_says_what_was_expected() {
        let error = Settings::default().set("acks", "most").unwrap_err();
        assert!(error.to_string().contains("all or -1"), "{error}");
    }

    #[test]
    fn all_problems_come_at_once() {
        let wrong = BTreeMap::from([("acks".into(), "x".into()), ("nonsense".into(), "y".into())]);
        let error = Settings::default().set_all(&wrong).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 2);
    }
}
