//! What a consumer tells the application.

use super::Command;
use crate::error::Error;
use crate::records::Records;
use kohort_group::history::RebalanceRecord;
use kohort_group::member::RevokeReason;
use kohort_group::partitions::Partitions;
use kohort_wire::ErrorCode;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What happened. Assignments are told as changes: what came, what is to go, what is lost.
#[derive(Debug)]
pub enum Event {
    /// These partitions came, and are the application's from now on.
    Assigned(Assigned),
    /// These partitions are to go. Letting go ends when this value is dropped; until then they are still the application's.
    Revoked(Revocation),
    /// These partitions are gone, and others may have them already: stop, and commit nothing of them.
    Lost(Lost),
    /// Records of one partition.
    Records(Records),
    /// All that is assigned has been delivered up to its end, as it was when it was fetched last.
    AtEnd,
    /// A rebalance is under way. Partitions that do not move deliver on; whoever has to let go of some should do so in time.
    Rebalance {
        /// Why, in words.
        cause: String,
        /// When the group goes on without this member.
        deadline: Instant,
    },
    /// A rebalance has ended: what it was about, and what it cost.
    Rebalanced(Box<RebalanceRecord>),
    /// Something went wrong, and the consumer goes on by itself.
    Warning {
        /// The broker's code, if it sent one.
        code: Option<ErrorCode>,
        /// What happened, and what the consumer does about it.
        text: String,
    },
    /// The consumer cannot go on. What it had is let go or lost; [`Event::Closed`] follows.
    Error(Error),
    /// It has ended. Nothing follows but this.
    Closed,
}

/// Partitions that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// What came. It may be nothing: then only the generation is new.
    pub added: Partitions,
    /// Everything that the member owns now.
    pub owned: Partitions,
    /// The group's generation.
    pub generation: i32,
    /// The assignor that the group agreed on.
    pub protocol: String,
    /// Whether the leader said what to revoke (see the `explicit.revocation` setting), rather than members comparing.
    pub explicit: bool,
}

/// Partitions that are lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What is lost. Among it may be what a [`Revocation`] named before, if it was let go of too late.
    pub partitions: Partitions,
    /// Why, in words.
    pub why: String,
    /// The last generation in which they were owned.
    pub generation: i32,
}

/// Partitions that are to be let go of: a value that is held as long as that takes.
///
/// The group waits for it, up to [`deadline`](Revocation::deadline), and the new owner waits for the group; so finish what is under
/// way, no more. Positions are committed by themselves afterwards, unless that is switched off.
#[derive(Debug)]
pub struct Revocation {
    /// What to let go of. Nothing of it is delivered any more.
    pub partitions: Partitions,
    /// Why.
    pub reason: RevokeReason,
    /// When the group goes on without this member, and the partitions are lost.
    pub deadline: Instant,
    /// The generation in which they were owned.
    pub generation: i32,
    pub(super) commands: mpsc::UnboundedSender<Command>,
}

impl Revocation {
    /// Lets go. Dropping the value does the same.
    pub fn release(self) {}
}

impl Drop for Revocation {
    fn drop(&mut self) {
        let released = std::mem::take(&mut self.partitions);
        // If nobody listens any more, there is nothing to let go of.
        let _ = self.commands.send(Command::Released(released));
    }
}
