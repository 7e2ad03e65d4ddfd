//! How connections to brokers are opened: over TCP, unless the application brings a way of its own.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A way of one's own to reach brokers: TLS, a proxy, a simulated network.
///
/// ```
/// use kohort::Connect;
/// use std::io;
/// use tokio::net::TcpStream;
///
/// /// All brokers are behind one gate.
/// struct Gate;
///
/// impl Connect for Gate {
///     type Stream = TcpStream;
///
///     async fn connect(&self, address: &str) -> io::Result<TcpStream> {
///         println!("to {address} by the gate");
///         TcpStream::connect("gate.example:9092").await
///     }
/// }
/// ```
pub trait Connect: Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Connects to `host:port`, as it stands in `bootstrap.servers` or in the cluster's metadata. It is given up after
    /// `socket.connection.setup.timeout.ms`.
    ///
    /// # Errors
    /// If nobody is reached there; the client tries again as it does with TCP.
    fn connect(&self, address: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// What is read from and what is written to.
pub(crate) type Halves = (
    Box<dyn AsyncRead + Send + Unpin>,
    Box<dyn AsyncWrite + Send + Unpin>,
);

trait Dial: Send + Sync {
    fn dial<'a>(&'a self, address: &'a str) -> Dialling<'a>;
}

type Dialling<'a> = Pin<Box<dyn Future<Output = io::Result<Halves>> + Send + 'a>>;

struct Tcp;

impl Dial for Tcp {
    fn dial<'a>(&'a self, address: &'a str) -> Dialling<'a> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            // Requests are written whole; waiting for more would only delay them.
            let _ = stream.set_nodelay(true);
            let (read, write) = stream.into_split();
            Ok((Box::new(read) as _, Box::new(write) as _))
        })
    }
}

struct Own<C>(C);

impl<C: Connect> Dial for Own<C> {
    fn dial<'a>(&'a self, address: &'a str) -> Dialling<'a> {
        Box::pin(async move {
            let (read, write) = tokio::io::split(self.0.connect(address).await?);
            Ok((Box::new(read) as _, Box::new(write) as _))
        })
    }
}

/// The way that a client uses: TCP by default.
#[derive(Clone)]
pub struct Connector(Arc<dyn Dial>);

impl Connector {
    /// This way.
    pub fn new(connect: impl Connect) -> Self {
        Self(Arc::new(Own(connect)))
    }

    pub(crate) async fn connect(&self, address: &str) -> io::Result<Halves> {
        self.0.dial(address).await
    }
}

impl Default for Connector {
    fn default() -> Self {
        Self(Arc::new(Tcp))
    }
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}
