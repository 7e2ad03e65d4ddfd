//! DeleteRecords (21): removes the oldest records of partitions (KIP-107).

use crate::error_code::ErrorCode;

message! {
    /// Which records.
    pub struct DeleteRecordsRequest {
        /// The offsets by topic.
        topics: Vec<DeleteRecordsRequestTopic> = all();
        /// Milliseconds to wait until they are gone.
        timeout_ms: i32 = all();
    }
    /// A topic's offsets.
    pub struct DeleteRecordsRequestTopic {
        /// The topic.
        name: String = all();
        /// The offsets by partition.
        partitions: Vec<DeleteRecordsRequestPartition> = all();
    }
    /// A partition's offset.
    pub struct DeleteRecordsRequestPartition {
        /// The partition.
        partition_index: i32 = all();
        /// The first offset to keep; −1 keeps nothing.
        offset: i64 = all();
    }
    /// What became of them.
    pub struct DeleteRecordsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// What became of each topic.
        topics: Vec<DeleteRecordsResponseTopic> = all();
    }
    /// What became of one topic.
    pub struct DeleteRecordsResponseTopic {
        /// The topic.
        name: String = all();
        /// What became of each partition.
        partitions: Vec<DeleteRecordsResponsePartition> = all();
    }
    /// What became of one partition.
    pub struct DeleteRecordsResponsePartition {
        /// The partition.
        partition_index: i32 = all();
        /// Its first offset now, −1 on error.
        low_watermark: i64 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
    }
}
api! { DeleteRecordsRequest => DeleteRecordsResponse: DeleteRecords, 0..=2, flexible 2; }
