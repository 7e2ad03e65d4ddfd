//! SyncGroup (14): the leader hands over assignments, everyone receives their own.

use crate::error_code::ErrorCode;
use bytes::Bytes;

message! {
    /// Asks for one's assignment; the leader's carries everyone's.
    pub struct SyncGroupRequest {
        /// The group.
        group_id: String = all();
        /// The generation that the join was answered with.
        generation_id: i32 = all() => -1;
        /// The member's id.
        member_id: String = all();
        /// Its `group.instance.id`.
        group_instance_id: Option<String> = since(3).nullable(3);
        /// The group's kind (KIP-559); mandatory from v5 on.
        protocol_type: Option<String> = since(5).nullable(5);
        /// The chosen assignor (KIP-559); mandatory from v5 on.
        protocol_name: Option<String> = since(5).nullable(5);
        /// Who gets what; empty from followers.
        assignments: Vec<SyncGroupAssignment> = all();
    }
    /// One member's assignment.
    pub struct SyncGroupAssignment {
        /// The member's id.
        member_id: String = all();
        /// What only members read.
        assignment: Bytes = all();
    }
    /// The member's assignment.
    pub struct SyncGroupResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The group's kind (KIP-559).
        protocol_type: Option<String> = since(5).nullable(5);
        /// The chosen assignor (KIP-559).
        protocol_name: Option<String> = since(5).nullable(5);
        /// What the leader gave this member.
        assignment: Bytes = all();
    }
}
api! { SyncGroupRequest => SyncGroupResponse: SyncGroup, 0..=5, flexible 4; }
