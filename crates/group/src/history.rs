//! The rebalance record: what happened in one rebalance, why, whom it waited for and what it cost.
//!
//! ```text
//!   cause ─▶ join phase ─▶ sync phase ─▶ (somebody lets go) ─▶ join phase ─▶ sync phase ─▶ stable
//!            └──────── a Phase ──────┘                         └──────── a Phase ──────┘
//!            └─────────────────────────── one RebalanceRecord ──────────────────────────────────┘
//! ```
//!
//! The coordinator makes one for each rebalance of a group and knows it whole; it takes a partition for released when the join comes
//! that no longer claims it. A member makes one of what it saw, and knows its own releases to the millisecond.

use crate::partitions::TopicPartition;
use crate::reason::JoinReason;
use crate::time::Timestamp;

/// Who or what set a rebalance off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Cause {
    /// What happened.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub kind: CauseKind,
    /// The member id of the one that set it off.
    pub member_id: String,
    /// Its `group.instance.id`.
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Where it connects from.
    pub client_host: String,
    /// Whether the member said so itself (typed reason), or it was inferred from its words (KIP-800) or from what changed.
    pub stated: bool,
    /// The member's own words (KIP-800), if it sent any.
    pub text: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// What set a rebalance off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(tag = "kind", content = "reason", rename_all = "kebab-case")
)]
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
    /// The coordinator was restarted, and found the group larger than `group.max.size` allows.
    Recovered,
}

impl Default for CauseKind {
    fn default() -> Self {
        Self::Joined(JoinReason::Unknown)
    }
}

impl CauseKind {
    /// A number that keeps its meaning: reasons have KIP-423's (0 to 127), the others come after.
    #[must_use]
    pub fn number(self) -> i16 {
        match self {
            Self::Joined(reason) => i16::from(reason.number()),
            Self::Left => 128,
            Self::SessionExpired => 129,
            Self::RebalanceTimedOut => 130,
            Self::SyncTimedOut => 131,
            Self::AppendFailed => 132,
            Self::Recovered => 133,
        }
    }

    /// The kind with this number; one that is not known is a join for an unknown reason.
    #[must_use]
    pub fn from_number(number: i16) -> Self {
        match number {
            128 => Self::Left,
            129 => Self::SessionExpired,
            130 => Self::RebalanceTimedOut,
            131 => Self::SyncTimedOut,
            132 => Self::AppendFailed,
            133 => Self::Recovered,
            reason => Self::Joined(
                i8::try_from(reason).map_or(JoinReason::Unknown, JoinReason::from_number),
            ),
        }
    }
}

/// When a member took part in a round.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Participation {
    /// The member's id.
    pub member_id: String,
    /// Its `group.instance.id`.
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// When its join came; `None` for a static member that was away and keeps its place.
    pub joined: Option<Timestamp>,
    /// When its sync came.
    pub synced: Option<Timestamp>,
}

/// What somebody was waited for to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "kebab-case")
)]
pub enum WaitedTo {
    /// To join: it came after the others.
    #[default]
    Join,
    /// To join, in vain: the join phase ended without it.
    JoinInVain,
    /// To share the partitions out, as leader.
    Assign,
    /// To ask for its assignment.
    Sync,
    /// To let go of partitions, between two rounds.
    Release,
    /// Nobody: the group was empty and waited for more members (`group.initial.rebalance.delay.ms`).
    BeFollowed,
}

/// A time for which the group waited for somebody.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Wait {
    /// Its id; empty for nobody in particular.
    pub member_id: String,
    /// What it was to do.
    pub to: WaitedTo,
    /// Milliseconds.
    pub ms: u64,
}

/// One round: a join phase and the sync phase after it, which is one generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct Phase {
    /// Its generation.
    pub generation: i32,
    /// Who led it (member id).
    pub leader: Option<String>,
    /// When its join phase began.
    pub started: Timestamp,
    /// When its join phase ended.
    pub joined: Timestamp,
    /// When the leader's assignments were stored; `None` if the round was cut short.
    pub assigned: Option<Timestamp>,
    /// When the last member had asked for its own; `None` if the round was cut short.
    pub ended: Option<Timestamp>,
    /// Who took part, by member id; the last to come where there are more than [`Phase::LISTED`].
    pub members: Vec<Participation>,
    /// How many took part.
    pub size: usize,
    /// Whom it waited for.
    pub waits: Vec<Wait>,
}

impl Phase {
    /// The most members that a phase lists.
    pub const LISTED: usize = 200;
}

/// A partition that changed hands, or that was without an owner for a while.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Move {
    /// The partition.
    pub partition: TopicPartition,
    /// Who had it (member id), if anybody.
    pub from: Option<String>,
    /// Who has it now, if anybody.
    pub to: Option<String>,
    /// When its owner let go of it, or was found to be gone.
    #[cfg_attr(feature = "serde", serde(default))]
    pub released: Option<Timestamp>,
    /// When its new owner was told to have it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub assigned: Option<Timestamp>,
    /// Milliseconds for which nobody owned it; `None` if that is not known (yet).
    #[cfg_attr(feature = "serde", serde(default))]
    pub ownerless_ms: Option<u64>,
    /// Milliseconds before that in which its owner gave no sign of life: it expired, and perhaps did not work on it any more.
    #[cfg_attr(feature = "serde", serde(default))]
    pub silent_ms: u64,
}

/// One rebalance, from its cause until the group was stable: one generation, or several where members had to release first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
pub struct RebalanceRecord {
    /// The group.
    pub group: String,
    /// Whose view it is: a member's (its id), or the coordinator's (`None`), which is the whole.
    pub seen_by: Option<String>,
    /// The generation in which it ended.
    pub generation: i32,
    /// The assignor that was chosen; `None` if the group is empty now.
    pub protocol: Option<String>,
    /// What set it off, the first cause first.
    pub causes: Vec<Cause>,
    /// How many causes more there were than are listed.
    pub causes_unlisted: u32,
    /// When it began.
    pub started: Timestamp,
    /// When the last member had its assignment.
    pub ended: Timestamp,
    /// How many generations it took.
    pub rounds: u32,
    /// The rounds; the first and the last ones where there were more than [`RebalanceRecord::PHASES`].
    pub phases: Vec<Phase>,
    /// Whom the group waited for (member id), and how many milliseconds in all, the longest first.
    #[cfg_attr(feature = "serde", serde(with = "waits"))]
    pub waited_for: Vec<(String, u64)>,
    /// What moved, was given to its first owner, or lost its last one; the longest without an owner where there are more than
    /// [`RebalanceRecord::LISTED`].
    pub moves: Vec<Move>,
    /// How many partitions went from one owner to another.
    pub moved: usize,
    /// How many had to: from what the members had before, to shares as even as their subscriptions allow.
    pub minimum_moves: Option<usize>,
    /// What came back to the one who had it, having had no owner for a while: eager members give everything up before they join.
    pub pauses: Vec<Move>,
    /// Milliseconds without an owner, added up over all partitions.
    pub ownerless_ms: u64,
    /// Milliseconds before that in which an owner that expired gave no sign of life, added up over all its partitions.
    pub silent_ms: u64,
}

impl RebalanceRecord {
    /// The most rounds that a record lists.
    pub const PHASES: usize = 8;
    /// The most moves, and the most pauses, that a record lists.
    pub const LISTED: usize = 500;
    /// The most causes that a record lists.
    pub const CAUSES: usize = 16;

    /// The record on another clock that is `milliseconds` ahead: with the wall clock's value at the machine's beginning, all times
    /// are Unix milliseconds.
    #[must_use]
    pub fn later_by(mut self, milliseconds: u64) -> Self {
        let shift = |time: &mut Timestamp| *time = *time + milliseconds;
        let shift_some = |time: &mut Option<Timestamp>| {
            if let Some(time) = time {
                shift(time);
            }
        };
        shift(&mut self.started);
        shift(&mut self.ended);
        for cause in &mut self.causes {
            shift(&mut cause.at);
        }
        for phase in &mut self.phases {
            shift(&mut phase.started);
            shift(&mut phase.joined);
            shift_some(&mut phase.assigned);
            shift_some(&mut phase.ended);
            for member in &mut phase.members {
                shift_some(&mut member.joined);
                shift_some(&mut member.synced);
            }
        }
        for one in self.moves.iter_mut().chain(&mut self.pauses) {
            shift_some(&mut one.released);
            shift_some(&mut one.assigned);
        }
        self
    }

    /// Adds up what is to be added up, and cuts lists that are too long.
    pub(crate) fn finish(mut self) -> Self {
        let moved = |one: &&Move| one.from.is_some() && one.to.is_some();
        self.moved = self.moves.iter().filter(moved).count();
        let all = || self.moves.iter().chain(&self.pauses);
        self.ownerless_ms = all().filter_map(|one| one.ownerless_ms).sum();
        self.silent_ms = all().map(|one| one.silent_ms).sum();
        for list in [&mut self.moves, &mut self.pauses] {
            if list.len() > Self::LISTED {
                list.sort_by_key(|one| std::cmp::Reverse(one.ownerless_ms));
                list.truncate(Self::LISTED);
            }
        }
        let mut waited: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
        for wait in self.phases.iter().flat_map(|phase| &phase.waits) {
            if !wait.member_id.is_empty() {
                *waited.entry(&wait.member_id).or_default() += wait.ms;
            }
        }
        let mut waited_for: Vec<(String, u64)> = waited
            .into_iter()
            .map(|(member, ms)| (member.to_owned(), ms))
            .collect();
        waited_for.sort_by(|(a, long), (b, short)| short.cmp(long).then_with(|| a.cmp(b)));
        self.waited_for = waited_for;
        self
    }
}

/// `waited_for` as a list of objects.
#[cfg(feature = "serde")]
mod waits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Waited {
        member_id: String,
        ms: u64,
    }

    pub(super) fn serialize<S: Serializer>(
        list: &[(String, u64)],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().map(|(member, ms)| Waited {
            member_id: member.clone(),
            ms: *ms,
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<(String, u64)>, D::Error> {
        let list = Vec::<Waited>::deserialize(from)?;
        Ok(list.into_iter().map(|w| (w.member_id, w.ms)).collect())
    }
}
