//! Old bugs of this field, to be put back in: each is a switch that exists only in builds with the feature `museum`, which only the
//! laboratory's tests have. It shows that the laboratory sees.
//!
//! A switch is `defect!(Name)` in the code that the bug is about, and `false` where the feature is off.

/// Whether this defect is on exhibition.
#[cfg(feature = "museum")]
macro_rules! defect {
    ($name:ident) => {
        $crate::museum::on(crate::museum::Defect::$name)
    };
}

/// Without the feature nothing is broken.
#[cfg(not(feature = "museum"))]
macro_rules! defect {
    ($name:ident) => {
        false
    };
}

#[cfg(feature = "museum")]
pub(crate) use exhibition::on;
#[cfg(feature = "museum")]
pub use exhibition::{Defect, exhibit};

#[cfg(feature = "museum")]
mod exhibition {
    use std::cell::Cell;

    /// A bug that somebody had.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Defect {
        /// The leader gives a partition that moves to its new owner in the round in which the old one still claims it.
        GivesMovedAtOnce,
        /// In a mixed group only members that know the explicit form are made to wait for what moves; the others get it at once.
        GivesMovedToPlain,
        /// The leader forgets to say what is revoked, and the member does not compare what it is told with what it claimed.
        SupersetCheckLeftOut,
        /// A member that has released what was revoked does not join again.
        NeedRejoinIgnored,
        /// All members join again as soon as the leader announces another round, also those that have nothing to release.
        EverybodyRejoinsAtOnce,
        /// A cooperative member lets go of everything before it joins.
        RevokesBeforeJoin,
        /// What is lost is told as revoked.
        LostToldAsRevoked,
        /// A member whose generation is refused keeps its partitions.
        KeepsOwnedWithoutGeneration,
        /// The position that is committed is one ahead of what was read.
        CommitsUnread,
        /// A new owner starts where the policy says, whatever is committed.
        StartsAtBeginning,
        /// A release waits for its commits without an end.
        CommitsForEver,
        /// The poll deadline of a member that is out already stays armed.
        SpinsWhileFenced,
        /// A member that is fenced by another with its instance id takes the place back.
        FightsForInstance,
        /// A member that the group does not know joins again with the same id.
        KeepsUnknownId,
        /// The leader watches the topics that it wants itself, not the group's.
        WatchesOwnTopics,
        /// The coordinator takes commits of past generations.
        PastGenerationCommits,
        /// The coordinator takes commits from members that it does not know.
        StrangersCommit,
        /// A commit is acknowledged before it is durable.
        AcknowledgedBeforeStored,
        /// Parked requests are not answered when the coordinator gives its groups away.
        ForgetsParked,
        /// A static member that comes back between join and sync is answered with the generation that is in the making.
        StaticRestartWhileCompleting,
        /// The generation of a group that becomes empty starts at 0 again.
        GenerationsStartOver,
        /// Replaying a group's record forgets the offsets that were replayed before it.
        ReplayForgetsOffsets,
        /// The leader's assignments hold although they could not be stored.
        FailedAppendIsFine,
        /// A SyncGroup in Stable is answered without an assignment.
        StableSyncIsEmpty,
        /// The coordinator does not read the typed reason of a join (KIP-423).
        ReasonIgnored,
        /// A member that gives no sign of life stays in the group.
        SessionsNeverEnd,
        /// The leader's place is not given on when it leaves.
        LeaderGoneStaysLeader,
    }

    impl Defect {
        /// All of them.
        pub const ALL: &'static [Defect] = &[
            Defect::GivesMovedAtOnce,
            Defect::GivesMovedToPlain,
            Defect::SupersetCheckLeftOut,
            Defect::NeedRejoinIgnored,
            Defect::EverybodyRejoinsAtOnce,
            Defect::RevokesBeforeJoin,
            Defect::LostToldAsRevoked,
            Defect::KeepsOwnedWithoutGeneration,
            Defect::CommitsUnread,
            Defect::StartsAtBeginning,
            Defect::CommitsForEver,
            Defect::SpinsWhileFenced,
            Defect::FightsForInstance,
            Defect::KeepsUnknownId,
            Defect::WatchesOwnTopics,
            Defect::PastGenerationCommits,
            Defect::StrangersCommit,
            Defect::AcknowledgedBeforeStored,
            Defect::ForgetsParked,
            Defect::StaticRestartWhileCompleting,
            Defect::GenerationsStartOver,
            Defect::ReplayForgetsOffsets,
            Defect::FailedAppendIsFine,
            Defect::StableSyncIsEmpty,
            Defect::ReasonIgnored,
            Defect::SessionsNeverEnd,
            Defect::LeaderGoneStaysLeader,
        ];

        /// The public report of it, in a sentence.
        #[must_use]
        pub fn report(self) -> &'static str {
            match self {
                Defect::GivesMovedAtOnce => {
                    "KAFKA-14639: the cooperative assignor revoked a partition from one consumer and assigned it to another in one round"
                }
                Defect::GivesMovedToPlain => {
                    "KIP-429, mixed round: partitions of new members must not go to old ones before they are given up"
                }
                Defect::SupersetCheckLeftOut => {
                    "KIP-429, draft: an assignment that is no superset of what was claimed, less what is revoked, is an error"
                }
                Defect::NeedRejoinIgnored => {
                    "KAFKA-12638 and KIP-429: without the follow-up rebalance what was revoked stays with nobody"
                }
                Defect::EverybodyRejoinsAtOnce => {
                    "KIP-429, draft: each such join turns the late SyncGroup of another into REBALANCE_IN_PROGRESS, without end"
                }
                Defect::RevokesBeforeJoin => {
                    "KAFKA-8179: cooperative consumers keep what they own while they join"
                }
                Defect::LostToldAsRevoked => {
                    "KAFKA-8972: a fenced consumer was told onPartitionsRevoked, and committed"
                }
                Defect::KeepsOwnedWithoutGeneration => {
                    "KAFKA-13419: a consumer that reset its generation alone kept what it owned"
                }
                Defect::CommitsUnread => {
                    "librdkafka 1.8 notes and KAFKA-4600: offsets of records that the application never saw were committed"
                }
                Defect::StartsAtBeginning => {
                    "KAFKA-8069: committed offsets were taken for missing, and consumers started over"
                }
                Defect::CommitsForEver => {
                    "librdkafka#2933: a commit was retried for ever on REBALANCE_IN_PROGRESS, and the rebalance never ended"
                }
                Defect::SpinsWhileFenced => {
                    "KAFKA-10134: consumers used all of a processor while the group was preparing a rebalance"
                }
                Defect::FightsForInstance => {
                    "KAFKA-20985 and KIP-345: two processes with one group.instance.id throw each other out without end"
                }
                Defect::KeepsUnknownId => {
                    "kafkajs#1474, ruby-kafka#941: UNKNOWN_MEMBER_ID was answered by the same request again, for ever"
                }
                Defect::WatchesOwnTopics => {
                    "KAFKA-9181: a leader did not see changes of topics that only others subscribe to"
                }
                Defect::PastGenerationCommits => {
                    "librdkafka v1.8 notes, redpanda#5428: offsets of a past generation overwrote the new owner's"
                }
                Defect::StrangersCommit => {
                    "redpanda#6301: a commit of a member that was out already was taken"
                }
                Defect::AcknowledgedBeforeStored => {
                    "redpanda#3732: an acknowledged commit was gone after a restart"
                }
                Defect::ForgetsParked => {
                    "KAFKA-20938: parked requests that nobody answers any more"
                }
                Defect::StaticRestartWhileCompleting => {
                    "KAFKA-9801: it was in no list, and was given nothing"
                }
                Defect::GenerationsStartOver => {
                    "streamnative/kop#380: generations that are not monotonic let old members pass for new ones"
                }
                Defect::ReplayForgetsOffsets => "KAFKA-8386: what is loaded is not what was stored",
                Defect::FailedAppendIsFine => {
                    "KAFKA-9065 and KAFKA-3590: a group went on with what its log does not have"
                }
                Defect::StableSyncIsEmpty => {
                    "moosestack#4006: a follower that synced late got nothing"
                }
                Defect::ReasonIgnored => {
                    "KAFKA-13435: a static member came back wanting something else, and nobody looked"
                }
                Defect::SessionsNeverEnd => {
                    "KAFKA-9752, KAFKA-7610: members that were gone stayed, and so did what they had"
                }
                Defect::LeaderGoneStaysLeader => "KAFKA-12898: a leader that is no member",
            }
        }
    }

    thread_local! {
        static EXHIBIT: Cell<Option<Defect>> = const { Cell::new(None) };
    }

    /// Runs something with a defect in place, on this thread.
    pub fn exhibit<T>(defect: Defect, run: impl FnOnce() -> T) -> T {
        let before = EXHIBIT.replace(Some(defect));
        let result = run();
        EXHIBIT.set(before);
        result
    }

    pub(crate) fn on(defect: Defect) -> bool {
        EXHIBIT.get() == Some(defect)
    }
}
