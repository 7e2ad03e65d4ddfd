//! The leader's part of a round: watch the group's topics, share the partitions out.

use super::state::State;
use super::watch::Leading;
use super::{Member, Output};
use crate::assign::Subscriber;
use crate::assign::decode::{candidate, encode_plan};
use crate::assign::leader::{Candidate, Situation, lead};
use crate::partitions::{Partitions, Topic};
use kohort_wire::embedded::Subscription;
use kohort_wire::messages::{JoinGroupResponseMember, SyncGroupAssignment};
use std::collections::{BTreeMap, BTreeSet};

/// After so many follow-up rounds of one cause that each moved something else, the present owners keep what they have.
const FOLLOW_UP_ROUNDS: u32 = 3;

/// Whether the rounds of one cause come to an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Settling {
    /// Members and their topics: if they are others, that is another cause.
    members: BTreeMap<String, Vec<Topic>>,
    /// What the last round withheld.
    withheld: Partitions,
    /// Follow-up rounds that withheld something else.
    rounds: u32,
}

impl Settling {
    fn round(&mut self, members: BTreeMap<String, Vec<Topic>>, withheld: Partitions) {
        let same_cause = self.members == members && !self.withheld.is_empty();
        if !same_cause || withheld.is_empty() {
            self.rounds = 0;
        } else if !self.withheld.is_superset_of(&withheld) {
            // The same partitions again are a sync that came too late, and no fault of the assignor's.
            self.rounds += 1;
        }
        self.members = members;
        self.withheld = withheld;
    }
}

impl Member {
    /// The leader watches the topics of all members, not only its own (KAFKA-9181).
    pub(super) fn watch_group(&mut self, out: &mut Vec<Output>) {
        let State::Syncing(syncing) = &self.state else {
            return;
        };
        let topics: BTreeSet<Topic> = syncing
            .members
            .iter()
            .filter_map(|member| Subscription::decode(member.metadata.clone()).ok())
            .flat_map(|subscription| subscription.topics)
            .collect();
        self.leading = Some(Leading::new(topics));
        self.watch(out);
    }

    /// The leader's step: what each member is told.
    ///
    /// # Errors
    /// In words, if the assignor's answer is none.
    pub(super) fn share_out(
        &mut self,
        out: &mut Vec<Output>,
    ) -> Result<Vec<SyncGroupAssignment>, String> {
        let State::Syncing(syncing) = &self.state else {
            return Ok(Vec::new());
        };
        let name = &self.membership.protocol;
        let Some(assignor) = self.config.assignors.iter().find(|a| a.name() == name) else {
            return Ok(Vec::new());
        };
        let members: Vec<Candidate> = syncing
            .members
            .iter()
            .map(|member| self.read(member, out))
            .collect();
        let told = members
            .iter()
            .map(|one| {
                (
                    one.subscriber.member_id.clone(),
                    one.subscriber.topics.clone(),
                )
            })
            .collect();
        let keep_owners = self.settling.rounds >= FOLLOW_UP_ROUNDS && self.settling.members == told;
        let round = lead(Situation {
            members,
            topics: &self.topics,
            assignor: assignor.as_ref(),
            keep_owners,
        })
        .map_err(|error| error.to_string())?;
        if keep_owners {
            out.push(Output::Warning {
                code: None,
                text: format!(
                    "assignor {name} moved other partitions in each of {FOLLOW_UP_ROUNDS} follow-up rounds, where one was expected; the present owners keep what they have"
                ),
            });
        }
        self.settling.round(told, round.withheld);
        Ok(round
            .plans
            .iter()
            .map(|(member_id, plan)| SyncGroupAssignment {
                member_id: member_id.clone(),
                assignment: encode_plan(plan),
            })
            .collect())
    }

    /// What a member said; one that cannot be understood gets nothing, and hurts nobody else.
    fn read(&self, member: &JoinGroupResponseMember, out: &mut Vec<Output>) -> Candidate {
        let instance_id = member.group_instance_id.as_deref();
        candidate(
            &member.member_id,
            instance_id,
            member.metadata.clone(),
            &self.membership.protocol,
        )
        .unwrap_or_else(|error| {
            out.push(Output::Warning {
                code: None,
                text: format!(
                    "expected a subscription from member {}, got bytes that cannot be read: {error}; it gets no partitions",
                    member.member_id
                ),
            });
            Candidate {
                subscriber: Subscriber {
                    member_id: member.member_id.clone(),
                    instance_id: instance_id.map(str::to_owned),
                    ..Subscriber::default()
                },
                ..Candidate::default()
            }
        })
    }
}
