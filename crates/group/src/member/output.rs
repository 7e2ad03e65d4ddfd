//! What a member wants done.

use super::input::{CommitId, Offset, Token};
use crate::coordinator::GroupRequest;
use crate::history::RebalanceRecord;
use crate::partitions::{Partitions, Topic, TopicPartition};
use crate::time::Timestamp;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

/// Which connection to the coordinator a request takes. A broker answers the requests of one connection in order, and parks
/// joins and syncs, so what must not wait behind them goes over a connection of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// JoinGroup and SyncGroup.
    Rounds,
    /// Heartbeat, OffsetCommit, OffsetFetch, LeaveGroup.
    Control,
}

/// Why partitions are to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RevokeReason {
    /// The group gives them to somebody else.
    Reassigned,
    /// Everything is released before an eager rebalance.
    Eager,
    /// Their topics are no longer subscribed, or no longer exist.
    Unsubscribed,
    /// The member leaves.
    Closing,
}

/// Why a commit failed, and whether it makes sense to try again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CommitError {
    /// The broker said so.
    #[error("the commit was refused: {0}")]
    Refused(ErrorCode),
    /// The group is rebalancing: the partitions may still be the member's afterwards.
    #[error("the group is rebalancing; commit again when the rebalance is over")]
    Rebalancing,
    /// The member does not own these partitions (any more): refused locally.
    #[error("partitions that the member does not own were not committed: {0}")]
    NotOwned(Partitions),
    /// The connection broke or no answer came in time.
    #[error(
        "no answer from the coordinator in time; it is not known whether the commit was stored"
    )]
    Unknown,
}

/// An error that ends the member. It has let go of everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{api}: group {group}: {reason}", api = api.map_or("group", ApiKey::name))]
pub struct Fatal {
    /// The group.
    pub group: String,
    /// The API whose answer said so, if one did.
    pub api: Option<ApiKey>,
    /// The broker's code, if it sent one.
    pub code: Option<ErrorCode>,
    /// What was expected, what came, and what to do.
    pub reason: String,
}

/// Something to do; outputs are done in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Send a request to the coordinator that was found last, over this lane. Answer with `Response` or `Failed`, exactly once,
    /// unless `Disconnect` comes before.
    Send {
        /// Names the request.
        token: Token,
        /// The connection to use.
        lane: Lane,
        /// The version to send.
        version: i16,
        /// The request.
        request: GroupRequest,
    },
    /// Close these lanes and forget what is in flight on them (a request that took too long must not be answered late).
    Disconnect(Lane),
    /// Find the group's coordinator; answer with `CoordinatorFound` or `CoordinatorNotFound`.
    FindCoordinator,
    /// Fetch metadata afresh (of these topics, or of all), then say `Topics`; keep doing so every `metadata.max.age.ms` and
    /// whenever the shell's metadata changes for another reason.
    RefreshTopics(Option<BTreeSet<Topic>>),
    /// These partitions are the member's from now on. Records come when `Start` says where.
    Assign {
        /// What was added (never what it had already). Nothing where a round has added nothing: then this only tells the new
        /// generation, once for each round that has ended, as Kafka's own callback does.
        added: Partitions,
        /// Everything that it owns now.
        owned: Partitions,
        /// The generation.
        generation: i32,
        /// The assignor.
        protocol: String,
        /// Whether the leader used the explicit form.
        explicit: bool,
    },
    /// Read these from here: the committed offset, or `None` where none is stored (the shell applies `auto.offset.reset`).
    Start(BTreeMap<TopicPartition, Option<Offset>>),
    /// Stop delivering these at once, finish what was delivered, then say `Released`.
    Revoke {
        /// What to release.
        partitions: Partitions,
        /// Why.
        reason: RevokeReason,
        /// After this the group goes on without the member.
        deadline: Timestamp,
        /// The generation.
        generation: i32,
    },
    /// The member has let go of these: revocation has ended (positions are committed where that is automatic).
    Revoked {
        /// What was released.
        partitions: Partitions,
        /// Everything that it owns now.
        owned: Partitions,
        /// The generation.
        generation: i32,
    },
    /// The member no longer owns these, and others may already: stop, and commit nothing.
    Lost {
        /// What is lost.
        partitions: Partitions,
        /// Why, in words.
        why: String,
        /// The last generation.
        generation: i32,
    },
    /// What became of a commit that the application asked for.
    Committed(
        CommitId,
        Result<BTreeMap<TopicPartition, Offset>, CommitError>,
    ),
    /// What became of an automatic commit that failed for good (only failures; nobody waits for it).
    AutoCommitFailed(CommitError),
    /// A round has begun; the application should poll (and release) before `deadline`.
    Rebalancing {
        /// Why, in words.
        cause: String,
        /// When the group goes on without the member.
        deadline: Timestamp,
    },
    /// Something went wrong that is not final; the member goes on by itself.
    Warning {
        /// The broker's code, if it sent one.
        code: Option<ErrorCode>,
        /// What happened and what the member does about it.
        text: String,
    },
    /// The member's view of a rebalance that has ended.
    Rebalanced(Box<RebalanceRecord>),
    /// The member cannot go on. It has lost or released everything.
    Fatal(Fatal),
    /// A close has ended; the machine takes no more inputs.
    Closed,
}
