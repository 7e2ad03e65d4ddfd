//! The conversation with the coordinator: finding it, what is in flight, time-outs, and who gets an answer.

use super::backoff::Retry;
use super::commit::Batch;
use super::{Alarm, Fatal, Lane, Member, Output, SendFailure, Token};
use crate::coordinator::{GroupRequest, GroupResponse};
use crate::partitions::TopicPartition;
use crate::time::Timestamp;
use kohort_wire::{ApiKey, ApiRequest, ErrorCode};
use std::collections::BTreeMap;

/// Extra time that joins and syncs get over the rebalance timeout.
const ROUND_SLACK_MS: u64 = 5_000;

/// First and last version of each API that a broker serves.
pub(super) type Versions = BTreeMap<ApiKey, (i16, i16)>;

/// What is known of the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Coordinator {
    Unknown,
    Searching,
    Known(Versions),
}

/// The connection to the coordinator, as the machine sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub(super) coordinator: Coordinator,
    /// The node that was found last.
    pub(super) node: Option<i32>,
    pub(super) search: Retry,
    pub(super) flights: BTreeMap<Token, Flight>,
    /// Where the broker has asked for silence, and until when.
    pub(super) quiet: BTreeMap<Lane, Timestamp>,
    pub(super) last_token: u64,
}

/// A request that is in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) lane: Lane,
    pub(super) sent: Timestamp,
    /// When it has taken too long.
    pub(super) due: Timestamp,
    /// The generation that it was sent in.
    pub(super) generation: i32,
    pub(super) work: Work,
}

/// What a request in flight is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Work {
    Join,
    Sync,
    Heartbeat,
    Leave,
    /// With the number of each partition's assignment.
    Fetch(BTreeMap<TopicPartition, u64>),
    Commit(Batch),
}

impl Line {
    pub(super) fn new() -> Self {
        Self {
            coordinator: Coordinator::Unknown,
            node: None,
            search: Retry::default(),
            flights: BTreeMap::new(),
            quiet: BTreeMap::new(),
            last_token: 0,
        }
    }

    pub(super) fn known(&self) -> bool {
        matches!(self.coordinator, Coordinator::Known(_))
    }

    pub(super) fn flying(&self, is: impl Fn(&Work) -> bool) -> bool {
        self.flights.values().any(|flight| is(&flight.work))
    }

    /// The version to send of an API: the highest that both sides know.
    pub(super) fn version<R: ApiRequest>(&self) -> Option<i16> {
        // Versions of OffsetCommit and OffsetFetch that name topics by id are of no use to a member, which knows names.
        let last_with_names = match R::KEY {
            ApiKey::OffsetCommit | ApiKey::OffsetFetch => 9,
            _ => i16::MAX,
        };
        let Coordinator::Known(versions) = &self.coordinator else {
            return None;
        };
        let (first, last) = *versions.get(&R::KEY)?;
        let version = last.min(R::VERSIONS.1).min(last_with_names);
        (version >= first.max(R::VERSIONS.0)).then_some(version)
    }
}

impl Member {
    /// Sends a request, if the coordinator is known. True if it was sent.
    pub(super) fn send<R: ApiRequest>(
        &mut self,
        work: Work,
        request: R,
        wrap: impl FnOnce(R) -> GroupRequest,
        out: &mut Vec<Output>,
    ) -> bool {
        let Some(version) = self.line.version::<R>() else {
            return false;
        };
        let (lane, timeout) = match &work {
            Work::Join | Work::Sync => (
                Lane::Rounds,
                self.config
                    .max_poll_interval_ms
                    .saturating_add(ROUND_SLACK_MS)
                    .max(self.config.request_timeout_ms),
            ),
            // A beat that is not answered must leave time for another within the session.
            Work::Heartbeat => (
                Lane::Control,
                self.config
                    .request_timeout_ms
                    .min(self.config.session_timeout_ms * 2 / 3),
            ),
            Work::Leave | Work::Fetch(_) | Work::Commit(_) => {
                (Lane::Control, self.config.request_timeout_ms)
            }
        };
        self.line.last_token += 1;
        let token = Token(self.line.last_token);
        self.line.flights.insert(
            token,
            Flight {
                lane,
                sent: self.now,
                due: self.now + timeout.max(1),
                generation: self.membership.generation,
                work,
            },
        );
        out.push(Output::Send {
            token,
            lane,
            version,
            request: wrap(request),
        });
        true
    }

    /// An answer came.
    pub(super) fn on_response(
        &mut self,
        token: Token,
        response: GroupResponse,
        out: &mut Vec<Output>,
    ) {
        self.keep_quiet(&response);
        // An answer to something that was given up, or a second one, means nothing more.
        let Some(flight) = self.line.flights.remove(&token) else {
            return;
        };
        self.dispatch_response(flight, response, out);
        self.put_off_beat();
    }

    /// A broker that is over quota asks for silence on a connection (KIP-219).
    fn keep_quiet(&mut self, response: &GroupResponse) {
        let throttle = throttle_ms(response);
        if throttle > 0 {
            let lane = match response {
                GroupResponse::JoinGroup(_) | GroupResponse::SyncGroup(_) => Lane::Rounds,
                _ => Lane::Control,
            };
            let until = self.line.quiet.entry(lane).or_default();
            *until = (*until).max(self.now + throttle);
        }
    }

    /// Heartbeats wait for the end of the silence too, but come back in time for the session; a leave waits for nothing.
    fn put_off_beat(&mut self) {
        if let Some(until) = self.quiet_due(Lane::Control) {
            let session = self.now + self.config.session_timeout_ms / 2;
            self.beat.next = self.beat.next.max(until.min(session));
        }
    }

    /// Whether the broker has asked for no silence on a lane, or it is over.
    pub(super) fn may_speak(&self, lane: Lane) -> bool {
        self.quiet_due(lane).is_none()
    }

    /// When the silence on a lane is over, if that is later than now.
    pub(super) fn quiet_due(&self, lane: Lane) -> Option<Timestamp> {
        let until = self.line.quiet.get(&lane).copied();
        until.filter(|until| *until > self.now)
    }

    fn dispatch_response(
        &mut self,
        flight: Flight,
        response: GroupResponse,
        out: &mut Vec<Output>,
    ) {
        match (&flight.work, response) {
            (Work::Join, GroupResponse::JoinGroup(answer)) => self.on_joined(answer, out),
            (Work::Sync, GroupResponse::SyncGroup(answer)) => self.on_synced(answer, out),
            (Work::Heartbeat, GroupResponse::Heartbeat(answer)) => {
                self.on_beat(&flight, answer.error_code, out);
            }
            (Work::Leave, GroupResponse::LeaveGroup(_)) => self.on_left(),
            (Work::Fetch(asked), GroupResponse::OffsetFetch(answer)) => {
                self.on_fetched(&flight, asked, answer, out);
            }
            (Work::Commit(batch), GroupResponse::OffsetCommit(answer)) => {
                self.on_committed(&flight, batch, answer, out);
            }
            (Work::Join, _)
            | (Work::Sync, _)
            | (Work::Heartbeat, _)
            | (Work::Leave, _)
            | (Work::Fetch(_), _)
            | (Work::Commit(_), _) => {
                out.push(Output::Warning {
                    code: None,
                    text: "a request was answered with another API's response; expected its own; it is taken as lost".to_owned(),
                });
                self.on_no_answer(flight, out);
            }
        }
    }

    /// A request will have no answer.
    pub(super) fn on_failed(&mut self, token: Token, failure: SendFailure, out: &mut Vec<Output>) {
        let Some(flight) = self.line.flights.remove(&token) else {
            return;
        };
        match failure {
            SendFailure::Disconnected => self.on_no_answer(flight, out),
            SendFailure::Unsupported => self.fail(
                Some(flight.work.api()),
                Some(ErrorCode::UnsupportedVersion),
                "the version that was chosen does not fit; expected one that the broker serves; use a newer broker".to_owned(),
                out,
            ),
        }
    }

    /// A request has taken too long: its lane is closed, or its answer would come late and be taken for another's.
    pub(super) fn on_timeout(&mut self, token: Token, out: &mut Vec<Output>) {
        if let Some(flight) = self.line.flights.get(&token) {
            let lane = flight.lane;
            self.disconnect(lane, out);
        }
    }

    /// Closes a lane; what is in flight on it has no answer.
    pub(super) fn disconnect(&mut self, lane: Lane, out: &mut Vec<Output>) {
        out.push(Output::Disconnect(lane));
        self.line.quiet.remove(&lane);
        let gone: Vec<Token> = self
            .line
            .flights
            .iter()
            .filter(|(_, flight)| flight.lane == lane)
            .map(|(token, _)| *token)
            .collect();
        for token in gone {
            if let Some(flight) = self.line.flights.remove(&token) {
                self.on_no_answer(flight, out);
            }
        }
    }

    fn on_no_answer(&mut self, flight: Flight, out: &mut Vec<Output>) {
        self.forget_coordinator();
        match flight.work {
            Work::Join => self.on_join_lost(),
            Work::Sync => self.on_sync_lost(out),
            Work::Heartbeat => self.beat_again(),
            Work::Leave => self.on_left(),
            Work::Fetch(_) => self.fetch_again(),
            Work::Commit(batch) => self.on_commit_lost(&batch, out),
        }
    }

    /// Forgets requests that only made sense for the membership that has ended; their answers will be ignored.
    pub(super) fn drop_flights_of_membership(&mut self, out: &mut Vec<Output>) {
        if self.line.flying(|work| matches!(work, Work::Sync)) {
            self.abandon_round(out);
        }
        self.line
            .flights
            .retain(|_, flight| matches!(flight.work, Work::Join | Work::Leave));
    }

    /// Gives up a join or sync that is in flight. A broker may have parked it, and reads nothing more from that connection until
    /// it has answered: so the lane is closed.
    pub(super) fn abandon_round(&mut self, out: &mut Vec<Output>) {
        let before = self.line.flights.len();
        self.line
            .flights
            .retain(|_, flight| flight.lane != Lane::Rounds);
        if self.line.flights.len() < before {
            out.push(Output::Disconnect(Lane::Rounds));
            self.line.quiet.remove(&Lane::Rounds);
        }
    }

    pub(super) fn fatal(
        &self,
        api: Option<ApiKey>,
        code: Option<ErrorCode>,
        reason: String,
    ) -> Fatal {
        Fatal {
            group: self.config.group_id.clone(),
            api,
            code,
            reason: match code {
                Some(code) => format!("{} ({}): {reason}", code.name(), code.number()),
                None => reason,
            },
        }
    }

    /// The alarms of what is in flight.
    pub(super) fn request_alarms(&self) -> impl Iterator<Item = (Alarm, Timestamp)> + '_ {
        self.line
            .flights
            .iter()
            .map(|(token, flight)| (Alarm::Request(*token), flight.due))
    }
}

/// For how long the broker asks for silence.
fn throttle_ms(response: &GroupResponse) -> u64 {
    let milliseconds = match response {
        GroupResponse::JoinGroup(answer) => answer.throttle_time_ms,
        GroupResponse::SyncGroup(answer) => answer.throttle_time_ms,
        GroupResponse::Heartbeat(answer) => answer.throttle_time_ms,
        GroupResponse::LeaveGroup(answer) => answer.throttle_time_ms,
        GroupResponse::OffsetCommit(answer) => answer.throttle_time_ms,
        GroupResponse::OffsetFetch(answer) => answer.throttle_time_ms,
        GroupResponse::DescribeGroups(_)
        | GroupResponse::ListGroups(_)
        | GroupResponse::DeleteGroups(_)
        | GroupResponse::OffsetDelete(_) => 0,
    };
    u64::try_from(milliseconds).unwrap_or(0)
}

impl Work {
    pub(super) fn api(&self) -> ApiKey {
        match self {
            Work::Join => ApiKey::JoinGroup,
            Work::Sync => ApiKey::SyncGroup,
            Work::Heartbeat => ApiKey::Heartbeat,
            Work::Leave => ApiKey::LeaveGroup,
            Work::Fetch(_) => ApiKey::OffsetFetch,
            Work::Commit(_) => ApiKey::OffsetCommit,
        }
    }
}
