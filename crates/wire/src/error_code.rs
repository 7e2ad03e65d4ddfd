//! Kafka's error codes.

use crate::primitives::{Context, Decoder, Encoder, WireError, WireType};
use std::fmt;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $kafka:literal, $text:literal;)*) => {
        /// What went wrong, as the protocol says it.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $(#[doc = $text] $(#[$doc])* $name,)*
            /// A code that is not known here.
            Other(i16),
        }

        impl ErrorCode {
            /// All codes that are known here.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$name,)*];

            /// The code with this number.
            #[must_use]
            pub fn from_number(number: i16) -> Self {
                match number { $($code => ErrorCode::$name,)* other => ErrorCode::Other(other) }
            }

            /// The number on the wire.
            #[must_use]
            pub fn number(self) -> i16 {
                match self { $(ErrorCode::$name => $code,)* ErrorCode::Other(number) => number }
            }

            /// Kafka's name, such as `REBALANCE_IN_PROGRESS`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(ErrorCode::$name => $kafka,)* ErrorCode::Other(_) => "UNKNOWN" }
            }

            /// What it means, in a few words.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(ErrorCode::$name => $text,)* ErrorCode::Other(_) => "an error code that is not known here" }
            }
        }
    };
}

error_codes! {
    UnknownServerError = -1, "UNKNOWN_SERVER_ERROR", "the broker failed in a way that it did not expect";
    #[default]
    None = 0, "NONE", "no error";
    OffsetOutOfRange = 1, "OFFSET_OUT_OF_RANGE", "the offset is outside what the partition holds";
    CorruptMessage = 2, "CORRUPT_MESSAGE", "the record batch failed its checksum or is malformed";
    UnknownTopicOrPartition = 3, "UNKNOWN_TOPIC_OR_PARTITION", "the broker has no such topic or partition";
    InvalidFetchSize = 4, "INVALID_FETCH_SIZE", "the fetch size is invalid";
    LeaderNotAvailable = 5, "LEADER_NOT_AVAILABLE", "the partition has no leader at the moment";
    NotLeaderOrFollower = 6, "NOT_LEADER_OR_FOLLOWER", "the broker does not lead the partition";
    RequestTimedOut = 7, "REQUEST_TIMED_OUT", "the broker could not do it in time";
    ReplicaNotAvailable = 9, "REPLICA_NOT_AVAILABLE", "the replica is not available";
    MessageTooLarge = 10, "MESSAGE_TOO_LARGE", "the record batch is larger than the topic allows";
    StaleControllerEpoch = 11, "STALE_CONTROLLER_EPOCH", "the controller has been replaced";
    OffsetMetadataTooLarge = 12, "OFFSET_METADATA_TOO_LARGE", "the text committed with the offset is too long";
    NetworkException = 13, "NETWORK_EXCEPTION", "the connection broke before an answer came";
    CoordinatorLoadInProgress = 14, "COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is still loading the group";
    CoordinatorNotAvailable = 15, "COORDINATOR_NOT_AVAILABLE", "the group has no coordinator at the moment";
    NotCoordinator = 16, "NOT_COORDINATOR", "the broker does not coordinate the group";
    InvalidTopicException = 17, "INVALID_TOPIC_EXCEPTION", "the topic's name or the request for it is invalid";
    RecordListTooLarge = 18, "RECORD_LIST_TOO_LARGE", "the request holds more records than a segment may";
    NotEnoughReplicas = 19, "NOT_ENOUGH_REPLICAS", "fewer replicas are in sync than the topic demands";
    NotEnoughReplicasAfterAppend = 20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "written, but to fewer replicas than the topic demands";
    InvalidRequiredAcks = 21, "INVALID_REQUIRED_ACKS", "acks must be -1, 0 or 1";
    IllegalGeneration = 22, "ILLEGAL_GENERATION", "the generation is not the group's current one";
    InconsistentGroupProtocol = 23, "INCONSISTENT_GROUP_PROTOCOL", "the member shares no assignor with the others, or is of another protocol type";
    InvalidGroupId = 24, "INVALID_GROUP_ID", "the group id is invalid";
    UnknownMemberId = 25, "UNKNOWN_MEMBER_ID", "the group does not know the member";
    InvalidSessionTimeout = 26, "INVALID_SESSION_TIMEOUT", "the session timeout is outside what the broker allows";
    RebalanceInProgress = 27, "REBALANCE_IN_PROGRESS", "the group rebalances, so join again";
    InvalidCommitOffsetSize = 28, "INVALID_COMMIT_OFFSET_SIZE", "the commit is too large";
    TopicAuthorizationFailed = 29, "TOPIC_AUTHORIZATION_FAILED", "not allowed for the topic";
    GroupAuthorizationFailed = 30, "GROUP_AUTHORIZATION_FAILED", "not allowed for the group";
    ClusterAuthorizationFailed = 31, "CLUSTER_AUTHORIZATION_FAILED", "not allowed for the cluster";
    InvalidTimestamp = 32, "INVALID_TIMESTAMP", "the record's timestamp is out of the allowed range";
    UnsupportedSaslMechanism = 33, "UNSUPPORTED_SASL_MECHANISM", "the broker does not know this SASL mechanism";
    IllegalSaslState = 34, "ILLEGAL_SASL_STATE", "the request does not fit the state of the SASL authentication";
    UnsupportedVersion = 35, "UNSUPPORTED_VERSION", "the broker does not serve this version of the API";
    TopicAlreadyExists = 36, "TOPIC_ALREADY_EXISTS", "the topic exists already";
    InvalidPartitions = 37, "INVALID_PARTITIONS", "the number of partitions is invalid";
    InvalidReplicationFactor = 38, "INVALID_REPLICATION_FACTOR", "the replication factor is invalid or exceeds the number of brokers";
    InvalidReplicaAssignment = 39, "INVALID_REPLICA_ASSIGNMENT", "the replica assignment is invalid";
    InvalidConfig = 40, "INVALID_CONFIG", "a setting is unknown or its value invalid";
    NotController = 41, "NOT_CONTROLLER", "the broker is not the controller";
    InvalidRequest = 42, "INVALID_REQUEST", "the request makes no sense";
    UnsupportedForMessageFormat = 43, "UNSUPPORTED_FOR_MESSAGE_FORMAT", "the record format of the topic does not support it";
    PolicyViolation = 44, "POLICY_VIOLATION", "the request breaks a policy of the cluster";
    OutOfOrderSequenceNumber = 45, "OUT_OF_ORDER_SEQUENCE_NUMBER", "a batch of an idempotent producer is missing before this one";
    DuplicateSequenceNumber = 46, "DUPLICATE_SEQUENCE_NUMBER", "the batch of an idempotent producer is an old duplicate";
    InvalidProducerEpoch = 47, "INVALID_PRODUCER_EPOCH", "a newer producer has taken over";
    InvalidTxnState = 48, "INVALID_TXN_STATE", "the transaction is not in a state that allows it";
    InvalidProducerIdMapping = 49, "INVALID_PRODUCER_ID_MAPPING", "the producer id does not belong to the transactional id";
    InvalidTransactionTimeout = 50, "INVALID_TRANSACTION_TIMEOUT", "the transaction timeout is larger than the broker allows";
    ConcurrentTransactions = 51, "CONCURRENT_TRANSACTIONS", "the transaction before is not finished yet";
    TransactionCoordinatorFenced = 52, "TRANSACTION_COORDINATOR_FENCED", "a newer transaction coordinator has taken over";
    TransactionalIdAuthorizationFailed = 53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "not allowed for the transactional id";
    SecurityDisabled = 54, "SECURITY_DISABLED", "security features are switched off";
    OperationNotAttempted = 55, "OPERATION_NOT_ATTEMPTED", "not tried, because another part of the request failed";
    KafkaStorageError = 56, "KAFKA_STORAGE_ERROR", "the broker's disk failed";
    LogDirNotFound = 57, "LOG_DIR_NOT_FOUND", "the broker has no such log directory";
    SaslAuthenticationFailed = 58, "SASL_AUTHENTICATION_FAILED", "the credentials were refused";
    UnknownProducerId = 59, "UNKNOWN_PRODUCER_ID", "the broker knows nothing of the producer id";
    ReassignmentInProgress = 60, "REASSIGNMENT_IN_PROGRESS", "the partition is being moved";
    NonEmptyGroup = 68, "NON_EMPTY_GROUP", "the group still has members";
    GroupIdNotFound = 69, "GROUP_ID_NOT_FOUND", "there is no such group";
    FetchSessionIdNotFound = 70, "FETCH_SESSION_ID_NOT_FOUND", "the fetch session is gone";
    InvalidFetchSessionEpoch = 71, "INVALID_FETCH_SESSION_EPOCH", "the fetch session's epoch is wrong";
    ListenerNotFound = 72, "LISTENER_NOT_FOUND", "the leader has no listener of this name";
    TopicDeletionDisabled = 73, "TOPIC_DELETION_DISABLED", "the broker does not allow topics to be deleted";
    FencedLeaderEpoch = 74, "FENCED_LEADER_EPOCH", "the leader epoch is older than the broker's";
    UnknownLeaderEpoch = 75, "UNKNOWN_LEADER_EPOCH", "the leader epoch is newer than the broker's";
    UnsupportedCompressionType = 76, "UNSUPPORTED_COMPRESSION_TYPE", "the compression is not supported in this version";
    StaleBrokerEpoch = 77, "STALE_BROKER_EPOCH", "the broker has been restarted since";
    OffsetNotAvailable = 78, "OFFSET_NOT_AVAILABLE", "the leader does not know its high watermark yet";
    MemberIdRequired = 79, "MEMBER_ID_REQUIRED", "join again with the member id in the answer";
    PreferredLeaderNotAvailable = 80, "PREFERRED_LEADER_NOT_AVAILABLE", "the preferred leader is not available";
    GroupMaxSizeReached = 81, "GROUP_MAX_SIZE_REACHED", "the group is full";
    FencedInstanceId = 82, "FENCED_INSTANCE_ID", "another member with the same group.instance.id has taken over";
    EligibleLeadersNotAvailable = 83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "no replica may become leader";
    ElectionNotNeeded = 84, "ELECTION_NOT_NEEDED", "the partition has its leader already";
    NoReassignmentInProgress = 85, "NO_REASSIGNMENT_IN_PROGRESS", "the partition is not being moved";
    GroupSubscribedToTopic = 86, "GROUP_SUBSCRIBED_TO_TOPIC", "the group is subscribed to the topic";
    InvalidRecord = 87, "INVALID_RECORD", "the broker refused a record";
    UnstableOffsetCommit = 88, "UNSTABLE_OFFSET_COMMIT", "a transaction on the offsets is still open";
    ThrottlingQuotaExceeded = 89, "THROTTLING_QUOTA_EXCEEDED", "the quota is used up, so try later";
    ProducerFenced = 90, "PRODUCER_FENCED", "a newer producer with the same transactional id has taken over";
    UnknownTopicId = 100, "UNKNOWN_TOPIC_ID", "the broker has no topic with this id";
    InconsistentTopicId = 103, "INCONSISTENT_TOPIC_ID", "the topic id does not belong to the topic";
    TransactionalIdNotFound = 105, "TRANSACTIONAL_ID_NOT_FOUND", "there is no such transactional id";
    FetchSessionTopicIdError = 106, "FETCH_SESSION_TOPIC_ID_ERROR", "the fetch session mixes topic names and topic ids";
    FencedMemberEpoch = 110, "FENCED_MEMBER_EPOCH", "the member's epoch is not the current one";
    UnreleasedInstanceId = 111, "UNRELEASED_INSTANCE_ID", "another member still uses the group.instance.id";
    UnsupportedAssignor = 112, "UNSUPPORTED_ASSIGNOR", "the broker does not know the assignor";
    StaleMemberEpoch = 113, "STALE_MEMBER_EPOCH", "the member's epoch has moved on";
    RebootstrapRequired = 129, "REBOOTSTRAP_REQUIRED", "the client should start again from its bootstrap servers";
}

impl ErrorCode {
    /// Whether there is no error.
    #[must_use]
    pub fn is_none(self) -> bool {
        self == ErrorCode::None
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}: {})", self.name(), self.number(), self.meaning())
    }
}

impl WireType for ErrorCode {
    fn decode(from: &mut Decoder, _: Context) -> Result<Self, WireError> {
        Ok(Self::from_number(from.i16()?))
    }
    fn encode(&self, to: &mut Encoder, _: Context) {
        to.i16(self.number());
    }
}
