//! A member of a classic group, and who it is.

use crate::coordinator::input::{Client, RequestId};
use crate::reason::JoinReason;
use bytes::Bytes;
use kohort_wire::ErrorCode;
use kohort_wire::messages::JoinGroupRequest;
use std::sync::Arc;

/// A request that is answered later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::coordinator) struct Parked {
    pub(in crate::coordinator) id: RequestId,
    pub(in crate::coordinator) version: i16,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::coordinator) struct Member {
    pub(in crate::coordinator) id: Arc<str>,
    pub(in crate::coordinator) instance: Option<String>,
    pub(in crate::coordinator) client: Arc<Client>,
    pub(in crate::coordinator) session_ms: u64,
    pub(in crate::coordinator) rebalance_ms: u64,
    /// The assignors that it lists, with what it tells each one's leader.
    pub(in crate::coordinator) protocols: Vec<(String, Bytes)>,
    pub(in crate::coordinator) assignment: Bytes,
    pub(in crate::coordinator) join: Option<Parked>,
    pub(in crate::coordinator) sync: Option<Parked>,
    /// It does not know its id yet, so it cannot beat.
    pub(in crate::coordinator) is_new: bool,
}

impl Member {
    /// A member as its request describes it.
    pub(super) fn new(id: Arc<str>, client: Arc<Client>, request: &JoinGroupRequest) -> Self {
        let mut member = Self {
            id,
            instance: request.group_instance_id.clone(),
            client,
            session_ms: 0,
            rebalance_ms: 0,
            protocols: Vec::new(),
            assignment: Bytes::new(),
            join: None,
            sync: None,
            is_new: true,
        };
        member.update(request);
        member
    }

    /// Takes over what a join says.
    pub(super) fn update(&mut self, request: &JoinGroupRequest) {
        self.session_ms = u64::try_from(request.session_timeout_ms).unwrap_or(0);
        self.rebalance_ms = rebalance_timeout(request);
        self.protocols = listed(request);
    }

    /// What it tells the leader under `protocol`.
    pub(in crate::coordinator) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|(name, _)| name == protocol);
        found
            .map(|(_, metadata)| metadata.clone())
            .unwrap_or_default()
    }
}

/// The protocols of a request.
pub(super) fn listed(request: &JoinGroupRequest) -> Vec<(String, Bytes)> {
    request
        .protocols
        .iter()
        .map(|p| (p.name.clone(), p.metadata.clone()))
        .collect()
}

/// v0 has no rebalance timeout: the session timeout stands for it (KAFKA-8653). One that is not positive is none: with zero, nobody
/// would ever be back in time.
fn rebalance_timeout(request: &JoinGroupRequest) -> u64 {
    if request.rebalance_timeout_ms <= 0 {
        u64::try_from(request.session_timeout_ms).unwrap_or(0)
    } else {
        u64::try_from(request.rebalance_timeout_ms).unwrap_or(0)
    }
}

/// Why a join came: the typed reason (KIP-423), if the client knows it, and its words (KIP-800).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Why {
    pub(super) typed: Option<JoinReason>,
    pub(super) text: Option<String>,
}

impl Why {
    pub(super) fn of(request: &JoinGroupRequest) -> Self {
        let reason = JoinReason::from_number(request.join_reason);
        Self {
            typed: Some(reason)
                .filter(|reason| *reason != JoinReason::Unknown && !defect!(ReasonIgnored)),
            ..Self::in_words(request.reason.as_deref())
        }
    }

    /// Words alone, such as a LeaveGroup has (KIP-800).
    pub(super) fn in_words(text: Option<&str>) -> Self {
        Self {
            typed: None,
            text: text.filter(|text| !text.is_empty()).map(cleaned),
        }
    }
}

/// A text from outside, short and without control characters.
fn cleaned(text: &str) -> String {
    kohort_wire::primitives::cut(text, 255)
        .chars()
        .filter(|c| !c.is_control())
        .collect()
}

/// The identity of a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::coordinator) struct Identity<'a> {
    pub(in crate::coordinator) member: &'a str,
    pub(in crate::coordinator) instance: Option<&'a str>,
}

impl super::Group {
    /// Whether the request comes from a member. The instance id, if given, decides first: unknown → UNKNOWN_MEMBER_ID, held by another
    /// member id → FENCED_INSTANCE_ID (KIP-345). The generation is checked after this.
    pub(in crate::coordinator) fn identify(&self, who: Identity<'_>) -> Result<(), ErrorCode> {
        if let Some(instance) = who.instance {
            match self.static_members.get(instance) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(id) if **id != *who.member => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(who.member) {
            Ok(())
        } else {
            Err(ErrorCode::UnknownMemberId)
        }
    }
}
