//! A group as its coordinator describes it, and members that an administrator removes.

use super::groups::named;
use super::*;
use crate::metadata::Node;
use bytes::Bytes;
use kohort_group::partitions::Partitions;
use kohort_wire::embedded::{Assignment, Subscription};
use kohort_wire::messages::{
    DescribedGroupMember, LeaveGroupMember, LeaveGroupRequest, LeaveGroupResponseMember,
};

/// The kind of groups whose members' bytes are Kafka's consumer protocol.
const CONSUMER: &str = "consumer";
/// What brokers before DescribeGroups v6 say of a group that does not exist.
const DEAD: &str = "Dead";

/// A group as a broker lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    /// The group.
    pub group: String,
    /// Its kind: `consumer`, `connect`, …; empty for a group that only holds offsets.
    pub protocol_type: String,
    /// Its state; empty if the broker does not say (before ListGroups v4, KIP-518).
    pub state: String,
}

/// A group as its coordinator describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// The group.
    pub group: String,
    /// `Empty`, `PreparingRebalance`, `CompletingRebalance` or `Stable`.
    pub state: String,
    /// Its kind: `consumer`, `connect`, …; empty for a group that only holds offsets.
    pub protocol_type: String,
    /// The chosen assignor; empty outside Stable.
    pub protocol: String,
    /// The broker that coordinates it.
    pub coordinator: Node,
    /// Its members, by id.
    pub members: Vec<MemberDescription>,
}

/// A member as the coordinator describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberDescription {
    /// The member's id.
    pub member_id: String,
    /// Its `group.instance.id`, if it is static (KIP-345).
    pub instance_id: Option<String>,
    /// Its client id.
    pub client_id: String,
    /// Where it connects from.
    pub host: String,
    /// The topics it wants; none outside Stable, where brokers do not say.
    pub topics: Vec<Topic>,
    /// What it has; nothing in a group of another kind than `consumer`.
    pub assigned: Partitions,
}

impl Admin {
    /// All groups of the cluster, by name.
    ///
    /// # Errors
    /// [`Error::Broker`], or a broker that cannot be reached.
    pub async fn groups(&self) -> Result<Vec<GroupListing>, Error> {
        let view = self.cluster.refresh(Some(BTreeSet::new())).await?;
        let mut all = BTreeMap::new();
        let request = ListGroupsRequest::default();
        for node in view.nodes.keys() {
            let listed = self.ask(About::Node(*node), &request, |answer| {
                refused(ApiKey::ListGroups, answer.error_code, "all groups").map(|()| answer.groups)
            });
            for found in listed.await? {
                let listing = GroupListing {
                    group: found.group_id.clone(),
                    protocol_type: found.protocol_type,
                    state: found.group_state,
                };
                all.insert(found.group_id, listing);
            }
        }
        Ok(all.into_values().collect())
    }

    /// A group's state and members.
    ///
    /// # Errors
    /// [`Error::Broker`] with GROUP_ID_NOT_FOUND if there is none, and so on.
    pub async fn describe_group(&self, group: &str) -> Result<GroupDescription, Error> {
        let request = DescribeGroupsRequest {
            groups: vec![group.to_owned()],
            ..Default::default()
        };
        let found = self
            .ask(About::Group(group), &request, |answer| {
                let found = answer.groups.into_iter().next().unwrap_or_default();
                refused(ApiKey::DescribeGroups, found.error_code, &named(group))?;
                if found.group_state.is_empty() || found.group_state == DEAD {
                    refused(
                        ApiKey::DescribeGroups,
                        ErrorCode::GroupIdNotFound,
                        &named(group),
                    )?;
                }
                Ok(found)
            })
            .await?;
        let id = self.cluster.find_coordinator(group).await?;
        let coordinator = self.cluster.view().nodes.get(&id).cloned();
        let coordinator = coordinator.unwrap_or_else(|| Node {
            id,
            address: String::new(),
            rack: None,
        });
        Ok(description(found, coordinator))
    }

    /// Removes members from a group, as if they had left: the group rebalances at once instead of waiting for their sessions to
    /// end. Dynamic members are named by `member_id`, static ones by their instance id alone (KIP-345, KIP-571).
    ///
    /// # Errors
    /// [`Error::Broker`] with UNKNOWN_MEMBER_ID and so on; those that were found are removed nevertheless.
    pub async fn remove_members(
        &self,
        group: &str,
        member_ids: &[&str],
        instance_ids: &[&str],
        reason: &str,
    ) -> Result<(), Error> {
        let dynamic = member_ids.iter().map(|id| ((*id).to_owned(), None));
        let fixed = instance_ids
            .iter()
            .map(|id| (String::new(), Some((*id).to_owned())));
        let members = dynamic.chain(fixed).map(|(id, instance)| LeaveGroupMember {
            member_id: id,
            group_instance_id: instance,
            reason: Some(reason.to_owned()),
        });
        let request = LeaveGroupRequest {
            group_id: group.to_owned(),
            members: members.collect(),
            ..Default::default()
        };
        self.ask(About::Group(group), &request, |answer| {
            refused(ApiKey::LeaveGroup, answer.error_code, &named(group))?;
            for member in &answer.members {
                let about = format!("group {group}, member {}", name(member));
                refused(ApiKey::LeaveGroup, member.error_code, &about)?;
            }
            Ok(())
        })
        .await
    }
}

fn name(member: &LeaveGroupResponseMember) -> &str {
    match &member.group_instance_id {
        Some(instance) => instance,
        None => &member.member_id,
    }
}

fn description(found: DescribedGroup, coordinator: Node) -> GroupDescription {
    let consumers = found.protocol_type == CONSUMER;
    let members = found.members.into_iter();
    let mut members: Vec<_> = members.map(|one| member(one, consumers)).collect();
    members.sort_by(|a, b| a.member_id.cmp(&b.member_id));
    GroupDescription {
        group: found.group_id,
        state: found.group_state,
        protocol_type: found.protocol_type,
        protocol: found.protocol_data,
        coordinator,
        members,
    }
}

/// Bytes that cannot be read say nothing: they are between the members and their leader.
fn member(found: DescribedGroupMember, consumers: bool) -> MemberDescription {
    let readable = |bytes: Bytes| Some(bytes).filter(|bytes| consumers && !bytes.is_empty());
    let subscription = readable(found.member_metadata)
        .and_then(|bytes| Subscription::decode(bytes).ok())
        .unwrap_or_default();
    let assignment = readable(found.member_assignment)
        .and_then(|bytes| Assignment::decode(bytes).ok())
        .unwrap_or_default();
    let mut assigned = Partitions::new();
    for entry in assignment.assigned {
        assigned.insert_all(&entry.topic, entry.partitions);
    }
    MemberDescription {
        member_id: found.member_id,
        instance_id: found.group_instance_id,
        client_id: found.client_id,
        host: found.client_host,
        topics: subscription.topics,
        assigned,
    }
}
