//! Where connections come from.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};

/// Where a broker's connections come from: TCP, or something of one's own, such as TLS, a simulated network, or pipes in memory.
pub trait Accept: Send + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Waits for the next connection. It is called again at once when it was cancelled, and 100 ms after it failed.
    ///
    /// # Errors
    /// If none can be accepted now; the broker goes on.
    fn accept(&mut self) -> impl Future<Output = io::Result<Accepted<Self::Stream>>> + Send;

    /// Where it listens: what [`Broker::address`](crate::Broker::address) says.
    ///
    /// # Errors
    /// If it does not know; the broker does not start.
    fn address(&self) -> io::Result<SocketAddr>;
}

/// A connection that has been accepted.
#[derive(Debug)]
pub struct Accepted<Stream> {
    /// The connection.
    pub stream: Stream,
    /// Who is at the other end.
    pub peer: SocketAddr,
    /// Where the other end has reached the broker, which is what metadata tells it to come back to.
    pub local: SocketAddr,
}

impl Accept for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<Accepted<TcpStream>> {
        let (stream, peer) = TcpListener::accept(self).await?;
        stream.set_nodelay(true)?;
        let local = stream.local_addr()?;
        Ok(Accepted {
            stream,
            peer,
            local,
        })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}
