//! A Kafka client whose consumer groups rebalance without stopping the world.

mod admin;
mod cluster;
mod connect;
mod connection;
mod consumer;
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
mod task;

pub use admin::{Admin, GroupDescription, GroupListing, MemberDescription, NewTopic};
pub use connect::{Connect, Connector};
pub use consumer::{Assigned, Consumer, ConsumerBuilder, Event, Lost, Revocation};
pub use error::Error;
pub use kohort_group::assign;
pub use kohort_group::history::{self, RebalanceRecord};
pub use kohort_group::member::{CommitError, Offset, RevokeReason};
pub use kohort_group::partitions::{Partitions, Topic, TopicPartition};
pub use kohort_group::reason::JoinReason;
pub use kohort_wire::ErrorCode;
pub use kohort_wire::records::{Record, RecordHeader};
pub use producer::{Delivery, Producer, ProducerBuilder, Stored};
pub use reader::Reader;
pub use record::NewRecord;
pub use records::Records;
pub use settings::Settings;

/// The first page's program is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
