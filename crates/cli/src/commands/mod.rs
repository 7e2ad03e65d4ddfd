//! One file per command.

pub(crate) mod broker;
mod cluster;
pub(crate) mod consume;
pub(crate) mod lab;
pub(crate) mod produce;
pub(crate) mod topic;
