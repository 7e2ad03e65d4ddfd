//! Frames: an int32 size, then that many bytes.

use crate::api::{self, ApiRequest};
use crate::header::{self, RequestHeader};
use crate::primitives::{Decoder, Encoder, WireError};
use bytes::{BufMut, Bytes, BytesMut};

/// Splits the next whole frame off `buffer` (without its size), if one is there.
///
/// # Errors
/// [`WireError::BadLength`] if the size is negative or above `limit`: the peer does not speak this protocol, or is hostile.
pub fn split(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, WireError> {
    let Some(size) = buffer.first_chunk::<4>() else {
        return Ok(None);
    };
    let size = i32::from_be_bytes(*size);
    if size < 0 || size as usize > limit {
        return Err(WireError::BadLength(i64::from(size)));
    }
    if buffer.len() < 4 + size as usize {
        return Ok(None);
    }
    let _ = buffer.split_to(4);
    Ok(Some(buffer.split_to(size as usize).freeze()))
}

/// A whole request frame, size included.
///
/// # Errors
/// [`WireError::UnknownVersion`].
pub fn request<R: ApiRequest>(
    message: &R,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Bytes, WireError> {
    let context = R::context(version)?;
    let header = RequestHeader {
        api_key: R::KEY as i16,
        version,
        correlation_id,
        client_id: client_id.map(str::to_owned),
    };
    let mut to = start();
    header.encode(&mut to, context.flexible);
    message.encode(&mut to, context);
    Ok(end(to))
}

/// A whole response frame, size included.
///
/// # Errors
/// [`WireError::UnknownVersion`].
pub fn response<R: ApiRequest>(
    message: &R::Response,
    version: i16,
    correlation_id: i32,
) -> Result<Bytes, WireError> {
    use crate::primitives::WireType;
    let context = R::context(version)?;
    let mut to = start();
    header::encode_response_header(&mut to, R::KEY, correlation_id, context.flexible);
    message.encode(&mut to, context);
    Ok(end(to))
}

/// Reads a whole response frame (without its size): correlation id and body.
///
/// # Errors
/// [`WireError`] if the bytes do not fit.
pub fn read_response<R: ApiRequest>(
    frame: Bytes,
    version: i16,
) -> Result<(i32, R::Response), WireError> {
    let context = R::context(version)?;
    let mut from = Decoder::new(frame);
    let correlation_id = header::decode_response_header(&mut from, R::KEY, context.flexible)?;
    Ok((
        correlation_id,
        api::decode_response::<R>(from.rest().clone(), version)?,
    ))
}

fn start() -> Encoder {
    let mut bytes = BytesMut::with_capacity(256);
    bytes.put_i32(0);
    Encoder::from_buffer(bytes)
}

fn end(to: Encoder) -> Bytes {
    let mut bytes = to.into_bytes();
    let size = (bytes.len() - 4) as i32;
    bytes[..4].copy_from_slice(&size.to_be_bytes());
    bytes.freeze()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::messages::{HeartbeatRequest, JoinGroupRequest};

    #[test]
    fn a_request_comes_back_as_it_went() {
        let sent = JoinGroupRequest {
            group_id: "g".into(),
            join_reason: 2,
            group_instance_id: Some("i".into()),
            reason: Some("why".into()),
            ..Default::default()
        };
        for version in 0..=9 {
            let mut buffer = BytesMut::from(&request(&sent, version, 7, Some("c")).unwrap()[..]);
            let frame = split(&mut buffer, 1 << 20).unwrap().unwrap();
            let mut from = Decoder::new(frame);
            let header = RequestHeader::decode(&mut from, |_| 6).unwrap();
            assert_eq!((header.version, header.correlation_id), (version, 7));
            let got: JoinGroupRequest = api::decode_request(from.rest().clone(), version).unwrap();
            assert_eq!(got.join_reason, if version >= 6 { 2 } else { -1 });
            assert_eq!(got.group_instance_id.is_some(), version >= 5);
        }
    }

    #[test]
    fn a_frame_is_split_off_once_it_is_whole() {
        let frame = request(&HeartbeatRequest::default(), 4, 1, None).unwrap();
        let mut buffer = BytesMut::new();
        for byte in &frame[..frame.len() - 1] {
            buffer.extend_from_slice(&[*byte]);
            assert_eq!(split(&mut buffer, 1 << 10), Ok(None));
        }
        buffer.extend_from_slice(&frame[frame.len() - 1..]);
        buffer.extend_from_slice(b"next");
        assert_eq!(split(&mut buffer, 1 << 10), Ok(Some(frame.slice(4..))));
        assert_eq!(&buffer[..], b"next");
    }

    #[test]
    fn a_size_beyond_the_limit_is_refused_before_anything_is_read() {
        for size in [-1, i32::MIN, 11, i32::MAX] {
            let mut buffer = BytesMut::from(&size.to_be_bytes()[..]);
            let refused = Err(WireError::BadLength(i64::from(size)));
            assert_eq!(split(&mut buffer, 10), refused);
        }
    }

    #[test]
    fn a_version_that_is_not_known_is_refused() {
        assert!(request(&HeartbeatRequest::default(), 5, 1, None).is_err());
    }
}
