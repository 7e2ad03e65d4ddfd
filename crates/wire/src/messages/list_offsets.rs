//! ListOffsets (2): offsets by time, or the first and the last. Leader epochs (v4, KIP-320), the largest timestamp (v7, KIP-734),
//! tiered storage (v8, v9, v11), the time to wait for it (v10, KIP-1075).

use crate::error_code::ErrorCode;

message! {
    /// What to look up.
    pub struct ListOffsetsRequest {
        /// The follower's broker id, −1 for a consumer.
        replica_id: i32 = all() => -1;
        /// 0 counts everything, 1 only what is committed.
        isolation_level: i8 = since(2);
        /// What to look up, by topic.
        topics: Vec<ListOffsetsRequestTopic> = all();
        /// Milliseconds to wait for remote storage.
        timeout_ms: i32 = since(10);
    }
    /// A topic's partitions.
    pub struct ListOffsetsRequestTopic {
        /// The topic.
        name: String = all();
        /// The partitions.
        partitions: Vec<ListOffsetsRequestPartition> = all();
    }
    /// What to look up in a partition.
    pub struct ListOffsetsRequestPartition {
        /// The partition.
        partition_index: i32 = all();
        /// The leader epoch that the client knows, −1 if none.
        current_leader_epoch: i32 = since(4) => -1;
        /// Milliseconds since 1970 of the earliest record wanted; −1 the end, −2 the beginning, −3 the record with the largest timestamp
        /// (v7), −4 the beginning of what is stored locally (v8), −5 the last tiered offset (v9), −6 the first that is not tiered yet (v11).
        timestamp: i64 = all();
    }
    /// The offsets.
    pub struct ListOffsetsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(2);
        /// The offsets by topic.
        topics: Vec<ListOffsetsResponseTopic> = all();
    }
    /// A topic's offsets.
    pub struct ListOffsetsResponseTopic {
        /// The topic.
        name: String = all();
        /// The offsets by partition.
        partitions: Vec<ListOffsetsResponsePartition> = all();
    }
    /// A partition's offset.
    pub struct ListOffsetsResponsePartition {
        /// The partition.
        partition_index: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The timestamp of the record found, −1 if none or if the beginning or end was asked for.
        timestamp: i64 = since(1) => -1;
        /// The offset, −1 if none was found.
        offset: i64 = since(1) => -1;
        /// The leader epoch of the record found, −1 if unknown.
        leader_epoch: i32 = since(4) => -1;
    }
}
api! { ListOffsetsRequest => ListOffsetsResponse: ListOffsets, 1..=11, flexible 6; }
