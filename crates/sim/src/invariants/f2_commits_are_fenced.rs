//! F2: a commit is accepted only from a current member at the current generation.
//!
//! Would have caught a coordinator that lets a member of the past generation overwrite its successor's offsets.

use super::Invariant;
use crate::fact::Fact;
use crate::ledger::{Issued, Ledger};
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
        let Issued {
            generation,
            members,
        } = &ledger.issued;
        if commit.generation != *generation || !members.contains(&commit.member_id) {
            return Err(format!(
                "{commit:?} is accepted in generation {generation} of {members:?}"
            ));
        }
        Ok(())
    }
}
