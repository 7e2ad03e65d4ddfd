//! Traces of inputs: what a peer may say to the coordinator and to a member, in any order, with any content.

use crate::decisions::Decisions;
use bytes::Bytes;
use kohort_group::topics::{TopicImage, TopicInfo};

mod coordinator;
mod member;

pub(crate) use coordinator::coordinator;
pub(crate) use member::member;

/// A trace has so many steps at most.
const MOST_STEPS: usize = 512;

const NAMES: [&str; 3] = ["cooperative-sticky", "range", "own"];

fn topics(decisions: &mut Decisions<'_>) -> TopicImage {
    ["t", "u"]
        .into_iter()
        .map(|name| (name.into(), decisions.below(5)))
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name, TopicInfo::with_partitions(count)))
        .collect()
}

/// A number that peers may send where a small one is expected.
fn number(decisions: &mut Decisions<'_>) -> i32 {
    match decisions.byte() {
        255 => i32::MAX,
        254 => i32::MIN,
        253 => -1,
        252 => 1 << 20,
        small => i32::from(small),
    }
}

/// Text that peers may send where a name is expected.
fn text(decisions: &mut Decisions<'_>, known: &[&str]) -> String {
    match decisions.byte() {
        255 => String::new(),
        254 => "\u{0}é".repeat(40),
        _ => decisions.pick(known).unwrap_or_default().to_owned(),
    }
}

/// Well-formed metadata or assignments more often than any bytes.
fn payload(
    decisions: &mut Decisions<'_>,
    formed: impl FnOnce(&mut Decisions<'_>) -> Bytes,
) -> Bytes {
    if decisions.below(4) == 0 {
        decisions.bytes()
    } else {
        formed(decisions)
    }
}
