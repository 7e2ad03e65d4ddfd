//! The consumer: a member of a group, and the records of the partitions that it is given.
//!
//! ```text
//!   application ── next, commit, close ─▶ Consumer ── commands ─▶ driver ── inputs ─▶ Member (no clock, no IO)
//!        ▲────────────── events ──────────────┘◀─── events ───────┘ ◀── outputs ───────┘
//!        └── records ── Fetcher ◀── start, stop ──────────────────┘
//! ```
//!
//! The driver runs by itself: heartbeats and hand-overs go on while the application is busy.

mod application;
mod builder;
mod driver;
mod event;
mod lanes;

pub use builder::ConsumerBuilder;
pub use event::{Assigned, Event, Lost, Revocation};

use crate::cluster::lock;
use crate::error::Error;
use crate::fetch::Fetcher;
use crate::metadata::View;
use application::Application;
use driver::CommitOutcome;
use kohort_group::member::{CommitError, Offset, Subscription};
use kohort_group::partitions::{Partitions, TopicPartition};
use kohort_group::reason::JoinReason;
use kohort_group::topics::{TopicImage, TopicInfo};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// What the application wants of the driver.
#[derive(Debug)]
enum Command {
    Subscribe(Subscription),
    Unsubscribe,
    Commit {
        offsets: Option<BTreeMap<TopicPartition, Offset>>,
        outcome: oneshot::Sender<CommitOutcome>,
    },
    Released(Partitions),
    Rebalance(JoinReason),
    Polled,
    Close {
        drain: bool,
    },
}

/// A member of a consumer group.
///
/// It joins in the background as soon as it is built. The application calls [`next`](Consumer::next) again and again; a batch
/// counts as consumed when `next` is called after it, and positions are committed by themselves unless that is switched off.
///
/// ```no_run
/// # async fn example() -> Result<(), kohort::Error> {
/// use kohort::{Consumer, Event};
///
/// let mut consumer = Consumer::builder()
///     .bootstrap("127.0.0.1:9092")
///     .group("billing")
///     .topics(["orders"])
///     .build()
///     .await?;
/// loop {
///     match consumer.next().await {
///         Event::Records(records) => {
///             for record in records.iter() {
///                 println!("{:?}", record?.value);
///             }
///         }
///         // Letting go ends when the value is dropped: finish what is under way for these partitions first.
///         Event::Revoked(revocation) => println!("{} go", revocation.partitions),
///         Event::Error(error) => return Err(error),
///         Event::Closed => return Ok(()),
///         Event::Assigned(_) | Event::Lost(_) | Event::Rebalance { .. } => {}
///         Event::Rebalanced(_) | Event::AtEnd | Event::Warning { .. } => {}
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Consumer {
    commands: mpsc::UnboundedSender<Command>,
    events: mpsc::UnboundedReceiver<Event>,
    fetcher: Fetcher,
    application: Arc<Mutex<Application>>,
    /// What was handed out last: consumed when `next` is called again.
    delivered: Option<(TopicPartition, Offset)>,
    closed: bool,
}

impl Consumer {
    /// Begins to describe one.
    #[must_use]
    pub fn builder() -> ConsumerBuilder {
        ConsumerBuilder::default()
    }

    /// Waits for what happens next. Changes of the assignment come before records.
    ///
    /// It must be called again within `max.poll.interval.ms`, or the group goes on without this member; waiting inside it
    /// counts as being alive. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Event {
        self.consume_delivered();
        if lock(&self.application).poll(Instant::now()) {
            self.command(Command::Polled);
        }
        loop {
            if let Some(event) = self.ready() {
                return event;
            }
            if self.closed {
                return Event::Closed;
            }
            let _waiting = Waiting::new(&self.application);
            tokio::select! {
                biased;
                event = self.events.recv() => return self.noted(event.unwrap_or(Event::Closed)),
                () = self.fetcher.filled() => {}
            }
        }
    }

    /// The next event, if there is one already.
    fn ready(&mut self) -> Option<Event> {
        if let Ok(event) = self.events.try_recv() {
            return Some(self.noted(event));
        }
        loop {
            let Some(records) = self.fetcher.next() else {
                return self.fetcher.at_end_news().then_some(Event::AtEnd);
            };
            let position = Offset {
                offset: records.next_offset(),
                leader_epoch: records.leader_epoch(),
                metadata: String::new(),
            };
            self.delivered = Some((records.partition().clone(), position));
            // What is empty only moves the position: transaction markers, or what compaction left.
            if !records.is_empty() {
                return Some(Event::Records(records));
            }
            self.consume_delivered();
        }
    }

    fn noted(&mut self, event: Event) -> Event {
        self.closed |= matches!(event, Event::Closed);
        event
    }

    fn consume_delivered(&mut self) {
        if let Some((what, position)) = self.delivered.take() {
            lock(&self.application).consume(what, position);
        }
    }

    fn command(&self, command: Command) {
        // A driver that has ended has said so in an event.
        let _ = self.commands.send(command);
    }

    /// Commits the positions after everything that was handed out, also what [`next`](Consumer::next) gave last. The future
    /// may be awaited elsewhere while the consumer goes on.
    ///
    /// # Errors
    /// [`CommitError`] says whether it makes sense to try again. Partitions that are not owned any more are refused here, without
    /// asking the broker.
    pub fn commit(
        &mut self,
    ) -> impl Future<Output = Result<BTreeMap<TopicPartition, Offset>, CommitError>>
    + Send
    + 'static
    + use<> {
        self.consume_delivered();
        self.send_commit(None)
    }

    /// Commits these positions: for each partition the next offset to read.
    ///
    /// # Errors
    /// See [`commit`](Consumer::commit).
    pub fn commit_offsets(
        &mut self,
        offsets: BTreeMap<TopicPartition, Offset>,
    ) -> impl Future<Output = Result<BTreeMap<TopicPartition, Offset>, CommitError>>
    + Send
    + 'static
    + use<> {
        self.send_commit(Some(offsets))
    }

    fn send_commit(
        &mut self,
        offsets: Option<BTreeMap<TopicPartition, Offset>>,
    ) -> impl Future<Output = Result<BTreeMap<TopicPartition, Offset>, CommitError>>
    + Send
    + 'static
    + use<> {
        let (outcome, committed) = oneshot::channel();
        self.command(Command::Commit { offsets, outcome });
        async move { committed.await.unwrap_or(Err(CommitError::Unknown)) }
    }

    /// Wants these topics from now on, instead of others.
    pub fn subscribe<T: AsRef<str>>(&mut self, topics: impl IntoIterator<Item = T>) {
        let topics = topics.into_iter().map(|topic| topic.as_ref().into());
        self.command(Command::Subscribe(Subscription::Topics(topics.collect())));
    }

    /// Wants nothing any more, but may subscribe again.
    pub fn unsubscribe(&mut self) {
        self.command(Command::Unsubscribe);
    }

    /// Asks the group for a rebalance, for this reason (`Requested`, or `StateReady`).
    pub fn request_rebalance(&mut self, reason: JoinReason) {
        self.command(Command::Rebalance(reason));
    }

    /// Delivers nothing of these partitions, or of any, until they are resumed. They stay assigned.
    pub fn pause(&mut self, partitions: Option<&Partitions>) {
        self.fetcher.pause(partitions, true);
    }

    /// Delivers again.
    pub fn resume(&mut self, partitions: Option<&Partitions>) {
        self.fetcher.pause(partitions, false);
    }

    /// Whether something is assigned and all of it has been delivered up to its end, at some time for each partition.
    #[must_use]
    pub fn at_end(&self) -> bool {
        self.fetcher.at_end()
    }

    /// Of the records that [`next`](Consumer::next) gave last, only those before `next_offset` count as consumed.
    pub fn consumed_before(&mut self, next_offset: i64) {
        if let Some((_, position)) = &mut self.delivered {
            position.offset = position.offset.min(next_offset);
        }
    }

    /// The records that [`next`](Consumer::next) gave last do not count as consumed.
    pub fn not_consumed(&mut self) {
        self.delivered = None;
    }

    /// Delivers nothing any more, whatever is assigned: for applications that have enough and are about to close.
    pub fn stop_delivery(&mut self) {
        self.fetcher.halt();
    }

    /// Begins to close; [`next`](Consumer::next) goes on to tell what happens, up to [`Event::Closed`]. With `drain`, partitions are
    /// handed over one after the other while they are still read, so that nobody waits (bounded by `close.drain.ms`).
    /// A second call, without `drain`, cuts that short.
    pub fn begin_close(&mut self, drain: bool) {
        self.consume_delivered();
        self.command(Command::Close { drain });
    }

    /// Closes: hands partitions over, commits (unless that is switched off), leaves. Nothing is delivered any more.
    ///
    /// # Errors
    /// What had ended the consumer before.
    pub async fn close(self) -> Result<(), Error> {
        self.close_with(true).await
    }

    /// Closes without handing over in an orderly way: commits, leaves.
    ///
    /// # Errors
    /// See [`close`](Consumer::close).
    pub async fn close_now(self) -> Result<(), Error> {
        self.close_with(false).await
    }

    async fn close_with(mut self, drain: bool) -> Result<(), Error> {
        self.fetcher.halt();
        self.begin_close(drain);
        let mut outcome = Ok(());
        while !self.closed {
            match self.events.recv().await.map(|event| self.noted(event)) {
                Some(Event::Error(error)) => outcome = Err(error),
                Some(_) => {}
                None => break,
            }
        }
        outcome
    }
}

impl Drop for Consumer {
    /// Does not wait: the member leaves in the background, as long as the runtime lives.
    fn drop(&mut self) {
        if !self.closed {
            self.consume_delivered();
            self.fetcher.halt();
            self.command(Command::Close { drain: false });
        }
    }
}

/// Marks the application as waiting inside `next`, however that ends.
struct Waiting(Arc<Mutex<Application>>);

impl Waiting {
    fn new(application: &Arc<Mutex<Application>>) -> Self {
        lock(application).wait(true);
        Self(application.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        lock(&self.0).wait(false);
    }
}

/// The topics that exist, as the member sees them.
fn image(view: &View) -> TopicImage {
    let rack = |node: &i32| Some(Arc::from(view.nodes.get(node)?.rack.as_deref()?));
    let topics = view
        .topics
        .iter()
        .filter(|(_, topic)| topic.error.is_none() && !topic.partitions.is_empty());
    topics
        .map(|(name, topic)| {
            let racks = topic.partitions.values();
            let racks = racks.map(|partition| partition.replicas.iter().filter_map(rack));
            let info = TopicInfo {
                id: topic.id,
                internal: topic.internal,
                racks: racks.map(|racks| racks.collect::<BTreeSet<_>>()).collect(),
            };
            (name.clone(), info)
        })
        .collect()
}
