//! The room: members, their connections, a coordinator with a log that never fails, applications that do what is asked of them.

use kohort_group::assign::by_name;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    self, Client, ConnectionId, Coordinator, CoordinatorConfig, GroupRequest, GroupResponse,
    RequestId,
};
use kohort_group::history::RebalanceRecord;
use kohort_group::member::{
    CommitError, CommitId, Input, Lane, Member, MemberConfig, Offset, Output, SendFailure,
    StateName, Subscription, Token,
};
use kohort_group::partitions::{Partitions, Topic, TopicPartition};
use kohort_group::time::Timestamp;
use kohort_group::topics::{TopicImage, TopicInfo};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// One way, milliseconds.
pub const LATENCY: u64 = 1;

/// Something that happens later.
enum Event {
    /// A request reaches the broker on this connection.
    Arrives(usize, Lane, u64, Token, i16, Box<GroupRequest>),
    /// A response reaches the member.
    Answered(usize, Token, Box<GroupResponse>),
    /// An input for a member.
    Tell(usize, Box<Input>),
    /// The topics, as they are then.
    Topics(usize),
    /// The application's next poll.
    Poll(usize),
}

/// A connection: the broker takes the next request when it has answered the one before.
#[derive(Default)]
struct Connection {
    incarnation: u64,
    busy: Option<RequestId>,
    queue: VecDeque<(Token, i16, GroupRequest)>,
}

pub struct Person {
    pub member: Member,
    connections: BTreeMap<Lane, Connection>,
    /// What it owns as its outputs say.
    pub owned: Partitions,
    /// How long its application takes to let go.
    pub release_ms: u64,
    pub dead: bool,
    /// Until when the process is stopped: it hears nothing and its alarms do not ring.
    pub stopped: Timestamp,
    /// Delays requests of this API on their way.
    pub late: Option<(ApiKey, u64)>,
    pub seen: Vec<(Timestamp, String)>,
    pub commits: BTreeMap<u64, Result<BTreeMap<TopicPartition, Offset>, CommitError>>,
    pub starts: BTreeMap<TopicPartition, Option<i64>>,
    pub sent: BTreeMap<ApiKey, usize>,
    /// Whether a session or a rebalance may have gone on without it: then others may own what it still thinks it does.
    pub fenced: bool,
    /// Its own records of rebalances.
    pub records: Vec<RebalanceRecord>,
}

pub struct Room {
    pub coordinator: Coordinator,
    pub now: Timestamp,
    pub people: Vec<Person>,
    events: BTreeMap<(Timestamp, u64), Event>,
    count: u64,
    asked: BTreeMap<RequestId, (usize, Lane, u64, Token)>,
    held: Vec<(u64, RequestId, GroupResponse)>,
    appended: u64,
    log: Vec<Record>,
    incarnation: u64,
    pub topics: BTreeMap<&'static str, usize>,
    /// When each partition lost its last owner, and for how long the longest such time lasted.
    free_since: BTreeMap<(Topic, i32), Timestamp>,
    pub longest_free: u64,
    /// Whether the owner of a partition is checked to be the only one.
    pub strict: bool,
    pub generations: i32,
    pub up: bool,
    /// The coordinator's records of rebalances.
    pub records: Vec<RebalanceRecord>,
    /// What the broker speaks.
    pub versions: BTreeMap<ApiKey, (i16, i16)>,
}

impl Room {
    pub fn new(topics: &[(&'static str, usize)]) -> Self {
        let mut room = Self {
            coordinator: Coordinator::new(config(), 7),
            now: Timestamp(1_000),
            people: Vec::new(),
            events: BTreeMap::new(),
            count: 0,
            asked: BTreeMap::new(),
            held: Vec::new(),
            appended: 0,
            log: Vec::new(),
            incarnation: 7,
            topics: topics.iter().copied().collect(),
            free_since: BTreeMap::new(),
            longest_free: 0,
            strict: true,
            generations: 0,
            up: true,
            records: Vec::new(),
            versions: versions(),
        };
        room.ask(coordinator::Input::Loaded);
        let image = room.image();
        room.ask(coordinator::Input::Topics(image));
        room
    }

    fn later(&mut self, milliseconds: u64, event: Event) {
        self.count += 1;
        self.events
            .insert((self.now + milliseconds, self.count), event);
    }

    fn image(&self) -> TopicImage {
        self.topics
            .iter()
            .map(|(name, count)| (Topic::from(*name), TopicInfo::with_partitions(*count)))
            .collect()
    }

    /// A new member that subscribes to all topics of the room.
    pub fn enter(&mut self, change: impl FnOnce(&mut MemberConfig)) -> usize {
        let mut config = MemberConfig::new("g", vec![by_name("cooperative-sticky").unwrap()]);
        config.session_timeout_ms = 10_000;
        config.seed = self.people.len() as u64 + 1;
        change(&mut config);
        self.people.push(Person {
            member: Member::new(config).unwrap(),
            connections: BTreeMap::new(),
            owned: Partitions::new(),
            release_ms: 0,
            dead: false,
            stopped: Timestamp(0),
            late: None,
            seen: Vec::new(),
            commits: BTreeMap::new(),
            starts: BTreeMap::new(),
            sent: BTreeMap::new(),
            fenced: false,
            records: Vec::new(),
        });
        let who = self.people.len() - 1;
        let topics = self.topics.keys().map(|name| Topic::from(*name)).collect();
        self.tell(who, Input::Subscribe(Subscription::Topics(topics)));
        self.later(100, Event::Poll(who));
        who
    }

    pub fn tell(&mut self, who: usize, input: Input) {
        if self.people[who].dead {
            return;
        }
        if self.people[who].stopped > self.now {
            let left = self.people[who].stopped.since(self.now);
            self.later(left, Event::Tell(who, Box::new(input)));
            return;
        }
        let mut out = Vec::new();
        let trace = std::env::var("TRACE").is_ok();
        if trace {
            println!("{} [{who}] {input:?}", self.now);
        }
        self.people[who].member.handle(self.now, input, &mut out);
        for output in out {
            if trace {
                println!("    [{who}] {output:?}");
            }
            self.perform(who, output);
        }
    }

    fn see(&mut self, who: usize, text: String) {
        self.people[who].seen.push((self.now, text));
    }

    fn take(&mut self, who: usize, added: &Partitions) {
        for (topic, partition) in added.iter() {
            let free = self.free_since.remove(&(topic.clone(), partition));
            let free = free.map_or(0, |since| self.now.since(since));
            self.longest_free = self.longest_free.max(free);
            for (other, person) in self.people.iter().enumerate() {
                let double = person.owned.contains(topic, partition);
                assert!(
                    !double
                        || (person.fenced && !self.strict)
                        || person.dead
                        || person.stopped > self.now,
                    "{} {topic}-{partition} of {other} is assigned to {who}: {:#?} {:#?}",
                    self.now,
                    person.seen,
                    self.people[who].seen
                );
            }
        }
        self.people[who].owned.extend(added);
    }

    fn drop_partitions(&mut self, who: usize, gone: &Partitions) {
        self.people[who].owned = self.people[who].owned.minus(gone);
        for (topic, partition) in gone.iter() {
            self.free_since
                .entry((topic.clone(), partition))
                .or_insert(self.now);
        }
    }

    fn perform(&mut self, who: usize, output: Output) {
        match output {
            Output::Send {
                token,
                lane,
                version,
                request,
            } => self.send(who, token, lane, version, request),
            Output::Disconnect(lane) => self.hang_up(who, lane),
            Output::FindCoordinator => {
                let found = if self.up {
                    Input::CoordinatorFound {
                        node: 1,
                        versions: self.versions.clone(),
                    }
                } else {
                    Input::CoordinatorNotFound(ErrorCode::CoordinatorNotAvailable)
                };
                self.later(2 * LATENCY, Event::Tell(who, Box::new(found)));
            }
            Output::RefreshTopics(_) => {
                self.later(2 * LATENCY, Event::Topics(who));
            }
            Output::Assign {
                added, generation, ..
            } => {
                self.see(who, format!("assign {added}"));
                self.take(who, &added);
                self.generations = self.generations.max(generation);
            }
            Output::Revoke { partitions, .. } => {
                self.see(who, format!("revoke {partitions}"));
                let delay = self.people[who].release_ms;
                let released = Input::Released(partitions);
                self.later(delay, Event::Tell(who, Box::new(released)));
            }
            Output::Revoked { partitions, .. } => self.see(who, format!("revoked {partitions}")),
            Output::Lost {
                partitions, why, ..
            } => {
                self.see(who, format!("lost {partitions}: {why}"));
                self.drop_partitions(who, &partitions);
                self.people[who].fenced = true;
            }
            Output::Start(starts) => {
                for (one, offset) in starts {
                    self.people[who]
                        .starts
                        .insert(one, offset.map(|offset| offset.offset));
                }
            }
            Output::Committed(CommitId(id), result) => {
                self.people[who].commits.insert(id, result);
            }
            Output::Fatal(fatal) => self.see(who, format!("fatal {fatal}")),
            Output::Closed => self.see(who, "closed".to_owned()),
            Output::Warning { text, .. } => self.see(who, format!("warning {text}")),
            Output::AutoCommitFailed(error) => self.see(who, format!("commit failed: {error}")),
            Output::Rebalanced(record) => self.people[who].records.push(*record),
            Output::Rebalancing { .. } => {}
        }
    }

    fn send(&mut self, who: usize, token: Token, lane: Lane, version: i16, request: GroupRequest) {
        let api = key(&request);
        let person = &mut self.people[who];
        *person.sent.entry(api).or_default() += 1;
        let late = person
            .late
            .filter(|(late, _)| *late == api)
            .map_or(0, |(_, by)| by);
        let incarnation = person.connections.entry(lane).or_default().incarnation;
        let request = Box::new(request);
        self.later(
            LATENCY + late,
            Event::Arrives(who, lane, incarnation, token, version, request),
        );
    }

    /// The member closes a lane.
    fn hang_up(&mut self, who: usize, lane: Lane) {
        let connection = self.people[who].connections.entry(lane).or_default();
        connection.incarnation += 1;
        connection.queue.clear();
        connection.busy = None;
    }

    /// A lane breaks: what is in flight fails.
    pub fn cut(&mut self, who: usize, lane: Lane) {
        if std::env::var("TRACE").is_ok() {
            println!("{} [{who}] cut {lane:?}", self.now);
        }
        let waiting: Vec<Token> = self.waiting(who, lane);
        self.hang_up(who, lane);
        for token in waiting {
            let failed = Input::Failed(token, SendFailure::Disconnected);
            self.tell(who, failed);
        }
    }

    fn waiting(&self, who: usize, lane: Lane) -> Vec<Token> {
        let Some(connection) = self.people[who].connections.get(&lane) else {
            return Vec::new();
        };
        let mut tokens: Vec<Token> = self
            .asked
            .values()
            .filter(|(person, its, incarnation, _)| {
                (*person, *its, *incarnation) == (who, lane, connection.incarnation)
            })
            .map(|(_, _, _, token)| *token)
            .collect();
        tokens.extend(connection.queue.iter().map(|(token, _, _)| *token));
        for event in self.events.values() {
            match event {
                Event::Arrives(person, its, _, token, _, _) if (*person, *its) == (who, lane) => {
                    tokens.push(*token);
                }
                _ => {}
            }
        }
        tokens
    }

    /// Gives the coordinator an input; its log is written at once.
    pub fn ask(&mut self, input: coordinator::Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut out = Vec::new();
            self.coordinator.handle(self.now, input, &mut out);
            for output in out {
                match output {
                    coordinator::Output::Append(n, record) => {
                        self.log.push(record);
                        inputs.push_back(coordinator::Input::Appended(n));
                        self.appended = self.appended.max(n);
                    }
                    coordinator::Output::Reply {
                        id,
                        response,
                        after,
                    } => {
                        self.held.push((after.unwrap_or(0), id, response));
                    }
                    coordinator::Output::Rebalanced(record) => self.records.push(*record),
                }
            }
        }
        for (after, id, response) in std::mem::take(&mut self.held) {
            assert!(after <= self.appended);
            self.reply(id, response);
        }
    }

    /// The broker dies and comes back with its log; all connections break.
    pub fn restart(&mut self) {
        self.incarnation += 1;
        let config = config();
        self.coordinator = Coordinator::new(config, self.incarnation);
        self.appended = 0;
        let log = self.log.clone();
        let image = self.image();
        self.ask(coordinator::Input::Topics(image));
        for record in log {
            self.ask(coordinator::Input::Replay(record));
        }
        self.ask(coordinator::Input::Loaded);
        for who in 0..self.people.len() {
            self.cut(who, Lane::Rounds);
            self.cut(who, Lane::Control);
        }
        self.asked.clear();
    }

    fn reply(&mut self, id: RequestId, response: GroupResponse) {
        let Some((who, lane, incarnation, token)) = self.asked.remove(&id) else {
            return;
        };
        let connection = self.people[who].connections.entry(lane).or_default();
        if connection.incarnation != incarnation {
            return;
        }
        connection.busy = None;
        let response = Box::new(response);
        self.later(LATENCY, Event::Answered(who, token, response));
        self.next(who, lane);
    }

    /// The broker takes the next request of a connection, if it has answered the one before.
    fn next(&mut self, who: usize, lane: Lane) {
        let connection = self.people[who].connections.entry(lane).or_default();
        if connection.busy.is_some() {
            return;
        }
        let Some((token, version, request)) = connection.queue.pop_front() else {
            return;
        };
        self.count += 1;
        let id = RequestId(self.count);
        connection.busy = Some(id);
        let incarnation = connection.incarnation;
        self.asked.insert(id, (who, lane, incarnation, token));
        self.ask(coordinator::Input::Request {
            id,
            connection: ConnectionId(who as u64 * 2 + u64::from(lane == Lane::Control)),
            client: Arc::new(Client {
                id: format!("c{who}"),
                host: "/127.0.0.1".to_owned(),
            }),
            version,
            request,
        });
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives(who, lane, incarnation, token, version, request) => {
                let person = &mut self.people[who];
                let connection = person.connections.entry(lane).or_default();
                if connection.incarnation == incarnation && !person.dead && self.up {
                    connection.queue.push_back((token, version, *request));
                    self.next(who, lane);
                } else if connection.incarnation == incarnation && !self.up {
                    let failed = Input::Failed(token, SendFailure::Disconnected);
                    self.tell(who, failed);
                }
            }
            Event::Answered(who, token, response) => {
                self.tell(who, Input::Response(token, *response));
            }
            Event::Tell(who, input) => {
                // Ownership ends when the application says so.
                if let Input::Released(partitions) = &*input {
                    let gone = partitions.intersection(&self.people[who].owned);
                    self.drop_partitions(who, &gone);
                }
                self.tell(who, *input);
            }
            Event::Topics(who) => {
                let image = self.image();
                self.tell(who, Input::Topics(image));
            }
            Event::Poll(who) => {
                self.tell(who, Input::Polled);
                self.later(100, Event::Poll(who));
            }
        }
    }

    /// The next moment at which something is due.
    fn due(&self) -> Option<Timestamp> {
        let members = self
            .people
            .iter()
            .filter(|person| !person.dead)
            .filter_map(|person| Some(person.member.deadline()?.max(person.stopped)))
            .min();
        let event = self.events.keys().next().map(|(due, _)| *due);
        [self.coordinator.deadline(), members, event]
            .into_iter()
            .flatten()
            .min()
    }

    pub fn pass(&mut self, milliseconds: u64) {
        let end = self.now + milliseconds;
        let mut turns = 0;
        while let Some(due) = self.due().filter(|due| *due <= end) {
            turns += 1;
            assert!(turns < 2_000_000, "time stands still at {}", self.now);
            self.now = self.now.max(due);
            let first = self.events.keys().next().copied();
            if let Some(key) = first.filter(|(due, _)| *due <= self.now) {
                let event = self.events.remove(&key).unwrap();
                self.happen(event);
                continue;
            }
            if self.coordinator.deadline().is_some_and(|d| d <= self.now) {
                let alarm = self.coordinator.wakeup().unwrap();
                self.ask(coordinator::Input::Alarm(alarm));
                continue;
            }
            let ringing = self.people.iter().position(|person| {
                !person.dead
                    && person.stopped <= self.now
                    && person.member.deadline().is_some_and(|d| d <= self.now)
            });
            if let Some(who) = ringing {
                let alarm = self.people[who].member.wakeup().unwrap();
                self.tell(who, Input::Alarm(alarm));
            }
        }
        self.now = end;
    }

    /// Lets time pass until this holds; how long that took.
    pub fn until(&mut self, limit: u64, what: &str, holds: impl Fn(&Room) -> bool) -> u64 {
        let begun = self.now;
        while !holds(self) {
            assert!(
                self.now.since(begun) < limit,
                "{what}: {:?} {:#?}",
                self.topics,
                self.people
                    .iter()
                    .map(|p| (
                        p.member.state(),
                        p.dead,
                        p.member.leads(),
                        &p.owned,
                        &p.seen
                    ))
                    .collect::<Vec<_>>()
            );
            self.pass(1);
        }
        self.now.since(begun)
    }

    /// Whether all living members are stable and own everything together.
    pub fn settled(&self) -> bool {
        let living = || {
            self.people
                .iter()
                .filter(|p| !p.dead && p.member.state() != StateName::Closed)
        };
        let all: usize = self.topics.values().sum();
        living().all(|p| p.member.state() == StateName::Stable)
            && living().map(|p| p.owned.len()).sum::<usize>() == all
    }

    pub fn settle(&mut self, limit: u64) -> u64 {
        self.until(limit, "not settled", Room::settled)
    }

    pub fn sizes(&self) -> Vec<usize> {
        self.people.iter().map(|p| p.owned.len()).collect()
    }

    /// What a member saw, without the times.
    pub fn story(&self, who: usize) -> Vec<&str> {
        let seen = self.people[who].seen.iter();
        seen.map(|(_, text)| text.as_str())
            .filter(|text| *text != "assign nothing")
            .collect()
    }

    /// The process is killed: nothing more is heard of it, and its connections break.
    pub fn kill(&mut self, who: usize) {
        self.people[who].dead = true;
        for lane in [Lane::Rounds, Lane::Control] {
            self.hang_up(who, lane);
        }
        let owned = self.people[who].owned.clone();
        self.drop_partitions(who, &owned);
    }

    pub fn change_topics(&mut self, topic: &'static str, partitions: usize) {
        self.topics.insert(topic, partitions);
        let image = self.image();
        self.ask(coordinator::Input::Topics(image.clone()));
        for who in 0..self.people.len() {
            self.tell(who, Input::Topics(image.clone()));
        }
    }
}

fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        initial_rebalance_delay_ms: 0,
        min_session_timeout_ms: 100,
        ..CoordinatorConfig::default()
    }
}

pub fn versions() -> BTreeMap<ApiKey, (i16, i16)> {
    BTreeMap::from([
        (ApiKey::JoinGroup, (0, 9)),
        (ApiKey::SyncGroup, (0, 5)),
        (ApiKey::Heartbeat, (0, 4)),
        (ApiKey::LeaveGroup, (0, 5)),
        (ApiKey::OffsetCommit, (2, 9)),
        (ApiKey::OffsetFetch, (1, 9)),
    ])
}

fn key(request: &GroupRequest) -> ApiKey {
    match request {
        GroupRequest::JoinGroup(_) => ApiKey::JoinGroup,
        GroupRequest::SyncGroup(_) => ApiKey::SyncGroup,
        GroupRequest::Heartbeat(_) => ApiKey::Heartbeat,
        GroupRequest::LeaveGroup(_) => ApiKey::LeaveGroup,
        GroupRequest::OffsetCommit(_) => ApiKey::OffsetCommit,
        GroupRequest::OffsetFetch(_) => ApiKey::OffsetFetch,
        other => unreachable!("{other:?}"),
    }
}
