//! What is kept of groups: the records of `__consumer_offsets`.

use crate::history::{Cause, CauseKind};
use crate::time::Timestamp;
use bytes::Bytes;
use kohort_wire::primitives::{Context, Decoder, Encoder, WireError, WireType};

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
    /// Why a group rebalanced of late. Kafka has no such record: its tools pass over a kind of key that they do not know.
    Causes {
        /// The group.
        group: String,
        /// The causes, the latest last, their times Unix milliseconds; or `None` to forget them.
        value: Option<Vec<Cause>>,
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

/// Version 3 of the group's value; offsets are written in version 4, or in 1 where they expire at a time of their own.
const GROUP_VALUE_VERSION: i16 = 3;
const OFFSET_VALUE_VERSION: i16 = 4;
const EXPIRING_OFFSET_VALUE_VERSION: i16 = 1;
const OFFSET_KEY: i16 = 1;
const GROUP_KEY: i16 = 2;
/// Far from the numbers that Kafka gives, which go up by one.
const CAUSES_KEY: i16 = 423;
const CAUSES_VALUE_VERSION: i16 = 0;

fn context(version: i16, nullable: bool) -> Context {
    Context {
        version,
        flexible: version >= 4,
        nullable,
    }
}

impl Record {
    /// The key, as Kafka writes it.
    #[must_use]
    pub fn encode_key(&self) -> Bytes {
        let mut to = Encoder::new();
        let plain = context(0, false);
        match self {
            Record::Offset {
                group,
                topic,
                partition,
                ..
            } => {
                to.i16(OFFSET_KEY);
                group.encode(&mut to, plain);
                topic.encode(&mut to, plain);
                to.i32(*partition);
            }
            Record::Group { group, .. } => {
                to.i16(GROUP_KEY);
                group.encode(&mut to, plain);
            }
            Record::Causes { group, .. } => {
                to.i16(CAUSES_KEY);
                group.encode(&mut to, plain);
            }
        }
        to.into_bytes().freeze()
    }

    /// The value, as Kafka 4.3 writes it; `None` for a tombstone.
    #[must_use]
    pub fn encode_value(&self) -> Option<Bytes> {
        let mut to = Encoder::new();
        match self {
            Record::Offset { value, .. } => value.as_ref()?.encode(&mut to),
            Record::Group { value, .. } => value.as_ref()?.encode(&mut to),
            Record::Causes { value, .. } => encode_causes(value.as_ref()?, &mut to),
        }
        Some(to.into_bytes().freeze())
    }

    /// Reads a record, in any version that Kafka has written. `None` for a key of a kind that is not kept here (KIP-848, share groups).
    ///
    /// # Errors
    /// [`WireError`] if the bytes do not hold one.
    pub fn decode(key: Bytes, value: Option<Bytes>) -> Result<Option<Self>, WireError> {
        let mut from = Decoder::new(key);
        let plain = context(0, false);
        let record = match from.i16()? {
            0 | OFFSET_KEY => Record::Offset {
                group: String::decode(&mut from, plain)?,
                topic: String::decode(&mut from, plain)?,
                partition: from.i32()?,
                value: value
                    .map(|value| OffsetValue::decode(&mut Decoder::new(value)))
                    .transpose()?,
            },
            GROUP_KEY => Record::Group {
                group: String::decode(&mut from, plain)?,
                value: value
                    .map(|value| GroupValue::decode(&mut Decoder::new(value)))
                    .transpose()?,
            },
            CAUSES_KEY => Record::Causes {
                group: String::decode(&mut from, plain)?,
                value: value
                    .map(|value| decode_causes(&mut Decoder::new(value)))
                    .transpose()?,
            },
            _ => return Ok(None),
        };
        from.finish()?;
        Ok(Some(record))
    }

    /// Whether the record does not fit into a batch of `limit` bytes. A batch of one record has 61 bytes of its own, and lengths.
    pub(super) fn too_large(&self, limit: usize) -> bool {
        let value = match self {
            Record::Group {
                value: Some(value), ..
            } => value.size(),
            Record::Causes {
                value: Some(causes),
                ..
            } => causes.iter().map(cause_size).sum(),
            Record::Group { .. } | Record::Offset { .. } | Record::Causes { .. } => 0,
        };
        value + 128 > limit
    }
}

fn cause_size(cause: &Cause) -> usize {
    let texts = [&cause.member_id, &cause.client_id, &cause.client_host];
    let more = [&cause.instance_id, &cause.text];
    let more = more.iter().map(|text| text.as_ref().map_or(0, String::len));
    32 + texts.iter().map(|text| text.len()).sum::<usize>() + more.sum::<usize>()
}

fn encode_causes(causes: &[Cause], to: &mut Encoder) {
    let plain = context(CAUSES_VALUE_VERSION, false);
    let nullable = context(CAUSES_VALUE_VERSION, true);
    to.i16(CAUSES_VALUE_VERSION);
    to.length(Some(causes.len()), false, true);
    for cause in causes {
        to.i16(cause.kind.number());
        to.i16(i16::from(cause.stated));
        to.i64(i64::try_from(cause.at.0).unwrap_or(i64::MAX));
        cause.member_id.encode(to, plain);
        cause.instance_id.encode(to, nullable);
        cause.client_id.encode(to, plain);
        cause.client_host.encode(to, plain);
        cause.text.encode(to, nullable);
    }
}

fn decode_causes(from: &mut Decoder) -> Result<Vec<Cause>, WireError> {
    let version = from.i16()?;
    if version != CAUSES_VALUE_VERSION {
        return Err(WireError::UnknownVersion {
            api: "Causes",
            version,
        });
    }
    let plain = context(version, false);
    let nullable = context(version, true);
    let count = from.length(false, true)?.ok_or(WireError::UnexpectedNull)?;
    let mut causes = Vec::new();
    for _ in 0..count {
        causes.push(Cause {
            kind: CauseKind::from_number(from.i16()?),
            stated: from.i16()? != 0,
            at: Timestamp(u64::try_from(from.i64()?).unwrap_or(0)),
            member_id: String::decode(from, plain)?,
            instance_id: Option::decode(from, nullable)?,
            client_id: String::decode(from, plain)?,
            client_host: String::decode(from, plain)?,
            text: Option::decode(from, nullable)?,
        });
    }
    Ok(causes)
}

impl OffsetValue {
    fn encode(&self, to: &mut Encoder) {
        if self.expire_timestamp != -1 {
            to.i16(EXPIRING_OFFSET_VALUE_VERSION);
            to.i64(self.offset);
            self.metadata
                .encode(to, context(EXPIRING_OFFSET_VALUE_VERSION, false));
            to.i64(self.commit_timestamp);
            to.i64(self.expire_timestamp);
            return;
        }
        to.i16(OFFSET_VALUE_VERSION);
        to.i64(self.offset);
        to.i32(self.leader_epoch);
        self.metadata
            .encode(to, context(OFFSET_VALUE_VERSION, false));
        to.i64(self.commit_timestamp);
        if self.topic_id == [0; 16] {
            to.unsigned_varint(0);
        } else {
            to.unsigned_varint(1);
            to.unsigned_varint(0);
            to.unsigned_varint(16);
            to.raw(&self.topic_id);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, WireError> {
        let version = from.i16()?;
        if !(0..=4).contains(&version) {
            return Err(WireError::UnknownVersion {
                api: "OffsetCommitValue",
                version,
            });
        }
        let offset = from.i64()?;
        let leader_epoch = if version >= 3 { from.i32()? } else { -1 };
        let metadata = String::decode(from, context(version, false))?;
        let commit_timestamp = from.i64()?;
        let expire_timestamp = if version == 1 { from.i64()? } else { -1 };
        let mut topic_id = [0; 16];
        if version >= 4 {
            for _ in 0..from.unsigned_varint()? {
                let tag = from.unsigned_varint()?;
                let size = from.unsigned_varint()? as usize;
                let value = from.take(size)?;
                if tag == 0 && size == 16 {
                    topic_id.copy_from_slice(&value);
                }
            }
        }
        Ok(Self {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp,
            expire_timestamp,
            topic_id,
        })
    }
}

impl GroupValue {
    /// About as many bytes as it takes, without writing it.
    fn size(&self) -> usize {
        let member = |member: &GroupValueMember| {
            member.member_id.len()
                + member.group_instance_id.as_ref().map_or(0, String::len)
                + member.client_id.len()
                + member.client_host.len()
                + member.subscription.len()
                + member.assignment.len()
                + 24
        };
        64 + self.protocol_type.len() + self.members.iter().map(member).sum::<usize>()
    }

    fn encode(&self, to: &mut Encoder) {
        let plain = context(GROUP_VALUE_VERSION, false);
        let nullable = context(GROUP_VALUE_VERSION, true);
        to.i16(GROUP_VALUE_VERSION);
        self.protocol_type.encode(to, plain);
        to.i32(self.generation);
        self.protocol.encode(to, nullable);
        self.leader.encode(to, nullable);
        to.i64(self.current_state_timestamp);
        to.length(Some(self.members.len()), false, true);
        for member in &self.members {
            member.member_id.encode(to, plain);
            member.group_instance_id.encode(to, nullable);
            member.client_id.encode(to, plain);
            member.client_host.encode(to, plain);
            to.i32(member.rebalance_timeout_ms);
            to.i32(member.session_timeout_ms);
            member.subscription.encode(to, plain);
            member.assignment.encode(to, plain);
        }
    }

    fn decode(from: &mut Decoder) -> Result<Self, WireError> {
        let version = from.i16()?;
        if !(0..=4).contains(&version) {
            return Err(WireError::UnknownVersion {
                api: "GroupMetadataValue",
                version,
            });
        }
        let plain = context(version, false);
        let nullable = context(version, true);
        let protocol_type = String::decode(from, plain)?;
        let generation = from.i32()?;
        let protocol = Option::decode(from, nullable)?;
        let leader = Option::decode(from, nullable)?;
        let current_state_timestamp = if version >= 2 { from.i64()? } else { -1 };
        let count = from
            .length(plain.flexible, true)?
            .ok_or(WireError::UnexpectedNull)?;
        let mut members = Vec::new();
        for _ in 0..count {
            members.push(GroupValueMember::decode(from, version)?);
        }
        Ok(Self {
            protocol_type,
            generation,
            protocol,
            leader,
            current_state_timestamp,
            members,
        })
    }
}

impl GroupValueMember {
    fn decode(from: &mut Decoder, version: i16) -> Result<Self, WireError> {
        let plain = context(version, false);
        let member_id = String::decode(from, plain)?;
        let group_instance_id = if version >= 3 {
            Option::decode(from, context(version, true))?
        } else {
            None
        };
        let client_id = String::decode(from, plain)?;
        let client_host = String::decode(from, plain)?;
        let rebalance_timeout_ms = if version >= 1 { from.i32()? } else { -1 };
        let session_timeout_ms = from.i32()?;
        let member = Self {
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms,
            session_timeout_ms,
            subscription: Bytes::decode(from, plain)?,
            assignment: Bytes::decode(from, plain)?,
        };
        if plain.flexible {
            for _ in 0..from.unsigned_varint()? {
                from.unsigned_varint()?;
                let size = from.unsigned_varint()? as usize;
                from.take(size)?;
            }
        }
        Ok(member)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went() {
        let offset = |expire_timestamp, leader_epoch, topic_id| Record::Offset {
            group: "g".into(),
            topic: "t".into(),
            partition: 3,
            value: Some(OffsetValue {
                offset: 42,
                leader_epoch,
                metadata: "m".into(),
                commit_timestamp: 7,
                expire_timestamp,
                topic_id,
            }),
        };
        let group = Record::Group {
            group: "g".into(),
            value: Some(GroupValue {
                protocol_type: "consumer".into(),
                generation: 4,
                protocol: Some("range".into()),
                leader: None,
                current_state_timestamp: 9,
                members: vec![GroupValueMember {
                    member_id: "a-1".into(),
                    group_instance_id: Some("a".into()),
                    client_id: "c".into(),
                    client_host: "/127.0.0.1".into(),
                    rebalance_timeout_ms: 1,
                    session_timeout_ms: 2,
                    subscription: Bytes::from_static(b"s"),
                    assignment: Bytes::from_static(b"a"),
                }],
            }),
        };
        let causes = Record::Causes {
            group: "g".into(),
            value: Some(vec![
                Cause {
                    kind: CauseKind::Left,
                    member_id: "a-1".into(),
                    instance_id: Some("a".into()),
                    client_id: "c".into(),
                    client_host: "/127.0.0.1".into(),
                    stated: true,
                    text: Some("closing".into()),
                    at: Timestamp(1_796_093_999_000),
                },
                Cause::default(),
            ]),
        };
        let tombstone = Record::Group {
            group: "g".into(),
            value: None,
        };
        let all = [
            offset(-1, 5, [1; 16]),
            offset(-1, -1, [0; 16]),
            offset(99, -1, [0; 16]),
            group,
            causes,
            tombstone,
        ];
        for record in all {
            let read = Record::decode(record.encode_key(), record.encode_value());
            assert_eq!(read.unwrap(), Some(record));
        }
    }

    #[test]
    fn keys_of_other_kinds_are_passed_over_and_garbage_is_an_error() {
        assert_eq!(
            Record::decode(Bytes::from_static(&[0, 3, 0, 0]), None),
            Ok(None)
        );
        assert!(Record::decode(Bytes::from_static(&[0, 2, 0, 9]), None).is_err());
    }
}
