//! G4: instance id and member id belong together one to one in what is written to the log, and the leader is a member.
//!
//! Would have caught a coordinator that keeps the old id of a static member beside its new one.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::coordinator::record::Record;
use std::collections::BTreeSet;

pub(crate) struct Instances;

impl Invariant for Instances {
    fn name(&self) -> &'static str {
        "G4 one member for an instance id"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        let Fact::Appending(Record::Group {
            value: Some(group), ..
        }) = fact
        else {
            return Ok(());
        };
        let mut ids = BTreeSet::new();
        let mut instances = BTreeSet::new();
        for member in &group.members {
            if !ids.insert(&member.member_id) {
                return Err(format!("member id {} twice", member.member_id));
            }
            if let Some(instance) = &member.group_instance_id
                && !instances.insert(instance)
            {
                return Err(format!("instance id {instance} twice"));
            }
        }
        match &group.leader {
            Some(leader) if !group.members.is_empty() && !ids.contains(leader) => {
                Err(format!("the leader {leader} is not among {ids:?}"))
            }
            _ => Ok(()),
        }
    }
}
