use super::header::tests::batch as raw;
use super::storage::SegmentBytes;
use super::*;
use kohort_wire::records::{BatchBuilder, Compression, batches};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

fn batch(count: i32, timestamp: i64, producer: (i64, i16, i32), payload: &[u8]) -> Bytes {
    raw(count, timestamp, producer, payload).into()
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 1_000,
        roll_ms: 1_000_000,
        retention_ms: -1,
        retention_bytes: -1,
        max_message_bytes: 10_000,
        log_append_time: false,
        timestamp_after_max_ms: 3_600_000,
        delete: true,
        compact: false,
        flush_messages: i64::MAX,
    }
}

fn log(config: LogConfig) -> PartitionLog {
    PartitionLog::new(config, Box::new(MemoryStore))
}

const NOBODY: (i64, i16, i32) = (-1, -1, -1);

fn filled() -> PartitionLog {
    let mut log = log(config());
    for i in 0..50 {
        let bytes = batch(2, 1_000 + i, NOBODY, &[0; 40]);
        let info = log.append(&bytes, 5_000 + i).unwrap();
        assert_eq!((info.base_offset, info.log_append_time), (2 * i, -1));
    }
    log
}

#[test]
fn a_read_begins_with_the_batch_that_holds_the_offset() {
    let log = filled();
    assert!(log.segments.len() > 3);
    for offset in 0..100 {
        let read = log.read(offset, 101, false).unwrap();
        let header = BatchHeader::read(&read).unwrap();
        assert_eq!((header.base_offset, read.len()), (offset - offset % 2, 101));
    }
    assert!(log.read(100, 1_000, true).unwrap().is_empty());
    assert_eq!(log.read(101, 1, true), Err(ErrorCode::OffsetOutOfRange));
    assert_eq!(log.read(-1, 1, true), Err(ErrorCode::OffsetOutOfRange));
}

#[test]
fn only_whole_batches_are_read_and_the_first_one_if_asked() {
    let log = filled();
    assert!(log.read(0, 100, false).unwrap().is_empty());
    assert_eq!(log.read(0, 1, true).unwrap().len(), 101);
    assert_eq!(log.read(1, 303, true).unwrap().len(), 303);
    assert_eq!(log.read(1, 350, true).unwrap().len(), 303);
}

#[test]
fn bad_batches_are_refused_with_their_code() {
    let mut log = log(config());
    let good = batch(2, 0, NOBODY, b"xy");
    let mut corrupt = good.to_vec();
    corrupt[62] ^= 1;
    assert_eq!(
        log.append(&corrupt.into(), 0),
        Err(ErrorCode::CorruptMessage)
    );
    assert_eq!(
        log.append(&good.slice(..30), 0),
        Err(ErrorCode::InvalidRecord)
    );
    assert_eq!(
        log.append(&[good.clone(), good].concat().into(), 0),
        Err(ErrorCode::InvalidRecord)
    );
    assert_eq!(
        log.append(&batch(0, 0, NOBODY, b""), 0),
        Err(ErrorCode::InvalidRecord)
    );
    assert_eq!(log.append(&Bytes::new(), 0), Err(ErrorCode::InvalidRecord));
    let large = batch(1, 0, NOBODY, &[0; 10_000]);
    assert_eq!(log.append(&large, 0), Err(ErrorCode::MessageTooLarge));
    assert_eq!(log.end_offset(), 0);
}

#[test]
fn a_batch_sent_again_keeps_its_offset() {
    let mut log = log(config());
    let first = batch(3, 0, (4, 0, 0), b"");
    assert_eq!(log.append(&first, 0).unwrap().base_offset, 0);
    log.append(&batch(1, 0, (4, 0, 3), b""), 0).unwrap();
    assert_eq!(log.append(&first, 0).unwrap().base_offset, 0);
    assert_eq!(log.end_offset(), 4);
}

#[test]
fn the_broker_stamps_batches_where_told() {
    let mut log = log(LogConfig {
        log_append_time: true,
        ..config()
    });
    let info = log.append(&batch(1, 3, NOBODY, b"x"), 77).unwrap();
    assert_eq!(info.log_append_time, 77);
    let read = log.read(0, 1_000, true).unwrap();
    Batch::produced(read.clone()).unwrap();
    assert_eq!(BatchHeader::read(&read).unwrap().max_timestamp, 77);
}

#[test]
fn time_finds_the_first_batch_that_is_late_enough() {
    let log = filled();
    let at = |time| {
        let batch = log.batch_at_time(time).unwrap();
        batch.map(|batch| BatchHeader::read(&batch).unwrap().base_offset)
    };
    assert_eq!(
        (at(0), at(1_000), at(1_001), at(1_049)),
        (Some(0), Some(0), Some(2), Some(98))
    );
    assert_eq!(at(1_050), None);
    assert_eq!(log.max_timestamp(), Some(1_049));
}

#[test]
fn old_segments_go_by_age_and_by_size() {
    let mut log = filled();
    log.set_config(LogConfig {
        retention_bytes: 2_000,
        ..config()
    });
    assert!(log.expire(2_000, 0).unwrap() > 0);
    assert!(log.size() >= 2_000 && log.size() < 3_100);
    assert!(log.start_offset() > 0 && log.end_offset() == 100);
    assert_eq!(log.read(0, 1, true), Err(ErrorCode::OffsetOutOfRange));
    log.set_config(LogConfig {
        retention_ms: 10,
        ..config()
    });
    log.expire(10_000, 0).unwrap();
    assert_eq!(
        (log.start_offset(), log.end_offset(), log.size()),
        (100, 100, 0)
    );
    assert_eq!(
        log.append(&batch(1, 0, NOBODY, b""), 0)
            .unwrap()
            .base_offset,
        100
    );
}

#[test]
fn records_are_deleted_up_to_an_offset() {
    let mut log = filled();
    assert_eq!(log.delete_before(31), Ok(31));
    assert_eq!(log.read(30, 1, true), Err(ErrorCode::OffsetOutOfRange));
    let read = log.read(31, 1, true).unwrap();
    assert_eq!(BatchHeader::read(&read).unwrap().base_offset, 30);
    assert_eq!(log.delete_before(101), Err(ErrorCode::OffsetOutOfRange));
    assert_eq!(log.delete_before(-1), Ok(100));
    assert_eq!(log.available(100), 0);
}

fn keyed(key: &str, value: Option<&str>, time: i64) -> Bytes {
    let mut batch = BatchBuilder::new(Compression::None);
    let value = value.map(str::as_bytes);
    batch.push(time, Some(key.as_bytes()), value, &[]).unwrap();
    batch.build().unwrap()
}

#[test]
fn compaction_keeps_the_last_of_each_key() {
    let mut log = log(LogConfig {
        compact: true,
        delete: false,
        segment_bytes: 1 << 19,
        max_message_bytes: 1 << 20,
        ..config()
    });
    let long = "x".repeat(1_000);
    for i in 0..2_000 {
        log.append(&keyed(["a", "b", "c"][i % 3], Some(&long), 0), 0)
            .unwrap();
    }
    log.append(&keyed("a", None, 0), 0).unwrap();
    log.append(&keyed("b", None, 900), 0).unwrap();
    assert!(log.compact(1_000, 500).unwrap() > 1_900_000);
    // Nothing is left of a, whose tombstone is old; b's tombstone is young; c has its last value.
    let mut found = Vec::new();
    let mut offset = 0;
    while let Some(batch) = batches(log.read(offset, 1 << 20, true).unwrap()).next() {
        let batch = batch.unwrap();
        offset = batch.header().next_offset();
        for record in batch.records(1 << 20).unwrap().flatten() {
            found.push((record.offset, record.key.unwrap(), record.value.is_some()));
        }
    }
    let expected = [
        (1_997, Bytes::from_static(b"c"), true),
        (2_001, Bytes::from_static(b"b"), false),
    ];
    assert_eq!(found, expected);
    assert_eq!((log.start_offset(), log.end_offset()), (0, 2_002));
    assert_eq!(log.compact(1_000, 500).unwrap(), 0, "nothing has grown");
}

/// A store whose segments fail when they are told to.
#[derive(Clone, Default)]
struct Faulty {
    append: Arc<AtomicBool>,
    sync: Arc<AtomicBool>,
}

struct FaultySegment(Box<dyn SegmentBytes>, Faulty);

impl SegmentStore for Faulty {
    fn list(&mut self) -> io::Result<Vec<(i64, Box<dyn SegmentBytes>)>> {
        Ok(Vec::new())
    }
    fn create(&mut self, base_offset: i64) -> io::Result<Box<dyn SegmentBytes>> {
        let inner = MemoryStore.create(base_offset)?;
        Ok(Box::new(FaultySegment(inner, self.clone())))
    }
    fn replace(&mut self, base: i64, batches: &[Bytes]) -> io::Result<Box<dyn SegmentBytes>> {
        MemoryStore.replace(base, batches)
    }
    fn start_offset(&mut self) -> io::Result<Option<i64>> {
        Ok(None)
    }
    fn keep_start_offset(&mut self, _: i64) -> io::Result<()> {
        Ok(())
    }
}

impl SegmentBytes for FaultySegment {
    fn size(&self) -> u64 {
        self.0.size()
    }
    fn append(&mut self, batch: Bytes) -> io::Result<()> {
        if self.1.append.load(Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.append(batch)
    }
    fn read(&self, position: u64, length: usize) -> io::Result<Bytes> {
        self.0.read(position, length)
    }
    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.0.truncate(size)
    }
    fn sync(&mut self) -> io::Result<()> {
        if self.1.sync.load(Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
    fn seal(&mut self) -> io::Result<()> {
        self.0.seal()
    }
    fn remove(&mut self) -> io::Result<()> {
        self.0.remove()
    }
}

#[test]
fn a_disk_that_fails_loses_nothing_that_is_there() {
    let faulty = Faulty::default();
    let config = LogConfig {
        flush_messages: 1,
        ..config()
    };
    let mut log = PartitionLog::new(config, Box::new(faulty.clone()));
    let next = |log: &mut PartitionLog| log.append(&batch(1, 0, NOBODY, b"x"), 0);
    assert_eq!(next(&mut log).unwrap().base_offset, 0);
    for fault in [&faulty.append, &faulty.sync] {
        let before = log.read(0, 10_000, true).unwrap();
        fault.store(true, Relaxed);
        assert_eq!(next(&mut log), Err(ErrorCode::KafkaStorageError));
        assert_eq!(log.read(0, 10_000, true).unwrap(), before);
        fault.store(false, Relaxed);
        let end = log.end_offset();
        assert_eq!(next(&mut log).unwrap().base_offset, end);
    }
    assert_eq!(log.read(0, 10_000, true).unwrap().len(), 3 * 62);
}

#[test]
fn a_timestamp_from_the_far_future_is_refused() {
    let mut log = log(config());
    let early = batch(1, 3_600_000, NOBODY, b"x");
    assert!(log.append(&early, 0).is_ok());
    let late = batch(1, 3_600_001, NOBODY, b"x");
    assert_eq!(log.append(&late, 0), Err(ErrorCode::InvalidTimestamp));
}
