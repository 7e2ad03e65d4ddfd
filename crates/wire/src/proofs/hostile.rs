//! No bytes make a decoder panic: random ones, such as lead deep into a message, and messages that were damaged.

use super::{Sample, Source, for_all_apis};
use crate::api::{ApiRequest, decode, encode};
use crate::header::RequestHeader;
use crate::messages;
use crate::primitives::{Decoder, WireType};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use proptest::sample::Index;

/// What is done to a message.
#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Remove(Index),
    Insert(Index, u8),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    // Bytes that make lengths: null, empty, a few, very many.
    let byte = || {
        prop_oneof![
            any::<u8>(),
            Just(0),
            Just(1),
            Just(0x7f),
            Just(0x80),
            Just(0xff)
        ]
    };
    let one = prop_oneof![
        (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        any::<Index>().prop_map(Damage::Remove),
        (any::<Index>(), byte()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        any::<Index>().prop_map(Damage::Cut),
    ];
    proptest::collection::vec(one, 1..6)
}

fn damaged(bytes: &[u8], damage: &[Damage]) -> Bytes {
    let mut bytes = bytes.to_vec();
    for damage in damage {
        let room = bytes.len() + 1;
        match damage {
            Damage::Insert(at, byte) => bytes.insert(at.index(room), *byte),
            Damage::Cut(at) => bytes.truncate(at.index(room)),
            _ if bytes.is_empty() => {}
            Damage::Set(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Damage::Remove(at) => {
                bytes.remove(at.index(bytes.len()));
            }
        }
    }
    bytes.into()
}

fn survive<R: ApiRequest, T: WireType + Sample>(source: &[u8], damage: &[Damage]) {
    for version in R::VERSIONS.0..=R::VERSIONS.1 {
        let context = R::context(version).unwrap();
        let value = T::sample(&mut Source::new(source.to_vec()), context);
        let valid = encode::<R, T>(&value, version, BytesMut::new()).unwrap();
        for bytes in [Bytes::copy_from_slice(source), damaged(&valid, damage)] {
            // What can be read can be written.
            if let Ok(read) = decode::<R, T>(bytes, version) {
                encode::<R, T>(&read, version, BytesMut::new()).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn no_bytes_make_a_decoder_panic(
        source in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..300),
            proptest::collection::vec(0u8..4, 0..300),
        ],
        damage in damage(),
    ) {
        macro_rules! check {
            ($request:ident) => {
                survive::<messages::$request, messages::$request>(&source, &damage);
                survive::<messages::$request, <messages::$request as ApiRequest>::Response>(&source, &damage);
            };
        }
        for_all_apis!(check);
        let _ = RequestHeader::decode(&mut Decoder::new(source.clone().into()), |_| 0);
        let _ = crate::frame::split(&mut BytesMut::from(&source[..]), 1 << 20);
    }

    #[test]
    fn varints_come_back(small: i32, large: i64) {
        let mut to = crate::Encoder::new();
        to.varint(small);
        to.varlong(large);
        to.unsigned_varint(small as u32);
        let mut from = Decoder::new(to.into_bytes().freeze());
        prop_assert_eq!((from.varint(), from.varlong(), from.unsigned_varint()), (Ok(small), Ok(large), Ok(small as u32)));
        prop_assert!(from.finish().is_ok());
    }
}
