//! The client's end: one [`Member`] for each consumer in a group.
//!
//! ```text
//!   Subscribe, Polled, Released ─▶ ┌────────┐ ─▶ Assign · Revoke · Lost        (values, not callbacks)
//!   Response, Failed            ─▶ │ Member │ ─▶ Send(token, lane, request)
//!   CoordinatorFound, Topics    ─▶ │        │ ─▶ FindCoordinator · RefreshTopics
//!   Alarm                       ─▶ └────────┘ ─▶ Committed · Fatal · Rebalanced
//! ```

pub mod config;
pub mod input;
pub mod output;

pub use config::MemberConfig;
pub use input::{Alarm, CommitId, Input, Offset, SendFailure, Subscription, Token};
pub use output::{CommitError, Fatal, Lane, Output, RevokeReason};
