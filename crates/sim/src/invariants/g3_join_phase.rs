//! G3: when a join phase completes, the leader is a member, all members support the assignor, and the leader's list is exactly
//! the membership.
//!
//! Would have caught KAFKA-9801: a static member that came back while the round completed was in no list and was given nothing.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::coordinator::{GroupRequest, GroupResponse, RequestId};
use kohort_wire::messages::JoinGroupResponse;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(crate) struct JoinPhase {
    generation: i32,
    /// The leader's list of this generation, and the dynamic members that were answered.
    list: Option<BTreeSet<String>>,
    answered: BTreeSet<String>,
    /// What each join under way offers, and each member id.
    asked: BTreeMap<RequestId, (bool, BTreeSet<String>)>,
    offers: BTreeMap<String, BTreeSet<String>>,
}

impl Invariant for JoinPhase {
    fn name(&self) -> &'static str {
        "G3 the join phase"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        match fact {
            Fact::Asked {
                id,
                request: GroupRequest::JoinGroup(join),
                ..
            } => {
                let names: BTreeSet<String> =
                    join.protocols.iter().map(|p| p.name.clone()).collect();
                if !join.member_id.is_empty() {
                    self.offers.insert(join.member_id.clone(), names.clone());
                }
                self.asked
                    .insert(*id, (join.group_instance_id.is_some(), names));
                Ok(())
            }
            Fact::Answered {
                id,
                response: GroupResponse::JoinGroup(join),
            } => match self.asked.remove(id) {
                Some((is_static, names)) if join.error_code.is_none() => {
                    self.answer(join, is_static, names)
                }
                _ => Ok(()),
            },
            Fact::CoordinatorDown => {
                *self = Self::default();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl JoinPhase {
    fn answer(
        &mut self,
        join: &JoinGroupResponse,
        is_static: bool,
        names: BTreeSet<String>,
    ) -> Result<(), String> {
        if join.generation_id != self.generation {
            self.generation = join.generation_id;
            self.list = None;
            self.answered.clear();
        }
        self.offers.insert(join.member_id.clone(), names);
        // A static member that takes its old place in the same generation has a new id, which no list has.
        if !is_static {
            self.answered.insert(join.member_id.clone());
        }
        if !join.members.is_empty() {
            let list: BTreeSet<String> = join.members.iter().map(|m| m.member_id.clone()).collect();
            if list.len() != join.members.len() {
                return Err(format!("a member is twice in {list:?}"));
            }
            if join.leader != join.member_id || !list.contains(&join.leader) {
                return Err(format!(
                    "the list {list:?} went to {}, but the leader is {}",
                    join.member_id, join.leader
                ));
            }
            self.supported(join, &list)?;
            if !join.skip_assignment {
                self.list = Some(list);
            }
        }
        if let Some(list) = &self.list
            && let Some(missing) = self.answered.iter().find(|id| !list.contains(*id))
        {
            return Err(format!(
                "{missing} is in generation {}, but the leader's list is {list:?}",
                self.generation
            ));
        }
        Ok(())
    }

    fn supported(&self, join: &JoinGroupResponse, list: &BTreeSet<String>) -> Result<(), String> {
        let name = join.protocol_name.as_deref().unwrap_or("");
        for member in list {
            if let Some(offers) = self.offers.get(member)
                && !offers.contains(name)
            {
                return Err(format!(
                    "{name:?} was chosen, but {member} offers {offers:?}"
                ));
            }
        }
        Ok(())
    }
}
