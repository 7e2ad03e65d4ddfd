//! F2: a commit is accepted only from a current member at the current generation.
//!
//! Would have caught a coordinator that lets a member of the past generation overwrite its successor's offsets.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::Ledger;
use kohort_group::coordinator::record::Record;

pub(crate) struct CommitsAreFenced;

impl Invariant for CommitsAreFenced {
    fn name(&self) -> &'static str {
        "F2 only members commit"
    }

    fn see(&mut self, _: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        let Fact::Appending(Record::Offset { value: Some(_), .. }) = fact else {
            return Ok(());
        };
        let commit = ledger
            .committing
            .as_ref()
            .ok_or("an offset is written that nobody has committed")?;
        let Some(group) = &ledger.group else {
            return Err(format!("{commit:?} is accepted, but there is no group"));
        };
        let member = group
            .members
            .iter()
            .any(|m| m.member_id == commit.member_id);
        if commit.generation != group.generation || !member {
            return Err(format!(
                "{commit:?} is accepted in generation {} of {:?}",
                group.generation,
                group
                    .members
                    .iter()
                    .map(|m| &m.member_id)
                    .collect::<Vec<_>>()
            ));
        }
        Ok(())
    }
}
