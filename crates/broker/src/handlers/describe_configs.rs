//! DescribeConfigs, for topics and the broker.

use crate::node::{Exchange, Node};
use crate::topic_config;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    DescribeConfigsRequest, DescribeConfigsRequestResource, DescribeConfigsResponse,
    DescribeConfigsResponseConfig, DescribeConfigsResponseResult,
};

/// Kinds of resources.
pub(super) const RESOURCE_TOPIC: i8 = 2;
pub(super) const RESOURCE_BROKER: i8 = 4;
/// Where a value comes from: the topic, the broker's start, the default.
pub(super) const TOPIC: i8 = 1;
const STATIC_BROKER: i8 = 4;
pub(super) const DEFAULT: i8 = 5;

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse {
    let results = request.resources.iter().map(|resource| {
        let (error_code, error_message, configs) = match describe(node, resource) {
            Ok(configs) => (ErrorCode::None, None, configs),
            Err((code, text)) => (code, Some(text), Vec::new()),
        };
        DescribeConfigsResponseResult {
            error_code,
            error_message,
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs,
        }
    });
    DescribeConfigsResponse {
        results: results.collect(),
        ..Default::default()
    }
}

fn describe(
    node: &Node,
    resource: &DescribeConfigsRequestResource,
) -> Result<Vec<DescribeConfigsResponseConfig>, crate::topics::Refusal> {
    let name = resource.resource_name.as_str();
    let mut configs = match resource.resource_type {
        RESOURCE_TOPIC => {
            let missing = || {
                (
                    ErrorCode::UnknownTopicOrPartition,
                    ErrorCode::UnknownTopicOrPartition.meaning().to_owned(),
                )
            };
            let topic = node.topics.get(name).ok_or_else(missing)?;
            let row = |(name, kind, default): &(
                &str,
                topic_config::Kind,
                fn(&crate::Settings) -> String,
            )| {
                let set = topic.configs.get(*name);
                DescribeConfigsResponseConfig {
                    name: (*name).to_owned(),
                    value: Some(set.cloned().unwrap_or_else(|| default(&node.settings))),
                    is_default: set.is_none(),
                    config_source: if set.is_some() { TOPIC } else { DEFAULT },
                    config_type: kind.code(),
                    ..Default::default()
                }
            };
            topic_config::TABLE.iter().map(row).collect::<Vec<_>>()
        }
        RESOURCE_BROKER if name.is_empty() || name == node.settings.node_id.to_string() => {
            let row = |(name, value, default, kind): (&str, String, String, i8)| {
                DescribeConfigsResponseConfig {
                    name: name.to_owned(),
                    is_default: value == default,
                    config_source: if value == default {
                        DEFAULT
                    } else {
                        STATIC_BROKER
                    },
                    value: Some(value),
                    read_only: true,
                    config_type: kind,
                    ..Default::default()
                }
            };
            node.settings.list().into_iter().map(row).collect()
        }
        RESOURCE_BROKER => {
            let text = format!(
                "Unexpected broker id, expected {}, but received {name}",
                node.settings.node_id
            );
            return Err((ErrorCode::InvalidRequest, text));
        }
        other => {
            let text = format!(
                "Resources of type {other} are not described here; expected 2 (topic) or 4 (broker)."
            );
            return Err((ErrorCode::InvalidRequest, text));
        }
    };
    if let Some(keys) = &resource.configuration_keys
        && !keys.is_empty()
    {
        configs.retain(|config| keys.contains(&config.name));
    }
    Ok(configs)
}
