//! Rebuilding the groups from the log.

use super::classic::{Group, GroupState, Member};
use super::input::{Alarm, Client};
use super::record::{GroupValue, GroupValueMember, Record};
use super::{Coordinator, Output, Phase};
use crate::partitions::Topic;
use std::sync::Arc;

impl Coordinator {
    /// Takes one record of the log: the last one of a key counts.
    pub(super) fn replay(&mut self, record: Record) {
        match record {
            Record::Offset {
                group,
                topic,
                partition,
                value,
            } => {
                let name: Arc<str> = group.into();
                let topic: Topic = topic.into();
                match value {
                    Some(value) => self.apply_offsets(&name, vec![(topic, partition, value)]),
                    None => {
                        if let Some(group) = self.groups.get_mut(&name)
                            && let Some(partitions) = group.offsets.get_mut(&topic)
                        {
                            partitions.remove(&partition);
                            if partitions.is_empty() {
                                group.offsets.remove(&topic);
                            }
                            self.drop_if_nothing(&name);
                        }
                    }
                }
            }
            Record::Group { group, value } => {
                let name: Arc<str> = group.into();
                let before = self.groups.remove(&name);
                let mut group = match value {
                    Some(value) => loaded_group(name.clone(), value),
                    None => Group::new(name.clone()),
                };
                let known = group.protocol_type.is_some();
                if let Some(before) = before {
                    if !defect!(ReplayForgetsOffsets) {
                        group.offsets = before.offsets;
                    }
                    group.remembered = before.remembered;
                }
                self.groups.insert(name.clone(), group);
                if !known {
                    self.drop_if_nothing(&name);
                }
            }
            Record::Causes { group, value } => {
                let name: Arc<str> = group.into();
                let group = self.groups.entry(name.clone());
                let group = group.or_insert_with(|| Group::new(name));
                group.remembered = value.unwrap_or_default();
            }
        }
    }

    /// A group that neither has a record nor holds offsets does not exist.
    fn drop_if_nothing(&mut self, name: &Arc<str>) {
        let nothing = self.groups.get(name).is_some_and(|group| {
            group.protocol_type.is_none() && group.offsets.is_empty() && group.members.is_empty()
        });
        if nothing {
            self.groups.remove(name);
        }
    }

    /// The log is read: every member gets a full session from now on, and groups that are too large rebalance.
    pub(super) fn loaded(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Active;
        let check = self.now + self.config.offsets_retention_check_interval_ms;
        self.alarms.set(Alarm::Retention, check);
        let names: Vec<Arc<str>> = self.groups.keys().cloned().collect();
        for name in names {
            // Causes may come before their group, or without it.
            self.drop_if_nothing(&name);
            if let Some((group, mut fx)) = self.with_group(&name, out) {
                group.loaded(&mut fx);
            }
        }
    }
}

fn loaded_group(name: Arc<str>, value: GroupValue) -> Group {
    let mut group = Group::new(name);
    group.protocol_type = Some(value.protocol_type);
    group.generation = value.generation;
    group.state_since = value.current_state_timestamp;
    if value.members.is_empty() {
        return group;
    }
    group.state = GroupState::Stable;
    let protocol = value.protocol.clone().unwrap_or_default();
    group.protocol = value.protocol;
    for member in value.members {
        group.restore(loaded_member(member, &protocol));
    }
    group.leader = value
        .leader
        .map(Arc::from)
        .filter(|leader| group.members.contains_key(leader))
        .or_else(|| group.members.keys().next().cloned());
    group.topics = group.subscribed_topics();
    group
}

/// Only what the selected protocol said is kept, so that is all that the member lists until it joins again.
fn loaded_member(value: GroupValueMember, protocol: &str) -> Member {
    let session_ms = u64::try_from(value.session_timeout_ms).unwrap_or(0);
    Member {
        id: value.member_id.into(),
        instance: value.group_instance_id,
        client: Arc::new(Client {
            id: value.client_id,
            host: value.client_host,
        }),
        session_ms,
        rebalance_ms: u64::try_from(value.rebalance_timeout_ms).unwrap_or(session_ms),
        protocols: vec![(protocol.to_owned(), value.subscription)],
        assignment: value.assignment,
        join: None,
        sync: None,
        is_new: false,
    }
}
