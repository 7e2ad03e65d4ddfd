//! What a member wants done, and what its application does.

use super::process::Reading;
use super::{Event, World};
use crate::fact::{Fact, Process as ProcessId};
use crate::faults::Fault;
use kohort_group::coordinator::{self, GroupResponse};
use kohort_group::member::{self, CommitId, Fatal, Input, Offset, Output};
use kohort_group::partitions::{Partitions, TopicPartition};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;

impl World {
    /// Does what a member wants done.
    pub(super) fn perform(&mut self, process: ProcessId, output: Output) {
        match output {
            Output::Send {
                token,
                lane,
                version,
                request,
            } => self.send(process, token, lane, version, &request),
            Output::Disconnect(lane) => self.close_lane(process, lane),
            Output::FindCoordinator => {
                let takes = 1 + self.random.between(0, 2 * self.scenario.latency_ms);
                self.after(takes, Event::Found(process));
            }
            Output::RefreshTopics(topics) => {
                self.processes[process].watches = topics;
                let takes = 1 + self.random.between(0, 2 * self.scenario.latency_ms);
                self.after(takes, Event::Metadata(process));
            }
            Output::Assign { added, .. } => self.app_assigned(process, &added),
            Output::Start(offsets) => self.app_starts(process, offsets),
            Output::Revoke { partitions, .. } => self.app_revoked(process, partitions),
            Output::Revoked { partitions, .. } | Output::Lost { partitions, .. } => {
                let reads = &mut self.processes[process].reads;
                reads.retain(|at, _| !partitions.contains(&at.topic, at.partition));
            }
            Output::Committed(id, _) => {
                self.processes[process].committing -= 1;
                if let Some(partitions) = self.processes[process].commits.remove(&id) {
                    let input = Input::Released(partitions);
                    self.after(0, Event::Input(process, Box::new(input)));
                }
            }
            Output::Fatal(fatal) => self.app_fails(process, &fatal),
            Output::Closed => self.end(process),
            Output::AutoCommitFailed(_)
            | Output::Rebalancing { .. }
            | Output::Warning { .. }
            | Output::Rebalanced(_) => {}
        }
    }

    fn app_assigned(&mut self, process: ProcessId, added: &Partitions) {
        for (topic, partition) in added.iter() {
            let reading = Reading {
                position: None,
                releasing: false,
            };
            let at = TopicPartition::new(topic.clone(), partition);
            self.processes[process].reads.insert(at, reading);
        }
    }

    fn app_starts(
        &mut self,
        process: ProcessId,
        offsets: BTreeMap<TopicPartition, Option<Offset>>,
    ) {
        for (at, offset) in offsets {
            if let Some(reading) = self.processes[process].reads.get_mut(&at) {
                reading.position = Some(offset.map_or(0, |offset| offset.offset));
            }
        }
    }

    fn app_revoked(&mut self, process: ProcessId, partitions: Partitions) {
        for (at, reading) in &mut self.processes[process].reads {
            reading.releasing |= partitions.contains(&at.topic, at.partition);
        }
        let mut takes = self.random.between(0, self.scenario.release_ms);
        if let Some((longer, fault)) = self.processes[process].slow_release.take() {
            self.bit(fault);
            takes += longer;
        }
        self.after(takes, Event::Release(process, partitions));
    }

    /// The application has finished with partitions: it commits, if that is its business, and lets go.
    pub(super) fn release(&mut self, process: ProcessId, partitions: Partitions) {
        if self.scenario.auto_commit_ms.is_some() {
            return self.tell(process, Input::Released(partitions));
        }
        let id = self.commit_id(process);
        self.processes[process].commits.insert(id, partitions);
        self.tell(
            process,
            Input::Commit {
                id,
                offsets: None,
                retry: true,
            },
        );
    }

    fn commit_id(&mut self, process: ProcessId) -> CommitId {
        self.processes[process].committing += 1;
        self.processes[process].next_commit += 1;
        CommitId(self.processes[process].next_commit)
    }

    /// The member ends; somebody starts its process again, unless another has taken its place.
    fn app_fails(&mut self, process: ProcessId, fatal: &Fatal) {
        let slot = self.processes[process].slot;
        let replaced = fatal.code == Some(ErrorCode::FencedInstanceId);
        self.end(process);
        if !replaced {
            let delay = self.random.between(100, 2_000);
            self.start_later(slot, delay);
        }
    }

    /// The application polls: it reads what there is, and says how far it has come.
    pub(super) fn poll(&mut self, process: ProcessId) {
        let next = if self.is_silent() {
            self.scenario.max_poll_ms / 2
        } else {
            self.random.between(1, self.scenario.poll_ms)
        };
        self.after(next, Event::Poll(process));
        if self.processes[process].silent_until > self.now {
            return;
        }
        self.tell(process, Input::Polled);
        let ready: Vec<(TopicPartition, i64)> = self.processes[process]
            .reads
            .iter()
            .filter(|(_, reading)| !reading.releasing)
            .filter_map(|(at, reading)| Some((at.clone(), reading.position?)))
            .collect();
        for (at, from) in ready {
            let values = self.topics.read(&at, from, 20);
            if !values.is_empty() {
                self.read(process, at, from, &values);
            }
        }
        // Some applications commit by hand although commits are automatic.
        let often = if self.scenario.auto_commit_ms.is_none() {
            10
        } else {
            2
        };
        let commits = self.processes[process].committing < 2 && !self.is_silent();
        if commits && self.random.percent(often) {
            let id = self.commit_id(process);
            self.tell(
                process,
                Input::Commit {
                    id,
                    offsets: None,
                    retry: false,
                },
            );
        }
    }

    fn read(&mut self, process: ProcessId, at: TopicPartition, from: i64, values: &[u64]) {
        // A member may have been told something by the reads before; then the partition may be gone.
        let Some(reading) = self.processes[process].reads.get_mut(&at) else {
            return;
        };
        if reading.releasing {
            return;
        }
        let position = from + values.len() as i64;
        reading.position = Some(position);
        for (offset, value) in (from..).zip(values) {
            self.delivered += 1;
            self.observe(&Fact::Read {
                process,
                partition: &at,
                offset,
                value: *value,
            });
        }
        let offset = Offset {
            offset: position,
            leader_epoch: -1,
            metadata: String::new(),
        };
        self.tell(process, Input::Consumed(at, offset));
    }

    /// A search for the coordinator ends.
    pub(super) fn found(&mut self, process: ProcessId) {
        let input = if self.broker.is_up() {
            Input::CoordinatorFound {
                node: 1,
                versions: self.versions.clone(),
            }
        } else {
            Input::CoordinatorNotFound(ErrorCode::CoordinatorNotAvailable)
        };
        self.tell(process, input);
    }

    /// A member's metadata is refreshed.
    pub(super) fn metadata(&mut self, process: ProcessId) {
        let watches = self.processes[process].watches.clone();
        let image = self.topics.image(watches.as_ref());
        self.tell(process, Input::Topics(image));
    }

    /// Counts the error codes that a member is told.
    pub(super) fn count_codes(&mut self, key: ApiKey, version: i16, response: &GroupResponse) {
        let newest = super::frames::known_versions();
        if key == ApiKey::JoinGroup && newest.get(&key).is_some_and(|(_, high)| version < *high) {
            *self.faults.entry(Fault::OldVersions).or_default() += 1;
        }
        for code in codes(response) {
            if !code.is_none() {
                *self.codes.entry((key, code)).or_default() += 1;
            }
        }
    }

    pub(super) fn count_member_alarm(&mut self, alarm: &member::Alarm) {
        use member::Alarm;
        let name = match alarm {
            Alarm::Heartbeat => "member: Heartbeat",
            Alarm::Session => "member: Session",
            Alarm::Poll => "member: Poll",
            Alarm::AutoCommit => "member: AutoCommit",
            Alarm::Backoff => "member: Backoff",
            Alarm::Request(_) => "member: Request",
            Alarm::Revocation => "member: Revocation",
            Alarm::Close => "member: Close",
        };
        *self.alarms.entry(name).or_default() += 1;
    }

    pub(super) fn count_coordinator_alarm(&mut self, alarm: &coordinator::Alarm) {
        use coordinator::Alarm;
        let name = match alarm {
            Alarm::InitialDelay(_) => "coordinator: InitialDelay",
            Alarm::Rebalance(_) => "coordinator: Rebalance",
            Alarm::PendingSync(_) => "coordinator: PendingSync",
            Alarm::Session(..) => "coordinator: Session",
            Alarm::PendingJoin(..) => "coordinator: PendingJoin",
            Alarm::Retention => "coordinator: Retention",
        };
        *self.alarms.entry(name).or_default() += 1;
    }
}

/// The error codes of a response.
fn codes(response: &GroupResponse) -> Vec<ErrorCode> {
    match response {
        GroupResponse::JoinGroup(body) => vec![body.error_code],
        GroupResponse::SyncGroup(body) => vec![body.error_code],
        GroupResponse::Heartbeat(body) => vec![body.error_code],
        GroupResponse::LeaveGroup(body) => (body.members.iter().map(|m| m.error_code))
            .chain([body.error_code])
            .collect(),
        GroupResponse::OffsetCommit(body) => (body.topics.iter())
            .flat_map(|topic| topic.partitions.iter().map(|p| p.error_code))
            .collect(),
        GroupResponse::OffsetFetch(body) => (body.groups.iter().map(|g| g.error_code))
            .chain([body.error_code])
            .collect(),
        _ => Vec::new(),
    }
}
