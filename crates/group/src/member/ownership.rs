//! What the member owns, and how it lets go: told to (`Revoke`, `Released`, `Revoked`) or too late (`Lost`).
//!
//! A revocation has three steps: the application is told; it says that it has let go; what it had consumed is committed, where that is
//! automatic, and commits that it had asked for before are answered. Only then may the member join again or leave.

use super::commit::Owner;
use super::state::{Cause, State};
use super::{Member, Mode, Output, RevokeReason};
use crate::partitions::Partitions;
use crate::reason::JoinReason;
use crate::time::Timestamp;

/// What the member owns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ownership {
    /// Assigned, and neither released nor lost.
    pub(super) owned: Partitions,
    /// The generation in which they were last assigned, −1 if never: what a claim is labelled with (KIP-792). It stays
    /// behind the member's generation when a sync fails (KAFKA-13891).
    pub(super) generation: i32,
    /// What was assigned last, for assignors that remember it in their user data.
    pub(super) previous: Partitions,
    /// A revocation that is under way.
    pub(super) release: Option<Release>,
}

/// A revocation that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Release {
    /// All that is to be released.
    pub(super) partitions: Partitions,
    /// What the application has not let go of.
    pub(super) waiting: Partitions,
    /// After this the group goes on without the member.
    pub(super) deadline: Timestamp,
    /// The commits up to this one are to be answered first; `None` while the application has something to let go of.
    pub(super) barrier: Option<u64>,
}

impl Ownership {
    pub(super) fn new() -> Self {
        Self {
            owned: Partitions::default(),
            generation: -1,
            previous: Partitions::default(),
            release: None,
        }
    }

    /// What may be committed: what is owned, and what was released and is not told as revoked yet.
    pub(super) fn committable(&self) -> Partitions {
        match &self.release {
            Some(release) => self.owned.union(&release.partitions),
            None => self.owned.clone(),
        }
    }

    /// What records may be read from.
    pub(super) fn kept(&self) -> Partitions {
        match &self.release {
            Some(release) => self.owned.minus(&release.partitions),
            None => self.owned.clone(),
        }
    }
}

impl Member {
    /// Tells the application to let go of these (those of them that it owns and was not told about yet).
    pub(super) fn revoke(
        &mut self,
        partitions: &Partitions,
        reason: RevokeReason,
        out: &mut Vec<Output>,
    ) {
        let partitions = self.ownership.kept().intersection(partitions);
        if partitions.is_empty() {
            return;
        }
        self.offsets.stop(&partitions);
        let deadline = self.now + self.config.max_poll_interval_ms;
        let release = self.ownership.release.take();
        let before = release.map_or_else(
            || (Partitions::default(), Partitions::default()),
            |release| (release.partitions, release.waiting),
        );
        self.ownership.release = Some(Release {
            partitions: before.0.union(&partitions),
            waiting: before.1.union(&partitions),
            deadline,
            barrier: None,
        });
        out.push(Output::Revoke {
            partitions,
            reason,
            deadline,
            generation: self.membership.generation,
        });
    }

    /// The application has let go of some.
    pub(super) fn released(&mut self, partitions: &Partitions) {
        let Some(release) = &mut self.ownership.release else {
            return;
        };
        let gone = release.waiting.intersection(partitions);
        release.waiting = release.waiting.minus(&gone);
        self.ownership.owned = self.ownership.owned.minus(&gone);
        self.record.released(self.now, &gone);
    }

    /// Takes a revocation as far as it goes: commits, then says `Revoked`. True when there is none (any more).
    pub(super) fn finish_release(&mut self, out: &mut Vec<Output>) -> bool {
        let Some(release) = &self.ownership.release else {
            return true;
        };
        if !release.waiting.is_empty() {
            return false;
        }
        if release.barrier.is_none() {
            let dirty = self.offsets.dirty(&release.partitions);
            if self.config.auto_commit_interval_ms.is_some()
                && self.membership.valid()
                && !dirty.is_empty()
            {
                self.enqueue_commit(Owner::Release, dirty, true);
            }
            self.offsets.hold(self.now);
            if let Some(release) = &mut self.ownership.release {
                release.barrier = Some(self.offsets.last_serial());
            }
            self.progress_commits(out);
        }
        if self.commits_hold() {
            return false;
        }
        self.conclude_release(out);
        true
    }

    /// Says `Revoked` for what was released, whatever became of its commits.
    fn conclude_release(&mut self, out: &mut Vec<Output>) {
        if let Some(release) = self.ownership.release.take() {
            self.end_release_commits(out);
            let partitions = release.partitions.minus(&release.waiting);
            self.offsets.forget(&partitions);
            if !partitions.is_empty() {
                out.push(Output::Revoked {
                    partitions,
                    owned: self.ownership.owned.clone(),
                    generation: self.membership.generation,
                });
            }
        }
    }

    /// The group goes on (or has gone on) without the member: everything is lost, and nothing is committed any more.
    pub(super) fn lose(&mut self, why: &str, keep_id: bool, out: &mut Vec<Output>) {
        self.abandon_commits(out);
        self.conclude_release(out);
        let partitions = std::mem::take(&mut self.ownership.owned);
        self.record.lost(self.now, &partitions);
        if defect!(LostToldAsRevoked) && !partitions.is_empty() {
            out.push(Output::Revoke {
                partitions,
                reason: RevokeReason::Reassigned,
                deadline: self.now,
                generation: self.membership.generation,
            });
        } else if !partitions.is_empty() {
            out.push(Output::Lost {
                partitions,
                why: why.to_owned(),
                generation: self.membership.generation,
            });
        }
        self.offsets.forget_all();
        self.drop_flights_of_membership(out);
        self.ownership.generation = -1;
        self.ownership.previous = Partitions::default();
        self.membership.generation = -1;
        self.membership.protocol.clear();
        self.leading = None;
        self.need_rejoin = false;
        if !keep_id && !defect!(KeepsUnknownId) {
            self.membership.forget_id();
        }
    }

    /// The membership is gone: everything is lost, and the member joins afresh, at once the first time.
    pub(super) fn lose_and_rejoin(&mut self, why: &str, keep_id: bool, out: &mut Vec<Output>) {
        if defect!(KeepsOwnedWithoutGeneration) && keep_id {
            self.membership.generation = -1;
        } else {
            self.lose(why, keep_id, out);
        }
        match self.state {
            // It leaves anyway; if the group still knows it, it says so.
            State::Leaving(_) => return,
            State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => return,
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Stable => {}
        }
        if self.closing.is_some() {
            self.leave_for_good(out);
            return;
        }
        self.rounds.refused(self.now, self.pauses, &mut self.jitter);
        self.begin_join(
            Cause::new(JoinReason::Lost, format!("rejoining: {why}")),
            out,
        );
    }

    /// What has to be released before a join: everything where that is the mode, else only what is no longer wanted.
    pub(super) fn before_join(&self) -> (Partitions, RevokeReason) {
        match self.mode {
            Mode::Cooperative if defect!(RevokesBeforeJoin) => {
                (self.ownership.owned.clone(), RevokeReason::Reassigned)
            }
            Mode::Eager => (self.ownership.owned.clone(), RevokeReason::Eager),
            Mode::Cooperative if self.closing.is_some() => {
                (Partitions::default(), RevokeReason::Closing)
            }
            Mode::Cooperative => {
                let mut unwanted = self.ownership.owned.clone();
                unwanted.retain(|topic, _| !self.wanted.contains(topic));
                (unwanted, RevokeReason::Unsubscribed)
            }
        }
    }
}
