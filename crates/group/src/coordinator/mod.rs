//! The broker's end: one [`Coordinator`] for each partition of `__consumer_offsets`.
//!
//! ```text
//!   Request ─▶ ┌─────────────┐ ─▶ Append(n, record)     the shell writes it, then says Appended(n)
//!   Alarm   ─▶ │ Coordinator │ ─▶ Reply(id, response)   held back until `after` is durable
//!   Replay  ─▶ └─────────────┘ ─▶ Rebalanced(record)
//! ```
//!
//! | state | entered when | a join | a sync | a heartbeat |
//! |---|---|---|---|---|
//! | Empty | the last member is gone | → PreparingRebalance, after the initial delay | UNKNOWN_MEMBER_ID | UNKNOWN_MEMBER_ID |
//! | PreparingRebalance | somebody joins, leaves or expires | parked until all have joined | REBALANCE_IN_PROGRESS | REBALANCE_IN_PROGRESS |
//! | CompletingRebalance | all have joined, or time is up | a retry is answered, a change rebalances | parked until the leader's is stored | NONE |
//! | Stable | the leader's assignments are stored | a retry is answered, a change rebalances | the stored assignment | NONE |

mod canonical;
mod classic;
pub mod config;
mod describe;
mod effects;
pub mod input;
mod offsets;
pub mod output;
pub mod record;
mod replay;

pub use config::CoordinatorConfig;
pub use input::{Alarm, Client, ConnectionId, GroupRequest, Input, RequestId};
pub use output::{GroupResponse, Output};

use crate::history::Cause;
#[cfg(doc)]
use crate::history::RebalanceRecord;
use crate::time::{Alarms, Timestamp};
use crate::topics::TopicImage;
use classic::Group;
use effects::{Effects, Pending};
use kohort_wire::ErrorCode;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest name that the log's records can hold, bytes. A longer one would be cut, and after a restart be somebody else's.
const LONGEST_NAME: usize = i16::MAX as usize;

/// Whether the coordinator may answer for its groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Phase {
    /// The log is being replayed.
    Loading,
    /// It serves.
    Active,
    /// Another broker leads the partition.
    Unloaded,
}

/// The coordinator of the groups of one partition of `__consumer_offsets`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    config: CoordinatorConfig,
    phase: Phase,
    topics: TopicImage,
    groups: BTreeMap<Arc<str>, Group>,
    alarms: Alarms<Alarm>,
    pending: BTreeMap<u64, Vec<Pending>>,
    next_append: u64,
    /// What makes member ids unique: a seed that is fresh for each incarnation, and a counter.
    seed: u64,
    ids: u64,
    now: Timestamp,
}

/// Where a request came from and how it is to be answered.
#[derive(Clone, Debug)]
struct Asked {
    id: RequestId,
    client: Arc<Client>,
    version: i16,
}

impl Coordinator {
    /// A coordinator that has loaded nothing yet: replay its log, then say [`Input::Loaded`]. `seed` must be another one for each
    /// incarnation, or member ids repeat.
    #[must_use]
    pub fn new(config: CoordinatorConfig, seed: u64) -> Self {
        Self {
            config,
            phase: Phase::Loading,
            topics: TopicImage::default(),
            groups: BTreeMap::new(),
            alarms: Alarms::default(),
            pending: BTreeMap::new(),
            next_append: 1,
            seed,
            ids: 0,
            now: Timestamp::default(),
        }
    }

    /// The earliest alarm: feed [`Input::Alarm`] with [`Coordinator::wakeup`] when it is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.alarms.next().map(|(due, _)| due)
    }

    /// Which alarm is due first.
    #[must_use]
    pub fn wakeup(&self) -> Option<Alarm> {
        self.alarms.next().map(|(_, alarm)| alarm.clone())
    }

    /// Kafka's name of the state that a group is in, if there is such a group.
    #[must_use]
    pub fn state(&self, group: &str) -> Option<&'static str> {
        self.groups.get(group).map(|group| group.state.name())
    }

    /// Why a group last moved to PreparingRebalance, the latest last: at most [`RebalanceRecord::CAUSES`] causes with Unix times. They
    /// are kept in the log, and so outlive a restart.
    #[must_use]
    pub fn causes(&self, group: &str) -> &[Cause] {
        let group = self.groups.get(group);
        group.map_or(&[], |group| &group.remembered)
    }

    /// Takes one input and appends what is to be done to `out`.
    pub fn handle(&mut self, now: Timestamp, input: Input, out: &mut Vec<Output>) {
        debug_assert!(now >= self.now, "time went back");
        self.now = self.now.max(now);
        match input {
            Input::Request {
                id,
                client,
                version,
                request,
                ..
            } => {
                let asked = Asked {
                    id,
                    client,
                    version,
                };
                self.request(asked, request, out);
            }
            // Members outlive their connections; replies to a closed one go nowhere.
            Input::Disconnected(_) => {}
            Input::Topics(topics) => self.topics_changed(topics, out),
            Input::Replay(record) => self.replay(record),
            Input::Loaded => self.loaded(out),
            Input::Appended(n) => self.appended(n, ErrorCode::None, out),
            Input::AppendFailed(n, error) => self.append_failed(n, error, out),
            Input::Unload => self.unload(out),
            Input::Alarm(alarm) => self.alarm(alarm, out),
        }
        if cfg!(debug_assertions) {
            self.check();
        }
    }

    /// Internal invariants; panics where one does not hold.
    ///
    /// # Panics
    /// If the state is inconsistent, which is a bug in this crate.
    pub fn check(&self) {
        for group in self.groups.values() {
            group.check(&self.alarms);
        }
    }

    /// The group and what it needs to act, or `None` if there is no such group.
    fn with_group<'a>(
        &'a mut self,
        group: &str,
        out: &'a mut Vec<Output>,
    ) -> Option<(&'a mut Group, Effects<'a>)> {
        let group = self.groups.get_mut(group)?;
        let fx = Effects {
            now: self.now,
            config: &self.config,
            topics: &self.topics,
            alarms: &mut self.alarms,
            pending: &mut self.pending,
            next_append: &mut self.next_append,
            seed: self.seed,
            ids: &mut self.ids,
            out,
        };
        Some((group, fx))
    }

    fn request(&mut self, asked: Asked, request: GroupRequest, out: &mut Vec<Output>) {
        if self.phase != Phase::Active {
            let error = match self.phase {
                Phase::Loading => ErrorCode::CoordinatorLoadInProgress,
                Phase::Active | Phase::Unloaded => ErrorCode::NotCoordinator,
            };
            let response = describe::refusal(&request, asked.version, error);
            out.push(Output::Reply {
                id: asked.id,
                response,
                after: None,
            });
            return;
        }
        match request {
            GroupRequest::JoinGroup(request) => self.join(asked, request, out),
            GroupRequest::SyncGroup(request) => self.sync(asked, request, out),
            GroupRequest::Heartbeat(request) => self.heartbeat(asked, &request, out),
            GroupRequest::LeaveGroup(request) => self.leave(asked, &request, out),
            GroupRequest::OffsetCommit(request) => self.offset_commit(asked, &request, out),
            GroupRequest::OffsetFetch(request) => self.offset_fetch(asked, request, out),
            GroupRequest::DescribeGroups(request) => self.describe_groups(asked, request, out),
            GroupRequest::ListGroups(request) => self.list_groups(asked, &request, out),
            GroupRequest::DeleteGroups(request) => self.delete_groups(asked, request, out),
            GroupRequest::OffsetDelete(request) => self.offset_delete(asked, request, out),
        }
    }

    fn alarm(&mut self, alarm: Alarm, out: &mut Vec<Output>) {
        if !self.alarms.cancel(&alarm) {
            return;
        }
        match alarm {
            Alarm::Retention => self.retention(out),
            Alarm::InitialDelay(group) => {
                if let Some((group, mut fx)) = self.with_group(&group, out) {
                    group.initial_delay_over(&mut fx);
                }
            }
            Alarm::Rebalance(group) => {
                if let Some((group, mut fx)) = self.with_group(&group, out) {
                    group.complete_join_phase(&mut fx);
                }
            }
            Alarm::PendingSync(group) => {
                if let Some((group, mut fx)) = self.with_group(&group, out) {
                    group.pending_sync_over(&mut fx);
                }
            }
            Alarm::Session(group, member) => {
                if let Some((group, mut fx)) = self.with_group(&group, out) {
                    group.session_over(&mut fx, &member);
                }
            }
            Alarm::PendingJoin(group, member) => {
                if let Some((group, mut fx)) = self.with_group(&group, out) {
                    group.pending_join_over(&mut fx, &member);
                }
            }
        }
    }

    fn appended(&mut self, n: u64, error: ErrorCode, out: &mut Vec<Output>) {
        for pending in self.pending.remove(&n).unwrap_or_default() {
            match pending {
                Pending::Reply(id, mut response) => {
                    if !error.is_none() {
                        effects::not_stored(&mut response, error);
                        out.push(Output::Reply {
                            id,
                            response: *response,
                            after: None,
                        });
                    }
                }
                Pending::LeaderSync {
                    group,
                    generation,
                    assignments,
                } => {
                    if let Some((group, mut fx)) = self.with_group(&group, out) {
                        group.leader_synced(&mut fx, generation, assignments, error);
                    }
                }
                Pending::Replaced { group, undo } => {
                    if let Some((group, mut fx)) = self.with_group(&group, out)
                        && !error.is_none()
                    {
                        group.undo_replace(&mut fx, *undo);
                    }
                }
                Pending::Offsets { group, offsets } => {
                    if error.is_none() {
                        self.apply_offsets(&group, offsets);
                    }
                }
            }
        }
    }

    /// The append `n` failed, and all after it.
    fn append_failed(&mut self, n: u64, error: ErrorCode, out: &mut Vec<Output>) {
        let failed: Vec<u64> = self.pending.range(n..).map(|(n, _)| *n).collect();
        // The last first: what builds on something else is taken back before it.
        for n in failed.into_iter().rev() {
            self.appended(n, effects::mapped(error), out);
        }
    }

    fn unload(&mut self, out: &mut Vec<Output>) {
        self.append_failed(0, ErrorCode::NotCoordinator, out);
        let names: Vec<Arc<str>> = self.groups.keys().cloned().collect();
        for name in names {
            if let Some((group, mut fx)) = self.with_group(&name, out) {
                group.unload(&mut fx);
            }
        }
        self.groups.clear();
        self.alarms = Alarms::default();
        self.phase = Phase::Unloaded;
    }
}
