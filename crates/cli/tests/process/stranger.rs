//! Those who listen where a broker is expected.

use bytes::Bytes;
use kohort_wire::api::decode_request;
use kohort_wire::messages::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, FindCoordinatorRequest,
    FindCoordinatorResponse, MetadataRequest, MetadataResponse, MetadataResponseBroker,
    MetadataResponseTopic,
};
use kohort_wire::{ApiKey, ErrorCode, frame};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn listen(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            std::thread::spawn(move || serve(socket));
        }
    });
    address
}

/// Somebody who reads something, answers this, and hangs up.
pub(crate) fn stranger(answer: &'static [u8]) -> String {
    listen(move |mut socket| {
        let mut bytes = [0; 1024];
        let _ = socket.read(&mut bytes);
        let _ = socket.write_all(answer);
    })
}

/// Somebody who takes connections and says nothing.
pub(crate) fn silent() -> String {
    listen(|mut socket| {
        let mut bytes = [0; 1024];
        while socket.read(&mut bytes).is_ok_and(|size| size > 0) {}
    })
}

/// Where nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

const METADATA: i16 = 1;
const COORDINATOR: i16 = 0;

/// A broker that allows nothing: what a Kafka with ACLs answers.
pub(crate) fn forbidding() -> String {
    listen(|mut socket| while answer_one(&mut socket).is_some() {})
}

fn answer_one(socket: &mut TcpStream) -> Option<()> {
    let mut size = [0; 4];
    socket.read_exact(&mut size).ok()?;
    let mut request = vec![0; u32::from_be_bytes(size) as usize];
    socket.read_exact(&mut request).ok()?;
    let number = |at: usize| i16::from_be_bytes([request[at], request[at + 1]]);
    let (api, version) = (ApiKey::from_number(number(0))?, number(2));
    let id = i32::from_be_bytes(request[4..8].try_into().ok()?);
    let body = Bytes::copy_from_slice(&request[10 + usize::try_from(number(8)).ok()?..]);
    let answer = match api {
        ApiKey::ApiVersions => {
            let served = [(ApiKey::ApiVersions, 0), (ApiKey::Metadata, METADATA)];
            let served = served
                .into_iter()
                .chain([(ApiKey::FindCoordinator, COORDINATOR)]);
            let response = ApiVersionsResponse {
                error_code: if version > 0 {
                    ErrorCode::UnsupportedVersion
                } else {
                    ErrorCode::None
                },
                api_keys: served
                    .map(|(api, version)| ApiVersion {
                        api_key: api as i16,
                        min_version: version,
                        max_version: version,
                    })
                    .collect(),
                ..Default::default()
            };
            frame::response::<ApiVersionsRequest>(&response, 0, id)
        }
        ApiKey::Metadata => {
            let request: MetadataRequest =
                decode_request::<MetadataRequest>(body, METADATA).ok()?;
            let forbidden =
                |topic: kohort_wire::messages::MetadataRequestTopic| MetadataResponseTopic {
                    error_code: ErrorCode::TopicAuthorizationFailed,
                    name: topic.name,
                    ..Default::default()
                };
            let address = socket.local_addr().ok()?;
            let response = MetadataResponse {
                brokers: vec![MetadataResponseBroker {
                    node_id: 1,
                    host: address.ip().to_string(),
                    port: address.port().into(),
                    ..Default::default()
                }],
                topics: request
                    .topics
                    .into_iter()
                    .flatten()
                    .map(forbidden)
                    .collect(),
                ..Default::default()
            };
            frame::response::<MetadataRequest>(&response, METADATA, id)
        }
        _ => {
            let response = FindCoordinatorResponse {
                error_code: ErrorCode::GroupAuthorizationFailed,
                node_id: -1,
                port: -1,
                ..Default::default()
            };
            frame::response::<FindCoordinatorRequest>(&response, COORDINATOR, id)
        }
    };
    socket.write_all(&answer.ok()?).ok()
}
