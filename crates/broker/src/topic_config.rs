//! A topic's settings: Kafka's names, what each may be, and what it is where the topic does not say.

use crate::log::LogConfig;
use crate::settings::Settings;
use std::collections::BTreeMap;

/// Settings that differ from the broker's defaults.
pub(crate) type TopicConfigs = BTreeMap<String, String>;

#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A whole number of at least this.
    Number(i64),
    Flag,
    OneOf(&'static [&'static str]),
    /// A list of these.
    SomeOf(&'static [&'static str]),
    Text,
}

impl Kind {
    /// The type as DescribeConfigs numbers it.
    pub(crate) fn code(self) -> i8 {
        match self {
            Kind::Number(_) => 5,
            Kind::Flag => 1,
            Kind::SomeOf(_) => 7,
            Kind::OneOf(_) | Kind::Text => 2,
        }
    }

    fn fits(self, value: &str) -> Result<(), String> {
        let fits = match self {
            Kind::Number(low) => value.parse::<i64>().is_ok_and(|number| number >= low),
            Kind::Flag => value == "true" || value == "false",
            Kind::OneOf(choices) => choices.contains(&value),
            Kind::SomeOf(choices) => value.split(',').all(|part| choices.contains(&part.trim())),
            Kind::Text => true,
        };
        if fits {
            return Ok(());
        }
        Err(match self {
            Kind::Number(low) => format!("expected a whole number of at least {low}"),
            Kind::Flag => "expected true or false".to_owned(),
            Kind::OneOf(choices) => format!("expected one of {}", choices.join(", ")),
            Kind::SomeOf(choices) => format!("expected a list of {}", choices.join(", ")),
            Kind::Text => String::new(),
        })
    }
}

type Row = (&'static str, Kind, fn(&Settings) -> String);

/// Every setting that a topic may have. Those that only concern replication, tiers or files of Kafka's own are accepted and
/// shown, and change nothing.
pub(crate) const TABLE: &[Row] = &[
    (
        "cleanup.policy",
        Kind::SomeOf(&["delete", "compact"]),
        |s| s.log_cleanup_policy.clone(),
    ),
    (
        "compression.type",
        Kind::OneOf(&["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"]),
        |_| "producer".into(),
    ),
    ("delete.retention.ms", Kind::Number(0), |_| {
        "86400000".into()
    }),
    ("file.delete.delay.ms", Kind::Number(0), |_| "60000".into()),
    ("flush.messages", Kind::Number(1), |s| {
        s.log_flush_interval_messages.to_string()
    }),
    ("flush.ms", Kind::Number(0), |_| i64::MAX.to_string()),
    ("index.interval.bytes", Kind::Number(0), |_| "4096".into()),
    ("max.compaction.lag.ms", Kind::Number(1), |_| {
        i64::MAX.to_string()
    }),
    ("max.message.bytes", Kind::Number(0), |s| {
        s.message_max_bytes.to_string()
    }),
    ("message.timestamp.after.max.ms", Kind::Number(0), |_| {
        "3600000".into()
    }),
    ("message.timestamp.before.max.ms", Kind::Number(0), |_| {
        i64::MAX.to_string()
    }),
    (
        "message.timestamp.type",
        Kind::OneOf(&["CreateTime", "LogAppendTime"]),
        |s| s.log_message_timestamp_type.clone(),
    ),
    ("min.cleanable.dirty.ratio", Kind::Text, |_| "0.5".into()),
    ("min.compaction.lag.ms", Kind::Number(0), |_| "0".into()),
    ("min.insync.replicas", Kind::Number(1), |_| "1".into()),
    ("preallocate", Kind::Flag, |_| "false".into()),
    ("retention.bytes", Kind::Number(-1), |s| {
        s.log_retention_bytes.to_string()
    }),
    ("retention.ms", Kind::Number(-1), |s| {
        s.log_retention_ms.to_string()
    }),
    ("segment.bytes", Kind::Number(14), |s| {
        s.log_segment_bytes.to_string()
    }),
    ("segment.index.bytes", Kind::Number(4), |_| {
        "10485760".into()
    }),
    ("segment.jitter.ms", Kind::Number(0), |_| "0".into()),
    ("segment.ms", Kind::Number(1), |s| s.log_roll_ms.to_string()),
    ("unclean.leader.election.enable", Kind::Flag, |_| {
        "false".into()
    }),
];

/// Checks one setting of a topic.
///
/// # Errors
/// In words: what was expected.
pub(crate) fn check(name: &str, value: &str) -> Result<(), String> {
    let Some((_, kind, _)) = TABLE.iter().find(|(known, _, _)| *known == name) else {
        return Err(format!("Unknown topic config name: {name}"));
    };
    kind.fits(value)
        .map_err(|expected| format!("Invalid value {value} for configuration {name}: {expected}"))
}

/// What the logs of a topic obey.
pub(crate) fn log_config(configs: &TopicConfigs, settings: &Settings) -> LogConfig {
    let text = |name: &str| -> String {
        configs.get(name).cloned().unwrap_or_else(|| {
            let row = TABLE.iter().find(|(known, _, _)| *known == name);
            row.map_or_else(String::new, |(_, _, default)| default(settings))
        })
    };
    let number = |name: &str| text(name).parse::<i64>().unwrap_or(i64::MAX);
    let policy = text("cleanup.policy");
    LogConfig {
        segment_bytes: number("segment.bytes") as u64,
        roll_ms: number("segment.ms"),
        retention_ms: number("retention.ms"),
        retention_bytes: number("retention.bytes"),
        max_message_bytes: number("max.message.bytes") as usize,
        log_append_time: text("message.timestamp.type") == "LogAppendTime",
        timestamp_after_max_ms: number("message.timestamp.after.max.ms"),
        delete: policy.contains("delete"),
        compact: policy.contains("compact"),
        flush_messages: number("flush.messages"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_and_every_default_passes() {
        let settings = Settings::default();
        for (name, _, default) in TABLE {
            assert_eq!(check(name, &default(&settings)), Ok(()), "{name}");
        }
        assert_eq!(check("cleanup.policy", "compact,delete"), Ok(()));
        assert!(check("cleanup.policy", "compct").is_err());
        assert!(check("retention.ms", "-2").is_err());
        assert!(check("retention", "1").is_err());
    }

    #[test]
    fn a_topic_overrides_the_broker() {
        let configs = TopicConfigs::from([
            ("retention.ms".to_owned(), "5".to_owned()),
            ("cleanup.policy".to_owned(), "compact".to_owned()),
        ]);
        let config = log_config(&configs, &Settings::default());
        assert_eq!(
            (config.retention_ms, config.compact, config.delete),
            (5, true, false)
        );
        assert_eq!(config.max_message_bytes, 1_048_588);
    }
}
