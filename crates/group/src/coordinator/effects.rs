//! What a group needs to act: time, settings, alarms, appends and the list of outputs.

use super::CoordinatorConfig;
use super::classic::Undo;
use super::input::{Alarm, RequestId};
use super::offsets::Commits;
use super::output::{GroupResponse, Output};
use super::record::Record;
use crate::time::{Alarms, Timestamp};
use crate::topics::TopicImage;
use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::messages::OffsetDeleteResponse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What waits for an append.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    /// What to answer if it fails, but for the error (the reply for success is on its way, held back by the shell).
    Reply(RequestId, Box<GroupResponse>),
    /// The leader's assignments: they hold when they are stored.
    LeaderSync {
        group: Arc<str>,
        generation: i32,
        assignments: BTreeMap<Arc<str>, Bytes>,
    },
    /// A static member that was replaced, and how to take that back.
    Replaced { group: Arc<str>, undo: Box<Undo> },
    /// Offsets that hold when they are stored.
    Offsets { group: Arc<str>, offsets: Commits },
}

/// The surroundings of a group while it acts.
pub(super) struct Effects<'a> {
    pub(super) now: Timestamp,
    pub(super) config: &'a CoordinatorConfig,
    pub(super) topics: &'a TopicImage,
    pub(super) alarms: &'a mut Alarms<Alarm>,
    pub(super) pending: &'a mut BTreeMap<u64, Vec<Pending>>,
    pub(super) next_append: &'a mut u64,
    pub(super) seed: u64,
    pub(super) ids: &'a mut u64,
    pub(super) out: &'a mut Vec<Output>,
}

impl Effects<'_> {
    pub(super) fn reply(&mut self, id: RequestId, response: GroupResponse) {
        self.out.push(Output::Reply {
            id,
            response,
            after: None,
        });
    }

    /// Answers with `response` when append `after` is durable, and with `otherwise` and the error if it fails.
    pub(super) fn reply_after(
        &mut self,
        id: RequestId,
        response: GroupResponse,
        after: u64,
        otherwise: GroupResponse,
    ) {
        self.out.push(Output::Reply {
            id,
            response,
            after: Some(after),
        });
        self.when(after, Pending::Reply(id, Box::new(otherwise)));
    }

    /// Appends a record and gives its number.
    pub(super) fn append(&mut self, record: Record) -> u64 {
        let n = *self.next_append;
        *self.next_append += 1;
        self.out.push(Output::Append(n, record));
        n
    }

    /// Does something when append `n` is durable, or has failed.
    pub(super) fn when(&mut self, n: u64, pending: Pending) {
        self.pending.entry(n).or_default().push(pending);
    }

    /// The wall clock, Unix milliseconds.
    pub(super) fn wall_clock(&self) -> i64 {
        wall_clock(self.config, self.now)
    }

    /// A member id that was never used: `<prefix>-<unique>`. An endless prefix is cut, so that the log can hold the whole.
    pub(super) fn member_id(&mut self, prefix: &str) -> Arc<str> {
        let prefix = kohort_wire::primitives::cut(prefix, super::LONGEST_NAME - 64);
        *self.ids += 1;
        let high = mix(self.seed ^ mix(*self.ids));
        let low = mix(high ^ self.seed.rotate_left(32) ^ *self.ids);
        let (a, b, c) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
        let (d, e) = (low >> 48, low & 0xffff_ffff_ffff);
        format!("{prefix}-{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}").into()
    }
}

/// The wall clock at `now`, Unix milliseconds.
pub(super) fn wall_clock(config: &CoordinatorConfig, now: Timestamp) -> i64 {
    i64::try_from(config.wall_clock_offset_ms.saturating_add(now.0)).unwrap_or(i64::MAX)
}

/// The finishing step of splitmix64: spreads a number over all bits.
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// What a client hears when an append failed, as Kafka maps it.
pub(super) fn mapped(error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::UnknownTopicOrPartition
        | ErrorCode::NotEnoughReplicas
        | ErrorCode::RequestTimedOut => ErrorCode::CoordinatorNotAvailable,
        ErrorCode::NotLeaderOrFollower | ErrorCode::KafkaStorageError => ErrorCode::NotCoordinator,
        ErrorCode::MessageTooLarge
        | ErrorCode::RecordListTooLarge
        | ErrorCode::InvalidFetchSize
        // A shell that does not say why.
        | ErrorCode::None => ErrorCode::UnknownServerError,
        other => other,
    }
}

/// Writes into an answer why what it was to confirm could not be stored.
pub(super) fn not_stored(response: &mut GroupResponse, error: ErrorCode) {
    match response {
        GroupResponse::JoinGroup(response) => response.error_code = error,
        GroupResponse::OffsetCommit(response) => {
            let partitions = response.topics.iter_mut().flat_map(|t| &mut t.partitions);
            for partition in partitions.filter(|partition| partition.error_code.is_none()) {
                partition.error_code = error;
            }
        }
        GroupResponse::DeleteGroups(response) => {
            let results = response.results.iter_mut();
            for result in results.filter(|result| result.error_code.is_none()) {
                result.error_code = error;
            }
        }
        GroupResponse::OffsetDelete(response) => {
            *response = OffsetDeleteResponse {
                error_code: error,
                ..OffsetDeleteResponse::default()
            };
        }
        GroupResponse::SyncGroup(_)
        | GroupResponse::Heartbeat(_)
        | GroupResponse::LeaveGroup(_)
        | GroupResponse::OffsetFetch(_)
        | GroupResponse::DescribeGroups(_)
        | GroupResponse::ListGroups(_) => {}
    }
}
