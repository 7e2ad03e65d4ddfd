//! Stories of a member against a coordinator that the test plays, under a virtual clock: each file a chapter, each test a rule.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod chaos;
mod closing;
mod commits;
mod errors;
mod heartbeats;
mod joining;
mod offsets;
mod reported;
mod revoking;
mod script;
mod subscribing;
