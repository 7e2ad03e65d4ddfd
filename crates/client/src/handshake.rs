//! How a connection begins: the address, TCP, and ApiVersions (KIP-35, KIP-511). Also: who answers there if it is no broker.

use crate::connect::{Connector, Halves};
use crate::connection::{Answer, Connection, Versions};
use crate::error::Error;
use kohort_wire::api::ApiRequest;
use kohort_wire::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kohort_wire::{ApiKey, ErrorCode, frame};
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

/// After this long a silent peer is mentioned in the log.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens a connection to `host:port`.
pub(crate) async fn connect(address: &str, by: &Connector) -> Result<Halves, Error> {
    if address
        .rsplit_once(':')
        .is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err())
    {
        return Err(Error::Config(format!(
            "{address:?} is not an address: expected host:port, such as 127.0.0.1:9092"
        )));
    }
    by.connect(address).await.map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::ConnectionRefused => {
                "connection refused: nobody listens there; start the broker or correct the address"
                    .into()
            }
            // The resolver's errors have no kind of their own.
            _ if error.raw_os_error().is_none() => {
                format!("the host cannot be found ({error}); correct its name, or see to the name service")
            }
            _ => format!("cannot connect: {error}; correct host and port, or see to the network"),
        };
        Error::connection(address, reason)
    })
}

/// Asks what is served; goes down to the version that the broker names if ours is too new for it.
pub(crate) async fn negotiate(
    connection: &Arc<Connection>,
    limit: Duration,
) -> Result<Versions, Error> {
    let (_, mut version) = ApiVersionsRequest::VERSIONS;
    loop {
        let request = ApiVersionsRequest {
            client_software_name: "kohort".into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
        };
        let answer = await_first(connection, connection.start(&request, version)?, limit).await?;
        // The error code stands at the same place in all versions; an answer of this error has the layout of version 0.
        let refused =
            answer.get(4..6) == Some(&ErrorCode::UnsupportedVersion.number().to_be_bytes());
        let layout = if refused { 0 } else { version };
        let (_, served) =
            frame::read_response::<ApiVersionsRequest>(answer, layout).map_err(|error| {
                Error::unreadable(connection.address(), ApiKey::ApiVersions, layout, &error)
            })?;
        if refused && version > 0 {
            version = lower(&served, version);
            continue;
        }
        if !served.error_code.is_none() {
            return Err(Error::broker(
                ApiKey::ApiVersions,
                served.error_code,
                connection.address(),
            ));
        }
        return Ok(known(&served));
    }
}

async fn await_first(
    connection: &Arc<Connection>,
    answer: Answer<ApiVersionsRequest>,
    limit: Duration,
) -> Result<bytes::Bytes, Error> {
    let answer = answer.raw();
    tokio::pin!(answer);
    if let Ok(outcome) = tokio::time::timeout(PATIENCE.min(limit), &mut answer).await {
        return outcome;
    }
    let address = connection.address();
    tracing::warn!(
        "{address} takes connections but has not answered yet; waiting for up to {} ms",
        limit.as_millis()
    );
    if let Ok(outcome) = tokio::time::timeout(limit.saturating_sub(PATIENCE), answer).await {
        return outcome;
    }
    let error = Error::connection(
        address,
        format!(
            "takes connections but did not answer ApiVersions within {} ms: expected a plaintext listener of a Kafka broker (2.4 or later)",
            limit.as_millis()
        ),
    );
    connection.close(error.clone());
    Err(error)
}

/// The version to ask with after `version` was refused.
fn lower(served: &ApiVersionsResponse, version: i16) -> i16 {
    let named = served
        .api_keys
        .iter()
        .find(|api| api.api_key == ApiKey::ApiVersions as i16);
    named.map_or(0, |api| api.max_version).clamp(0, version - 1)
}

fn known(served: &ApiVersionsResponse) -> Versions {
    let apis = served.api_keys.iter();
    apis.filter_map(|api| {
        Some((
            ApiKey::from_number(api.api_key)?,
            (api.min_version, api.max_version),
        ))
    })
    .collect()
}

/// Who it is that answers, if the first bytes are not those of a broker.
pub(crate) fn recognise(address: &str, bytes: &[u8]) -> Option<Error> {
    let who = match bytes {
        [b'H', b'T', b'T', b'P', ..] | [b'<', ..] => "an HTTP server",
        [0x15 | 0x16, 0x03, 0..=4, ..] => "a TLS server",
        [b'S', b'S', b'H', b'-', ..] => "an SSH server",
        _ => return None,
    };
    let hint = if who == "a TLS server" {
        "; only plaintext listeners are supported"
    } else {
        ""
    };
    Some(Error::Peer {
        address: address.to_owned(),
        reason: format!("expected a Kafka broker, found {who}: correct host and port{hint}"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_recognised() {
        for (bytes, who) in [
            (&b"HTTP/1.1 400 Bad Request"[..], "HTTP"),
            (b"<html>", "HTTP"),
            (&[0x15, 3, 3, 0, 2, 2, 22], "TLS"),
            (b"SSH-2.0-OpenSSH", "SSH"),
        ] {
            assert!(recognise("a:1", bytes).unwrap().to_string().contains(who));
        }
        assert!(recognise("a:1", &[0, 0, 1, 0]).is_none());
    }

    #[test]
    fn an_address_without_a_port_is_a_configuration_error() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        for address in ["localhost", ":9092", "a:b", "a:70000"] {
            let error = runtime.block_on(connect(address, &Connector::default()));
            assert!(matches!(error, Err(Error::Config(_))), "{address}");
        }
    }
}
