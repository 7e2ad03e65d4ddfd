//! The member's view of a rebalance: why, when, how many rounds, and what it gained and gave.

use super::Output;
use super::state::Cause;
use crate::history::{self, CauseKind, Move, Participation, RebalanceRecord};
use crate::partitions::{Partitions, TopicPartition};
use crate::time::Timestamp;

/// A rebalance that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Records {
    open: Option<Open>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Open {
    started: Timestamp,
    causes: Vec<Cause>,
    rounds: u32,
    joined: Option<Timestamp>,
    generation: i32,
    moves: Vec<Move>,
}

impl Records {
    /// A join begins: a rebalance, or another round of one.
    pub(super) fn begin(&mut self, now: Timestamp, cause: &Cause) {
        let open = self.open.get_or_insert_with(|| Open {
            started: now,
            causes: Vec::new(),
            rounds: 0,
            joined: None,
            generation: -1,
            moves: Vec::new(),
        });
        // A coordinator that refuses for hours must not fill the memory.
        if open.causes.len() < 16 {
            open.causes.push(cause.clone());
        }
    }

    /// The member has a place in this generation.
    pub(super) fn round(&mut self, now: Timestamp, generation: i32) {
        if let Some(open) = &mut self.open {
            open.rounds += 1;
            open.joined = Some(now);
            open.generation = generation;
        }
    }

    /// An assignment was applied.
    pub(super) fn assigned(&mut self, added: &Partitions, revoked: &Partitions, id: &str) {
        if let Some(open) = &mut self.open {
            let one = |(topic, partition): (&crate::partitions::Topic, i32)| TopicPartition {
                topic: topic.clone(),
                partition,
            };
            open.moves
                .extend(added.iter().map(one).map(|partition| Move {
                    partition,
                    from: None,
                    to: Some(id.to_owned()),
                    ownerless_ms: None,
                }));
            open.moves
                .extend(revoked.iter().map(one).map(|partition| Move {
                    partition,
                    from: Some(id.to_owned()),
                    to: None,
                    ownerless_ms: None,
                }));
        }
    }

    /// The rebalance has ended for this member.
    pub(super) fn end(&mut self, now: Timestamp, who: Who<'_>, out: &mut Vec<Output>) {
        let Some(open) = self.open.take() else {
            return;
        };
        out.push(Output::Rebalanced(Box::new(RebalanceRecord {
            group: who.group.to_owned(),
            generation: open.generation,
            protocol: Some(who.protocol.to_owned()),
            causes: open
                .causes
                .into_iter()
                .map(|cause| history::Cause {
                    kind: CauseKind::Joined(cause.reason),
                    member_id: who.member_id.to_owned(),
                    instance_id: who.instance_id.map(str::to_owned),
                    client_id: who.client_id.to_owned(),
                    client_host: String::new(),
                    stated: true,
                    text: Some(cause.text.into_owned()),
                })
                .collect(),
            started: open.started,
            ended: now,
            rounds: open.rounds,
            members: vec![Participation {
                member_id: who.member_id.to_owned(),
                instance_id: who.instance_id.map(str::to_owned),
                client_id: who.client_id.to_owned(),
                joined: open.joined,
                synced: Some(now),
            }],
            waited_for: Vec::new(),
            moves: open.moves,
            minimum_moves: None,
        })));
    }
}

/// Whose view it is.
pub(super) struct Who<'a> {
    pub(super) group: &'a str,
    pub(super) protocol: &'a str,
    pub(super) member_id: &'a str,
    pub(super) instance_id: Option<&'a str>,
    pub(super) client_id: &'a str,
}
