//! SaslHandshake (17): which SASL mechanism the client will use. It has no flexible version.

use crate::error_code::ErrorCode;

message! {
    /// The client's choice.
    pub struct SaslHandshakeRequest {
        /// The mechanism: `PLAIN`, `SCRAM-SHA-256`, …
        mechanism: String = all();
    }
    /// Whether the broker knows it. After v0 bare tokens follow, after v1 SaslAuthenticate requests (KIP-152).
    pub struct SaslHandshakeResponse {
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The mechanisms that the broker knows.
        mechanisms: Vec<String> = all();
    }
}
api! { SaslHandshakeRequest => SaslHandshakeResponse: SaslHandshake, 0..=1, flexible 32767; }
