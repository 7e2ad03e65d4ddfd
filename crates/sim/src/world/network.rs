//! Connections: each is a FIFO both ways that can break at any point. After a break the sender does not know whether its request
//! was processed, and the request may still be processed after the next connection's first (a zombie).

use super::{Event, World, frames};
use crate::fact::{Fact, Process as ProcessId};
use crate::faults::Fault;
use crate::random::Random;
use crate::scenario::Scenario;
use bytes::Bytes;
use kohort_group::coordinator::{self, ConnectionId, GroupRequest, RequestId};
use kohort_group::member::{self, Lane, SendFailure, Token};
use kohort_wire::ApiKey;
use std::collections::{BTreeMap, VecDeque};

/// How a connection will break, at the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Before,
    After,
    Answer,
}

/// A connection of a process.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) process: ProcessId,
    lane: Lane,
    member_open: bool,
    broker_open: bool,
    /// When the last frame of each way arrives: a FIFO.
    up: u64,
    down: u64,
    /// What the member waits for, by correlation id.
    waits: BTreeMap<i32, (Token, ApiKey, i16)>,
    /// The request that the broker is at; it takes the next when this one is answered.
    busy: Option<RequestId>,
    queued: VecDeque<Bytes>,
    /// Frames vanish; or the next answer does.
    swallow: bool,
    lose_answer: bool,
}

/// The versions that the broker serves.
pub(super) fn served(random: &mut Random, scenario: &Scenario) -> BTreeMap<ApiKey, (i16, i16)> {
    let mut versions = frames::known_versions();
    if scenario.old_versions {
        // Static membership needs the versions that know `group.instance.id`.
        let floor = |key: ApiKey| match (key, scenario.static_percent) {
            (ApiKey::JoinGroup, 0) => 1,
            (ApiKey::OffsetCommit, 0) => 2,
            (ApiKey::OffsetFetch, _) => 1,
            (ApiKey::JoinGroup, _) => 5,
            (ApiKey::OffsetCommit, _) => 7,
            (_, 0) => 0,
            _ => 3,
        };
        for (key, (_, high)) in &mut versions {
            let low = floor(*key).min(*high);
            *high = random.between(low as u64, *high as u64) as i16;
        }
    }
    versions
}

impl World {
    fn latency(&mut self) -> u64 {
        let slow = self.broker.slow_network_until > self.now;
        let most = self.scenario.latency_ms * if slow { 20 } else { 1 };
        self.random.between(0, most)
    }

    /// A member sends a request.
    pub(super) fn send(
        &mut self,
        process: ProcessId,
        token: Token,
        lane: Lane,
        version: i16,
        request: &GroupRequest,
    ) {
        let client = self.processes[process].client_id.clone();
        // Correlation ids wrap in real life too.
        let correlation = token.0 as i32;
        let frame = match frames::request(request, version, correlation, &client) {
            Ok(frame) => frame,
            Err(what) => return self.fail("messages come back as they went", what),
        };
        if !self.broker.is_up() {
            let input = member::Input::Failed(token, SendFailure::Disconnected);
            let delay = 1 + self.latency();
            return self.after(delay, Event::Input(process, Box::new(input)));
        }
        let id = self.connection(process, lane);
        let key = frames::key(request);
        let late = self.lateness(process, key);
        let cut = self.processes[process].cuts.remove(&lane);
        let (now, way) = (self.now, self.latency());
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.waits.insert(correlation, (token, key, version));
        connection.up = connection.up.max(now + way + late);
        let arrives = connection.up - now;
        match cut {
            Some(Cut::Before) => connection.swallow = true,
            Some(Cut::Answer) => connection.lose_answer = true,
            Some(Cut::After) | None => {}
        }
        if connection.swallow {
            self.bit(Fault::CutBefore);
            self.after(way, Event::MemberBreak(id));
            self.after(way, Event::BrokerBreak(id));
            return;
        }
        if cut == Some(Cut::After) {
            // The member sees the break before the broker sees the request.
            let zombie = self.random.between(0, 500);
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.up += zombie;
            }
            self.after(way.min(arrives), Event::MemberBreak(id));
            self.after(arrives + zombie, Event::AtBroker(id, frame));
            self.after(arrives + zombie + 50, Event::BrokerBreak(id));
            return;
        }
        self.after(arrives, Event::AtBroker(id, frame));
    }

    /// How much later than usual a request is.
    fn lateness(&mut self, process: ProcessId, key: ApiKey) -> u64 {
        if let Some(always) = self.case.late_sync_ms
            && key == ApiKey::SyncGroup
            && self.processes[process].slot.is_multiple_of(2)
        {
            return always;
        }
        let late = &mut self.processes[process].late_sync_ms;
        if key != ApiKey::SyncGroup || *late == 0 {
            return 0;
        }
        let late = std::mem::take(late);
        self.bit(Fault::LateSync);
        late
    }

    /// The connection of a lane, opened if need be.
    fn connection(&mut self, process: ProcessId, lane: Lane) -> u64 {
        if let Some(id) = self.processes[process].lanes.get(&lane) {
            return *id;
        }
        self.next_connection += 1;
        let id = self.next_connection;
        let connection = Connection {
            process,
            lane,
            member_open: true,
            broker_open: true,
            up: self.now,
            down: self.now,
            waits: BTreeMap::new(),
            busy: None,
            queued: VecDeque::new(),
            swallow: false,
            lose_answer: false,
        };
        self.connections.insert(id, connection);
        self.processes[process].lanes.insert(lane, id);
        id
    }

    /// Request bytes arrive.
    pub(super) fn at_broker(&mut self, id: u64, frame: Bytes) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.broker_open {
            return;
        }
        connection.queued.push_back(frame);
        self.next_request(id);
    }

    /// The broker takes the next request of a connection, if it is not at one.
    pub(super) fn next_request(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if connection.busy.is_some() {
            return;
        }
        let Some(frame) = connection.queued.pop_front() else {
            return;
        };
        let (header, request) = match frames::read_request(frame) {
            Ok(read) => read,
            Err(what) => return self.fail("messages come back as they went", what),
        };
        let process = connection.process;
        let zombie = !connection.member_open;
        let request_id = self.broker.route(id, &header);
        connection.busy = Some(request_id);
        if zombie {
            self.bit(Fault::CutAfter);
        }
        if self.broker.is_loading() && self.knows(Fault::SlowLoad) {
            self.bit(Fault::SlowLoad);
        }
        self.observe(&Fact::Asked {
            id: request_id,
            process,
            zombie,
            request: &request,
        });
        self.coordinate(coordinator::Input::Request {
            id: request_id,
            connection: ConnectionId(id),
            client: self.processes[process].client.clone(),
            version: header.version,
            request,
        });
    }

    /// An answer goes out.
    pub(super) fn respond(
        &mut self,
        id: u64,
        correlation: i32,
        version: i16,
        response: &coordinator::GroupResponse,
    ) {
        let throttled = self.throttle(id, version, response);
        let response = throttled.as_ref().unwrap_or(response);
        let frame = match frames::response(response, version, correlation) {
            Ok(frame) => frame,
            Err(what) => return self.fail("messages come back as they went", what),
        };
        let (now, way) = (self.now, self.latency());
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        connection.busy = None;
        let more = !connection.queued.is_empty();
        if connection.broker_open {
            if connection.lose_answer {
                self.bit(Fault::AnswerLost);
                self.after(way, Event::MemberBreak(id));
                self.after(way, Event::BrokerBreak(id));
            } else {
                connection.down = connection.down.max(now + way);
                let arrives = connection.down - now;
                self.after(arrives, Event::AtMember(id, frame));
            }
        }
        if more {
            self.after(0, Event::NextRequest(id));
        }
    }

    /// The same answer, by a broker that asks for silence after it, if it is to be so.
    fn throttle(
        &mut self,
        id: u64,
        version: i16,
        response: &coordinator::GroupResponse,
    ) -> Option<coordinator::GroupResponse> {
        let process = self.connections.get(&id)?.process;
        let silence = self.processes[process].throttle_ms;
        if silence == 0 {
            return None;
        }
        let mut throttled = response.clone();
        *frames::throttle_time(&mut throttled, version)? = silence as i32;
        self.processes[process].throttle_ms = 0;
        self.bit(Fault::Throttled);
        Some(throttled)
    }

    /// Response bytes arrive.
    pub(super) fn at_member(&mut self, id: u64, frame: Bytes) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.member_open {
            return;
        }
        let correlation = frame
            .first_chunk::<4>()
            .map(|bytes| i32::from_be_bytes(*bytes));
        let Some((token, key, version)) =
            correlation.and_then(|correlation| connection.waits.remove(&correlation))
        else {
            let what =
                format!("an answer with correlation id {correlation:?} that nobody waits for");
            return self.fail("messages come back as they went", what);
        };
        let process = connection.process;
        match frames::read_response(key, frame, version) {
            Ok((_, response)) => {
                self.count_codes(key, version, &response);
                self.tell(process, member::Input::Response(token, response));
            }
            Err(what) => self.fail("messages come back as they went", what),
        }
    }

    /// The member sees that its connection broke.
    pub(super) fn member_break(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.member_open {
            return;
        }
        connection.member_open = false;
        let (process, lane) = (connection.process, connection.lane);
        let waits: Vec<Token> = std::mem::take(&mut connection.waits)
            .into_values()
            .map(|(token, ..)| token)
            .collect();
        self.processes[process].lanes.remove(&lane);
        self.forget_closed(id);
        for token in waits {
            self.tell(
                process,
                member::Input::Failed(token, SendFailure::Disconnected),
            );
        }
    }

    /// The member closes a lane: what is on its way may still be processed.
    pub(super) fn close_lane(&mut self, process: ProcessId, lane: Lane) {
        let Some(id) = self.processes[process].lanes.remove(&lane) else {
            return;
        };
        let linger = self.random.between(0, 300);
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.member_open = false;
            connection.waits.clear();
            let delay = connection.up.saturating_sub(self.now) + linger;
            self.after(delay, Event::BrokerBreak(id));
        }
    }

    /// The broker sees that a connection broke.
    pub(super) fn broker_break(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        if !connection.broker_open {
            return;
        }
        connection.broker_open = false;
        connection.queued.clear();
        let busy = connection.busy;
        if connection.member_open {
            self.after(0, Event::MemberBreak(id));
        }
        self.forget_closed(id);
        if let Some(request) = busy {
            self.observe(&Fact::Abandoned(request));
        }
        self.coordinate(coordinator::Input::Disconnected(ConnectionId(id)));
    }

    /// The broker is gone: all its connections break.
    pub(super) fn break_all(&mut self) {
        let ids: Vec<u64> = self.connections.keys().copied().collect();
        for id in ids {
            let way = self.latency();
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.broker_open = false;
                connection.busy = None;
                connection.queued.clear();
            }
            self.after(way, Event::MemberBreak(id));
            self.forget_closed(id);
        }
    }

    fn forget_closed(&mut self, id: u64) {
        if self
            .connections
            .get(&id)
            .is_some_and(|connection| !connection.member_open && !connection.broker_open)
        {
            self.connections.remove(&id);
        }
    }
}
