//! Errors, by whose fault they are.

use kohort_wire::{ApiKey, ErrorCode, WireError};
use std::fmt;

/// Why something failed. The variants say at whom to look; the text says what was expected, what came, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The settings or the arguments make no sense. Nothing was sent.
    Config(String),
    /// A broker cannot be reached, went away, or is silent.
    Connection {
        /// `host:port`.
        address: String,
        /// What happened, and what to do.
        reason: String,
    },
    /// Something answers there, but it does not speak Kafka's protocol, or not as it should.
    Peer {
        /// `host:port`.
        address: String,
        /// What was expected, and what came.
        reason: String,
    },
    /// The broker refused.
    Broker {
        /// The API whose answer said so, if it was one.
        api: Option<ApiKey>,
        /// The broker's code.
        code: ErrorCode,
        /// Which topic, partition or group it was about, and what to do.
        about: String,
    },
    /// The group's coordinator refused for good; the member has let go of everything.
    Coordinator {
        /// The group.
        group: String,
        /// The broker's code, if it sent one.
        code: Option<ErrorCode>,
        /// What was expected, what came, and what to do.
        reason: String,
    },
    /// Another member with the same `group.instance.id` has taken this one's place: FENCED_INSTANCE_ID (KIP-345).
    Fenced(String),
    /// It was not done within the time that the settings allow.
    TimedOut {
        /// What was waited for, and for how long.
        what: String,
    },
    /// A background task of the client panicked, with these words: code of the application's own that it runs (an assignor), or a
    /// mistake in kohort. It does not go on by itself.
    Panicked(String),
    /// The client has been closed.
    Closed,
}

impl Error {
    /// The Kafka error code, if a broker sent one.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Error::Broker { code, .. } => Some(*code),
            Error::Coordinator { code, .. } => *code,
            Error::Fenced(_) => Some(ErrorCode::FencedInstanceId),
            Error::Config(_)
            | Error::Connection { .. }
            | Error::Peer { .. }
            | Error::TimedOut { .. }
            | Error::Panicked(_)
            | Error::Closed => None,
        }
    }

    /// Whether trying again later may help: nothing is wrong with the request itself.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            Error::Connection { .. } | Error::TimedOut { .. } => true,
            Error::Broker { code, .. } => is_retriable(*code),
            Error::Config(_)
            | Error::Peer { .. }
            | Error::Coordinator { .. }
            | Error::Fenced(_)
            | Error::Panicked(_)
            | Error::Closed => false,
        }
    }

    pub(crate) fn connection(address: &str, reason: impl Into<String>) -> Self {
        Error::Connection {
            address: address.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn broker(api: ApiKey, code: ErrorCode, about: impl Into<String>) -> Self {
        Error::Broker {
            api: Some(api),
            code,
            about: about.into(),
        }
    }

    pub(crate) fn unreadable(address: &str, api: ApiKey, version: i16, error: &WireError) -> Self {
        Error::Peer {
            address: address.to_owned(),
            reason: format!(
                "the answer to {} v{version} cannot be read: {error}",
                api.name()
            ),
        }
    }
}

/// Codes after which the same request may succeed later (Kafka's `RetriableException`s).
#[must_use]
pub(crate) fn is_retriable(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::CorruptMessage
            | ErrorCode::UnknownTopicOrPartition
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::RequestTimedOut
            | ErrorCode::ReplicaNotAvailable
            | ErrorCode::NetworkException
            | ErrorCode::CoordinatorLoadInProgress
            | ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::NotEnoughReplicas
            | ErrorCode::NotEnoughReplicasAfterAppend
            | ErrorCode::NotController
            | ErrorCode::KafkaStorageError
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownLeaderEpoch
            | ErrorCode::OffsetNotAvailable
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId
            | ErrorCode::UnstableOffsetCommit
    )
}

/// What to do about a code, where that is the same whatever was asked.
#[must_use]
pub fn advice(code: ErrorCode) -> Option<&'static str> {
    Some(match code {
        ErrorCode::UnknownTopicOrPartition => {
            "`kohort topic list` shows those that exist, `kohort topic create` makes one"
        }
        ErrorCode::MessageTooLarge => {
            "send less at once, or raise the topic's max.message.bytes (the broker's message.max.bytes)"
        }
        ErrorCode::TopicAuthorizationFailed => {
            "have READ (to consume) or WRITE (to produce) on the topic granted to this client"
        }
        ErrorCode::GroupAuthorizationFailed => {
            "have READ on the group granted to this client, or use a group that it may read"
        }
        ErrorCode::ClusterAuthorizationFailed => {
            "have the right on the cluster granted to this client"
        }
        ErrorCode::KafkaStorageError => {
            "the broker's log says why (a full disk?); make room there, and start the broker again if it asks for that"
        }
        ErrorCode::GroupIdNotFound => "`kohort group list` shows those that exist",
        ErrorCode::NonEmptyGroup => "stop its members first, or see `kohort group remove-member`",
        ErrorCode::GroupSubscribedToTopic => "stop those of its members that read it first",
        _ => return None,
    })
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config(what) => write!(f, "{what}"),
            Error::Connection { address, reason } | Error::Peer { address, reason } => {
                write!(f, "{address}: {reason}")
            }
            Error::Broker { api, code, about } => {
                let api = api.map_or("the broker", ApiKey::name);
                write!(f, "{api}: {about}: {code}")?;
                match advice(*code) {
                    Some(advice) => write!(f, "; {advice}"),
                    None => Ok(()),
                }
            }
            Error::Coordinator {
                group,
                code,
                reason,
            } => match code.filter(|code| !reason.contains(code.name())) {
                Some(code) => write!(f, "group {group}: {code}: {reason}"),
                None => write!(f, "group {group}: {reason}"),
            },
            Error::Fenced(what) => write!(f, "{what}"),
            Error::TimedOut { what } => write!(f, "timed out: {what}"),
            Error::Panicked(words) => write!(
                f,
                "a background task panicked: {words}; mend the assignor if it is your own, else report it with this text; a new consumer can go on"
            ),
            Error::Closed => write!(f, "the client is closed"),
        }
    }
}

impl std::error::Error for Error {}
