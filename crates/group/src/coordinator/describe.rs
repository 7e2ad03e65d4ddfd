//! Describing, listing and deleting groups; and how each request is refused as a whole.

use super::classic::{Group, GroupState};
use super::effects::Pending;
use super::input::GroupRequest;
use super::output::GroupResponse;
use super::record::Record;
use super::{Asked, Coordinator, Output};
use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::messages::*;

impl Coordinator {
    pub(super) fn describe_groups(
        &mut self,
        asked: Asked,
        request: DescribeGroupsRequest,
        out: &mut Vec<Output>,
    ) {
        let describe = |id: String| match self.groups.get(&*id) {
            Some(group) => group.describe(request.include_authorized_operations),
            None => missing(id, asked.version),
        };
        let response = GroupResponse::DescribeGroups(DescribeGroupsResponse {
            throttle_time_ms: 0,
            groups: request.groups.into_iter().map(describe).collect(),
        });
        out.push(Output::Reply {
            id: asked.id,
            response,
            after: None,
        });
    }

    pub(super) fn list_groups(
        &mut self,
        asked: Asked,
        request: &ListGroupsRequest,
        out: &mut Vec<Output>,
    ) {
        let fits = |filter: &[String], value: &str| {
            filter.is_empty() || filter.iter().any(|one| one.eq_ignore_ascii_case(value))
        };
        let groups = self
            .groups
            .values()
            .filter(|group| fits(&request.states_filter, group.state.name()))
            .filter(|_| fits(&request.types_filter, "classic"))
            .map(|group| ListedGroup {
                group_id: group.id.to_string(),
                protocol_type: group.protocol_type.clone().unwrap_or_default(),
                group_state: group.state.name().to_owned(),
                group_type: "classic".to_owned(),
            })
            .collect();
        let response = GroupResponse::ListGroups(ListGroupsResponse {
            groups,
            ..Default::default()
        });
        out.push(Output::Reply {
            id: asked.id,
            response,
            after: None,
        });
    }

    pub(super) fn delete_groups(
        &mut self,
        asked: Asked,
        request: DeleteGroupsRequest,
        out: &mut Vec<Output>,
    ) {
        let mut last = None;
        let mut results = Vec::new();
        for group_id in request.groups_names {
            let error_code = match self.groups.get(&*group_id) {
                None => ErrorCode::GroupIdNotFound,
                Some(group) if !group.is(GroupState::Empty) => ErrorCode::NonEmptyGroup,
                Some(group) => {
                    let gone = group
                        .offsets
                        .iter()
                        .flat_map(|(topic, all)| all.keys().map(|p| (topic.to_string(), *p)))
                        .collect();
                    last = self.forget_offsets(&group_id, gone, out).or(last);
                    last = self.forget_group(&group_id, out).or(last);
                    ErrorCode::None
                }
            };
            results.push(DeletableGroupResult {
                group_id,
                error_code,
            });
        }
        let response = GroupResponse::DeleteGroups(DeleteGroupsResponse {
            throttle_time_ms: 0,
            results,
        });
        self.reply_deleted(&asked, last, response, out);
    }

    /// Answers when the tombstones are stored. If they cannot be, what is deleted stays so until the log is read again, and the
    /// client hears that it may not be for good.
    pub(super) fn reply_deleted(
        &mut self,
        asked: &Asked,
        last: Option<u64>,
        response: GroupResponse,
        out: &mut Vec<Output>,
    ) {
        if let Some(last) = last {
            let pending = Pending::Reply(asked.id, Box::new(response.clone()));
            self.pending.entry(last).or_default().push(pending);
        }
        out.push(Output::Reply {
            id: asked.id,
            response,
            after: last,
        });
    }

    /// Removes a group without members and writes its tombstone.
    pub(super) fn forget_group(&mut self, group_id: &str, out: &mut Vec<Output>) -> Option<u64> {
        let last = {
            let (group, mut fx) = self.with_group(group_id, out)?;
            for id in std::mem::take(&mut group.pending_join) {
                fx.alarms
                    .cancel(&super::Alarm::PendingJoin(group.id.clone(), id));
            }
            if !group.remembered.is_empty() {
                fx.append(Record::Causes {
                    group: group_id.to_owned(),
                    value: None,
                });
            }
            fx.append(Record::Group {
                group: group_id.to_owned(),
                value: None,
            })
        };
        self.groups.remove(group_id);
        Some(last)
    }
}

impl Group {
    /// Outside Stable there is no agreed protocol: no metadata then, but the assignments that members still hold.
    fn describe(&self, operations: bool) -> DescribedGroup {
        let stable = self.is(GroupState::Stable);
        let protocol = self
            .protocol
            .as_deref()
            .filter(|_| stable)
            .unwrap_or_default();
        let member = |member: &super::classic::Member| DescribedGroupMember {
            member_id: member.id.to_string(),
            group_instance_id: member.instance.clone(),
            client_id: member.client.id.clone(),
            client_host: member.client.host.clone(),
            member_metadata: if stable {
                member.metadata(protocol)
            } else {
                Bytes::new()
            },
            member_assignment: member.assignment.clone(),
        };
        DescribedGroup {
            group_id: self.id.to_string(),
            group_state: self.state.name().to_owned(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            protocol_data: protocol.to_owned(),
            members: self.members.values().map(member).collect(),
            authorized_operations: if operations { ALL_OPERATIONS } else { i32::MIN },
            ..DescribedGroup::default()
        }
    }
}

/// What a client may do with a group where nothing is forbidden: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
const ALL_OPERATIONS: i32 = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11;

fn missing(group_id: String, version: i16) -> DescribedGroup {
    let mut answer = DescribedGroup {
        group_state: "Dead".to_owned(),
        ..DescribedGroup::default()
    };
    if version >= 6 {
        answer.error_code = ErrorCode::GroupIdNotFound;
        answer.error_message = Some(format!("Group {group_id} not found."));
    }
    answer.group_id = group_id;
    answer
}

/// The answer to a request that is refused as a whole.
pub(super) fn refusal(request: &GroupRequest, version: i16, error: ErrorCode) -> GroupResponse {
    match request {
        GroupRequest::JoinGroup(request) => GroupResponse::JoinGroup(JoinGroupResponse {
            error_code: error,
            member_id: request.member_id.clone(),
            ..Default::default()
        }),
        // A Java client takes COORDINATOR_LOAD_IN_PROGRESS for fatal here.
        GroupRequest::SyncGroup(_) => GroupResponse::SyncGroup(SyncGroupResponse {
            error_code: if error == ErrorCode::CoordinatorLoadInProgress {
                ErrorCode::RebalanceInProgress
            } else {
                error
            },
            ..Default::default()
        }),
        // While loading a member is not to lose its session (as in Kafka).
        GroupRequest::Heartbeat(_) => GroupResponse::Heartbeat(HeartbeatResponse {
            error_code: if error == ErrorCode::CoordinatorLoadInProgress {
                ErrorCode::None
            } else {
                error
            },
            ..Default::default()
        }),
        GroupRequest::LeaveGroup(_) => GroupResponse::LeaveGroup(LeaveGroupResponse {
            error_code: error,
            ..Default::default()
        }),
        GroupRequest::OffsetCommit(request) => commit_refused(request, error),
        GroupRequest::OffsetFetch(request) => fetch_refused(request, version, error),
        GroupRequest::DescribeGroups(request) => {
            let group = |id: &String| DescribedGroup {
                error_code: error,
                group_id: id.clone(),
                ..Default::default()
            };
            GroupResponse::DescribeGroups(DescribeGroupsResponse {
                throttle_time_ms: 0,
                groups: request.groups.iter().map(group).collect(),
            })
        }
        GroupRequest::ListGroups(_) => GroupResponse::ListGroups(ListGroupsResponse {
            error_code: error,
            ..Default::default()
        }),
        GroupRequest::DeleteGroups(request) => {
            let group = |id: &String| DeletableGroupResult {
                group_id: id.clone(),
                error_code: error,
            };
            GroupResponse::DeleteGroups(DeleteGroupsResponse {
                throttle_time_ms: 0,
                results: request.groups_names.iter().map(group).collect(),
            })
        }
        GroupRequest::OffsetDelete(_) => GroupResponse::OffsetDelete(OffsetDeleteResponse {
            error_code: error,
            ..Default::default()
        }),
    }
}

fn commit_refused(request: &OffsetCommitRequest, error: ErrorCode) -> GroupResponse {
    let topic = |topic: &OffsetCommitRequestTopic| OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: error,
            })
            .collect(),
    };
    GroupResponse::OffsetCommit(OffsetCommitResponse {
        throttle_time_ms: 0,
        topics: request.topics.iter().map(topic).collect(),
    })
}

/// Before v2 there is no error for the whole: each partition has it.
fn fetch_refused(request: &OffsetFetchRequest, version: i16, error: ErrorCode) -> GroupResponse {
    let mut response = OffsetFetchResponse {
        error_code: error,
        ..Default::default()
    };
    let refused = |number: &i32| OffsetFetchResponsePartition {
        partition_index: *number,
        committed_offset: -1,
        metadata: Some(String::new()),
        error_code: error,
        ..Default::default()
    };
    if version < 2 {
        let topics = request.topics.iter().flatten();
        response.topics = topics
            .map(|topic| OffsetFetchResponseTopic {
                name: topic.name.clone(),
                partitions: topic.partition_indexes.iter().map(refused).collect(),
            })
            .collect();
    }
    let group = |group: &OffsetFetchRequestGroup| OffsetFetchResponseGroup {
        group_id: group.group_id.clone(),
        error_code: error,
        ..Default::default()
    };
    response.groups = request.groups.iter().map(group).collect();
    GroupResponse::OffsetFetch(response)
}
