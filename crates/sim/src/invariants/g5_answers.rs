//! G5: every request gets exactly one answer, or its connection broke; and none is parked for ever.
//!
//! Would have caught KAFKA-20938: a parked SyncGroup of a member that leaves is never answered.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::{Ledger, Question};
use kohort_group::coordinator::RequestId;

/// No join or sync may be parked for longer: rebalance timeouts are at most half a minute here.
const LONGEST_PARK_MS: u64 = 150_000;

#[derive(Default)]
pub(crate) struct Answers {
    highest: Option<RequestId>,
}

impl Invariant for Answers {
    fn name(&self) -> &'static str {
        "G5 one answer"
    }

    fn see(&mut self, now: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Asked { id, .. } => {
                self.highest = Some(*id);
                let late = ledger
                    .requests
                    .iter()
                    .find(|(_, asked)| !asked.abandoned && asked.at + LONGEST_PARK_MS < now);
                match late {
                    Some((id, asked)) => Err(format!(
                        "request {} of process {} ({}) was never answered since {}",
                        id.0,
                        asked.process,
                        match asked.what {
                            Question::Join => "JoinGroup",
                            Question::Commit(_) => "OffsetCommit",
                            Question::Other => "not JoinGroup",
                        },
                        asked.at
                    )),
                    None => Ok(()),
                }
            }
            Fact::Unloaded => match ledger.requests.iter().find(|(_, asked)| !asked.abandoned) {
                Some((id, _)) => Err(format!(
                    "request {} is still parked, though the coordinator has given its groups away",
                    id.0
                )),
                None => Ok(()),
            },
            Fact::Answered { id, response } if !ledger.requests.contains_key(id) => Err(format!(
                "request {} is answered {response:?}, but it waits for nothing",
                id.0
            )),
            _ => Ok(()),
        }
    }
}
