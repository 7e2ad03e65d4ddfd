//! DescribeCluster (60): brokers of the cluster (KIP-700). Controllers (v1, KIP-919), fenced brokers (v2, KIP-1073).

use crate::error_code::ErrorCode;

message! {
    /// What to tell.
    pub struct DescribeClusterRequest {
        /// Whether to say what the client may do.
        include_cluster_authorized_operations: bool = all();
        /// Whom to list: 1 the brokers, 2 the controllers.
        endpoint_type: i8 = since(1) => 1;
        /// Whether to list brokers that are fenced.
        include_fenced_brokers: bool = since(2);
    }
    /// The cluster.
    pub struct DescribeClusterResponse {
        /// Milliseconds for which the client should be silent.
        throttle_time_ms: i32 = all();
        /// What went wrong.
        error_code: ErrorCode = all();
        /// The same in words.
        error_message: Option<String> = all().nullable(0);
        /// Who is listed, as in the request.
        endpoint_type: i8 = since(1) => 1;
        /// The cluster.
        cluster_id: String = all();
        /// The controller's id, −1 if unknown.
        controller_id: i32 = all() => -1;
        /// The brokers or controllers.
        brokers: Vec<DescribeClusterResponseBroker> = all();
        /// What the client may do, as bits; the minimum of int32 if not asked for.
        cluster_authorized_operations: i32 = all() => i32::MIN;
    }
    /// A broker.
    pub struct DescribeClusterResponseBroker {
        /// The broker's id.
        broker_id: i32 = all();
        /// Its host.
        host: String = all();
        /// Its port.
        port: i32 = all();
        /// Its rack.
        rack: Option<String> = all().nullable(0);
        /// Whether it is fenced.
        is_fenced: bool = since(2);
    }
}
api! { DescribeClusterRequest => DescribeClusterResponse: DescribeCluster, 0..=2, flexible 0; }
