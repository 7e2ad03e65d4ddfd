//! CreatePartitions: widens topics.

use crate::node::{Exchange, Node};
use crate::topics::Refusal;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    CreatePartitionsRequest, CreatePartitionsRequestTopic, CreatePartitionsResponse,
    CreatePartitionsResponseTopic,
};

pub(crate) fn handle(
    node: &Node,
    _: &Exchange,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse {
    let results = request.topics.iter().map(|topic| {
        let (error_code, error_message) = match widen(node, topic, request.validate_only) {
            Ok(()) => (ErrorCode::None, None),
            Err((code, text)) => (code, Some(text)),
        };
        CreatePartitionsResponseTopic {
            name: topic.name.clone(),
            error_code,
            error_message,
        }
    });
    let results = results.collect();
    node.groups.topics_changed(&node.topics);
    CreatePartitionsResponse {
        results,
        ..Default::default()
    }
}

fn widen(node: &Node, topic: &CreatePartitionsRequestTopic, dry_run: bool) -> Result<(), Refusal> {
    if topic.name == crate::topics::OFFSETS_TOPIC {
        // Groups are found by the number of its partitions.
        return Err((
            ErrorCode::InvalidRequest,
            format!("{} cannot be widened.", topic.name),
        ));
    }
    if let (Some(assignments), Some(found)) = (&topic.assignments, node.topics.get(&topic.name)) {
        let added = i64::from(topic.count) - found.partitions.len() as i64;
        let mine = assignments
            .iter()
            .all(|assignment| assignment.broker_ids == [node.settings.node_id]);
        if !assignments.is_empty() && (assignments.len() as i64 != added || !mine) {
            let text = format!(
                "Each added partition must be on broker {} alone.",
                node.settings.node_id
            );
            return Err((ErrorCode::InvalidReplicaAssignment, text));
        }
    }
    node.topics
        .widen(&topic.name, topic.count, dry_run, node.clock.wall())
}
