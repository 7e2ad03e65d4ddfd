//! One file per command.

pub(crate) mod broker;
pub(crate) mod cluster;
pub(crate) mod consume;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod group;
pub(crate) mod lab;
pub(crate) mod produce;
pub(crate) mod replay;
pub(crate) mod topic;
