//! Kafka's wire format: bytes to messages and back. Knows no state and does no IO.
//!
//! ```text
//!   frame ─▶ header ─▶ messages::{JoinGroupRequest, …}     one table per API, all versions
//!                        └─▶ embedded (what members say to each other) · records (batches v2)
//! ```
//!
//! Every message is a table of fields with the versions in which each exists (`table.rs`); encoding and decoding are
//! derived from it. Decoding never panics, and never allocates more than a small multiple of the bytes at hand: counts taken
//! from the wire are checked against what is left before anything is reserved.

#[macro_use]
mod table;
pub mod api;
pub mod embedded;
pub mod error_code;
pub mod frame;
pub mod header;
pub mod messages;
pub mod primitives;
#[cfg(test)]
mod proofs;
pub mod records;

pub use api::{ApiKey, ApiRequest};
pub use error_code::ErrorCode;
pub use primitives::{Decoder, Encoder, WireError};
