//! Bad input: who answers there, or does not, and settings that make no sense.

use super::*;
use kohort::{Consumer, Error};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Somebody who reads what comes and answers this.
async fn stranger(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 1024];
            let _ = socket.read(&mut buffer).await;
            let _ = socket.write_all(answer).await;
            if answer.is_empty() {
                // Silent, but there.
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
        }
    });
    address
}

async fn failure(address: &str) -> Error {
    let mut settings = settings(address);
    settings.set("bootstrap.timeout.ms", "200").unwrap();
    settings
        .set("socket.connection.setup.timeout.ms", "300")
        .unwrap();
    soon("an error", Admin::with(settings)).await.unwrap_err()
}

#[tokio::test]
async fn who_is_no_broker_is_named() {
    let http = stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let error = failure(&http).await;
    assert!(
        matches!(error, Error::Peer { .. }) && error.to_string().contains("HTTP"),
        "{error}"
    );
    let tls = stranger(&[0x15, 3, 1, 0, 2, 2, 70]).await;
    let error = failure(&tls).await;
    assert!(error.to_string().contains("TLS"), "{error}");
    let garbage = stranger(&[0xff; 64]).await;
    let error = failure(&garbage).await;
    assert!(matches!(error, Error::Peer { .. }), "{error}");
}

#[tokio::test]
async fn who_is_silent_or_absent_is_given_up() {
    let silent = stranger(b"").await;
    let error = failure(&silent).await;
    assert!(error.to_string().contains("did not answer"), "{error}");
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let error = failure(&address).await;
    assert!(error.to_string().contains("nobody listens"), "{error}");
}

#[tokio::test]
async fn a_broker_that_starts_late_is_waited_for() {
    let reserved = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = reserved.local_addr().unwrap().to_string();
    drop(reserved);
    let settings = settings(&address);
    let connecting = tokio::spawn(async move { Admin::with(settings).await.map(|_| ()) });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let _broker = Broker::builder().listen(address).start().await.unwrap();
    soon("a connection", connecting).await.unwrap().unwrap();
}

/// Dekaf#329: among them an assignor that there is not.
#[tokio::test]
async fn settings_that_make_no_sense_are_refused_together() {
    let error = Consumer::builder()
        .group("g")
        .topics(["t"])
        .set("session.timeout.ms", "many")
        .set("acks", "most")
        .build()
        .await
        .unwrap_err();
    assert_eq!(error.to_string().lines().count(), 2, "{error}");
    for (builder, hint) in [
        (Consumer::builder().topics(["t"]), "group.id"),
        (Consumer::builder().group("g"), "nothing to read"),
        (
            Consumer::builder().group("g").pattern("a("),
            "regular expression",
        ),
        (
            Consumer::builder()
                .group("g")
                .topics(["t"])
                .set("partition.assignment.strategy", "best"),
            "cooperative-sticky",
        ),
    ] {
        let error = builder.build().await.unwrap_err();
        assert!(matches!(error, Error::Config(_)), "{error}");
        assert!(error.to_string().contains(hint), "{error}");
    }
}
