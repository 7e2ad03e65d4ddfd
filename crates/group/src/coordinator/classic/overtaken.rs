//! Joins that were overtaken: a connection broke, its join arrives all the same, and a later one of the same member is there already.
//!
//! Kafka lets the older one take the place of the newer. Its claims are what the member owned then, so the leader gives away what the
//! member has come to own since, and two members work on it until the first hears of it. What tells them apart is the generation that
//! a consumer's claims are labelled with (KIP-792): it grows, or is −1 where everything was lost.

use super::membership::{Why, listed};
use super::state::Group;
use crate::reason::JoinReason;
use bytes::Bytes;
use kohort_wire::embedded::{CooperativeUserData, Subscription};
use kohort_wire::messages::JoinGroupRequest;
use std::sync::Arc;

impl Group {
    /// Whether a later join of this member is known already. A member that has lost everything claims nothing and says −1: that is no older
    /// claim, unless its reason says that it was sent before there was anything to lose.
    pub(super) fn overtaken(&self, id: &Arc<str>, request: &JoinGroupRequest) -> bool {
        let Some(member) = self.members.get(id).filter(|_| self.is_consumer()) else {
            return false;
        };
        let (known, said) = (claimed_in(&member.protocols), claimed_in(&listed(request)));
        let first = Why::of(request).typed == Some(JoinReason::NewMember);
        said < known && (said.is_some() || first)
    }
}

/// The generation that claims are labelled with, if any of the metadata says it; −1 is none.
fn claimed_in(protocols: &[(String, Bytes)]) -> Option<i32> {
    let said = |(_, metadata): &(String, Bytes)| {
        let subscription = Subscription::decode(metadata.clone()).ok()?;
        let data = subscription.user_data.as_ref();
        subscription.generation.or_else(|| {
            data.and_then(CooperativeUserData::decode)
                .map(|data| data.generation)
                .filter(|generation| *generation >= 0)
        })
    };
    protocols.iter().filter_map(said).max()
}
