//! What the invariants see: every step of the world, before the ledger has taken it in.

use kohort_group::coordinator::{self, GroupRequest, GroupResponse, RequestId};
use kohort_group::member;
use kohort_group::partitions::{Topic, TopicPartition};
use std::collections::BTreeMap;

/// One incarnation of a member's process. Numbers are never used twice.
pub(crate) type Process = usize;

/// Who was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Machine {
    Member(Process),
    Coordinator,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Fact<'a> {
    /// A process starts.
    Started {
        process: Process,
        instance: Option<&'a str>,
        eager: bool,
    },
    /// A member is told something; what it says to that comes next.
    Told {
        process: Process,
        input: &'a member::Input,
    },
    /// A member wants something done.
    Said {
        process: Process,
        output: &'a member::Output,
    },
    /// A process is gone.
    Ended(Process),
    /// A request has reached the coordinator; what it does about it comes next.
    Asked {
        id: RequestId,
        process: Process,
        /// Its sender has seen the connection break, and does not wait for it any more.
        zombie: bool,
        request: &'a GroupRequest,
    },
    /// Requests whose connection broke: they may be answered or not.
    Abandoned(RequestId),
    /// An alarm of the coordinator fires.
    Woke(&'a coordinator::Alarm),
    /// The coordinator appends a record.
    Appending(&'a coordinator::record::Record),
    /// The coordinator answers (perhaps not before an append is durable).
    Answered {
        id: RequestId,
        response: &'a GroupResponse,
    },
    /// The answer goes out.
    Sent {
        id: RequestId,
        response: &'a GroupResponse,
    },
    /// The oldest append that was under way is durable.
    Durable(&'a coordinator::record::Record),
    /// An answer that waited for a failed append is dropped: the coordinator owes another.
    Unanswered(RequestId),
    /// Appends that were under way are gone.
    Undone,
    /// The coordinator has given its groups away: nothing may be parked any more.
    Unloaded,
    /// The coordinator is gone; what was not durable is gone too.
    CoordinatorDown,
    /// The log was replayed into a fresh coordinator, and its hard state compared with the old one's.
    Replayed(Result<(), String>),
    /// A machine has handled an alarm, and this is its next deadline.
    Slept {
        machine: Machine,
        deadline: Option<u64>,
    },
    /// An application reads a record.
    Read {
        process: Process,
        partition: &'a TopicPartition,
        offset: i64,
        value: u64,
    },
    /// A record is acknowledged to its producer.
    Produced {
        partition: &'a TopicPartition,
        value: u64,
    },
    /// The topics that exist now, with their numbers of partitions.
    Topics(&'a BTreeMap<Topic, i32>),
}
