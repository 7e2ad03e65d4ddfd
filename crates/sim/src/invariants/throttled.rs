//! KIP-219: after an answer that asks for silence, nothing but heartbeats and a leave is sent on that connection before the time is up.
//! The member's clock may be fast.
//!
//! Would have caught a SyncGroup that is sent in the same breath as a throttled JoinGroup's answer is read.

use super::Invariant;
use crate::fact::{Fact, Process};
use crate::ledger::Ledger;
use crate::world::MOST_OFF;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_group::member::{Input, Lane, Output, Token};
use std::collections::BTreeMap;

#[derive(Default)]
pub(crate) struct Throttled {
    lanes: BTreeMap<(Process, Token), Lane>,
    quiet_until: BTreeMap<(Process, Lane), u64>,
}

impl Invariant for Throttled {
    fn name(&self) -> &'static str {
        "KIP-219 throttled members keep quiet"
    }

    fn see(&mut self, now: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Told {
                process,
                input: Input::Response(token, response),
            } => {
                if let Some(lane) = self.lanes.remove(&(*process, *token)) {
                    let quiet = u64::try_from(throttle_ms(response)).unwrap_or(0);
                    let until = now + quiet * 1_000 / (1_000 + MOST_OFF);
                    let known = self.quiet_until.entry((*process, lane)).or_default();
                    *known = until.max(*known);
                }
                Ok(())
            }
            Fact::Said {
                process,
                output:
                    Output::Send {
                        token,
                        lane,
                        request,
                        ..
                    },
            } => {
                self.lanes.insert((*process, *token), *lane);
                let until = self.quiet_until.get(&(*process, *lane)).copied();
                let exempt = matches!(
                    request,
                    GroupRequest::Heartbeat(_) | GroupRequest::LeaveGroup(_)
                );
                match until {
                    Some(until) if now + 1 < until && !exempt => Err(format!(
                        "process {process} is to keep quiet on {lane:?} until {until}, but sends {request:?}"
                    )),
                    _ => Ok(()),
                }
            }
            Fact::Said {
                process,
                output: Output::Disconnect(lane),
            } => {
                self.quiet_until.remove(&(*process, *lane));
                Ok(())
            }
            Fact::Ended(process) => {
                self.lanes.retain(|(owner, _), _| owner != process);
                self.quiet_until.retain(|(owner, _), _| owner != process);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn throttle_ms(response: &GroupResponse) -> i32 {
    match response {
        GroupResponse::JoinGroup(body) => body.throttle_time_ms,
        GroupResponse::SyncGroup(body) => body.throttle_time_ms,
        GroupResponse::Heartbeat(body) => body.throttle_time_ms,
        GroupResponse::LeaveGroup(body) => body.throttle_time_ms,
        GroupResponse::OffsetCommit(body) => body.throttle_time_ms,
        GroupResponse::OffsetFetch(body) => body.throttle_time_ms,
        _ => 0,
    }
}
