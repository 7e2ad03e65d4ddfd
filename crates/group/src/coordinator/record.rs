//! What is kept of groups: the records of `__consumer_offsets`.

use bytes::Bytes;

/// A key and a value of `__consumer_offsets`, as structures; without a value it is a tombstone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// A committed offset.
    Offset {
        /// The group.
        group: String,
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset, or `None` to forget it.
        value: Option<OffsetValue>,
    },
    /// A group: its generation, members and assignments.
    Group {
        /// The group.
        group: String,
        /// The group, or `None` to forget it.
        value: Option<GroupValue>,
    },
}

/// A committed offset (OffsetCommitValue).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OffsetValue {
    /// The next offset to read.
    pub offset: i64,
    /// The leader epoch of the last record read, −1 if unknown.
    pub leader_epoch: i32,
    /// The text committed with it.
    pub metadata: String,
    /// When it was committed, Unix milliseconds.
    pub commit_timestamp: i64,
    /// When it expires, Unix milliseconds, −1 for the broker's retention.
    pub expire_timestamp: i64,
    /// The topic's id, zero if unknown.
    pub topic_id: [u8; 16],
}

/// A group as it was when its leader synced, or when it became empty (GroupMetadataValue).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupValue {
    /// The group's kind.
    pub protocol_type: String,
    /// The generation.
    pub generation: i32,
    /// The chosen assignor.
    pub protocol: Option<String>,
    /// The leader's member id.
    pub leader: Option<String>,
    /// When it entered its state, Unix milliseconds, −1 if unknown.
    pub current_state_timestamp: i64,
    /// Its members.
    pub members: Vec<GroupValueMember>,
}

/// A member as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupValueMember {
    /// The member's id.
    pub member_id: String,
    /// Its `group.instance.id`.
    pub group_instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Where it connects from.
    pub client_host: String,
    /// Its rebalance timeout, milliseconds.
    pub rebalance_timeout_ms: i32,
    /// Its session timeout, milliseconds.
    pub session_timeout_ms: i32,
    /// What it told the leader under the chosen assignor.
    pub subscription: Bytes,
    /// What the leader gave it.
    pub assignment: Bytes,
}
