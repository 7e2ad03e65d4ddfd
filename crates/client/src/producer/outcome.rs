//! What becomes of a record: one outcome per batch, which its records share.

use crate::error::Error;
use std::sync::Arc;
use tokio::sync::watch;

/// Where a record was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The partition.
    pub partition: i32,
    /// The offset, −1 if the broker did not say (acks=0, or a batch that had been stored before).
    pub offset: i64,
}

#[derive(Clone, Debug)]
enum State {
    Pending,
    Stored {
        partition: i32,
        base: i64,
    },
    Failed(Error),
    /// It was too large for the broker and went out in pieces: the first index of each, and its own outcome.
    Split(Arc<Vec<(usize, Arc<Outcome>)>>),
}

#[derive(Debug)]
pub(super) struct Outcome(watch::Sender<State>);

impl Outcome {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(State::Pending)))
    }

    pub(super) fn stored(&self, partition: i32, base: i64) {
        self.0.send_replace(State::Stored { partition, base });
    }

    pub(super) fn failed(&self, error: Error) {
        self.0.send_replace(State::Failed(error));
    }

    pub(super) fn split(&self, pieces: Vec<(usize, Arc<Outcome>)>) {
        self.0.send_replace(State::Split(Arc::new(pieces)));
    }
}

/// A record that was accepted for sending. Dropping it does not take the record back.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub(super) outcome: Arc<Outcome>,
    pub(super) index: usize,
}

impl Delivery {
    /// Waits until the record is stored as `acks` demands.
    ///
    /// # Errors
    /// What the broker refused it for, or [`Error::TimedOut`] after `delivery.timeout.ms`: it may be stored or not.
    pub async fn wait(self) -> Result<Stored, Error> {
        let Delivery {
            mut outcome,
            mut index,
        } = self;
        loop {
            let state = {
                let mut states = outcome.0.subscribe();
                let settled = states
                    .wait_for(|state| !matches!(state, State::Pending))
                    .await;
                settled.map_err(|_| Error::Closed)?.clone()
            };
            match state {
                State::Stored { partition, base } => {
                    let offset = if base < 0 { -1 } else { base + index as i64 };
                    return Ok(Stored { partition, offset });
                }
                State::Failed(error) => return Err(error),
                State::Split(pieces) => {
                    let at = pieces
                        .partition_point(|(first, _)| *first <= index)
                        .saturating_sub(1);
                    let (first, piece) = &pieces[at];
                    index -= first;
                    outcome = piece.clone();
                }
                State::Pending => {}
            }
        }
    }
}
