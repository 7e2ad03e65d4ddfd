//! Request and response headers.

use crate::api::ApiKey;
use crate::primitives::{Context, Decoder, Encoder, WireError, WireType};

/// What stands before every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API's number; not always one that is known here.
    pub api_key: i16,
    /// The version of the request.
    pub version: i16,
    /// Copied into the response.
    pub correlation_id: i32,
    /// The client's own name, for logs and quotas.
    pub client_id: Option<String>,
}

const CLASSIC: Context = Context {
    version: 0,
    flexible: false,
    nullable: true,
};

impl RequestHeader {
    /// Reads a header; `flexible_since` gives the first flexible version of a known API.
    ///
    /// # Errors
    /// [`WireError`] if the bytes do not hold one.
    pub fn decode(
        from: &mut Decoder,
        flexible_since: impl Fn(ApiKey) -> i16,
    ) -> Result<Self, WireError> {
        let (api_key, version, correlation_id) = (from.i16()?, from.i16()?, from.i32()?);
        let client_id = Option::<String>::decode(from, CLASSIC)?;
        if ApiKey::from_number(api_key).is_some_and(|key| version >= flexible_since(key)) {
            skip_tags(from)?;
        }
        Ok(Self {
            api_key,
            version,
            correlation_id,
            client_id,
        })
    }

    /// Writes the header; `flexible` says whether the request's version is a flexible one.
    pub fn encode(&self, to: &mut Encoder, flexible: bool) {
        to.i16(self.api_key);
        to.i16(self.version);
        to.i32(self.correlation_id);
        self.client_id.encode(to, CLASSIC);
        if flexible {
            to.unsigned_varint(0);
        }
    }
}

/// Writes a response header. ApiVersions has the classic one in all versions, so that any client can read it (KIP-511).
pub fn encode_response_header(to: &mut Encoder, key: ApiKey, correlation_id: i32, flexible: bool) {
    to.i32(correlation_id);
    if flexible && key != ApiKey::ApiVersions {
        to.unsigned_varint(0);
    }
}

/// Reads a response header and gives the correlation id.
///
/// # Errors
/// [`WireError`] if the bytes do not hold one.
pub fn decode_response_header(
    from: &mut Decoder,
    key: ApiKey,
    flexible: bool,
) -> Result<i32, WireError> {
    let correlation_id = from.i32()?;
    if flexible && key != ApiKey::ApiVersions {
        skip_tags(from)?;
    }
    Ok(correlation_id)
}

fn skip_tags(from: &mut Decoder) -> Result<(), WireError> {
    for _ in 0..from.unsigned_varint()? {
        from.unsigned_varint()?;
        let size = from.unsigned_varint()? as usize;
        from.take(size)?;
    }
    Ok(())
}
