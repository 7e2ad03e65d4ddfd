//! ApiVersions: what is served.

use crate::listener::Ended;
use crate::node::{Exchange, Node};
use crate::router::{Answer, SERVED};
use kohort_wire::header::RequestHeader;
use kohort_wire::messages::{
    ApiVersion, ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey,
};
use kohort_wire::{ApiKey, ErrorCode, frame};

/// What a kohort broker can do beyond Kafka, told as supported features (KIP-584). Clients that do not know them ignore them.
const ABILITIES: &[&str] = &["kohort.join.reason"];

pub(crate) fn handle(
    _: &Node,
    exchange: &Exchange,
    request: ApiVersionsRequest,
) -> ApiVersionsResponse {
    if exchange.version >= 3 {
        let (name, version) = (
            &request.client_software_name,
            &request.client_software_version,
        );
        if !sensible(name) || !sensible(version) {
            return ApiVersionsResponse {
                error_code: ErrorCode::InvalidRequest,
                ..Default::default()
            };
        }
        tracing::debug!("client {:?} is {name} {version}", exchange.client.id);
    }
    ApiVersionsResponse {
        api_keys: served(),
        supported_features: ABILITIES
            .iter()
            .map(|name| SupportedFeatureKey {
                name: (*name).to_owned(),
                min_version: 1,
                max_version: 1,
            })
            .collect(),
        ..Default::default()
    }
}

/// KIP-511: letters, digits, `.` and `-`, beginning and ending with a letter or digit.
fn sensible(name: &str) -> bool {
    let bytes = name.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    ends.iter()
        .all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte))
}

/// A version that is not served is answered in the layout of v0, which every client can read, with the versions of this API
/// alone (KIP-511).
pub(crate) fn unsupported(header: &RequestHeader) -> Result<Answer, Ended> {
    let response = ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion,
        api_keys: served()
            .into_iter()
            .filter(|api| api.api_key == header.api_key)
            .collect(),
        ..Default::default()
    };
    frame::response::<ApiVersionsRequest>(&response, 0, header.correlation_id)
        .map(Answer::Send)
        .map_err(|error| Ended::Refused(error.to_string()))
}

fn served() -> Vec<ApiVersion> {
    let entry = |(key, low, high): &(ApiKey, i16, i16)| ApiVersion {
        api_key: *key as i16,
        // librdkafka compresses only for brokers that name Produce v0, so Kafka 4 names it and refuses it, too (KAFKA-18659).
        min_version: if *key == ApiKey::Produce { 0 } else { *low },
        max_version: *high,
    };
    SERVED.iter().map(entry).collect()
}
