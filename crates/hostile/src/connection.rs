//! The whole broker behind a connection: whatever comes, it answers or closes, and goes on serving others.

use kohort_broker::{Accept, Accepted, Broker, Settings};
use kohort_wire::frame;
use kohort_wire::messages::ApiVersionsRequest;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::mpsc;

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9092);

/// Pipes in memory.
struct Pipes(mpsc::UnboundedReceiver<DuplexStream>);

impl Accept for Pipes {
    type Stream = DuplexStream;

    async fn accept(&mut self) -> io::Result<Accepted<DuplexStream>> {
        match self.0.recv().await {
            Some(stream) => Ok(Accepted {
                stream,
                peer: HERE,
                local: HERE,
            }),
            None => std::future::pending().await,
        }
    }

    fn address(&self) -> io::Result<SocketAddr> {
        Ok(HERE)
    }
}

/// What a client sends over one connection.
pub(crate) fn connection(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap_or_else(|error| panic!("no runtime: {error}"));
    runtime.block_on(async {
        let (connect, accept) = mpsc::unbounded_channel();
        let broker = Broker::builder()
            .settings(Settings::for_tests())
            .start_on(Pipes(accept))
            .await
            .unwrap_or_else(|error| panic!("the broker does not start: {error}"));
        say(&connect, data).await;
        let asks = frame::request(&ApiVersionsRequest::default(), 0, 1, None)
            .unwrap_or_else(|error| panic!("{error}"));
        let answer = say(&connect, &asks).await;
        assert!(!answer.is_empty(), "the broker does not serve any more");
        broker.shutdown().await;
    });
}

/// Says it all, and gives what comes back.
async fn say(connect: &mpsc::UnboundedSender<DuplexStream>, data: &[u8]) -> Vec<u8> {
    let (ours, theirs) = duplex(64 * 1_024);
    let _ = connect.send(theirs);
    let (mut reads, mut writes) = tokio::io::split(ours);
    let mut answer = Vec::new();
    let talk = async {
        // The broker may close at the first word.
        let _ = writes.write_all(data).await;
        // Whoever waits for an answer does not hang up; a join that is parked is given up after a moment.
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let _ = writes.shutdown().await;
    };
    let (_, _) = tokio::join!(talk, reads.read_to_end(&mut answer));
    answer
}
