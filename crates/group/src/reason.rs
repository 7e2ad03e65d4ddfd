//! Why a member joins (KIP-423), as both ends understand it.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why a member joins. On the wire it is the tagged field 423 of JoinGroup v6+; brokers that do not know it skip it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i8)]
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(rename_all = "kebab-case")
        )]
        pub enum JoinReason { $($(#[$doc])* $name = $number,)* }

        impl JoinReason {
            /// All reasons.
            pub const ALL: &'static [JoinReason] = &[$(JoinReason::$name,)*];

            /// The reason with this number; one that is not known reads as unknown.
            #[must_use]
            pub fn from_number(number: i8) -> Self {
                match number { $($number => JoinReason::$name,)* _ => JoinReason::Unknown }
            }

            /// A few words for people, also sent as KIP-800's text.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self { $(JoinReason::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// No reason was given, or one that is not known here.
    #[default]
    Unknown = 0, "unknown reason";
    /// It was not in the group before.
    NewMember = 1, "new member";
    /// A static member's process was restarted.
    Restart = 2, "restarted";
    /// A topic appeared, vanished, or has other partitions.
    TopicMetadataChanged = 3, "topic metadata changed";
    /// It wants other topics.
    SubscriptionChanged = 4, "subscription changed";
    /// What it was told to release is released.
    RevocationDone = 5, "revocation done";
    /// It speaks another protocol or version than before.
    Upgrade = 6, "upgraded";
    /// A standby has caught up and could take over.
    StateReady = 7, "state ready";
    /// It had been fenced or expired, and owns nothing any more.
    Lost = 8, "lost its membership";
    /// The application asked for a rebalance.
    Requested = 9, "requested by the application";
    /// The answer to its last join or sync was lost.
    Retry = 10, "retry after a lost answer";
}

impl JoinReason {
    /// What the words of a foreign client mean (KIP-800), where they are known ones: those of the Java client and of franz-go. Words that
    /// only say that the group rebalances anyway mean nothing here. librdkafka and sarama send none (they stop at JoinGroup v5).
    ///
    /// It is for the record alone: what a coordinator does never depends on a text.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let known = TEXTS.iter().find(|(start, _)| text.starts_with(start));
        known.map(|(_, reason)| *reason)
    }

    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> i8 {
        self as i8
    }
}

/// How the texts of known clients begin.
const TEXTS: [(&str, JoinReason); 20] = [
    // Java.
    (
        "need to re-join with the given member-id",
        JoinReason::NewMember,
    ),
    (
        "need to revoke partitions and re-join",
        JoinReason::RevocationDone,
    ),
    (
        "cached metadata has changed",
        JoinReason::TopicMetadataChanged,
    ),
    ("subscription has changed", JoinReason::SubscriptionChanged),
    (
        "received assignment does not match the current subscription",
        JoinReason::SubscriptionChanged,
    ),
    ("rebalance enforced by user", JoinReason::Requested),
    ("consumer pro-actively leaving the group", JoinReason::Lost),
    ("encountered UNKNOWN_MEMBER_ID from", JoinReason::Lost),
    ("encountered ILLEGAL_GENERATION from", JoinReason::Lost),
    ("rebalance failed due to UnknownMemberId", JoinReason::Lost),
    (
        "rebalance failed due to IllegalGeneration",
        JoinReason::Lost,
    ),
    ("rebalance failed", JoinReason::Retry),
    // franz-go.
    (
        "beginning to manage the group lifecycle",
        JoinReason::NewMember,
    ),
    (
        "cooperative rejoin after revoking",
        JoinReason::RevocationDone,
    ),
    (
        "rejoining because there are more topics to consume",
        JoinReason::SubscriptionChanged,
    ),
    (
        "rejoin from PurgeFetchTopics",
        JoinReason::SubscriptionChanged,
    ),
    (
        "rejoining because we are the leader and noticed some topics have new partitions",
        JoinReason::TopicMetadataChanged,
    ),
    (
        "leader detected that partitions on topics",
        JoinReason::TopicMetadataChanged,
    ),
    ("rejoin from ForceRebalance", JoinReason::Requested),
    ("rejoining after we previously errored", JoinReason::Lost),
];

impl fmt::Display for JoinReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::JoinReason;

    #[test]
    fn numbers_come_back_and_unknown_ones_read_as_unknown() {
        for reason in JoinReason::ALL {
            assert_eq!(JoinReason::from_number(reason.number()), *reason);
        }
        assert_eq!(JoinReason::from_number(99), JoinReason::Unknown);
    }

    #[test]
    fn the_words_of_known_clients_are_understood() {
        let meaning = [
            (
                "need to re-join with the given member-id: c-1",
                Some(JoinReason::NewMember),
            ),
            (
                "encountered UNKNOWN_MEMBER_ID from HEARTBEAT response",
                Some(JoinReason::Lost),
            ),
            (
                "rebalance failed due to UnknownMemberIdException",
                Some(JoinReason::Lost),
            ),
            (
                "rebalance failed due to RebalanceInProgressException",
                Some(JoinReason::Retry),
            ),
            (
                "cooperative rejoin after revoking what we lost from a rebalance",
                Some(JoinReason::RevocationDone),
            ),
            ("group is already rebalancing", None),
            ("rejoining from normal rebalance", None),
            ("", None),
        ];
        for (text, reason) in meaning {
            assert_eq!(JoinReason::from_text(text), reason, "{text}");
        }
    }
}
