//! I7: eager members own nothing when they join; the others are told to release only by an assignment, but for topics that are
//! no longer wanted and a close; and a fenced member is told `Lost`, never `Revoke`.
//!
//! Would have caught KAFKA-13419: a member whose generation alone was reset did not take its partitions for lost.

use super::Invariant;
use crate::fact::{Fact, Process};
use crate::ledger::Ledger;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_group::member::{Input, Output, RevokeReason};
use kohort_wire::ErrorCode;
use std::collections::BTreeMap;

/// What a member is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Synced,
    Fenced,
    Other,
}

#[derive(Default)]
pub(crate) struct WhenToRevoke {
    moments: BTreeMap<Process, Moment>,
}

impl Invariant for WhenToRevoke {
    fn name(&self) -> &'static str {
        "I7 when to revoke"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Told { process, input } => {
                self.moments.insert(*process, moment(input));
                Ok(())
            }
            Fact::Said { process, output } => {
                let Some(holder) = ledger.holders.get(process) else {
                    return Ok(());
                };
                match output {
                    Output::Send {
                        request: GroupRequest::JoinGroup(_),
                        ..
                    } if holder.eager && !holder.owned.is_empty() => Err(format!(
                        "process {process} is eager and joins while it owns {}",
                        holder.owned
                    )),
                    Output::Revoke {
                        reason, partitions, ..
                    } => {
                        let moment = self.moments.get(process).copied().unwrap_or(Moment::Other);
                        let right = match reason {
                            _ if moment == Moment::Fenced => false,
                            RevokeReason::Eager => holder.eager,
                            RevokeReason::Reassigned => moment == Moment::Synced && !holder.eager,
                            RevokeReason::Unsubscribed | RevokeReason::Closing => true,
                        };
                        if right {
                            Ok(())
                        } else {
                            Err(format!(
                                "process {process} is told to release {partitions} as {reason:?} out of turn"
                            ))
                        }
                    }
                    _ => Ok(()),
                }
            }
            Fact::Ended(process) => {
                self.moments.remove(process);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

fn moment(input: &Input) -> Moment {
    let Input::Response(_, response) = input else {
        return Moment::Other;
    };
    let code = match response {
        GroupResponse::SyncGroup(sync) if sync.error_code.is_none() => return Moment::Synced,
        GroupResponse::SyncGroup(sync) => sync.error_code,
        GroupResponse::JoinGroup(join) => join.error_code,
        GroupResponse::Heartbeat(beat) => beat.error_code,
        _ => return Moment::Other,
    };
    match code {
        ErrorCode::UnknownMemberId | ErrorCode::IllegalGeneration | ErrorCode::FencedInstanceId => {
            Moment::Fenced
        }
        _ => Moment::Other,
    }
}
