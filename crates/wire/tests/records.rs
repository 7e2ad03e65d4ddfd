//! Record batches: what is written is read again, here and by the `kafka-protocol` crate; what is damaged or hostile is refused.
#![allow(clippy::unwrap_used, missing_docs)]

use bytes::{Bytes, BytesMut};
use kafka_protocol::records::{
    Compression as TheirCompression, Record as TheirRecord, RecordBatchDecoder, RecordBatchEncoder,
    RecordEncodeOptions, TimestampType as TheirTimestampType,
};
use kohort_wire::ErrorCode;
use kohort_wire::records::{
    Batch, BatchBuilder, Compression, ControlType, HEADER_SIZE, Record, RecordError, RecordHeader,
    TimestampType, batches, place, set_log_append_time,
};
use proptest::prelude::*;

const LIMIT: usize = 1 << 24;

fn header(key: &str, value: Option<&'static [u8]>) -> RecordHeader {
    RecordHeader {
        key: key.to_owned(),
        value: value.map(Bytes::from_static),
    }
}

fn build(builder: BatchBuilder, records: &[Record]) -> Bytes {
    let mut builder = builder;
    for record in records {
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let before = builder.size();
        builder
            .push(record.timestamp, key, value, &record.headers)
            .unwrap();
        assert!(builder.size() - before <= BatchBuilder::record_size(key, value, &record.headers));
    }
    builder.build().unwrap()
}

fn read(bytes: Bytes) -> Vec<Record> {
    batches(bytes)
        .flat_map(|batch| {
            let batch = batch.unwrap();
            batch.check_crc().unwrap();
            batch.records(LIMIT).unwrap().map(Result::unwrap)
        })
        .collect()
}

fn three() -> Vec<Record> {
    let record = |offset, timestamp, value: &'static [u8]| Record {
        offset,
        timestamp,
        key: Some(Bytes::from_static(b"key")),
        value: Some(Bytes::from_static(value)),
        headers: vec![
            header("a", Some(b"1")),
            header("a", None),
            header("b", Some(b"")),
        ],
    };
    vec![
        record(0, 1_000, b"one"),
        Record {
            key: None,
            value: None,
            headers: Vec::new(),
            ..record(1, 900, b"")
        },
        record(2, 1_100, &[7; 100_000]),
    ]
}

fn plain(records: &[Record]) -> Bytes {
    build(BatchBuilder::new(Compression::None), records)
}

#[test]
fn every_codec_gives_back_what_it_got() {
    for codec in Compression::ALL {
        let bytes = build(BatchBuilder::new(codec), &three());
        assert_eq!(read(bytes.clone()), three(), "{codec}");
        assert_eq!(codec.name().parse(), Ok(codec));
        if codec != Compression::None {
            assert!(bytes.len() < 10_000, "{codec} leaves {} bytes", bytes.len());
        }
        let batch = Batch::produced(bytes).unwrap();
        assert_eq!(batch.header().attributes.compression(), Ok(codec));
    }
}

#[test]
fn the_header_says_what_the_builder_was_told() {
    let builder = BatchBuilder::new(Compression::None)
        .producer(5, 6, i32::MAX - 1)
        .transactional()
        .placed(1_000, 9);
    let batch = Batch::produced(build(builder, &three())).unwrap();
    let header = batch.header();
    assert_eq!((header.base_offset, header.next_offset()), (1_000, 1_003));
    assert_eq!(
        (header.base_timestamp, header.max_timestamp),
        (1_000, 1_100)
    );
    assert_eq!((header.producer_id, header.producer_epoch), (5, 6));
    assert_eq!(header.partition_leader_epoch, 9);
    assert_eq!(header.last_sequence(), 0, "sequence numbers start again");
    assert!(header.attributes.is_transactional() && !header.attributes.is_control());
    let offsets: Vec<_> = batch
        .records(LIMIT)
        .unwrap()
        .map(|record| record.unwrap().offset)
        .collect();
    assert_eq!(offsets, [1_000, 1_001, 1_002]);
}

#[test]
fn records_are_slices_of_the_batch() {
    let bytes = plain(&three());
    let within = bytes.as_ptr_range();
    for record in read(bytes.clone()) {
        for slice in [record.key, record.value].into_iter().flatten() {
            assert!(slice.is_empty() || within.contains(&slice.as_ptr()));
        }
    }
}

#[test]
fn reading_begins_in_the_middle_of_a_batch() {
    let batch = Batch::produced(plain(&three())).unwrap().placed(10, 0);
    let records = batch.records(LIMIT).unwrap().starting_at(12);
    let offsets: Vec<_> = records.map(|record| record.unwrap().offset).collect();
    assert_eq!(offsets, [12]);
}

#[test]
fn a_last_batch_that_is_cut_short_is_left_out() {
    let one = plain(&three());
    let two = [&one[..], &one[..]].concat();
    for cut in 0..one.len() {
        if cut > 100 && cut < one.len() - 100 {
            continue;
        }
        let mut iterator = batches(Bytes::copy_from_slice(&two[..one.len() + cut]));
        assert!(iterator.next().unwrap().is_ok());
        assert!(iterator.next().is_none());
        assert_eq!(iterator.rest().len(), cut);
        assert_eq!(iterator.wanted(), (cut >= 12).then_some(one.len()));
    }
    assert_eq!(batches(two.into()).count(), 2);
}

#[test]
fn any_bit_that_flips_is_noticed() {
    let bytes = plain(&three()[..2]);
    for at in 0..bytes.len() {
        let mut damaged = BytesMut::from(&bytes[..]);
        damaged[at] ^= 0x10;
        let broken = Batch::produced(damaged.freeze());
        // The broker gives base offset and leader epoch; the checksum does not cover them.
        let covered = !(0..8).contains(&at) && !(12..16).contains(&at);
        assert_eq!(broken.is_err(), covered, "byte {at}");
    }
}

#[test]
fn a_batch_is_placed_where_it_lies() {
    let bytes = BytesMut::from(&plain(&three())[..]).freeze();
    let at = bytes.as_ptr();
    let batch = Batch::produced(bytes).unwrap().placed(77, 3);
    assert_eq!(batch.bytes().as_ptr(), at, "not copied");
    batch.check_crc().unwrap();

    let shared = batch.bytes().clone();
    let moved = batch.placed(78, 4);
    assert_ne!(moved.bytes().as_ptr(), at, "copied, since it is shared");
    assert_eq!(read(shared)[0].offset, 77);
    assert_eq!(read(moved.into_bytes())[0].offset, 78);
}

#[test]
fn the_brokers_time_covers_all_records() {
    let mut bytes = BytesMut::from(&plain(&three())[..]);
    place(&mut bytes, 5, 0);
    set_log_append_time(&mut bytes, 4_242);
    let batch = Batch::produced(bytes.freeze()).unwrap();
    let kind = batch.header().attributes.timestamp_type();
    assert_eq!(kind, TimestampType::LogAppendTime);
    assert!(
        read(batch.into_bytes())
            .iter()
            .all(|record| record.timestamp == 4_242)
    );
}

#[test]
fn what_a_producer_may_not_send_is_refused() {
    let code = |bytes: Bytes| Batch::produced(bytes).unwrap_err().error_code();
    let one = plain(&three());
    assert_eq!(code(one.slice(..one.len() - 1)), ErrorCode::InvalidRecord);
    assert_eq!(
        code([&one[..], &one[..]].concat().into()),
        ErrorCode::InvalidRecord
    );
    let none = || BatchBuilder::new(Compression::None);
    assert_eq!(
        code(build(none().control(), &three())),
        ErrorCode::InvalidRecord
    );
    assert_eq!(
        code(build(none().transactional(), &three())),
        ErrorCode::InvalidRecord
    );
    assert_eq!(
        code(build(none().producer(1, 0, -1), &three())),
        ErrorCode::InvalidRecord
    );
    assert!(none().build().is_err(), "no records");
}

/// Seals a batch by hand: header fields at their places, then a true checksum.
fn forged(payload: &[u8], count: i32, codec: i16) -> Batch {
    let mut bytes = BytesMut::from(&plain(&three()[..1])[..HEADER_SIZE]);
    bytes.extend_from_slice(payload);
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[21..23].copy_from_slice(&codec.to_be_bytes());
    bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    bytes[57..61].copy_from_slice(&count.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    let batch = Batch::split_from(&mut bytes.freeze()).unwrap().unwrap();
    batch.check_crc().unwrap();
    batch
}

#[test]
fn counts_that_lie_are_noticed() {
    let payload = plain(&three()[..2]).slice(HEADER_SIZE..);
    for count in [1, 3, i32::MAX, -1] {
        let errors = forged(&payload, count, 0)
            .records(LIMIT)
            .unwrap()
            .filter(|record| matches!(record, Err(RecordError::BadCount { .. })))
            .count();
        assert_eq!(errors, 1, "{count}");
    }
    // A record with 2³¹ − 1 headers: length 10, attributes, deltas, null key, null value, count.
    let record = [20, 0, 0, 0, 1, 1, 0xfe, 0xff, 0xff, 0xff, 0x0f];
    let mut records = forged(&record, 1, 0).records(LIMIT).unwrap();
    assert!(matches!(
        records.next(),
        Some(Err(RecordError::Malformed(_)))
    ));
    assert!(records.next().is_none());
}

#[test]
fn decompression_stops_at_the_limit() {
    let million = [Record {
        value: Some(vec![0; 1_000_000].into()),
        ..Record::default()
    }];
    for codec in Compression::ALL.into_iter().skip(1) {
        let batch = Batch::produced(build(BatchBuilder::new(codec), &million)).unwrap();
        let exact = HEADER_SIZE;
        let size = plain(&million).len() - exact;
        let too_large = Some(RecordError::TooLarge { limit: size - 1 });
        assert_eq!(batch.records(size - 1).err(), too_large, "{codec}");
        assert_eq!(batch.records(size).unwrap().count(), 1, "{codec}");
        assert!(batch.records(0).is_err(), "{codec}");
    }
}

#[test]
fn old_formats_and_unknown_codecs_are_named() {
    let mut old = BytesMut::from(&plain(&three())[..]);
    old[16] = 1;
    let mut iterator = batches(old.freeze());
    let error = iterator.next().unwrap().unwrap_err();
    assert_eq!(error, RecordError::UnknownMagic(1));
    assert!(error.to_string().contains("format 1"), "{error}");
    assert!(iterator.next().is_none());

    let error = forged(b"", 1, 6).records(LIMIT).unwrap_err();
    assert_eq!(error, RecordError::UnknownCompression(6));
    assert_eq!(error.error_code(), ErrorCode::UnsupportedCompressionType);
}

#[test]
fn raw_snappy_linked_lz4_and_frames_in_a_row_are_read() {
    let payload = plain(&three()).slice(HEADER_SIZE..);
    let raw = snap::raw::Encoder::new().compress_vec(&payload).unwrap();
    let records = |payload: &[u8], codec: Compression| -> Vec<_> {
        let batch = forged(payload, 3, i16::from(codec.number()));
        batch
            .records(LIMIT)
            .unwrap()
            .map(Result::unwrap)
            .collect::<Vec<_>>()
    };
    assert_eq!(records(&raw, Compression::Snappy), three());

    for codec in Compression::ALL.into_iter().skip(1) {
        let whole = build(BatchBuilder::new(codec), &three()).slice(HEADER_SIZE..);
        let twice = [&whole[..], &whole[..]].concat();
        let out = codec.decompress(&twice, LIMIT).unwrap();
        assert_eq!(out, [&payload[..], &payload[..]].concat(), "{codec}");
    }

    // Two linked blocks by hand: one stored, one that copies eight bytes from it (offset 8) and ends with five literals.
    let mut frame = vec![0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0];
    frame.extend_from_slice(&(8u32 | 1 << 31).to_le_bytes());
    frame.extend_from_slice(b"abcdefgh");
    let block = [0x04, 8, 0, 0x50, b'1', b'2', b'3', b'4', b'5'];
    frame.extend_from_slice(&(block.len() as u32).to_le_bytes());
    frame.extend_from_slice(&block);
    frame.extend_from_slice(&[0; 4]);
    let out = Compression::Lz4.decompress(&frame, LIMIT).unwrap();
    assert_eq!(out, b"abcdefghabcdefgh12345");
}

#[test]
fn control_records_name_the_end_of_the_transaction() {
    assert_eq!(
        ControlType::of_key(&[0, 0, 0, 1]),
        Some(ControlType::Commit)
    );
    assert_eq!(ControlType::of_key(&[0, 0, 0, 0]), Some(ControlType::Abort));
    assert_eq!(
        ControlType::of_key(&[0, 0, 0, 5]),
        Some(ControlType::Other(5))
    );
    assert_eq!(ControlType::of_key(&[0, 0, 0]), None);
}

fn some_records() -> impl Strategy<Value = Vec<Record>> {
    let bytes = || {
        proptest::option::of(proptest::collection::vec(any::<u8>(), 0..60))
            .prop_map(|bytes| bytes.map(Bytes::from))
    };
    let headers =
        proptest::collection::btree_map("[a-z]{0,3}", bytes(), 0..3).prop_map(|headers| {
            headers
                .into_iter()
                .map(|(key, value)| RecordHeader { key, value })
                .collect()
        });
    let record = (0i64..1 << 50, bytes(), bytes(), headers);
    proptest::collection::vec(record, 1..8).prop_map(|records| {
        (0..)
            .zip(records)
            .map(|(offset, (timestamp, key, value, headers))| Record {
                offset,
                timestamp,
                key,
                value,
                headers,
            })
            .collect()
    })
}

/// The codecs side by side.
const PAIRS: [(Compression, TheirCompression); 5] = [
    (Compression::None, TheirCompression::None),
    (Compression::Gzip, TheirCompression::Gzip),
    (Compression::Snappy, TheirCompression::Snappy),
    (Compression::Lz4, TheirCompression::Lz4),
    (Compression::Zstd, TheirCompression::Zstd),
];

fn ours(record: &TheirRecord) -> Record {
    let header =
        |(key, value): (&kafka_protocol::protocol::StrBytes, &Option<Bytes>)| RecordHeader {
            key: key.to_string(),
            value: value.clone(),
        };
    Record {
        offset: record.offset,
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.iter().map(header).collect(),
    }
}

fn theirs(record: &Record) -> TheirRecord {
    TheirRecord {
        transactional: false,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: -1,
        producer_id: 3,
        producer_epoch: 4,
        timestamp_type: TheirTimestampType::Creation,
        offset: record.offset,
        sequence: record.offset as i32 + 7,
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record
            .headers
            .iter()
            .map(|header| (header.key.clone().into(), header.value.clone()))
            .collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn kafka_protocol_reads_what_we_write(records in some_records(), pair in 0usize..5) {
        let builder = BatchBuilder::new(PAIRS[pair].0).producer(3, 4, 7);
        let mut bytes = build(builder, &records);
        let set = RecordBatchDecoder::decode(&mut bytes).unwrap();
        prop_assert!(bytes.is_empty());
        prop_assert_eq!(set.records.iter().map(ours).collect::<Vec<_>>(), records);
        prop_assert!(set.records.iter().all(|record| record.producer_id == 3 && record.producer_epoch == 4));
    }

    #[test]
    fn we_read_what_kafka_protocol_writes(records in some_records(), pair in 0usize..5) {
        let mut bytes = BytesMut::new();
        let options = RecordEncodeOptions { version: 2, compression: PAIRS[pair].1 };
        let written: Vec<_> = records.iter().map(theirs).collect();
        RecordBatchEncoder::encode(&mut bytes, &written, &options).unwrap();
        prop_assert_eq!(read(bytes.freeze()), records);
    }

    #[test]
    fn without_compression_the_bytes_are_the_same(records in some_records()) {
        let mut bytes = BytesMut::new();
        let options = RecordEncodeOptions { version: 2, compression: TheirCompression::None };
        let written: Vec<_> = records.iter().map(theirs).collect();
        RecordBatchEncoder::encode(&mut bytes, &written, &options).unwrap();
        let ours = build(BatchBuilder::new(Compression::None).producer(3, 4, 7), &records);
        let base = |bytes: &[u8]| i64::from_be_bytes(*bytes[27..].first_chunk().unwrap());
        // The base timestamp is the writer's choice; ours is the first record's, as Java's.
        if base(&bytes) == base(&ours) {
            prop_assert_eq!(&bytes[..], &ours[..]);
        }
    }

    #[test]
    fn damaged_payloads_never_panic(
        records in some_records(),
        codec in 0u8..5,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let codec = Compression::from_number(codec).unwrap();
        let mut payload = build(BatchBuilder::new(codec), &records)[HEADER_SIZE..].to_vec();
        for (at, byte) in damage {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        for payload in [&payload[..], &noise[..]] {
            if let Ok(records) = forged(payload, 3, i16::from(codec.number())).records(1 << 16) {
                for record in records { let _ = record; }
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), magic in any::<bool>()) {
        let mut bytes = bytes;
        if magic && bytes.len() > 17 {
            bytes[8..11].fill(0);
            bytes[16] = 2;
        }
        for batch in batches(bytes.into()).flatten() {
            if let Ok(records) = batch.records(1 << 16) {
                for record in records { let _ = record; }
            }
        }
    }
}
