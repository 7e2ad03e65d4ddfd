//! DeleteTopics, by name or (v6) by id.

use crate::node::{Exchange, Node};
use crate::topics::Refusal;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    DeleteTopicsRequest, DeleteTopicsRequestTopic, DeleteTopicsResponse, DeleteTopicsResponseTopic,
};

pub(crate) fn handle(
    node: &Node,
    exchange: &Exchange,
    request: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let by_name = |name| DeleteTopicsRequestTopic {
        name: Some(name),
        ..Default::default()
    };
    let wanted = if exchange.version >= 6 {
        request.topics
    } else {
        request.topic_names.into_iter().map(by_name).collect()
    };
    let responses = wanted
        .into_iter()
        .map(|wanted| delete(node, wanted))
        .collect();
    node.groups.topics_changed(&node.topics);
    DeleteTopicsResponse {
        responses,
        ..Default::default()
    }
}

fn delete(node: &Node, wanted: DeleteTopicsRequestTopic) -> DeleteTopicsResponseTopic {
    let outcome = try_delete(node, &wanted);
    let (name, id, refusal) = match outcome {
        Ok((name, id)) => (Some(name), id, None),
        Err(refusal) => (wanted.name, wanted.topic_id, Some(refusal)),
    };
    let (error_code, error_message) = match refusal {
        None => (ErrorCode::None, None),
        Some((code, text)) => (code, Some(text)),
    };
    DeleteTopicsResponseTopic {
        name,
        topic_id: id,
        error_code,
        error_message,
    }
}

fn try_delete(
    node: &Node,
    wanted: &DeleteTopicsRequestTopic,
) -> Result<(String, [u8; 16]), Refusal> {
    if wanted.name.is_some() && wanted.topic_id != [0; 16] {
        return Err((
            ErrorCode::InvalidRequest,
            "Give a name or an id, not both.".into(),
        ));
    }
    if !node.settings.delete_topic_enable {
        // TOPIC_DELETION_DISABLED
        return Err((
            ErrorCode::Other(73),
            "Topic deletion is disabled (delete.topic.enable).".into(),
        ));
    }
    let name = wanted.name.as_deref().unwrap_or_default();
    let found = node.topics.find(name, wanted.topic_id);
    let topic = found.map_err(|code| (code, code.meaning().to_owned()))?;
    if topic.is_internal() {
        return Err((
            ErrorCode::InvalidRequest,
            format!("{} is the broker's own.", topic.name),
        ));
    }
    node.topics.delete(&topic)?;
    tracing::info!("topic {} deleted", topic.name);
    Ok((topic.name.clone(), topic.id))
}
