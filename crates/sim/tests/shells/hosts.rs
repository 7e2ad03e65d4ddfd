//! What runs on the simulated hosts: a broker that keeps its log, a producer, and the members of a group.

use crate::ledger::Ledger;
use crate::net::{BOOTSTRAP, Listener, connector};
use kohort::{Admin, Consumer, Event, NewRecord, Producer, Settings, TopicPartition};
use kohort_broker::Broker;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{sleep, timeout};

pub(crate) const PARTITIONS: i32 = 6;

/// What a member is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Run,
    /// Close, and stay away.
    Stay,
    /// The application does nothing for so many milliseconds.
    Hang(u64),
}

/// What all hosts share.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) ledger: Ledger,
    pub(crate) seed: u64,
    pub(crate) assignors: &'static str,
    pub(crate) explicit: bool,
    pub(crate) fixed: bool,
    pub(crate) starts: Arc<AtomicU64>,
    pub(crate) wishes: Arc<Mutex<BTreeMap<String, Wish>>>,
    /// Records are sent.
    pub(crate) produces: Arc<AtomicBool>,
    /// All records that were sent are settled.
    pub(crate) produced: Arc<AtomicBool>,
}

impl Stage {
    pub(crate) fn wish(&self, name: &str) -> Wish {
        let wishes = self.wishes.lock().unwrap();
        wishes.get(name).copied().unwrap_or(Wish::Run)
    }

    pub(crate) fn set(&self, name: &str, wish: Wish) {
        self.wishes.lock().unwrap().insert(name.to_owned(), wish);
    }

    pub(crate) fn all_run(&self) -> bool {
        let wishes = self.wishes.lock().unwrap();
        wishes.values().all(|wish| *wish == Wish::Run)
    }

    /// Another seed for each start of anything.
    fn fresh(&self) -> u64 {
        self.seed
            .wrapping_mul(1_000)
            .wrapping_add(self.starts.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        for (property, value) in [
            ("bootstrap.servers", BOOTSTRAP),
            ("group.id", "g"),
            ("auto.offset.reset", "earliest"),
            ("partition.assignment.strategy", self.assignors),
            ("session.timeout.ms", "6000"),
            ("heartbeat.interval.ms", "1000"),
            ("max.poll.interval.ms", "9000"),
            ("auto.commit.interval.ms", "1000"),
            ("request.timeout.ms", "4000"),
            ("socket.connection.setup.timeout.ms", "2000"),
            ("default.api.timeout.ms", "10000"),
            ("delivery.timeout.ms", "30000"),
            ("metadata.max.age.ms", "5000"),
            ("fetch.max.wait.ms", "500"),
        ] {
            settings.set(property, value).unwrap();
        }
        settings.explicit_revocation = self.explicit;
        settings
    }
}

pub(crate) async fn broker(stage: Stage, folder: PathBuf) -> turmoil::Result {
    let settings = kohort_broker::Settings::for_tests();
    let told = stage.ledger.clone();
    let _broker = Broker::builder()
        .settings(settings)
        .data(folder)
        .seed(stage.fresh())
        .on_rebalance(move |_| told.books().rebalances += 1)
        .start_on(Listener::bind().await?)
        .await?;
    stage.ledger.tell("the broker serves".to_owned());
    std::future::pending().await
}

/// Sends to all partitions while it is told to.
pub(crate) async fn producer(stage: Stage) -> turmoil::Result {
    let settings = stage.settings();
    let admin = Admin::by(connector(), settings.clone()).await?;
    admin.create_topic("t", PARTITIONS).await?;
    let producer = Producer::builder()
        .settings(settings)
        .connector(connector())
        .build()
        .await?;
    for number in 0.. {
        if !stage.produces.load(Ordering::Relaxed) {
            break;
        }
        for partition in 0..PARTITIONS {
            let record = NewRecord::to("t")
                .partition(partition)
                .value(number.to_string());
            let Ok(delivery) = producer.send(record).await else {
                continue;
            };
            let ledger = stage.ledger.clone();
            tokio::spawn(async move {
                match delivery.wait().await {
                    Ok(stored) => {
                        let record = (TopicPartition::new("t", partition), stored.offset);
                        ledger.books().acknowledged.insert(record);
                    }
                    Err(error) => ledger.tell(format!("a record is not stored: {error}")),
                }
            });
        }
        sleep(Duration::from_millis(200)).await;
    }
    // What is under way is settled before the verdict.
    let _ = producer.close().await;
    stage.ledger.tell("the producer has ended".to_owned());
    stage.produced.store(true, Ordering::Relaxed);
    std::future::pending().await
}

/// A member that joins and closes as it is told, for ever.
pub(crate) async fn member(stage: Stage, name: String) -> turmoil::Result {
    loop {
        if stage.wish(&name) == Wish::Stay {
            sleep(Duration::from_millis(100)).await;
            continue;
        }
        let mut builder = Consumer::builder()
            .settings(stage.settings())
            .connector(connector())
            .seed(stage.fresh())
            .topics(["t"]);
        if stage.fixed {
            builder = builder.instance_id(&name);
        }
        match builder.build().await {
            Ok(consumer) => life(&stage, &name, consumer).await,
            Err(error) => stage.ledger.tell(format!("{name} does not start: {error}")),
        }
        stage.ledger.books().gone(&name);
    }
}

async fn life(stage: &Stage, name: &str, mut consumer: Consumer) {
    stage.ledger.tell(format!("{name} starts"));
    let mut closing = false;
    loop {
        match stage.wish(name) {
            Wish::Stay if !closing => {
                closing = true;
                consumer.begin_close(true);
            }
            Wish::Hang(pause) => {
                stage.ledger.tell(format!("{name} hangs for {pause} ms"));
                sleep(Duration::from_millis(pause)).await;
                if stage.wish(name) == Wish::Hang(pause) {
                    stage.set(name, Wish::Run);
                }
            }
            Wish::Run | Wish::Stay => {}
        }
        let Ok(event) = timeout(Duration::from_millis(100), consumer.next()).await else {
            continue;
        };
        if !hear(&stage.ledger, name, event) {
            return;
        }
    }
}

/// Writes an event down; false if it was the last.
fn hear(ledger: &Ledger, name: &str, event: Event) -> bool {
    let of = |topic: &kohort::Topic, partition| TopicPartition::new(topic.clone(), partition);
    match event {
        Event::Assigned(assigned) => {
            ledger.tell(format!(
                "{name} has {} in generation {}",
                assigned.owned, assigned.generation
            ));
            for (topic, partition) in assigned.added.iter() {
                ledger.books().take(name, &of(topic, partition));
            }
        }
        Event::Revoked(revocation) => {
            ledger.tell(format!("{name} lets go of {}", revocation.partitions));
            for (topic, partition) in revocation.partitions.iter() {
                ledger.books().give(name, &of(topic, partition));
            }
        }
        Event::Lost(lost) => {
            ledger.tell(format!("{name} has lost {}: {}", lost.partitions, lost.why));
            // Also what was let go of too late.
            for (topic, partition) in lost.partitions.iter() {
                ledger.books().lose(name, &of(topic, partition));
            }
        }
        Event::Records(records) => {
            let offsets: Vec<i64> = records
                .iter()
                .map(|record| record.unwrap().offset)
                .collect();
            let mut books = ledger.books();
            for offset in offsets {
                let record = (records.partition().clone(), offset);
                *books.delivered.entry(record).or_default() += 1;
            }
        }
        Event::Error(error) => {
            let text = format!("{name}: {error}");
            ledger.tell(text.clone());
            ledger.books().trouble.push(text);
        }
        Event::Closed => {
            ledger.tell(format!("{name} has closed"));
            return false;
        }
        Event::Warning { text, .. } => ledger.tell(format!("{name} warns: {text}")),
        Event::AtEnd | Event::Rebalance { .. } | Event::Rebalanced(_) => {}
    }
    true
}

/// Reads on where the group has ended: what it is given was delivered, but not committed. Gives how many records, and ends.
pub(crate) async fn heir(stage: Stage, found: Arc<Mutex<Option<usize>>>) -> turmoil::Result {
    let mut consumer = Consumer::builder()
        .settings(stage.settings())
        .connector(connector())
        .seed(stage.fresh())
        .topics(["t"])
        .build()
        .await?;
    let mut count = 0;
    loop {
        match consumer.next().await {
            Event::Records(records) => count += records.len(),
            Event::AtEnd => break,
            Event::Error(error) => return Err(error.into()),
            _ => {}
        }
    }
    consumer.close().await?;
    *found.lock().unwrap() = Some(count);
    Ok(())
}
