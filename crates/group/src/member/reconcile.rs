//! From what a member owns to what it is given: one rule for eager, cooperative and explicit.
//!
//! ```text
//!   owned ──┬── keep    stays, and is delivered on without a pause
//!           └── revoke  explicit: what the leader says; otherwise owned − assigned (nothing in an eager group, which gave it up before)
//!   assigned − owned = add
//! ```

use super::{Member, Output, RevokeReason, State, Subscription};
use crate::partitions::{Partitions, Topic};
use crate::reason::JoinReason;
use kohort_wire::embedded::AssignmentError;
use std::collections::BTreeSet;

use super::state::Cause;

/// What a member was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) assigned: Partitions,
    /// The explicit form: what to revoke, and what to do next.
    pub(super) trailer: Option<(Partitions, AssignmentError)>,
}

/// What a member does about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) add: Partitions,
    pub(super) revoke: Partitions,
    /// Another round follows; the member hears of it by heartbeat unless it has something to release.
    pub(super) need_rejoin: bool,
}

/// Plans the step from `owned` to what was told. `claimed` is what the member claimed in that join.
///
/// # Errors
/// In words, where an explicit assignment contradicts the claim or has an error code that is not known (the draft of KIP-429: such a group
/// is inconsistent, and a member must not go on as if it were not).
pub(super) fn reconcile(
    owned: &Partitions,
    claimed: &Partitions,
    told: &Told,
) -> Result<Plan, String> {
    let Some((revoked, error)) = &told.trailer else {
        return Ok(Plan {
            add: told.assigned.minus(owned),
            revoke: owned.minus(&told.assigned),
            need_rejoin: false,
        });
    };
    let need_rejoin = match error {
        AssignmentError::None => false,
        AssignmentError::NeedRejoin => true,
        AssignmentError::Unknown(code) => {
            return Err(format!(
                "the leader's assignment has error code {code}; expected 0 (none) or 1 (rejoin)"
            ));
        }
    };
    let still = claimed.intersection(owned);
    let missing = still.minus(revoked).minus(&told.assigned);
    if !missing.is_empty() && !defect!(SupersetCheckLeftOut) {
        return Err(format!(
            "the leader's assignment is inconsistent: expected at least {} (claimed, and not revoked), got {} with {revoked} revoked; {missing} would be given away silently",
            still.minus(revoked),
            told.assigned
        ));
    }
    Ok(Plan {
        add: told.assigned.minus(owned).minus(revoked),
        revoke: owned.intersection(revoked),
        need_rejoin,
    })
}

impl Member {
    /// Carries an assignment out: additions at once, then what has to go.
    pub(super) fn apply(
        &mut self,
        mut told: Told,
        claimed: &Partitions,
        mut joined_topics: BTreeSet<Topic>,
        out: &mut Vec<Output>,
    ) {
        let closing = self.closing.is_some();
        let foreign = if closing {
            Partitions::new()
        } else {
            self.drop_foreign(&mut told, claimed, &mut joined_topics)
        };
        let plan = match reconcile(&self.ownership.owned, claimed, &told) {
            Ok(plan) => plan,
            Err(reason) => {
                self.fail(None, None, reason, out);
                return;
            }
        };
        // A member that closes takes nothing new.
        let add = if closing { Partitions::new() } else { plan.add };
        self.ownership.generation = self.membership.generation;
        self.ownership.previous.clone_from(&told.assigned);
        self.ownership.owned.extend(&add);
        self.membership.been = true;
        self.need_rejoin = plan.need_rejoin;
        self.offsets.start(&add);
        self.offsets.auto_commit_from(self.now);
        let interval = self.beat_interval();
        self.beat
            .quicken(self.now, interval, &mut self.jitter, self.rounds_unsettled);
        self.record.assigned(self.now, &add);
        out.push(Output::Assign {
            added: add,
            owned: self.ownership.owned.clone(),
            generation: self.membership.generation,
            protocol: self.membership.protocol.clone(),
            explicit: told.trailer.is_some(),
        });
        self.revoke(&plan.revoke, self.revoke_reason(&plan.revoke), out);
        self.state = if self.ownership.release.is_some() {
            State::Reconciling
        } else {
            State::Stable
        };
        self.after_round(&foreign, joined_topics, out);
        if defect!(EverybodyRejoinsAtOnce) && self.need_rejoin {
            let cause = Cause::new(JoinReason::Unknown, "another round follows");
            self.rejoin_for(cause, out);
        }
    }

    /// Takes out of the assignment what the member does not want, and returns it (KAFKA-9181: what is subscribed is the
    /// application's business, not the leader's). A topic that matches the pattern is wanted, even if the leader knows it sooner.
    fn drop_foreign(
        &mut self,
        told: &mut Told,
        claimed: &Partitions,
        joined_topics: &mut BTreeSet<Topic>,
    ) -> Partitions {
        let mut foreign = told.assigned.minus(claimed);
        foreign.retain(|topic, _| !self.wanted.contains(topic));
        if let Some(Subscription::Pattern(pattern)) = &self.subscription
            && let Ok(pattern) = Member::compile(pattern)
        {
            let news: Vec<Topic> = foreign
                .topics()
                .filter(|topic| pattern.is_match(topic))
                .cloned()
                .collect();
            for topic in news {
                foreign.remove_topic(&topic);
                self.wanted.insert(topic.clone());
                joined_topics.insert(topic);
            }
        }
        told.assigned = told.assigned.minus(&foreign);
        foreign
    }

    fn revoke_reason(&self, partitions: &Partitions) -> RevokeReason {
        if self.closing.is_some() {
            RevokeReason::Closing
        } else if partitions.topics().all(|topic| {
            !self.wanted.contains(topic)
                || (self.leading.is_some() && self.topics.get(topic).is_none())
        }) {
            RevokeReason::Unsubscribed
        } else {
            RevokeReason::Reassigned
        }
    }

    /// What may call for another join as soon as a round is over.
    fn after_round(
        &mut self,
        foreign: &Partitions,
        joined_topics: BTreeSet<Topic>,
        out: &mut Vec<Output>,
    ) {
        self.joined_topics = joined_topics;
        if let Some(closing) = &mut self.closing {
            // This round was the one that handed over, or it began before the close: then there is time for one that does.
            let handed_over = self.joined_topics.is_empty();
            closing.drain &= !handed_over;
            return;
        }
        let changed = self.joined_topics != self.wanted;
        if !foreign.is_empty() {
            let again = changed || !std::mem::replace(&mut self.refused_foreign, true);
            out.push(Output::Warning {
                code: None,
                text: format!(
                    "expected partitions of the subscribed topics, got {foreign} too; not taken"
                ),
            });
            if again {
                self.rejoin_for(
                    Cause::new(
                        JoinReason::SubscriptionChanged,
                        "received assignment does not match the current subscription",
                    ),
                    out,
                );
            }
            return;
        }
        self.refused_foreign = false;
        if changed {
            let cause = Cause::new(JoinReason::SubscriptionChanged, "subscription has changed");
            self.rejoin_for(cause, out);
        } else if let Some(cause) = self.asked_for.take() {
            self.rejoin_for(cause, out);
        } else {
            self.rejoin_for_topics(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[i32]) -> Partitions {
        numbers.iter().map(|n| (Topic::from("t"), *n)).collect()
    }

    fn told(assigned: &[i32], trailer: Option<(&[i32], AssignmentError)>) -> Told {
        Told {
            assigned: set(assigned),
            trailer: trailer.map(|(revoked, error)| (set(revoked), error)),
        }
    }

    #[test]
    fn plain_takes_what_is_missing_away() {
        let plan = reconcile(&set(&[0, 1]), &set(&[0, 1]), &told(&[1, 2], None));
        let expected = Plan {
            add: set(&[2]),
            revoke: set(&[0]),
            need_rejoin: false,
        };
        assert_eq!(plan, Ok(expected));
    }

    #[test]
    fn explicit_takes_away_what_it_says() {
        let plan = reconcile(
            &set(&[0, 1]),
            &set(&[0, 1]),
            &told(&[1, 2], Some((&[0, 9], AssignmentError::NeedRejoin))),
        );
        let expected = Plan {
            add: set(&[2]),
            revoke: set(&[0]),
            need_rejoin: true,
        };
        assert_eq!(plan, Ok(expected));
    }

    /// The draft of KIP-429: nothing is given away silently.
    #[test]
    fn explicit_that_forgets_a_claim_is_an_error() {
        let none = AssignmentError::None;
        let error = reconcile(&set(&[0, 1]), &set(&[0, 1]), &told(&[1], Some((&[], none))));
        assert!(error.is_err_and(
            |text| text.contains("expected at least t-0 t-1, got t-1") || text.contains("t-0")
        ));
        // What was lost since the claim is no longer asked for.
        let plan = reconcile(&set(&[1]), &set(&[0, 1]), &told(&[1], Some((&[], none))));
        assert!(plan.is_ok_and(|plan| plan.add.is_empty() && plan.revoke.is_empty()));
        let unknown = AssignmentError::Unknown(7);
        let error = reconcile(&set(&[]), &set(&[]), &told(&[1], Some((&[], unknown))));
        assert!(error.is_err_and(|text| text.contains("code 7")));
    }
}
