//! The rebalance record: what happened in one rebalance, why, whom it waited for and what it cost.

use crate::partitions::TopicPartition;
use crate::reason::JoinReason;
use crate::time::Timestamp;

/// Who or what set a rebalance off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cause {
    /// What happened.
    pub kind: CauseKind,
    /// The member id of the one that set it off.
    pub member_id: String,
    /// Its `group.instance.id`.
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Where it connects from.
    pub client_host: String,
    /// Whether the member said so itself (typed reason), or it was inferred from what it sent.
    pub stated: bool,
    /// The member's own words (KIP-800), if it sent any.
    pub text: Option<String>,
}

/// What set a rebalance off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CauseKind {
    /// A member joined for this reason.
    Joined(JoinReason),
    /// A member left.
    Left,
    /// A member's session timed out.
    SessionExpired,
    /// A member did not come back within the rebalance timeout.
    RebalanceTimedOut,
    /// A member did not ask for its assignment in time.
    SyncTimedOut,
    /// The leader's assignment could not be stored.
    AppendFailed,
    /// The coordinator was restarted in the middle of a round.
    Recovered,
}

/// When a member took part in a round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Participation {
    /// The member's id.
    pub member_id: String,
    /// Its `group.instance.id`.
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// When its join came.
    pub joined: Option<Timestamp>,
    /// When its sync came.
    pub synced: Option<Timestamp>,
}

/// A partition that changed hands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// The partition.
    pub partition: TopicPartition,
    /// Who had it (member id), if anybody.
    pub from: Option<String>,
    /// Who has it now, if anybody.
    pub to: Option<String>,
    /// Milliseconds for which nobody owned it; `None` if that is not known (yet).
    pub ownerless_ms: Option<u64>,
}

/// One rebalance, from its cause until the group was stable: one generation, or several where members had to release first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RebalanceRecord {
    /// The group.
    pub group: String,
    /// The generation in which it ended.
    pub generation: i32,
    /// The assignor that was chosen.
    pub protocol: Option<String>,
    /// What set it off, the first cause first.
    pub causes: Vec<Cause>,
    /// When it began.
    pub started: Timestamp,
    /// When the last member had its assignment.
    pub ended: Timestamp,
    /// How many generations it took.
    pub rounds: u32,
    /// Who took part, and when, in the last round.
    pub members: Vec<Participation>,
    /// The member ids that came last and so were waited for, and for how many milliseconds after the one before them.
    pub waited_for: Vec<(String, u64)>,
    /// What moved.
    pub moves: Vec<Move>,
    /// How many moves would have done.
    pub minimum_moves: Option<usize>,
}
