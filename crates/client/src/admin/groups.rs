//! Groups: their offsets, and their end.

use super::*;
use kohort_wire::messages::{
    ListOffsetsRequest, ListOffsetsRequestPartition, ListOffsetsRequestTopic, OffsetCommitRequest,
    OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetDeleteRequest,
    OffsetDeleteRequestPartition, OffsetDeleteRequestTopic, OffsetFetchRequest,
    OffsetFetchRequestGroup,
};

/// OffsetCommit and OffsetFetch name topics up to this version.
const LAST_VERSION_WITH_NAMES: i16 = 9;

impl Admin {
    /// Deletes a group that has no members.
    ///
    /// # Errors
    /// [`Error::Broker`] with NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND and so on.
    pub async fn delete_group(&self, group: &str) -> Result<(), Error> {
        let request = DeleteGroupsRequest {
            groups_names: vec![group.to_owned()],
        };
        self.ask(About::Group(group), &request, |answer| {
            let code = answer
                .results
                .first()
                .map_or(ErrorCode::GroupIdNotFound, |result| result.error_code);
            refused(ApiKey::DeleteGroups, code, &named(group))
        })
        .await
    }

    /// The offsets that a group has committed.
    ///
    /// # Errors
    /// [`Error::Broker`].
    pub async fn committed(&self, group: &str) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let request = OffsetFetchRequest {
            group_id: group.to_owned(),
            topics: None,
            groups: vec![OffsetFetchRequestGroup {
                group_id: group.to_owned(),
                topics: None,
                ..Default::default()
            }],
            ..Default::default()
        };
        self.ask_up_to(group, &request, |answer| {
            refused(ApiKey::OffsetFetch, answer.error_code, &named(group))?;
            let old = answer
                .topics
                .into_iter()
                .map(|topic| (topic.name, topic.partitions));
            let mut topics: Vec<_> = old.collect();
            for answer in answer.groups {
                refused(ApiKey::OffsetFetch, answer.error_code, &named(group))?;
                topics.extend(
                    answer
                        .topics
                        .into_iter()
                        .map(|topic| (topic.name, topic.partitions)),
                );
            }
            let mut found = BTreeMap::new();
            for (name, partitions) in topics {
                for partition in partitions {
                    refused(ApiKey::OffsetFetch, partition.error_code, &named(group))?;
                    if partition.committed_offset >= 0 {
                        found.insert(
                            TopicPartition::new(name.as_str(), partition.partition_index),
                            partition.committed_offset,
                        );
                    }
                }
            }
            Ok(found)
        })
        .await
    }

    /// Sets the offsets of a group that has no members.
    ///
    /// # Errors
    /// [`Error::Broker`] with UNKNOWN_MEMBER_ID if the group has members, and so on.
    pub async fn commit(
        &self,
        group: &str,
        offsets: &BTreeMap<TopicPartition, i64>,
    ) -> Result<(), Error> {
        let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
        for (what, offset) in offsets {
            let partition = OffsetCommitRequestPartition {
                partition_index: what.partition,
                committed_offset: *offset,
                ..Default::default()
            };
            match topics.last_mut() {
                Some(topic) if topic.name == *what.topic => topic.partitions.push(partition),
                _ => topics.push(OffsetCommitRequestTopic {
                    name: what.topic.to_string(),
                    partitions: vec![partition],
                    ..Default::default()
                }),
            }
        }
        let request = OffsetCommitRequest {
            group_id: group.to_owned(),
            topics,
            ..Default::default()
        };
        self.ask_up_to(group, &request, |answer| {
            for partition in answer.topics.iter().flat_map(|topic| &topic.partitions) {
                refused(ApiKey::OffsetCommit, partition.error_code, &named(group))?;
            }
            Ok(())
        })
        .await
    }

    /// Deletes a group's offsets of some partitions.
    ///
    /// # Errors
    /// [`Error::Broker`] with GROUP_SUBSCRIBED_TO_TOPIC and so on.
    pub async fn delete_offsets(
        &self,
        group: &str,
        partitions: &[TopicPartition],
    ) -> Result<(), Error> {
        let mut topics: BTreeMap<&str, Vec<OffsetDeleteRequestPartition>> = BTreeMap::new();
        for what in partitions {
            topics
                .entry(&what.topic)
                .or_default()
                .push(OffsetDeleteRequestPartition {
                    partition_index: what.partition,
                });
        }
        let request = OffsetDeleteRequest {
            group_id: group.to_owned(),
            topics: topics
                .into_iter()
                .map(|(name, partitions)| OffsetDeleteRequestTopic {
                    name: name.to_owned(),
                    partitions,
                })
                .collect(),
        };
        self.ask(About::Group(group), &request, |answer| {
            refused(ApiKey::OffsetDelete, answer.error_code, &named(group))?;
            for partition in answer.topics.iter().flat_map(|topic| &topic.partitions) {
                refused(ApiKey::OffsetDelete, partition.error_code, &named(group))?;
            }
            Ok(())
        })
        .await
    }

    /// For each partition the first offset at or after a time: Unix milliseconds, −1 for the end, −2 for the beginning.
    /// A partition without such an offset gives its end.
    ///
    /// # Errors
    /// [`Error::Broker`], or a partition without a leader.
    pub async fn offsets_at(
        &self,
        partitions: &[TopicPartition],
        timestamp: i64,
    ) -> Result<BTreeMap<TopicPartition, i64>, Error> {
        let topics: BTreeSet<Topic> = partitions.iter().map(|what| what.topic.clone()).collect();
        let view = self.cluster.refresh(Some(topics)).await?;
        let mut by_leader: BTreeMap<i32, Vec<&TopicPartition>> = BTreeMap::new();
        for what in partitions {
            let leader = view.leader(&what.topic, what.partition);
            let (leader, _) = leader.ok_or_else(|| {
                Error::broker(
                    ApiKey::Metadata,
                    ErrorCode::LeaderNotAvailable,
                    what.to_string(),
                )
            })?;
            by_leader.entry(leader).or_default().push(what);
        }
        let (mut found, mut behind) = (BTreeMap::new(), Vec::new());
        for (leader, partitions) in by_leader {
            let request = list_offsets(&partitions, timestamp);
            let answer = self.ask(About::Node(leader), &request, Ok).await?;
            for topic in answer.topics {
                for partition in topic.partitions {
                    let what = TopicPartition::new(topic.name.as_str(), partition.partition_index);
                    refused(ApiKey::ListOffsets, partition.error_code, &what.to_string())?;
                    if partition.offset < 0 && timestamp >= 0 {
                        behind.push(what);
                    } else {
                        found.insert(what, partition.offset);
                    }
                }
            }
        }
        if !behind.is_empty() {
            found.extend(Box::pin(self.offsets_at(&behind, -1)).await?);
        }
        Ok(found)
    }

    /// As `ask` to the group's coordinator, in a version that names topics.
    async fn ask_up_to<R: ApiRequest, T>(
        &self,
        group: &str,
        request: &R,
        read: impl Fn(R::Response) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut attempts = Attempts::new(&self.cluster.settings);
        loop {
            let outcome = async {
                let connection = self.in_charge(About::Group(group)).await?;
                let version = connection.version_up_to::<R>(LAST_VERSION_WITH_NAMES)?;
                read(
                    connection
                        .call_at(request, version, self.cluster.request_limit())
                        .await?,
                )
            };
            match outcome.await {
                Ok(answer) => return Ok(answer),
                Err(error) => attempts.again(error).await?,
            }
        }
    }
}

fn list_offsets(partitions: &[&TopicPartition], timestamp: i64) -> ListOffsetsRequest {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsRequestPartition>> = BTreeMap::new();
    for what in partitions {
        topics
            .entry(&what.topic)
            .or_default()
            .push(ListOffsetsRequestPartition {
                partition_index: what.partition,
                timestamp,
                ..Default::default()
            });
    }
    ListOffsetsRequest {
        topics: topics
            .into_iter()
            .map(|(name, partitions)| ListOffsetsRequestTopic {
                name: name.to_owned(),
                partitions,
            })
            .collect(),
        timeout_ms: 30_000,
        ..Default::default()
    }
}

pub(super) fn refused(api: ApiKey, code: ErrorCode, about: &str) -> Result<(), Error> {
    if code.is_none() {
        Ok(())
    } else {
        Err(Error::broker(api, code, about))
    }
}

/// What an error is about.
pub(super) fn named(group: &str) -> String {
    format!("group {group}")
}
