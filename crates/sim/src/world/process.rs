//! A member's process: the machine, the application that reads, and what is wrong with it at the moment.

use super::clock::Clock;
use super::network::Cut;
use super::{Event, GROUP, World};
use crate::fact::{Fact, Machine, Process as ProcessId};
use crate::faults::Fault;
use crate::scenario::Mode;
use crate::transition::Transition;
use kohort_group::assign;
use kohort_group::coordinator::Client;
use kohort_group::member::{CommitId, Input, Lane, Member, MemberConfig, Subscription};
use kohort_group::partitions::{Partitions, Topic, TopicPartition};
use kohort_group::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A place for a process: what stays the same when it is restarted.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) instance: Option<String>,
    pub(super) explicit: bool,
    pub(super) wants: BTreeSet<Topic>,
    /// The process that runs in it, the newest if there are two.
    pub(super) process: Option<ProcessId>,
}

/// A partition that the application reads.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// The next offset, once `Start` said where.
    pub(super) position: Option<i64>,
    pub(super) releasing: bool,
}

/// A process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) slot: usize,
    pub(super) member: Option<Member>,
    pub(super) client_id: String,
    pub(super) client: Arc<Client>,
    pub(super) explicit: bool,
    pub(super) lanes: BTreeMap<Lane, u64>,
    pub(super) reads: BTreeMap<TopicPartition, Reading>,
    /// What the metadata is to cover.
    pub(super) watches: Option<BTreeSet<Topic>>,
    /// Commits before a release, and what is released after them.
    pub(super) commits: BTreeMap<CommitId, Partitions>,
    pub(super) next_commit: u64,
    /// Commits that have no answer yet.
    pub(super) committing: usize,
    pub(super) closing: bool,
    pub(super) paused: bool,
    pub(super) backlog: VecDeque<Event>,
    pub(super) silent_until: u64,
    pub(super) cuts: BTreeMap<Lane, Cut>,
    pub(super) late_sync_ms: u64,
    /// How much silence the next answer that can say so asks for.
    pub(super) throttle_ms: u64,
    pub(super) clock: Clock,
    /// How much longer the next release takes, and which fault that is.
    pub(super) slow_release: Option<(u64, Fault)>,
}

impl Process {
    pub(super) fn deadline(&self) -> Option<u64> {
        if self.paused {
            return None;
        }
        let due = self.member.as_ref()?.deadline()?;
        Some(self.clock.moment(due.0))
    }
}

impl World {
    /// A new place for a process.
    pub(super) fn new_slot(&mut self) -> usize {
        let number = self.slots.len();
        let instance = self
            .random
            .percent(self.scenario.static_percent)
            .then(|| format!("i{number}"));
        let explicit = match self.scenario.mode {
            Mode::Explicit => true,
            Mode::Mixed => self.random.percent(50),
            Mode::Cooperative | Mode::Eager(_) => false,
        };
        let wants = self.draw_topics();
        self.slots.push(Slot {
            instance,
            explicit,
            wants,
            process: None,
        });
        number
    }

    /// What an application wants: mostly all that there is or will be.
    pub(super) fn draw_topics(&mut self) -> BTreeSet<Topic> {
        let all = super::topics::Topics::names();
        if self.random.percent(60) {
            return all.into_iter().collect();
        }
        let mut some: BTreeSet<Topic> = all
            .iter()
            .filter(|_| self.random.percent(60))
            .cloned()
            .collect();
        some.insert(all[0].clone());
        some
    }

    pub(super) fn start_later(&mut self, slot: usize, delay: u64) {
        self.starting += 1;
        self.after(delay, Event::Start(slot));
    }

    /// A process starts.
    pub(super) fn start(&mut self, slot: usize) {
        let process = self.processes.len();
        let place = self.slots[slot].clone();
        let client_id = format!("c{slot}");
        let config = self.member_config(&place, &client_id);
        let eager = matches!(self.scenario.mode, Mode::Eager(_));
        let member = match Member::new(config) {
            Ok(member) => member,
            Err(errors) => return self.fail("settings are valid", format!("{errors:?}")),
        };
        let clock = if self.scenario.faults.contains(&Fault::ClockSkew) {
            self.bit(Fault::ClockSkew);
            Clock::skewed(&mut self.random)
        } else {
            Clock::RIGHT
        };
        self.processes.push(Process {
            slot,
            member: Some(member),
            client: Arc::new(Client {
                id: client_id.clone(),
                host: "/127.0.0.1".to_owned(),
            }),
            client_id,
            explicit: place.explicit,
            lanes: BTreeMap::new(),
            reads: BTreeMap::new(),
            watches: None,
            commits: BTreeMap::new(),
            next_commit: 0,
            committing: 0,
            closing: false,
            paused: false,
            backlog: VecDeque::new(),
            silent_until: 0,
            cuts: BTreeMap::new(),
            late_sync_ms: 0,
            throttle_ms: 0,
            clock,
            slow_release: None,
        });
        let mixed =
            (self.live.iter()).any(|other| self.processes[*other].explicit != place.explicit);
        if mixed {
            self.bit(Fault::MixedModes);
        }
        self.live.insert(process);
        self.slots[slot].process = Some(process);
        self.observe(&Fact::Started {
            process,
            instance: place.instance.as_deref(),
            eager,
        });
        self.trace.event(self.now, &process, || {
            format!("p{process} starts: {place:?}")
        });
        self.tell(process, Input::Subscribe(Subscription::Topics(place.wants)));
        self.after(1, Event::Poll(process));
    }

    fn member_config(&mut self, place: &Slot, client_id: &str) -> MemberConfig {
        let assignor: Arc<dyn assign::Assignor> = match self.scenario.mode {
            Mode::Eager("range") => Arc::new(assign::Range),
            Mode::Eager("roundrobin") => Arc::new(assign::RoundRobin),
            Mode::Eager(_) => Arc::new(assign::Sticky),
            Mode::Cooperative | Mode::Explicit | Mode::Mixed => Arc::new(assign::CooperativeSticky),
        };
        let mut config = MemberConfig::new(GROUP, vec![assignor]);
        config.group_instance_id.clone_from(&place.instance);
        client_id.clone_into(&mut config.client_id);
        config.session_timeout_ms = self.scenario.session_ms;
        config.heartbeat_interval_ms = self.scenario.heartbeat_ms;
        config.max_poll_interval_ms = self.scenario.max_poll_ms;
        config.request_timeout_ms = self.scenario.request_timeout_ms;
        config.default_api_timeout_ms = 60_000;
        config.auto_commit_interval_ms = self.scenario.auto_commit_ms;
        config.close_drain_ms = self.scenario.close_drain_ms;
        config.explicit_revocation = place.explicit;
        config.seed = self.random.next();
        config
    }

    /// Something happens to a member.
    pub(super) fn tell(&mut self, process: ProcessId, input: Input) {
        let Some(mut member) = self.processes[process].member.take() else {
            return;
        };
        let now = self.now;
        self.observe(&Fact::Told {
            process,
            input: &input,
        });
        self.trace.event(now, &(process, &input), || match &input {
            Input::Polled | Input::Consumed(..) => String::new(),
            input => format!("p{process} ◀ {input:?}"),
        });
        let from = member.state();
        let mut out = Vec::new();
        let shown = self.processes[process].clock.shows(now);
        member.handle(Timestamp(shown), input, &mut out);
        member.check();
        let to = member.state();
        if from != to {
            let taken = Transition::Member(from, to);
            *self.transitions.entry(taken).or_default() += 1;
        }
        self.processes[process].member = Some(member);
        for output in out {
            self.trace.event(now, &(process, &output), || {
                format!("p{process} ▶ {output:?}")
            });
            self.observe(&Fact::Said {
                process,
                output: &output,
            });
            self.perform(process, output);
        }
    }

    pub(super) fn wake_member(&mut self, process: ProcessId) {
        let Some(alarm) = self.processes[process]
            .member
            .as_ref()
            .and_then(Member::wakeup)
        else {
            return;
        };
        self.count_member_alarm(&alarm);
        self.tell(process, Input::Alarm(alarm));
        let deadline = self.processes[process].deadline();
        self.observe(&Fact::Slept {
            machine: Machine::Member(process),
            deadline,
        });
    }

    /// Events at a process; one that stands still gets them when it goes on.
    pub(super) fn at_process(&mut self, event: Event) {
        let process = match &event {
            Event::AtMember(connection, _) | Event::MemberBreak(connection) => {
                match self.connections.get(connection) {
                    Some(connection) => connection.process,
                    None => return,
                }
            }
            Event::Input(process, _)
            | Event::Found(process)
            | Event::Metadata(process)
            | Event::Poll(process)
            | Event::Release(process, _) => *process,
            _ => return,
        };
        if self.processes[process].member.is_none() {
            return;
        }
        if self.processes[process].paused {
            self.processes[process].backlog.push_back(event);
            return;
        }
        match event {
            Event::AtMember(connection, frame) => self.at_member(connection, frame),
            Event::MemberBreak(connection) => self.member_break(connection),
            Event::Input(process, input) => self.tell(process, *input),
            Event::Found(process) => self.found(process),
            Event::Metadata(process) => self.metadata(process),
            Event::Poll(process) => self.poll(process),
            Event::Release(process, partitions) => self.release(process, partitions),
            _ => {}
        }
    }

    /// A process goes on after a pause.
    pub(super) fn resume(&mut self, process: ProcessId) {
        if !std::mem::take(&mut self.processes[process].paused) {
            return;
        }
        // Either its timers run first, or what came in the meantime is read first.
        while self.random.percent(50)
            && self.processes[process]
                .deadline()
                .is_some_and(|at| at <= self.now)
        {
            self.wake_member(process);
        }
        for event in std::mem::take(&mut self.processes[process].backlog) {
            self.at_process(event);
        }
    }

    /// A process is gone, without a word.
    pub(super) fn end(&mut self, process: ProcessId) {
        if self.processes[process].member.take().is_none() {
            return;
        }
        self.live.remove(&process);
        self.observe(&Fact::Ended(process));
        self.processes[process].backlog.clear();
        let slot = self.processes[process].slot;
        if self.slots[slot].process == Some(process) {
            self.slots[slot].process = None;
        }
        for lane in [Lane::Rounds, Lane::Control] {
            self.close_lane(process, lane);
        }
    }
}
