//! Accepts connections; one task for each. Requests of a connection are served and answered in order, so one that is parked
//! (a join, a long poll) holds up only its own connection.

use crate::accept::{Accept, Accepted};
use crate::node::Node;
use crate::router::{self, Answer};
use bytes::BytesMut;
use kohort_group::coordinator::ConnectionId;
use kohort_wire::frame;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How many bytes of further requests are read while one is being served.
const READ_AHEAD: usize = 64 * 1_024;

/// Accepts until told to stop, then closes all connections.
pub(crate) async fn run(
    node: Arc<Node>,
    mut listener: impl Accept,
    mut stop: tokio::sync::watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut next = 0;
    loop {
        tokio::select! {
            biased;
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(accepted) => {
                    let peer = accepted.peer;
                    if connections.len() >= node.settings.max_connections as usize {
                        tracing::warn!("refused a connection from {peer}: max.connections is reached");
                        continue;
                    }
                    next += 1;
                    connections.spawn(serve(Arc::clone(&node), accepted, ConnectionId(next)));
                }
                Err(error) => {
                    // Out of file descriptors, usually: give connections time to end.
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Why a connection ended other than by its peer's wish.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Refused(String),
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    node: Arc<Node>,
    accepted: Accepted<S>,
    id: ConnectionId,
) {
    let peer = accepted.peer;
    let mut connection = Connection {
        node: &node,
        stream: accepted.stream,
        buffer: BytesMut::new(),
        session: router::Session::new(id, peer, accepted.local),
    };
    match connection.run().await {
        Ok(()) => tracing::debug!("connection from {peer} closed"),
        Err(Ended::Io(error)) => tracing::debug!("connection from {peer} broke: {error}"),
        Err(Ended::Refused(why)) => tracing::warn!("closed the connection from {peer}: {why}"),
    }
    let session = connection.session;
    node.groups.disconnected(session.id, &session.coordinators);
}

struct Connection<'a, S> {
    node: &'a Arc<Node>,
    stream: S,
    buffer: BytesMut,
    session: router::Session,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<'_, S> {
    async fn run(&mut self) -> Result<(), Ended> {
        let limit = self.node.settings.socket_request_max_bytes as usize;
        let idle = Duration::from_millis(self.node.settings.connections_max_idle_ms as u64);
        loop {
            while let Some(request) =
                frame::split(&mut self.buffer, limit).map_err(|_| self.not_kafka(limit))?
            {
                match self.answer(request).await? {
                    Answer::Send(answer) => {
                        let written = timeout(idle, self.stream.write_all(&answer)).await;
                        written
                            .map_err(|_| Ended::Refused("it does not read its answers".into()))??;
                    }
                    Answer::Nothing => {}
                    Answer::Close => return Ok(()),
                }
            }
            if self.buffer.is_empty() {
                // A large request must not keep its memory while the connection is idle.
                self.buffer = BytesMut::new();
            }
            self.make_room();
            let read = timeout(idle, self.stream.read_buf(&mut self.buffer)).await;
            // Silence for too long ends a connection as its peer's goodbye does.
            let Ok(read) = read else { return Ok(()) };
            if read? == 0 {
                return Ok(());
            }
        }
    }

    /// Room for what is missing of the next request, but no more than has arrived so far: a length is easily claimed.
    fn make_room(&mut self) {
        let missing = self.buffer.first_chunk::<4>().map_or(0, |size| {
            (i32::from_be_bytes(*size).max(0) as usize + 4).saturating_sub(self.buffer.len())
        });
        self.buffer.reserve(missing.min(self.buffer.len()).max(512));
    }

    /// Serves one request, and notices meanwhile when the peer goes away.
    async fn answer(&mut self, request: bytes::Bytes) -> Result<Answer, Ended> {
        let answer = router::answer(self.node, &mut self.session, request);
        tokio::pin!(answer);
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                read = self.stream.read_buf(&mut self.buffer), if self.buffer.len() < READ_AHEAD => {
                    if read? == 0 {
                        return Ok(Answer::Close);
                    }
                }
            }
        }
    }

    /// What to say of bytes that are no frame.
    fn not_kafka(&self, limit: usize) -> Ended {
        let guess = match self.buffer.first_chunk::<4>() {
            Some(b"GET " | b"POST" | b"PUT " | b"HEAD") => "; it looks like HTTP",
            Some([0x16, 3, ..]) => "; it looks like TLS, which is not served here",
            _ => "",
        };
        Ended::Refused(format!(
            "expected a Kafka request of at most {limit} bytes (socket.request.max.bytes), got something else{guess}"
        ))
    }
}

#[cfg(test)]
mod tests {
    /// Thousands of members hold a connection each, most of them at rest.
    #[test]
    fn a_connection_at_rest_is_small() {
        fn result_size<A, B, C, R>(_: impl Fn(A, B, C) -> R) -> usize {
            size_of::<R>()
        }
        let size = result_size(super::serve::<tokio::net::TcpStream>);
        assert!(size <= 2_048, "{size} bytes");
    }
}
