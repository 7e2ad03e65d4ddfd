//! A member in a world where anything may happen, then in one where all is well: it must heal, and what the application saw must
//! have made sense all the time. One seed, one run.

use crate::script::{COOPERATIVE, Script, Waiting, at, cooperative, eager, explicit, one, plain};
use kohort_group::coordinator::{GroupRequest, GroupResponse};
use kohort_group::member::{
    Alarm, CommitId, Input, Lane, MemberConfig, Output, SendFailure, StateName, Subscription,
};
use kohort_group::partitions::{Partitions, Topic, TopicPartition};
use kohort_group::reason::JoinReason;
use kohort_group::time::Timestamp;
use kohort_wire::ErrorCode;
use kohort_wire::embedded::{self, AssignmentError};
use kohort_wire::messages::{
    JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember, LeaveGroupResponse,
};
use std::collections::BTreeSet;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// What the application knows from the outputs, and whether they made sense.
#[derive(Default)]
struct Ledger {
    owned: Partitions,
    revoking: Partitions,
    /// Being said to be released at this moment: the session may have ended a moment before.
    releasing: Partitions,
    started: Partitions,
    commits: BTreeSet<u64>,
    ended: bool,
    sends: usize,
    fatal: Option<String>,
}

impl Ledger {
    fn note(&mut self, output: &Output) {
        if std::env::var("TRACE").is_ok() {
            println!("   {output:?}");
        }
        assert!(!self.ended, "{output:?} after the end");
        match output {
            Output::Assign { added, owned, .. } => {
                assert!(added.intersection(&self.owned).is_empty(), "{output:?}");
                self.owned.extend(added);
                assert_eq!(*owned, self.owned);
            }
            Output::Revoke { partitions, .. } => {
                assert!(self.owned.minus(&self.revoking).is_superset_of(partitions));
                self.revoking.extend(partitions);
            }
            Output::Revoked {
                partitions, owned, ..
            } => {
                assert!(!partitions.is_empty());
                assert_eq!(*owned, self.owned.minus(&self.revoking).union(owned));
                self.started = self.started.minus(partitions);
            }
            Output::Lost { partitions, .. } => {
                assert!(!partitions.is_empty());
                assert!(
                    self.owned.union(&self.releasing).is_superset_of(partitions),
                    "{output:?} of {}",
                    self.owned
                );
                self.owned = self.owned.minus(partitions);
                self.revoking = self.revoking.minus(partitions);
                self.started = self.started.minus(partitions);
            }
            Output::Start(starts) => {
                for start in starts.keys() {
                    let (topic, partition) = (&start.topic, start.partition);
                    assert!(self.owned.contains(topic, partition), "{output:?}");
                    assert!(!self.revoking.contains(topic, partition), "{output:?}");
                    assert!(
                        self.started.insert(topic, partition),
                        "{start} started twice"
                    );
                }
            }
            Output::Committed(CommitId(id), _) => {
                assert!(self.commits.remove(id), "{id} answered twice");
            }
            Output::Send { .. } => self.sends += 1,
            Output::Fatal(fatal) => {
                assert!(self.owned.is_empty(), "{} owned at a fatal end", self.owned);
                self.fatal = Some(fatal.to_string());
            }
            Output::Closed => {
                assert!(self.owned.is_empty());
                assert!(self.commits.is_empty(), "{:?} never answered", self.commits);
                self.ended = true;
            }
            _ => {}
        }
    }
}

struct World {
    script: Script,
    dice: Dice,
    ledger: Ledger,
    /// The coordinator's idea.
    generation: i32,
    known: Option<i32>,
    claimed: Partitions,
    marked: bool,
    subscribed: Vec<Topic>,
    commits: u64,
    partitions: usize,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            dice.below(2);
        }
        let is_eager = dice.one_in(3);
        let is_static = dice.one_in(3);
        let auto = dice.one_in(2);
        let change = |config: &mut MemberConfig| {
            config.seed = seed;
            config.session_timeout_ms = 6_000;
            config.heartbeat_interval_ms = 1_000;
            config.max_poll_interval_ms = 20_000;
            config.request_timeout_ms = 4_000;
            config.default_api_timeout_ms = 8_000;
            config.auto_commit_interval_ms = auto.then_some(700);
            config.group_instance_id = is_static.then(|| "i".to_owned());
            config.assignors = vec![if is_eager { eager() } else { cooperative() }];
        };
        let mut script = Script::new(change);
        script.finds = false;
        Self {
            script,
            dice,
            ledger: Ledger::default(),
            generation: 0,
            known: None,
            claimed: Partitions::new(),
            marked: false,
            subscribed: Vec::new(),
            commits: 0,
            partitions: 3,
        }
    }

    fn give(&mut self, input: Input) {
        if std::env::var("TRACE").is_ok() {
            println!("{} {input:?}", self.script.now);
        }
        self.script.give(input);
        let out = std::mem::take(&mut self.script.out);
        for output in &out {
            self.ledger.note(output);
        }
    }

    fn topics(&mut self) {
        let count = self.partitions;
        self.script.topics(&[("t", count), ("u", 2)]);
        self.give(Input::Polled);
    }

    fn join_answer(&mut self, request: &JoinGroupRequest) -> JoinGroupResponse {
        let said = embedded::Subscription::decode(request.protocols[0].metadata.clone()).unwrap();
        self.claimed = said
            .owned
            .iter()
            .flat_map(|t| t.partitions.iter().map(|p| (t.topic.clone(), *p)))
            .collect();
        self.marked = request.protocols[0].name == COOPERATIVE;
        self.subscribed = said.topics;
        self.generation += 1;
        self.known = Some(self.generation);
        let mut answer = Script::join_answer(self.generation);
        answer.protocol_name = Some(request.protocols[0].name.clone());
        if self.dice.one_in(2) {
            answer.leader = "m".to_owned();
            answer.members = vec![JoinGroupResponseMember {
                member_id: "m".to_owned(),
                metadata: request.protocols[0].metadata.clone(),
                ..JoinGroupResponseMember::default()
            }];
        }
        answer
    }

    fn assignment(&mut self, fair: bool) -> bytes::Bytes {
        let mut share = Partitions::new();
        for topic in self.subscribed.clone() {
            let count = if &*topic == "t" { self.partitions } else { 2 };
            for partition in 0..count as i32 {
                if fair || !self.dice.one_in(3) {
                    share.insert(&topic, partition);
                }
            }
        }
        if self.marked && self.dice.one_in(2) {
            let revoked = self.claimed.minus(&share);
            explicit(&share, &revoked, AssignmentError::None)
        } else {
            plain(&share)
        }
    }

    /// Answers a request well.
    fn serve(&mut self, waiting: &Waiting, fair: bool) {
        let token = waiting.token;
        match &waiting.request {
            GroupRequest::JoinGroup(request) => {
                if request.member_id.is_empty() && request.group_instance_id.is_none() {
                    self.script.refuse_join(token, ErrorCode::MemberIdRequired);
                } else {
                    let answer = self.join_answer(request);
                    self.script.answer_join(token, answer);
                }
            }
            GroupRequest::SyncGroup(request) => {
                if self.known == Some(request.generation_id) {
                    let assignment = self.assignment(fair);
                    self.script.answer_sync(token, ErrorCode::None, assignment);
                } else {
                    self.script.answer_sync(
                        token,
                        ErrorCode::IllegalGeneration,
                        bytes::Bytes::new(),
                    );
                }
            }
            GroupRequest::Heartbeat(request) => {
                let code = match self.known {
                    None => ErrorCode::UnknownMemberId,
                    Some(now) if now != request.generation_id => ErrorCode::IllegalGeneration,
                    Some(_) => ErrorCode::None,
                };
                self.script.answer_beat(token, code);
            }
            GroupRequest::LeaveGroup(_) => {
                self.known = None;
                let answer = LeaveGroupResponse::default();
                self.script.answer(token, GroupResponse::LeaveGroup(answer));
            }
            GroupRequest::OffsetCommit(request) => {
                let code = if self.known == Some(request.generation_id_or_member_epoch) {
                    ErrorCode::None
                } else {
                    ErrorCode::IllegalGeneration
                };
                self.script.answer_commit(token, request, code);
            }
            GroupRequest::OffsetFetch(request) => {
                self.script
                    .answer_this_fetch(token, request, 3, ErrorCode::None);
            }
            _ => unreachable!(),
        }
        self.give(Input::Polled);
    }

    fn refuse(&mut self, waiting: &Waiting) {
        let code = self.dice.pick(&[
            ErrorCode::CoordinatorLoadInProgress,
            ErrorCode::CoordinatorNotAvailable,
            ErrorCode::NotCoordinator,
            ErrorCode::IllegalGeneration,
            ErrorCode::UnknownMemberId,
            ErrorCode::RebalanceInProgress,
            ErrorCode::UnknownServerError,
            ErrorCode::RequestTimedOut,
        ]);
        let token = waiting.token;
        match &waiting.request {
            GroupRequest::JoinGroup(_) => self.script.refuse_join(token, code),
            GroupRequest::SyncGroup(_) => {
                self.script.answer_sync(token, code, bytes::Bytes::new());
            }
            GroupRequest::Heartbeat(_) => self.script.answer_beat(token, code),
            GroupRequest::OffsetCommit(request) => {
                self.script.answer_commit(token, request, code);
            }
            GroupRequest::OffsetFetch(request) => {
                self.script.answer_this_fetch(token, request, -1, code);
            }
            _ => self.script.break_off(token),
        }
        self.give(Input::Polled);
    }

    fn take_any(&mut self) -> Option<Waiting> {
        // In the order of each lane, as a broker answers.
        let lane = self.dice.pick(&[Lane::Rounds, Lane::Control]);
        let place = self.script.waiting.iter().position(|w| w.lane == lane)?;
        Some(self.script.waiting.remove(place))
    }

    fn search(&mut self, fair: bool) {
        if self.script.searches > 0 && (fair || self.dice.one_in(2)) {
            self.script.searches = 0;
            if !fair && self.dice.one_in(3) {
                self.give(Input::CoordinatorNotFound(
                    ErrorCode::CoordinatorNotAvailable,
                ));
            } else {
                let versions = self.script.versions.clone();
                let node = if fair { 1 } else { self.dice.below(2) as i32 };
                self.give(Input::CoordinatorFound { node, versions });
            }
        }
    }

    fn release(&mut self, all: bool) {
        let mut some = self.ledger.revoking.clone();
        if !all && self.dice.one_in(2) {
            some.retain(|_, partition| partition % 2 == 0);
        }
        if !some.is_empty() {
            // Released: from now on it may belong to somebody else.
            self.ledger.owned = self.ledger.owned.minus(&some);
            self.ledger.revoking = self.ledger.revoking.minus(&some);
            self.ledger.releasing = some.clone();
            self.give(Input::Released(some));
            self.ledger.releasing = Partitions::new();
        }
    }

    fn subscribe(&mut self) {
        let subscription = match self.dice.below(4) {
            0 => Subscription::Pattern("[tu]".to_owned()),
            1 => Subscription::Topics(["t".into(), "u".into()].into()),
            2 => Subscription::Topics(["u".into()].into()),
            _ => Subscription::Topics(["t".into()].into()),
        };
        self.give(Input::Subscribe(subscription));
    }

    fn anything(&mut self) {
        match self.dice.below(26) {
            0..=6 => {
                if let Some(waiting) = self.take_any() {
                    self.serve(&waiting, false);
                }
            }
            7..=9 => {
                if let Some(waiting) = self.take_any() {
                    self.refuse(&waiting);
                }
            }
            10 => {
                if let Some(waiting) = self.take_any() {
                    self.give(Input::Failed(waiting.token, SendFailure::Disconnected));
                }
            }
            11..=13 => {
                let time = self.dice.pick(&[1, 10, 100, 500]);
                self.pass(time);
            }
            14 => self.release(false),
            15 => {
                let partition = self.dice.below(3) as i32;
                let offset = self.dice.below(100) as i64;
                self.give(Input::Consumed(one(partition), at(offset)));
            }
            16 => {
                self.commits += 1;
                self.ledger.commits.insert(self.commits);
                let offsets = self
                    .dice
                    .one_in(2)
                    .then(|| [(TopicPartition::new("t", 0), at(5))].into());
                let retry = self.dice.one_in(2);
                let id = CommitId(self.commits);
                self.give(Input::Commit { id, offsets, retry });
            }
            17 if self.dice.one_in(4) => self.subscribe(),
            18 if self.dice.one_in(4) => {
                self.partitions = 1 + self.dice.below(3);
                self.topics();
            }
            19 if self.dice.one_in(10) => self.give(Input::Unsubscribe),
            20 => self.give(Input::RequestRebalance(JoinReason::Requested)),
            21 => {
                // A clock that runs away: any alarm may ring.
                let armed: Vec<Alarm> = self
                    .script
                    .member
                    .alarms()
                    .map(|(a, _)| a.clone())
                    .collect();
                if !armed.is_empty() {
                    let alarm = armed[self.dice.below(armed.len())].clone();
                    self.give(Input::Alarm(alarm));
                }
            }
            22 if self.dice.one_in(8) => self.script.now = self.script.now + 7_000,
            23 if self.dice.one_in(3) => self.known = None,
            24 => self.give(Input::Polled),
            _ => self.search(false),
        }
    }

    fn pass(&mut self, milliseconds: u64) {
        let before = self.ledger.sends;
        let end = self.script.now + milliseconds;
        while let Some(due) = self.script.member.deadline().filter(|due| *due <= end) {
            self.script.now = self.script.now.max(due);
            let alarm = self.script.member.wakeup().unwrap();
            self.give(Input::Alarm(alarm));
            assert!(
                self.ledger.sends - before < 400,
                "a storm: {:?}",
                self.script.waiting
            );
        }
        self.script.now = end;
    }

    /// All is well: everything is answered at once, released at once, polled.
    fn fair(&mut self, milliseconds: u64) {
        let end = self.script.now + milliseconds;
        while self.script.now < end {
            for _ in 0..50 {
                self.search(true);
                self.release(true);
                let Some(waiting) =
                    (!self.script.waiting.is_empty()).then(|| self.script.waiting.remove(0))
                else {
                    break;
                };
                self.serve(&waiting, true);
            }
            self.topics();
            self.pass(50);
        }
    }
}

fn run(seed: u64) {
    let mut world = World::new(seed);
    let fresh = world.script.member.clone();
    world.subscribe();
    world.topics();
    for _ in 0..400 {
        world.anything();
        if world.ledger.fatal.is_some() {
            break;
        }
    }
    if world.script.member.state() == StateName::Unsubscribed {
        world.subscribe();
    }
    world.fair(30_000);
    if world.ledger.fatal.is_none() {
        world.give(Input::Subscribe(Subscription::Topics(["t".into()].into())));
        world.give(Input::RequestRebalance(JoinReason::Requested));
        world.fair(20_000);
    }
    if let Some(fatal) = &world.ledger.fatal {
        panic!("{fatal}");
    }
    assert_eq!(world.script.member.state(), StateName::Stable);
    let all: Partitions = (0..world.partitions as i32)
        .map(|p| (Topic::from("t"), p))
        .collect();
    assert_eq!(world.ledger.owned, all);
    assert_eq!(world.ledger.started, all, "assigned and silent");
    assert_eq!(*world.script.member.owned(), all);
    assert!(
        world.ledger.commits.is_empty(),
        "{:?} never answered",
        world.ledger.commits
    );
    // A quiet member beats once an interval, and does nothing else.
    let before = world.ledger.sends;
    world.fair(10_000);
    let sends = world.ledger.sends - before;
    assert!(
        (9..=11).contains(&sends),
        "{sends} requests in 10 quiet seconds"
    );
    let drain = world.dice.one_in(2);
    world.give(Input::Close { drain });
    world.fair(10_000);
    assert!(world.ledger.ended, "{:?}", world.script.member.state());
    replay(fresh, &world.script.trace);
}

/// A trace is a list of times and inputs; given again, it gives the same outputs.
fn replay(mut member: kohort_group::member::Member, trace: &[(Timestamp, Input, Vec<Output>)]) {
    for (now, input, expected) in trace {
        let mut out = Vec::new();
        member.handle(*now, input.clone(), &mut out);
        assert_eq!(out, *expected, "{now} {input:?}");
    }
}

#[test]
fn a_member_heals() {
    if let Ok(seed) = std::env::var("SEED") {
        return run(seed.parse().unwrap());
    }
    let (first, count) = match std::env::var("SEEDS") {
        Ok(range) => {
            let (first, count) = range.split_once('+').unwrap();
            (first.parse().unwrap(), count.parse().unwrap())
        }
        Err(_) => (0, 60),
    };
    for seed in first..first + count {
        if std::panic::catch_unwind(|| run(seed)).is_err() {
            panic!("seed {seed}");
        }
    }
}
