//! Assignors: who gets which partition.
//!
//! ```text
//!   subscriptions ─ decode ─▶ leader ─▶ Assignor::assign ─▶ check ─▶ withhold what moves ─▶ one answer for each member
//!                               │            range · round_robin · sticky (equal subscriptions: quotas; else: flow)
//!                               └─ claims: which claim of a partition stands (KIP-341, KIP-792)
//! ```
//!
//! An assignor shares out explicit sets of partitions, not counts of topics, because in a mixed group it sees only what is
//! left. It says who shall have what in the end; what may be handed over in which round is [`leader`]'s business, around any
//! assignor. Nothing here depends on the order in which members are listed.

pub mod check;
mod claims;
pub mod decode;
mod equal;
mod flow;
pub mod leader;
mod problem;
mod range;
mod round_robin;
mod sticky;

pub use check::AssignError;
pub use range::Range;
pub use round_robin::RoundRobin;
pub use sticky::{CooperativeSticky, Sticky};

use crate::partitions::{Partitions, Topic};
use crate::topics::TopicImage;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A member as an assignor sees it: its subscription, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subscriber {
    /// The member's id.
    pub member_id: String,
    /// Its `group.instance.id`.
    pub instance_id: Option<String>,
    /// The topics it wants, sorted.
    pub topics: Vec<Topic>,
    /// The partitions that it says it owns.
    pub owned: Partitions,
    /// The generation in which it was given them, if it says.
    pub generation: Option<i32>,
    /// Where it is (KIP-881).
    pub rack: Option<String>,
    /// What only its own assignor reads.
    pub user_data: Option<Bytes>,
}

/// What an assignor is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The members, in the order of their ids.
    pub subscribers: &'a [Subscriber],
    /// What may be shared out. In a mixed group that is only what is left.
    pub available: &'a Partitions,
    /// The topics that exist, for their racks.
    pub topics: &'a TopicImage,
}

/// Who gets what: every member has an entry.
pub type Shares = BTreeMap<String, Partitions>;

/// A way to share partitions out.
pub trait Assignor: fmt::Debug + Send + Sync {
    /// The name on the wire.
    fn name(&self) -> &str;

    /// Whether members give everything up before each rebalance. A member that lists any such assignor is eager.
    fn is_eager(&self) -> bool;

    /// What this assignor tells the leader's one, beside the topics: `owned` was assigned in `generation` (−1 at first).
    fn user_data(&self, topics: &[Topic], owned: &Partitions, generation: i32) -> Option<Bytes>;

    /// Shares `question.available` out. Withholding what moves is not its business: the leader's step does that around it.
    fn assign(&self, question: &Question<'_>) -> Shares;

    /// Whether the shares keep partitions with those who claim them, so that a group that is left alone settles. Around an
    /// assignor that does not, the leader is careful with members that give everything up in each round (see [`leader`]).
    fn honours_claims(&self) -> bool {
        false
    }
}

/// The built-in assignor of that name, as in `partition.assignment.strategy`; `None` if there is none.
#[must_use]
pub fn by_name(name: &str) -> Option<Arc<dyn Assignor>> {
    match name {
        "range" => Some(Arc::new(Range)),
        "roundrobin" => Some(Arc::new(RoundRobin)),
        "sticky" => Some(Arc::new(Sticky)),
        "cooperative-sticky" => Some(Arc::new(CooperativeSticky)),
        _ => None,
    }
}
