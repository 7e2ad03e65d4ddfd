//! An embeddable Kafka broker.
//!
//! ```no_run
//! # async fn example() -> Result<(), kohort_broker::BrokerError> {
//! let broker = kohort_broker::Broker::start().await?;
//! println!("clients connect to {}", broker.address());
//! broker.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! ```text
//!   listener ─▶ router ─▶ handlers::{produce, fetch, …} ─▶ topics ─▶ partition ─▶ log (memory or disk)
//!                           └▶ groups ─▶ kohort_group's Coordinator, one for each partition of __consumer_offsets
//! ```

mod accept;
mod broker;
mod cleaner;
mod clock;
mod groups;
mod handlers;
mod intercept;
mod listener;
mod log;
mod node;
mod partition;
mod router;
mod settings;
mod storage;
mod topic_config;
mod topics;

pub use accept::{Accept, Accepted};
pub use broker::{Broker, BrokerBuilder, BrokerError};
pub use intercept::{Intercepted, Verdict};
pub use settings::{Settings, SettingsError};
pub use storage::StorageError;
