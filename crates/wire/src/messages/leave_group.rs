//! LeaveGroup (13): members go, one (v0–2) or several (v3+, KIP-345).

use crate::error_code::ErrorCode;

message! {
    /// Removes members from the group.
    pub struct LeaveGroupRequest {
        /// The group.
        group_id: String = all();
        /// The only member, up to v2.
        member_id: String = all().until(2);
        /// The members, from v3 on.
        members: Vec<LeaveGroupMember> = since(3);
    }
    /// One that leaves, by its member id, or by its instance id alone (an administrator's removal).
    pub struct LeaveGroupMember {
        /// The member's id; may be empty if the instance id is given.
        member_id: String = all();
        /// Its `group.instance.id`.
        group_instance_id: Option<String> = all().nullable(3);
        /// Why, in words (KIP-800).
        reason: Option<String> = since(5).nullable(5);
    }
    /// What became of it.
    pub struct LeaveGroupResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What went wrong with the whole; up to v2 with the only member.
        error_code: ErrorCode = all();
        /// What became of each member.
        members: Vec<LeaveGroupResponseMember> = since(3);
    }
    /// What became of one member.
    pub struct LeaveGroupResponseMember {
        /// The member's id.
        member_id: String = all();
        /// Its `group.instance.id`.
        group_instance_id: Option<String> = all().nullable(3);
        /// What went wrong.
        error_code: ErrorCode = all();
    }
}
api! { LeaveGroupRequest => LeaveGroupResponse: LeaveGroup, 0..=5, flexible 4; }
