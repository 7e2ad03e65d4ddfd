//! DescribeGroups: asks the coordinator of each group.

use crate::node::{Exchange, Node};
use crate::router::Session;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_wire::messages::{DescribeGroupsRequest, DescribeGroupsResponse};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    exchange: &Exchange,
    request: DescribeGroupsRequest,
) -> Option<DescribeGroupsResponse> {
    let mut groups = Vec::with_capacity(request.groups.len());
    for group in request.groups {
        let one = DescribeGroupsRequest {
            groups: vec![group.clone()],
            ..request_flags(request.include_authorized_operations)
        };
        let asked = node.groups.ask(
            node,
            session,
            exchange,
            &group,
            GroupRequest::DescribeGroups(one),
        );
        let Some(GroupResponse::DescribeGroups(response)) = asked.await else {
            return None;
        };
        groups.extend(response.groups);
    }
    Some(DescribeGroupsResponse {
        groups,
        ..Default::default()
    })
}

fn request_flags(include_authorized_operations: bool) -> DescribeGroupsRequest {
    DescribeGroupsRequest {
        include_authorized_operations,
        ..Default::default()
    }
}
