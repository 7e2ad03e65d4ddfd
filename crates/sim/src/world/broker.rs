//! The broker: the coordinator, the answers that wait for an append, and the way back of each request.

use super::{Event, GROUP, World};
use crate::fact::{Fact, Machine};
use crate::transition::Transition;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    Coordinator, CoordinatorConfig, GroupResponse, Input, Output, RequestId,
};
use kohort_group::time::Timestamp;
use kohort_wire::ErrorCode;
use kohort_wire::header::RequestHeader;
use std::collections::{BTreeMap, VecDeque};

/// What becomes of the next append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NextAppend {
    Fine,
    Fails(ErrorCode),
    /// The coordinator dies before it is durable; perhaps the record with it.
    Crash {
        tail: bool,
    },
}

/// The broker.
#[derive(Debug)]
pub(super) struct Broker {
    pub(super) machine: Option<Coordinator>,
    pub(super) incarnation: u64,
    pub(super) loading: bool,
    /// Durable records, and appends under way.
    pub(super) log: Vec<Record>,
    pub(super) pending: VecDeque<(u64, Record)>,
    pub(super) durable: Option<u64>,
    /// When the last append under way ends.
    pub(super) log_busy_until: u64,
    appended_at: Option<u64>,
    /// Answers that wait for an append.
    held: Vec<(u64, RequestId, GroupResponse)>,
    routes: BTreeMap<RequestId, Route>,
    next_request: u64,
    pub(super) next_append: NextAppend,
    pub(super) slow_network_until: u64,
}

/// The way back of a request.
#[derive(Clone, Copy, Debug)]
struct Route {
    connection: u64,
    correlation: i32,
    version: i16,
}

impl Broker {
    pub(super) fn new() -> Self {
        Self {
            machine: None,
            incarnation: 0,
            loading: false,
            log: Vec::new(),
            pending: VecDeque::new(),
            durable: None,
            log_busy_until: 0,
            appended_at: None,
            held: Vec::new(),
            routes: BTreeMap::new(),
            next_request: 0,
            next_append: NextAppend::Fine,
            slow_network_until: 0,
        }
    }

    pub(super) fn is_up(&self) -> bool {
        self.machine.is_some()
    }

    pub(super) fn is_loading(&self) -> bool {
        self.loading
    }

    pub(super) fn deadline(&self) -> Option<u64> {
        self.machine.as_ref()?.deadline().map(|at| at.0)
    }

    /// Gives a request its name.
    pub(super) fn route(&mut self, connection: u64, header: &RequestHeader) -> RequestId {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        let route = Route {
            connection,
            correlation: header.correlation_id,
            version: header.version,
        };
        self.routes.insert(id, route);
        id
    }

    /// Forgets everything that was not durable.
    pub(super) fn forget(&mut self) {
        self.pending.clear();
        self.held.clear();
        self.routes.clear();
        self.durable = None;
    }

    /// Drops the answers that wait for appends which are gone; the coordinator sends others.
    pub(super) fn drop_held(&mut self, from: u64) -> Vec<RequestId> {
        let (gone, kept) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(after, ..)| *after >= from);
        self.held = kept;
        let gone: Vec<(u64, RequestId, GroupResponse)> = gone;
        gone.into_iter().map(|(_, id, _)| id).collect()
    }
}

impl World {
    /// The coordinator's settings.
    pub(super) fn coordinator_config(&self) -> CoordinatorConfig {
        CoordinatorConfig {
            initial_rebalance_delay_ms: self.scenario.initial_delay_ms,
            new_member_join_timeout_ms: 20_000,
            wall_clock_offset_ms: 1_700_000_000_000,
            ..CoordinatorConfig::default()
        }
    }

    /// Something happens to the coordinator.
    pub(super) fn coordinate(&mut self, input: Input) {
        let Some(mut machine) = self.broker.machine.take() else {
            return;
        };
        let now = self.now;
        self.trace
            .event(now, &input, || format!("coordinator ◀ {input:?}"));
        let loads = matches!(input, Input::Replay(_) | Input::Loaded | Input::Unload);
        let state = |machine: &Coordinator| machine.state(GROUP).unwrap_or("Dead");
        let from = state(&machine);
        let mut out = Vec::new();
        machine.handle(Timestamp(now), input, &mut out);
        machine.check();
        let to = state(&machine);
        if from != to && !loads {
            let taken = Transition::Group(from, to);
            *self.transitions.entry(taken).or_default() += 1;
        }
        self.broker.machine = Some(machine);
        for output in out {
            self.trace
                .event(now, &output, || format!("coordinator ▶ {output:?}"));
            self.coordinator_wants(output);
        }
    }

    pub(super) fn wake_coordinator(&mut self) {
        let Some(alarm) = self.broker.machine.as_ref().and_then(Coordinator::wakeup) else {
            return;
        };
        self.count_coordinator_alarm(&alarm);
        self.observe(&Fact::Woke(&alarm));
        self.coordinate(Input::Alarm(alarm));
        let deadline = self.broker.deadline();
        self.observe(&Fact::Slept {
            machine: Machine::Coordinator,
            deadline,
        });
    }

    fn coordinator_wants(&mut self, output: Output) {
        match output {
            Output::Append(number, record) => self.append(number, record),
            Output::Reply {
                id,
                response,
                after,
            } => {
                self.observe(&Fact::Answered {
                    id,
                    response: &response,
                });
                match after {
                    Some(number) if self.broker.durable.is_none_or(|done| done < number) => {
                        self.broker.held.push((number, id, response));
                    }
                    _ => self.reply(id, &response),
                }
            }
            Output::Rebalanced(record) => {
                self.rebalances += 1;
                if record.group != GROUP {
                    self.fail("G2", format!("a rebalance of group {:?}", record.group));
                }
            }
        }
    }

    /// Sends what waited for this append.
    pub(super) fn release_held(&mut self, durable: u64) {
        let (ready, held): (Vec<_>, Vec<_>) = std::mem::take(&mut self.broker.held)
            .into_iter()
            .partition(|(after, ..)| *after <= durable);
        self.broker.held = held;
        for (_, id, response) in ready {
            self.reply(id, &response);
        }
    }

    fn reply(&mut self, id: RequestId, response: &GroupResponse) {
        self.observe(&Fact::Sent { id, response });
        if let Some(route) = self.broker.routes.remove(&id) {
            self.respond(route.connection, route.correlation, route.version, response);
        }
    }

    /// The coordinator hears of the topics.
    pub(super) fn topics_at_broker(&mut self) {
        let image = self.topics.image(None);
        self.coordinate(Input::Topics(image));
    }

    fn append(&mut self, number: u64, record: Record) {
        self.observe(&Fact::Appending(&record));
        self.broker.pending.push_back((number, record));
        // What is appended at once is durable at once, and later appends never before earlier ones.
        if self.broker.appended_at != Some(self.now) {
            self.broker.appended_at = Some(self.now);
            let takes = self.random.between(0, self.scenario.append_ms);
            self.broker.log_busy_until = self.broker.log_busy_until.max(self.now + takes);
        }
        let delay = self.broker.log_busy_until - self.now;
        let incarnation = self.broker.incarnation;
        match std::mem::replace(&mut self.broker.next_append, NextAppend::Fine) {
            NextAppend::Fine => self.after(delay, Event::Appended(incarnation, number)),
            NextAppend::Fails(code) => {
                self.after(delay, Event::AppendFailed(incarnation, number, code));
            }
            NextAppend::Crash { tail } => self.after(0, Event::Crash { tail }),
        }
    }
}
