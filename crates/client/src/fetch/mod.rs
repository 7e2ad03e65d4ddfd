//! Fetching: long polls to the partitions' leaders, ahead of the application, into buffers that are handed out as they came.
//!
//! ```text
//!   start(partition, position) ─▶ ┌───────────┐ ── Fetch, lane 0 ──▶ leader 1
//!   stop, pause, resume        ─▶ │  Fetcher  │ ── Fetch, lane 1 ──▶ leader 1   (partitions that came while lane 0 waits)
//!   next() ◀── buffered records ─ └───────────┘ ── Fetch, lane 0 ──▶ leader 2
//! ```

mod dispatch;
mod reset;

use crate::cluster::{Cluster, Purpose, lock};
use crate::error::Error;
use crate::records::Records;
use crate::task::spawn_watched;
use kohort_group::partitions::{Partitions, Topic, TopicPartition};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

/// How many fetches to one broker may wait at a time.
const LANES: u8 = 3;
/// The lanes that are opened in advance: one for what is read already, one for what is added.
const LANES_IN_ADVANCE: u8 = 2;

/// Where reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The next offset to read.
    pub(crate) offset: i64,
    /// The leader epoch of the record before it, −1 if unknown.
    pub(crate) leader_epoch: i32,
}

#[derive(Debug)]
struct Partition {
    /// Told apart from an earlier assignment of the same partition.
    incarnation: u64,
    /// Where the next fetch begins; `None` until the reset has found out.
    fetch_from: Option<Position>,
    /// What was fetched and not handed out yet.
    buffered: VecDeque<Records>,
    buffered_bytes: usize,
    /// The end of the partition, as the last answer said.
    end: Option<i64>,
    /// Whether everything up to the end has been handed out at some time.
    reached_end: bool,
    under_way: bool,
    paused: bool,
    not_before: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    partitions: BTreeMap<TopicPartition, Partition>,
    /// Partitions with buffered records, the one that waits for longest first.
    ready: VecDeque<TopicPartition>,
    /// The lanes under way, by broker.
    busy: BTreeSet<(i32, u8)>,
    incarnations: u64,
    buffered_bytes: usize,
    halted: bool,
    /// Whether somebody has been told that everything is read to its end.
    told_end: bool,
}

/// Fetches partitions. Cheap to share.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    cluster: Arc<Cluster>,
    state: Mutex<State>,
    /// There is something to fetch.
    work: Notify,
    /// There is something to hand out.
    filled: Notify,
    failures: mpsc::UnboundedSender<Error>,
}

impl Shared {
    /// Runs a part of the fetching; its death is a failure like others.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let failures = self.failures.clone();
        spawn_watched(task, move |error| drop(failures.send(error)));
    }
}

impl Fetcher {
    /// Begins; what cannot be mended by trying again is told to `failures`.
    pub(crate) fn new(cluster: Arc<Cluster>, failures: mpsc::UnboundedSender<Error>) -> Self {
        let shared = Arc::new(Shared {
            cluster,
            state: Mutex::default(),
            work: Notify::new(),
            filled: Notify::new(),
            failures,
        });
        shared.spawn(dispatch::run(Arc::downgrade(&shared)));
        Self { shared }
    }

    /// These partitions will be started soon: all that is read is not at its end before they are.
    pub(crate) fn reserve(&self, what: &Partitions) {
        for (topic, partition) in what.iter() {
            let what = TopicPartition::new(topic.clone(), partition);
            self.insert(&what, None, true);
        }
    }

    /// Reads a partition from a position, or from where `auto.offset.reset` says.
    pub(crate) fn start(&self, what: &TopicPartition, from: Option<Position>) {
        self.insert(what, from, false);
        self.shared.work.notify_one();
    }

    fn insert(&self, what: &TopicPartition, from: Option<Position>, reserved: bool) {
        let mut state = lock(&self.shared.state);
        state.incarnations += 1;
        let partition = Partition {
            incarnation: state.incarnations,
            fetch_from: from,
            buffered: VecDeque::new(),
            buffered_bytes: 0,
            end: None,
            reached_end: false,
            // What is reserved is not looked up either.
            under_way: reserved,
            paused: false,
            not_before: None,
        };
        state.remove(what);
        state.partitions.insert(what.clone(), partition);
    }

    /// Nothing of these partitions is handed out from now on.
    pub(crate) fn stop(&self, what: &Partitions) {
        let mut state = lock(&self.shared.state);
        for (topic, partition) in what.iter() {
            state.remove(&TopicPartition {
                topic: topic.clone(),
                partition,
            });
        }
    }

    /// Nothing at all is handed out from now on.
    pub(crate) fn halt(&self) {
        lock(&self.shared.state).halted = true;
    }

    /// Pauses or resumes these partitions, or all. What is buffered stays.
    pub(crate) fn pause(&self, which: Option<&Partitions>, paused: bool) {
        let mut state = lock(&self.shared.state);
        for (what, partition) in &mut state.partitions {
            if which.is_none_or(|which| which.contains(&what.topic, what.partition)) {
                partition.paused = paused;
            }
        }
        drop(state);
        self.shared.work.notify_one();
        self.shared.filled.notify_one();
    }

    /// The next records, if some are there; partitions take turns.
    pub(crate) fn next(&self) -> Option<Records> {
        let mut state = lock(&self.shared.state);
        let records = state.pop()?;
        drop(state);
        self.shared.work.notify_one();
        Some(records)
    }

    /// Waits until there may be something to hand out (or nothing left before the end).
    pub(crate) async fn filled(&self) {
        self.shared.filled.notified().await;
    }

    /// Whether something is read and all of it has been handed out up to its end.
    pub(crate) fn at_end(&self) -> bool {
        let state = lock(&self.shared.state);
        !state.partitions.is_empty()
            && state
                .partitions
                .values()
                .all(|partition| partition.reached_end)
    }

    /// The same, but only the first time that it is so.
    pub(crate) fn at_end_news(&self) -> bool {
        let at_end = self.at_end();
        let mut state = lock(&self.shared.state);
        let news = at_end && !state.told_end;
        state.told_end = at_end;
        news
    }

    /// Opens the connections that fetching these topics will need.
    pub(crate) fn warm_up(&self, topics: &BTreeSet<Topic>) {
        let view = self.shared.cluster.view();
        let leaders: BTreeSet<i32> = topics
            .iter()
            .filter_map(|topic| view.topics.get(topic))
            .flat_map(|topic| topic.partitions.values().map(|partition| partition.leader))
            .filter(|leader| *leader >= 0)
            .collect();
        for leader in leaders {
            for lane in 0..LANES_IN_ADVANCE {
                let cluster = self.shared.cluster.clone();
                tokio::spawn(async move {
                    cluster
                        .connection(leader, Purpose::Fetch(lane))
                        .await
                        .is_ok()
                });
            }
        }
    }
}

impl State {
    fn remove(&mut self, what: &TopicPartition) {
        if let Some(gone) = self.partitions.remove(what) {
            self.buffered_bytes -= gone.buffered_bytes;
            self.ready.retain(|ready| ready != what);
        }
    }

    fn pop(&mut self) -> Option<Records> {
        if self.halted {
            return None;
        }
        for _ in 0..self.ready.len() {
            let what = self.ready.pop_front()?;
            let Some(partition) = self.partitions.get_mut(&what) else {
                continue;
            };
            if partition.paused {
                self.ready.push_back(what);
                continue;
            }
            let Some(records) = partition.buffered.pop_front() else {
                continue;
            };
            partition.buffered_bytes -= records.size();
            self.buffered_bytes -= records.size();
            partition.reached_end |= partition.buffered.is_empty()
                && partition
                    .end
                    .is_some_and(|end| records.next_offset() >= end);
            if !partition.buffered.is_empty() {
                self.ready.push_back(what);
            }
            return Some(records);
        }
        None
    }
}
