//! What `kohort consume` writes: values for people, or events for programs.

use super::super::cluster::Format;
use kohort::{Assigned, Error, ErrorCode, Lost, Partitions, RebalanceRecord, Records};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// `records` events are at least so far apart.
const RECORDS_INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Output {
    format: Format,
    name: String,
    to: BufWriter<io::Stdout>,
    /// Delivered, and not told yet: count and last offset by partition.
    untold: BTreeMap<(String, i32), (u64, i64)>,
    told: Option<Instant>,
}

/// Now, in Unix milliseconds.
pub(super) fn unix_now() -> f64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (since.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

fn pairs(partitions: &Partitions) -> Value {
    partitions
        .iter()
        .map(|(topic, partition)| json!([&**topic, partition]))
        .collect()
}

impl Output {
    pub(super) fn new(format: Format, name: String) -> Self {
        Self {
            format,
            name,
            to: BufWriter::with_capacity(1 << 16, io::stdout()),
            untold: BTreeMap::new(),
            told: None,
        }
    }

    /// Writes one event and flushes; what was delivered before goes before it.
    pub(super) fn event(&mut self, event: &str, fields: &[(&str, Value)]) -> io::Result<()> {
        if self.format == Format::Text {
            return Ok(());
        }
        self.tell_records()?;
        self.write_event(event, fields)
    }

    fn write_event(&mut self, event: &str, fields: &[(&str, Value)]) -> io::Result<()> {
        // By hand, so that what every event has comes first.
        let name = Value::from(self.name.as_str());
        write!(
            self.to,
            r#"{{"t":{:.3},"member":{name},"event":"{event}""#,
            unix_now()
        )?;
        for (key, value) in fields {
            write!(self.to, r#","{key}":{value}"#)?;
        }
        self.to.write_all(b"}")?;
        self.to.write_all(b"\n")?;
        self.to.flush()
    }

    pub(super) fn assigned(&mut self, assigned: &Assigned) -> io::Result<()> {
        self.event(
            "assigned",
            &[
                ("partitions", pairs(&assigned.added)),
                ("generation", assigned.generation.into()),
                ("protocol", assigned.protocol.as_str().into()),
                ("explicit", assigned.explicit.into()),
                ("owned", assigned.owned.len().into()),
            ],
        )
    }

    pub(super) fn revoked(
        &mut self,
        partitions: &Partitions,
        generation: i32,
        owned: usize,
    ) -> io::Result<()> {
        self.event(
            "revoked",
            &[
                ("partitions", pairs(partitions)),
                ("generation", generation.into()),
                ("owned", owned.into()),
            ],
        )
    }

    pub(super) fn lost(&mut self, lost: &Lost) -> io::Result<()> {
        let Lost {
            partitions,
            why,
            generation,
        } = lost;
        self.event(
            "lost",
            &[
                ("partitions", pairs(partitions)),
                ("generation", (*generation).into()),
                ("why", why.as_str().into()),
            ],
        )
    }

    pub(super) fn rebalance(
        &mut self,
        cause: &str,
        deadline: tokio::time::Instant,
    ) -> io::Result<()> {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        let deadline = unix_now() + left.as_secs_f64() * 1000.0;
        self.event(
            "rebalance",
            &[
                ("state", "preparing".into()),
                ("cause", cause.into()),
                ("deadline", deadline.round().into()),
            ],
        )
    }

    pub(super) fn rebalanced(&mut self, record: &RebalanceRecord) -> io::Result<()> {
        let cause = record.causes.first();
        let cause = cause.map(|cause| {
            cause
                .text
                .clone()
                .unwrap_or_else(|| format!("{:?}", cause.kind))
        });
        self.event(
            "rebalance",
            &[
                ("state", "stable".into()),
                ("cause", cause.into()),
                ("generation", record.generation.into()),
                ("rounds", record.rounds.into()),
                ("moves", record.moves.len().into()),
                ("ms", record.ended.since(record.started).into()),
            ],
        )
    }

    /// Something went wrong: for programs an event; people read it in the log.
    pub(super) fn error(
        &mut self,
        code: Option<ErrorCode>,
        message: &str,
        last: bool,
    ) -> io::Result<()> {
        if self.format == Format::Text {
            if !last {
                tracing::warn!("{message}");
            }
            return Ok(());
        }
        self.error_event(code, message, last)
    }

    /// The event alone.
    pub(super) fn error_event(
        &mut self,
        code: Option<ErrorCode>,
        message: &str,
        last: bool,
    ) -> io::Result<()> {
        self.event(
            "error",
            &[
                ("code", code.map(ErrorCode::name).into()),
                ("number", code.map(ErrorCode::number).into()),
                ("message", message.into()),
                ("final", last.into()),
            ],
        )
    }

    pub(super) fn failure(&mut self, error: &Error) -> io::Result<()> {
        self.error(error.code(), &error.to_string(), true)
    }

    /// Records: the first `limit` of them.
    pub(super) fn records(&mut self, records: &Records, limit: u64) -> Result<u64, Failed> {
        let (count, last) = match self.format {
            Format::Text => self.values(records, limit)?,
            Format::Json if (records.len() as u64) <= limit => {
                (records.len() as u64, records.last_offset())
            }
            Format::Json => {
                let mut last = -1;
                for record in records.iter().take(limit as usize) {
                    last = record?.offset;
                }
                (limit, last)
            }
        };
        if self.format == Format::Json {
            let what = records.partition();
            let key = (what.topic.to_string(), what.partition);
            let told = self.untold.entry(key).or_default();
            *told = (told.0 + count, last);
        }
        Ok(count)
    }

    fn values(&mut self, records: &Records, limit: u64) -> Result<(u64, i64), Failed> {
        let (mut count, mut last) = (0, -1);
        for record in records.iter().take(limit as usize) {
            let record = record?;
            self.to.write_all(record.value.as_deref().unwrap_or(b""))?;
            self.to.write_all(b"\n")?;
            count += 1;
            last = record.offset;
        }
        Ok((count, last))
    }

    /// When the next `records` event, or a flush of values, is due; `None` if nothing waits for it.
    pub(super) fn due(&self) -> Option<Instant> {
        match self.format {
            Format::Text => (!self.to.buffer().is_empty()).then(Instant::now),
            Format::Json if self.untold.is_empty() => None,
            Format::Json => Some(
                self.told
                    .map_or_else(Instant::now, |told| told + RECORDS_INTERVAL),
            ),
        }
    }

    /// Values must be out before they count as consumed. (Events tell what was delivered, now and then.)
    pub(super) fn write_values(&mut self) -> io::Result<()> {
        match self.format {
            Format::Text => self.to.flush(),
            Format::Json => Ok(()),
        }
    }

    /// Tells what was delivered, and flushes.
    pub(super) fn tell_records(&mut self) -> io::Result<()> {
        if !self.untold.is_empty() {
            let untold = std::mem::take(&mut self.untold);
            let partitions: Vec<Value> = untold
                .into_iter()
                .map(|((topic, partition), (count, last))| json!([topic, partition, count, last]))
                .collect();
            self.told = Some(Instant::now());
            self.write_event("records", &[("partitions", partitions.into())])?;
        }
        self.to.flush()
    }
}

/// Why records were not written.
pub(super) enum Failed {
    /// Nobody reads standard output.
    Output(io::Error),
    /// They cannot be read.
    Records(Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Output(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Records(error)
    }
}
