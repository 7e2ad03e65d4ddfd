//! OffsetFetch (9): reads a group's offsets; one group up to v7, several from v8 on (KIP-709).

use crate::error_code::ErrorCode;
use crate::primitives::Uuid;

message! {
    /// Which offsets to read.
    pub struct OffsetFetchRequest {
        /// The group, up to v7.
        group_id: String = all().until(7);
        /// The topics, up to v7; null asks for all (v2+).
        topics: Option<Vec<OffsetFetchRequestTopic>> = all().until(7).nullable(2);
        /// The groups, from v8 on.
        groups: Vec<OffsetFetchRequestGroup> = since(8);
        /// Whether to fail where a transaction is open (KIP-447).
        require_stable: bool = since(7);
    }
    /// A topic's partitions.
    pub struct OffsetFetchRequestTopic {
        /// The topic.
        name: String = all();
        /// The partitions.
        partition_indexes: Vec<i32> = all();
    }
    /// A group's topics.
    pub struct OffsetFetchRequestGroup {
        /// The group.
        group_id: String = all();
        /// The member that asks (KIP-848).
        member_id: Option<String> = since(9).nullable(9);
        /// Its epoch (KIP-848).
        member_epoch: i32 = since(9) => -1;
        /// The topics; null asks for all.
        topics: Option<Vec<OffsetFetchRequestTopics>> = all().nullable(8);
    }
    /// A topic's partitions, from v8 on.
    pub struct OffsetFetchRequestTopics {
        /// The topic, up to v9.
        name: String = all().until(9);
        /// The topic, from v10 on.
        topic_id: Uuid = since(10);
        /// The partitions.
        partition_indexes: Vec<i32> = all();
    }
    /// The offsets.
    pub struct OffsetFetchResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(3);
        /// The topics, up to v7.
        topics: Vec<OffsetFetchResponseTopic> = all().until(7);
        /// What went wrong with the whole, up to v7.
        error_code: ErrorCode = since(2).until(7);
        /// The groups, from v8 on.
        groups: Vec<OffsetFetchResponseGroup> = since(8);
    }
    /// A topic's offsets.
    pub struct OffsetFetchResponseTopic {
        /// The topic.
        name: String = all();
        /// The offsets by partition.
        partitions: Vec<OffsetFetchResponsePartition> = all();
    }
    /// A partition's offset.
    pub struct OffsetFetchResponsePartition {
        /// The partition.
        partition_index: i32 = all();
        /// The next offset to read, −1 if none is stored.
        committed_offset: i64 = all();
        /// The leader epoch stored with it, −1 if unknown.
        committed_leader_epoch: i32 = since(5) => -1;
        /// The text stored with it.
        metadata: Option<String> = all().nullable(0);
        /// What went wrong.
        error_code: ErrorCode = all();
    }
    /// A group's offsets, from v8 on.
    pub struct OffsetFetchResponseGroup {
        /// The group.
        group_id: String = all();
        /// The offsets by topic.
        topics: Vec<OffsetFetchResponseTopics> = all();
        /// What went wrong with the whole.
        error_code: ErrorCode = all();
    }
    /// A topic's offsets, from v8 on.
    pub struct OffsetFetchResponseTopics {
        /// The topic, up to v9.
        name: String = all().until(9);
        /// The topic, from v10 on.
        topic_id: Uuid = since(10);
        /// The offsets by partition.
        partitions: Vec<OffsetFetchResponsePartition> = all();
    }
}
api! { OffsetFetchRequest => OffsetFetchResponse: OffsetFetch, 0..=10, flexible 6; }
