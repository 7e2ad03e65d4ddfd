//! Commits: one after the other, so that none overtakes another; never between a join and its sync.
//!
//! A commit that was asked for before a join (or a release) begins is answered before it goes on, within bounds; one that is asked for
//! during a round waits for its end. So a caller does not hear of rebalances that leave its partitions alone.
//!
//! ```text
//!   queue:  [app 1, app 2, app 3] [release] [app 4]
//!            └── one request ──┘
//! ```
//!
//! What the application asked for while a commit was in flight goes out together, of each partition the newest: an application that
//! commits faster than the coordinator answers delays nothing but its own answers.

use super::backoff::Retry;
use super::positions::{Positions, has};
use super::requests::Work;
use super::state::State;
use super::{CommitError, CommitId, Lane, Member, Output};
use crate::coordinator::GroupRequest;
use crate::partitions::{Partitions, Topic};
use crate::time::Timestamp;
use kohort_wire::messages::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use std::collections::{BTreeMap, VecDeque};

/// How long a round, a release or a departure waits for commits that fail and are tried again (KAFKA-13310: for as long as the rebalance
/// timeout would cost the member its place).
const HOLD_MS: u64 = 3_000;
/// How long a departure waits while there is no coordinator to commit to.
const HOLD_UNKNOWN_MS: u64 = 1_000;

/// Commits that wait or are in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Commits {
    pub(super) queue: VecDeque<Entry>,
    pub(super) serial: u64,
    pub(super) retry: Retry,
    /// Since when something waits for commits, if it does.
    pub(super) held: Option<Timestamp>,
}

/// Who asked for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// The application.
    App(CommitId),
    /// The timer.
    Auto,
    /// A release: positions of what is given away.
    Release,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Entry {
    pub(super) serial: u64,
    pub(super) owner: Owner,
    /// What is to be committed, less what is done.
    pub(super) offsets: Positions,
    pub(super) done: Positions,
    pub(super) retry: bool,
    pub(super) deadline: Timestamp,
}

/// What a commit in flight carries: the first entries of the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    /// The first and the last entry.
    pub(super) serials: (u64, u64),
    pub(super) offsets: Positions,
}

impl super::positions::Offsets {
    /// The commit that was asked for last.
    pub(super) fn last_serial(&self) -> u64 {
        self.commits.serial
    }

    /// Something begins to wait for commits.
    pub(super) fn hold(&mut self, now: Timestamp) {
        self.commits.held = Some(now);
    }

    /// Nothing waits for commits any longer.
    pub(super) fn release_hold(&mut self) {
        self.commits.held = None;
    }

    /// Whether some commit waits or is in flight.
    pub(super) fn commits_wait(&self) -> bool {
        !self.commits.queue.is_empty()
    }

    fn auto_queued(&self) -> bool {
        let auto = |entry: &Entry| entry.owner == Owner::Auto;
        self.commits.queue.iter().any(auto)
    }
}

impl Member {
    /// The application commits.
    pub(super) fn on_commit(
        &mut self,
        id: CommitId,
        offsets: Option<Positions>,
        retry: bool,
        out: &mut Vec<Output>,
    ) {
        let offsets = offsets.unwrap_or_else(|| self.offsets.consumed_of(&self.ownership.owned));
        let member = match self.state {
            State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => false,
            State::Joining(_)
            | State::Syncing(_)
            | State::Reconciling
            | State::Stable
            | State::Leaving(_) => true,
        };
        let foreign = self.not_committable(&offsets);
        if !foreign.is_empty() {
            out.push(Output::Committed(id, Err(CommitError::NotOwned(foreign))));
        } else if offsets.is_empty() || !member {
            out.push(Output::Committed(id, Ok(BTreeMap::new())));
        } else {
            self.enqueue_commit(Owner::App(id), offsets, retry);
        }
    }

    fn not_committable(&self, offsets: &Positions) -> Partitions {
        let mine = self.ownership.committable();
        offsets
            .keys()
            .filter(|one| !has(&mine, one))
            .cloned()
            .collect()
    }

    pub(super) fn enqueue_commit(&mut self, owner: Owner, offsets: Positions, retry: bool) {
        self.offsets.commits.serial += 1;
        let entry = Entry {
            serial: self.offsets.commits.serial,
            owner,
            offsets,
            done: BTreeMap::new(),
            retry,
            deadline: self.now + self.config.default_api_timeout_ms,
        };
        self.offsets.commits.queue.push_back(entry);
    }

    /// The timer says: commit what was consumed.
    pub(super) fn auto_commit(&mut self) {
        if self.auto_due().is_none() {
            return;
        }
        if let Some(interval) = self.config.auto_commit_interval_ms {
            self.offsets.next_auto = self.now + interval;
            let dirty = self.offsets.dirty(&self.ownership.owned);
            self.enqueue_commit(Owner::Auto, dirty, false);
        }
    }

    /// When to commit what was consumed. Never while a join is under way: its answer would be about another generation , and what is given away is committed by its release.
    pub(super) fn auto_due(&self) -> Option<Timestamp> {
        self.config.auto_commit_interval_ms?;
        let steady = matches!(self.state, State::Stable | State::Reconciling);
        let wanted = steady
            && self.membership.valid()
            && !self.offsets.auto_queued()
            && self.offsets.any_unsaved();
        wanted.then_some(self.offsets.next_auto)
    }

    /// Moves a timer that has long passed on: it ran while there was nothing to commit.
    pub(super) fn tend_auto_commit(&mut self) {
        // One that is due and has something to commit is left alone: its alarm may come right after another input.
        if let Some(interval) = self.config.auto_commit_interval_ms
            && self.offsets.next_auto <= self.now
            && self.auto_due().is_none()
        {
            self.offsets.next_auto = self.now + interval;
        }
    }

    /// Whether a commit may be sent now.
    fn may_commit(&self) -> bool {
        self.membership.valid()
            && match &self.state {
                State::Joining(joining) => joining.before_sending(),
                State::Reconciling | State::Stable | State::Leaving(_) => true,
                State::Unsubscribed
                | State::Syncing(_)
                | State::Fenced
                | State::Fatal
                | State::Closed => false,
            }
    }

    /// The last commit that the present step waits for.
    fn barrier(&self) -> u64 {
        let release = self.ownership.release.as_ref();
        match (release, &self.state) {
            (Some(release), _) => release.barrier.unwrap_or(0),
            (None, State::Leaving(_)) => self.offsets.last_serial(),
            (None, _) => self.join_barrier().unwrap_or(0),
        }
    }

    /// Whether the present step has to wait for commits.
    pub(super) fn commits_hold(&self) -> bool {
        let barrier = self.barrier();
        let first = self.offsets.commits.queue.front();
        first.is_some_and(|entry| entry.serial <= barrier)
            && self.may_commit()
            && (defect!(CommitsForEver) || self.hold_limit().is_some_and(|limit| limit > self.now))
    }

    /// Until when it waits.
    fn hold_limit(&self) -> Option<Timestamp> {
        let held = self.offsets.commits.held?;
        let flying = self.line.flying(|work| matches!(work, Work::Commit(_)));
        let leaving = matches!(self.state, State::Leaving(_));
        let patience = match (flying, leaving) {
            // Whoever is in flight is waited for: a commit that arrives after the next join would be refused.
            (true, false) => self
                .config
                .request_timeout_ms
                .min(self.config.max_poll_interval_ms / 2),
            (false, true) if !self.line.known() => HOLD_UNKNOWN_MS,
            (true, true) | (false, _) => HOLD_MS.min(self.config.max_poll_interval_ms / 2),
        };
        Some(held + patience)
    }

    /// When waiting ends, or a commit that waits has waited too long.
    pub(super) fn commits_due(&self) -> Option<Timestamp> {
        let hold = self.hold_limit().filter(|_| self.commits_hold());
        let waiting = self.offsets.commits.queue.get(self.flying_commits());
        let first = waiting.map(|entry| entry.deadline);
        let retry = (self.may_commit() && self.line.known() && self.offsets.commits_wait())
            .then(|| self.offsets.commits.retry.due(self.now))
            .flatten();
        super::joining::earliest([hold, first, retry])
    }

    /// How many entries of the queue are in flight.
    fn flying_commits(&self) -> usize {
        let flights = self.line.flights.values();
        let last = flights.filter_map(|flight| match &flight.work {
            Work::Commit(batch) => Some(batch.serials.1),
            _ => None,
        });
        let last = last.max().unwrap_or(0);
        let queue = &self.offsets.commits.queue;
        queue.partition_point(|entry| entry.serial <= last)
    }

    /// How many entries may go out together: what the application asked for one after the other.
    fn next_commits(&self) -> usize {
        let queue = &self.offsets.commits.queue;
        let last = self
            .join_barrier()
            .filter(|_| self.ownership.release.is_none());
        let together = |entry: &&Entry| {
            matches!(entry.owner, Owner::App(_)) && last.is_none_or(|last| entry.serial <= last)
        };
        queue.iter().take_while(together).count().max(1)
    }

    /// Sends the next commit, if one may be sent, and answers those that waited too long.
    pub(super) fn progress_commits(&mut self, out: &mut Vec<Output>) {
        self.expire_commits(out);
        while self.may_commit()
            && self.line.known()
            && !self.line.flying(|work| matches!(work, Work::Commit(_)))
            && self.offsets.commits.retry.may(self.now)
            && self.may_speak(Lane::Control)
        {
            let Some(entry) = self.offsets.commits.queue.front() else {
                return;
            };
            if self.join_barrier().is_some_and(|last| entry.serial > last)
                && self.ownership.release.is_none()
            {
                return;
            }
            if !self.send_commit(out) {
                return;
            }
        }
    }

    /// Sends the first commits of the queue, or answers those where there is nothing to send. False if they could not be sent.
    fn send_commit(&mut self, out: &mut Vec<Output>) -> bool {
        let mine = self.ownership.committable();
        let mut serials = None;
        let mut offsets = Positions::new();
        let mut waiting = self.next_commits();
        let mut at = 0;
        while at < waiting
            && let Some(entry) = self.offsets.commits.queue.get_mut(at)
        {
            let by_app = matches!(entry.owner, Owner::App(_));
            let foreign = entry.offsets.keys().filter(|one| !has(&mine, one));
            let foreign: Partitions = foreign.cloned().collect();
            let result = if by_app && !foreign.is_empty() {
                Err(CommitError::NotOwned(foreign))
            } else {
                entry.offsets.retain(|one, _| has(&mine, one));
                Ok(std::mem::take(&mut entry.done))
            };
            if result.is_err() || entry.offsets.is_empty() {
                self.answer_at(at, result, out);
                waiting -= 1;
                continue;
            }
            entry.done = result.unwrap_or_default();
            let (first, _) = *serials.get_or_insert((entry.serial, entry.serial));
            serials = Some((first, entry.serial));
            // The newer one wins.
            let entry = entry.offsets.iter();
            offsets.extend(entry.map(|(one, offset)| (one.clone(), offset.clone())));
            at += 1;
        }
        let Some(serials) = serials else {
            return !self.offsets.commits.queue.is_empty();
        };
        let batch = Batch { serials, offsets };
        let mut topics: BTreeMap<Topic, Vec<OffsetCommitRequestPartition>> = BTreeMap::new();
        for (one, offset) in &batch.offsets {
            topics
                .entry(one.topic.clone())
                .or_default()
                .push(OffsetCommitRequestPartition {
                    partition_index: one.partition,
                    committed_offset: offset.offset,
                    committed_leader_epoch: offset.leader_epoch,
                    committed_metadata: Some(offset.metadata.clone()),
                    ..OffsetCommitRequestPartition::default()
                });
        }
        let request = OffsetCommitRequest {
            group_id: self.config.group_id.clone(),
            generation_id_or_member_epoch: self.membership.generation,
            member_id: self.membership.id.clone(),
            group_instance_id: self.config.group_instance_id.clone(),
            retention_time_ms: -1,
            topics: topics
                .into_iter()
                .map(|(topic, partitions)| OffsetCommitRequestTopic {
                    name: topic.to_string(),
                    partitions,
                    ..OffsetCommitRequestTopic::default()
                })
                .collect(),
        };
        self.send(
            Work::Commit(batch),
            request,
            GroupRequest::OffsetCommit,
            out,
        )
    }

    /// Answers a commit of the queue and takes it out.
    pub(super) fn answer_at(
        &mut self,
        at: usize,
        result: Result<Positions, CommitError>,
        out: &mut Vec<Output>,
    ) {
        if let Some(entry) = self.offsets.commits.queue.remove(at) {
            answer(&entry, result, out);
        }
    }

    /// Those that were asked for first have waited longest: all of them have the same patience.
    fn expire_commits(&mut self, out: &mut Vec<Output>) {
        let flying = self.flying_commits();
        let rebalancing = matches!(self.state, State::Joining(_) | State::Syncing(_));
        let late = |entry: &Entry, now| entry.deadline <= now;
        while let Some(entry) = self.offsets.commits.queue.get(flying)
            && late(entry, self.now)
        {
            let error = if rebalancing {
                CommitError::Rebalancing
            } else {
                CommitError::Unknown
            };
            self.answer_at(flying, Err(error), out);
        }
    }

    /// The release has ended, whatever became of its commit.
    pub(super) fn end_release_commits(&mut self, out: &mut Vec<Output>) {
        let Some(at) = self
            .offsets
            .commits
            .queue
            .iter()
            .position(|entry| entry.owner == Owner::Release)
        else {
            return;
        };
        if let Some(entry) = self.offsets.commits.queue.remove(at) {
            let serial = entry.serial;
            self.line.flights.retain(
                |_, flight| !matches!(&flight.work, Work::Commit(batch) if batch.serials.0 == serial),
            );
            answer(&entry, Err(CommitError::Unknown), out);
        }
    }

    /// The partitions are lost: no commit is attempted any more.
    pub(super) fn abandon_commits(&mut self, out: &mut Vec<Output>) {
        self.line
            .flights
            .retain(|_, flight| !matches!(flight.work, Work::Commit(_)));
        for entry in std::mem::take(&mut self.offsets.commits.queue) {
            if matches!(entry.owner, Owner::App(_)) {
                let partitions = entry.offsets.keys().cloned().collect();
                answer(&entry, Err(CommitError::NotOwned(partitions)), out);
            }
        }
    }
}

fn answer(entry: &Entry, result: Result<Positions, CommitError>, out: &mut Vec<Output>) {
    match (entry.owner, result) {
        (Owner::App(id), result) => out.push(Output::Committed(id, result)),
        (Owner::Auto | Owner::Release, Ok(_)) => {}
        (Owner::Auto | Owner::Release, Err(error)) => out.push(Output::AutoCommitFailed(error)),
    }
}
