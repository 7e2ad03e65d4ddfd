//! OffsetForLeaderEpoch (23): where the records of a leader epoch end, so that a reader notices that history was rewritten
//! (KIP-279; for consumers KIP-320).

use crate::error_code::ErrorCode;

message! {
    /// Which epochs.
    pub struct OffsetForLeaderEpochRequest {
        /// The follower's broker id, −1 for a consumer, −2 for a client that does not say (before v3).
        replica_id: i32 = since(3) => -2;
        /// The epochs by topic.
        topics: Vec<OffsetForLeaderEpochRequestTopic> = all();
    }
    /// A topic's epochs.
    pub struct OffsetForLeaderEpochRequestTopic {
        /// The topic.
        topic: String = all();
        /// The epochs by partition.
        partitions: Vec<OffsetForLeaderEpochRequestPartition> = all();
    }
    /// A partition's epoch.
    pub struct OffsetForLeaderEpochRequestPartition {
        /// The partition.
        partition: i32 = all();
        /// The leader epoch that the client knows, −1 if none.
        current_leader_epoch: i32 = since(2) => -1;
        /// The epoch whose end is sought.
        leader_epoch: i32 = all();
    }
    /// Where they end.
    pub struct OffsetForLeaderEpochResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(2);
        /// The ends by topic.
        topics: Vec<OffsetForLeaderEpochResponseTopic> = all();
    }
    /// A topic's ends.
    pub struct OffsetForLeaderEpochResponseTopic {
        /// The topic.
        topic: String = all();
        /// The ends by partition.
        partitions: Vec<OffsetForLeaderEpochResponsePartition> = all();
    }
    /// Where an epoch of a partition ends.
    pub struct OffsetForLeaderEpochResponsePartition {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The partition.
        partition: i32 = all();
        /// The largest epoch that is not above the one asked for, −1 if there is none.
        leader_epoch: i32 = since(1) => -1;
        /// The offset after its last record, −1 if there is none.
        end_offset: i64 = all() => -1;
    }
}
api! { OffsetForLeaderEpochRequest => OffsetForLeaderEpochResponse: OffsetForLeaderEpoch, 2..=4, flexible 4; }
