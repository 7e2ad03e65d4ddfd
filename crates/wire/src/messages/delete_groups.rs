//! DeleteGroups (42): removes groups that have no members.

use crate::error_code::ErrorCode;

message! {
    /// Which groups.
    pub struct DeleteGroupsRequest {
        /// The groups.
        groups_names: Vec<String> = all();
    }
    /// What became of them.
    pub struct DeleteGroupsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// One entry for each.
        results: Vec<DeletableGroupResult> = all();
    }
    /// What became of one group.
    pub struct DeletableGroupResult {
        /// The group.
        group_id: String = all();
        /// What went wrong.
        error_code: ErrorCode = all();
    }
}
api! { DeleteGroupsRequest => DeleteGroupsResponse: DeleteGroups, 0..=2, flexible 2; }
