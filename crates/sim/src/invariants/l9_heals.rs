//! L9: no member ends for good, but the one whose place was taken by another process with its `group.instance.id`, or whose id is gone
//! with the coordinator that gave it before it was stored (see the ledger's `forgotten`).
//!
//! Would have caught KAFKA-15106: an assignor that failed for ever, and with it all members.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::member::Output;
use kohort_wire::ErrorCode;

pub(crate) struct Heals;

impl Invariant for Heals {
    fn name(&self) -> &'static str {
        "L9 members heal"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Said {
                process,
                output: Output::Fatal(fatal),
            } => {
                let fenced = fatal.code == Some(ErrorCode::FencedInstanceId)
                    && (ledger.holders.get(process)).is_some_and(|me| me.fenced || me.forgotten);
                if fenced {
                    Ok(())
                } else {
                    Err(format!("process {process} cannot go on: {fatal}"))
                }
            }
            _ => Ok(()),
        }
    }
}
