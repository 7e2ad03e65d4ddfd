//! AlterConfigs: replaces the settings of topics. The broker's own are set when it starts.

use super::describe_configs::RESOURCE_TOPIC;
use crate::node::{Exchange, Node};
use crate::topics::Refusal;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    AlterConfigsRequest, AlterConfigsResponse, AlterConfigsResponseResource,
};

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse {
    let responses = request.resources.into_iter().map(|resource| {
        let configs = resource.configs.into_iter();
        let configs = configs
            .filter_map(|config| Some((config.name, config.value?)))
            .collect();
        let changed = topics_only(resource.resource_type).and_then(|()| {
            node.topics
                .configure(&resource.resource_name, configs, request.validate_only)
        });
        let (error_code, error_message) = split(changed);
        AlterConfigsResponseResource {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
        }
    });
    AlterConfigsResponse {
        responses: responses.collect(),
        ..Default::default()
    }
}

pub(super) fn topics_only(resource_type: i8) -> Result<(), Refusal> {
    if resource_type == RESOURCE_TOPIC {
        Ok(())
    } else {
        let text =
            "Only settings of topics can be changed here; the broker's are set when it starts.";
        Err((ErrorCode::InvalidRequest, text.into()))
    }
}

pub(super) fn split(outcome: Result<(), Refusal>) -> (ErrorCode, Option<String>) {
    match outcome {
        Ok(()) => (ErrorCode::None, None),
        Err((code, text)) => (code, Some(text)),
    }
}
