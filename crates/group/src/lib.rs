//! Kafka's group protocol, both ends, as pure state machines.
//!
//! ```text
//!     member ── JoinGroup, SyncGroup, Heartbeat, … ──▶ coordinator
//!       ▲  one `handle(now, input, out)` on each side; no clock, no IO, no hash map
//! ```
//!
//! The contract of both machines: `handle` is the only way to change state and cannot fail; `now` never decreases;
//! `deadline()` is the earliest alarm; the shell feeds that alarm back when it is due. A trace of `(Timestamp, Input)` replayed
//! gives the same outputs.

#[macro_use]
pub mod museum;

pub mod assign;
pub mod coordinator;
pub mod history;
pub mod member;
pub mod partitions;
pub mod reason;
pub mod time;
pub mod topics;
