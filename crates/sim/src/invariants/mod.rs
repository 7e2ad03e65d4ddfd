//! What must hold, whatever breaks: one file for each invariant or small family, with a bug that it would have caught.
//!
//! Ownership is judged at the machine's output: after `Assign`, until `Revoked` or `Lost` (or the process is gone).

use crate::fact::Fact;
use crate::ledger::Ledger;

mod f1_commits_last;
mod f2_commits_are_fenced;
mod f3_commits_are_covered;
mod f4_no_gap;
mod f5_commits_ascend;
mod g1_generations;
mod g3_join_phase;
mod g4_instances;
mod g5_answers;
mod g6_no_busy_loop;
mod g8_replay;
mod i1_one_owner;
mod i2_i3_handover;
mod i4_assignments;
mod i5_wanted;
mod i6_deltas;
mod i7_when_to_revoke;
mod l5_l6_the_gone;
mod l9_heals;
mod r_records;
mod throttled;

/// A rule that is checked at each step.
pub(crate) trait Invariant {
    /// Its id and name.
    fn name(&self) -> &'static str;

    /// Sees a fact, which `ledger` does not know yet; says what is wrong.
    fn see(&mut self, now: u64, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String>;
}

/// All of them. L1, that a run converges, is judged by the world itself.
pub(crate) fn all() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(i1_one_owner::OneOwner),
        Box::new(i2_i3_handover::Handover),
        Box::new(i4_assignments::Assignments),
        Box::new(i5_wanted::Wanted),
        Box::new(i6_deltas::Deltas),
        Box::<i7_when_to_revoke::WhenToRevoke>::default(),
        Box::<g1_generations::Generations>::default(),
        Box::<g3_join_phase::JoinPhase>::default(),
        Box::new(g4_instances::Instances),
        Box::<g5_answers::Answers>::default(),
        Box::<g6_no_busy_loop::NoBusyLoop>::default(),
        Box::new(g8_replay::Replay),
        Box::<f1_commits_last::CommitsLast>::default(),
        Box::new(f2_commits_are_fenced::CommitsAreFenced),
        Box::new(f3_commits_are_covered::CommitsAreCovered),
        Box::new(f4_no_gap::NoGap),
        Box::<f5_commits_ascend::CommitsAscend>::default(),
        Box::new(r_records::Records),
        Box::<l5_l6_the_gone::TheGone>::default(),
        Box::new(l9_heals::Heals),
        Box::<throttled::Throttled>::default(),
    ]
}
