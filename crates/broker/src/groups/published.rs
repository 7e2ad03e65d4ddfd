//! Rebalance records, where any client can read them: an internal topic, whose keys are groups and whose values are JSON.
//!
//! They are for people and tools. A record that cannot be written is gone, and the group does not notice.

use crate::clock::Clock;
use crate::partition::Partition;
use kohort_group::history::RebalanceRecord;
use kohort_wire::records::{BatchBuilder, Compression};
use std::sync::Arc;

/// A week, and at most about 20 MB: what an on-call engineer looks for on Monday.
pub(super) const CONFIGS: [(&str, &str); 4] = [
    ("cleanup.policy", "delete"),
    ("retention.ms", "604800000"),
    ("retention.bytes", "16777216"),
    ("segment.bytes", "4194304"),
];

/// Leaves room for the batch around the record.
const OVERHEAD: usize = 1_024;

/// Where the records go.
pub(super) struct Published {
    log: Arc<Partition>,
    clock: Clock,
}

impl Published {
    pub(super) fn to(log: Arc<Partition>, clock: Clock) -> Self {
        Self { log, clock }
    }

    /// Writes a record, with wall-clock times.
    pub(super) fn publish(&self, record: RebalanceRecord) {
        let record = record.later_by(self.clock.wall_offset);
        let limit = self.log.log().max_message_bytes().saturating_sub(OVERHEAD);
        let group = record.group.clone();
        let Some(value) = fitting(record, limit) else {
            tracing::warn!("group {group}: the record of a rebalance is too large to be published");
            return;
        };
        let now = self.clock.wall();
        let mut batch = BatchBuilder::new(Compression::None);
        let written = batch
            .push(now, Some(group.as_bytes()), Some(&value), &[])
            .and_then(|()| batch.build())
            .map_err(|error| error.error_code())
            .and_then(|batch| self.log.append(&batch, now));
        if let Err(error) = written {
            tracing::warn!("group {group}: the record of a rebalance was not published: {error}");
        }
    }
}

/// The record as JSON; in a very large group without its longest lists.
fn fitting(mut record: RebalanceRecord, limit: usize) -> Option<Vec<u8>> {
    let encode = |record: &RebalanceRecord| {
        let value = serde_json::to_vec(record).ok()?;
        (value.len() + record.group.len() <= limit).then_some(value)
    };
    if let Some(value) = encode(&record) {
        return Some(value);
    }
    for phase in &mut record.phases {
        phase.members.clear();
    }
    if let Some(value) = encode(&record) {
        return Some(value);
    }
    record.moves.clear();
    record.pauses.clear();
    encode(&record)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use kohort_group::history::{Participation, Phase};

    #[test]
    fn a_record_that_is_too_large_loses_its_lists() {
        let member = Participation {
            member_id: "x".repeat(1_000),
            ..Participation::default()
        };
        let record = RebalanceRecord {
            group: "g".into(),
            phases: vec![Phase {
                members: vec![member; 100],
                size: 100,
                ..Phase::default()
            }],
            moved: 7,
            ..RebalanceRecord::default()
        };
        assert!(fitting(record.clone(), 1_000_000).unwrap().len() > 100_000);
        let value = fitting(record.clone(), 10_000).unwrap();
        let read: RebalanceRecord = serde_json::from_slice(&value).unwrap();
        assert_eq!((read.moved, read.phases[0].size), (7, 100));
        assert_eq!(fitting(record, 100), None);
    }
}
