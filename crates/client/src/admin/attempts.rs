//! Trying again, within a time and not in silence.

use crate::cluster::Backoff;
use crate::error::Error;
use crate::settings::Settings;
use kohort_wire::ErrorCode;
use std::time::Duration;
use tokio::time::Instant;

/// After so many failures, two to three seconds with the default backoff, it is said what is tried again.
const SILENT_FAILURES: u32 = 5;

/// The attempts at one request, for up to `default.api.timeout.ms`.
pub(super) struct Attempts {
    timeout_ms: u32,
    deadline: Instant,
    backoff: Backoff,
    told: bool,
}

impl Attempts {
    pub(super) fn new(settings: &Settings) -> Self {
        let timeout_ms = settings.default_api_timeout_ms;
        Self {
            timeout_ms,
            deadline: Instant::now() + Duration::from_millis(timeout_ms.into()),
            backoff: Backoff::new(settings.retry_backoff_ms, settings.retry_backoff_max_ms),
            told: false,
        }
    }

    /// Waits for the next attempt, or gives the error back where none helps or the time is over.
    pub(super) async fn again(&mut self, error: Error) -> Result<(), Error> {
        if !may_help(&error) || Instant::now() >= self.deadline {
            return Err(error);
        }
        if !self.told && self.backoff.failures() >= SILENT_FAILURES {
            tracing::warn!("{error}; trying again for {} ms in all", self.timeout_ms);
            self.told = true;
        }
        tokio::time::sleep(self.backoff.next()).await;
        Ok(())
    }
}

/// An unknown topic is worth a second try when one reads, not when one administers.
fn may_help(error: &Error) -> bool {
    error.is_retriable() && error.code() != Some(ErrorCode::UnknownTopicOrPartition)
}
