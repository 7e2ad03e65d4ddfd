//! The loop around the member: waits for the first of answers, commands, metadata and the deadline, makes one input of it, lets
//! the member handle it, and performs the outputs in order. No decision of the protocol is made here.

use super::application::Application;
use super::event::{Assigned, Event, Lost, Revocation};
use super::lanes::{Arrival, Lanes};
use super::{Command, image};
use crate::cluster::{Cluster, lock};
use crate::error::Error;
use crate::fetch::{Fetcher, Position};
use crate::metadata::View;
use kohort_group::member::{
    CommitError, CommitId, Fatal, Input, Member, Offset, Output, StateName, Subscription,
};
use kohort_group::partitions::{Partitions, Topic, TopicPartition};
use kohort_group::time::Timestamp;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

/// After so many failures in a row to find the coordinator the log says so.
const FAILURES_TO_MENTION: u32 = 3;

pub(super) type CommitOutcome = Result<BTreeMap<TopicPartition, Offset>, CommitError>;

pub(super) struct Driver {
    pub(super) member: Member,
    pub(super) cluster: Arc<Cluster>,
    pub(super) fetcher: Fetcher,
    pub(super) application: Arc<Mutex<Application>>,
    pub(super) events: mpsc::UnboundedSender<Event>,
    /// For the revocations that are handed out.
    pub(super) commands_of: mpsc::WeakUnboundedSender<Command>,
    pub(super) commands: mpsc::UnboundedReceiver<Command>,
    pub(super) failures: mpsc::UnboundedReceiver<Error>,
    pub(super) arrivals: mpsc::UnboundedReceiver<Arrival>,
    pub(super) lanes: Lanes,
    pub(super) started: Instant,
    pub(super) subscription: Option<Subscription>,
    pub(super) watched: Watched,
    pub(super) commits: BTreeMap<CommitId, oneshot::Sender<CommitOutcome>>,
    pub(super) next_commit: u64,
    pub(super) searches_failed: u32,
    pub(super) ended: bool,
    /// The application has asked for the end.
    pub(super) closing: bool,
    /// Nobody is left who could say anything.
    pub(super) abandoned: bool,
}

/// The metadata that the member has asked for.
pub(super) struct Watched {
    pub(super) views: watch::Receiver<Arc<View>>,
    /// The first view that covers it; `None` until the member asks.
    pub(super) from_serial: Option<u64>,
    /// What was told about it already.
    pub(super) mentioned: BTreeSet<Topic>,
}

enum Happening {
    Arrival(Arrival),
    Command(Option<Command>),
    Failure(Error),
    View,
    Due,
}

impl Driver {
    pub(super) async fn run(mut self) {
        while !self.ended {
            let happening = self.wait().await;
            self.hear_application();
            match happening {
                Happening::Arrival(arrival) => self.on_arrival(arrival),
                Happening::Command(command) => self.on_command(command),
                Happening::Failure(error) => self.fail(error),
                Happening::View => self.on_view(),
                Happening::Due => self.on_due(),
            }
        }
    }

    fn now(&self) -> Timestamp {
        let elapsed = self.started.elapsed().as_millis();
        Timestamp(u64::try_from(elapsed).unwrap_or(u64::MAX))
    }

    fn instant(&self, moment: Timestamp) -> Instant {
        // Deadlines may be decades away.
        self.started + Duration::from_millis(moment.0.min(u64::from(u32::MAX)))
    }

    async fn wait(&mut self) -> Happening {
        // What is overdue goes first: a process that was stopped must not believe old answers.
        let deadline = self.member.deadline();
        if deadline.is_some_and(|due| due <= self.now()) {
            return Happening::Due;
        }
        let due = deadline.map(|due| self.instant(due));
        tokio::select! {
            biased;
            Some(arrival) = self.arrivals.recv() => Happening::Arrival(arrival),
            command = self.commands.recv(), if !self.abandoned => Happening::Command(command),
            Some(error) = self.failures.recv() => Happening::Failure(error),
            Ok(()) = self.watched.views.changed() => Happening::View,
            () = sleep_until(due) => Happening::Due,
        }
    }

    fn handle(&mut self, input: Input) {
        let mut outputs = Vec::new();
        let now = self.now();
        tracing::trace!("{now} {input:?}");
        self.member.handle(now, input, &mut outputs);
        for output in outputs {
            tracing::trace!("{now} -> {output:?}");
            self.perform(output);
        }
        let fenced = self.member.state() == StateName::Fenced;
        lock(&self.application).awaited = fenced;
    }

    /// What the application has done meanwhile goes before everything else.
    fn hear_application(&mut self) {
        let (consumed, alive) = lock(&self.application).take();
        for (what, position) in consumed {
            self.handle(Input::Consumed(what, position));
        }
        if alive {
            self.handle(Input::Polled);
        }
    }

    fn on_due(&mut self) {
        let overdue = self.member.deadline().is_some_and(|due| due <= self.now());
        // Hearing the application may have put the poll deadline off.
        if let Some(alarm) = self.member.wakeup().filter(|_| overdue) {
            self.handle(Input::Alarm(alarm));
        }
    }

    fn on_arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Answer {
                lane,
                era,
                token,
                outcome,
            } => {
                if self.lanes.is_current(lane, era) {
                    self.handle(match outcome {
                        Ok(response) => Input::Response(token, response),
                        Err(failure) => Input::Failed(token, failure),
                    });
                }
            }
            Arrival::Coordinator(Ok((node, versions))) => {
                if self.searches_failed >= FAILURES_TO_MENTION {
                    tracing::warn!("the group's coordinator is broker {node}; going on");
                }
                self.searches_failed = 0;
                self.lanes.found(node);
                self.handle(Input::CoordinatorFound { node, versions });
            }
            Arrival::Coordinator(Err(code)) => {
                self.searches_failed += 1;
                if self.searches_failed == FAILURES_TO_MENTION {
                    tracing::warn!("no coordinator for the group yet ({code}); trying again");
                }
                self.handle(Input::CoordinatorNotFound(code));
            }
        }
    }

    fn on_command(&mut self, command: Option<Command>) {
        match command {
            Some(Command::Subscribe(subscription)) => {
                self.subscription = Some(subscription.clone());
                self.handle(Input::Subscribe(subscription));
            }
            Some(Command::Unsubscribe) => {
                self.subscription = None;
                self.handle(Input::Unsubscribe);
            }
            Some(Command::Commit { offsets, outcome }) => {
                let id = CommitId(self.next_commit);
                self.next_commit += 1;
                self.commits.insert(id, outcome);
                self.handle(Input::Commit {
                    id,
                    offsets,
                    retry: true,
                });
            }
            Some(Command::Released(partitions)) => self.handle(Input::Released(partitions)),
            Some(Command::Rebalance(reason)) => self.handle(Input::RequestRebalance(reason)),
            Some(Command::Polled) => {}
            Some(Command::Close { drain }) => {
                self.closing = true;
                self.handle(Input::Close { drain });
            }
            // Everybody is gone. Closing a second time would not wait for the leave to be sent.
            None => {
                self.abandoned = true;
                if !self.closing {
                    self.handle(Input::Close { drain: false });
                }
            }
        }
    }

    /// The shell itself cannot go on.
    fn fail(&mut self, error: Error) {
        self.fetcher.halt();
        self.tell(Event::Error(error));
        self.handle(Input::Close { drain: false });
    }

    fn on_view(&mut self) {
        let view = self.watched.views.borrow_and_update().clone();
        if self
            .watched
            .from_serial
            .is_none_or(|first| view.serial < first)
        {
            return;
        }
        if let Some(error) = self.refused_topic(&view) {
            return self.fail(error);
        }
        self.mention_missing(&view);
        self.fetcher.warm_up(&view.topics.keys().cloned().collect());
        self.handle(Input::Topics(image(&view)));
    }

    /// A subscribed topic that will never be readable.
    fn refused_topic(&self, view: &View) -> Option<Error> {
        let Some(Subscription::Topics(topics)) = &self.subscription else {
            return None;
        };
        topics.iter().find_map(|topic| {
            let code = view.topics.get(topic)?.error;
            matches!(
                code,
                ErrorCode::TopicAuthorizationFailed | ErrorCode::InvalidTopicException
            )
            .then(|| Error::broker(ApiKey::Metadata, code, format!("topic {topic}")))
        })
    }

    fn mention_missing(&mut self, view: &View) {
        let Some(Subscription::Topics(topics)) = &self.subscription else {
            return;
        };
        for topic in topics {
            let Some(found) = view.topics.get(topic) else {
                continue;
            };
            if found.error.is_none() {
                // One that was there and is deleted is no mistake in a name.
                self.watched.mentioned.insert(topic.clone());
            }
            let missing = found.error == ErrorCode::UnknownTopicOrPartition;
            if missing && self.watched.mentioned.insert(topic.clone()) {
                self.tell(Event::Warning {
                    code: Some(ErrorCode::UnknownTopicOrPartition),
                    text: format!(
                        "topic {topic} does not exist (yet): create it, or correct the name"
                    ),
                });
            }
        }
    }

    fn tell(&self, event: Event) {
        // An application that is gone needs no events; a revocation that it would have got is released by its drop.
        let _ = self.events.send(event);
    }

    fn perform(&mut self, output: Output) {
        match output {
            Output::Send {
                token,
                lane,
                version,
                request,
            } => self.lanes.send(lane, token, version, request),
            Output::Disconnect(lane) => self.lanes.disconnect(lane),
            Output::FindCoordinator => self.lanes.search(),
            Output::RefreshTopics(topics) => {
                if let Some(topics) = &topics {
                    self.fetcher.warm_up(topics);
                }
                self.watched.from_serial = Some(self.cluster.set_interest(topics));
            }
            Output::Assign {
                added,
                owned,
                generation,
                protocol,
                explicit,
            } => {
                self.fetcher.reserve(&added);
                self.fetcher.warm_up(&added.topics().cloned().collect());
                self.tell(Event::Assigned(Assigned {
                    added,
                    owned,
                    generation,
                    protocol,
                    explicit,
                }));
            }
            Output::Start(positions) => self.start(positions),
            Output::Revoke {
                partitions,
                reason,
                deadline,
                generation,
            } => {
                self.fetcher.stop(&partitions);
                if let Some(commands) = self.commands_of.upgrade() {
                    self.tell(Event::Revoked(Revocation {
                        partitions,
                        reason,
                        deadline: self.instant(deadline),
                        generation,
                        commands,
                    }));
                } else {
                    self.handle(Input::Released(partitions));
                }
            }
            Output::Revoked { .. } => {}
            Output::Lost {
                partitions,
                why,
                generation,
            } => self.lose(partitions, why, generation),
            Output::Committed(id, outcome) => {
                if let Some(waiting) = self.commits.remove(&id) {
                    let _ = waiting.send(outcome);
                }
            }
            Output::AutoCommitFailed(error) => self.tell(Event::Warning {
                code: match error {
                    CommitError::Refused(code) => Some(code),
                    CommitError::Rebalancing | CommitError::NotOwned(_) | CommitError::Unknown => {
                        None
                    }
                },
                text: format!("positions were not committed: {error}"),
            }),
            Output::Rebalancing { cause, deadline } => {
                let deadline = self.instant(deadline);
                self.tell(Event::Rebalance { cause, deadline });
            }
            Output::Rebalanced(record) => self.tell(Event::Rebalanced(record)),
            Output::Warning { code, text } => self.tell(Event::Warning { code, text }),
            Output::Fatal(fatal) => {
                self.fetcher.halt();
                self.tell(Event::Error(fatal_error(fatal)));
                self.handle(Input::Close { drain: false });
            }
            Output::Closed => {
                self.ended = true;
                self.tell(Event::Closed);
            }
        }
    }

    fn start(&self, positions: BTreeMap<TopicPartition, Option<Offset>>) {
        for (what, committed) in positions {
            let from = committed.map(|offset| Position {
                offset: offset.offset,
                leader_epoch: offset.leader_epoch,
            });
            self.fetcher.start(&what, from);
        }
    }

    fn lose(&mut self, partitions: Partitions, why: String, generation: i32) {
        self.fetcher.stop(&partitions);
        self.tell(Event::Lost(Lost {
            partitions,
            why,
            generation,
        }));
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn fatal_error(fatal: Fatal) -> Error {
    if fatal.code == Some(ErrorCode::FencedInstanceId) {
        return Error::Fenced(fatal.to_string());
    }
    Error::Coordinator {
        group: fatal.group,
        code: fatal.code,
        reason: match fatal.api {
            Some(api) => format!("{}: {}", api.name(), fatal.reason),
            None => fatal.reason,
        },
    }
}
