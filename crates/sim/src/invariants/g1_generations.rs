//! G1: the generation never goes back, also over a restart of the coordinator, and one generation has one assignor.
//!
//! Would have caught a coordinator that forgets a completed join phase in a crash, and gives its generation out again with other
//! members in it (Kafka's does).

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

    fn see(&mut self, _: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        let Fact::Sent {
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
        if join.generation_id == self.last && join.protocol_name != self.protocol {
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
