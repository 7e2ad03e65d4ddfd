//! The broker over loopback, with frames made by `kohort-wire`.

#![allow(clippy::unwrap_used)]

mod client;
mod documented;
mod groups;
mod life;
mod records;
mod storage;
mod topics;
