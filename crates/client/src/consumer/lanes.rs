//! The way to the coordinator: two connections, opened in advance, so that heartbeats and commits do not wait behind a join.

use crate::cluster::{Backoff, Cluster, lock};
use crate::connection::{Connection, Versions};
use crate::error::Error;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_group::member::{Lane, SendFailure, Token};
use kohort_wire::ErrorCode;
use kohort_wire::api::ApiRequest;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What comes back from the coordinator, or from looking for it.
#[derive(Debug)]
pub(super) enum Arrival {
    /// What became of a request, of the lane's `era`.
    Answer {
        lane: Lane,
        era: u64,
        token: Token,
        outcome: Result<GroupResponse, SendFailure>,
    },
    /// What the search found.
    Coordinator(Result<(i32, Versions), ErrorCode>),
}

#[derive(Debug)]
struct Request {
    token: Token,
    version: i16,
    request: GroupRequest,
}

/// A lane's connection and the pauses between attempts to open it; both outlive what is in flight.
#[derive(Debug)]
struct Link {
    connection: Option<Arc<Connection>>,
    node: i32,
    backoff: Backoff,
    not_before: Option<Instant>,
}

#[derive(Debug)]
struct Open {
    node: i32,
    requests: mpsc::UnboundedSender<Request>,
    task: AbortHandle,
}

#[derive(Debug)]
pub(super) struct Lanes {
    cluster: Arc<Cluster>,
    group: String,
    arrivals: mpsc::UnboundedSender<Arrival>,
    links: BTreeMap<Lane, Arc<tokio::sync::Mutex<Link>>>,
    /// The connection in use, to close it without waiting for its lane.
    current: BTreeMap<Lane, Arc<Mutex<Option<Arc<Connection>>>>>,
    open: BTreeMap<Lane, Open>,
    eras: BTreeMap<Lane, u64>,
    node: Option<i32>,
}

const LANES: [Lane; 2] = [Lane::Rounds, Lane::Control];

impl Lanes {
    pub(super) fn new(
        cluster: Arc<Cluster>,
        group: &str,
        arrivals: mpsc::UnboundedSender<Arrival>,
    ) -> Self {
        let settings = cluster.settings.clone();
        let link = || Link {
            connection: None,
            node: -1,
            backoff: Backoff::new(
                settings.reconnect_backoff_ms,
                settings.reconnect_backoff_max_ms,
            ),
            not_before: None,
        };
        Self {
            links: LANES
                .map(|lane| (lane, Arc::new(tokio::sync::Mutex::new(link()))))
                .into(),
            current: LANES.map(|lane| (lane, Arc::default())).into(),
            open: BTreeMap::new(),
            eras: LANES.map(|lane| (lane, 0)).into(),
            node: None,
            cluster,
            group: group.to_owned(),
            arrivals,
        }
    }

    /// Looks for the coordinator and opens both lanes to it.
    pub(super) fn search(&self) {
        let (cluster, group, arrivals) = (
            self.cluster.clone(),
            self.group.clone(),
            self.arrivals.clone(),
        );
        let ways = LANES.map(|lane| (self.links[&lane].clone(), self.current[&lane].clone()));
        tokio::spawn(async move {
            let found = async {
                let node = cluster.find_coordinator(&group).await?;
                let [rounds, control] = &ways;
                let (rounds, control) = tokio::join!(
                    connect(&cluster, node, rounds),
                    connect(&cluster, node, control)
                );
                rounds?;
                Ok::<_, Error>((node, control?.versions().clone()))
            };
            let found = found.await.map_err(|error| {
                tracing::debug!("looking for the coordinator of {group}: {error}");
                error.code().unwrap_or(ErrorCode::NetworkException)
            });
            // The driver has ended if nobody listens.
            let _ = arrivals.send(Arrival::Coordinator(found));
        });
    }

    /// Requests go to this broker from now on.
    pub(super) fn found(&mut self, node: i32) {
        self.node = Some(node);
    }

    /// Whether an answer belongs to what is in flight now.
    pub(super) fn is_current(&self, lane: Lane, era: u64) -> bool {
        self.eras[&lane] == era
    }

    /// Sends a request over a lane, after those that were sent over it before.
    pub(super) fn send(&mut self, lane: Lane, token: Token, version: i16, request: GroupRequest) {
        let Some(node) = self.node else {
            self.fail(lane, token);
            return;
        };
        if self.open.get(&lane).is_none_or(|open| open.node != node) {
            let opened = self.spawn(lane, node);
            self.open.insert(lane, opened);
        }
        let request = Request {
            token,
            version,
            request,
        };
        if self.open[&lane].requests.send(request).is_err() {
            self.fail(lane, token);
        }
    }

    fn fail(&self, lane: Lane, token: Token) {
        let _ = self.arrivals.send(Arrival::Answer {
            lane,
            era: self.eras[&lane],
            token,
            outcome: Err(SendFailure::Disconnected),
        });
    }

    /// Closes a lane and forgets what is in flight on it.
    pub(super) fn disconnect(&mut self, lane: Lane) {
        if let Some(era) = self.eras.get_mut(&lane) {
            *era += 1;
        }
        if let Some(open) = self.open.remove(&lane) {
            open.task.abort();
        }
        if let Some(connection) = lock(&self.current[&lane]).take() {
            let reason = Error::connection(connection.address(), "given up, to start afresh");
            connection.close(reason);
        }
    }

    fn spawn(&self, lane: Lane, node: i32) -> Open {
        let (requests, mut queue) = mpsc::unbounded_channel::<Request>();
        let way = (self.links[&lane].clone(), self.current[&lane].clone());
        let (cluster, arrivals, era) = (
            self.cluster.clone(),
            self.arrivals.clone(),
            self.eras[&lane],
        );
        let task = tokio::spawn(async move {
            while let Some(request) = queue.recv().await {
                let token = request.token;
                let answer = match connect(&cluster, node, &way).await {
                    Ok(connection) => start(&connection, &request.request, request.version),
                    Err(error) => {
                        tracing::debug!("{lane:?} lane to broker {node}: {error}");
                        Err(SendFailure::Disconnected)
                    }
                };
                let arrivals = arrivals.clone();
                let arrive = move |outcome| {
                    let _ = arrivals.send(Arrival::Answer {
                        lane,
                        era,
                        token,
                        outcome,
                    });
                };
                match answer {
                    Ok(answer) => drop(tokio::spawn(async move { arrive(answer.await) })),
                    Err(failure) => arrive(Err(failure)),
                }
            }
        });
        Open {
            node,
            requests,
            task: task.abort_handle(),
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        for open in self.open.values() {
            open.task.abort();
        }
    }
}

type Way = (
    Arc<tokio::sync::Mutex<Link>>,
    Arc<Mutex<Option<Arc<Connection>>>>,
);

/// The lane's connection to a broker: the open one, or a new one after the pause that earlier failures demand.
async fn connect(
    cluster: &Cluster,
    node: i32,
    (link, current): &Way,
) -> Result<Arc<Connection>, Error> {
    let mut link = link.lock().await;
    if let Some(open) = link
        .connection
        .as_ref()
        .filter(|open| link.node == node && !open.is_closed())
    {
        return Ok(open.clone());
    }
    if link.node != node {
        link.backoff.reset();
        link.not_before = None;
    }
    link.node = node;
    link.connection = None;
    if let Some(moment) = link.not_before {
        tokio::time::sleep_until(moment).await;
    }
    match cluster.open(node).await {
        Ok(connection) => {
            link.backoff.reset();
            // A peer that takes connections only to break them must not be asked without pause.
            link.not_before = Some(Instant::now() + link.backoff.first());
            link.connection = Some(connection.clone());
            *lock(current) = Some(connection.clone());
            Ok(connection)
        }
        Err(error) => {
            link.not_before = Some(Instant::now() + link.backoff.next());
            Err(error)
        }
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<GroupResponse, SendFailure>> + Send>>;

/// Queues a request on a connection; the answer is awaited apart.
fn start(
    connection: &Arc<Connection>,
    request: &GroupRequest,
    version: i16,
) -> Result<Answering, SendFailure> {
    match request {
        GroupRequest::JoinGroup(it) => send(connection, it, version, GroupResponse::JoinGroup),
        GroupRequest::SyncGroup(it) => send(connection, it, version, GroupResponse::SyncGroup),
        GroupRequest::Heartbeat(it) => send(connection, it, version, GroupResponse::Heartbeat),
        GroupRequest::LeaveGroup(it) => send(connection, it, version, GroupResponse::LeaveGroup),
        GroupRequest::OffsetCommit(it) => {
            send(connection, it, version, GroupResponse::OffsetCommit)
        }
        GroupRequest::OffsetFetch(it) => send(connection, it, version, GroupResponse::OffsetFetch),
        GroupRequest::DescribeGroups(it) => {
            send(connection, it, version, GroupResponse::DescribeGroups)
        }
        GroupRequest::ListGroups(it) => send(connection, it, version, GroupResponse::ListGroups),
        GroupRequest::DeleteGroups(it) => {
            send(connection, it, version, GroupResponse::DeleteGroups)
        }
        GroupRequest::OffsetDelete(it) => {
            send(connection, it, version, GroupResponse::OffsetDelete)
        }
    }
}

fn send<R: ApiRequest + 'static>(
    connection: &Arc<Connection>,
    request: &R,
    version: i16,
    wrap: fn(R::Response) -> GroupResponse,
) -> Result<Answering, SendFailure>
where
    R::Response: Send,
{
    let answer = connection.start(request, version).map_err(|error| {
        tracing::debug!("{}: {error}", R::KEY.name());
        match error {
            Error::Config(_) => SendFailure::Unsupported,
            _ => SendFailure::Disconnected,
        }
    })?;
    Ok(Box::pin(async move {
        answer.wait().await.map(wrap).map_err(|error| {
            tracing::debug!("{}: {error}", R::KEY.name());
            SendFailure::Disconnected
        })
    }))
}
