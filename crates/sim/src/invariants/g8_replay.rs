//! G8: replaying the log gives the hard state.
//!
//! Would have caught a coordinator whose memory and log disagree after a static replace whose append failed.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;

pub(crate) struct Replay;

impl Invariant for Replay {
    fn name(&self) -> &'static str {
        "G8 the log is the state"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Replayed(verdict) => verdict.clone(),
            _ => Ok(()),
        }
    }
}
