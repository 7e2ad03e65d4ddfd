//! FindCoordinator (10): which broker coordinates a group; several at once from v4 on (KIP-699).

use crate::error_code::ErrorCode;

message! {
    /// Whose coordinator is sought.
    pub struct FindCoordinatorRequest {
        /// The group, up to v3.
        key: String = all().until(3);
        /// 0 for a group, 1 for a transactional id, 2 for a share partition.
        key_type: i8 = since(1);
        /// The groups, from v4 on.
        coordinator_keys: Vec<String> = since(4);
    }
    /// Where it is.
    pub struct FindCoordinatorResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = since(1);
        /// What went wrong, up to v3.
        error_code: ErrorCode = all().until(3);
        /// The same in words.
        error_message: Option<String> = since(1).until(3).nullable(1);
        /// The broker's id.
        node_id: i32 = all().until(3);
        /// Its host.
        host: String = all().until(3);
        /// Its port.
        port: i32 = all().until(3);
        /// The coordinators, from v4 on.
        coordinators: Vec<Coordinator> = since(4);
    }
    /// One key's coordinator.
    pub struct Coordinator {
        /// The key that was asked for.
        key: String = all();
        /// The broker's id.
        node_id: i32 = all();
        /// Its host.
        host: String = all();
        /// Its port.
        port: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = all().nullable(4);
    }
}
api! { FindCoordinatorRequest => FindCoordinatorResponse: FindCoordinator, 0..=6, flexible 3; }
