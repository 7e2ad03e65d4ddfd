//! Assignors: who gets which partition.

use std::fmt;

/// A way to share partitions out.
pub trait Assignor: fmt::Debug + Send + Sync {
    /// The name on the wire.
    fn name(&self) -> &str;
}
