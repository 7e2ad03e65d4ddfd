//! Several consumers in a group, under a steady flow of records.

use super::ledger::Ledger;
use super::*;
use bytes::Bytes;
use kohort::assign::{Assignor, Question, Shares};
use kohort::{Consumer, ConsumerBuilder, Error, Event, Partitions, Topic, TopicPartition};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PARTITIONS: i32 = 6;

fn builder(address: &str, assignor: &str) -> ConsumerBuilder {
    Consumer::builder()
        .settings(settings(address))
        .group("g")
        .topics(["t"])
        .set("partition.assignment.strategy", assignor)
}

/// Sends to all partitions until it is told to stop; gives how many went into each.
fn flow(address: &str) -> (Arc<AtomicBool>, tokio::task::JoinHandle<i64>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, address) = (stop.clone(), address.to_owned());
    let task = tokio::spawn(async move {
        let producer = producer(&address).await;
        let mut sent = 0;
        while !stopped.load(Ordering::Relaxed) {
            for partition in 0..PARTITIONS {
                let record = NewRecord::to("t")
                    .partition(partition)
                    .value(sent.to_string());
                producer.send(record).await.unwrap();
            }
            sent += 1;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        producer.close().await.unwrap();
        sent
    });
    (stop, task)
}

/// Members come and go one after the other; no partition has two owners, no record is missing or comes twice.
async fn members_come_and_go(assignor: &str) {
    let (_broker, address) = broker(&[("t", PARTITIONS)]).await;
    let (stop, flow) = flow(&address);
    let ledger = Ledger::default();
    let a = ledger.member("a", builder(&address, assignor)).await;
    ledger
        .until("a has all", |books| books.owned_by("a") == 6)
        .await;
    let b = ledger.member("b", builder(&address, assignor)).await;
    ledger
        .until("three each", |books| {
            books.owned_by("a") == 3 && books.owned_by("b") == 3
        })
        .await;
    let c = ledger.member("c", builder(&address, assignor)).await;
    ledger
        .until("two each", |books| {
            ["a", "b", "c"].iter().all(|name| books.owned_by(name) == 2)
        })
        .await;
    a.close().await;
    ledger
        .until("b and c share", |books| {
            books.owned_by("b") == 3 && books.owned_by("c") == 3
        })
        .await;
    b.close().await;
    ledger
        .until("c has all", |books| books.owned_by("c") == 6)
        .await;
    stop.store(true, Ordering::Relaxed);
    let sent = flow.await.unwrap();
    let total = (sent * i64::from(PARTITIONS)) as usize;
    ledger
        .until("everything", |books| books.delivered.len() == total)
        .await;
    c.close().await;
    let books = ledger.books();
    assert_eq!(books.trouble, Vec::<String>::new());
    let repeated: Vec<_> = books
        .delivered
        .iter()
        .filter(|(_, times)| **times > 1)
        .collect();
    assert!(repeated.is_empty(), "{assignor}: repeated {repeated:?}");
    for partition in 0..PARTITIONS {
        let last = (TopicPartition::new("t", partition), sent - 1);
        assert!(books.delivered.contains_key(&last));
    }
}

/// librdkafka#3340, KAFKA-16107, confluent-kafka-javascript#32: with nothing but what the events say.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cooperative_members_come_and_go() {
    members_come_and_go("cooperative-sticky").await;
}

/// confluent-kafka-javascript#32, confluent-kafka-dotnet#1742: so with an eager assignor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eager_members_come_and_go() {
    members_come_and_go("range").await;
}

/// A topic that appears, and partitions that are added, are found.
#[tokio::test]
async fn what_appears_is_found() {
    let (_broker, address) = broker(&[]).await;
    let ledger = Ledger::default();
    let builder = Consumer::builder()
        .settings(settings(&address))
        .group("g")
        .pattern("t.*")
        .set("metadata.max.age.ms", "100");
    let a = ledger.member("a", builder).await;
    make(&address, &[("t1", 1)]).await;
    ledger
        .until("the topic", |books| books.owned_by("a") == 1)
        .await;
    make(&address, &[("other", 1), ("t2", 2)]).await;
    ledger
        .until("both topics", |books| books.owned_by("a") == 3)
        .await;
    Admin::connect(&address)
        .await
        .unwrap()
        .add_partitions("t1", 3)
        .await
        .unwrap();
    ledger
        .until("new partitions", |books| books.owned_by("a") == 5)
        .await;
    a.close().await;
    assert_eq!(ledger.books().trouble, Vec::<String>::new());
}

/// An assignor of the application's own, with a mistake in it.
#[derive(Debug)]
struct Panicking;

impl Assignor for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn is_eager(&self) -> bool {
        false
    }

    fn user_data(&self, _: &[Topic], _: &Partitions, _: i32) -> Option<Bytes> {
        None
    }

    fn assign(&self, _: &Question<'_>) -> Shares {
        panic!("no idea who should get this");
    }
}

/// KAFKA-14729: the background task dies; the application hears of it instead of waiting for ever.
#[tokio::test]
async fn the_death_of_the_background_task_is_an_error() {
    let (_broker, address) = broker(&[("t", 1)]).await;
    let mut consumer = Consumer::builder()
        .settings(settings(&address))
        .group("g")
        .topics(["t"])
        .assignor(Arc::new(Panicking))
        .build()
        .await
        .unwrap();
    let mut told = None;
    loop {
        match consumer.next().await {
            Event::Error(error) => told = Some(error),
            Event::Closed => break,
            _ => {}
        }
    }
    let words = "no idea who should get this".to_owned();
    assert_eq!(told, Some(Error::Panicked(words)));
    assert!(matches!(consumer.next().await, Event::Closed));
    let commit = consumer.commit().await;
    assert!(commit.is_err(), "{commit:?}");
}
