//! OffsetCommit (8): stores a group's offsets. KIP-345 (v7), topic ids (v10).

use crate::error_code::ErrorCode;
use crate::primitives::Uuid;

message! {
    /// Offsets to store.
    pub struct OffsetCommitRequest {
        /// The group.
        group_id: String = all();
        /// The member's generation, −1 outside a group.
        generation_id_or_member_epoch: i32 = since(1) => -1;
        /// The member's id, empty outside a group.
        member_id: String = since(1);
        /// Its `group.instance.id`.
        group_instance_id: Option<String> = since(7).nullable(7);
        /// How long to keep the offsets, milliseconds; −1 is the broker's default.
        retention_time_ms: i64 = since(2).until(4) => -1;
        /// The offsets by topic.
        topics: Vec<OffsetCommitRequestTopic> = all();
    }
    /// A topic's offsets.
    pub struct OffsetCommitRequestTopic {
        /// The topic, up to v9.
        name: String = all().until(9);
        /// The topic, from v10 on.
        topic_id: Uuid = since(10);
        /// The offsets by partition.
        partitions: Vec<OffsetCommitRequestPartition> = all();
    }
    /// A partition's offset.
    pub struct OffsetCommitRequestPartition {
        /// The partition.
        partition_index: i32 = all();
        /// The next offset to read.
        committed_offset: i64 = all();
        /// The leader epoch of the last record read, −1 if unknown.
        committed_leader_epoch: i32 = since(6) => -1;
        /// The commit's time, v1 only.
        commit_timestamp: i64 = since(1).until(1) => -1;
        /// A text to keep beside it.
        committed_metadata: Option<String> = all().nullable(0);
    }
    /// What became of it.
    pub struct OffsetCommitResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(3);
        /// What became of each topic.
        topics: Vec<OffsetCommitResponseTopic> = all();
    }
    /// What became of one topic.
    pub struct OffsetCommitResponseTopic {
        /// The topic, up to v9.
        name: String = all().until(9);
        /// The topic, from v10 on.
        topic_id: Uuid = since(10);
        /// What became of each partition.
        partitions: Vec<OffsetCommitResponsePartition> = all();
    }
    /// What became of one partition.
    pub struct OffsetCommitResponsePartition {
        /// The partition.
        partition_index: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
    }
}
api! { OffsetCommitRequest => OffsetCommitResponse: OffsetCommit, 0..=10, flexible 8; }
