//! A member of the story: a real consumer on a thread and a runtime of its own, so that a crash is one. The thread drops everything without
//! another word, as the end of a process would.

use super::ledger::{Happened, Millis};
use kohort::{Consumer, Event, RebalanceRecord, Records, Settings};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Something that a member says.
#[derive(Debug)]
pub(super) struct Note {
    /// Which group.
    pub(super) track: usize,
    pub(super) at: Millis,
    pub(super) member: String,
    pub(super) told: Told,
}

/// What it says.
#[derive(Debug)]
pub(super) enum Told {
    Happened(Happened),
    Rebalanced(Box<RebalanceRecord>),
    Failed(String),
    Ended,
}

/// What a member is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Hand over and leave.
    Close,
    /// Stop, to come back: a static member's restart.
    Restart,
    /// Stop without another word.
    Crash,
    /// The story is over: leave, in whatever way is quick.
    Finish,
}

/// How to make a member.
#[derive(Clone, Debug)]
pub(super) struct Role {
    pub(super) track: usize,
    pub(super) name: String,
    pub(super) settings: Settings,
    pub(super) topic: String,
    pub(super) revoke: Duration,
    pub(super) began: Instant,
    pub(super) notes: UnboundedSender<Note>,
}

/// A member that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) orders: UnboundedSender<Order>,
    pub(super) thread: JoinHandle<()>,
}

impl Role {
    /// Starts the member.
    pub(super) fn start(self) -> std::io::Result<Running> {
        let (orders, listen) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let thread = std::thread::Builder::new()
            .name(self.name.clone())
            .spawn(move || {
                runtime.block_on(self.live(listen));
                // Whatever tasks are left end here, and their connections with them.
                runtime.shutdown_background();
            })?;
        Ok(Running { orders, thread })
    }

    fn say(&self, told: Told) {
        let at = self.began.elapsed().as_secs_f64() * 1000.0;
        let member = self.name.clone();
        // Nobody listens after the end of the story.
        let _ = self.notes.send(Note {
            track: self.track,
            at,
            member,
            told,
        });
    }

    fn happened(&self, what: Happened) {
        self.say(Told::Happened(what));
    }

    async fn live(&self, mut orders: UnboundedReceiver<Order>) {
        let builder = Consumer::builder()
            .settings(self.settings.clone())
            .topics([&self.topic]);
        let mut consumer = match builder.build().await {
            Ok(consumer) => consumer,
            Err(error) => return self.say(Told::Failed(error.to_string())),
        };
        loop {
            tokio::select! {
                biased;
                Some(order) = orders.recv() => match order {
                    Order::Crash => return self.happened(Happened::Crashed),
                    Order::Close => consumer.begin_close(true),
                    Order::Restart => {
                        self.happened(Happened::GoesAway);
                        consumer.begin_close(false);
                    }
                    Order::Finish => consumer.begin_close(false),
                },
                event = consumer.next() => {
                    if self.event(event) {
                        return self.say(Told::Ended);
                    }
                }
            }
        }
    }

    /// True at the end.
    fn event(&self, event: Event) -> bool {
        match event {
            Event::Assigned(assigned) => {
                self.happened(Happened::Assigned(numbers(&assigned.added)));
            }
            Event::Revoked(revocation) => {
                let role = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(role.revoke).await;
                    // Written down first: what comes after the release is somebody else's.
                    role.happened(Happened::Released(numbers(&revocation.partitions)));
                    revocation.release();
                });
            }
            Event::Lost(lost) => self.happened(Happened::Lost(numbers(&lost.partitions))),
            Event::Records(records) => self.records(&records),
            Event::Rebalanced(record) => self.say(Told::Rebalanced(record)),
            Event::Error(error) => self.say(Told::Failed(error.to_string())),
            Event::Closed => return true,
            Event::AtEnd | Event::Rebalance { .. } | Event::Warning { .. } => {}
        }
        false
    }

    fn records(&self, records: &Records) {
        let partition = records.partition().partition;
        for record in records.iter() {
            match record {
                Ok(record) => {
                    let content = content(record.value.as_deref().unwrap_or_default());
                    self.happened(Happened::Delivered(partition, record.offset, content));
                }
                Err(error) => self.say(Told::Failed(error.to_string())),
            }
        }
    }
}

fn numbers(partitions: &kohort::Partitions) -> Vec<i32> {
    partitions.iter().map(|(_, partition)| partition).collect()
}

/// A hash of a record's value, to compare what came out with what went in.
pub(super) fn content(value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
