//! The world: real members, the real coordinator with its log, connections that break, a clock that we own.
//!
//! ```text
//!   nemesis ──▶ breaks                     queue: (time, sequence) ─▶ event
//!   process (Member + application) ◀── frames ──▶ broker (Coordinator + log)      every step ─▶ invariants
//! ```

use crate::case::Case;
use crate::fact::{Fact, Machine, Process as ProcessId};
use crate::faults::{Fault, FaultCounts};
use crate::invariants::{self, Invariant};
use crate::ledger::Ledger;
use crate::outcome::{Outcome, Violation};
use crate::random::Random;
use crate::scenario::Scenario;
use crate::trace::Trace;
use crate::transition::Transition;
use broker::Broker;
use bytes::Bytes;
use calm::Calm;
use kohort_group::member;
use kohort_group::partitions::Partitions;
use kohort_wire::{ApiKey, ErrorCode};
use network::Connection;
use process::{Process, Slot};
use std::collections::{BTreeMap, BTreeSet};
use topics::Topics;

mod broker;
mod calm;
mod clock;
mod ending;
mod frames;
mod log;
mod nemesis;
mod network;
mod perform;
mod process;
mod topics;

pub(crate) use clock::MOST_OFF;

/// The one group.
const GROUP: &str = "g";

/// The first consumers start within so many milliseconds.
const STARTS_WITHIN_MS: u64 = 2_000;

/// Something that will happen.
#[derive(Debug)]
enum Event {
    /// A request's bytes reach the broker.
    AtBroker(u64, Bytes),
    /// The broker is done with a request and looks for the next of this connection.
    NextRequest(u64),
    /// The broker sees that a connection broke.
    BrokerBreak(u64),
    /// A response's bytes reach the member.
    AtMember(u64, Bytes),
    /// The member sees that a connection broke.
    MemberBreak(u64),
    /// Something happens to a member.
    Input(ProcessId, Box<member::Input>),
    /// A search for the coordinator ends.
    Found(ProcessId),
    /// A member's metadata is refreshed.
    Metadata(ProcessId),
    /// An application polls.
    Poll(ProcessId),
    /// An application has finished with partitions.
    Release(ProcessId, Partitions),
    /// A process goes on.
    Resume(ProcessId),
    /// A slot's process starts.
    Start(usize),
    /// A record is produced.
    Produce,
    /// The coordinator hears of the topics.
    TopicsAtBroker,
    /// An append ends, for better or worse: incarnation, number.
    Appended(u64, u64),
    /// An append fails.
    AppendFailed(u64, u64, ErrorCode),
    /// The coordinator dies; perhaps the tail of the log with it.
    Crash { tail: bool },
    /// The coordinator begins to load.
    Boot,
    /// The log is replayed.
    Loaded(u64),
    /// Something is broken.
    Nemesis,
    /// The trouble is over.
    Peace,
    /// Has the group converged?
    Look,
}

/// A run.
pub(crate) struct World {
    seed: u64,
    now: u64,
    sequence: u64,
    queue: BTreeMap<(u64, u64), Event>,
    random: Random,
    /// What the nemesis draws from.
    fate: Random,
    case: Case,
    strikes: u64,
    /// The generation when the trouble ended.
    peace_generation: i32,
    /// How many generations there may be after that.
    most_rounds: usize,
    scenario: Scenario,
    trace: Trace,
    faults: FaultCounts,
    codes: BTreeMap<(ApiKey, ErrorCode), u64>,
    alarms: BTreeMap<&'static str, u64>,
    transitions: BTreeMap<Transition, u64>,
    ledger: Ledger,
    invariants: Vec<Box<dyn Invariant>>,
    violation: Option<Violation>,
    slots: Vec<Slot>,
    processes: Vec<Process>,
    live: BTreeSet<ProcessId>,
    starting: usize,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    versions: BTreeMap<ApiKey, (i16, i16)>,
    broker: Broker,
    topics: Topics,
    peace: Option<u64>,
    converged: Option<u64>,
    done: bool,
    delivered: u64,
    rebalances: u64,
    /// If nothing is to break.
    calm: Option<Calm>,
    /// How often each change of a calm run took how many rounds.
    rounds: BTreeMap<(&'static str, i32), u64>,
}

impl World {
    /// The world of a case; its trace keeps the last `keep` events in words.
    pub(crate) fn new(case: &Case, keep: usize) -> Self {
        let seed = case.seed;
        let mut random = Random::new(seed);
        let mut scenario = Scenario::draw(&mut random);
        case.lessen(&mut scenario);
        let fate = Random::new(random.next());
        let versions = network::served(&mut random, &scenario);
        let topics = Topics::new(&scenario.topics);
        let broker = Broker::new();
        let mut world = Self {
            seed,
            now: 0,
            sequence: 0,
            queue: BTreeMap::new(),
            ledger: Ledger::new(scenario.faults.is_empty()),
            random,
            fate,
            case: case.clone(),
            strikes: 0,
            peace_generation: 0,
            most_rounds: 0,
            scenario,
            trace: Trace::new(keep),
            faults: FaultCounts::new(),
            codes: BTreeMap::new(),
            alarms: BTreeMap::new(),
            transitions: BTreeMap::new(),
            invariants: invariants::all(),
            violation: None,
            slots: Vec::new(),
            processes: Vec::new(),
            live: BTreeSet::new(),
            starting: 0,
            connections: BTreeMap::new(),
            next_connection: 0,
            versions,
            broker,
            topics,
            peace: None,
            converged: None,
            done: false,
            delivered: 0,
            rebalances: 0,
            calm: None,
            rounds: BTreeMap::new(),
        };
        world.open();
        world
    }

    /// Sets everything going.
    fn open(&mut self) {
        let topics = self.topics.counts().clone();
        self.observe(&Fact::Topics(&topics));
        self.boot();
        for _ in 0..self.scenario.consumers.0 {
            let slot = self.new_slot();
            let delay = self.random.between(0, STARTS_WITHIN_MS);
            self.start_later(slot, delay);
        }
        self.after(0, Event::Produce);
        if self.case.calm {
            return self.begin_calmly();
        }
        let gap = self.scenario.fault_gap_ms;
        self.after(gap, Event::Nemesis);
        let trouble = self.scenario.trouble_ms;
        self.after(trouble, Event::Peace);
    }

    /// Runs until the group has converged, or a rule is broken.
    pub(crate) fn run(&mut self) {
        while !self.done && self.violation.is_none() {
            self.step();
        }
    }

    /// The verdict.
    pub(crate) fn outcome(self, panic: Option<String>) -> Outcome {
        let violation = match panic {
            Some(text) => Some(Violation {
                rule: "no panic",
                at: self.now,
                what: text,
            }),
            None => self.violation,
        };
        Outcome {
            seed: self.seed,
            calm: self.case.calm,
            hash: self.trace.hash(),
            events: self.trace.events(),
            virtual_ms: self.now,
            faults: self.faults,
            codes: self.codes,
            alarms: self.alarms,
            transitions: self.transitions,
            delivered: self.delivered,
            rebalances: self.rebalances,
            rounds: self.rounds,
            strikes: self.strikes,
            violation,
            scenario: self.scenario,
            last: self.trace.into_lines(),
        }
    }

    fn step(&mut self) {
        let event_at = self.queue.first_key_value().map(|((at, _), _)| *at);
        let alarm = self.next_alarm();
        match (event_at, alarm) {
            (event, Some((at, machine)))
                if event.is_none_or(|e| at < e || (at == e && self.random.percent(50))) =>
            {
                self.now = self.now.max(at);
                self.wake(machine);
            }
            (Some(_), _) => {
                if let Some(((at, _), event)) = self.queue.pop_first() {
                    self.now = self.now.max(at);
                    self.happen(event);
                }
            }
            (None, _) => self.done = true,
        }
    }

    /// The machine whose alarm is due first.
    fn next_alarm(&self) -> Option<(u64, Machine)> {
        let mut first = self
            .broker
            .deadline()
            .map(|at| (at.max(self.now), Machine::Coordinator));
        for process in &self.live {
            if let Some(at) = self.processes[*process].deadline() {
                let at = at.max(self.now);
                if first.is_none_or(|(earliest, _)| at < earliest) {
                    first = Some((at, Machine::Member(*process)));
                }
            }
        }
        first
    }

    fn wake(&mut self, machine: Machine) {
        match machine {
            Machine::Coordinator => self.wake_coordinator(),
            Machine::Member(process) => self.wake_member(process),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::AtBroker(connection, frame) => self.at_broker(connection, frame),
            Event::NextRequest(connection) => self.next_request(connection),
            Event::BrokerBreak(connection) => self.broker_break(connection),
            Event::Produce => self.produce(),
            Event::TopicsAtBroker => self.topics_at_broker(),
            Event::Appended(incarnation, number) => self.appended(incarnation, number),
            Event::AppendFailed(incarnation, number, code) => {
                self.append_failed(incarnation, number, code);
            }
            Event::Crash { tail } => self.crash(tail),
            Event::Boot => self.boot(),
            Event::Loaded(incarnation) => self.loaded(incarnation),
            Event::Start(slot) => {
                self.starting -= 1;
                self.start(slot);
            }
            Event::Resume(process) => self.resume(process),
            Event::Nemesis => self.nemesis(),
            Event::Peace => self.make_peace(),
            Event::Look => self.look(),
            at_process => self.at_process(at_process),
        }
    }

    /// Lets something happen in a while.
    fn after(&mut self, delay: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + delay, self.sequence), event);
    }

    /// Shows a fact to all invariants and to the ledger.
    fn observe(&mut self, fact: &Fact<'_>) {
        for invariant in &mut self.invariants {
            if let Err(what) = invariant.see(self.now, fact, &self.ledger) {
                let rule = invariant.name();
                self.fail(rule, what);
                break;
            }
        }
        self.ledger.take(self.now, fact);
    }

    /// A rule is broken: the first one counts.
    fn fail(&mut self, rule: &'static str, what: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation {
                rule,
                at: self.now,
                what,
            });
        }
    }

    /// A fault bit.
    fn bit(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
        self.trace
            .event(self.now, &fault, || format!("FAULT {fault}"));
    }

    /// Whether this run knows a fault, and the trouble is not over.
    fn knows(&self, fault: Fault) -> bool {
        self.peace.is_none() && self.scenario.faults.contains(&fault)
    }
}
