//! Alone in its process, because it counts what the process has open.

#![allow(clippy::unwrap_used)]

#[path = "loopback/client.rs"]
mod client;

use client::{Client, fetch_request, open_files};
use kohort_broker::Broker;

/// franz-go#1037: after a shutdown no task, socket or file remains.
#[tokio::test]
async fn starting_and_stopping_leaves_nothing_behind() {
    let once = async || {
        let broker = Broker::start().await.unwrap();
        let mut client = Client::connect(broker.address()).await;
        client.create("t", 1).await;
        client.send(12, &fetch_request("t", 0, 60_000, 1)).await;
        broker.shutdown().await;
        assert!(
            client.frame().await.is_none(),
            "a parked fetch outlived its broker"
        );
    };
    once().await;
    let before = open_files();
    for _ in 0..100 {
        once().await;
    }
    assert_eq!(open_files(), before);
}
