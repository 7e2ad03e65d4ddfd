//! ListPartitionReassignments: with one broker nothing ever moves.

use crate::node::{Exchange, Node};
use kohort_wire::messages::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

pub(crate) fn handle(
    _: &Node,
    _: &Exchange,
    _: ListPartitionReassignmentsRequest,
) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse::default()
}
