//! Starting, stopping, and what hostile peers can do.

use crate::client::Client;
use kohort_broker::{Broker, BrokerError};
use kohort_wire::messages::{ApiVersionsRequest, FetchRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_dropped_broker_stops() {
    let broker = Broker::start().await.unwrap();
    let address = broker.address();
    let mut client = Client::connect(address).await;
    client.ask(0, &ApiVersionsRequest::default()).await;
    drop(broker);
    assert!(client.frame().await.is_none());
    let again = Broker::builder().listen(address.to_string()).start().await;
    again.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_port_in_use_is_said_so() {
    let broker = Broker::start().await.unwrap();
    let second = Broker::builder().listen(broker.address().to_string());
    let Err(error) = second.start().await else {
        panic!("two brokers on one port")
    };
    assert!(matches!(error, BrokerError::PortInUse { .. }));
    assert!(Broker::builder().listen("nonsense").start().await.is_err());
}

#[tokio::test]
async fn hostile_bytes_end_their_own_connection_only() {
    let broker = Broker::start().await.unwrap();
    let mut bystander = Client::connect(broker.address()).await;
    let hostile: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &[0x16, 3, 1, 2, 0, 1, 0, 1],
        &[0xff; 64],
        &[0, 0, 0, 3, 1, 2, 3],
        // An API that does not exist.
        &[0, 0, 0, 10, 0x70, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff],
        // A version that is not served.
        &[0, 0, 0, 10, 0, 1, 0, 99, 0, 0, 0, 1, 0xff, 0xff],
        // A Metadata request that claims two billion topics.
        &[
            0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff,
        ],
        // A header that ends in the middle of its client id.
        &[0, 0, 0, 12, 0, 3, 0, 1, 0, 0, 0, 1, 0x7f, 0xff, 65, 65],
    ];
    for bytes in hostile {
        let mut client = Client::connect(broker.address()).await;
        let _ = client.stream.write_all(bytes).await;
        let mut rest = Vec::new();
        let _ = client.stream.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{bytes:?} was answered {rest:?}");
        bystander.ask(0, &ApiVersionsRequest::default()).await;
    }
}

#[tokio::test]
async fn a_large_claim_takes_no_memory_until_it_is_kept() {
    let broker = Broker::start().await.unwrap();
    let mut held = Vec::new();
    for _ in 0..200 {
        let mut client = Client::connect(broker.address()).await;
        client
            .stream
            .write_all(&104_857_600_i32.to_be_bytes())
            .await
            .unwrap();
        held.push(client);
    }
    let mut client = Client::connect(broker.address()).await;
    client.ask(0, &ApiVersionsRequest::default()).await;
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident: usize = status.split(' ').nth(1).unwrap().parse().unwrap();
    assert!(resident * 4_096 < 500_000_000, "{resident} pages");
    let broken = FetchRequest {
        max_bytes: i32::MIN,
        min_bytes: i32::MIN,
        max_wait_ms: i32::MIN,
        ..Default::default()
    };
    client.ask(12, &broken).await;
}
