//! What can happen to a member.

use crate::coordinator::GroupResponse;
use crate::partitions::{Partitions, Topic, TopicPartition};
use crate::reason::JoinReason;
use crate::topics::TopicImage;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

/// Names a request that the member sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

/// Names a commit that the application asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub u64);

/// What the member wants to read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subscription {
    /// These topics.
    Topics(BTreeSet<Topic>),
    /// All topics whose whole name matches this regular expression, now and later.
    Pattern(String),
}

/// An offset to commit, or one that was committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Offset {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record read, −1 if unknown.
    pub leader_epoch: i32,
    /// A text kept beside it.
    pub metadata: String,
}

/// Why a request has no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SendFailure {
    /// The connection broke: nobody knows whether the request was processed.
    Disconnected,
    /// It could not be written: the version that the broker serves does not fit.
    Unsupported,
}

/// Everything that can happen to a member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// The application wants these topics (again, or others than before).
    Subscribe(Subscription),
    /// The application wants nothing any more: let go, leave the group, but be ready to subscribe again.
    Unsubscribe,
    /// The application closes. Drains first unless told not to; ends with [`Output::Closed`](super::Output::Closed).
    /// A second one while closing means: at once.
    Close {
        /// Whether to hand partitions over in an orderly way before leaving (bounded by `close_drain_ms`).
        drain: bool,
    },
    /// The application asked for records: it is alive (`max.poll.interval.ms`).
    Polled,
    /// The response to a request.
    Response(Token, GroupResponse),
    /// A request will have no response.
    Failed(Token, SendFailure),
    /// The group's coordinator, and the versions that it serves. Lanes to it are opened on demand.
    CoordinatorFound {
        /// The broker's id.
        node: i32,
        /// First and last version of each API.
        versions: BTreeMap<ApiKey, (i16, i16)>,
    },
    /// The search failed. Authorisation is fatal, all else is tried again (the machine says when).
    CoordinatorNotFound(ErrorCode),
    /// The topics that exist, as the shell's metadata says now. The image covers what was last asked for with `Output::RefreshTopics`.
    Topics(TopicImage),
    /// The application has let go of partitions that it was told to; their positions came in `Consumed` before.
    Released(Partitions),
    /// The application has consumed up to here.
    Consumed(TopicPartition, Offset),
    /// The application commits. The answer is [`Output::Committed`](super::Output::Committed).
    Commit {
        /// Names it.
        id: CommitId,
        /// What to commit; `None` means everything consumed.
        offsets: Option<BTreeMap<TopicPartition, Offset>>,
        /// Whether to retry until `default.api.timeout.ms` (a synchronous commit) or to try once.
        retry: bool,
    },
    /// The application asks for a rebalance, for this reason (`Requested` or `StateReady`).
    RequestRebalance(JoinReason),
    /// An alarm is due.
    Alarm(Alarm),
}

/// The member's alarms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alarm {
    /// Beat.
    Heartbeat,
    /// Nothing was answered for a session.
    Session,
    /// The application has not polled for too long.
    Poll,
    /// Commit what was consumed.
    AutoCommit,
    /// Try again what failed.
    Backoff,
    /// A request has taken too long.
    Request(Token),
    /// A revocation has taken too long.
    Revocation,
    /// A close has taken too long.
    Close,
}
