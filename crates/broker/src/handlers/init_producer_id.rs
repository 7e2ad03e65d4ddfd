//! InitProducerId: an id for an idempotent producer (KIP-98). There are no transactions here.

use crate::node::{Exchange, Node};
use kohort_wire::ErrorCode;
use kohort_wire::messages::{InitProducerIdRequest, InitProducerIdResponse};

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    let given = if request.transactional_id.is_some() {
        Err(ErrorCode::UnsupportedVersion)
    } else {
        // Without a transactional id Kafka gives a new id even to a producer that has one.
        node.topics.next_producer_id()
    };
    match given {
        Ok(producer_id) => InitProducerIdResponse {
            producer_id,
            ..Default::default()
        },
        Err(error_code) => InitProducerIdResponse {
            error_code,
            producer_epoch: -1,
            ..Default::default()
        },
    }
}
