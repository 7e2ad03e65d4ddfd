//! What the coordinator says about a commit, and what follows from it for the commit and for the membership.

use super::commit::{Batch, Entry, Owner};
use super::joining::refused;
use super::positions::Positions;
use super::requests::Flight;
use super::state::{Cause, State};
use super::{CommitError, Member, Output};
use crate::partitions::{Topic, TopicPartition};
use crate::reason::JoinReason;
use kohort_wire::messages::OffsetCommitResponse;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

impl Member {
    /// OffsetCommit was answered.
    pub(super) fn on_committed(
        &mut self,
        flight: &Flight,
        batch: &Batch,
        response: OffsetCommitResponse,
        out: &mut Vec<Output>,
    ) {
        if !self.is_first(batch) {
            return;
        }
        let answered = codes(response);
        let by_hand = |entry: &Entry| matches!(entry.owner, Owner::App(_));
        let by_hand = self.offsets.commits.queue.front().is_some_and(by_hand);
        let mut refused = BTreeMap::new();
        for (one, offset) in &batch.offsets {
            // A partition that is not in the answer: nobody knows.
            let code = answered.get(one).copied();
            match code.unwrap_or(ErrorCode::UnknownServerError) {
                ErrorCode::None => self.offsets.stored(one, offset.offset, by_hand),
                code => {
                    refused.insert(one.clone(), code);
                }
            }
        }
        self.settle_stored(batch, &refused, out);
        match worst(refused.values()) {
            None => {
                self.heard(flight.sent);
                self.offsets.commits.retry.worked();
            }
            Some(code) if severity(code) <= 1 => self.on_partitions_refused(&refused, batch, out),
            Some(code) => self.on_commit_refused(code, batch, out),
        }
    }

    /// Whether a batch is what the queue begins with.
    fn is_first(&self, batch: &Batch) -> bool {
        let first = self.offsets.commits.queue.front();
        first.is_some_and(|entry| entry.serial == batch.serials.0)
    }

    /// Answers those entries of a batch of which everything is stored.
    fn settle_stored(
        &mut self,
        batch: &Batch,
        refused: &BTreeMap<TopicPartition, ErrorCode>,
        out: &mut Vec<Output>,
    ) {
        let mut at = 0;
        while let Some(entry) = self.offsets.commits.queue.get_mut(at)
            && entry.serial <= batch.serials.1
        {
            let (left, stored): (Positions, Positions) = std::mem::take(&mut entry.offsets)
                .into_iter()
                .partition(|(one, _)| refused.contains_key(one));
            entry.done.extend(stored);
            entry.offsets = left;
            if entry.offsets.is_empty() {
                let done = std::mem::take(&mut entry.done);
                self.answer_at(at, Ok(done), out);
            } else {
                at += 1;
            }
        }
    }

    /// Some partitions were refused, and nothing is said about the membership: each entry hears of its own.
    fn on_partitions_refused(
        &mut self,
        refused: &BTreeMap<TopicPartition, ErrorCode>,
        batch: &Batch,
        out: &mut Vec<Output>,
    ) {
        if refused.values().any(|code| coordinator_is_gone(*code)) {
            self.forget_coordinator();
        }
        let deleted = self.known_to_be_deleted(refused);
        // Nothing is left of a release's commit but what nobody will ever read on (KAFKA-13310).
        if let Some(first) = self.offsets.commits.queue.front_mut()
            && first.owner == Owner::Release
            && first.offsets.keys().all(|one| deleted.contains(one))
        {
            let done = std::mem::take(&mut first.done);
            return self.answer_at(0, Ok(done), out);
        }
        if refused.values().any(|code| severity(*code) == 0) {
            self.commit_failed();
        }
        self.end_or_keep(batch, out, |entry| {
            let code = worst(entry.offsets.keys().filter_map(|one| refused.get(one)));
            let code = code.unwrap_or(ErrorCode::UnknownServerError);
            let hopeless = entry.offsets.keys().all(|one| deleted.contains(one));
            (CommitError::Refused(code), severity(code) == 0 && !hopeless)
        });
    }

    /// Answers the entries of a batch with their error, but for those that are to be tried again where that makes sense.
    fn end_or_keep(
        &mut self,
        batch: &Batch,
        out: &mut Vec<Output>,
        error: impl Fn(&Entry) -> (CommitError, bool),
    ) {
        let mut at = 0;
        while let Some(entry) = self.offsets.commits.queue.get(at)
            && entry.serial <= batch.serials.1
        {
            let (error, again) = error(entry);
            if again && entry.retry {
                at += 1;
            } else if again && entry.owner == Owner::Auto {
                // The next one will do.
                self.offsets.commits.queue.remove(at);
                self.offsets.next_auto = self.now + self.pauses.longest;
            } else {
                self.answer_at(at, Err(error), out);
            }
        }
    }

    /// The next attempt comes after a pause.
    fn commit_failed(&mut self) {
        let (now, pauses) = (self.now, self.pauses);
        let retry = &mut self.offsets.commits.retry;
        retry.failed(now, pauses, &mut self.jitter);
    }

    /// A refusal that is about the membership is about the whole batch.
    fn on_commit_refused(&mut self, code: ErrorCode, batch: &Batch, out: &mut Vec<Output>) {
        let refuse = |_: &Entry| (CommitError::Refused(code), false);
        match code {
            ErrorCode::RebalanceInProgress => {
                // The group is between join and sync, and this member is not: it has to join. The commit can be made
                // afterwards, if the partitions are still owned then.
                if matches!(self.state, State::Leaving(_)) {
                    self.end_or_keep(batch, out, |_| (CommitError::Rebalancing, false));
                } else {
                    self.offsets.release_hold();
                    self.commit_failed();
                    self.end_or_keep(batch, out, |_| (CommitError::Rebalancing, true));
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
                self.end_or_keep(batch, out, refuse);
                let keep_id = code == ErrorCode::IllegalGeneration;
                self.end_series();
                self.lose_and_rejoin(&refused(ApiKey::OffsetCommit, code), keep_id, out);
            }
            ErrorCode::FencedInstanceId => {
                self.end_or_keep(batch, out, refuse);
                self.on_fenced(ApiKey::OffsetCommit, out);
            }
            _ => self.end_or_keep(batch, out, refuse),
        }
    }

    /// What the coordinator does not know, and the member's own metadata does not know any more: no other try will store it.
    fn known_to_be_deleted(
        &self,
        refused: &BTreeMap<TopicPartition, ErrorCode>,
    ) -> BTreeSet<TopicPartition> {
        let unknown = refused
            .iter()
            .filter(|(_, code)| **code == ErrorCode::UnknownTopicOrPartition);
        unknown
            .map(|(one, _)| one)
            .filter(|one| !self.topics.is_empty() && !self.topics.has(&one.topic, one.partition))
            .cloned()
            .collect()
    }

    /// The answer to a commit will not come.
    pub(super) fn on_commit_lost(&mut self, batch: &Batch, out: &mut Vec<Output>) {
        if self.is_first(batch) {
            self.commit_failed();
            self.end_or_keep(batch, out, |_| (CommitError::Unknown, true));
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

fn coordinator_is_gone(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::CoordinatorNotAvailable | ErrorCode::NotCoordinator | ErrorCode::RequestTimedOut
    )
}

fn worst<'a>(codes: impl Iterator<Item = &'a ErrorCode>) -> Option<ErrorCode> {
    codes.copied().max_by_key(|code| (severity(*code), *code))
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
