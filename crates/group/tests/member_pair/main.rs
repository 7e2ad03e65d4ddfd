//! Real members and the real coordinator in one room: a virtual clock, connections with a latency that break when told to, and a ledger
//! of who owns what.
#![allow(clippy::unwrap_used, missing_docs, unreachable_pub)]

mod chaos;
mod commits;
mod handover;
mod leaving;
mod records;
mod reported;
mod room;
mod upgrade;
