//! Messages as bytes and back: nothing goes over the simulated network that was not encoded, decoded and encoded again alike.

use bytes::{Bytes, BytesMut};
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_wire::api::{self, ApiRequest};
use kohort_wire::frame;
use kohort_wire::header::RequestHeader;
use kohort_wire::messages::{
    DeleteGroupsRequest, DescribeGroupsRequest, HeartbeatRequest, JoinGroupRequest,
    LeaveGroupRequest, ListGroupsRequest, OffsetCommitRequest, OffsetDeleteRequest,
    OffsetFetchRequest, SyncGroupRequest,
};
use kohort_wire::{ApiKey, Decoder};
use std::collections::BTreeMap;

const LIMIT: usize = 1 << 24;

macro_rules! apis {
    ($($name:ident $request:ident)*) => {
        /// The first and last version of each API that is known here. The group APIs' topic ids (v10) are left out: the
        /// laboratory's topics have none.
        pub(crate) fn known_versions() -> BTreeMap<ApiKey, (i16, i16)> {
            BTreeMap::from([$((ApiKey::$name, {
                let (low, high) = $request::VERSIONS;
                (low, high.min(9))
            }),)*])
        }

        /// Which API a request is of.
        pub(crate) fn key(request: &GroupRequest) -> ApiKey {
            match request { $(GroupRequest::$name(_) => ApiKey::$name,)* }
        }

        fn encode_request(request: &GroupRequest, version: i16, correlation: i32, client: &str) -> Result<Bytes, String> {
            match request { $(GroupRequest::$name(body) => frame::request(body, version, correlation, Some(client)),)* }
                .map_err(|error| format!("{:?} v{version} cannot be written: {error}", key(request)))
        }

        fn decode_body(key: ApiKey, body: Bytes, version: i16) -> Result<GroupRequest, String> {
            match key {
                $(ApiKey::$name => api::decode_request::<$request>(body, version).map(GroupRequest::$name),)*
                other => return Err(format!("{other:?} is no request for a group")),
            }
            .map_err(|error| format!("{key:?} v{version} cannot be read: {error}"))
        }

        fn flexible_since(key: ApiKey) -> i16 {
            match key { $(ApiKey::$name => $request::FLEXIBLE,)* _ => i16::MAX }
        }

        fn encode_response(response: &GroupResponse, version: i16, correlation: i32) -> Result<Bytes, String> {
            match response { $(GroupResponse::$name(body) => frame::response::<$request>(body, version, correlation),)* }
                .map_err(|error| format!("a response of version {version} cannot be written: {error}"))
        }

        fn decode_response(key: ApiKey, frame: Bytes, version: i16) -> Result<(i32, GroupResponse), String> {
            match key {
                $(ApiKey::$name => frame::read_response::<$request>(frame, version)
                    .map(|(correlation, body)| (correlation, GroupResponse::$name(body))),)*
                other => return Err(format!("{other:?} is no request for a group")),
            }
            .map_err(|error| format!("the response of {key:?} v{version} cannot be read: {error}"))
        }

        /// Which API a response is of.
        pub(crate) fn response_key(response: &GroupResponse) -> ApiKey {
            match response { $(GroupResponse::$name(_) => ApiKey::$name,)* }
        }
    };
}

apis! {
    JoinGroup JoinGroupRequest
    SyncGroup SyncGroupRequest
    Heartbeat HeartbeatRequest
    LeaveGroup LeaveGroupRequest
    OffsetCommit OffsetCommitRequest
    OffsetFetch OffsetFetchRequest
    DescribeGroups DescribeGroupsRequest
    ListGroups ListGroupsRequest
    DeleteGroups DeleteGroupsRequest
    OffsetDelete OffsetDeleteRequest
}

/// A request's frame without its size, checked to come back as it went.
pub(crate) fn request(
    request: &GroupRequest,
    version: i16,
    correlation: i32,
    client: &str,
) -> Result<Bytes, String> {
    let written = encode_request(request, version, correlation, client)?;
    let frame = unframed(&written)?;
    let (header, read) = read_request(frame.clone())?;
    let again = encode_request(&read, header.version, header.correlation_id, client)?;
    alike(&written, &again, || {
        format!("{:?} v{version}", key(request))
    })?;
    Ok(frame)
}

/// Reads a request's frame.
pub(crate) fn read_request(frame: Bytes) -> Result<(RequestHeader, GroupRequest), String> {
    let mut from = Decoder::new(frame);
    let header = RequestHeader::decode(&mut from, flexible_since)
        .map_err(|error| format!("a request header cannot be read: {error}"))?;
    let key = ApiKey::from_number(header.api_key)
        .ok_or_else(|| format!("unknown API {}", header.api_key))?;
    let body = decode_body(key, from.rest().clone(), header.version)?;
    Ok((header, body))
}

/// A response's frame without its size, checked to come back as it went.
pub(crate) fn response(
    response: &GroupResponse,
    version: i16,
    correlation: i32,
) -> Result<Bytes, String> {
    let written = encode_response(response, version, correlation)?;
    let frame = unframed(&written)?;
    let key = response_key(response);
    let (correlation, read) = decode_response(key, frame.clone(), version)?;
    let again = encode_response(&read, version, correlation)?;
    alike(&written, &again, || {
        format!("the response of {key:?} v{version}")
    })?;
    Ok(frame)
}

/// Where a response of this version says how long its broker wants silence, if the version can.
pub(crate) fn throttle_time(response: &mut GroupResponse, version: i16) -> Option<&mut i32> {
    let (since, time) = match response {
        GroupResponse::JoinGroup(body) => (2, &mut body.throttle_time_ms),
        GroupResponse::SyncGroup(body) => (1, &mut body.throttle_time_ms),
        GroupResponse::Heartbeat(body) => (1, &mut body.throttle_time_ms),
        GroupResponse::LeaveGroup(body) => (1, &mut body.throttle_time_ms),
        GroupResponse::OffsetCommit(body) => (3, &mut body.throttle_time_ms),
        GroupResponse::OffsetFetch(body) => (3, &mut body.throttle_time_ms),
        _ => return None,
    };
    (version >= since).then_some(time)
}

/// Reads the response to a request of this API and version.
pub(crate) fn read_response(
    key: ApiKey,
    frame: Bytes,
    version: i16,
) -> Result<(i32, GroupResponse), String> {
    decode_response(key, frame, version)
}

fn unframed(written: &Bytes) -> Result<Bytes, String> {
    let mut buffer = BytesMut::from(&written[..]);
    match frame::split(&mut buffer, LIMIT) {
        Ok(Some(frame)) if buffer.is_empty() => Ok(frame),
        other => Err(format!(
            "a frame of {} bytes became {other:?}",
            written.len()
        )),
    }
}

fn alike(written: &Bytes, again: &Bytes, what: impl Fn() -> String) -> Result<(), String> {
    if written == again {
        Ok(())
    } else {
        Err(format!("{} does not come back as it went", what()))
    }
}
