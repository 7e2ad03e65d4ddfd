//! A hook for tests: looks at every request before it is served.

use bytes::Bytes;
use kohort_wire::ApiKey;
use std::sync::Arc;
use std::time::Duration;

/// A request, as it came.
#[derive(Clone, Debug)]
pub struct Intercepted {
    /// What is asked for.
    pub api: ApiKey,
    /// The version of the request.
    pub version: i16,
    /// The client id of its header.
    pub client_id: String,
    /// Numbers the connections in the order in which they were accepted.
    pub connection: u64,
    /// The request without its header.
    pub body: Bytes,
}

/// What is to become of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It is served.
    Serve,
    /// It is served after this time; its connection waits.
    Delay(Duration),
    /// It is served, but its answer is lost with the connection.
    LoseAnswer,
    /// It is lost with the connection.
    Close,
}

/// Decides what becomes of a request.
pub(crate) type Intercept = Arc<dyn Fn(&Intercepted) -> Verdict + Send + Sync>;
