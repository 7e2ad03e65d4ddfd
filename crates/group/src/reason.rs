//! Why a member joins (KIP-423), as both ends understand it.

use std::fmt;

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Why a member joins. On the wire it is the tagged field 423 of JoinGroup v6+; brokers that do not know it skip it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i8)]
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
    /// The number on the wire.
    #[must_use]
    pub fn number(self) -> i8 {
        self as i8
    }
}

impl fmt::Display for JoinReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
