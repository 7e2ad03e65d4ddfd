//! What can happen to a coordinator.

use super::record::Record;
use crate::topics::TopicImage;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest,
    LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest,
    OffsetFetchRequest, SyncGroupRequest,
};
use std::sync::Arc;

/// Names a request, so that its reply finds the way back. The shell never uses one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Names a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Who sends, as far as the connection tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Client {
    /// The client id of the request header, empty if it had none.
    pub id: String,
    /// The address as Kafka shows it, such as `/127.0.0.1`.
    pub host: String,
}

/// A request for groups of this coordinator. Requests that name several groups are split by the shell: each coordinator gets
/// those that are its own, and the shell puts the answers together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named after the APIs")]
pub enum GroupRequest {
    JoinGroup(JoinGroupRequest),
    SyncGroup(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    LeaveGroup(LeaveGroupRequest),
    OffsetCommit(OffsetCommitRequest),
    OffsetFetch(OffsetFetchRequest),
    DescribeGroups(DescribeGroupsRequest),
    ListGroups(ListGroupsRequest),
    DeleteGroups(DeleteGroupsRequest),
    OffsetDelete(OffsetDeleteRequest),
}

/// Everything that can happen to a coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A client asks.
    Request {
        /// Names the request.
        id: RequestId,
        /// Where it came from.
        connection: ConnectionId,
        /// Who sent it.
        client: Arc<Client>,
        /// The version of the request, which also shapes the response.
        version: i16,
        /// What it asks.
        request: GroupRequest,
    },
    /// A connection ended: its parked requests need no reply any more (members stay until their session ends).
    Disconnected(ConnectionId),
    /// The topics that exist now.
    Topics(TopicImage),
    /// A record of the log, while loading.
    Replay(Record),
    /// The log has been replayed: serve. Before that, requests are answered COORDINATOR_LOAD_IN_PROGRESS.
    Loaded,
    /// The append with this number is durable.
    Appended(u64),
    /// The append with this number failed, and so did all after it; the reason is the log's.
    AppendFailed(u64, ErrorCode),
    /// The partition's leadership went elsewhere: everything parked is answered NOT_COORDINATOR and forgotten.
    Unload,
    /// An alarm is due.
    Alarm(Alarm),
}

/// The coordinator's alarms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alarm {
    /// An empty group has waited long enough for more members.
    InitialDelay(Arc<str>),
    /// The join phase of a group ends, whoever is missing.
    Rebalance(Arc<str>),
    /// Members of a group that have not synced are removed.
    PendingSync(Arc<str>),
    /// A member gave no sign of life (group, member id).
    Session(Arc<str>, Arc<str>),
    /// A member id that was handed out was not used (group, member id).
    PendingJoin(Arc<str>, Arc<str>),
    /// Look for offsets that have expired.
    Retention,
}
