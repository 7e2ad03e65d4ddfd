//! One connection to one broker: requests go out in order and may be under way together; answers come back in that order.
//!
//! ```text
//!   start(request) ─▶ queue ─▶ writer ─▶ TCP ─▶ reader ─▶ the oldest request's answer
//! ```
//!
//! The connection opens with ApiVersions. Whatever is wrong afterwards (a broken frame, an answer that nobody asked for, silence)
//! ends it, and all requests under way fail with the reason.

use crate::connect::{Connector, Halves};
use crate::error::Error;
use crate::handshake;
use crate::settings::Settings;
use crate::task::spawn_watched;
use bytes::{Bytes, BytesMut};
use kohort_wire::api::ApiRequest;
use kohort_wire::{ApiKey, frame};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};

/// The first and the last version of each API that a broker serves.
pub(crate) type Versions = BTreeMap<ApiKey, (i16, i16)>;

/// Larger answers than this are taken for garbage. A JoinGroup answer of a huge group has 150 MB.
const LARGEST_ANSWER: usize = 1 << 29;
/// How far the buffer grows ahead of what has arrived.
const READ_AHEAD: usize = 256 * 1024;
/// The first correlation id reads as two line ends, so that an HTTP server answers the first request at once instead of waiting
/// for the rest of a line: that is how it is told from a slow broker.
const FIRST_CORRELATION_ID: i32 = 0x0d0a_0d0a;

struct Outgoing {
    frame: Bytes,
    correlation_id: i32,
    answer: Option<oneshot::Sender<Bytes>>,
}

type InFlight = Arc<Mutex<VecDeque<(i32, oneshot::Sender<Bytes>)>>>;

/// An open connection. Dropping the last handle closes it.
#[derive(Debug)]
pub(crate) struct Connection {
    address: Arc<str>,
    client_id: String,
    versions: Versions,
    correlation_id: AtomicI32,
    queue: mpsc::UnboundedSender<Outgoing>,
    fate: watch::Sender<Option<Error>>,
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "request {}", self.correlation_id)
    }
}

/// A request that is under way.
pub(crate) struct Answer<R> {
    connection: Arc<Connection>,
    version: i16,
    frame: oneshot::Receiver<Bytes>,
    of: PhantomData<fn() -> R>,
}

impl Connection {
    /// Connects to `host:port` and asks what is served there.
    pub(crate) async fn open(
        address: &str,
        by: &Connector,
        settings: &Settings,
    ) -> Result<Arc<Self>, Error> {
        let limit = Duration::from_millis(settings.connection_setup_timeout_ms.into());
        let halves = tokio::time::timeout(limit, handshake::connect(address, by))
            .await
            .map_err(|_| {
                Error::connection(
                    address,
                    format!("no connection within {} ms: is the address right, and does a firewall let it through?", limit.as_millis()),
                )
            })??;
        let mut connection = Self::over(halves, address, &settings.client_id);
        let versions = handshake::negotiate(&connection, limit).await?;
        // Nobody else holds the connection yet.
        if let Some(connection) = Arc::get_mut(&mut connection) {
            connection.versions = versions;
        }
        Ok(connection)
    }

    fn over((read, write): Halves, address: &str, client_id: &str) -> Arc<Self> {
        let (queue, outgoing) = mpsc::unbounded_channel();
        let (fate, _) = watch::channel(None);
        let in_flight = InFlight::default();
        let address: Arc<str> = address.into();
        let writing = write_requests(
            write,
            outgoing,
            in_flight.clone(),
            fate.clone(),
            address.clone(),
        );
        let reading = read_answers(read, in_flight, fate.clone(), address.clone());
        let (writers, readers) = (fate.clone(), fate.clone());
        spawn_watched(writing, move |error| end(&writers, error));
        spawn_watched(reading, move |error| end(&readers, error));
        Arc::new(Self {
            address,
            client_id: client_id.to_owned(),
            versions: Versions::new(),
            correlation_id: AtomicI32::new(FIRST_CORRELATION_ID),
            queue,
            fate,
        })
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What the broker serves.
    pub(crate) fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Whether it has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.fate.borrow().is_some()
    }

    /// Ends it; requests under way fail with `reason`.
    pub(crate) fn close(&self, reason: Error) {
        end(&self.fate, reason);
    }

    /// The highest version of `R` that both sides know, at most `limit`.
    pub(crate) fn version_up_to<R: ApiRequest>(&self, limit: i16) -> Result<i16, Error> {
        let (low, high) = R::VERSIONS;
        let served = self.versions.get(&R::KEY).copied();
        match served {
            Some((first, last)) if first.max(low) <= last.min(high).min(limit) => {
                Ok(last.min(high).min(limit))
            }
            Some((first, last)) => Err(Error::Peer {
                address: self.address.to_string(),
                reason: format!(
                    "serves {} in versions {first} to {last}, here {low} to {} are known: broker and client are too far apart in age",
                    R::KEY.name(),
                    high.min(limit),
                ),
            }),
            None => Err(Error::Peer {
                address: self.address.to_string(),
                reason: format!("does not serve {}", R::KEY.name()),
            }),
        }
    }

    /// Sends a request and waits for its answer; silence for longer than `limit` ends the connection.
    pub(crate) async fn call<R: ApiRequest>(
        self: &Arc<Self>,
        request: &R,
        limit: Duration,
    ) -> Result<R::Response, Error> {
        let version = self.version_up_to::<R>(i16::MAX)?;
        self.call_at(request, version, limit).await
    }

    /// The same in a given version.
    pub(crate) async fn call_at<R: ApiRequest>(
        self: &Arc<Self>,
        request: &R,
        version: i16,
        limit: Duration,
    ) -> Result<R::Response, Error> {
        let answer = self.start(request, version)?;
        if let Ok(outcome) = tokio::time::timeout(limit, answer.wait()).await {
            return outcome;
        }
        let reason = format!(
            "{} was not answered within {} ms",
            R::KEY.name(),
            limit.as_millis()
        );
        let error = Error::connection(&self.address, reason);
        self.close(error.clone());
        Err(error)
    }

    /// Queues a request: those of one connection go out, and are answered, in the order of these calls.
    pub(crate) fn start<R: ApiRequest>(
        self: &Arc<Self>,
        request: &R,
        version: i16,
    ) -> Result<Answer<R>, Error> {
        let (sender, frame) = oneshot::channel();
        self.send(request, version, Some(sender))?;
        Ok(Answer {
            connection: self.clone(),
            version,
            frame,
            of: PhantomData,
        })
    }

    /// Queues a request that the broker does not answer (Produce with acks=0).
    pub(crate) fn send_only<R: ApiRequest>(&self, request: &R, version: i16) -> Result<(), Error> {
        self.send(request, version, None)
    }

    fn send<R: ApiRequest>(
        &self,
        request: &R,
        version: i16,
        answer: Option<oneshot::Sender<Bytes>>,
    ) -> Result<(), Error> {
        let correlation_id = self.correlation_id.fetch_add(1, Ordering::Relaxed);
        let frame = frame::request(request, version, correlation_id, Some(&self.client_id))
            .map_err(|error| Error::Config(format!("{}: {error}", R::KEY.name())))?;
        let outgoing = Outgoing {
            frame,
            correlation_id,
            answer,
        };
        self.queue.send(outgoing).map_err(|_| self.ended())
    }

    fn ended(&self) -> Error {
        let known = self.fate.borrow().clone();
        known.unwrap_or_else(|| Error::connection(&self.address, "the connection is closed"))
    }
}

impl<R: ApiRequest> Answer<R> {
    /// Waits for it.
    pub(crate) async fn wait(self) -> Result<R::Response, Error> {
        let frame = self.frame().await?;
        Ok(frame.1)
    }

    async fn frame(self) -> Result<(i32, R::Response), Error> {
        let connection = self.connection;
        let frame = self.frame.await.map_err(|_| connection.ended())?;
        frame::read_response::<R>(frame, self.version).map_err(|error| {
            let error = Error::unreadable(&connection.address, R::KEY, self.version, &error);
            connection.close(error.clone());
            error
        })
    }

    /// Waits for the whole frame as it came.
    pub(crate) async fn raw(self) -> Result<Bytes, Error> {
        self.frame.await.map_err(|_| self.connection.ended())
    }
}

fn end(fate: &watch::Sender<Option<Error>>, reason: Error) {
    fate.send_if_modified(|known| {
        let first = known.is_none();
        known.get_or_insert(reason);
        first
    });
}

async fn ended(mut fate: watch::Receiver<Option<Error>>) {
    let _ = fate.wait_for(Option::is_some).await;
}

async fn write_requests(
    mut to: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::UnboundedReceiver<Outgoing>,
    in_flight: InFlight,
    fate: watch::Sender<Option<Error>>,
    address: Arc<str>,
) {
    let writing = async {
        while let Some(request) = outgoing.recv().await {
            if let Some(answer) = request.answer {
                let mut waiting = in_flight.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.push_back((request.correlation_id, answer));
            }
            if let Err(error) = to.write_all(&request.frame).await {
                return Error::connection(&address, format!("writing failed: {error}"));
            }
        }
        Error::Closed
    };
    let reason = tokio::select! {
        reason = writing => reason,
        () = ended(fate.subscribe()) => Error::Closed,
    };
    end(&fate, reason);
}

async fn read_answers(
    mut from: impl AsyncRead + Unpin,
    in_flight: InFlight,
    fate: watch::Sender<Option<Error>>,
    address: Arc<str>,
) {
    let reading = async {
        let mut buffer = BytesMut::with_capacity(16 * 1024);
        let mut first = true;
        loop {
            match from.read_buf(&mut buffer).await {
                Ok(0) => return closed(&address, first, &buffer),
                Ok(_) => {}
                Err(_) if first => return closed(&address, true, &buffer),
                Err(error) => {
                    return Error::connection(&address, format!("reading failed: {error}"));
                }
            }
            if first && let Some(stranger) = handshake::recognise(&address, &buffer) {
                return stranger;
            }
            loop {
                match frame::split(&mut buffer, LARGEST_ANSWER) {
                    Ok(Some(answer)) => {
                        first = false;
                        if let Err(error) = hand_over(&in_flight, answer, &address) {
                            return error;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        return Error::Peer {
                            address: address.to_string(),
                            reason: format!(
                                "expected a Kafka broker, but what came is none's answer ({error}): correct host and port"
                            ),
                        };
                    }
                }
            }
            make_room(&mut buffer);
        }
    };
    let reason = tokio::select! {
        reason = reading => reason,
        () = ended(fate.subscribe()) => Error::Closed,
    };
    end(&fate, reason);
    in_flight
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

fn closed(address: &str, first: bool, rest: &[u8]) -> Error {
    if first {
        return Error::connection(
            address,
            "the connection was closed before the first answer: expected a plaintext listener of a Kafka broker; it may be starting, or be a TLS port",
        );
    }
    let inside = if rest.is_empty() {
        ""
    } else {
        " in the middle of an answer"
    };
    Error::connection(address, format!("the broker closed the connection{inside}"))
}

/// Room for what is announced, but never far ahead of what has arrived.
fn make_room(buffer: &mut BytesMut) {
    let announced = buffer
        .first_chunk::<4>()
        .map_or(0, |size| u32::from_be_bytes(*size) as usize);
    let missing = (announced + 4).saturating_sub(buffer.len());
    buffer.reserve(missing.clamp(4096, READ_AHEAD.max(buffer.len())));
}

fn hand_over(in_flight: &InFlight, answer: Bytes, address: &str) -> Result<(), Error> {
    let strange = |reason: String| Error::Peer {
        address: address.to_owned(),
        reason,
    };
    let Some(id) = answer.first_chunk::<4>() else {
        return Err(strange(format!(
            "an answer of {} bytes is too short",
            answer.len()
        )));
    };
    let id = i32::from_be_bytes(*id);
    let oldest = in_flight
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .pop_front();
    match oldest {
        Some((expected, waiting)) if expected == id => {
            // The one who asked may have given up meanwhile.
            let _ = waiting.send(answer);
            Ok(())
        }
        Some((expected, _)) => Err(strange(format!(
            "expected the answer to request {expected}, got one to {id}"
        ))),
        None => Err(strange(format!(
            "an answer to request {id} came, which was not sent"
        ))),
    }
}
