//! OffsetDelete (47): removes a group's offsets of some topics (KIP-496). It has no flexible version.

use crate::error_code::ErrorCode;

message! {
    /// Which offsets.
    pub struct OffsetDeleteRequest {
        /// The group.
        group_id: String = all();
        /// The topics.
        topics: Vec<OffsetDeleteRequestTopic> = all();
    }
    /// A topic's partitions.
    pub struct OffsetDeleteRequestTopic {
        /// The topic.
        name: String = all();
        /// The partitions.
        partitions: Vec<OffsetDeleteRequestPartition> = all();
    }
    /// A partition.
    pub struct OffsetDeleteRequestPartition {
        /// The partition.
        partition_index: i32 = all();
    }
    /// What became of them.
    pub struct OffsetDeleteResponse {
        /// What went wrong with the whole.
        error_code: ErrorCode = all();
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// What became of each topic.
        topics: Vec<OffsetDeleteResponseTopic> = all();
    }
    /// What became of one topic.
    pub struct OffsetDeleteResponseTopic {
        /// The topic.
        name: String = all();
        /// What became of each partition.
        partitions: Vec<OffsetDeleteResponsePartition> = all();
    }
    /// What became of one partition.
    pub struct OffsetDeleteResponsePartition {
        /// The partition.
        partition_index: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
    }
}
api! { OffsetDeleteRequest => OffsetDeleteResponse: OffsetDelete, 0..=0, flexible 32767; }
