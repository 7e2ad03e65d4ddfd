//! The client against the embedded broker: real sockets, real time, but nothing waits longer than it must.

#![allow(clippy::unwrap_used)]

mod consuming;
mod groups;
mod ledger;
mod producing;
mod strangers;

use kohort::{Admin, NewRecord, Producer, Settings};
use kohort_broker::Broker;
use std::time::Duration;

/// A broker for a test, with these topics.
async fn broker(topics: &[(&str, i32)]) -> (Broker, String) {
    let broker = Broker::start().await.unwrap();
    let address = broker.address().to_string();
    make(&address, topics).await;
    (broker, address)
}

async fn make(address: &str, topics: &[(&str, i32)]) {
    let admin = Admin::connect(address).await.unwrap();
    for (name, partitions) in topics {
        admin.create_topic(name, *partitions).await.unwrap();
    }
}

/// Settings that read from the beginning, and do not dawdle.
fn settings(address: &str) -> Settings {
    let mut settings = Settings::default();
    for (property, value) in [
        ("bootstrap.servers", address),
        ("auto.offset.reset", "earliest"),
        ("heartbeat.interval.ms", "1000"),
        ("fetch.max.wait.ms", "100"),
    ] {
        settings.set(property, value).unwrap();
    }
    settings
}

async fn producer(address: &str) -> Producer {
    Producer::builder()
        .bootstrap(address)
        .build()
        .await
        .unwrap()
}

/// Sends these values to a partition and waits until they are stored.
async fn fill(address: &str, topic: &str, partition: i32, values: std::ops::Range<i64>) {
    let producer = producer(address).await;
    for value in values {
        let record = NewRecord::to(topic)
            .partition(partition)
            .value(value.to_string());
        producer.send(record).await.unwrap();
    }
    producer.close().await.unwrap();
}

/// What a test waits for must come in time.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(Duration::from_secs(20), future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within 20 s"),
    }
}
