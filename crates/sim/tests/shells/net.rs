//! The simulated network for broker and client.

use kohort::{Connect, Connector};
use kohort_broker::{Accept, Accepted};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use turmoil::net::{TcpListener, TcpStream};

pub(crate) const BROKER: &str = "broker";
pub(crate) const BOOTSTRAP: &str = "broker:9092";

/// The listener of a broker that runs on the simulated host of this name.
pub(crate) struct Listener(TcpListener);

impl Listener {
    pub(crate) async fn bind() -> io::Result<Self> {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Ok(Self(TcpListener::bind((any, 9092)).await?))
    }
}

impl Accept for Listener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<Accepted<TcpStream>> {
        let (stream, peer) = self.0.accept().await?;
        let local = stream.local_addr()?;
        Ok(Accepted {
            stream,
            peer,
            local,
        })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::new(turmoil::lookup(BROKER), 9092))
    }
}

struct Dial;

impl Connect for Dial {
    type Stream = TcpStream;

    async fn connect(&self, address: &str) -> io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

pub(crate) fn connector() -> Connector {
    Connector::new(Dial)
}
