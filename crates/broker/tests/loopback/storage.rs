//! What is kept in a data folder, and which folders are refused.

use crate::client::{Client, NOBODY, batch};
use kohort_broker::{Broker, BrokerError, Settings, StorageError};
use kohort_wire::ErrorCode;
use kohort_wire::messages::InitProducerIdRequest;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder that is removed in the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kohort-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) async fn start(folder: &Path) -> Broker {
    let settings = Settings::for_tests();
    Broker::builder()
        .settings(settings)
        .data(folder)
        .start()
        .await
        .unwrap()
}

/// The newest segment below a folder.
fn last_segment(folder: &Path) -> PathBuf {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "log") {
                found.push(path);
            }
        }
    }
    found.sort();
    found.pop().unwrap()
}

#[tokio::test]
async fn what_was_acknowledged_survives_the_broker() {
    let folder = Folder::new("survives");
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    let id = client.create("t", 2).await.topic_id;
    let producer = client
        .ask(4, &InitProducerIdRequest::default())
        .await
        .producer_id;
    let first = batch(2, 5, (producer, 0, 0), b"first");
    client.produce("t", 0, first.clone()).await;
    client.produce("t", 1, batch(1, 7, NOBODY, b"other")).await;
    let before = client.fetch("t", 0).await;
    // No shutdown: nothing is flushed, no goodbye is said.
    drop(broker);
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    assert_eq!(client.fetch("t", 0).await, before);
    assert_eq!(
        client.create("t", 2).await.error_code,
        ErrorCode::TopicAlreadyExists
    );
    // The producer is still known, and its id is not given out again.
    assert_eq!(client.produce("t", 0, first).await.base_offset, 0);
    let gap = client
        .produce("t", 0, batch(1, 0, (producer, 0, 5), b"x"))
        .await;
    assert_eq!(gap.error_code, ErrorCode::OutOfOrderSequenceNumber);
    assert!(
        client
            .ask(4, &InitProducerIdRequest::default())
            .await
            .producer_id
            > producer
    );
    assert_eq!(client.list_offset("t", 5).await.offset, 0);
    broker.shutdown().await;
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    assert_eq!(client.list_offset("t", -1).await.offset, 2);
    assert_eq!(client.topic_id("t").await, id);
}

#[tokio::test]
async fn a_torn_tail_is_cut_off() {
    let folder = Folder::new("torn");
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    for _ in 0..3 {
        client
            .produce("t", 0, batch(1, 0, NOBODY, b"0123456789"))
            .await;
    }
    drop(broker);
    let segment = last_segment(&folder.0.join("topics/t"));
    let bytes = fs::read(&segment).unwrap();
    // A batch that was half written, and one whose bytes did not all arrive.
    for torn in [
        bytes[..bytes.len() - 3].to_vec(),
        [&bytes[..bytes.len() - 1], b"!"].concat(),
    ] {
        fs::write(&segment, torn).unwrap();
        let broker = start(&folder.0).await;
        let mut client = Client::connect(broker.address()).await;
        assert_eq!(client.list_offset("t", -1).await.offset, 2);
        assert_eq!(
            client
                .produce("t", 0, batch(1, 0, NOBODY, b"0123456789"))
                .await
                .base_offset,
            2
        );
        drop(broker);
    }
}

#[tokio::test]
async fn a_deleted_topic_leaves_no_files() {
    let folder = Folder::new("deleted");
    let broker = start(&folder.0).await;
    let mut client = Client::connect(broker.address()).await;
    client.create("t", 1).await;
    client.produce("t", 0, batch(1, 0, NOBODY, b"x")).await;
    assert!(folder.0.join("topics/t").exists());
    client.delete("t").await;
    assert!(!folder.0.join("topics/t").exists());
    client.create("t", 1).await;
    assert_eq!(client.list_offset("t", -1).await.offset, 0);
}

#[tokio::test]
async fn a_folder_in_use_is_refused() {
    let folder = Folder::new("in-use");
    let _broker = start(&folder.0).await;
    let Err(error) = Broker::builder().data(&folder.0).start().await else {
        panic!("two brokers in one folder")
    };
    assert!(matches!(
        error,
        BrokerError::Storage(StorageError::InUse { .. })
    ));
    assert!(
        error.to_string().contains(&std::process::id().to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn foreign_and_newer_folders_are_refused() {
    let folder = Folder::new("foreign");
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.0.join("holiday.jpg"), "x").unwrap();
    let refused = async || match Broker::builder().data(&folder.0).start().await {
        Err(BrokerError::Storage(error)) => error,
        _ => panic!("not refused"),
    };
    assert!(matches!(refused().await, StorageError::Foreign { .. }));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    fs::write(folder.0.join("format"), "kohort data 2\n").unwrap();
    assert!(matches!(
        refused().await,
        StorageError::NewerFormat { found: 2, .. }
    ));
    fs::write(folder.0.join("format"), "kohort data 1\n").unwrap();
    fs::write(folder.0.join("catalog.json"), "{").unwrap();
    assert!(matches!(refused().await, StorageError::Catalog { .. }));
}
