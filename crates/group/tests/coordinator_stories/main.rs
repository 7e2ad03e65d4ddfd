//! Stories of the coordinator: requests in, answers out, under a clock that stands until it is moved.

#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod commits;
mod fixed;
mod join_phase;
mod reasons;
mod recovery;
mod reported;
mod script;
mod sessions;

mod storm;
mod sync_phase;
