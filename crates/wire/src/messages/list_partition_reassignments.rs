//! ListPartitionReassignments (46): partitions that are being moved between brokers (KIP-455).

use crate::error_code::ErrorCode;

message! {
    /// Which partitions.
    pub struct ListPartitionReassignmentsRequest {
        /// Milliseconds to wait for the answer.
        timeout_ms: i32 = all() => 60_000;
        /// The topics; null asks for all.
        topics: Option<Vec<ListPartitionReassignmentsRequestTopic>> = all().nullable(0);
    }
    /// A topic's partitions.
    pub struct ListPartitionReassignmentsRequestTopic {
        /// The topic.
        name: String = all();
        /// The partitions.
        partition_indexes: Vec<i32> = all();
    }
    /// What moves.
    pub struct ListPartitionReassignmentsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = all().nullable(0);
        /// What moves, by topic.
        topics: Vec<ListPartitionReassignmentsResponseTopic> = all();
    }
    /// What moves of a topic.
    pub struct ListPartitionReassignmentsResponseTopic {
        /// The topic.
        name: String = all();
        /// The partitions.
        partitions: Vec<ListPartitionReassignmentsResponsePartition> = all();
    }
    /// A partition that moves.
    pub struct ListPartitionReassignmentsResponsePartition {
        /// The partition.
        partition_index: i32 = all();
        /// Its replicas now.
        replicas: Vec<i32> = all();
        /// Those that are being added.
        adding_replicas: Vec<i32> = all();
        /// Those that will go.
        removing_replicas: Vec<i32> = all();
    }
}
api! { ListPartitionReassignmentsRequest => ListPartitionReassignmentsResponse: ListPartitionReassignments, 0..=0, flexible 0; }
