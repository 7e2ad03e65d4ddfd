//! ListGroups: asks every coordinator that has groups.

use crate::node::{Exchange, Node};
use crate::router::Session;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_wire::messages::{ListGroupsRequest, ListGroupsResponse};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    exchange: &Exchange,
    request: ListGroupsRequest,
) -> Option<ListGroupsResponse> {
    let mut all = ListGroupsResponse::default();
    for partition in node.groups.active() {
        let one = GroupRequest::ListGroups(request.clone());
        let asked = node
            .groups
            .ask_partition(node, session, exchange, partition, one);
        let Some(GroupResponse::ListGroups(response)) = asked.await else {
            return None;
        };
        if !response.error_code.is_none() {
            all.error_code = response.error_code;
        }
        all.groups.extend(response.groups);
    }
    Some(all)
}
