//! Short names for members: what stands before the generated part of their ids, as far as that tells them apart.

use kohort::RebalanceRecord;
use std::collections::{BTreeMap, BTreeSet};

/// The generated part: a hyphen, and a UUID.
const GENERATED: usize = 37;

/// How members are called.
#[derive(Default)]
pub(super) struct Names {
    /// The ids of dynamic members that begin alike.
    alike: BTreeMap<String, BTreeSet<String>>,
    fixed: BTreeSet<String>,
}

impl Names {
    /// Meets the members of a record.
    pub(super) fn learn(&mut self, record: &RebalanceRecord) {
        let members = record.phases.iter().flat_map(|phase| &phase.members);
        let members = members.map(|member| (&member.member_id, &member.instance_id));
        let causes = record.causes.iter();
        let causes = causes.map(|cause| (&cause.member_id, &cause.instance_id));
        for (id, instance) in members.chain(causes) {
            match instance {
                Some(instance) => {
                    self.fixed.insert(instance.clone());
                }
                None => {
                    let start = start(id).to_owned();
                    self.alike.entry(start).or_default().insert(id.clone());
                }
            }
        }
    }

    /// What to call a member.
    pub(super) fn of<'a>(&self, id: &'a str) -> &'a str {
        let start = start(id);
        let alone = self.alike.get(start).is_none_or(|ids| ids.len() <= 1);
        if start.is_empty() {
            id
        } else if alone || self.fixed.contains(start) {
            start
        } else {
            // Some of the generated part tells them apart.
            id.get(..start.len() + 6).unwrap_or(id)
        }
    }
}

fn start(id: &str) -> &str {
    let generated = id
        .len()
        .checked_sub(GENERATED)
        .filter(|at| id.is_char_boundary(*at));
    match generated.map(|at| id.split_at(at)) {
        Some((start, uuid)) if uuid.starts_with('-') => start,
        _ => id,
    }
}
