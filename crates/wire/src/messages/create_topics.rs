//! CreateTopics (19). Defaults of the broker for partitions and replicas (v4, KIP-464), the settings in the answer (v5, KIP-525),
//! topic ids (v7, KIP-516).

use crate::error_code::ErrorCode;
use crate::primitives::Uuid;

message! {
    /// Topics to make.
    pub struct CreateTopicsRequest {
        /// The topics.
        topics: Vec<CreateTopicsRequestTopic> = all();
        /// Milliseconds to wait until they are there.
        timeout_ms: i32 = all() => 60_000;
        /// Whether to check alone.
        validate_only: bool = since(1);
    }
    /// A topic to make.
    pub struct CreateTopicsRequestTopic {
        /// Its name.
        name: String = all();
        /// How many partitions; −1 for the broker's default, or where `assignments` says it.
        num_partitions: i32 = all();
        /// How many replicas of each; −1 for the broker's default, or where `assignments` says it.
        replication_factor: i16 = all();
        /// Which brokers have which partition; empty leaves that to the broker.
        assignments: Vec<CreateTopicsRequestAssignment> = all();
        /// Settings that differ from the broker's.
        configs: Vec<CreateTopicsRequestConfig> = all();
    }
    /// The brokers of a partition.
    pub struct CreateTopicsRequestAssignment {
        /// The partition.
        partition_index: i32 = all();
        /// Its brokers, the preferred leader first.
        broker_ids: Vec<i32> = all();
    }
    /// A setting.
    pub struct CreateTopicsRequestConfig {
        /// Its name.
        name: String = all();
        /// Its value.
        value: Option<String> = all().nullable(0);
    }
    /// What became of them.
    pub struct CreateTopicsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(2);
        /// What became of each topic.
        topics: Vec<CreateTopicsResponseTopic> = all();
    }
    /// What became of one topic.
    pub struct CreateTopicsResponseTopic {
        /// Its name.
        name: String = all();
        /// Its id.
        topic_id: Uuid = since(7);
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = since(1).nullable(0);
        /// Why the settings are not in the answer.
        topic_config_error_code: ErrorCode = tag(0).since(5);
        /// How many partitions it has, −1 if not said.
        num_partitions: i32 = since(5) => -1;
        /// How many replicas each has, −1 if not said.
        replication_factor: i16 = since(5) => -1;
        /// Its settings; null if they may not be seen.
        configs: Option<Vec<CreateTopicsResponseConfig>> = since(5).nullable(5) => Some(Vec::new());
    }
    /// A setting.
    pub struct CreateTopicsResponseConfig {
        /// Its name.
        name: String = all();
        /// Its value; null if it is secret.
        value: Option<String> = all().nullable(5);
        /// Whether it cannot be changed.
        read_only: bool = all();
        /// Where the value comes from; see [`crate::messages::DescribeConfigsResponseConfig::config_source`].
        config_source: i8 = all() => -1;
        /// Whether the value is secret.
        is_sensitive: bool = all();
    }
}
api! { CreateTopicsRequest => CreateTopicsResponse: CreateTopics, 0..=7, flexible 5; }
