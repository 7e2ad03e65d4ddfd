//! Producer and reader.

use super::*;
use kohort::settings::Codec;
use kohort::{Error, ErrorCode, Reader, TopicPartition};
use kohort_broker::{Settings as BrokerSettings, Verdict};
use kohort_wire::ApiKey;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// All records of a topic, as (partition, offset, key, value).
type Row = (i32, i64, Option<Vec<u8>>, Option<Vec<u8>>);

async fn read_all(address: &str, topic: &str) -> Vec<Row> {
    let mut reader = Reader::connect(settings(address)).await.unwrap();
    reader.read_topic(topic).await.unwrap();
    let mut rows = Vec::new();
    while let Some(records) = soon("records", reader.next()).await.unwrap() {
        for record in records.iter() {
            let record = record.unwrap();
            rows.push((
                records.partition().partition,
                record.offset,
                record.key.map(|key| key.to_vec()),
                record.value.map(|value| value.to_vec()),
            ));
        }
    }
    rows.sort();
    rows
}

#[tokio::test]
async fn what_was_sent_comes_back_in_every_codec() {
    let codecs = [
        ("none", Codec::None),
        ("gzip", Codec::Gzip),
        ("snappy", Codec::Snappy),
        ("lz4", Codec::Lz4),
        ("zstd", Codec::Zstd),
    ];
    let (_broker, address) = broker(&codecs.map(|(name, _)| (name, 1))).await;
    for (name, codec) in codecs {
        let producer = Producer::builder()
            .bootstrap(&address)
            .compression(codec)
            .build()
            .await
            .unwrap();
        let mut last = None;
        for number in 0..500 {
            let text = format!("{number} {}", "compressible ".repeat(20));
            let record = NewRecord::to(name).key(number.to_string()).value(text);
            last = Some(producer.send(record.header("h", "v")).await.unwrap());
        }
        let tombstone = producer
            .send(NewRecord::to(name).key("gone"))
            .await
            .unwrap();
        assert_eq!(last.unwrap().wait().await.unwrap().offset, 499);
        assert_eq!(tombstone.wait().await.unwrap().offset, 500);
        let rows = read_all(&address, name).await;
        assert_eq!(rows.len(), 501, "{name}");
        assert!(rows[7].3.as_ref().unwrap().starts_with(b"7 compressible"));
        assert_eq!(rows[500], (0, 500, Some(b"gone".to_vec()), None));
    }
}

#[tokio::test]
async fn equal_keys_meet_and_keep_their_order() {
    let (_broker, address) = broker(&[("t", 4)]).await;
    let producer = producer(&address).await;
    for number in 0..2_000 {
        let key = format!("key-{}", number % 7);
        let record = NewRecord::to("t").key(key).value(number.to_string());
        producer.send(record).await.unwrap();
    }
    producer.flush().await;
    let rows = read_all(&address, "t").await;
    assert_eq!(rows.len(), 2_000);
    for key in 0..7 {
        let key = format!("key-{key}").into_bytes();
        let of_key: Vec<_> = rows
            .iter()
            .filter(|row| row.2.as_ref() == Some(&key))
            .collect();
        assert!(
            of_key.iter().all(|row| row.0 == of_key[0].0),
            "one partition"
        );
        let numbers: Vec<u32> = of_key
            .iter()
            .map(|row| {
                String::from_utf8_lossy(row.3.as_ref().unwrap())
                    .parse()
                    .unwrap()
            })
            .collect();
        assert!(numbers.is_sorted(), "in order");
    }
}

/// A batch whose answer was lost is sent again, and stored once (KIP-98).
#[tokio::test]
async fn a_lost_answer_does_not_store_twice() {
    let produced = AtomicU32::new(0);
    let broker = Broker::builder()
        .settings(BrokerSettings::for_tests())
        .intercept(move |request| {
            let produce = request.api == ApiKey::Produce;
            if produce && produced.fetch_add(1, Ordering::Relaxed) == 0 {
                Verdict::LoseAnswer
            } else {
                Verdict::Serve
            }
        })
        .start()
        .await
        .unwrap();
    let address = broker.address().to_string();
    make(&address, &[("t", 1)]).await;
    let producer = producer(&address).await;
    let first = producer.send(NewRecord::to("t").value("a")).await.unwrap();
    let second = producer.send(NewRecord::to("t").value("b")).await.unwrap();
    soon("the first", first.wait()).await.unwrap();
    soon("the second", second.wait()).await.unwrap();
    let values: Vec<_> = read_all(&address, "t")
        .await
        .into_iter()
        .map(|row| row.3.unwrap())
        .collect();
    assert_eq!(values, [b"a", b"b"]);
}

#[tokio::test]
async fn what_cannot_be_sent_is_said_at_once() {
    let mut settings = BrokerSettings::for_tests();
    settings.set("auto.create.topics.enable", "false").unwrap();
    settings.set("message.max.bytes", "2000").unwrap();
    let broker = Broker::builder().settings(settings).start().await.unwrap();
    let address = broker.address().to_string();
    make(&address, &[("t", 1)]).await;
    let producer = producer(&address).await;
    let huge = NewRecord::to("t").value(vec![0; 2 << 20]);
    let error = producer.send(huge).await.unwrap_err();
    assert!(error.to_string().contains("max.request.size"), "{error}");
    let error = producer
        .send(NewRecord::to("t").partition(5))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no partition 5"), "{error}");
    let error = soon("a refusal", producer.send(NewRecord::to("nowhere")))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownTopicOrPartition));
    assert!(error.to_string().contains("kohort topic create"), "{error}");
    let large = producer
        .send(NewRecord::to("t").value(vec![0; 5_000]))
        .await
        .unwrap();
    let error = large.wait().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::MessageTooLarge));
    // What is too large together goes out in pieces.
    let mut deliveries = Vec::new();
    for _ in 0..20 {
        deliveries.push(
            producer
                .send(NewRecord::to("t").value(vec![0; 500]))
                .await
                .unwrap(),
        );
    }
    for (offset, delivery) in deliveries.into_iter().enumerate() {
        assert_eq!(
            soon("a piece", delivery.wait()).await.unwrap().offset,
            offset as i64
        );
    }
}

/// A partition that is added while a fetch of others waits does not wait for that fetch.
#[tokio::test]
async fn an_added_partition_does_not_wait_for_a_long_poll() {
    let (_broker, address) = broker(&[("idle", 1), ("full", 1)]).await;
    fill(&address, "full", 0, 0..3).await;
    let mut patient = settings(&address);
    patient.set("fetch.max.wait.ms", "15000").unwrap();
    let mut reader = Reader::connect(patient).await.unwrap();
    reader.read(&TopicPartition::new("idle", 0), 0);
    let waiting = tokio::time::timeout(Duration::from_millis(300), reader.next()).await;
    assert!(waiting.is_err(), "nothing is there");
    let started = Instant::now();
    reader.read(&TopicPartition::new("full", 0), 1);
    let records = soon("records", reader.next()).await.unwrap().unwrap();
    assert_eq!((records.len(), records.last_offset()), (2, 2));
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn an_unknown_topic_cannot_be_read() {
    let (_broker, address) = broker(&[]).await;
    let mut reader = Reader::connect(settings(&address)).await.unwrap();
    let error = reader.read_topic("nowhere").await.unwrap_err();
    assert!(matches!(error, Error::Broker { .. }), "{error}");
}
