//! Metadata (3): brokers, topics, partitions and their leaders. Topic ids (v10, asked for by id from v12 on, KIP-516), an error of
//! the whole (v13, KIP-1102).

use crate::error_code::ErrorCode;
use crate::primitives::Uuid;

message! {
    /// Which topics.
    pub struct MetadataRequest {
        /// The topics; null asks for all, and so does an empty list in v0. From v1 on an empty list asks for brokers alone.
        topics: Option<Vec<MetadataRequestTopic>> = all().nullable(1);
        /// Whether a topic that does not exist may be made, where the broker does that.
        allow_auto_topic_creation: bool = since(4) => true;
        /// Whether to say what the client may do with the cluster.
        include_cluster_authorized_operations: bool = since(8).until(10);
        /// Whether to say what the client may do with each topic.
        include_topic_authorized_operations: bool = since(8);
    }
    /// A topic, by id or by name.
    pub struct MetadataRequestTopic {
        /// The topic's id; zero asks by name.
        topic_id: Uuid = since(10);
        /// The topic's name; null asks by id.
        name: Option<String> = all().nullable(10);
    }
    /// What the broker knows.
    pub struct MetadataResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(3);
        /// The live brokers.
        brokers: Vec<MetadataResponseBroker> = all();
        /// The cluster.
        cluster_id: Option<String> = since(2).nullable(2);
        /// The controller's broker id, −1 if unknown.
        controller_id: i32 = since(1) => -1;
        /// The topics.
        topics: Vec<MetadataResponseTopic> = all();
        /// What the client may do with the cluster, as bits; the minimum of int32 if not asked for.
        cluster_authorized_operations: i32 = since(8).until(10) => i32::MIN;
        /// What went wrong with the whole, such as REBOOTSTRAP_REQUIRED.
        error_code: ErrorCode = since(13);
    }
    /// A broker.
    pub struct MetadataResponseBroker {
        /// The broker's id.
        node_id: i32 = all();
        /// Its host.
        host: String = all();
        /// Its port.
        port: i32 = all();
        /// Its rack.
        rack: Option<String> = since(1).nullable(1);
    }
    /// A topic.
    pub struct MetadataResponseTopic {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The topic's name; null if an unknown id was asked for.
        name: Option<String> = all().nullable(12);
        /// The topic's id; zero if unknown.
        topic_id: Uuid = since(10);
        /// Whether it is Kafka's own, such as `__consumer_offsets`.
        is_internal: bool = since(1);
        /// Its partitions.
        partitions: Vec<MetadataResponsePartition> = all();
        /// What the client may do with it, as bits; the minimum of int32 if not asked for.
        topic_authorized_operations: i32 = since(8) => i32::MIN;
    }
    /// A partition.
    pub struct MetadataResponsePartition {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The partition.
        partition_index: i32 = all();
        /// The leader's broker id, −1 if there is none.
        leader_id: i32 = all();
        /// The leader's epoch, −1 if unknown.
        leader_epoch: i32 = since(7) => -1;
        /// All replicas.
        replica_nodes: Vec<i32> = all();
        /// Those in sync.
        isr_nodes: Vec<i32> = all();
        /// Those on brokers or disks that are down.
        offline_replicas: Vec<i32> = since(5);
    }
}
api! { MetadataRequest => MetadataResponse: Metadata, 0..=13, flexible 9; }
