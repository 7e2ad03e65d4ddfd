//! The cluster: its brokers, connections to them, and what is known about topics.
//!
//! A keeper task asks for metadata when somebody wants it, and every `metadata.max.age.ms`; everyone watches what it finds.

use crate::connect::Connector;
use crate::connection::Connection;
use crate::error::Error;
use crate::metadata::{self, Node, View};
use crate::settings::Settings;
use crate::task::spawn_watched;
use kohort_group::partitions::Topic;
use kohort_wire::messages::{
    Coordinator, FindCoordinatorRequest, MetadataRequest, MetadataRequestTopic,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// What a connection is for. A broker answers the requests of one connection in order, so what may wait has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Purpose {
    /// Metadata, offsets, administration.
    Questions,
    /// Produce.
    Produce,
    /// Fetch; several, so that what is added need not wait for a fetch that waits for records.
    Fetch(u8),
}

/// Pauses that double from one failure to the next.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(first_ms: u32, longest_ms: u32) -> Self {
        Self {
            first: Duration::from_millis(first_ms.into()),
            longest: Duration::from_millis(longest_ms.max(first_ms).into()),
            failures: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The pause after the first failure.
    pub(crate) fn first(&self) -> Duration {
        self.first
    }

    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// The pause after one more failure.
    pub(crate) fn next(&mut self) -> Duration {
        let pause = self
            .first
            .saturating_mul(1 << self.failures.min(20))
            .min(self.longest);
        self.failures += 1;
        pause
    }
}

#[derive(Debug)]
struct Link {
    connection: Option<Arc<Connection>>,
    backoff: Backoff,
    not_before: Option<Instant>,
}

/// Which topics are asked for.
#[derive(Clone, Debug, Default)]
struct Interest {
    all: bool,
    topics: BTreeSet<Topic>,
    /// The view's serial from which on it covers this interest.
    from_serial: u64,
}

type Links = BTreeMap<(i32, Purpose), Arc<tokio::sync::Mutex<Link>>>;

/// The way to a cluster. Cheap to share; ends with its last handle.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) settings: Arc<Settings>,
    connector: Connector,
    may_create_topics: bool,
    links: Mutex<Links>,
    interest: Mutex<Interest>,
    wanted: Notify,
    view: watch::Sender<Arc<View>>,
    trouble: watch::Sender<Option<Error>>,
}

impl Cluster {
    /// Connects to the first bootstrap address that answers, and starts the keeper.
    ///
    /// A broker that is not there (yet) is tried again for `bootstrap.timeout.ms`; something that is no broker is not.
    pub(crate) async fn connect(
        settings: Settings,
        connector: Connector,
        may_create_topics: bool,
    ) -> Result<Arc<Self>, Error> {
        settings.check()?;
        let cluster = Arc::new(Self {
            settings: Arc::new(settings),
            connector,
            may_create_topics,
            links: Mutex::default(),
            interest: Mutex::default(),
            wanted: Notify::new(),
            view: watch::Sender::new(Arc::default()),
            trouble: watch::Sender::new(None),
        });
        let limit = Duration::from_millis(cluster.settings.bootstrap_timeout_ms.into());
        let deadline = Instant::now() + limit;
        let mut told = false;
        loop {
            match cluster.refresh(Some(BTreeSet::new())).await {
                Ok(_) => break,
                Err(error) if error.is_retriable() && Instant::now() < deadline => {
                    if !told {
                        tracing::warn!("{error}; trying again for {} ms", limit.as_millis());
                    }
                    told = true;
                }
                Err(error) => return Err(error),
            }
        }
        let trouble = cluster.trouble.clone();
        spawn_watched(keep(Arc::downgrade(&cluster)), move |error| {
            tracing::error!("no metadata any more: {error}");
            trouble.send_replace(Some(error));
        });
        Ok(cluster)
    }

    /// What is known now.
    pub(crate) fn view(&self) -> Arc<View> {
        self.view.borrow().clone()
    }

    /// Tells when that changes.
    pub(crate) fn watch(&self) -> watch::Receiver<Arc<View>> {
        self.view.subscribe()
    }

    /// What goes wrong with metadata at the moment.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.trouble.borrow().clone()
    }

    /// Asks for fresh metadata soon.
    pub(crate) fn want_refresh(&self) {
        self.wanted.notify_one();
    }

    /// Asks for these topics from now on (`None`: for all there are), instead of others; gives the first serial that covers them.
    pub(crate) fn set_interest(&self, topics: Option<BTreeSet<Topic>>) -> u64 {
        let mut interest = lock(&self.interest);
        interest.all = topics.is_none();
        interest.topics = topics.unwrap_or_default();
        interest.from_serial = self.view.borrow().serial + 1;
        self.wanted.notify_one();
        interest.from_serial
    }

    /// Asks for this topic, too, from now on; true if it was not asked for before.
    pub(crate) fn add_interest(&self, topic: &Topic) -> bool {
        let added = lock(&self.interest).topics.insert(topic.clone());
        if added {
            self.wanted.notify_one();
        }
        added
    }

    /// A connection to a broker: the open one, or a new one after the pause that earlier failures demand.
    pub(crate) async fn connection(
        &self,
        node: i32,
        purpose: Purpose,
    ) -> Result<Arc<Connection>, Error> {
        let link = {
            let mut links = lock(&self.links);
            links
                .entry((node, purpose))
                .or_insert_with(|| self.new_link())
                .clone()
        };
        let mut link = link.lock().await;
        if let Some(open) = link.connection.as_ref().filter(|open| !open.is_closed()) {
            return Ok(open.clone());
        }
        link.connection = None;
        if let Some(moment) = link.not_before {
            tokio::time::sleep_until(moment).await;
        }
        let address = self.address(node)?;
        match Connection::open(&address, &self.connector, &self.settings).await {
            Ok(connection) => {
                tracing::debug!("{purpose:?} connection to broker {node} at {address}");
                link.backoff.reset();
                link.not_before = None;
                link.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                tracing::debug!("{purpose:?} connection to broker {node} failed: {error}");
                link.not_before = Some(Instant::now() + link.backoff.next());
                Err(error)
            }
        }
    }

    /// Opens a connection of the caller's own.
    pub(crate) async fn open(&self, node: i32) -> Result<Arc<Connection>, Error> {
        let address = self.address(node)?;
        Connection::open(&address, &self.connector, &self.settings).await
    }

    fn new_link(&self) -> Arc<tokio::sync::Mutex<Link>> {
        Arc::new(tokio::sync::Mutex::new(Link {
            connection: None,
            backoff: Backoff::new(
                self.settings.reconnect_backoff_ms,
                self.settings.reconnect_backoff_max_ms,
            ),
            not_before: None,
        }))
    }

    /// Bootstrap addresses have the ids −1, −2, …
    fn address(&self, node: i32) -> Result<String, Error> {
        if node < 0 {
            let index = -(i64::from(node) + 1);
            let known = usize::try_from(index)
                .ok()
                .and_then(|index| self.settings.bootstrap.get(index));
            return known.cloned().ok_or(Error::Closed);
        }
        let view = self.view.borrow();
        let known = view.nodes.get(&node).map(|node| node.address.clone());
        known.ok_or_else(|| {
            Error::connection(
                &format!("broker {node}"),
                "its address is not known (any more)",
            )
        })
    }

    /// A connection for questions to any broker: one that is open, or else whichever can be reached first.
    pub(crate) async fn any_connection(&self) -> Result<Arc<Connection>, Error> {
        let mut candidates: Vec<i32> = self.view.borrow().nodes.keys().copied().collect();
        candidates.extend((1..=self.settings.bootstrap.len() as i32).map(|index| -index));
        let open = |node: &i32| {
            let links = lock(&self.links);
            let link = links.get(&(*node, Purpose::Questions));
            link.and_then(|link| link.try_lock().ok()?.connection.clone())
                .is_some_and(|link| !link.is_closed())
        };
        candidates.sort_by_key(|node| !open(node));
        let mut failure = Error::Closed;
        for node in candidates {
            match self.connection(node, Purpose::Questions).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failure = worse(failure, error),
            }
        }
        Err(failure)
    }

    /// Asks which broker coordinates a group.
    pub(crate) async fn find_coordinator(&self, group: &str) -> Result<i32, Error> {
        let connection = self.any_connection().await?;
        let request = FindCoordinatorRequest {
            key: group.to_owned(),
            coordinator_keys: vec![group.to_owned()],
            ..Default::default()
        };
        let answer = connection.call(&request, self.request_limit()).await?;
        let found = answer
            .coordinators
            .into_iter()
            .find(|found| found.key == group);
        let found = found.unwrap_or(Coordinator {
            node_id: answer.node_id,
            host: answer.host,
            port: answer.port,
            error_code: answer.error_code,
            ..Default::default()
        });
        if !found.error_code.is_none() {
            return Err(Error::broker(
                ApiKey::FindCoordinator,
                found.error_code,
                format!("group {group}"),
            ));
        }
        if found.node_id < 0 || found.port <= 0 {
            let code = ErrorCode::CoordinatorNotAvailable;
            return Err(Error::broker(
                ApiKey::FindCoordinator,
                code,
                format!("group {group}"),
            ));
        }
        let address = metadata::address(&found.host, found.port);
        self.view.send_if_modified(|view| {
            let known = view
                .nodes
                .get(&found.node_id)
                .is_some_and(|node| node.address == address);
            if !known {
                let mut next = View::clone(view);
                next.nodes.insert(
                    found.node_id,
                    Node {
                        id: found.node_id,
                        address,
                        rack: None,
                    },
                );
                *view = Arc::new(next);
            }
            !known
        });
        Ok(found.node_id)
    }

    /// The limit of one ordinary request.
    pub(crate) fn request_limit(&self) -> Duration {
        Duration::from_millis(self.settings.request_timeout_ms.into())
    }

    /// Asks for metadata now: of these topics, or of all.
    pub(crate) async fn refresh(
        &self,
        topics: Option<BTreeSet<Topic>>,
    ) -> Result<Arc<View>, Error> {
        let connection = self.any_connection().await?;
        let version = connection.version_up_to::<MetadataRequest>(i16::MAX)?;
        // Before version 1 an empty list means all topics; nobody serves that any more.
        let request = MetadataRequest {
            topics: topics
                .as_ref()
                .map(|topics| topics.iter().map(ask_for).collect()),
            allow_auto_topic_creation: self.may_create_topics,
            ..Default::default()
        };
        let answer = connection
            .call_at(&request, version, self.request_limit())
            .await?;
        self.view.send_modify(|view| {
            let mut next = View::clone(view);
            next.learn(answer, topics.as_ref());
            *view = Arc::new(next);
        });
        Ok(self.view())
    }
}

fn ask_for(topic: &Topic) -> MetadataRequestTopic {
    MetadataRequestTopic {
        name: Some(topic.to_string()),
        ..Default::default()
    }
}

/// Of two failures the one that says more: what answers wrongly is worth more than what does not answer.
fn worse(a: Error, b: Error) -> Error {
    match (&a, &b) {
        (Error::Peer { .. } | Error::Config(_), _) => a,
        _ => b,
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refreshes when somebody wants it or what is known is old; not more often than `retry.backoff.ms`, but for new interest.
async fn keep(cluster: Weak<Cluster>) {
    let Some(settings) = cluster.upgrade().map(|cluster| cluster.settings.clone()) else {
        return;
    };
    let oldest = Duration::from_millis(settings.metadata_max_age_ms.max(1).into());
    let mut backoff = Backoff::new(settings.retry_backoff_ms, settings.retry_backoff_max_ms);
    let mut last = Instant::now();
    let mut covered = 0;
    loop {
        if !wanted(&cluster, last + oldest).await {
            return;
        }
        let Some(cluster) = cluster.upgrade() else {
            return;
        };
        let interest = lock(&cluster.interest).clone();
        if interest.from_serial <= covered {
            tokio::time::sleep_until(
                last + Duration::from_millis(settings.retry_backoff_ms.into()),
            )
            .await;
        }
        let topics = (!interest.all).then_some(interest.topics);
        match cluster.refresh(topics).await {
            Ok(view) => {
                covered = view.serial;
                backoff.reset();
                cluster
                    .trouble
                    .send_if_modified(|trouble| trouble.take().is_some());
            }
            Err(error) => {
                if backoff.failures() == 3 {
                    tracing::warn!("no metadata: {error}; trying again");
                } else {
                    tracing::debug!("metadata: {error}");
                }
                cluster.trouble.send_replace(Some(error));
                cluster.want_refresh();
                tokio::time::sleep(backoff.next()).await;
            }
        }
        last = Instant::now();
    }
}

/// Waits until a refresh is wanted or due; false when nobody needs the cluster any more.
async fn wanted(cluster: &Weak<Cluster>, due: Instant) -> bool {
    loop {
        // Holding the cluster for a second at most lets it end.
        let Some(cluster) = cluster.upgrade() else {
            return false;
        };
        let soon = Instant::now() + Duration::from_secs(1);
        tokio::select! {
            () = cluster.wanted.notified() => return true,
            () = tokio::time::sleep_until(due.min(soon)) => {
                if Instant::now() >= due {
                    return true;
                }
            }
        }
    }
}
