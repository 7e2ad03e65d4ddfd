//! The coordinator: looking for it, losing it, and what it must serve.

use super::requests::{Coordinator, Versions};
use super::state::State;
use super::{Lane, Member, Output};
use crate::time::Timestamp;
use kohort_wire::messages::{
    HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, OffsetCommitRequest, OffsetFetchRequest,
    SyncGroupRequest,
};
use kohort_wire::{ApiKey, ErrorCode};

impl Member {
    /// The coordinator answered as the group's coordinator: the session goes on from then.
    pub(super) fn heard(&mut self, since: Timestamp) {
        self.membership.heard = self.membership.heard.max(since);
        self.line.search.worked();
    }

    /// The coordinator is elsewhere, or away: look for it, at once the first time.
    pub(super) fn forget_coordinator(&mut self) {
        self.membership.doubt();
        if self.line.known() {
            self.line.coordinator = Coordinator::Unknown;
            self.line
                .search
                .refused(self.now, self.pauses, &mut self.jitter);
        }
    }

    /// Whether the member has anything to say to a coordinator.
    fn wants_coordinator(&self) -> bool {
        match self.state {
            State::Joining(_) | State::Syncing(_) | State::Reconciling | State::Stable => true,
            State::Leaving(_) => self.leaving_wants_coordinator(),
            State::Unsubscribed | State::Fenced | State::Fatal | State::Closed => false,
        }
    }

    pub(super) fn find_coordinator(&mut self, out: &mut Vec<Output>) {
        if self.line.coordinator == Coordinator::Unknown
            && self.line.search.may(self.now)
            && self.wants_coordinator()
        {
            self.line.coordinator = Coordinator::Searching;
            out.push(Output::FindCoordinator);
        }
    }

    pub(super) fn search_due(&self) -> Option<Timestamp> {
        let wanted = self.line.coordinator == Coordinator::Unknown && self.wants_coordinator();
        self.line.search.due(self.now).filter(|_| wanted)
    }

    pub(super) fn on_coordinator(&mut self, node: i32, versions: Versions, out: &mut Vec<Output>) {
        let moved = self.line.node.is_some_and(|old| old != node);
        self.line.node = Some(node);
        self.line.coordinator = Coordinator::Known(versions);
        if moved {
            // Nobody at the old node will answer what is in flight there.
            for lane in [Lane::Rounds, Lane::Control] {
                if self.line.flights.values().any(|flight| flight.lane == lane) {
                    let versions = self.line.coordinator.clone();
                    self.disconnect(lane, out);
                    self.line.coordinator = versions;
                }
            }
        }
        self.check_versions(out);
    }

    pub(super) fn on_no_coordinator(&mut self, code: ErrorCode, out: &mut Vec<Output>) {
        if self.line.coordinator != Coordinator::Searching {
            return;
        }
        self.line.coordinator = Coordinator::Unknown;
        let api = Some(ApiKey::FindCoordinator);
        match code {
            ErrorCode::GroupAuthorizationFailed => self.fail(
                api,
                Some(code),
                "the client may not describe the group; grant DESCRIBE and READ on it".to_owned(),
                out,
            ),
            ErrorCode::InvalidGroupId | ErrorCode::SaslAuthenticationFailed => {
                self.fail(api, Some(code), code.meaning().to_owned(), out);
            }
            _ => self
                .line
                .search
                .failed(self.now, self.pauses, &mut self.jitter),
        }
    }

    /// What the member cannot do without must be served by the coordinator.
    fn check_versions(&mut self, out: &mut Vec<Output>) {
        let join = self.line.version::<JoinGroupRequest>();
        let missing = [
            (ApiKey::JoinGroup, join),
            (ApiKey::SyncGroup, self.line.version::<SyncGroupRequest>()),
            (ApiKey::Heartbeat, self.line.version::<HeartbeatRequest>()),
            (ApiKey::LeaveGroup, self.line.version::<LeaveGroupRequest>()),
            (
                ApiKey::OffsetCommit,
                self.line.version::<OffsetCommitRequest>(),
            ),
            (
                ApiKey::OffsetFetch,
                self.line.version::<OffsetFetchRequest>(),
            ),
        ]
        .into_iter()
        .find(|(_, version)| version.is_none());
        let unsupported = Some(ErrorCode::UnsupportedVersion);
        if let Some((api, _)) = missing {
            let reason = format!(
                "the coordinator serves no version of {} that is known here; use a broker of Kafka 0.11 or later",
                api.name()
            );
            self.fail(Some(api), unsupported, reason, out);
        } else if self.config.group_instance_id.is_some() && join.is_some_and(|join| join < 5) {
            let reason = format!(
                "group.instance.id needs JoinGroup version 5 (Kafka 2.3, KIP-345), and the broker serves at most {}; unset it or upgrade the broker",
                join.unwrap_or(-1)
            );
            self.fail(Some(ApiKey::JoinGroup), unsupported, reason, out);
        }
    }
}
