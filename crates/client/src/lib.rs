//! A Kafka client whose consumer groups rebalance without stopping the world.

#![allow(dead_code)]

mod admin;
mod cluster;
mod connection;
pub mod error;
mod fetch;
mod handshake;
pub mod metadata;
mod producer;
mod reader;
mod record;
mod record_batch;
mod records;
pub mod settings;

pub use admin::{Admin, NewTopic};
pub use error::Error;
pub use kohort_wire::records::{Record, RecordHeader};
pub use producer::{Delivery, Producer, ProducerBuilder, Stored};
pub use reader::Reader;
pub use record::NewRecord;
pub use records::Records;
pub use settings::Settings;
