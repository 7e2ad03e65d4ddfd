//! G1: the generation never goes back, and one generation has one assignor. A coordinator that is loaded goes on from the last
//! generation whose assignment was stored, as Kafka's does: one that no member has synced in may be issued again.
//!
//! Would have caught a coordinator that gives an assigned generation out again, with other members in it, after a crash.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::coordinator::GroupResponse;

#[derive(Default)]
pub(crate) struct Generations {
    last: i32,
    protocol: Option<String>,
}

impl Invariant for Generations {
    fn name(&self) -> &'static str {
        "G1 generations ascend"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        if matches!(fact, Fact::CoordinatorDown | Fact::Unloaded) {
            let stored = ledger.stored.generation;
            if stored < self.last {
                (self.last, self.protocol) = (stored, None);
            }
            return Ok(());
        }
        let Fact::Answered {
            response: GroupResponse::JoinGroup(join),
            ..
        } = fact
        else {
            return Ok(());
        };
        if !join.error_code.is_none() {
            return Ok(());
        }
        if join.generation_id < self.last {
            return Err(format!(
                "generation {} after generation {}",
                join.generation_id, self.last
            ));
        }
        let other = self.protocol.is_some() && join.protocol_name != self.protocol;
        if join.generation_id == self.last && other {
            return Err(format!(
                "generation {} with {:?} and with {:?}",
                self.last, self.protocol, join.protocol_name
            ));
        }
        self.last = join.generation_id;
        self.protocol.clone_from(&join.protocol_name);
        Ok(())
    }
}
