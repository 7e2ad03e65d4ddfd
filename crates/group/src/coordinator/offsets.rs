//! Committed offsets: storing, reading, deleting, and letting them expire.

use super::classic::{Group, GroupState};
use super::effects::{Pending, wall_clock};
use super::input::Alarm;
use super::output::GroupResponse;
use super::record::{OffsetValue, Record};
use super::{Asked, Coordinator, Output};
use crate::partitions::Topic;
use kohort_wire::ErrorCode;
use kohort_wire::messages::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A group's offsets.
pub(super) type Offsets = BTreeMap<Topic, BTreeMap<i32, OffsetValue>>;

/// Offsets on their way into the log.
pub(super) type Commits = Vec<(Topic, i32, OffsetValue)>;

impl Coordinator {
    pub(super) fn offset_commit(
        &mut self,
        asked: Asked,
        request: &OffsetCommitRequest,
        out: &mut Vec<Output>,
    ) {
        let refused = self.may_commit(&asked, request, out).err();
        let mut commits = Commits::new();
        let mut response = OffsetCommitResponse::default();
        for topic in &request.topics {
            let name: Option<Topic> = if asked.version >= 10 {
                self.topics.name_of(&topic.topic_id).cloned()
            } else {
                Some(topic.name.as_str().into())
            };
            let mut answer = OffsetCommitResponseTopic {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partitions: Vec::new(),
            };
            for partition in &topic.partitions {
                let error = self
                    .unfit(name.as_ref(), partition)
                    .or(refused)
                    .unwrap_or_default();
                if let (Some(name), true) = (&name, error.is_none()) {
                    let value = self.value(&asked, request, name, partition);
                    commits.push((name.clone(), partition.partition_index, value));
                }
                answer.partitions.push(OffsetCommitResponsePartition {
                    partition_index: partition.partition_index,
                    error_code: error,
                });
            }
            response.topics.push(answer);
        }
        self.store_offsets(&asked, &request.group_id, commits, response, out);
    }

    /// What is wrong with one partition's offset, whatever the group says.
    fn unfit(
        &self,
        topic: Option<&Topic>,
        partition: &OffsetCommitRequestPartition,
    ) -> Option<ErrorCode> {
        let Some(topic) = topic else {
            return Some(ErrorCode::UnknownTopicId);
        };
        let metadata = partition.committed_metadata.as_deref().unwrap_or_default();
        if !self.topics.has(topic, partition.partition_index) {
            Some(ErrorCode::UnknownTopicOrPartition)
        } else if metadata.len() > self.config.offset_metadata_max_bytes {
            Some(ErrorCode::OffsetMetadataTooLarge)
        } else {
            None
        }
    }

    fn value(
        &self,
        asked: &Asked,
        request: &OffsetCommitRequest,
        topic: &Topic,
        partition: &OffsetCommitRequestPartition,
    ) -> OffsetValue {
        let now = wall_clock(&self.config, self.now);
        let timestamp = if asked.version == 1 && partition.commit_timestamp >= 0 {
            partition.commit_timestamp
        } else {
            now
        };
        let retention = request.retention_time_ms;
        OffsetValue {
            offset: partition.committed_offset,
            leader_epoch: partition.committed_leader_epoch,
            metadata: partition.committed_metadata.clone().unwrap_or_default(),
            commit_timestamp: timestamp,
            expire_timestamp: if retention >= 0 {
                timestamp.saturating_add(retention)
            } else {
                -1
            },
            topic_id: self.topics.get(topic).map_or([0; 16], |info| info.id),
        }
    }

    /// Whether the group takes a commit from this sender now.
    fn may_commit(
        &mut self,
        asked: &Asked,
        request: &OffsetCommitRequest,
        out: &mut Vec<Output>,
    ) -> Result<(), ErrorCode> {
        let generation = request.generation_id_or_member_epoch;
        if request.group_id.len() > super::LONGEST_NAME {
            return Err(ErrorCode::InvalidGroupId);
        }
        let Some((group, mut fx)) = self.with_group(&request.group_id, out) else {
            return if generation < 0 {
                Ok(())
            } else if asked.version >= 9 {
                Err(ErrorCode::GroupIdNotFound)
            } else {
                Err(ErrorCode::IllegalGeneration)
            };
        };
        if generation < 0 && group.is(GroupState::Empty) {
            return Ok(());
        }
        let nobody =
            generation < 0 && request.member_id.is_empty() && request.group_instance_id.is_none();
        if nobody {
            return Err(ErrorCode::UnknownMemberId);
        }
        let known = group.identify(super::classic::Identity {
            member: &request.member_id,
            instance: request.group_instance_id.as_deref(),
        });
        if !defect!(StrangersCommit) {
            known?;
        }
        if generation != group.generation && !defect!(PastGenerationCommits) {
            return Err(ErrorCode::IllegalGeneration);
        }
        match group.state {
            GroupState::CompletingRebalance => Err(ErrorCode::RebalanceInProgress),
            GroupState::Empty => Err(ErrorCode::UnknownMemberId),
            GroupState::Stable | GroupState::PreparingRebalance => {
                let id: Arc<str> = request.member_id.as_str().into();
                group.sign_of_life(&mut fx, &id);
                Ok(())
            }
        }
    }

    /// Appends the offsets; they hold, and the answer goes out, when they are stored.
    fn store_offsets(
        &mut self,
        asked: &Asked,
        group_id: &str,
        commits: Commits,
        response: OffsetCommitResponse,
        out: &mut Vec<Output>,
    ) {
        let answer = GroupResponse::OffsetCommit(response);
        if commits.is_empty() {
            let (id, response) = (asked.id, answer);
            out.push(Output::Reply {
                id,
                response,
                after: None,
            });
            return;
        }
        let name: Arc<str> = group_id.into();
        self.groups
            .entry(name.clone())
            .or_insert_with(|| Group::new(name.clone()));
        let Some((_, mut fx)) = self.with_group(group_id, out) else {
            return;
        };
        let mut last = 0;
        for (topic, partition, value) in &commits {
            last = fx.append(Record::Offset {
                group: group_id.to_owned(),
                topic: topic.to_string(),
                partition: *partition,
                value: Some(value.clone()),
            });
        }
        fx.when(
            last,
            Pending::Offsets {
                group: name,
                offsets: commits,
            },
        );
        if defect!(AcknowledgedBeforeStored) {
            return fx.reply(asked.id, answer);
        }
        fx.reply_after(asked.id, answer.clone(), last, answer);
    }

    pub(super) fn apply_offsets(&mut self, group: &Arc<str>, commits: Commits) {
        let group = self
            .groups
            .entry(group.clone())
            .or_insert_with(|| Group::new(group.clone()));
        for (topic, partition, value) in commits {
            group
                .offsets
                .entry(topic)
                .or_default()
                .insert(partition, value);
        }
    }

    pub(super) fn offset_fetch(
        &mut self,
        asked: Asked,
        request: OffsetFetchRequest,
        out: &mut Vec<Output>,
    ) {
        let mut response = OffsetFetchResponse::default();
        if asked.version >= 8 {
            response.groups = request
                .groups
                .into_iter()
                .map(|group| self.fetch_group(asked.version, group))
                .collect();
        } else {
            let offsets = self
                .groups
                .get(&*request.group_id)
                .map(|group| &group.offsets);
            response.topics = match request.topics {
                Some(topics) => topics
                    .into_iter()
                    .map(|topic| OffsetFetchResponseTopic {
                        partitions: read(offsets, Some(&topic.name), &topic.partition_indexes),
                        name: topic.name,
                    })
                    .collect(),
                None => all(offsets)
                    .map(|(name, partitions)| OffsetFetchResponseTopic { name, partitions })
                    .collect(),
            };
        }
        let response = GroupResponse::OffsetFetch(response);
        out.push(Output::Reply {
            id: asked.id,
            response,
            after: None,
        });
    }

    fn fetch_group(
        &self,
        version: i16,
        group: OffsetFetchRequestGroup,
    ) -> OffsetFetchResponseGroup {
        let offsets = self
            .groups
            .get(&*group.group_id)
            .map(|group| &group.offsets);
        let id = |name: &str| self.topics.get(name).map_or([0; 16], |info| info.id);
        let topics = match group.topics {
            Some(topics) => topics
                .into_iter()
                .map(|topic| {
                    let known = self.topics.name_of(&topic.topic_id).map(|name| &**name);
                    let name = if version >= 10 {
                        known
                    } else {
                        Some(topic.name.as_str())
                    };
                    OffsetFetchResponseTopics {
                        partitions: read(offsets, name, &topic.partition_indexes),
                        topic_id: topic.topic_id,
                        name: topic.name,
                    }
                })
                .collect(),
            None => all(offsets)
                .filter(|(name, _)| version < 10 || self.topics.get(name).is_some())
                .map(|(name, partitions)| OffsetFetchResponseTopics {
                    topic_id: id(&name),
                    name,
                    partitions,
                })
                .collect(),
        };
        OffsetFetchResponseGroup {
            group_id: group.group_id,
            topics,
            error_code: ErrorCode::None,
        }
    }

    pub(super) fn offset_delete(
        &mut self,
        asked: Asked,
        request: OffsetDeleteRequest,
        out: &mut Vec<Output>,
    ) {
        let mut response = OffsetDeleteResponse::default();
        let mut gone = Vec::new();
        match self.groups.get(&*request.group_id) {
            None => response.error_code = ErrorCode::GroupIdNotFound,
            Some(group) if !group.members.is_empty() && !group.is_consumer() => {
                response.error_code = ErrorCode::NonEmptyGroup;
            }
            Some(group) => {
                for topic in request.topics {
                    let mut answer = OffsetDeleteResponseTopic {
                        name: topic.name.clone(),
                        partitions: Vec::new(),
                    };
                    for partition in topic.partitions {
                        let number = partition.partition_index;
                        let error = if !self.topics.has(&topic.name, number) {
                            ErrorCode::UnknownTopicOrPartition
                        } else if group.wants(&topic.name) {
                            ErrorCode::GroupSubscribedToTopic
                        } else {
                            gone.push((topic.name.clone(), number));
                            ErrorCode::None
                        };
                        answer.partitions.push(OffsetDeleteResponsePartition {
                            partition_index: number,
                            error_code: error,
                        });
                    }
                    response.topics.push(answer);
                }
            }
        }
        let last = self.forget_offsets(&request.group_id, gone, out);
        let response = GroupResponse::OffsetDelete(response);
        self.reply_deleted(&asked, last, response, out);
    }

    /// Removes offsets and writes their tombstones.
    pub(super) fn forget_offsets(
        &mut self,
        group_id: &str,
        gone: Vec<(String, i32)>,
        out: &mut Vec<Output>,
    ) -> Option<u64> {
        let (group, mut fx) = self.with_group(group_id, out)?;
        let mut last = None;
        for (topic, partition) in gone {
            let Some(partitions) = group.offsets.get_mut(&*topic) else {
                continue;
            };
            if partitions.remove(&partition).is_none() {
                continue;
            }
            if partitions.is_empty() {
                group.offsets.remove(&*topic);
            }
            let group = group_id.to_owned();
            last = Some(fx.append(Record::Offset {
                group,
                topic,
                partition,
                value: None,
            }));
        }
        last
    }

    /// Looks for offsets that have expired, and for groups that hold nothing any more.
    pub(super) fn retention(&mut self, out: &mut Vec<Output>) {
        let again = self.now + self.config.offsets_retention_check_interval_ms;
        self.alarms.set(Alarm::Retention, again);
        let now = wall_clock(&self.config, self.now);
        let retention = i64::try_from(self.config.offsets_retention_ms).unwrap_or(i64::MAX);
        let expired: Vec<_> = self
            .groups
            .values()
            .map(|group| (group.id.clone(), group.expired(now, retention)))
            .collect();
        for (name, gone) in expired {
            self.forget_offsets(&name, gone, out);
            let idle = self.groups.get(&name).is_some_and(|group| {
                group.is(GroupState::Empty)
                    && group.offsets.is_empty()
                    && group.pending_join.is_empty()
            });
            if idle {
                self.forget_group(&name, out);
            }
        }
    }

    /// A topic that is gone takes its offsets along.
    pub(super) fn topics_changed(
        &mut self,
        topics: crate::topics::TopicImage,
        out: &mut Vec<Output>,
    ) {
        let before = std::mem::replace(&mut self.topics, topics);
        let vanished: Vec<Topic> = before
            .iter()
            .filter(|(name, _)| self.topics.get(name).is_none())
            .map(|(name, _)| name.clone())
            .collect();
        let names: Vec<Arc<str>> = self.groups.keys().cloned().collect();
        for name in &names {
            if let Some((group, mut fx)) = self.with_group(name, out) {
                group.watch_topics(&mut fx);
            }
        }
        if vanished.is_empty() {
            return;
        }
        for name in names {
            let Some(group) = self.groups.get(&name) else {
                continue;
            };
            let gone = vanished
                .iter()
                .filter_map(|topic| Some((topic, group.offsets.get(topic)?)))
                .flat_map(|(topic, offsets)| offsets.keys().map(|p| (topic.to_string(), *p)))
                .collect();
            self.forget_offsets(&name, gone, out);
        }
    }
}

impl Group {
    /// Whether some member wants this topic; all topics, if a subscription could not be read.
    fn wants(&self, topic: &str) -> bool {
        !self.members.is_empty()
            && self
                .topics
                .as_ref()
                .is_none_or(|topics| topics.contains(topic))
    }

    /// The offsets that have expired at `now`: those of a group that has been empty for so long, and those that a stable group is no longer
    /// subscribed to.
    fn expired(&self, now: i64, retention: i64) -> Vec<(String, i32)> {
        let joined = self.protocol_type.is_some();
        let since = match self.state {
            GroupState::Empty if joined && self.state_since >= 0 => Some(self.state_since),
            GroupState::Empty => None,
            GroupState::Stable if self.is_consumer() && self.topics.is_some() => None,
            GroupState::Stable
            | GroupState::PreparingRebalance
            | GroupState::CompletingRebalance => return Vec::new(),
        };
        let mut gone = Vec::new();
        for (topic, partitions) in &self.offsets {
            if self.is(GroupState::Stable) && self.wants(topic) {
                continue;
            }
            for (partition, value) in partitions {
                let due = if value.expire_timestamp >= 0 {
                    value.expire_timestamp
                } else {
                    let base = since.unwrap_or(value.commit_timestamp);
                    base.max(value.commit_timestamp).saturating_add(retention)
                };
                if due <= now {
                    gone.push((topic.to_string(), *partition));
                }
            }
        }
        gone
    }
}

/// Each partition's offset, −1 where none is stored; UNKNOWN_TOPIC_ID without a name.
fn read(
    offsets: Option<&Offsets>,
    topic: Option<&str>,
    partitions: &[i32],
) -> Vec<OffsetFetchResponsePartition> {
    let stored = topic.and_then(|topic| offsets?.get(topic));
    let one = |number: &i32| match stored.and_then(|stored| stored.get(number)) {
        Some(value) => found(*number, value),
        None => OffsetFetchResponsePartition {
            partition_index: *number,
            committed_offset: -1,
            metadata: Some(String::new()),
            error_code: if topic.is_some() {
                ErrorCode::None
            } else {
                ErrorCode::UnknownTopicId
            },
            ..OffsetFetchResponsePartition::default()
        },
    };
    partitions.iter().map(one).collect()
}

fn found(number: i32, value: &OffsetValue) -> OffsetFetchResponsePartition {
    OffsetFetchResponsePartition {
        partition_index: number,
        committed_offset: value.offset,
        committed_leader_epoch: value.leader_epoch,
        metadata: Some(value.metadata.clone()),
        error_code: ErrorCode::None,
    }
}

/// Everything that a group has stored.
fn all(
    offsets: Option<&Offsets>,
) -> impl Iterator<Item = (String, Vec<OffsetFetchResponsePartition>)> + '_ {
    offsets.into_iter().flatten().map(|(topic, partitions)| {
        let partitions = partitions
            .iter()
            .map(|(number, value)| found(*number, value));
        (topic.to_string(), partitions.collect())
    })
}
