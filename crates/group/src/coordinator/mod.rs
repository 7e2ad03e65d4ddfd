//! The broker's end: one [`Coordinator`] for each partition of `__consumer_offsets`.
//!
//! ```text
//!   Request ─▶ ┌─────────────┐ ─▶ Append(n, record)     the shell writes it, then says Appended(n)
//!   Alarm   ─▶ │ Coordinator │ ─▶ Reply(id, response)   held back until `after` is durable
//!   Replay  ─▶ └─────────────┘ ─▶ Record(rebalance)
//! ```

pub mod config;
pub mod input;
pub mod output;
pub mod record;

pub use config::CoordinatorConfig;
pub use input::{Alarm, Client, ConnectionId, GroupRequest, Input, RequestId};
pub use output::{GroupResponse, Output};
