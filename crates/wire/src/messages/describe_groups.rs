//! DescribeGroups (15): members, state and assignments.

use crate::error_code::ErrorCode;
use bytes::Bytes;

message! {
    /// Which groups.
    pub struct DescribeGroupsRequest {
        /// The groups.
        groups: Vec<String> = all();
        /// Whether to say what the client may do.
        include_authorized_operations: bool = since(3);
    }
    /// The groups.
    pub struct DescribeGroupsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// One entry for each that was asked for.
        groups: Vec<DescribedGroup> = all();
    }
    /// A group.
    pub struct DescribedGroup {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = since(6).nullable(6);
        /// The group.
        group_id: String = all();
        /// `Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.
        group_state: String = all();
        /// The group's kind.
        protocol_type: String = all();
        /// The chosen assignor, empty outside Stable.
        protocol_data: String = all();
        /// Its members.
        members: Vec<DescribedGroupMember> = all();
        /// What the client may do, as bits; the minimum of int32 if not asked for.
        authorized_operations: i32 = since(3) => i32::MIN;
    }
    /// A member.
    pub struct DescribedGroupMember {
        /// The member's id.
        member_id: String = all();
        /// Its `group.instance.id`.
        group_instance_id: Option<String> = since(4).nullable(4);
        /// Its client id.
        client_id: String = all();
        /// Where it connects from.
        client_host: String = all();
        /// What it told the leader.
        member_metadata: Bytes = all();
        /// What the leader gave it.
        member_assignment: Bytes = all();
    }
}
api! { DescribeGroupsRequest => DescribeGroupsResponse: DescribeGroups, 0..=6, flexible 5; }
