//! The topics: which the member wants, and which it watches for the group as its leader.

use super::state::{Cause, State};
use super::{Member, Output, Subscription};
use crate::partitions::Topic;
use crate::reason::JoinReason;
use crate::time::Timestamp;
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long a round waits for topics to be looked up; then it goes on with what is known, and a later change calls for another.
const PATIENCE_MS: u64 = 5_000;

/// What of a topic makes a difference to an assignment: its partitions and, if racks matter, where they are.
type Shape = (usize, Vec<BTreeSet<Arc<str>>>);

/// What a leader watches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leading {
    /// The topics of all members.
    topics: BTreeSet<Topic>,
    /// As they were when the partitions were shared out.
    snapshot: Option<BTreeMap<Topic, Shape>>,
}

impl Leading {
    pub(super) fn new(topics: BTreeSet<Topic>) -> Self {
        Self {
            topics,
            snapshot: None,
        }
    }

    fn knows_nothing(&self) -> bool {
        self.snapshot.is_none()
    }
}

/// What was asked of the shell's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    /// What was asked for last; the inner `None` means all topics.
    asked: Option<Option<BTreeSet<Topic>>>,
    /// Whether it was answered since.
    fresh: bool,
    /// Until when a round waits for the answer.
    due: Timestamp,
}

impl Watch {
    pub(super) fn time(&mut self) -> &mut Timestamp {
        &mut self.due
    }
}

impl Member {
    /// Checks a subscription's pattern.
    pub(super) fn compile(pattern: &str) -> Result<Regex, String> {
        Regex::new(&format!("^(?:{pattern})$")).map_err(|error| {
            format!("expected a regular expression for topic names, got {pattern:?}: {error}")
        })
    }

    /// The wanted topics, as the subscription and the topics that exist say.
    fn resolve(&self) -> BTreeSet<Topic> {
        match &self.subscription {
            None => BTreeSet::new(),
            Some(Subscription::Topics(topics)) => topics.clone(),
            Some(Subscription::Pattern(pattern)) => match Self::compile(pattern) {
                Ok(regex) => self
                    .topics
                    .iter()
                    .filter(|(name, info)| !info.internal && regex.is_match(name))
                    .map(|(name, _)| name.clone())
                    .collect(),
                Err(_) => BTreeSet::new(),
            },
        }
    }

    /// The application wants these topics.
    pub(super) fn on_subscribe(&mut self, subscription: Subscription, out: &mut Vec<Output>) {
        if let Subscription::Pattern(pattern) = &subscription
            && let Err(text) = Self::compile(pattern)
        {
            out.push(Output::Warning {
                code: None,
                text: format!("{text}; the subscription stays as it was"),
            });
            return;
        }
        if matches!(self.state, State::Fatal | State::Closed) || self.closing.is_some() {
            return;
        }
        self.subscription = Some(subscription);
        self.wanted = self.resolve();
        self.watch(out);
        self.on_polled(out);
        if self.state == State::Unsubscribed {
            let cause = if self.config.group_instance_id.is_some() {
                Cause::new(JoinReason::Restart, "started with a group.instance.id")
            } else {
                Cause::new(JoinReason::NewMember, "new member")
            };
            self.begin_join(cause, out);
        } else {
            self.rejoin_if_changed(JoinReason::SubscriptionChanged, out);
        }
    }

    /// The wanted topics may have changed.
    fn rejoin_if_changed(&mut self, reason: JoinReason, out: &mut Vec<Output>) {
        self.prepare_again();
        if self.joined_topics == self.wanted {
            return;
        }
        let text = match reason {
            JoinReason::TopicMetadataChanged => "topics that match the pattern have changed",
            _ => "subscription has changed",
        };
        if self.state == State::Stable {
            self.begin_join(Cause::new(reason, text), out);
        }
    }

    /// Asks for the topics that the member must know, if they are others than before.
    pub(super) fn watch(&mut self, out: &mut Vec<Output>) {
        let all = match &self.subscription {
            None => return,
            Some(Subscription::Pattern(_)) => None,
            Some(Subscription::Topics(topics)) => {
                let mut all = topics.clone();
                if let Some(leading) = self.leading.as_ref().filter(|_| !defect!(WatchesOwnTopics))
                {
                    all.extend(leading.topics.iter().cloned());
                }
                Some(all)
            }
        };
        if self.watching.asked.as_ref() != Some(&all) {
            self.watching.asked = Some(all);
            self.refresh_topics(out);
        }
    }

    /// Asks for the topics again.
    pub(super) fn refresh_topics(&mut self, out: &mut Vec<Output>) {
        if let Some(asked) = &self.watching.asked {
            out.push(Output::RefreshTopics(asked.clone()));
            self.watching.fresh = false;
            self.watching.due = self.now + PATIENCE_MS;
        }
    }

    /// Whether topics were asked for, and it is worth waiting for them.
    pub(super) fn awaits_topics(&self) -> bool {
        let matters = match &self.state {
            State::Joining(_) => matches!(self.subscription, Some(Subscription::Pattern(_))),
            State::Syncing(_) => true,
            State::Unsubscribed
            | State::Reconciling
            | State::Stable
            | State::Leaving(_)
            | State::Fenced
            | State::Fatal
            | State::Closed => false,
        };
        matters && !self.watching.fresh && self.now < self.watching.due
    }

    /// Until when a round waits for topics, if it does.
    pub(super) fn topics_due(&self) -> Option<Timestamp> {
        self.awaits_topics().then_some(self.watching.due)
    }

    /// The shell's metadata has changed, or was asked for.
    pub(super) fn on_topics(&mut self, topics: crate::topics::TopicImage, out: &mut Vec<Output>) {
        self.topics = topics;
        self.watching.fresh = true;
        if self.leading.as_ref().is_some_and(Leading::knows_nothing) {
            self.snapshot();
        }
        if matches!(self.subscription, Some(Subscription::Pattern(_))) {
            self.wanted = self.resolve();
            self.rejoin_if_changed(JoinReason::TopicMetadataChanged, out);
        }
        if self.state == State::Stable {
            self.rejoin_for_topics(out);
        }
    }

    fn shapes(&self) -> BTreeMap<Topic, Shape> {
        let Some(leading) = &self.leading else {
            return BTreeMap::new();
        };
        let racks_matter = self.config.rack.is_some();
        leading
            .topics
            .iter()
            .filter_map(|topic| {
                let info = self.topics.get(topic)?;
                let racks = if racks_matter {
                    info.racks.clone()
                } else {
                    Vec::new()
                };
                Some((topic.clone(), (info.racks.len(), racks)))
            })
            .collect()
    }

    /// The leader remembers what it has shared out.
    pub(super) fn snapshot(&mut self) {
        let shapes = self.shapes();
        if let Some(leading) = &mut self.leading {
            leading.snapshot = Some(shapes);
        }
    }

    /// One that was told not to assign watches too (KIP-814). It did not wait for the topics, and may see them later.
    pub(super) fn snapshot_later(&mut self) {
        if self.watching.fresh {
            self.snapshot();
        }
    }

    /// A leader asks for a rebalance when the group's topics are not what they were.
    pub(super) fn rejoin_for_topics(&mut self, out: &mut Vec<Output>) {
        let changed = self
            .leading
            .as_ref()
            .and_then(|leading| leading.snapshot.as_ref())
            .is_some_and(|snapshot| *snapshot != self.shapes());
        if changed {
            let cause = Cause::new(
                JoinReason::TopicMetadataChanged,
                "cached metadata has changed",
            );
            self.rejoin_for(cause, out);
        }
    }
}
