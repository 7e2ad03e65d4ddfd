//! What coordinators keep, as Kafka encodes it in `__consumer_offsets`, so that Kafka's own tools can read it.
//!
//! | key | value |
//! |---|---|
//! | version 1: group, topic, partition | version 3: offset, leader epoch, metadata, commit time; version 4 (flexible) where a topic id is known; version 1 where an expiry is set |
//! | version 2: group | version 3: type, generation, protocol, leader, time, members |

use bytes::Bytes;
use kohort_group::coordinator::record::{GroupValue, GroupValueMember, OffsetValue, Record};
use kohort_wire::primitives::{Context, Uuid, WireType};
use kohort_wire::{Decoder, Encoder, WireError};

const OFFSET_KEY: i16 = 1;
const GROUP_KEY: i16 = 2;
const UNKNOWN_ID: Uuid = [0; 16];

const CLASSIC: Context = Context {
    version: 0,
    flexible: false,
    nullable: true,
};
const FLEXIBLE: Context = Context {
    version: 0,
    flexible: true,
    nullable: true,
};

/// A key, and a value unless it is a tombstone.
pub(super) fn encode(record: &Record) -> (Bytes, Option<Bytes>) {
    let mut key = Encoder::new();
    let value = match record {
        Record::Offset {
            group,
            topic,
            partition,
            value,
        } => {
            key.i16(OFFSET_KEY);
            group.encode(&mut key, CLASSIC);
            topic.encode(&mut key, CLASSIC);
            key.i32(*partition);
            value.as_ref().map(encode_offset)
        }
        Record::Group { group, value } => {
            key.i16(GROUP_KEY);
            group.encode(&mut key, CLASSIC);
            value.as_ref().map(encode_group)
        }
    };
    (finish(key), value.map(finish))
}

fn finish(encoder: Encoder) -> Bytes {
    encoder.into_bytes().freeze()
}

fn encode_offset(value: &OffsetValue) -> Encoder {
    let mut to = Encoder::new();
    if value.expire_timestamp != -1 {
        to.i16(1);
        to.i64(value.offset);
        value.metadata.encode(&mut to, CLASSIC);
        to.i64(value.commit_timestamp);
        to.i64(value.expire_timestamp);
        return to;
    }
    let flexible = value.topic_id != UNKNOWN_ID;
    to.i16(if flexible { 4 } else { 3 });
    to.i64(value.offset);
    to.i32(value.leader_epoch);
    value
        .metadata
        .encode(&mut to, if flexible { FLEXIBLE } else { CLASSIC });
    to.i64(value.commit_timestamp);
    if flexible {
        // One tagged field: number 0, 16 bytes.
        to.unsigned_varint(1);
        to.unsigned_varint(0);
        to.unsigned_varint(16);
        to.raw(&value.topic_id);
    }
    to
}

fn encode_group(value: &GroupValue) -> Encoder {
    let mut to = Encoder::new();
    to.i16(3);
    value.protocol_type.encode(&mut to, CLASSIC);
    to.i32(value.generation);
    value.protocol.encode(&mut to, CLASSIC);
    value.leader.encode(&mut to, CLASSIC);
    to.i64(value.current_state_timestamp);
    to.i32(value.members.len() as i32);
    for member in &value.members {
        member.member_id.encode(&mut to, CLASSIC);
        member.group_instance_id.encode(&mut to, CLASSIC);
        member.client_id.encode(&mut to, CLASSIC);
        member.client_host.encode(&mut to, CLASSIC);
        to.i32(member.rebalance_timeout_ms);
        to.i32(member.session_timeout_ms);
        member.subscription.encode(&mut to, CLASSIC);
        member.assignment.encode(&mut to, CLASSIC);
    }
    to
}

/// Reads a record; `None` if its kind is not one of a classic group's.
///
/// # Errors
/// [`WireError`] if the bytes are not what their version says.
pub(super) fn decode(key: Bytes, value: Option<Bytes>) -> Result<Option<Record>, WireError> {
    let mut from = Decoder::new(key);
    Ok(Some(match from.i16()? {
        0 | OFFSET_KEY => Record::Offset {
            group: String::decode(&mut from, CLASSIC)?,
            topic: String::decode(&mut from, CLASSIC)?,
            partition: from.i32()?,
            value: value.map(decode_offset).transpose()?,
        },
        GROUP_KEY => Record::Group {
            group: String::decode(&mut from, CLASSIC)?,
            value: value.map(decode_group).transpose()?,
        },
        _ => return Ok(None),
    }))
}

fn decode_offset(value: Bytes) -> Result<OffsetValue, WireError> {
    let mut from = Decoder::new(value);
    let version = from.i16()?;
    if !(0..=4).contains(&version) {
        return Err(WireError::UnknownVersion {
            api: "OffsetCommitValue",
            version,
        });
    }
    let context = if version >= 4 { FLEXIBLE } else { CLASSIC };
    let offset = from.i64()?;
    let leader_epoch = if version >= 3 { from.i32()? } else { -1 };
    let metadata = String::decode(&mut from, context)?;
    let commit_timestamp = from.i64()?;
    let expire_timestamp = if version == 1 { from.i64()? } else { -1 };
    let mut topic_id = UNKNOWN_ID;
    if version >= 4 {
        for _ in 0..from.unsigned_varint()? {
            let number = from.unsigned_varint()?;
            let size = from.unsigned_varint()? as usize;
            let bytes = from.take(size)?;
            if number == 0 {
                topic_id = Uuid::decode(&mut Decoder::new(bytes), CLASSIC)?;
            }
        }
    }
    Ok(OffsetValue {
        offset,
        leader_epoch,
        metadata,
        commit_timestamp,
        expire_timestamp,
        topic_id,
    })
}

fn decode_group(value: Bytes) -> Result<GroupValue, WireError> {
    let mut from = Decoder::new(value);
    let version = from.i16()?;
    if !(0..=3).contains(&version) {
        return Err(WireError::UnknownVersion {
            api: "GroupMetadataValue",
            version,
        });
    }
    let protocol_type = String::decode(&mut from, CLASSIC)?;
    let generation = from.i32()?;
    let protocol = Option::<String>::decode(&mut from, CLASSIC)?;
    let leader = Option::<String>::decode(&mut from, CLASSIC)?;
    let current_state_timestamp = if version >= 2 { from.i64()? } else { -1 };
    let count = from.length(false, true)?.unwrap_or(0);
    let mut members = Vec::new();
    for _ in 0..count {
        members.push(decode_member(&mut from, version)?);
    }
    Ok(GroupValue {
        protocol_type,
        generation,
        protocol,
        leader,
        current_state_timestamp,
        members,
    })
}

fn decode_member(from: &mut Decoder, version: i16) -> Result<GroupValueMember, WireError> {
    let member_id = String::decode(from, CLASSIC)?;
    let group_instance_id = if version >= 3 {
        Option::<String>::decode(from, CLASSIC)?
    } else {
        None
    };
    let client_id = String::decode(from, CLASSIC)?;
    let client_host = String::decode(from, CLASSIC)?;
    let rebalance_timeout_ms = if version >= 1 { from.i32()? } else { -1 };
    let session_timeout_ms = from.i32()?;
    Ok(GroupValueMember {
        member_id,
        group_instance_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription: Bytes::decode(from, CLASSIC)?,
        assignment: Bytes::decode(from, CLASSIC)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(topic_id: Uuid, expire_timestamp: i64) -> Record {
        Record::Offset {
            group: "g".into(),
            topic: "t".into(),
            partition: 3,
            value: Some(OffsetValue {
                offset: 42,
                leader_epoch: if expire_timestamp == -1 { 7 } else { -1 },
                metadata: "m".into(),
                commit_timestamp: 1_000,
                expire_timestamp,
                topic_id,
            }),
        }
    }

    #[test]
    fn records_come_back_as_they_went() {
        let member = GroupValueMember {
            member_id: "a-1".into(),
            group_instance_id: Some("a".into()),
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout_ms: 60_000,
            session_timeout_ms: 45_000,
            subscription: Bytes::from_static(b"sub"),
            assignment: Bytes::from_static(b""),
        };
        let group = GroupValue {
            protocol_type: "consumer".into(),
            generation: 9,
            protocol: Some("range".into()),
            leader: None,
            current_state_timestamp: 5,
            members: vec![member],
        };
        let records = [
            offset(UNKNOWN_ID, -1),
            offset([5; 16], -1),
            offset(UNKNOWN_ID, 99),
            Record::Offset {
                group: "g".into(),
                topic: "t".into(),
                partition: 0,
                value: None,
            },
            Record::Group {
                group: "g".into(),
                value: Some(group),
            },
            Record::Group {
                group: "g".into(),
                value: None,
            },
        ];
        for record in records {
            let (key, value) = encode(&record);
            assert_eq!(decode(key.clone(), value.clone()), Ok(Some(record)));
            // However it is cut, that is an error and no panic.
            for end in 0..value.as_ref().map_or(0, Bytes::len) {
                let cut = value.as_ref().map(|value| value.slice(..end));
                assert!(decode(key.clone(), cut).is_err());
            }
        }
        let unknown = decode(Bytes::from_static(&[0, 3, 0, 1]), None);
        assert_eq!(unknown, Ok(None));
    }

    /// Written by hand after Kafka's schemas.
    #[test]
    fn the_bytes_are_kafkas() {
        let (key, value) = encode(&offset(UNKNOWN_ID, -1));
        assert_eq!(&key[..], b"\0\x01\0\x01g\0\x01t\0\0\0\x03");
        let expected = b"\0\x03\0\0\0\0\0\0\0\x2a\0\0\0\x07\0\x01m\0\0\0\0\0\0\x03\xe8";
        assert_eq!(value.as_deref(), Some(&expected[..]));
    }
}
