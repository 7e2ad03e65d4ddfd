#![allow(clippy::unwrap_used)]

use super::*;

fn of(topic: &str, partitions: &[i32]) -> TopicPartitions {
    TopicPartitions {
        topic: topic.into(),
        partitions: partitions.to_vec(),
    }
}

fn subscription() -> Subscription {
    Subscription {
        version: 3,
        topics: vec!["a".into(), "b".into()],
        user_data: Some(Bytes::from_static(b"xy")),
        owned: vec![of("a", &[0, 2]), of("b", &[1])],
        generation: Some(7),
        rack: Some("east".into()),
    }
}

#[test]
fn a_subscription_has_kafkas_layout() {
    let bytes = subscription().encode();
    let expected = [
        &[0, 3][..],
        &[0, 0, 0, 2, 0, 1, b'a', 0, 1, b'b'],
        &[0, 0, 0, 2, b'x', b'y'],
        &[0, 0, 0, 2],
        &[0, 1, b'a', 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2],
        &[0, 1, b'b', 0, 0, 0, 1, 0, 0, 0, 1],
        &[0, 0, 0, 7],
        &[0, 4, b'e', b'a', b's', b't'],
    ]
    .concat();
    assert_eq!(bytes, expected);
    assert_eq!(Subscription::decode(bytes).unwrap(), subscription());
}

#[test]
fn each_version_keeps_its_own_fields() {
    for version in 0..=3 {
        let read = Subscription::decode(subscription().encode_as(version)).unwrap();
        let expected = Subscription {
            version,
            owned: if version >= 1 {
                subscription().owned
            } else {
                vec![]
            },
            generation: subscription().generation.filter(|_| version >= 2),
            rack: subscription().rack.filter(|_| version >= 3),
            ..subscription()
        };
        assert_eq!(read, expected);
    }
}

/// KAFKA-12898: the same sets in another order are the same bytes.
#[test]
fn the_order_of_insertion_does_not_show() {
    let shuffled = Subscription {
        topics: vec!["b".into(), "a".into(), "b".into()],
        owned: vec![of("b", &[1, 1]), of("a", &[2]), of("c", &[]), of("a", &[0])],
        ..subscription()
    };
    assert_eq!(shuffled.encode(), subscription().encode());
    let assignment = |assigned| Assignment {
        assigned,
        ..Assignment::default()
    };
    assert_eq!(
        assignment(vec![of("b", &[0]), of("a", &[3, 1])]).encode(),
        assignment(vec![of("a", &[1, 3]), of("b", &[0])]).encode(),
    );
}

/// franz-go#493: version 1 with the body of version 0 keeps its user data and owns nothing.
#[test]
fn version_one_that_ends_after_the_user_data_is_version_zero() {
    let mut bytes = subscription().encode_as(0).to_vec();
    bytes[1] = 1;
    let read = Subscription::decode(bytes.into()).unwrap();
    assert_eq!(read.user_data, subscription().user_data);
    assert_eq!(read.owned, []);
}

/// sarama#1808, sarama#1717, Burrow#327: newer versions and longer bodies are read as far as they are known.
#[test]
fn a_newer_version_is_read_as_the_highest_known() {
    let mut bytes = subscription().encode().to_vec();
    bytes[0..2].copy_from_slice(&99_i16.to_be_bytes());
    bytes.extend_from_slice(b"something new");
    let read = Subscription::decode(bytes.into()).unwrap();
    assert_eq!(
        read,
        Subscription {
            version: 99,
            ..subscription()
        }
    );

    let assignment = Assignment {
        version: 3,
        assigned: vec![of("a", &[0])],
        ..Assignment::default()
    };
    let mut bytes = assignment.encode().to_vec();
    bytes.extend_from_slice(b"tail");
    assert_eq!(Assignment::decode(bytes.into()).unwrap(), assignment);
}

/// kafkajs#550, KAFKA-17733: a member that the leader forgot gets no bytes, and that means no partitions.
#[test]
fn no_bytes_are_an_empty_assignment() {
    assert_eq!(
        Assignment::decode(Bytes::new()).unwrap(),
        Assignment::default()
    );
    let written = Assignment::default().encode();
    assert_eq!(Assignment::decode(written).unwrap().assigned, []);
}

#[test]
fn a_trailer_follows_the_user_data() {
    for (code, error) in [
        (0, AssignmentError::None),
        (1, AssignmentError::NeedRejoin),
        (-9, AssignmentError::Unknown(-9)),
    ] {
        assert_eq!(AssignmentError::from_code(code), error);
        let assignment = Assignment {
            version: 3,
            assigned: vec![of("a", &[0])],
            user_data: None,
            trailer: Some(Trailer {
                revoked: vec![of("a", &[1])],
                error,
            }),
        };
        let bytes = assignment.encode();
        let mut expected = Assignment {
            trailer: None,
            ..assignment.clone()
        }
        .encode()
        .to_vec();
        expected.extend_from_slice(&[0, 0, 0, 1, 0, 1, b'a', 0, 0, 0, 1, 0, 0, 0, 1]);
        expected.extend_from_slice(&code.to_be_bytes());
        assert_eq!(bytes, expected);
        assert_eq!(Assignment::decode(bytes.clone()).unwrap(), assignment);

        // A later version of Kafka's own may have a field of its own there.
        let mut later = bytes.to_vec();
        later[1] = 4;
        assert_eq!(Assignment::decode(later.into()).unwrap().trailer, None);
    }
}

#[test]
fn hostile_counts_reserve_nothing_and_every_cut_is_an_error() {
    let mut bytes = vec![0, 3];
    bytes.extend_from_slice(&i32::MAX.to_be_bytes());
    assert!(Subscription::decode(bytes.clone().into()).is_err());
    assert!(Assignment::decode(bytes.into()).is_err());
    assert!(Subscription::decode(vec![0xff, 0xff].into()).is_err());
    let whole = subscription().encode();
    for end in 0..whole.len() {
        assert!(Subscription::decode(whole.slice(..end)).is_err(), "{end}");
    }
}

#[test]
fn null_and_empty_are_absent_where_kafka_says_so() {
    let plain = Subscription {
        version: 3,
        topics: vec!["a".into()],
        ..Subscription::default()
    };
    assert_eq!(Subscription::decode(plain.encode()).unwrap(), plain);
    let blank = Subscription {
        generation: Some(-5),
        rack: Some(String::new()),
        ..plain.clone()
    };
    assert_eq!(Subscription::decode(blank.encode()).unwrap(), plain);
}

/// kafka-python#2305: sticky's user data goes both ways for no, one and many topics.
#[test]
fn sticky_user_data_goes_both_ways() {
    for previous in [
        vec![],
        vec![of("a", &[0])],
        vec![of("a", &[0, 1]), of("b", &[4])],
    ] {
        let data = StickyUserData {
            previous,
            generation: Some(4),
        };
        assert_eq!(StickyUserData::decode(&data.encode()), data);
        let bytes = data.encode();
        let version_zero = StickyUserData::decode(&bytes.slice(..bytes.len() - 4));
        assert_eq!(
            version_zero,
            StickyUserData {
                generation: None,
                ..data
            }
        );
    }
    assert_eq!(
        StickyUserData::decode(&Bytes::from_static(b"?")),
        StickyUserData::default()
    );
}

#[test]
fn the_marker_follows_the_generation() {
    let plain = CooperativeUserData {
        generation: -1,
        explicit: false,
    };
    let marked = CooperativeUserData {
        generation: 5,
        explicit: true,
    };
    assert_eq!(plain.encode(), [0xff; 4][..]);
    assert_eq!(marked.encode(), [&[0, 0, 0, 5][..], b"K429\x01"].concat());
    for data in [plain, marked] {
        assert_eq!(CooperativeUserData::decode(&data.encode()), Some(data));
    }
    assert_eq!(
        CooperativeUserData::decode(&Bytes::from_static(b"abc")),
        None
    );
}
