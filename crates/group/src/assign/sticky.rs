//! `sticky` and `cooperative-sticky`: as even as the subscriptions allow, with the fewest moves.

use std::borrow::Cow;

use bytes::Bytes;
use kohort_wire::embedded::{CooperativeUserData, StickyUserData};

use super::decode::partitions_from_wire;
use super::problem::{Owners, Problem};
use super::{Assignor, Question, Shares, Subscriber, equal, flow};
use crate::partitions::{Partitions, Topic};

/// `sticky` (KIP-54): eager, so what a member had before it gave everything up travels in the user data, in Kafka's layout.
///
/// The shares are better than Kafka's: loads are as even as the subscriptions allow; among those, the fewest partitions
/// leave the member whose claim stands; among those, each topic is spread as evenly as it can be without a further move.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sticky;

impl Assignor for Sticky {
    fn name(&self) -> &str {
        "sticky"
    }

    fn is_eager(&self) -> bool {
        true
    }

    fn user_data(&self, _: &[Topic], owned: &Partitions, generation: i32) -> Option<Bytes> {
        let data = StickyUserData {
            previous: super::decode::partitions_to_wire(owned),
            generation: Some(generation),
        };
        Some(data.encode())
    }

    fn assign(&self, question: &Question<'_>) -> Shares {
        share(question, |member| match &member.user_data {
            Some(bytes) => {
                let data = StickyUserData::decode(bytes);
                let previous = partitions_from_wire(&data.previous);
                (Cow::Owned(previous), data.generation)
            }
            None => (Cow::Owned(Partitions::new()), None),
        })
    }

    fn honours_claims(&self) -> bool {
        true
    }
}

/// `cooperative-sticky` (KIP-429): the shares of [`Sticky`], by what members still own while they join.
#[derive(Clone, Copy, Debug, Default)]
pub struct CooperativeSticky;

impl Assignor for CooperativeSticky {
    fn name(&self) -> &str {
        "cooperative-sticky"
    }

    fn is_eager(&self) -> bool {
        false
    }

    fn user_data(&self, _: &[Topic], _: &Partitions, generation: i32) -> Option<Bytes> {
        let data = CooperativeUserData {
            generation,
            explicit: false,
        };
        Some(data.encode())
    }

    fn assign(&self, question: &Question<'_>) -> Shares {
        share(question, |member| {
            (Cow::Borrowed(&member.owned), cooperative_generation(member))
        })
    }

    fn honours_claims(&self) -> bool {
        true
    }
}

/// The generation of a cooperative member's claims: the subscription's field, else the user data's first int32.
pub(super) fn cooperative_generation(member: &Subscriber) -> Option<i32> {
    let said = || {
        let data = CooperativeUserData::decode(member.user_data.as_ref()?)?;
        Some(data.generation)
    };
    let field = member.generation.filter(|generation| *generation >= 0);
    field.or_else(said).filter(|generation| *generation >= 0)
}

fn share<'a>(
    question: &Question<'a>,
    claims: impl Fn(&Subscriber) -> (Cow<'_, Partitions>, Option<i32>),
) -> Shares {
    let problem = Problem::new(question);
    let claims: Vec<_> = problem
        .members
        .iter()
        .map(|member| claims(member))
        .collect();
    let holders = problem.holders(&claims);
    problem.shares(&solve(&problem, &holders))
}

/// Who gets what, when these members hold what they hold.
fn solve(problem: &Problem<'_>, holders: &Owners) -> Owners {
    let owners = if problem.is_equal() {
        equal::share(problem, holders)
    } else {
        flow::spread(problem, holders)
    };
    flow::settle(problem, holders, owners)
}
