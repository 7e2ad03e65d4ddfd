//! Heartbeat (12): I am alive; does the group rebalance?

use crate::error_code::ErrorCode;

message! {
    /// A sign of life.
    pub struct HeartbeatRequest {
        /// The group.
        group_id: String = all();
        /// The member's generation.
        generation_id: i32 = all() => -1;
        /// The member's id.
        member_id: String = all();
        /// Its `group.instance.id`.
        group_instance_id: Option<String> = since(3).nullable(3);
    }
    /// REBALANCE_IN_PROGRESS asks the member to join again.
    pub struct HeartbeatResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What went wrong.
        error_code: ErrorCode = all();
    }
}
api! { HeartbeatRequest => HeartbeatResponse: Heartbeat, 0..=4, flexible 4; }
