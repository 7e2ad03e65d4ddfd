//! FindCoordinator: there is one broker, so it is this one.

use crate::node::{Exchange, Node};
use kohort_wire::ErrorCode;
use kohort_wire::messages::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};

const GROUP: i8 = 0;

pub(crate) fn handle(
    node: &Node,
    exchange: &Exchange,
    request: FindCoordinatorRequest,
) -> FindCoordinatorResponse {
    let refused = if request.key_type == GROUP {
        let made = node.groups.ensure_topic(&node.topics);
        made.err().map(|_| {
            (
                ErrorCode::CoordinatorNotAvailable,
                "the offsets topic cannot be made",
            )
        })
    } else {
        Some((
            ErrorCode::InvalidRequest,
            "only groups have coordinators here: no transactions, no share groups",
        ))
    };
    let (host, port) = node.advertised(exchange);
    let find = |key: String| match refused {
        None => Coordinator {
            key,
            node_id: node.settings.node_id,
            host: host.clone(),
            port,
            ..Default::default()
        },
        Some((error_code, text)) => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code,
            error_message: Some(text.to_owned()),
            ..Default::default()
        },
    };
    if exchange.version >= 4 {
        let coordinators = request.coordinator_keys.into_iter().map(find).collect();
        return FindCoordinatorResponse {
            coordinators,
            ..Default::default()
        };
    }
    let found = find(request.key);
    FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: found.error_message,
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..Default::default()
    }
}
