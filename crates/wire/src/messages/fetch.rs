//! Fetch (1): reads record batches. Fetch sessions (v7, KIP-227), leader epochs (v9, KIP-320), nearest replica (v11, KIP-392),
//! topic ids (v13, KIP-516), leader discovery (v16, KIP-951), the follower's high watermark (v18, KIP-1166).

use crate::error_code::ErrorCode;
use crate::primitives::Uuid;
use bytes::Bytes;

message! {
    /// What to read. In a fetch session (`session_id` not 0) only what differs from the last request is named.
    pub struct FetchRequest {
        /// The cluster, so that one that was mixed up is noticed; consumers leave it out.
        cluster_id: Option<String> = tag(0).since(12).nullable(12);
        /// The follower's broker id, −1 for a consumer; up to v14.
        replica_id: i32 = all().until(14) => -1;
        /// The follower, from v15 on (KIP-903).
        replica_state: FetchRequestReplicaState = tag(1).since(15);
        /// Milliseconds that the broker may wait for `min_bytes`.
        max_wait_ms: i32 = all();
        /// The number of bytes that is worth an answer.
        min_bytes: i32 = all();
        /// The most bytes of the whole answer; the first batch is sent even if it is larger (KIP-74).
        max_bytes: i32 = since(3) => i32::MAX;
        /// 0 reads everything, 1 only what is committed (KIP-98).
        isolation_level: i8 = since(4);
        /// The fetch session, 0 to have none or a new one.
        session_id: i32 = since(7);
        /// The number of this request in the session: 0 begins one, −1 ends it or does without.
        session_epoch: i32 = since(7) => -1;
        /// What to read, by topic.
        topics: Vec<FetchRequestTopic> = all();
        /// What the session should read no longer.
        forgotten_topics_data: Vec<FetchRequestForgottenTopic> = since(7);
        /// The consumer's rack.
        rack_id: String = since(11);
    }
    /// A follower.
    pub struct FetchRequestReplicaState {
        /// Its broker id, −1 for a consumer.
        replica_id: i32 = all() => -1;
        /// Its epoch, −1 if unknown.
        replica_epoch: i64 = all() => -1;
    }
    /// A topic's partitions.
    pub struct FetchRequestTopic {
        /// The topic, up to v12.
        topic: String = all().until(12);
        /// The topic, from v13 on.
        topic_id: Uuid = since(13);
        /// The partitions.
        partitions: Vec<FetchRequestPartition> = all();
    }
    /// Where to read in a partition.
    pub struct FetchRequestPartition {
        /// The partition.
        partition: i32 = all();
        /// The leader epoch that the client knows, −1 if none (KIP-320).
        current_leader_epoch: i32 = since(9) => -1;
        /// The first offset to read.
        fetch_offset: i64 = all();
        /// The epoch of the last record read, −1 if unknown (KIP-595).
        last_fetched_epoch: i32 = since(12) => -1;
        /// The follower's first offset, −1 for a consumer.
        log_start_offset: i64 = since(5) => -1;
        /// The most bytes of this partition; the first batch is sent even if it is larger.
        partition_max_bytes: i32 = all();
        /// The follower's directory (KIP-853).
        replica_directory_id: Uuid = tag(0).since(17);
        /// The high watermark as the follower knows it, the maximum if it does not say (KIP-1166).
        high_watermark: i64 = tag(1).since(18) => i64::MAX;
    }
    /// Partitions that the session should read no longer.
    pub struct FetchRequestForgottenTopic {
        /// The topic, up to v12.
        topic: String = all().until(12);
        /// The topic, from v13 on.
        topic_id: Uuid = since(13);
        /// The partitions.
        partitions: Vec<i32> = all();
    }
    /// What was read. In a fetch session partitions without news are left out.
    pub struct FetchResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What went wrong with the whole, such as the session.
        error_code: ErrorCode = since(7);
        /// The fetch session, 0 if there is none.
        session_id: i32 = since(7);
        /// What was read, by topic.
        responses: Vec<FetchResponseTopic> = all();
        /// Where the leaders are that `current_leader` names (KIP-951).
        node_endpoints: Vec<FetchResponseNodeEndpoint> = tag(0).since(16);
    }
    /// A topic's partitions.
    pub struct FetchResponseTopic {
        /// The topic, up to v12.
        topic: String = all().until(12);
        /// The topic, from v13 on.
        topic_id: Uuid = since(13);
        /// The partitions.
        partitions: Vec<FetchResponsePartition> = all();
    }
    /// What was read of a partition.
    pub struct FetchResponsePartition {
        /// The partition.
        partition_index: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The offset after the last record that all replicas in sync have.
        high_watermark: i64 = all();
        /// The offset up to which all transactions have ended, −1 if unknown.
        last_stable_offset: i64 = since(4) => -1;
        /// The partition's first offset, −1 if unknown.
        log_start_offset: i64 = since(5) => -1;
        /// Where the reader's history parts from the leader's (KIP-595).
        diverging_epoch: FetchResponseEpochEndOffset = tag(0).since(12);
        /// The leader as this broker knows it, where it is another one.
        current_leader: FetchResponseLeader = tag(1).since(12);
        /// The snapshot to fetch instead (KIP-630).
        snapshot_id: FetchResponseSnapshotId = tag(2).since(12);
        /// Transactions that were aborted, for readers of what is committed.
        aborted_transactions: Option<Vec<FetchResponseAbortedTransaction>> = since(4).nullable(4);
        /// The replica that the consumer should ask next, −1 for the leader (KIP-392).
        preferred_read_replica: i32 = since(11) => -1;
        /// Record batches as they stand in the log (see `records`); the last one may be cut short.
        records: Option<Bytes> = all().nullable(0);
    }
    /// A leader epoch and its end.
    pub struct FetchResponseEpochEndOffset {
        /// The epoch, −1 if there is nothing to say.
        epoch: i32 = all() => -1;
        /// The offset after its last record.
        end_offset: i64 = all() => -1;
    }
    /// A partition's leader.
    pub struct FetchResponseLeader {
        /// The broker's id, −1 if unknown.
        leader_id: i32 = all() => -1;
        /// The leader's epoch, −1 if unknown.
        leader_epoch: i32 = all() => -1;
    }
    /// A snapshot of a metadata log.
    pub struct FetchResponseSnapshotId {
        /// The offset after the last record that it covers.
        end_offset: i64 = all() => -1;
        /// That record's epoch.
        epoch: i32 = all() => -1;
    }
    /// A transaction that was aborted.
    pub struct FetchResponseAbortedTransaction {
        /// Its producer.
        producer_id: i64 = all();
        /// Its first offset.
        first_offset: i64 = all();
    }
    /// Where a broker is.
    pub struct FetchResponseNodeEndpoint {
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
api! { FetchRequest => FetchResponse: Fetch, 4..=18, flexible 12; }
