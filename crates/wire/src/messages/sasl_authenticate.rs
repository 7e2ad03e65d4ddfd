//! SaslAuthenticate (36): the mechanism's own messages (KIP-152). The session's lifetime (v1, KIP-368).

use crate::error_code::ErrorCode;
use bytes::Bytes;

message! {
    /// A message of the client.
    pub struct SaslAuthenticateRequest {
        /// What only the mechanism reads.
        auth_bytes: Bytes = all();
    }
    /// A message of the broker.
    pub struct SaslAuthenticateResponse {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = all().nullable(0);
        /// What only the mechanism reads.
        auth_bytes: Bytes = all();
        /// Milliseconds after which the client must authenticate again, 0 for never.
        session_lifetime_ms: i64 = since(1);
    }
}
api! { SaslAuthenticateRequest => SaslAuthenticateResponse: SaslAuthenticate, 0..=2, flexible 2; }
