//! ListGroups (16): the groups of a broker; filters by state (v4, KIP-518) and type (v5, KIP-848).

use crate::error_code::ErrorCode;

message! {
    /// Which groups.
    pub struct ListGroupsRequest {
        /// Only groups in these states; empty means all.
        states_filter: Vec<String> = since(4);
        /// Only groups of these types (`classic`, `consumer`); empty means all.
        types_filter: Vec<String> = since(5);
    }
    /// The groups.
    pub struct ListGroupsResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The groups.
        groups: Vec<ListedGroup> = all();
    }
    /// A group.
    pub struct ListedGroup {
        /// The group.
        group_id: String = all();
        /// Its kind: `consumer`, `connect`, …
        protocol_type: String = all();
        /// Its state.
        group_state: String = since(4);
        /// `classic` or `consumer`.
        group_type: String = since(5);
    }
}
api! { ListGroupsRequest => ListGroupsResponse: ListGroups, 0..=5, flexible 3; }
