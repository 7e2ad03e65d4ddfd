//! Assignors and the leader's step: the reports they answer, the properties they have, and what members are told.

#![allow(clippy::unwrap_used)]

mod leader;
mod properties;
mod reported;
mod reports;
mod support;
