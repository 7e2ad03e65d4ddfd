//! DescribeCluster (KIP-700).

use crate::node::{Exchange, Node};
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    DescribeClusterRequest, DescribeClusterResponse, DescribeClusterResponseBroker,
};

const BROKERS: i8 = 1;

pub(crate) fn handle(
    node: &Node,
    exchange: &Exchange,
    request: DescribeClusterRequest,
) -> DescribeClusterResponse {
    if request.endpoint_type != BROKERS {
        return DescribeClusterResponse {
            // MISMATCHED_ENDPOINT_TYPE
            error_code: ErrorCode::Other(114),
            error_message: Some("this is a broker, not a controller".into()),
            endpoint_type: BROKERS,
            ..Default::default()
        };
    }
    let (host, port) = node.advertised(exchange);
    let me = DescribeClusterResponseBroker {
        broker_id: node.settings.node_id,
        host,
        port,
        ..Default::default()
    };
    DescribeClusterResponse {
        cluster_id: node.cluster_id.clone(),
        controller_id: node.settings.node_id,
        brokers: vec![me],
        ..Default::default()
    }
}
