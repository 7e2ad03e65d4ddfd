//! The client's end: one [`Member`] for each consumer in a group.
//!
//! ```text
//!   Subscribe, Polled, Released ─▶ ┌────────┐ ─▶ Assign · Revoke · Lost        (values, not callbacks)
//!   Response, Failed            ─▶ │ Member │ ─▶ Send(token, lane, request)
//!   CoordinatorFound, Topics    ─▶ │        │ ─▶ FindCoordinator · RefreshTopics
//!   Alarm                       ─▶ └────────┘ ─▶ Committed · Fatal · Rebalanced
//! ```
//!
//! An input changes what the member knows (`handle` finds the file that does so), then `progress` does what can be done about it, then the
//! alarms are set from what is known. So nothing waits for an alarm that was forgotten, and an answer may come in any state.
//!
//! | where | what |
//! |---|---|
//! | `state` | the states, as a table |
//! | `joining`, `syncing`, `stable`, `leaving`, `fenced`, `fatal` | one state (or two) each, with the answers that it waits for |
//! | `reconcile` | from owned and assigned to added, kept, revoked: the one rule for eager, cooperative and explicit |
//! | `ownership` | revocations, and losses |
//! | `positions` | where reading starts, and what was consumed |
//! | `commit`, `committed` | what is committed, and when that is allowed; what the answers say |
//! | `canonical` | the state as a model checker compares it |
//! | `heartbeat` | signs of life, and the session |
//! | `requests`, `search` | what is in flight, versions, time-outs; the coordinator |
//! | `watch`, `leading` | topics: the member's own, and the group's for its leader; the leader's step |

mod backoff;
mod canonical;
mod commit;
mod committed;
pub mod config;
mod fatal;
mod fenced;
mod heartbeat;
pub mod input;
mod joining;
mod leading;
mod leaving;
pub mod output;
mod ownership;
mod positions;
mod reconcile;
mod record;
mod requests;
mod search;
mod stable;
mod state;
mod syncing;
mod watch;

pub use config::{ConfigError, ConfigErrors, MemberConfig, Mode};
pub use input::{Alarm, CommitId, Input, Offset, SendFailure, Subscription, Token};
pub use output::{CommitError, Fatal, Lane, Output, RevokeReason};
pub use state::StateName;

use crate::partitions::{Partitions, Topic};
use crate::time::{Alarms, Timestamp};
use crate::topics::TopicImage;
use backoff::{Jitter, Pauses, Retry};
use heartbeat::Beat;
use leading::Settling;
use ownership::Ownership;
use positions::Offsets;
use record::{Records, Who};
use requests::Line;
use state::{Cause, Closing, Membership, State};
use std::collections::BTreeSet;
use std::sync::Arc;
use watch::{Leading, Watch};

/// A consumer in a group: the client's state machine.
///
/// The shell feeds it [`Input`]s with a time that never goes back, performs the [`Output`]s in order, and feeds [`Input::Alarm`] when
/// [`Member::deadline`] has come. It needs no clock, no connection and no thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    config: Arc<MemberConfig>,
    mode: Mode,
    pauses: Pauses,
    now: Timestamp,
    alarms: Alarms<Alarm>,
    jitter: Jitter,
    state: State,
    /// What the application wants to read.
    subscription: Option<Subscription>,
    /// The topics that this comes to.
    wanted: BTreeSet<Topic>,
    /// The topics that the last round that was completed was joined with.
    joined_topics: BTreeSet<Topic>,
    topics: TopicImage,
    watching: Watch,
    /// What a leader watches.
    leading: Option<Leading>,
    settling: Settling,
    membership: Membership,
    ownership: Ownership,
    offsets: Offsets,
    line: Line,
    beat: Beat,
    /// The leader has announced another round.
    need_rejoin: bool,
    /// When the next JoinGroup may be sent.
    rounds: Retry,
    /// Rounds since the last calm heartbeat.
    rounds_unsettled: u32,
    /// The application asked for a rebalance during a round.
    asked_for: Option<Cause>,
    /// A rejoin because of partitions that were not subscribed to did not help.
    refused_foreign: bool,
    /// Assignments in a row that could not be read.
    unreadable: u32,
    closing: Option<Closing>,
    /// When the application polled last.
    polled: Timestamp,
    record: Records,
}

impl Member {
    /// A member that wants nothing yet.
    ///
    /// # Errors
    /// All that is wrong with the configuration, at once.
    pub fn new(config: MemberConfig) -> Result<Self, ConfigErrors> {
        let mode = config.validate()?;
        Ok(Self {
            mode,
            pauses: Pauses {
                first: config.retry_backoff_ms,
                longest: config.retry_backoff_max_ms,
            },
            now: Timestamp::default(),
            alarms: Alarms::default(),
            jitter: Jitter::new(config.seed),
            state: State::Unsubscribed,
            subscription: None,
            wanted: BTreeSet::new(),
            joined_topics: BTreeSet::new(),
            topics: TopicImage::default(),
            watching: Watch::default(),
            leading: None,
            settling: Settling::default(),
            membership: Membership::new(),
            ownership: Ownership::new(),
            offsets: Offsets::default(),
            line: Line::new(),
            beat: Beat::default(),
            need_rejoin: false,
            rounds: Retry::default(),
            rounds_unsettled: 0,
            asked_for: None,
            refused_foreign: false,
            unreadable: 0,
            closing: None,
            polled: Timestamp::default(),
            record: Records::default(),
            config: Arc::new(config),
        })
    }

    /// Something happened; what is to be done about it goes to the end of `out`, in order. `now` never goes back.
    pub fn handle(&mut self, now: Timestamp, input: Input, out: &mut Vec<Output>) {
        debug_assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = self.now.max(now);
        // A process that was stopped wakes up with an old idea of the world. Before it acts on anything else it must know that
        // others may own its partitions by now.
        let news = matches!(input, Input::Response(..) | Input::Alarm(Alarm::Session));
        if !news && self.session_due().is_some_and(|due| due <= self.now) {
            self.session_over(out);
        }
        self.dispatch(input, out);
        self.progress(out);
        self.tend_alarms();
        #[cfg(debug_assertions)]
        self.check();
    }

    fn dispatch(&mut self, input: Input, out: &mut Vec<Output>) {
        if self.state == State::Closed && !matches!(input, Input::Commit { .. }) {
            return;
        }
        match input {
            Input::Subscribe(subscription) => self.on_subscribe(subscription, out),
            Input::Unsubscribe => self.on_unsubscribe(out),
            Input::Close { drain } => self.on_close(drain, out),
            Input::Polled => self.on_polled(out),
            Input::Response(token, response) => self.on_response(token, response, out),
            Input::Failed(token, failure) => self.on_failed(token, failure, out),
            Input::CoordinatorFound { node, versions } => self.on_coordinator(node, versions, out),
            Input::CoordinatorNotFound(code) => self.on_no_coordinator(code, out),
            Input::Topics(topics) => self.on_topics(topics, out),
            Input::Released(partitions) => self.released(&partitions),
            Input::Consumed(partition, offset) => self.on_consumed(partition, offset),
            Input::Commit { id, offsets, retry } => self.on_commit(id, offsets, retry, out),
            Input::RequestRebalance(reason) => self.request_rebalance(reason, out),
            Input::Alarm(alarm) => self.on_alarm(&alarm, out),
        }
    }

    fn on_alarm(&mut self, alarm: &Alarm, out: &mut Vec<Output>) {
        let Some(due) = self.alarms.due(alarm) else {
            return;
        };
        match alarm {
            Alarm::Heartbeat => self.beat.next = self.now,
            Alarm::Session => self.session_over(out),
            Alarm::Poll => self.poll_overdue(out),
            Alarm::AutoCommit => self.auto_commit(),
            Alarm::Backoff => {
                for retry in [
                    &mut self.rounds,
                    &mut self.line.search,
                    &mut self.offsets.fetch,
                    &mut self.offsets.commits.retry,
                ] {
                    if retry.may(due) {
                        retry.over();
                    }
                }
                self.line.quiet.retain(|_, until| *until > due);
            }
            Alarm::Request(token) => self.on_timeout(*token, out),
            Alarm::Revocation => self.revocation_overdue(out),
            Alarm::Close => self.close_overdue(out),
        }
    }

    /// Does all that can be done with what is known.
    fn progress(&mut self, out: &mut Vec<Output>) {
        // Each turn either changes the state or says something; a few turns are enough for any chain of them.
        for _ in 0..32 {
            let before = (self.state.name(), out.len());
            self.progress_commits(out);
            match &self.state {
                State::Joining(_) => self.progress_join(out),
                State::Syncing(_) => self.progress_sync(out),
                State::Reconciling => self.progress_reconcile(out),
                State::Stable => self.progress_stable(out),
                State::Leaving(_) => self.progress_leave(out),
                State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => {}
            }
            self.progress_fetch(out);
            self.progress_beat(out);
            self.find_coordinator(out);
            if (self.state.name(), out.len()) == before {
                break;
            }
        }
        if self.state == State::Stable && !self.need_rejoin && self.closing.is_none() {
            let who = Who {
                group: &self.config.group_id,
                protocol: &self.membership.protocol,
                member_id: &self.membership.id,
                instance_id: self.config.group_instance_id.as_deref(),
                client_id: &self.config.client_id,
            };
            self.record.end(self.now, who, out);
        }
    }

    /// Sets the alarms from what is known.
    fn tend_alarms(&mut self) {
        self.tend_auto_commit();
        let joins = matches!(self.state, State::Joining(_))
            && self.line.known()
            && !self.line.flying(|work| *work == requests::Work::Join);
        let fetches = self.offsets.unpositioned() && self.line.known();
        let backoff = joining::earliest([
            self.rounds.due(self.now).filter(|_| joins),
            self.offsets.fetch.due(self.now).filter(|_| fetches),
            self.search_due(),
            self.topics_due(),
            self.commits_due(),
            self.quiet_due(Lane::Rounds),
            self.quiet_due(Lane::Control),
        ]);
        let mut due: Vec<(Alarm, Timestamp)> = self.request_alarms().collect();
        for (alarm, time) in [
            (Alarm::Heartbeat, self.beat_due()),
            (Alarm::Session, self.session_due()),
            (Alarm::Poll, self.poll_due()),
            (Alarm::AutoCommit, self.auto_due()),
            (Alarm::Backoff, backoff),
            (Alarm::Revocation, self.revocation_due()),
            (Alarm::Close, self.close_due()),
        ] {
            due.extend(time.map(|time| (alarm, time)));
        }
        let mut alarms = Alarms::default();
        for (alarm, time) in due {
            alarms.set(alarm, time);
        }
        self.alarms = alarms;
    }

    /// When the earliest alarm is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.alarms.next().map(|(due, _)| due)
    }

    /// Which alarm that is.
    #[must_use]
    pub fn wakeup(&self) -> Option<Alarm> {
        self.alarms.next().map(|(_, alarm)| alarm.clone())
    }

    /// All armed alarms.
    pub fn alarms(&self) -> impl Iterator<Item = (&Alarm, Timestamp)> {
        self.alarms.iter()
    }

    /// Where the member stands.
    #[must_use]
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// What it owns: assigned, and neither released nor lost.
    #[must_use]
    pub fn owned(&self) -> &Partitions {
        &self.ownership.owned
    }

    /// Its id in the group, empty before the coordinator gave it one.
    #[must_use]
    pub fn member_id(&self) -> &str {
        &self.membership.id
    }

    /// Its generation, −1 outside.
    #[must_use]
    pub fn generation(&self) -> i32 {
        self.membership.generation
    }

    /// The assignor of its generation, if it has one.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        Some(self.membership.protocol.as_str()).filter(|name| !name.is_empty())
    }

    /// Whether it led its last round.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.leading.is_some()
    }

    /// How it gives partitions up.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &MemberConfig {
        &self.config
    }

    /// Internal invariants; debug builds check them after every input.
    ///
    /// # Panics
    /// If one does not hold, which is a bug in this machine.
    pub fn check(&self) {
        let owned = &self.ownership.owned;
        self.offsets.check(owned);
        if let Some(release) = &self.ownership.release {
            assert!(
                owned.is_superset_of(&release.waiting),
                "{} is to be released, and only {owned} is owned",
                release.waiting
            );
        }
        let joins = self.line.flying(|work| *work == requests::Work::Join);
        if joins && self.mode == Mode::Eager {
            assert!(
                owned.is_empty(),
                "eager, and {owned} is owned while it joins"
            );
        }
        assert!(
            !joins || matches!(self.state, State::Joining(_) | State::Leaving(_)),
            "a join is in flight in {:?}",
            self.state.name()
        );
        match self.state {
            State::Syncing(_) | State::Stable | State::Reconciling => {
                assert!(
                    self.membership.valid(),
                    "{:?} outside a generation",
                    self.state.name()
                );
            }
            State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => {
                assert!(owned.is_empty(), "{owned} owned in {:?}", self.state.name());
                assert!(self.ownership.release.is_none());
            }
            State::Joining(_) | State::Leaving(_) => {}
        }
        if !owned.is_empty() && !matches!(self.state, State::Leaving(_)) {
            assert!(self.ownership.generation >= 0, "{owned} was never assigned");
        }
    }
}
