//! Records that were fetched: slices of the answer they came in, decompressed and read when the application looks at them.

use crate::error::Error;
use kohort_group::partitions::TopicPartition;
use kohort_wire::records::{Batch, Record, RecordError, batches};

/// What one batch may grow to when it is decompressed.
const LARGEST_BATCH: usize = 256 << 20;

/// Some records of one partition, in order. Reading them does not copy what is not compressed.
///
/// ```no_run
/// # fn example(records: kohort::Records) -> Result<(), kohort::Error> {
/// for record in records.iter() {
///     let record = record?;
///     println!("{} at {}: {:?}", records.partition().topic, record.offset, record.value);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Records {
    partition: TopicPartition,
    batches: Vec<Batch>,
    /// Records before this offset were asked for by nobody; they only share a batch with one that was.
    from: i64,
    next: i64,
    count: usize,
    last: i64,
    leader_epoch: i32,
    size: usize,
    end: i64,
}

impl Records {
    /// The whole batches in what a fetch from `from` brought; `None` if there are none.
    pub(crate) fn new(
        partition: TopicPartition,
        bytes: bytes::Bytes,
        from: i64,
        end: i64,
        check_crcs: bool,
    ) -> Result<Option<Self>, Error> {
        let explain = |error: RecordError| unreadable(&partition, from, &error);
        let mut found = Self {
            partition: partition.clone(),
            batches: Vec::new(),
            from,
            next: from,
            count: 0,
            last: -1,
            leader_epoch: -1,
            size: bytes.len(),
            end,
        };
        for batch in batches(bytes) {
            let batch = batch.map_err(explain)?;
            let header = batch.header();
            if header.next_offset() <= from {
                continue;
            }
            if check_crcs {
                batch.check_crc().map_err(explain)?;
            }
            found.next = header.next_offset();
            found.leader_epoch = header.partition_leader_epoch;
            if !header.attributes.is_control() {
                found.add(batch).map_err(explain)?;
            }
        }
        Ok((found.next > from).then_some(found))
    }

    fn add(&mut self, batch: Batch) -> Result<(), RecordError> {
        let header = batch.header();
        if header.base_offset < self.from {
            for record in batch.records(LARGEST_BATCH)?.starting_at(self.from) {
                self.last = record?.offset;
                self.count += 1;
            }
        } else if header.record_count > 0 {
            self.last = header.last_offset();
            self.count += header.record_count as usize;
        }
        self.batches.push(batch);
        Ok(())
    }

    /// Where they come from.
    #[must_use]
    pub fn partition(&self) -> &TopicPartition {
        &self.partition
    }

    /// How many records there are, as their batches say.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The offset of the last record, −1 if there are none.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.last
    }

    /// Where reading goes on after them; this is what is committed.
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.next
    }

    /// The end of the partition when they were fetched: the offset that the next record was to get.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end
    }

    /// The epoch of the leader that appended the last of them, −1 if unknown.
    #[must_use]
    pub fn leader_epoch(&self) -> i32 {
        self.leader_epoch
    }

    /// The bytes that they came in.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The records in order.
    ///
    /// # Errors
    /// An item is [`Error::Peer`] if a batch cannot be decompressed or a record cannot be read; nothing comes after it from
    /// that batch.
    pub fn iter(&self) -> impl Iterator<Item = Result<Record, Error>> {
        self.batches.iter().flat_map(move |batch| {
            let explain = move |error: RecordError| {
                unreadable(&self.partition, batch.header().base_offset, &error)
            };
            let (records, failure) = match batch.records(LARGEST_BATCH) {
                Ok(records) => (Some(records.starting_at(self.from)), None),
                Err(error) => (None, Some(Err(explain(error)))),
            };
            let records = records.into_iter().flatten();
            records
                .map(move |record| record.map_err(explain))
                .chain(failure)
        })
    }
}

fn unreadable(partition: &TopicPartition, offset: i64, error: &RecordError) -> Error {
    Error::Peer {
        address: partition.to_string(),
        reason: format!("the batch at offset {offset} cannot be read: {error}"),
    }
}
