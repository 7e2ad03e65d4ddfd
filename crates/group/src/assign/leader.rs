//! The leader's step: from what members said when they joined to what each of them is told.
//!
//! ```text
//!   claims ──▶ whose claim stands ─┐
//!   Assignor::assign ──▶ who shall have what in the end (checked) ─┴─▶ for each partition:
//!        nobody claims it                 → to its new owner, at once
//!        its owner's claim is the one     → stays
//!        another's claim, or a contested  → nobody has it this round; who claimed it is told to revoke it
//! ```
//!
//! So no partition ever goes to a new owner in a round in which another member still claims it, whatever the assignor thinks.
//!
//! **What members are told.** A marked member (it knows the explicit form) gets a [`Trailer`]: it must revoke whatever it
//! claimed and does not get, whatever the reason (moved, deleted, no longer subscribed, claimed twice, claimed with a newer
//! claim against it); and it is told that another round follows if anything was withheld. Everybody else gets the same
//! partitions without it, and finds out what to revoke by comparison, as KIP-429 shipped. Under an eager assignor everybody has
//! given up everything before joining, so its answer is handed on as it is, and what members claim there means nothing.
//!
//! **Mixed groups.** A member that claims nothing is either eager (it gave everything up before it joined, and it will do so
//! again in a follow-up round), or new. The bytes do not say which: an eager Java client also writes subscription version 3.
//! What is safe does not depend on it, since withholding looks at claims alone and who claims nothing can lose nothing. Nor does
//! it depend on whether the assignor honours claims: one that ignores them gives the same answer again in the follow-up
//! round, when nothing is in the way any more, so that two rounds suffice. What does depend on it is the price. Where the
//! assignor keeps claims (`sticky`, `cooperative-sticky`), a join moves the little that it must, and pinning claims would only
//! starve whoever is new: an old member would keep everything, and nothing would ever make it let go. Where it ignores them,
//! each join reshuffles everything, and the follow-up round stops all eager members once more. So there, and only while
//! members that claim and members that do not are mixed, claims are *pinned*: who claims keeps exactly that, and the rest is shared
//! among **all** members by the assignor, in one round. If that leaves somebody with nothing to whom the assignor
//! would give something, nothing is pinned in this round, and the withholding does its work: nobody starves.
//!
//! Pinning also stops an assignor of which no answer ever settles: see [`Situation::keep_owners`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::check::{AssignError, check};
use super::claims::Claim;
use super::{Assignor, Question, Shares, Subscriber};
use crate::partitions::Partitions;
use crate::topics::TopicImage;

/// A member as the leader knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// What it said.
    pub subscriber: Subscriber,
    /// The version of its subscription.
    pub version: i16,
    /// Whether its user data carries the mark of the explicit form.
    pub marked: bool,
}

/// What a leader has before it when the join phase is over.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The members, as the coordinator listed them. One that is listed twice is one (franz-go 2d65fcb4).
    pub members: Vec<Candidate>,
    /// The topics that exist.
    pub topics: &'a TopicImage,
    /// The assignor of the selected protocol.
    pub assignor: &'a dyn Assignor,
    /// Whether to pin all claims that stand, because the assignor has moved partitions in every round of a series that
    /// should have ended long ago. The caller counts the rounds, and tells the user which assignor it was.
    pub keep_owners: bool,
}

/// What one member is told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Plan {
    /// Its partitions from now on.
    pub assigned: Partitions,
    /// What a marked member is told beside that; `None` for others, and under an eager assignor.
    pub trailer: Option<Trailer>,
}

/// What a marked member is told in so many words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trailer {
    /// What it claimed and must give up.
    pub revoked: Partitions,
    /// Whether another round follows.
    pub need_rejoin: bool,
}

/// The outcome of the leader's step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// What each member is told, by member id.
    pub plans: BTreeMap<String, Plan>,
    /// What each member shall have when everything has been handed over.
    pub shares: Shares,
    /// What nobody has until its claimants have let go. If it is not empty, another round follows.
    pub withheld: Partitions,
    /// Whether claims were pinned.
    pub pinned: bool,
}

/// Plans a round.
///
/// # Errors
/// [`AssignError`] if the assignor's answer is not one: a partition lost or given twice, a member that does not subscribe.
pub fn lead(situation: Situation<'_>) -> Result<Round, AssignError> {
    let Situation {
        members,
        topics,
        assignor,
        keep_owners,
    } = situation;
    let mut marked: BTreeMap<String, bool> = BTreeMap::new();
    let mut subscribers = Vec::with_capacity(members.len());
    for member in members {
        let mark = marked.entry(member.subscriber.member_id.clone());
        *mark.or_default() |= member.marked;
        subscribers.push(member.subscriber);
    }
    let subscribers: Vec<Subscriber> = super::problem::roster(&subscribers)
        .into_iter()
        .map(Cow::into_owned)
        .collect();
    let available = topics.partitions_of(subscribers.iter().flat_map(|one| &one.topics));
    let question = Question {
        subscribers: &subscribers,
        available: &available,
        topics,
    };
    if assignor.is_eager() {
        return Ok(Round::eager(ask(assignor, &question)?));
    }
    let claims = Claims::new(&question);
    let silent = |one: &&Subscriber| !marked[&one.member_id] && one.owned.is_empty();
    let silent = subscribers.iter().filter(silent).count();
    let mixed = silent > 0 && silent < subscribers.len();
    let may_pin = keep_owners || (mixed && !assignor.honours_claims());
    let (shares, pinned) = if may_pin {
        pinned_shares(assignor, &question, &claims, keep_owners)?
    } else {
        (ask(assignor, &question)?, false)
    };
    let mut withheld = claims.in_the_way(&question, &shares);
    if defect!(GivesMovedAtOnce) {
        withheld = Partitions::new();
    }
    let plans = subscribers
        .iter()
        .map(|one| {
            let mut assigned = shares.get(&one.member_id).cloned().unwrap_or_default();
            let waits = marked[&one.member_id] || !defect!(GivesMovedToPlain);
            if waits && !withheld.is_empty() {
                assigned.retain(|topic, number| !withheld.contains(topic, number));
            }
            let trailer = marked[&one.member_id].then(|| Trailer {
                revoked: if defect!(SupersetCheckLeftOut) {
                    Partitions::new()
                } else {
                    one.owned.minus(&assigned)
                },
                need_rejoin: !withheld.is_empty(),
            });
            (one.member_id.clone(), Plan { assigned, trailer })
        })
        .collect();
    Ok(Round {
        plans,
        shares,
        withheld,
        pinned,
    })
}

impl Round {
    fn eager(shares: Shares) -> Self {
        let plan = |(id, assigned): (&String, &Partitions)| {
            let plan = Plan {
                assigned: assigned.clone(),
                trailer: None,
            };
            (id.clone(), plan)
        };
        Self {
            plans: shares.iter().map(plan).collect(),
            shares,
            ..Self::default()
        }
    }
}

fn ask(assignor: &dyn Assignor, question: &Question<'_>) -> Result<Shares, AssignError> {
    let shares = assignor.assign(question);
    check(assignor.name(), question, &shares)?;
    Ok(shares)
}

/// Everybody keeps what it claims, and the assignor shares out the rest; unless that starves somebody and need not be.
fn pinned_shares(
    assignor: &dyn Assignor,
    question: &Question<'_>,
    claims: &Claims,
    at_any_price: bool,
) -> Result<(Shares, bool), AssignError> {
    let kept = claims.kept(question);
    let mut rest = question.available.clone();
    for set in &kept {
        rest = rest.minus(set);
    }
    let question_of_rest = Question {
        available: &rest,
        ..*question
    };
    let mut shares = ask(assignor, &question_of_rest)?;
    for (one, kept) in question.subscribers.iter().zip(&kept) {
        if let Some(share) = shares.get_mut(&one.member_id) {
            share.extend(kept);
        }
    }
    if !at_any_price && shares.values().any(Partitions::is_empty) {
        let free = ask(assignor, question)?;
        let starved = |(id, share): (&String, &Partitions)| {
            share.is_empty() && free.get(id).is_some_and(|share| !share.is_empty())
        };
        if shares.iter().any(starved) {
            return Ok((free, false));
        }
    }
    Ok((shares, true))
}

/// What all members claim of what may be given away, whether they still subscribe or not: who claims a partition may be
/// working on it.
struct Claims {
    /// For each available topic, the claim of each of its partitions.
    topics: Vec<Vec<Claim>>,
    /// For each available topic and partition, whether anybody claims it at all.
    claimed: Vec<Vec<bool>>,
}

impl Claims {
    /// Members are known by their place among the subscribers.
    fn new(question: &Question<'_>) -> Self {
        let numbers: BTreeMap<&str, (usize, &[i32])> = question
            .available
            .by_topic()
            .enumerate()
            .map(|(at, (topic, numbers))| (&**topic, (at, numbers)))
            .collect();
        let lengths = || question.available.by_topic().map(|(_, list)| list.len());
        let mut this = Self {
            topics: lengths().map(|n| vec![Claim::default(); n]).collect(),
            claimed: lengths().map(|n| vec![false; n]).collect(),
        };
        for (who, one) in question.subscribers.iter().enumerate() {
            for (topic, claimed) in one.owned.by_topic() {
                let Some((at, numbers)) = numbers.get(&**topic) else {
                    continue;
                };
                for number in claimed {
                    if let Ok(place) = numbers.binary_search(number) {
                        this.topics[*at][place].add(who as u32, one.generation);
                        this.claimed[*at][place] = true;
                    }
                }
            }
        }
        this
    }

    /// What each subscriber claims that it may keep: its claim stands, and it wants the topic.
    fn kept(&self, question: &Question<'_>) -> Vec<Partitions> {
        let mut kept = vec![Partitions::new(); question.subscribers.len()];
        for ((topic, numbers), claims) in question.available.by_topic().zip(&self.topics) {
            for (number, claim) in numbers.iter().zip(claims) {
                if let Some(who) = claim.holder()
                    && question.subscribers[who as usize].topics.contains(topic)
                {
                    kept[who as usize].insert(topic, *number);
                }
            }
        }
        kept
    }

    /// What cannot go to the member that shall have it, because somebody else's claim stands, or nobody's.
    fn in_the_way(&self, question: &Question<'_>, shares: &Shares) -> Partitions {
        let mut withheld = Partitions::new();
        for (at, (topic, numbers)) in question.available.by_topic().enumerate() {
            for (place, number) in numbers.iter().enumerate() {
                if !self.claimed[at][place] {
                    continue;
                }
                let stays = self.topics[at][place].holder().is_some_and(|who| {
                    let holder = &question.subscribers[who as usize].member_id;
                    let share = shares.get(holder);
                    share.is_some_and(|share| share.contains(topic, *number))
                });
                if !stays {
                    withheld.insert(topic, *number);
                }
            }
        }
        withheld
    }
}
