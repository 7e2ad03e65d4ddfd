//! The room: members with their connections, the coordinator with its log, and what is on its way.

use kohort_group::assign::by_name;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    self, Client, ConnectionId, Coordinator, CoordinatorConfig, GroupRequest, GroupResponse,
    RequestId,
};
use kohort_group::member::{
    Input, Lane, Member, MemberConfig, Output, StateName, Subscription, Token,
};
use kohort_group::partitions::Partitions;
use kohort_group::time::Timestamp;
use kohort_group::topics::{TopicImage, TopicInfo};
use kohort_wire::ApiKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const PARTITIONS: usize = 3;

/// How a member gives partitions up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Everything before each join.
    Eager,
    /// As KIP-429 shipped.
    Cooperative,
    /// As its leader says.
    Explicit,
}

/// What may go wrong; each is one fault of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A connection breaks, and its request is never processed.
    CutBefore,
    /// A connection breaks, and its request is processed later.
    CutAfter,
    /// The request is processed, the answer is lost.
    AnswerLost,
    /// The coordinator is rebuilt from its log.
    CoordinatorCrash,
    /// A member dies and another process starts in its place.
    MemberCrash,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 5] = [
        Fault::CutBefore,
        Fault::CutAfter,
        Fault::AnswerLost,
        Fault::CoordinatorCrash,
        Fault::MemberCrash,
    ];
}

/// What is searched.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The members that start.
    pub members: Vec<Kind>,
    /// How many of them start later, at any moment.
    pub late: usize,
    /// What a process is that starts in another's place, if not of the same kind: a downgrade or an upgrade, one after the other.
    pub then: Option<Kind>,
    /// Whether they are static.
    pub fixed: bool,
    /// How many faults strike at most.
    pub faults: u32,
    /// Which.
    pub kinds: Vec<Fault>,
    /// Whether messages of different connections overtake each other in every way; otherwise the lowest connection goes first.
    pub every_order: bool,
}

/// A connection of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Link {
    pub(crate) up: VecDeque<(Token, i16, GroupRequest)>,
    pub(crate) busy: Option<(RequestId, Token)>,
    pub(crate) down: VecDeque<(Token, GroupResponse)>,
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) member: Member,
    kind: Kind,
    pub(crate) links: BTreeMap<Lane, Link>,
    pub(crate) owned: Partitions,
    generation: i32,
    releases: Partitions,
    pub(crate) started: bool,
    /// It cannot go on, and another process takes its place.
    pub(crate) ended: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Room {
    pub(crate) setup: Arc<Setup>,
    pub(crate) now: Timestamp,
    pub(crate) people: Vec<Person>,
    pub(crate) coordinator: Coordinator,
    log: Vec<Record>,
    /// Requests of broken connections that will still be processed.
    pub(crate) zombies: Vec<(i16, GroupRequest)>,
    requests: BTreeSet<RequestId>,
    routes: BTreeMap<RequestId, (usize, Lane, Token)>,
    pub(crate) left: u32,
    /// Somebody was fenced or may have been: ownership in real time is not judged any more.
    pub(crate) excused: bool,
    incarnations: u64,
    pub(crate) way: Vec<String>,
}

fn image() -> TopicImage {
    [("t".into(), TopicInfo::with_partitions(PARTITIONS))]
        .into_iter()
        .collect()
}

impl Room {
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut room = Self {
            setup: Arc::new(setup.clone()),
            now: Timestamp(0),
            people: Vec::new(),
            coordinator: Coordinator::new(config(), 1),
            log: Vec::new(),
            zombies: Vec::new(),
            requests: BTreeSet::new(),
            routes: BTreeMap::new(),
            left: setup.faults,
            excused: false,
            incarnations: 1,
            way: Vec::new(),
        };
        let mut none = Vec::new();
        room.coordinator
            .handle(room.now, coordinator::Input::Topics(image()), &mut none);
        room.coordinator
            .handle(room.now, coordinator::Input::Loaded, &mut none);
        for (place, kind) in setup.members.iter().enumerate() {
            let person = room.process(place, *kind);
            room.people.push(person);
        }
        for place in 0..setup.members.len() - setup.late {
            room.start(place);
        }
        room
    }

    fn process(&self, place: usize, kind: Kind) -> Person {
        let name = if kind == Kind::Eager {
            "range"
        } else {
            "cooperative-sticky"
        };
        let assignors = by_name(name).into_iter().collect();
        let mut config = MemberConfig::new("g", assignors);
        config.explicit_revocation = kind == Kind::Explicit;
        config.client_id = format!("c{place}");
        config.group_instance_id = self.setup.fixed.then(|| format!("i{place}"));
        config.auto_commit_interval_ms = None;
        config.session_timeout_ms = 10_000;
        config.max_poll_interval_ms = 600_000;
        config.heartbeat_interval_ms = 3_000;
        config.seed = place as u64 + 1;
        let Ok(member) = Member::new(config) else {
            unreachable!("the settings are valid")
        };
        Person {
            member,
            kind,
            links: BTreeMap::new(),
            owned: Partitions::new(),
            generation: -1,
            releases: Partitions::new(),
            started: false,
            ended: false,
        }
    }

    /// The process in this place begins.
    pub(crate) fn start(&mut self, place: usize) {
        self.people[place].started = true;
        let topics = BTreeSet::from(["t".into()]);
        self.tell_quietly(place, Input::Subscribe(Subscription::Topics(topics)));
    }

    /// Another process starts in the place of one that died.
    pub(crate) fn restart(&mut self, place: usize) {
        let kind = self.setup.then.unwrap_or(self.people[place].kind);
        for (_, link) in std::mem::take(&mut self.people[place].links) {
            if let Some((id, _)) = link.busy {
                self.routes.remove(&id);
            }
        }
        self.people[place] = self.process(place, kind);
        self.start(place);
    }

    fn tell_quietly(&mut self, place: usize, input: Input) {
        // The first words of a process cannot break a rule.
        let _ = self.tell(place, input);
    }

    /// Something happens to a member; what it wants done is done at once, but for what goes over a connection.
    pub(crate) fn tell(&mut self, place: usize, input: Input) -> Result<(), String> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut out = Vec::new();
            self.people[place].member.handle(self.now, input, &mut out);
            self.people[place].member.check();
            for output in out {
                if let Some(more) = self.perform(place, output)? {
                    inputs.push_back(more);
                }
            }
        }
        Ok(())
    }

    fn perform(&mut self, place: usize, output: Output) -> Result<Option<Input>, String> {
        let person = &mut self.people[place];
        match output {
            Output::Send {
                token,
                lane,
                version,
                request,
            } => {
                let link = person.links.entry(lane).or_default();
                link.up.push_back((token, version, request));
            }
            Output::Disconnect(lane) => {
                if let Some(link) = person.links.remove(&lane)
                    && let Some((id, _)) = link.busy
                {
                    self.routes.remove(&id);
                }
            }
            Output::FindCoordinator => {
                let versions = coordinator_versions();
                return Ok(Some(Input::CoordinatorFound { node: 1, versions }));
            }
            Output::RefreshTopics(_) => return Ok(Some(Input::Topics(image()))),
            Output::Assign {
                owned,
                generation,
                added,
                ..
            } => {
                person.owned = owned;
                person.generation = generation;
                return self.judge(place, &added).map(|()| None);
            }
            Output::Revoke { partitions, .. } => {
                person.releases.extend(&partitions);
                return Ok(Some(Input::Released(partitions)));
            }
            Output::Revoked { partitions, .. } | Output::Lost { partitions, .. } => {
                person.owned = person.owned.minus(&partitions);
                person.releases = person.releases.minus(&partitions);
            }
            Output::Fatal(fatal) if !self.excused => {
                return Err(self.broken("L9 members heal", &fatal.to_string()));
            }
            // Whoever started it starts it again: the last words of a process before it may fence it (KIP-345).
            Output::Fatal(_) => person.ended = true,
            _ => {}
        }
        Ok(None)
    }

    /// I1 and I2: nobody else holds what a member is given.
    fn judge(&self, place: usize, added: &Partitions) -> Result<(), String> {
        let me = &self.people[place];
        for (other, person) in self
            .people
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != place)
        {
            let both = person.owned.intersection(added);
            if !both.is_empty() && (!self.excused || person.generation == me.generation) {
                let what = format!("{both} is assigned to {place} and held by {other}");
                return Err(self.broken("I2 one owner", &what));
            }
        }
        Ok(())
    }

    pub(crate) fn broken(&self, rule: &str, what: &str) -> String {
        format!("{rule}: {what}\n{}", self.way.join("\n"))
    }

    /// A request reaches the coordinator.
    pub(crate) fn ask(
        &mut self,
        from: Option<(usize, Lane, Token)>,
        version: i16,
        request: GroupRequest,
    ) -> RequestId {
        // The lowest number that is free: a counter would tell states apart that are the same.
        let mut number = 1;
        while self.requests.contains(&RequestId(number)) {
            number += 1;
        }
        let id = RequestId(number);
        self.requests.insert(id);
        let place = from.map_or(0, |(place, ..)| place);
        if let Some(from) = from {
            self.routes.insert(id, from);
        }
        let client = Arc::new(Client {
            id: format!("c{place}"),
            host: String::new(),
        });
        let connection = ConnectionId(0);
        self.coordinate(coordinator::Input::Request {
            id,
            connection,
            client,
            version,
            request,
        });
        id
    }

    /// Something happens to the coordinator. What it appends is durable at once.
    pub(crate) fn coordinate(&mut self, input: coordinator::Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let mut out = Vec::new();
            self.coordinator.handle(self.now, input, &mut out);
            self.coordinator.check();
            for output in out {
                match output {
                    coordinator::Output::Append(number, record) => {
                        self.log.push(record);
                        inputs.push_back(coordinator::Input::Appended(number));
                    }
                    coordinator::Output::Reply { id, response, .. } => self.reply(id, response),
                    coordinator::Output::Rebalanced(_) => {}
                }
            }
        }
    }

    fn reply(&mut self, id: RequestId, response: GroupResponse) {
        self.requests.remove(&id);
        let Some((place, lane, token)) = self.routes.remove(&id) else {
            return;
        };
        if let Some(link) = self.people[place].links.get_mut(&lane) {
            link.busy = None;
            link.down.push_back((token, response));
        }
    }

    /// The connection does not know its request any more.
    pub(crate) fn forget_route(&mut self, id: RequestId) {
        self.routes.remove(&id);
    }

    /// The coordinator dies and is back at once, from its log.
    pub(crate) fn crash(&mut self) {
        self.incarnations += 1;
        self.requests.clear();
        self.routes.clear();
        self.zombies.clear();
        self.coordinator = Coordinator::new(config(), self.incarnations);
        let log = std::mem::take(&mut self.log);
        self.coordinate(coordinator::Input::Topics(image()));
        for record in &log {
            self.coordinate(coordinator::Input::Replay(record.clone()));
        }
        self.log = log;
        self.coordinate(coordinator::Input::Loaded);
    }

    /// All have started, and have settled.
    pub(crate) fn converged(&self) -> bool {
        self.people.iter().all(|person| person.started) && self.settled()
    }

    /// Those that have started are stable, and each partition has exactly one owner.
    pub(crate) fn settled(&self) -> bool {
        let mut all = Partitions::new();
        let mut count = 0;
        for person in self.people.iter().filter(|person| person.started) {
            if person.member.state() != StateName::Stable || !person.releases.is_empty() {
                return false;
            }
            all.extend(&person.owned);
            count += person.owned.len();
        }
        count == PARTITIONS && all.len() == PARTITIONS && self.idle() && self.zombies.is_empty()
    }

    /// Nothing is under way.
    pub(crate) fn idle(&self) -> bool {
        let links = self.people.iter().flat_map(|person| person.links.values());
        links
            .into_iter()
            .all(|link| link.down.is_empty() && (link.up.is_empty() || link.busy.is_some()))
    }

    /// What makes this state another than the next.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for person in &self.people {
            let (member, tokens) = person.member.canonical(self.now);
            member.hash(&mut hasher);
            for (lane, link) in &person.links {
                lane.hash(&mut hasher);
                for (token, version, request) in &link.up {
                    (tokens.get(token), version, request).hash(&mut hasher);
                }
                link.busy
                    .map(|(id, token)| (id, tokens.get(&token)))
                    .hash(&mut hasher);
                for (token, response) in &link.down {
                    (tokens.get(token), response).hash(&mut hasher);
                }
            }
            (&person.owned, person.generation, &person.releases).hash(&mut hasher);
        }
        self.coordinator.canonical(self.now).hash(&mut hasher);
        (&self.zombies, self.left, self.excused).hash(&mut hasher);
        hasher.finish()
    }
}

fn config() -> CoordinatorConfig {
    CoordinatorConfig {
        initial_rebalance_delay_ms: 0,
        ..CoordinatorConfig::default()
    }
}

fn coordinator_versions() -> BTreeMap<ApiKey, (i16, i16)> {
    BTreeMap::from([
        (ApiKey::JoinGroup, (0, 9)),
        (ApiKey::SyncGroup, (0, 5)),
        (ApiKey::Heartbeat, (0, 4)),
        (ApiKey::LeaveGroup, (0, 5)),
        (ApiKey::OffsetCommit, (2, 9)),
        (ApiKey::OffsetFetch, (1, 9)),
    ])
}
