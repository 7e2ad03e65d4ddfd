//! CreatePartitions (37): adds partitions to topics (KIP-195).

use crate::error_code::ErrorCode;

message! {
    /// Which topics are to grow.
    pub struct CreatePartitionsRequest {
        /// The topics.
        topics: Vec<CreatePartitionsRequestTopic> = all();
        /// Milliseconds to wait until the partitions are there.
        timeout_ms: i32 = all();
        /// Whether to check alone.
        validate_only: bool = all();
    }
    /// A topic that is to grow.
    pub struct CreatePartitionsRequestTopic {
        /// The topic.
        name: String = all();
        /// How many partitions it should have in all.
        count: i32 = all();
        /// The brokers of each new partition; null leaves that to the broker.
        assignments: Option<Vec<CreatePartitionsRequestAssignment>> = all().nullable(0) => Some(Vec::new());
    }
    /// The brokers of a new partition.
    pub struct CreatePartitionsRequestAssignment {
        /// The brokers, the preferred leader first.
        broker_ids: Vec<i32> = all();
    }
    /// What became of them.
    pub struct CreatePartitionsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// One entry for each topic.
        results: Vec<CreatePartitionsResponseTopic> = all();
    }
    /// What became of one topic.
    pub struct CreatePartitionsResponseTopic {
        /// The topic.
        name: String = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = all().nullable(0);
    }
}
api! { CreatePartitionsRequest => CreatePartitionsResponse: CreatePartitions, 0..=3, flexible 2; }
