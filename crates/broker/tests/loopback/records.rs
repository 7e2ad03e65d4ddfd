//! Produce, Fetch and ListOffsets over loopback.

use crate::client::{Client, NOBODY, batch, fetch_request, produce_request};
use kohort_broker::Broker;
use kohort_wire::ErrorCode;
use kohort_wire::messages::*;
use kohort_wire::records::{BatchBuilder, Compression};
use std::time::Duration;
use tokio::time::{Instant, timeout};

#[tokio::test]
async fn what_is_produced_is_fetched_unchanged() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    assert_eq!(client.create("t", 2).await.error_code, ErrorCode::None);
    let first = batch(2, 1_000, NOBODY, b"first");
    let second = batch(3, 2_000, NOBODY, b"second");
    assert_eq!(client.produce("t", 0, first.clone()).await.base_offset, 0);
    assert_eq!(client.produce("t", 0, second.clone()).await.base_offset, 2);
    let fetched = client.fetch("t", 0).await;
    let records = fetched.records.unwrap();
    assert_eq!(fetched.high_watermark, 5);
    // All but the base offset and the leader epoch, which are the broker's, is as it was sent.
    let (a, b) = records.split_at(first.len());
    assert_eq!((&a[16..], &b[16..]), (&first[16..], &second[16..]));
    assert_eq!(
        (&a[..8], &b[..8]),
        (&0_i64.to_be_bytes()[..], &2_i64.to_be_bytes()[..])
    );
    assert!(client.fetch("t", 5).await.records.unwrap().is_empty());
    assert_eq!(
        client.fetch("t", 6).await.error_code,
        ErrorCode::OffsetOutOfRange
    );
    assert_eq!(
        client.fetch("u", 0).await.error_code,
        ErrorCode::UnknownTopicOrPartition
    );
    broker.shutdown().await;
}

#[tokio::test]
async fn a_fetch_waits_until_something_comes() {
    let broker = Broker::start().await.unwrap();
    let mut consumer = Client::connect(broker.address()).await;
    let mut producer = Client::connect(broker.address()).await;
    producer.create("t", 1).await;
    consumer.send(12, &fetch_request("t", 0, 15_000, 1)).await;
    let early = timeout(
        Duration::from_millis(50),
        consumer.receive::<FetchRequest>(12),
    )
    .await;
    assert!(early.is_err(), "answered before there was anything");
    producer.produce("t", 0, batch(1, 0, NOBODY, b"x")).await;
    let answer = consumer.receive::<FetchRequest>(12).await;
    assert_eq!(answer.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn a_fetch_ends_empty_when_its_time_is_over() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let began = Instant::now();
    let answer = client.ask(12, &fetch_request("t", 0, 30, 1)).await;
    assert!(began.elapsed() >= Duration::from_millis(30));
    assert_eq!(
        answer.responses[0].partitions[0].records,
        Some(Default::default())
    );
}

#[tokio::test]
async fn a_fetch_waits_for_min_bytes() {
    let broker = Broker::start().await.unwrap();
    let mut consumer = Client::connect(broker.address()).await;
    let mut producer = Client::connect(broker.address()).await;
    producer.create("t", 1).await;
    consumer.send(12, &fetch_request("t", 0, 15_000, 200)).await;
    for payload in [&[0; 30], &[1; 30], &[2; 30]] {
        producer.produce("t", 0, batch(1, 0, NOBODY, payload)).await;
    }
    let answer = consumer.receive::<FetchRequest>(12).await;
    assert!(
        answer.responses[0].partitions[0]
            .records
            .as_ref()
            .unwrap()
            .len()
            >= 200
    );
}

#[tokio::test]
async fn topics_are_fetched_by_id() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    let id = client.create("t", 1).await.topic_id;
    let mut request = produce_request("", 0, -1, batch(1, 0, NOBODY, b"x"));
    request.topic_data[0].topic_id = id;
    let response = client.ask(13, &request).await;
    assert_eq!(
        response.responses[0].partition_responses[0].error_code,
        ErrorCode::None
    );
    let mut request = fetch_request("", 0, 0, 1);
    request.topics[0].topic_id = id;
    let response = client.ask(17, &request).await;
    assert_eq!(response.responses[0].topic_id, id);
    assert_eq!(response.responses[0].partitions[0].high_watermark, 1);
    request.topics[0].topic_id = [9; 16];
    let response = client.ask(17, &request).await;
    assert_eq!(
        response.responses[0].partitions[0].error_code,
        ErrorCode::UnknownTopicId
    );
}

#[tokio::test]
async fn an_idempotent_batch_is_stored_once() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let ids = client.ask(4, &InitProducerIdRequest::default()).await;
    let more = client.ask(4, &InitProducerIdRequest::default()).await;
    assert_ne!(ids.producer_id, more.producer_id);
    let first = batch(2, 0, (ids.producer_id, 0, 0), b"a");
    assert_eq!(client.produce("t", 0, first.clone()).await.base_offset, 0);
    assert_eq!(client.produce("t", 0, first).await.base_offset, 0);
    let gap = client
        .produce("t", 0, batch(1, 0, (ids.producer_id, 0, 3), b"b"))
        .await;
    assert_eq!(gap.error_code, ErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(client.list_offset("t", -1).await.offset, 2);
}

#[tokio::test]
async fn offsets_are_listed_by_time_first_and_last() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    assert_eq!(client.list_offset("t", 0).await.offset, -1);
    for time in [100, 200, 300] {
        client.produce("t", 0, batch(1, time, NOBODY, b"x")).await;
    }
    let mut found = Vec::new();
    for time in [-1, -2, -3, 0, 150, 300, 301] {
        found.push(client.list_offset("t", time).await.offset);
    }
    assert_eq!(found, [3, 0, 2, 0, 1, 2, -1]);
    assert_eq!(
        client.list_offset("u", -1).await.error_code,
        ErrorCode::UnknownTopicOrPartition
    );
}

#[tokio::test]
async fn refusals_have_their_codes() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let good = batch(1, 0, NOBODY, b"x");
    let mut corrupt = good.clone();
    corrupt[61] ^= 1;
    assert_eq!(
        client.produce("t", 0, corrupt).await.error_code,
        ErrorCode::CorruptMessage
    );
    assert_eq!(
        client.produce("t", 1, good.clone()).await.error_code,
        ErrorCode::UnknownTopicOrPartition
    );
    assert_eq!(
        client.produce("u", 0, good.clone()).await.error_code,
        ErrorCode::UnknownTopicOrPartition
    );
    let response = client
        .ask(9, &produce_request("t", 0, 7, good.clone()))
        .await;
    let code = response.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::InvalidRequiredAcks);
    // Nobody answers acks=0; the next answer is that of the next request.
    client
        .send(9, &produce_request("t", 0, 0, good.clone()))
        .await;
    assert_eq!(client.produce("t", 0, good).await.base_offset, 1);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    client.send(12, &fetch_request("t", 0, 40, 1)).await;
    client
        .send(9, &produce_request("t", 0, 1, batch(1, 0, NOBODY, b"x")))
        .await;
    client.send(12, &fetch_request("t", 0, 40, 1)).await;
    let empty = client.receive::<FetchRequest>(12).await;
    assert_eq!(empty.responses[0].partitions[0].high_watermark, 0);
    client.receive::<ProduceRequest>(9).await;
    let full = client.receive::<FetchRequest>(12).await;
    assert_eq!(full.responses[0].partitions[0].high_watermark, 1);
}

#[tokio::test]
async fn time_finds_the_record_within_a_compressed_batch() {
    let broker = Broker::start().await.unwrap();
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    let mut batch = BatchBuilder::new(Compression::Gzip);
    for time in [100, 200, 300] {
        batch.push(time, None, Some(b"value"), &[]).unwrap();
    }
    client
        .produce("t", 0, batch.build().unwrap().to_vec())
        .await;
    let found = client.list_offset("t", 150).await;
    assert_eq!((found.offset, found.timestamp), (1, 200));
    let found = client.list_offset("t", -3).await;
    assert_eq!((found.offset, found.timestamp), (2, 300));
}
