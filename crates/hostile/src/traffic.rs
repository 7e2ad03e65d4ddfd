//! Seeds: what a producer, the members of a group and a broker really say to each other, written down while they do.

use crate::codec::flexible_since;
use bytes::{Bytes, BytesMut};
use kohort::{Admin, Consumer, Error, Event, NewRecord, Producer};
use kohort_broker::{Accept, Accepted, Broker, Settings};
use kohort_group::coordinator::record::Record;
use kohort_wire::header::RequestHeader;
use kohort_wire::messages::*;
use kohort_wire::records::batches;
use kohort_wire::{ApiKey, Decoder, api, frame};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

const PARTITIONS: i32 = 4;
const LARGEST_FRAME: usize = 1 << 24;

/// What was said, sorted by the target that reads it.
#[derive(Debug, Default)]
pub struct Traffic(BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Traffic {
    /// Runs a group of two against a broker: one joins, the other joins, reads what the group has committed, and leaves.
    ///
    /// # Errors
    /// If the broker or a client fails.
    ///
    /// # Panics
    /// If the broker does not start.
    pub async fn record() -> Result<Self, Error> {
        let wire = Wire::default();
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap_or_else(|error| panic!("no port: {error}"));
        let broker = Broker::builder()
            .settings(Settings::for_tests())
            .start_on(Tapped(listener, wire.clone()))
            .await
            .unwrap_or_else(|error| panic!("no broker: {error}"));
        play(&broker.address().to_string()).await?;
        broker.shutdown().await;
        let mut traffic = Self::default();
        let connections = wire.0.lock().unwrap_or_else(PoisonError::into_inner);
        for connection in &*connections {
            traffic.sort(connection);
        }
        Ok(traffic)
    }

    /// What this target may be given; nothing for those that read traces of decisions.
    #[must_use]
    pub fn seeds(&self, target: &str) -> &[Vec<u8>] {
        self.0.get(target).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, target: &'static str, seed: Vec<u8>) {
        let seeds = self.0.entry(target).or_default();
        if !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }

    fn sort(&mut self, connection: &Connection) {
        self.add("connection", connection.asked.to_vec());
        let mut answers = frames(&connection.answered);
        for asked in frames(&connection.asked) {
            let mut from = Decoder::new(asked.clone());
            let Ok(header) = RequestHeader::decode(&mut from, flexible_since) else {
                continue;
            };
            self.add("requests", asked.to_vec());
            self.request(&header, from.rest().clone());
            if let Some(answer) = answers.next() {
                let mut seed = header.api_key.to_be_bytes().to_vec();
                seed.push(header.version as u8);
                seed.extend_from_slice(&answer);
                self.add("responses", seed);
                self.response(&header, answer);
            }
        }
    }

    fn request(&mut self, header: &RequestHeader, body: Bytes) {
        match ApiKey::from_number(header.api_key) {
            Some(ApiKey::JoinGroup) => {
                let read = api::decode_request::<JoinGroupRequest>(body, header.version);
                for protocol in read.into_iter().flat_map(|join| join.protocols) {
                    self.add("embedded", kinds(0, &protocol.metadata));
                }
            }
            Some(ApiKey::SyncGroup) => {
                let read = api::decode_request::<SyncGroupRequest>(body, header.version);
                for share in read.into_iter().flat_map(|sync| sync.assignments) {
                    self.add("embedded", kinds(1, &share.assignment));
                }
            }
            Some(ApiKey::Produce) => {
                let read = api::decode_request::<ProduceRequest>(body, header.version);
                let topics = read.into_iter().flat_map(|produce| produce.topic_data);
                let partitions = topics.flat_map(|topic| topic.partition_data);
                for records in partitions.filter_map(|partition| partition.records) {
                    self.add("batches", records.to_vec());
                }
            }
            _ => {}
        }
    }

    fn response(&mut self, header: &RequestHeader, answer: Bytes) {
        if ApiKey::from_number(header.api_key) != Some(ApiKey::Fetch) {
            return;
        }
        let read = frame::read_response::<FetchRequest>(answer, header.version);
        let topics = read.into_iter().flat_map(|(_, fetch)| fetch.responses);
        let partitions = topics.flat_map(|topic| topic.partitions);
        for records in partitions.filter_map(|partition| partition.records) {
            self.add("batches", records.to_vec());
            self.offsets(records);
        }
    }

    fn offsets(&mut self, bytes: Bytes) {
        for batch in batches(bytes).map_while(Result::ok) {
            let records = batch.records(LARGEST_FRAME).into_iter().flatten();
            for record in records.map_while(Result::ok) {
                let key = record.key.unwrap_or_default();
                if let Ok(Some(_)) = Record::decode(key.clone(), record.value.clone()) {
                    let mut seed = vec![key.len() as u8];
                    seed.extend_from_slice(&key);
                    seed.extend_from_slice(&record.value.unwrap_or_default());
                    self.add("offsets", seed);
                }
            }
        }
    }
}

fn kinds(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind], bytes].concat()
}

fn frames(bytes: &[u8]) -> impl Iterator<Item = Bytes> {
    let mut rest = BytesMut::from(bytes);
    std::iter::from_fn(move || frame::split(&mut rest, LARGEST_FRAME).ok().flatten())
}

async fn play(address: &str) -> Result<(), Error> {
    let admin = Admin::connect(address).await?;
    admin.create_topic("t", PARTITIONS).await?;
    let producer = Producer::builder().bootstrap(address).build().await?;
    for partition in 0..PARTITIONS {
        for key in ["one", "two"] {
            let record = NewRecord::to("t").partition(partition).key(key).value("3");
            producer.send(record).await?.wait().await?;
        }
    }
    producer.close().await?;
    let mut first = member(address, "t", "cooperative-sticky,range").await?;
    until_owned(&mut first, PARTITIONS as usize).await?;
    let mut second = member(address, "t", "cooperative-sticky,range").await?;
    let half = PARTITIONS as usize / 2;
    let (one, two) = tokio::join!(
        until_owned(&mut first, half),
        until_owned(&mut second, half)
    );
    one.and(two)?;
    tokio::try_join!(first.close(), second.close())?;
    let mut reader = member(address, "__consumer_offsets", "range").await?;
    until_records(&mut reader).await?;
    reader.close().await
}

async fn member(address: &str, topic: &str, assignors: &str) -> Result<Consumer, Error> {
    Consumer::builder()
        .bootstrap(address)
        .group(&format!("readers of {topic}"))
        .topics([topic])
        .set("partition.assignment.strategy", assignors)
        .set("auto.offset.reset", "earliest")
        .set("heartbeat.interval.ms", "100")
        .set("fetch.max.wait.ms", "50")
        .build()
        .await
}

async fn until_owned(consumer: &mut Consumer, count: usize) -> Result<(), Error> {
    loop {
        match consumer.next().await {
            Event::Assigned(assigned) if assigned.owned.len() == count => return Ok(()),
            Event::Error(error) => return Err(error),
            _ => {}
        }
    }
}

async fn until_records(consumer: &mut Consumer) -> Result<(), Error> {
    loop {
        match consumer.next().await {
            Event::AtEnd => return Ok(()),
            Event::Error(error) => return Err(error),
            _ => {}
        }
    }
}

/// What both ends said over a connection.
#[derive(Debug, Default)]
struct Connection {
    asked: Vec<u8>,
    answered: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Wire(Arc<Mutex<Vec<Connection>>>);

impl Wire {
    fn with<R>(&self, run: impl FnOnce(&mut Vec<Connection>) -> R) -> R {
        run(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A listener whose connections are written down.
struct Tapped(TcpListener, Wire);

impl Accept for Tapped {
    type Stream = Tap;

    async fn accept(&mut self) -> io::Result<Accepted<Tap>> {
        let accepted = Accept::accept(&mut self.0).await?;
        let number = self.1.with(|connections| {
            connections.push(Connection::default());
            connections.len() - 1
        });
        Ok(Accepted {
            stream: Tap {
                stream: accepted.stream,
                wire: self.1.clone(),
                number,
            },
            peer: accepted.peer,
            local: accepted.local,
        })
    }

    fn address(&self) -> io::Result<SocketAddr> {
        self.0.address()
    }
}

struct Tap {
    stream: TcpStream,
    wire: Wire,
    number: usize,
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        let new = &buffer.filled()[before..];
        self.wire
            .with(|all| all[self.number].asked.extend_from_slice(new));
        Poll::Ready(read)
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.wire.with(|all| {
            all[self.number]
                .answered
                .extend_from_slice(&bytes[..written]);
        });
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
