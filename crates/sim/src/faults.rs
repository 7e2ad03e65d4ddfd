//! What the laboratory breaks, and how often it really did.

use std::collections::BTreeMap;
use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A way to break the world. Each is counted when it bit, not when it was tried.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Fault { $($(#[$doc])* $name,)* }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Fault] = &[$(Fault::$name,)*];

            /// In a few words.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(Fault::$name => $text,)* }
            }
        }
    };
}

faults! {
    /// A connection breaks; the request on it is never processed.
    CutBefore = "connection cut before the request was processed",
    /// A connection breaks under the sender; its request is processed later all the same (a zombie).
    CutAfter = "connection cut, request processed afterwards",
    /// The request is processed, its answer never arrives.
    AnswerLost = "answer lost",
    /// The coordinator dies and is rebuilt from its log.
    CoordinatorCrash = "coordinator crashed",
    /// The coordinator dies, and records that were not yet acknowledged are gone.
    TailLost = "unacknowledged records lost in a crash",
    /// The coordinator takes long to load.
    SlowLoad = "requests came while the log was loading",
    /// The coordinator gives its groups away and gets them back.
    CoordinatorMoved = "coordinator moved away and back",
    /// The log refuses an append.
    AppendFailed = "append failed",
    /// A member's process dies.
    MemberCrash = "member crashed",
    /// A member's process stands still for longer than its session.
    SessionPause = "member paused for longer than its session",
    /// A member's process stands still for longer than its rebalance timeout.
    RebalancePause = "member paused for longer than its rebalance timeout",
    /// An application does not poll for longer than `max.poll.interval.ms`.
    PollPause = "application silent for longer than its poll interval",
    /// An application takes long to let go, but comes in time.
    SlowRevoke = "slow revoke",
    /// An application lets go only when the group has gone on without it.
    StuckRevoke = "revoke beyond the rebalance timeout",
    /// A SyncGroup arrives late.
    LateSync = "late sync",
    /// The network is slow for a while.
    SlowNetwork = "slow network",
    /// A topic gets more partitions.
    TopicGrown = "topic grown",
    /// A topic appears.
    TopicCreated = "topic created",
    /// A topic vanishes.
    TopicDeleted = "topic deleted",
    /// A member wants other topics.
    SubscriptionChanged = "subscription changed",
    /// A member unsubscribes and comes back.
    Unsubscribed = "member unsubscribed",
    /// A static member's process dies and is back within its session.
    StaticRestart = "static member restarted",
    /// A second process with the same `group.instance.id` starts.
    DuplicateInstance = "duplicate instance id",
    /// A member leaves.
    MemberLeave = "member left",
    /// A member comes.
    MemberJoin = "member joined",
    /// An application asks for a rebalance.
    RebalanceRequested = "rebalance requested",
    /// A member's clock shows another time than the coordinator's, and runs faster or slower.
    ClockSkew = "clocks skewed",
    /// A broker that is over quota asks a member for silence.
    Throttled = "throttled answer",
    /// Members with and without explicit revocation share the group.
    MixedModes = "explicit and plain members mixed",
    /// The broker serves older versions than the members know.
    OldVersions = "older versions served",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// How often each fault bit.
pub type FaultCounts = BTreeMap<Fault, u64>;
