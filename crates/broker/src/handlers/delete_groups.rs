//! DeleteGroups: asks the coordinator of each group.

use crate::node::{Exchange, Node};
use crate::router::Session;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_wire::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    exchange: &Exchange,
    request: DeleteGroupsRequest,
) -> Option<DeleteGroupsResponse> {
    let mut results = Vec::with_capacity(request.groups_names.len());
    for group in request.groups_names {
        let one = DeleteGroupsRequest {
            groups_names: vec![group.clone()],
        };
        let asked = node.groups.ask(
            node,
            session,
            exchange,
            &group,
            GroupRequest::DeleteGroups(one),
        );
        let Some(GroupResponse::DeleteGroups(response)) = asked.await else {
            return None;
        };
        results.extend(response.results);
    }
    Some(DeleteGroupsResponse {
        results,
        ..Default::default()
    })
}
