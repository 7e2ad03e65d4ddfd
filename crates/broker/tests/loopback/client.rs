//! A bare client for the tests: one connection, one request at a time, frames made by `kohort-wire`.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(clippy::unwrap_used)]

use bytes::{Bytes, BytesMut};
use kohort_wire::messages::*;
use kohort_wire::{ApiRequest, ErrorCode, frame};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: BytesMut,
    correlation_id: i32,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            buffer: BytesMut::new(),
            correlation_id: 0,
        }
    }

    pub(crate) async fn send<R: ApiRequest>(&mut self, version: i16, request: &R) {
        self.correlation_id += 1;
        let frame = frame::request(request, version, self.correlation_id, Some("test")).unwrap();
        self.stream.write_all(&frame).await.unwrap();
    }

    pub(crate) async fn receive<R: ApiRequest>(&mut self, version: i16) -> R::Response {
        let frame = self
            .frame()
            .await
            .expect("the broker closed the connection");
        let (_, response) = frame::read_response::<R>(frame, version).unwrap();
        response
    }

    pub(crate) async fn ask<R: ApiRequest>(&mut self, version: i16, request: &R) -> R::Response {
        self.send(version, request).await;
        self.receive::<R>(version).await
    }

    /// The next frame; `None` if the connection was closed.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = frame::split(&mut self.buffer, usize::MAX >> 1).unwrap() {
                return Some(frame);
            }
            let read = self.stream.read_buf(&mut self.buffer);
            let read = timeout(Duration::from_secs(20), read)
                .await
                .expect("no answer in 20 s");
            if read.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    pub(crate) async fn create(
        &mut self,
        name: &str,
        num_partitions: i32,
    ) -> CreateTopicsResponseTopic {
        let topic = CreateTopicsRequestTopic {
            name: name.into(),
            num_partitions,
            replication_factor: 1,
            ..Default::default()
        };
        let request = CreateTopicsRequest {
            topics: vec![topic],
            ..Default::default()
        };
        self.ask(7, &request).await.topics.remove(0)
    }

    pub(crate) async fn delete(&mut self, name: &str) -> DeleteTopicsResponseTopic {
        let topic = DeleteTopicsRequestTopic {
            name: Some(name.into()),
            ..Default::default()
        };
        let request = DeleteTopicsRequest {
            topics: vec![topic],
            ..Default::default()
        };
        self.ask(6, &request).await.responses.remove(0)
    }

    pub(crate) async fn topic_id(&mut self, name: &str) -> [u8; 16] {
        let topic = MetadataRequestTopic {
            name: Some(name.into()),
            ..Default::default()
        };
        let request = MetadataRequest {
            topics: Some(vec![topic]),
            ..Default::default()
        };
        self.ask(12, &request).await.topics.remove(0).topic_id
    }

    pub(crate) async fn produce(
        &mut self,
        topic: &str,
        index: i32,
        records: Vec<u8>,
    ) -> ProduceResponsePartition {
        let request = produce_request(topic, index, 1, records);
        let mut response = self.ask(9, &request).await;
        response.responses.remove(0).partition_responses.remove(0)
    }

    pub(crate) async fn fetch(&mut self, topic: &str, offset: i64) -> FetchResponsePartition {
        let mut response = self.ask(12, &fetch_request(topic, offset, 0, 1)).await;
        assert_eq!(response.error_code, ErrorCode::None);
        response.responses.remove(0).partitions.remove(0)
    }

    pub(crate) async fn list_offset(
        &mut self,
        topic: &str,
        timestamp: i64,
    ) -> ListOffsetsResponsePartition {
        let partition = ListOffsetsRequestPartition {
            timestamp,
            ..Default::default()
        };
        let topic = ListOffsetsRequestTopic {
            name: topic.into(),
            partitions: vec![partition],
        };
        let request = ListOffsetsRequest {
            topics: vec![topic],
            ..Default::default()
        };
        self.ask(8, &request)
            .await
            .topics
            .remove(0)
            .partitions
            .remove(0)
    }
}

pub(crate) fn produce_request(
    topic: &str,
    index: i32,
    acks: i16,
    records: Vec<u8>,
) -> ProduceRequest {
    let partition = ProduceRequestPartition {
        index,
        records: Some(records.into()),
    };
    let topic = ProduceRequestTopic {
        name: topic.into(),
        partition_data: vec![partition],
        ..Default::default()
    };
    ProduceRequest {
        acks,
        timeout_ms: 1_000,
        topic_data: vec![topic],
        ..Default::default()
    }
}

pub(crate) fn fetch_request(
    topic: &str,
    fetch_offset: i64,
    max_wait_ms: i32,
    min_bytes: i32,
) -> FetchRequest {
    let partition = FetchRequestPartition {
        fetch_offset,
        partition_max_bytes: 1 << 20,
        ..Default::default()
    };
    let topic = FetchRequestTopic {
        topic: topic.into(),
        partitions: vec![partition],
        ..Default::default()
    };
    FetchRequest {
        max_wait_ms,
        min_bytes,
        max_bytes: 1 << 20,
        topics: vec![topic],
        ..Default::default()
    }
}

/// A batch whose records are not looked into: `payload` stands for them.
pub(crate) fn batch(
    count: i32,
    timestamp: i64,
    producer: (i64, i16, i32),
    payload: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0; 61];
    bytes.extend_from_slice(payload);
    let length = (bytes.len() - 12) as i32;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[16] = 2;
    bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    bytes[27..35].copy_from_slice(&timestamp.to_be_bytes());
    bytes[35..43].copy_from_slice(&timestamp.to_be_bytes());
    bytes[43..51].copy_from_slice(&producer.0.to_be_bytes());
    bytes[51..53].copy_from_slice(&producer.1.to_be_bytes());
    bytes[53..57].copy_from_slice(&producer.2.to_be_bytes());
    bytes[57..61].copy_from_slice(&count.to_be_bytes());
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

pub(crate) const NOBODY: (i64, i16, i32) = (-1, -1, -1);

/// How many file descriptors this process has open.
pub(crate) fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
