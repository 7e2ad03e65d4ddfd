//! IncrementalAlterConfigs (KIP-339): changes settings of topics one by one.

use super::alter_configs::{split, topics_only};
use crate::node::{Exchange, Node};
use crate::topics::Refusal;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    IncrementalAlterConfigsRequest, IncrementalAlterConfigsRequestConfig,
    IncrementalAlterConfigsRequestResource, IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseResource,
};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse {
    let responses = request.resources.into_iter().map(|resource| {
        let (error_code, error_message) = split(change(node, &resource, request.validate_only));
        IncrementalAlterConfigsResponseResource {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name,
        }
    });
    IncrementalAlterConfigsResponse {
        responses: responses.collect(),
        ..Default::default()
    }
}

fn change(
    node: &Node,
    resource: &IncrementalAlterConfigsRequestResource,
    dry_run: bool,
) -> Result<(), Refusal> {
    topics_only(resource.resource_type)?;
    let topic = node.topics.get(&resource.resource_name).ok_or_else(|| {
        (
            ErrorCode::UnknownTopicOrPartition,
            ErrorCode::UnknownTopicOrPartition.meaning().to_owned(),
        )
    })?;
    let mut configs = topic.configs.clone();
    for config in &resource.configs {
        let now = configs.get(&config.name).map(String::as_str);
        match apply(config, now)? {
            Some(value) => configs.insert(config.name.clone(), value),
            None => configs.remove(&config.name),
        };
    }
    node.topics
        .configure(&resource.resource_name, configs, dry_run)
}

/// The new value, `None` for the default.
fn apply(
    config: &IncrementalAlterConfigsRequestConfig,
    now: Option<&str>,
) -> Result<Option<String>, Refusal> {
    let value = config.value.clone();
    let listed: Vec<&str> = now
        .unwrap_or_default()
        .split(',')
        .filter(|part| !part.is_empty())
        .collect();
    Ok(match (config.config_operation, value) {
        (SET, Some(value)) => Some(value),
        (DELETE, _) => None,
        (APPEND, Some(value)) if listed.contains(&value.as_str()) => Some(listed.join(",")),
        (APPEND, Some(value)) => Some([listed, vec![value.as_str()]].concat().join(",")),
        (SUBTRACT, Some(value)) => Some(
            listed
                .into_iter()
                .filter(|part| *part != value)
                .collect::<Vec<_>>()
                .join(","),
        ),
        _ => {
            let text = format!(
                "Operation {} with this value makes no sense for {}.",
                config.config_operation, config.name
            );
            return Err((ErrorCode::InvalidRequest, text));
        }
    })
}
