//! InitProducerId (22): an identity for an idempotent or transactional producer (KIP-98). A new epoch of a known id (v3, KIP-360).

use crate::error_code::ErrorCode;

message! {
    /// Asks for a producer id.
    pub struct InitProducerIdRequest {
        /// The transactional id, null outside transactions.
        transactional_id: Option<String> = all().nullable(0);
        /// Milliseconds after which an idle transaction is aborted.
        transaction_timeout_ms: i32 = all();
        /// The producer id so far, −1 if there is none.
        producer_id: i64 = since(3) => -1;
        /// The epoch so far, −1 if there is none.
        producer_epoch: i16 = since(3) => -1;
    }
    /// The identity.
    pub struct InitProducerIdResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The producer id, −1 on error.
        producer_id: i64 = all() => -1;
        /// Its epoch.
        producer_epoch: i16 = all();
    }
}
api! { InitProducerIdRequest => InitProducerIdResponse: InitProducerId, 0..=5, flexible 2; }
