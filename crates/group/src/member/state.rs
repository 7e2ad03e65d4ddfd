//! The member's states, and what each of them waits for.
//!
//! | state | waits for | goes to |
//! |---|---|---|
//! | Unsubscribed | a subscription | Joining |
//! | Joining | partitions that must be released first, commits, the coordinator, the answer of JoinGroup | Syncing, itself again, Leaving |
//! | Syncing | topics (as leader), the answer of SyncGroup | Stable, Reconciling, Joining, Leaving |
//! | Reconciling | the release of what the assignment takes away | Joining, Leaving |
//! | Stable | a reason to join again | Joining, Leaving |
//! | Leaving | releases, commits, the answer of LeaveGroup | Unsubscribed, Joining, Fatal, Closed |
//! | Fenced | the application's next poll (it had not polled in time) | Joining, Closed |
//! | Fatal, Closed | nothing more | Closed |

use super::joining::Joining;
use super::leaving::Leaving;
use super::syncing::Syncing;
use crate::reason::JoinReason;
use crate::time::Timestamp;
use std::borrow::Cow;

/// Where a member stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum State {
    Unsubscribed,
    Joining(Joining),
    Syncing(Syncing),
    Reconciling,
    Stable,
    Leaving(Leaving),
    Fenced,
    Fatal,
    Closed,
}

/// The name of a member's state, for logs, `describe` and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateName {
    /// It wants nothing, and is in no group.
    Unsubscribed,
    /// It asks for (or prepares to ask for) a place in the next generation.
    Joining,
    /// It has a place and waits for its assignment.
    Syncing,
    /// It has its assignment and releases what is no longer its own.
    Reconciling,
    /// All is quiet.
    Stable,
    /// It hands back what it has and leaves.
    Leaving,
    /// It gave its place up because the application did not poll; the next poll makes it join again.
    Fenced,
    /// It cannot go on.
    Fatal,
    /// It has ended.
    Closed,
}

impl State {
    pub(super) fn name(&self) -> StateName {
        match self {
            State::Unsubscribed => StateName::Unsubscribed,
            State::Joining(_) => StateName::Joining,
            State::Syncing(_) => StateName::Syncing,
            State::Reconciling => StateName::Reconciling,
            State::Stable => StateName::Stable,
            State::Leaving(_) => StateName::Leaving,
            State::Fenced => StateName::Fenced,
            State::Fatal => StateName::Fatal,
            State::Closed => StateName::Closed,
        }
    }
}

/// Why the member joins: a reason that a coordinator may decide by (KIP-423), and words for people (KIP-800).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cause {
    pub(super) reason: JoinReason,
    pub(super) text: Cow<'static, str>,
}

impl Cause {
    pub(super) fn new(reason: JoinReason, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason,
            text: text.into(),
        }
    }

    /// Whether the reason asks for a rebalance by itself. Such a reason outlives a lost answer: were it replaced by `Retry`,
    /// a coordinator that had never seen it might answer with the old generation, and nothing would move.
    pub(super) fn asks(&self) -> bool {
        match self.reason {
            JoinReason::TopicMetadataChanged
            | JoinReason::SubscriptionChanged
            | JoinReason::RevocationDone
            | JoinReason::Upgrade
            | JoinReason::StateReady
            | JoinReason::Requested => true,
            JoinReason::Unknown
            | JoinReason::NewMember
            | JoinReason::Restart
            | JoinReason::Lost
            | JoinReason::Retry => false,
        }
    }
}

/// The place in the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Membership {
    /// The member id, empty before the coordinator gave one.
    pub(super) id: String,
    /// Whether a sync was answered under this id: before, a coordinator that is lost may forget that it gave it out.
    pub(super) stored: bool,
    /// Whether the coordinator was lost before the id was stored: then FENCED_INSTANCE_ID says nothing about another process.
    pub(super) doubted: bool,
    /// The generation, −1 outside.
    pub(super) generation: i32,
    /// The assignor of the generation.
    pub(super) protocol: String,
    /// Whether there was an assignment before, so that the next join is not a first one.
    pub(super) been: bool,
    /// When the last request was sent that the coordinator answered.
    pub(super) heard: Timestamp,
    /// Whether the last round had no other member.
    pub(super) alone: bool,
}

impl Membership {
    pub(super) fn new() -> Self {
        Self {
            id: String::new(),
            stored: false,
            doubted: false,
            generation: -1,
            protocol: String::new(),
            been: false,
            heard: Timestamp::default(),
            alone: false,
        }
    }

    /// The coordinator does not know the id (any more).
    pub(super) fn forget_id(&mut self) {
        self.id.clear();
        self.stored = false;
    }

    /// The assignment has come: the coordinator has stored who is in the group.
    pub(super) fn store(&mut self) {
        self.stored = true;
        self.doubted = false;
    }

    /// The coordinator was lost, or has come back.
    pub(super) fn doubt(&mut self) {
        self.doubted |= !self.stored;
    }

    /// Whether the coordinator counts it as a member of a generation.
    pub(super) fn valid(&self) -> bool {
        self.generation >= 0
    }
}

/// A close that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Closing {
    /// Whether partitions are handed over in a round before leaving.
    pub(super) drain: bool,
    /// When draining has taken too long.
    pub(super) deadline: Timestamp,
    /// Whether it was asked for twice: then nothing is waited for.
    pub(super) hurry: bool,
}
