//! L5: a member that gives no sign of life for its session timeout is out. L6: a member that has left is out at once. As long as one of
//! them counts as a member, no other is told by a heartbeat that all is well, and no leader finds it in its list.
//!
//! Would have caught a coordinator that answers a leave, and lets the group find out by the leaver's session.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::coordinator::{GroupRequest, GroupResponse, RequestId};
use kohort_wire::messages::JoinGroupResponse;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct TheGone {
    alive: BTreeMap<String, Alive>,
    /// Who has left, and no join phase has been completed since.
    left: BTreeSet<String>,
    /// Who waits for an answer to a join or sync; the coordinator keeps it.
    waiting: BTreeMap<RequestId, Waiting>,
    generation: i32,
}

struct Alive {
    session: u64,
    /// Its last sign of life.
    sign: u64,
    instance: Option<String>,
}

struct Waiting {
    member: String,
    /// If it is a join: the session timeout and the instance id.
    joins: Option<(u64, Option<String>)>,
}

impl Invariant for TheGone {
    fn name(&self) -> &'static str {
        "L5 L6 the gone are out"
    }

    fn see(&mut self, now: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Asked { id, request, .. } => self.asked(now, *id, request),
            Fact::Answered { id, response } => return self.answered(now, *id, response),
            Fact::Unanswered(id) => {
                self.waiting.remove(id);
            }
            Fact::CoordinatorDown | Fact::Unloaded => *self = Self::default(),
            _ => {}
        }
        Ok(())
    }
}

impl TheGone {
    fn asked(&mut self, now: u64, id: RequestId, request: &GroupRequest) {
        let (member, joins) = match request {
            GroupRequest::JoinGroup(join) => {
                let session = u64::try_from(join.session_timeout_ms).unwrap_or(0);
                let instance = join.group_instance_id.clone();
                (&join.member_id, Some((session, instance)))
            }
            GroupRequest::SyncGroup(sync) => (&sync.member_id, None),
            GroupRequest::Heartbeat(beat) => (&beat.member_id, None),
            GroupRequest::OffsetCommit(commit) => (&commit.member_id, None),
            _ => return,
        };
        if let Some(alive) = self.alive.get_mut(member) {
            alive.sign = now;
        }
        let member = member.clone();
        self.waiting.insert(id, Waiting { member, joins });
    }

    fn answered(
        &mut self,
        now: u64,
        id: RequestId,
        response: &GroupResponse,
    ) -> Result<(), String> {
        let waited = self.waiting.remove(&id);
        if let Some(waited) = &waited
            && let Some(alive) = self.alive.get_mut(&waited.member)
        {
            alive.sign = now;
        }
        match response {
            GroupResponse::JoinGroup(join) if join.error_code.is_none() => {
                if let Some((session, instance)) = waited.and_then(|waited| waited.joins) {
                    // A static member that comes back takes the place of what it was.
                    if instance.is_some() {
                        self.alive.retain(|_, other| other.instance != instance);
                    }
                    let alive = Alive {
                        session,
                        sign: now,
                        instance,
                    };
                    self.alive.insert(join.member_id.clone(), alive);
                }
                self.joined(now, join)
            }
            GroupResponse::LeaveGroup(leave) if leave.error_code.is_none() => {
                let members = leave.members.iter().filter(|m| m.error_code.is_none());
                for member in members.filter(|m| !m.member_id.is_empty()) {
                    // It may have been the last that a join phase waited for, which is complete by now.
                    if self.alive.remove(&member.member_id).is_some() {
                        self.left.insert(member.member_id.clone());
                    }
                }
                Ok(())
            }
            GroupResponse::Heartbeat(beat) if beat.error_code.is_none() => self.all_well(now),
            _ => Ok(()),
        }
    }

    fn joined(&mut self, now: u64, join: &JoinGroupResponse) -> Result<(), String> {
        if join.members.is_empty() {
            return Ok(());
        }
        let listed: BTreeSet<&String> = join.members.iter().map(|m| &m.member_id).collect();
        if let Some(member) = self.left.iter().find(|member| listed.contains(member)) {
            return Err(format!("{member} has left, but is in the leader's list"));
        }
        self.left.clear();
        // A leader that came back in the same generation sees the list of then.
        if join.generation_id == self.generation {
            return Ok(());
        }
        self.generation = join.generation_id;
        self.alive.retain(|member, _| listed.contains(member));
        self.overdue(now)?;
        // All of them have a new session then, as Kafka's have, a static member that has not come back included.
        self.alive.values_mut().for_each(|alive| alive.sign = now);
        Ok(())
    }

    fn all_well(&self, now: u64) -> Result<(), String> {
        match self.left.first() {
            Some(member) => Err(format!(
                "{member} has left, but another member's heartbeat is answered as if nothing had happened"
            )),
            None => self.overdue(now),
        }
    }

    fn overdue(&self, now: u64) -> Result<(), String> {
        let waits = |member: &String| self.waiting.values().any(|w| w.member == *member);
        let late = self
            .alive
            .iter()
            .find(|(member, alive)| alive.sign + alive.session < now && !waits(member));
        match late {
            Some((member, alive)) => Err(format!(
                "{member} gave its last sign of life at {}, and its session of {} ms is over, but it is still a member",
                alive.sign, alive.session
            )),
            None => Ok(()),
        }
    }
}
