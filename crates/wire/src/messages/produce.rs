//! Produce (0): appends record batches. Headers and transactions (v3), leader discovery (v10, KIP-951), topic ids (v13, KIP-516).

use crate::error_code::ErrorCode;
use crate::primitives::Uuid;
use bytes::Bytes;

message! {
    /// Batches to append. With `acks` 0 no response is sent at all.
    pub struct ProduceRequest {
        /// The transactional id, null outside transactions.
        transactional_id: Option<String> = all().nullable(3);
        /// How many replicas must have it: 0 none, 1 the leader, −1 all in sync.
        acks: i16 = all();
        /// Milliseconds to wait for the replicas.
        timeout_ms: i32 = all();
        /// The batches by topic.
        topic_data: Vec<ProduceRequestTopic> = all();
    }
    /// A topic's batches.
    pub struct ProduceRequestTopic {
        /// The topic, up to v12.
        name: String = all().until(12);
        /// The topic, from v13 on.
        topic_id: Uuid = since(13);
        /// The batches by partition.
        partition_data: Vec<ProduceRequestPartition> = all();
    }
    /// A partition's batches.
    pub struct ProduceRequestPartition {
        /// The partition.
        index: i32 = all();
        /// Record batches as they stand in the log (see `records`); Kafka takes exactly one.
        records: Option<Bytes> = all().nullable(0);
    }
    /// What became of them.
    pub struct ProduceResponse {
        /// What became of each topic.
        responses: Vec<ProduceResponseTopic> = all();
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// Where the leaders are that `current_leader` names (KIP-951).
        node_endpoints: Vec<ProduceResponseNodeEndpoint> = tag(0).since(10);
    }
    /// What became of one topic.
    pub struct ProduceResponseTopic {
        /// The topic, up to v12.
        name: String = all().until(12);
        /// The topic, from v13 on.
        topic_id: Uuid = since(13);
        /// What became of each partition.
        partition_responses: Vec<ProduceResponsePartition> = all();
    }
    /// What became of one partition.
    pub struct ProduceResponsePartition {
        /// The partition.
        index: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The offset that the first record received.
        base_offset: i64 = all();
        /// The broker's time for the batch in milliseconds since 1970 where the topic has LogAppendTime, −1 otherwise.
        log_append_time_ms: i64 = since(2) => -1;
        /// The partition's first offset.
        log_start_offset: i64 = since(5) => -1;
        /// The records that are to blame (KIP-467).
        record_errors: Vec<ProduceResponseRecordError> = since(8);
        /// What went wrong, in words (KIP-467).
        error_message: Option<String> = since(8).nullable(8);
        /// The leader as this broker knows it, where it is another one (KIP-951).
        current_leader: ProduceResponseLeader = tag(0).since(10);
    }
    /// A record that made its batch fail.
    pub struct ProduceResponseRecordError {
        /// Its position in the batch.
        batch_index: i32 = all();
        /// Why, in words.
        batch_index_error_message: Option<String> = all().nullable(8);
    }
    /// A partition's leader.
    pub struct ProduceResponseLeader {
        /// The broker's id, −1 if unknown.
        leader_id: i32 = all() => -1;
        /// The leader's epoch, −1 if unknown.
        leader_epoch: i32 = all() => -1;
    }
    /// Where a broker is.
    pub struct ProduceResponseNodeEndpoint {
        /// The broker's id.
        node_id: i32 = all();
        /// Its host.
        host: String = all();
        /// Its port.
        port: i32 = all();
        /// Its rack.
        rack: Option<String> = all().nullable(0);
    }
}
api! { ProduceRequest => ProduceResponse: Produce, 3..=13, flexible 9; }
