//! What a coordinator wants done.

use super::input::RequestId;
use super::record::Record;
use crate::history::RebalanceRecord;
use kohort_wire::messages::{
    DeleteGroupsResponse, DescribeGroupsResponse, HeartbeatResponse, JoinGroupResponse,
    LeaveGroupResponse, ListGroupsResponse, OffsetCommitResponse, OffsetDeleteResponse,
    OffsetFetchResponse, SyncGroupResponse,
};

/// The answer to a [`GroupRequest`](super::GroupRequest).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named after the APIs")]
pub enum GroupResponse {
    JoinGroup(JoinGroupResponse),
    SyncGroup(SyncGroupResponse),
    Heartbeat(HeartbeatResponse),
    LeaveGroup(LeaveGroupResponse),
    OffsetCommit(OffsetCommitResponse),
    OffsetFetch(OffsetFetchResponse),
    DescribeGroups(DescribeGroupsResponse),
    ListGroups(ListGroupsResponse),
    DeleteGroups(DeleteGroupsResponse),
    OffsetDelete(OffsetDeleteResponse),
}

/// Something to do; outputs are done in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Output {
    /// Append a record to the log and say [`Input::Appended`](super::Input::Appended) with the number when it is durable. Numbers ascend.
    Append(u64, Record),
    /// Answer a request.
    Reply {
        /// The request.
        id: RequestId,
        /// The answer.
        response: GroupResponse,
        /// Not before this append is durable. If it fails, the shell drops the reply: the coordinator sends another.
        after: Option<u64>,
    },
    /// A rebalance has ended: publish its record.
    Rebalanced(Box<RebalanceRecord>),
}
