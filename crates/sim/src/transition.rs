//! Where a machine stood before an input, and where it stands after it.

use kohort_group::member::StateName;
use std::fmt;

/// A change of state by one input. What an input passes through on its way is not seen: a group whose last member joins
/// in Stable goes to CompletingRebalance at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transition {
    /// Of the group at the coordinator, by Kafka's names; "Dead" where there is no group.
    Group(&'static str, &'static str),
    /// Of a member.
    Member(StateName, StateName),
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transition::Group(from, to) => write!(f, "group: {from} → {to}"),
            Transition::Member(from, to) => write!(f, "member: {from:?} → {to:?}"),
        }
    }
}
