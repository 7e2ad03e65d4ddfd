//! OffsetFetch: asks the coordinator of each group; from v8 on there may be several.

use crate::node::{Exchange, Node};
use crate::router::Session;
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_wire::messages::{OffsetFetchRequest, OffsetFetchResponse};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    exchange: &Exchange,
    request: OffsetFetchRequest,
) -> Option<OffsetFetchResponse> {
    if exchange.version < 8 {
        let group = request.group_id.clone();
        return ask(node, session, exchange, &group, request).await;
    }
    let mut all = OffsetFetchResponse::default();
    for group in request.groups {
        let id = group.group_id.clone();
        let one = OffsetFetchRequest {
            groups: vec![group],
            require_stable: request.require_stable,
            ..Default::default()
        };
        all.groups
            .extend(ask(node, session, exchange, &id, one).await?.groups);
    }
    Some(all)
}

async fn ask(
    node: &Node,
    session: &mut Session,
    exchange: &Exchange,
    group: &str,
    request: OffsetFetchRequest,
) -> Option<OffsetFetchResponse> {
    match node
        .groups
        .ask(
            node,
            session,
            exchange,
            group,
            GroupRequest::OffsetFetch(request),
        )
        .await
    {
        Some(GroupResponse::OffsetFetch(response)) => Some(response),
        _ => None,
    }
}
