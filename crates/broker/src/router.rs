//! From a frame to the handler of its API, and from the handler's answer to a frame.

use crate::handlers;
use crate::intercept::{Intercepted, Verdict};
use crate::listener::Ended;
use crate::node::{Exchange, Node};
use bytes::Bytes;
use kohort_group::coordinator::{Client, ConnectionId, GroupRequest, GroupResponse};
use kohort_wire::header::RequestHeader;
use kohort_wire::messages::*;
use kohort_wire::{ApiKey, ApiRequest, Decoder, WireError, api, frame};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// What becomes of a request.
pub(crate) enum Answer {
    Send(Bytes),
    /// Produce with acks=0.
    Nothing,
    /// The connection is to be closed.
    Close,
}

/// What is known of a connection.
pub(crate) struct Session {
    pub(crate) id: ConnectionId,
    pub(crate) local: SocketAddr,
    /// The coordinators that have heard from it, by partition.
    pub(crate) coordinators: BTreeSet<usize>,
    /// The same value for all requests, as long as the client id stays.
    client: Arc<Client>,
}

impl Session {
    pub(crate) fn new(id: ConnectionId, peer: SocketAddr, local: SocketAddr) -> Self {
        let client = Client {
            id: String::new(),
            host: format!("/{}", peer.ip()),
        };
        Self {
            id,
            local,
            coordinators: BTreeSet::new(),
            client: Arc::new(client),
        }
    }

    fn client(&mut self, id: &str) -> Arc<Client> {
        if self.client.id != id {
            self.client = Arc::new(Client {
                id: id.to_owned(),
                host: self.client.host.clone(),
            });
        }
        Arc::clone(&self.client)
    }
}

macro_rules! served {
    ($($request:ident $low:literal..=$high:literal,)*) => {
        /// The APIs and versions that are served; those of Apache Kafka 4 as far as the wire format is known here.
        pub(crate) const SERVED: &[(ApiKey, i16, i16)] = &[
            $((<$request as ApiRequest>::KEY, $low, $high),)*
        ];

        /// The first flexible version, by which request headers are told apart.
        fn flexible_since(key: ApiKey) -> i16 {
            $(if key == <$request as ApiRequest>::KEY { return <$request as ApiRequest>::FLEXIBLE; })*
            i16::MAX
        }

        #[cfg(test)]
        #[test]
        fn only_known_versions_are_served() {
            $(assert!($request::knows($low) && $request::knows($high), stringify!($request));)*
        }
    };
}

served! {
    ProduceRequest 3..=13,
    FetchRequest 4..=18,
    ListOffsetsRequest 1..=11,
    MetadataRequest 0..=13,
    OffsetCommitRequest 2..=10,
    OffsetFetchRequest 1..=10,
    FindCoordinatorRequest 0..=6,
    JoinGroupRequest 0..=9,
    HeartbeatRequest 0..=4,
    LeaveGroupRequest 0..=5,
    SyncGroupRequest 0..=5,
    DescribeGroupsRequest 0..=6,
    ListGroupsRequest 0..=5,
    ApiVersionsRequest 0..=4,
    CreateTopicsRequest 2..=7,
    DeleteTopicsRequest 1..=6,
    DeleteRecordsRequest 0..=2,
    InitProducerIdRequest 0..=5,
    OffsetForLeaderEpochRequest 2..=4,
    DescribeConfigsRequest 1..=4,
    AlterConfigsRequest 0..=2,
    CreatePartitionsRequest 0..=3,
    DeleteGroupsRequest 0..=2,
    IncrementalAlterConfigsRequest 0..=1,
    ListPartitionReassignmentsRequest 0..=0,
    OffsetDeleteRequest 0..=0,
    DescribeClusterRequest 0..=2,
}

/// Serves one request.
///
/// # Errors
/// [`Ended::Refused`] where it cannot be understood: the connection is to be closed, as Kafka does.
pub(crate) async fn answer(
    node: &Arc<Node>,
    session: &mut Session,
    request: Bytes,
) -> Result<Answer, Ended> {
    let mut from = Decoder::new(request);
    let header = RequestHeader::decode(&mut from, flexible_since).map_err(|error| {
        Ended::Refused(format!("a request header that makes no sense: {error}"))
    })?;
    let served = SERVED
        .iter()
        .find(|(key, _, _)| *key as i16 == header.api_key);
    let Some((key, low, high)) = served.copied() else {
        let text = format!(
            "a request for API {}, which is not served here",
            header.api_key
        );
        return Err(Ended::Refused(text));
    };
    let body = from.rest().clone();
    if !(low..=high).contains(&header.version) {
        if key == ApiKey::ApiVersions {
            return handlers::api_versions::unsupported(&header);
        }
        let text = format!(
            "{} version {}; expected {low} to {high}",
            key.name(),
            header.version
        );
        return Err(Ended::Refused(text));
    }
    let exchange = Exchange {
        connection: session.id,
        client: session.client(header.client_id.as_deref().unwrap_or_default()),
        version: header.version,
        local: session.local,
    };
    let lose = intercept(node, key, &exchange, &body).await?;
    let answer = dispatch(node, session, key, &header, &exchange, body).await;
    let answer = answer
        .map_err(|error| Ended::Refused(format!("{} v{}: {error}", key.name(), header.version)))?;
    Ok(if lose { Answer::Close } else { answer })
}

/// Asks the hook, if there is one; whether the answer is to be lost.
async fn intercept(
    node: &Node,
    api: ApiKey,
    exchange: &Exchange,
    body: &Bytes,
) -> Result<bool, Ended> {
    let Some(intercept) = &node.intercept else {
        return Ok(false);
    };
    let intercepted = Intercepted {
        api,
        version: exchange.version,
        client_id: exchange.client.id.clone(),
        connection: exchange.connection.0,
        body: body.clone(),
    };
    match intercept(&intercepted) {
        Verdict::Serve => Ok(false),
        Verdict::Delay(time) => {
            tokio::time::sleep(time).await;
            Ok(false)
        }
        Verdict::LoseAnswer => Ok(true),
        Verdict::Close => Err(Ended::Refused("the interceptor said so".into())),
    }
}

async fn dispatch(
    node: &Arc<Node>,
    session: &mut Session,
    key: ApiKey,
    header: &RequestHeader,
    exchange: &Exchange,
    body: Bytes,
) -> Result<Answer, WireError> {
    /// Decodes the request, calls its handler, encodes the answer.
    macro_rules! serve {
        ($request:ident, $handler:ident) => {{
            let request = api::decode_request::<$request>(body, header.version)?;
            send::<$request>(header, &handlers::$handler::handle(node, exchange, request))
        }};
    }
    /// The same for a request to one group.
    macro_rules! group {
        ($request:ident, $variant:ident, $compact:literal) => {{
            let body = if $compact {
                Bytes::copy_from_slice(&body)
            } else {
                body
            };
            let request = api::decode_request::<$request>(body, header.version)?;
            let group = request.group_id.clone();
            let request = GroupRequest::$variant(request);
            let asked = node.groups.ask(node, session, exchange, &group, request);
            match Box::pin(asked).await {
                Some(GroupResponse::$variant(response)) => send::<$request>(header, &response),
                _ => Ok(Answer::Close),
            }
        }};
    }
    match key {
        ApiKey::Produce => {
            let request = api::decode_request::<ProduceRequest>(body, header.version)?;
            let acks = request.acks;
            let response = handlers::produce::handle(node, exchange, request);
            if acks == 0 {
                return Ok(handlers::produce::unacknowledged(&response));
            }
            send::<ProduceRequest>(header, &response)
        }
        ApiKey::Fetch => {
            let request = api::decode_request::<FetchRequest>(body, header.version)?;
            let response = Box::pin(handlers::fetch::handle(node, exchange, request)).await;
            send::<FetchRequest>(header, &response)
        }
        ApiKey::ListOffsets => serve!(ListOffsetsRequest, list_offsets),
        ApiKey::Metadata => serve!(MetadataRequest, metadata),
        ApiKey::ApiVersions => serve!(ApiVersionsRequest, api_versions),
        ApiKey::FindCoordinator => serve!(FindCoordinatorRequest, find_coordinator),
        ApiKey::CreateTopics => serve!(CreateTopicsRequest, create_topics),
        ApiKey::DeleteTopics => serve!(DeleteTopicsRequest, delete_topics),
        ApiKey::CreatePartitions => serve!(CreatePartitionsRequest, create_partitions),
        ApiKey::DeleteRecords => serve!(DeleteRecordsRequest, delete_records),
        ApiKey::InitProducerId => serve!(InitProducerIdRequest, init_producer_id),
        ApiKey::OffsetForLeaderEpoch => {
            serve!(OffsetForLeaderEpochRequest, offset_for_leader_epoch)
        }
        ApiKey::DescribeConfigs => serve!(DescribeConfigsRequest, describe_configs),
        ApiKey::AlterConfigs => serve!(AlterConfigsRequest, alter_configs),
        ApiKey::IncrementalAlterConfigs => {
            serve!(IncrementalAlterConfigsRequest, incremental_alter_configs)
        }
        ApiKey::DescribeCluster => serve!(DescribeClusterRequest, describe_cluster),
        ApiKey::ListPartitionReassignments => serve!(
            ListPartitionReassignmentsRequest,
            list_partition_reassignments
        ),
        // What members say is kept for long: it gets bytes of its own, not a part of a read buffer.
        ApiKey::JoinGroup => group!(JoinGroupRequest, JoinGroup, true),
        ApiKey::SyncGroup => group!(SyncGroupRequest, SyncGroup, true),
        ApiKey::Heartbeat => group!(HeartbeatRequest, Heartbeat, false),
        ApiKey::LeaveGroup => group!(LeaveGroupRequest, LeaveGroup, false),
        ApiKey::OffsetCommit => group!(OffsetCommitRequest, OffsetCommit, false),
        ApiKey::OffsetDelete => group!(OffsetDeleteRequest, OffsetDelete, false),
        ApiKey::OffsetFetch => {
            let request = api::decode_request(body, header.version)?;
            let response = Box::pin(handlers::offset_fetch::handle(
                node, session, exchange, request,
            ))
            .await;
            send_if::<OffsetFetchRequest>(header, response)
        }
        ApiKey::DescribeGroups => {
            let request = api::decode_request(body, header.version)?;
            let response = Box::pin(handlers::describe_groups::handle(
                node, session, exchange, request,
            ))
            .await;
            send_if::<DescribeGroupsRequest>(header, response)
        }
        ApiKey::ListGroups => {
            let request = api::decode_request(body, header.version)?;
            let response = Box::pin(handlers::list_groups::handle(
                node, session, exchange, request,
            ))
            .await;
            send_if::<ListGroupsRequest>(header, response)
        }
        ApiKey::DeleteGroups => {
            let request = api::decode_request(body, header.version)?;
            let response = Box::pin(handlers::delete_groups::handle(
                node, session, exchange, request,
            ))
            .await;
            send_if::<DeleteGroupsRequest>(header, response)
        }
        ApiKey::SaslHandshake | ApiKey::SaslAuthenticate => Ok(Answer::Close),
    }
}

fn send<R: ApiRequest>(
    header: &RequestHeader,
    response: &R::Response,
) -> Result<Answer, WireError> {
    frame::response::<R>(response, header.version, header.correlation_id).map(Answer::Send)
}

/// A coordinator that went away without an answer ends the connection.
fn send_if<R: ApiRequest>(
    header: &RequestHeader,
    response: Option<R::Response>,
) -> Result<Answer, WireError> {
    match response {
        Some(response) => send::<R>(header, &response),
        None => Ok(Answer::Close),
    }
}
