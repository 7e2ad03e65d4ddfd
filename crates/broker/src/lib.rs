//! An embeddable Kafka broker.

mod clock;
mod log;
mod settings;

pub use settings::{Settings, SettingsError};
