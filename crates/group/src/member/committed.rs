//! What the coordinator says about a commit, and what follows from it for the commit and for the membership.

use super::commit::{Batch, Owner};
use super::joining::refused;
use super::positions::Positions;
use super::requests::Flight;
use super::state::{Cause, State};
use super::{CommitError, Member, Output};
use crate::partitions::{Topic, TopicPartition};
use crate::reason::JoinReason;
use kohort_wire::messages::OffsetCommitResponse;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;

impl Member {
    /// OffsetCommit was answered.
    pub(super) fn on_committed(
        &mut self,
        flight: &Flight,
        batch: &Batch,
        response: OffsetCommitResponse,
        out: &mut Vec<Output>,
    ) {
        if self
            .offsets
            .commits
            .queue
            .front()
            .is_none_or(|entry| entry.serial != batch.serial)
        {
            return;
        }
        let codes = codes(response);
        let mut worst = None;
        let mut left = Positions::new();
        let by_hand = self
            .offsets
            .commits
            .queue
            .front()
            .is_some_and(|entry| matches!(entry.owner, Owner::App(_)));
        for (one, offset) in &batch.offsets {
            // A partition that is not in the answer: nobody knows.
            let code = codes.get(one).copied();
            if code == Some(ErrorCode::None) {
                self.offsets.stored(one, offset.offset, by_hand);
                if let Some(entry) = self.offsets.commits.queue.front_mut() {
                    entry.done.insert(one.clone(), offset.clone());
                }
            } else {
                left.insert(one.clone(), offset.clone());
                let code = code.unwrap_or(ErrorCode::UnknownServerError);
                worst = worst.max(Some((severity(code), code)));
            }
        }
        if let Some(entry) = self.offsets.commits.queue.front_mut() {
            entry.offsets = left;
        }
        match worst {
            None => {
                self.heard(flight.sent);
                self.offsets.commits.retry.worked();
                let entry = self.offsets.commits.queue.front_mut();
                let done = entry.map(|entry| std::mem::take(&mut entry.done));
                self.answer_first(Ok(done.unwrap_or_default()), out);
            }
            Some((_, code)) => self.on_commit_refused(code, out),
        }
    }

    fn on_commit_refused(&mut self, code: ErrorCode, out: &mut Vec<Output>) {
        match code {
            ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::RequestTimedOut => {
                self.forget_coordinator();
                self.retry_first(CommitError::Refused(code), out);
            }
            ErrorCode::UnknownTopicOrPartition if self.drop_deleted() => {
                let entry = self.offsets.commits.queue.front_mut();
                let done = entry.map(|entry| std::mem::take(&mut entry.done));
                self.answer_first(Ok(done.unwrap_or_default()), out);
            }
            ErrorCode::CoordinatorLoadInProgress | ErrorCode::UnknownTopicOrPartition => {
                self.retry_first(CommitError::Refused(code), out);
            }
            ErrorCode::RebalanceInProgress => {
                // The group is between join and sync, and this member is not: it has to join. The commit can be made
                // afterwards, if the partitions are still owned then.
                if matches!(self.state, State::Leaving(_)) {
                    self.answer_first(Err(CommitError::Rebalancing), out);
                } else {
                    self.offsets.release_hold();
                    self.retry_first(CommitError::Rebalancing, out);
                    if self.state == State::Stable {
                        let text = "offset commit failed since group is already rebalancing";
                        self.begin_join(Cause::new(JoinReason::Unknown, text), out);
                        self.offsets.release_hold();
                    }
                }
            }
            ErrorCode::UnknownMemberId
            | ErrorCode::IllegalGeneration
            | ErrorCode::GroupIdNotFound => {
                self.answer_first(Err(CommitError::Refused(code)), out);
                let keep_id = code == ErrorCode::IllegalGeneration;
                self.end_series();
                self.lose_and_rejoin(&refused(ApiKey::OffsetCommit, code), keep_id, out);
            }
            ErrorCode::FencedInstanceId => {
                self.answer_first(Err(CommitError::Refused(code)), out);
                self.on_fenced(ApiKey::OffsetCommit, out);
            }
            other => self.answer_first(Err(CommitError::Refused(other)), out),
        }
    }

    /// Nothing is left of a release's commit but topics that the member knows to be deleted: nobody will ever read on there
    /// (KAFKA-13310).
    fn drop_deleted(&self) -> bool {
        let first = self.offsets.commits.queue.front();
        !self.topics.is_empty()
            && first.is_some_and(|entry| {
                entry.owner == Owner::Release
                    && entry
                        .offsets
                        .keys()
                        .all(|one| !self.topics.has(&one.topic, one.partition))
            })
    }

    /// The answer to a commit will not come.
    pub(super) fn on_commit_lost(&mut self, batch: &Batch, out: &mut Vec<Output>) {
        let first = self.offsets.commits.queue.front();
        if first.is_some_and(|entry| entry.serial == batch.serial) {
            self.retry_first(CommitError::Unknown, out);
        }
    }

    /// Tries the first commit again where that was asked for; otherwise it has failed.
    fn retry_first(&mut self, error: CommitError, out: &mut Vec<Output>) {
        self.offsets
            .commits
            .retry
            .failed(self.now, self.pauses, &mut self.jitter);
        let Some(entry) = self.offsets.commits.queue.front() else {
            return;
        };
        if !entry.retry {
            if entry.owner == Owner::Auto {
                // The next one will do.
                self.offsets.commits.queue.pop_front();
                self.offsets.next_auto = self.now + self.pauses.longest;
            } else {
                self.answer_first(Err(error), out);
            }
        }
    }
}

fn codes(response: OffsetCommitResponse) -> BTreeMap<TopicPartition, ErrorCode> {
    let mut codes = BTreeMap::new();
    for topic in response.topics {
        let name: Topic = topic.name.into();
        for partition in topic.partitions {
            let one = TopicPartition::new(name.clone(), partition.partition_index);
            codes.insert(one, partition.error_code);
        }
    }
    codes
}

/// Which of several errors decides: the one that says most about the membership.
fn severity(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::FencedInstanceId => 5,
        ErrorCode::UnknownMemberId | ErrorCode::GroupIdNotFound => 4,
        ErrorCode::IllegalGeneration => 3,
        ErrorCode::RebalanceInProgress => 2,
        ErrorCode::CoordinatorNotAvailable
        | ErrorCode::NotCoordinator
        | ErrorCode::RequestTimedOut
        | ErrorCode::CoordinatorLoadInProgress
        | ErrorCode::UnknownTopicOrPartition => 0,
        _ => 1,
    }
}
