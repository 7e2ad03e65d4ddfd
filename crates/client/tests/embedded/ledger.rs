//! Who owns what, and who read what: the books that show two owners, lost and repeated records.

use kohort::{Consumer, ConsumerBuilder, Event, TopicPartition};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

#[derive(Debug, Default)]
pub(crate) struct Books {
    owners: BTreeMap<TopicPartition, String>,
    /// How often each record was delivered.
    pub delivered: BTreeMap<(TopicPartition, i64), u32>,
    pub trouble: Vec<String>,
}

impl Books {
    pub(crate) fn owned_by(&self, name: &str) -> usize {
        self.owners.values().filter(|owner| *owner == name).count()
    }

    fn take(&mut self, name: &str, what: TopicPartition) {
        if let Some(other) = self.owners.insert(what.clone(), name.to_owned()) {
            self.trouble
                .push(format!("{what} went to {name} while {other} had it"));
        }
    }

    fn give(&mut self, name: &str, what: &TopicPartition) {
        if self.owners.get(what).is_none_or(|owner| owner != name) {
            self.trouble
                .push(format!("{name} gave up {what}, which it did not have"));
        }
        self.owners.remove(what);
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Mutex<Books>>, Arc<watch::Sender<()>>);

impl Ledger {
    pub(crate) fn books(&self) -> std::sync::MutexGuard<'_, Books> {
        self.0.lock().unwrap()
    }

    /// Waits until the books are as wanted.
    pub(crate) async fn until(&self, what: &str, test: impl Fn(&Books) -> bool) {
        let mut changes = self.1.subscribe();
        let waiting = async {
            while !test(&self.books()) {
                changes.changed().await.unwrap();
            }
        };
        if tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .is_err()
        {
            panic!("{what}: not within 20 s; {:?}", self.books());
        }
    }

    /// A member that writes down what happens to it, until it is told to close.
    pub(crate) async fn member(&self, name: &str, builder: ConsumerBuilder) -> Member {
        let consumer = builder.build().await.unwrap();
        let (close, closed) = oneshot::channel();
        let task = tokio::spawn(run(self.clone(), name.to_owned(), consumer, closed));
        Member { close, task }
    }

    fn note(&self, change: impl FnOnce(&mut Books)) {
        change(&mut self.books());
        self.1.send_replace(());
    }
}

pub(crate) struct Member {
    close: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Member {
    pub(crate) async fn close(self) {
        self.close.send(()).unwrap();
        super::soon("a member closes", self.task).await.unwrap();
    }
}

async fn run(
    ledger: Ledger,
    name: String,
    mut consumer: Consumer,
    mut close: oneshot::Receiver<()>,
) {
    let mut closing = false;
    loop {
        let event = tokio::select! {
            _ = &mut close, if !closing => {
                closing = true;
                consumer.begin_close(true);
                continue;
            }
            event = consumer.next() => event,
        };
        let of = |topic: &kohort::Topic, partition| TopicPartition::new(topic.clone(), partition);
        match event {
            Event::Assigned(assigned) => ledger.note(|books| {
                for (topic, partition) in assigned.added.iter() {
                    books.take(&name, of(topic, partition));
                }
            }),
            Event::Revoked(revocation) => {
                ledger.note(|books| {
                    for (topic, partition) in revocation.partitions.iter() {
                        books.give(&name, &of(topic, partition));
                    }
                });
            }
            Event::Lost(lost) => ledger.note(|books| {
                books
                    .trouble
                    .push(format!("{name} lost {}", lost.partitions));
            }),
            Event::Records(records) => {
                let offsets: Vec<i64> = records
                    .iter()
                    .map(|record| record.unwrap().offset)
                    .collect();
                assert_eq!(offsets.len(), records.len());
                ledger.note(|books| {
                    for offset in offsets {
                        let record = (records.partition().clone(), offset);
                        *books.delivered.entry(record).or_default() += 1;
                    }
                });
            }
            Event::Error(error) => {
                ledger.note(|books| books.trouble.push(format!("{name}: {error}")));
            }
            Event::Closed => return,
            Event::AtEnd
            | Event::Rebalance { .. }
            | Event::Rebalanced(_)
            | Event::Warning { .. } => {}
        }
    }
}
