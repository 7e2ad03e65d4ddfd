//! The broker over loopback, with frames made by `kohort-wire`.

#![allow(clippy::unwrap_used)]

mod client;
mod groups;
mod life;
mod records;
mod storage;
mod topics;
