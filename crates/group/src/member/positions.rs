//! Where reading starts, what was consumed, what is committed.

use super::backoff::Retry;
use super::commit::Commits;
use super::requests::{Flight, Work};
use super::state::State;
use super::{Lane, Member, Offset, Output};
use crate::coordinator::GroupRequest;
use crate::partitions::{Partitions, Topic, TopicPartition};
use crate::time::Timestamp;
use kohort_wire::messages::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponse,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};

/// Offsets by partition.
pub(super) type Positions = BTreeMap<TopicPartition, Offset>;

/// Offsets of the partitions that are owned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Offsets {
    /// Assigned, and the committed offset is not known yet; with the number of the assignment, so that the answer to a fetch from before a
    /// partition went and came back is not taken for a fresh one.
    unpositioned: BTreeMap<TopicPartition, u64>,
    starts: u64,
    pub(super) fetch: Retry,
    /// What the application has consumed.
    positions: Positions,
    /// What the coordinator has stored, as far as this member knows.
    committed: BTreeMap<TopicPartition, i64>,
    /// What the application committed itself, until it reads on from before: automatic commits do not go below (F5).
    floor: BTreeMap<TopicPartition, i64>,
    /// What was consumed and an automatic commit would store, kept up to date so that no input costs a look at all partitions.
    unsaved: BTreeSet<TopicPartition>,
    /// When what was consumed is committed next.
    pub(super) next_auto: Timestamp,
    /// Told once, not at each try.
    warned: BTreeSet<(Topic, ErrorCode)>,
    pub(super) commits: Commits,
}

fn keys(partitions: &Partitions) -> impl Iterator<Item = TopicPartition> + '_ {
    partitions.iter().map(|(topic, partition)| TopicPartition {
        topic: topic.clone(),
        partition,
    })
}

pub(super) fn has(partitions: &Partitions, one: &TopicPartition) -> bool {
    partitions.contains(&one.topic, one.partition)
}

impl Offsets {
    /// Partitions were assigned: find out where to start.
    pub(super) fn start(&mut self, partitions: &Partitions) {
        self.starts += 1;
        self.unpositioned
            .extend(keys(partitions).map(|one| (one, self.starts)));
    }

    /// Partitions are to be released: they start no more.
    pub(super) fn stop(&mut self, partitions: &Partitions) {
        self.unpositioned.retain(|one, _| !has(partitions, one));
    }

    /// Partitions are gone.
    pub(super) fn forget(&mut self, partitions: &Partitions) {
        self.stop(partitions);
        self.positions.retain(|one, _| !has(partitions, one));
        self.committed.retain(|one, _| !has(partitions, one));
        self.floor.retain(|one, _| !has(partitions, one));
        self.unsaved.retain(|one| !has(partitions, one));
    }

    /// All partitions are gone.
    pub(super) fn forget_all(&mut self) {
        self.unpositioned.clear();
        self.positions.clear();
        self.committed.clear();
        self.floor.clear();
        self.unsaved.clear();
        self.warned.clear();
    }

    /// The application has consumed up to here.
    pub(super) fn consumed(&mut self, one: TopicPartition, offset: Offset) {
        let before = self.positions.get(&one).map(|before| before.offset);
        if before.is_some_and(|before| offset.offset < before) {
            self.floor.remove(&one);
        }
        self.positions.insert(one.clone(), offset);
        self.look_at(one);
    }

    /// Whether an automatic commit would store this position.
    fn look_at(&mut self, one: TopicPartition) {
        let unsaved = self.positions.get(&one).is_some_and(|position| {
            self.committed.get(&one) != Some(&position.offset)
                && self
                    .floor
                    .get(&one)
                    .is_none_or(|floor| position.offset > *floor)
        });
        if unsaved {
            self.unsaved.insert(one);
        } else {
            self.unsaved.remove(&one);
        }
    }

    /// Everything consumed of these.
    pub(super) fn consumed_of(&self, partitions: &Partitions) -> Positions {
        self.positions
            .iter()
            .filter(|(one, _)| has(partitions, one))
            .map(|(one, offset)| (one.clone(), offset.clone()))
            .collect()
    }

    /// What was consumed of these and an automatic commit would store.
    pub(super) fn dirty(&self, partitions: &Partitions) -> Positions {
        self.unsaved
            .iter()
            .filter(|one| has(partitions, one))
            .filter_map(|one| Some((one.clone(), self.positions.get(one)?.clone())))
            .collect()
    }

    /// Whether there is anything that an automatic commit would store.
    pub(super) fn any_unsaved(&self) -> bool {
        !self.unsaved.is_empty()
    }

    /// The coordinator has stored this.
    pub(super) fn stored(&mut self, one: &TopicPartition, offset: i64, by_hand: bool) {
        self.committed.insert(one.clone(), offset);
        if by_hand {
            self.floor.insert(one.clone(), offset);
        }
        self.look_at(one.clone());
    }

    /// An assignment was applied: the time of automatic commits begins anew.
    pub(super) fn auto_commit_from(&mut self, now: Timestamp) {
        self.next_auto = now;
    }

    /// Whether some partitions wait for their committed offset.
    pub(super) fn unpositioned(&self) -> bool {
        !self.unpositioned.is_empty()
    }

    /// Those among `asked` that still wait for the answer to this fetch.
    fn still(&self, asked: &BTreeMap<TopicPartition, u64>) -> BTreeSet<TopicPartition> {
        asked
            .iter()
            .filter(|(one, start)| self.unpositioned.get(*one) == Some(*start))
            .map(|(one, _)| one.clone())
            .collect()
    }

    /// The number of the last assignment, and what waits for its offset.
    pub(super) fn starts(&mut self) -> (&mut u64, &mut BTreeMap<TopicPartition, u64>) {
        (&mut self.starts, &mut self.unpositioned)
    }

    pub(super) fn check(&self, owned: &Partitions) {
        for one in self.unpositioned.keys() {
            assert!(has(owned, one), "{one} is to be started and not owned");
        }
        let unsaved = |one: &TopicPartition, position: &Offset| {
            self.committed.get(one) != Some(&position.offset)
                && self
                    .floor
                    .get(one)
                    .is_none_or(|floor| position.offset > *floor)
        };
        for (one, position) in &self.positions {
            assert_eq!(unsaved(one, position), self.unsaved.contains(one), "{one}");
        }
    }
}

impl Member {
    /// The application has consumed.
    pub(super) fn on_consumed(&mut self, one: TopicPartition, mut offset: Offset) {
        if defect!(CommitsUnread) {
            offset.offset += 1;
        }
        // Of what is lost or given away nothing is remembered: others may be reading it.
        if has(&self.ownership.owned, &one) {
            self.offsets.consumed(one, offset);
        }
    }

    /// Asks for the committed offsets of what has none yet.
    pub(super) fn progress_fetch(&mut self, out: &mut Vec<Output>) {
        let lives = match self.state {
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Stable => true,
            State::Unsubscribed
            | State::Leaving(_)
            | State::Fenced
            | State::Fatal
            | State::Closed => false,
        };
        if !lives
            || !self.offsets.unpositioned()
            || !self.offsets.fetch.may(self.now)
            || !self.may_speak(Lane::Control)
        {
            return;
        }
        let mut wanted = self.offsets.unpositioned.clone();
        for flight in self.line.flights.values() {
            if let Work::Fetch(asked) = &flight.work {
                wanted.retain(|one, start| asked.get(one) != Some(start));
            }
        }
        if wanted.is_empty() {
            return;
        }
        let mut topics: BTreeMap<&Topic, Vec<i32>> = BTreeMap::new();
        for one in wanted.keys() {
            topics.entry(&one.topic).or_default().push(one.partition);
        }
        let request = OffsetFetchRequest {
            group_id: self.config.group_id.clone(),
            topics: Some(
                topics
                    .iter()
                    .map(|(topic, numbers)| OffsetFetchRequestTopic {
                        name: topic.to_string(),
                        partition_indexes: numbers.clone(),
                    })
                    .collect(),
            ),
            groups: vec![OffsetFetchRequestGroup {
                group_id: self.config.group_id.clone(),
                topics: Some(
                    topics
                        .iter()
                        .map(|(topic, numbers)| OffsetFetchRequestTopics {
                            name: topic.to_string(),
                            partition_indexes: numbers.clone(),
                            ..OffsetFetchRequestTopics::default()
                        })
                        .collect(),
                ),
                ..OffsetFetchRequestGroup::default()
            }],
            require_stable: true,
        };
        self.send(Work::Fetch(wanted), request, GroupRequest::OffsetFetch, out);
    }

    /// The answer will not come.
    pub(super) fn fetch_again(&mut self) {
        self.offsets
            .fetch
            .failed(self.now, self.pauses, &mut self.jitter);
    }

    /// OffsetFetch was answered. Only "none is stored", without an error, lets reading start where the policy says (a passing error
    /// must never reset a position).
    pub(super) fn on_fetched(
        &mut self,
        flight: &Flight,
        asked: &BTreeMap<TopicPartition, u64>,
        answer: OffsetFetchResponse,
        out: &mut Vec<Output>,
    ) {
        let (code, found) = flatten(answer);
        match code {
            ErrorCode::None => {}
            ErrorCode::CoordinatorNotAvailable
            | ErrorCode::NotCoordinator
            | ErrorCode::RequestTimedOut => {
                self.forget_coordinator();
                self.fetch_again();
                return;
            }
            ErrorCode::CoordinatorLoadInProgress | ErrorCode::UnstableOffsetCommit => {
                self.fetch_again();
                return;
            }
            ErrorCode::GroupAuthorizationFailed => {
                let advice = "the client may not describe the group; grant DESCRIBE on it";
                let api = Some(ApiKey::OffsetFetch);
                self.fail(api, Some(code), advice.to_owned(), out);
                return;
            }
            other => {
                self.warn_of_fetch(&Topic::from(""), other, out);
                self.fetch_again();
                return;
            }
        }
        self.heard(flight.sent);
        let mut starts = BTreeMap::new();
        let mut failed = false;
        for one in self.offsets.still(asked) {
            match found.get(&one) {
                Some(Ok(offset)) => {
                    self.offsets.unpositioned.remove(&one);
                    if let Some(offset) = offset {
                        self.offsets.stored(&one, offset.offset, false);
                    }
                    let from = offset.clone().filter(|_| !defect!(StartsAtBeginning));
                    starts.insert(one, from);
                }
                Some(Err(code)) => {
                    failed = true;
                    match code {
                        ErrorCode::UnstableOffsetCommit | ErrorCode::CoordinatorLoadInProgress => {}
                        ErrorCode::NotCoordinator | ErrorCode::CoordinatorNotAvailable => {
                            self.forget_coordinator();
                        }
                        other => self.warn_of_fetch(&one.topic, *other, out),
                    }
                }
                None => failed = true,
            }
        }
        if failed {
            self.fetch_again();
        } else {
            self.offsets.fetch.worked();
        }
        if !starts.is_empty() {
            out.push(Output::Start(starts));
        }
    }

    fn warn_of_fetch(&mut self, topic: &Topic, code: ErrorCode, out: &mut Vec<Output>) {
        if self.offsets.warned.insert((topic.clone(), code)) {
            out.push(Output::Warning {
                code: Some(code),
                text: format!(
                    "the committed offsets{}{topic} could not be read: {}; asking again with pauses, nothing is delivered until then",
                    if topic.is_empty() { "" } else { " of " },
                    code.meaning()
                ),
            });
        }
    }
}

/// The error of the whole, and each partition's offset (`None` where none is stored) or error.
#[allow(clippy::type_complexity, reason = "used once")]
fn flatten(
    answer: OffsetFetchResponse,
) -> (
    ErrorCode,
    BTreeMap<TopicPartition, Result<Option<Offset>, ErrorCode>>,
) {
    let mut code = answer.error_code;
    let mut topics: Vec<(String, Vec<_>)> = answer
        .topics
        .into_iter()
        .map(|topic| (topic.name, topic.partitions))
        .collect();
    for group in answer.groups {
        if !group.error_code.is_none() {
            code = group.error_code;
        }
        topics.extend(
            group
                .topics
                .into_iter()
                .map(|topic| (topic.name, topic.partitions)),
        );
    }
    let mut found = BTreeMap::new();
    for (name, partitions) in topics {
        let topic: Topic = name.into();
        for partition in partitions {
            let offset = if !partition.error_code.is_none() {
                Err(partition.error_code)
            } else if partition.committed_offset < 0 {
                Ok(None)
            } else {
                Ok(Some(Offset {
                    offset: partition.committed_offset,
                    leader_epoch: partition.committed_leader_epoch,
                    metadata: partition.metadata.unwrap_or_default(),
                }))
            };
            found.insert(
                TopicPartition::new(topic.clone(), partition.partition_index),
                offset,
            );
        }
    }
    (code, found)
}
