//! Which claim of a partition stands.
//!
//! The highest generation wins; an older claim that nobody contests stands (KAFKA-14639); a claim without a generation is
//! believed where nobody contradicts it, since some clients send no other. Two claims of the same generation cannot both be
//! true, and nothing says which one is: nobody keeps the partition (KAFKA-12984).

use std::cmp::Ordering;

/// The claims that one partition has met so far. The outcome does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    generation: Option<i32>,
    state: ClaimState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ClaimState {
    #[default]
    Nobody,
    One(u32),
    Contested,
}

impl Claim {
    /// Member `who` claims the partition, as assigned in `generation`; a negative one says nothing.
    pub(super) fn add(&mut self, who: u32, generation: Option<i32>) {
        let generation = generation.filter(|generation| *generation >= 0);
        match (self.state, generation.cmp(&self.generation)) {
            (ClaimState::Nobody, _) | (_, Ordering::Greater) => {
                self.state = ClaimState::One(who);
                self.generation = generation;
            }
            (ClaimState::One(other), Ordering::Equal) if other != who => {
                self.state = ClaimState::Contested;
            }
            _ => {}
        }
    }

    /// The member whose claim stands.
    pub(super) fn holder(&self) -> Option<u32> {
        match self.state {
            ClaimState::One(who) => Some(who),
            ClaimState::Nobody | ClaimState::Contested => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_claims_does_not_matter() {
        type Case<'a> = (&'a [(u32, Option<i32>)], Option<u32>);
        let cases: [Case<'_>; 6] = [
            (&[(1, Some(4)), (2, Some(5))], Some(2)),
            (&[(1, None), (2, Some(0))], Some(2)),
            (&[(1, None)], Some(1)),
            (&[(1, Some(-1)), (2, None)], None),
            (&[(1, Some(5)), (2, Some(5)), (3, Some(4))], None),
            (&[(1, Some(5)), (2, Some(5)), (3, Some(6))], Some(3)),
        ];
        for (claims, holder) in cases {
            let mut forward = Claim::default();
            let mut backward = Claim::default();
            claims.iter().for_each(|(who, at)| forward.add(*who, *at));
            claims
                .iter()
                .rev()
                .for_each(|(who, at)| backward.add(*who, *at));
            assert_eq!(forward.holder(), holder, "{claims:?}");
            assert_eq!(backward.holder(), holder, "{claims:?}");
        }
    }
}
