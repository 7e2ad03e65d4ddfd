//! Between the bytes that members send each other and the values that assignors and the leader work on.

use bytes::Bytes;
use kohort_wire::WireError;
use kohort_wire::embedded::{
    Assignment, AssignmentError, CooperativeUserData, Subscription, TopicPartitions, Trailer,
};

use super::leader::{Candidate, Plan};
use super::sticky::cooperative_generation;
use super::{Assignor, Subscriber};
use crate::partitions::{Partitions, Topic};

/// The set that a list on the wire names.
#[must_use]
pub fn partitions_from_wire(list: &[TopicPartitions]) -> Partitions {
    list.iter()
        .flat_map(|entry| {
            let numbers = entry.partitions.iter();
            numbers.map(|number| (entry.topic.clone(), *number))
        })
        .collect()
}

/// The list on the wire for a set, sorted.
#[must_use]
pub fn partitions_to_wire(set: &Partitions) -> Vec<TopicPartitions> {
    set.by_topic()
        .map(|(topic, numbers)| TopicPartitions {
            topic: topic.clone(),
            partitions: numbers.to_vec(),
        })
        .collect()
}

/// A member as the leader finds it in the answer to its JoinGroup: `metadata` is what the member sent for `protocol`, the
/// selected one.
///
/// # Errors
/// [`WireError`] if the metadata is no subscription.
pub fn candidate(
    member_id: &str,
    instance_id: Option<&str>,
    metadata: Bytes,
    protocol: &str,
) -> Result<Candidate, WireError> {
    let said = Subscription::decode(metadata)?;
    let mut topics: Vec<Topic> = said.topics;
    topics.sort_unstable();
    topics.dedup();
    let mut subscriber = Subscriber {
        member_id: member_id.to_owned(),
        instance_id: instance_id.map(str::to_owned),
        topics,
        owned: partitions_from_wire(&said.owned),
        generation: said.generation,
        rack: said.rack,
        user_data: said.user_data,
    };
    let data = subscriber
        .user_data
        .as_ref()
        .and_then(CooperativeUserData::decode);
    let marked = data.is_some_and(|data| data.explicit);
    // Other assignors' user data is their own affair, and need not begin with a generation.
    if marked || protocol == "cooperative-sticky" {
        subscriber.generation = cooperative_generation(&subscriber);
    }
    Ok(Candidate {
        subscriber,
        version: said.version,
        marked,
    })
}

/// What a member writes into its subscription's user data. A member that takes part in the explicit form (never an eager one)
/// writes the generation and the marker, and nothing of the assignor's; `generation` is −1 before the first assignment.
#[must_use]
pub fn user_data(
    assignor: &dyn Assignor,
    topics: &[Topic],
    owned: &Partitions,
    generation: i32,
    explicit: bool,
) -> Option<Bytes> {
    if explicit && !assignor.is_eager() {
        let data = CooperativeUserData {
            generation,
            explicit: true,
        };
        return Some(data.encode());
    }
    assignor.user_data(topics, owned, generation)
}

/// The bytes of one member's plan, for SyncGroup.
#[must_use]
pub fn encode_plan(plan: &Plan) -> Bytes {
    let trailer = plan.trailer.as_ref().map(|trailer| Trailer {
        revoked: partitions_to_wire(&trailer.revoked),
        error: if trailer.need_rejoin {
            AssignmentError::NeedRejoin
        } else {
            AssignmentError::None
        },
    });
    let assignment = Assignment {
        assigned: partitions_to_wire(&plan.assigned),
        trailer,
        ..Assignment::default()
    };
    assignment.encode()
}
