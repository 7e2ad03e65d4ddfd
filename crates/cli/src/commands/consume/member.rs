//! A member of a group.

use super::output::{Failed, Output};
use super::{Arguments, Commit, Order, PATIENCE, unless_closed, until, waiting_for_records};
use crate::failure::Failure;
use crate::stdout::unwritten;
use kohort::{
    CommitError, Consumer, Error, ErrorCode, Event, JoinReason, Lost, Offset, Partitions, Records,
    Revocation, Settings, TopicPartition,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// After a second signal the end may take so long.
const LAST_GRACE: Duration = Duration::from_millis(500);

type CommitOutcome = Result<BTreeMap<TopicPartition, Offset>, CommitError>;

struct Session {
    arguments: Arguments,
    group: String,
    output: Output,
    consumer: Consumer,
    owned: Partitions,
    /// Revocations that take their time.
    letting_go: BTreeMap<u64, Revocation>,
    next_revocation: u64,
    /// Which of them are over.
    let_go: mpsc::UnboundedSender<u64>,
    /// What has become of commits.
    committed: mpsc::UnboundedSender<CommitOutcome>,
    left: u64,
    closing: bool,
    failure: Option<Error>,
    /// When to say what is waited for, until something is assigned.
    mention_waiting: Option<Instant>,
    /// When to end whatever is still under way.
    give_up: Option<Instant>,
}

enum Step {
    On,
    Ended,
}

pub(super) async fn run(
    arguments: Arguments,
    settings: Settings,
    output: Output,
    mut orders: mpsc::UnboundedReceiver<Order>,
) -> Result<(), Failure> {
    let group = settings.group_id.clone().unwrap_or_default();
    let mut builder = Consumer::builder()
        .settings(settings)
        .topics(&arguments.topic);
    if let Some(pattern) = &arguments.pattern {
        builder = builder.pattern(pattern);
    }
    let Some(built) = unless_closed(builder.build(), &mut orders).await else {
        return Ok(());
    };
    let consumer = built?;
    let (let_go, mut over) = mpsc::unbounded_channel();
    let (committed, mut commits) = mpsc::unbounded_channel();
    let mut session = Session {
        left: arguments.count.unwrap_or(u64::MAX),
        arguments,
        group,
        output,
        consumer,
        owned: Partitions::new(),
        letting_go: BTreeMap::new(),
        next_revocation: 0,
        let_go,
        committed,
        closing: false,
        failure: None,
        mention_waiting: Some(Instant::now() + PATIENCE),
        give_up: None,
    };
    loop {
        let step = tokio::select! {
            biased;
            Some(order) = orders.recv() => session.obey(order),
            Some(id) = over.recv() => session.finish_revocation(id),
            Some(outcome) = commits.recv() => session.tell_commit(outcome),
            () = until(session.output.due()) => session.output.tell_records().map(|()| Step::On),
            () = until(session.give_up) => Ok(session.cut_short()),
            () = until(session.mention_waiting) => session.say_what_is_waited_for(),
            event = session.consumer.next() => session.on_event(event),
        };
        match step {
            Ok(Step::On) => {}
            Ok(Step::Ended) => break,
            Err(error) => return Err(session.end_unwritten(error).await),
        }
    }
    session
        .failure
        .map_or(Ok(()), |error| Err(Failure::failed(error)))
}

impl Session {
    fn obey(&mut self, order: Order) -> io::Result<Step> {
        match order {
            Order::Close if !self.closing => self.close(true),
            Order::Close | Order::CloseNow => {
                self.close(false);
                self.give_up = Some(Instant::now() + LAST_GRACE);
                for id in self.letting_go.keys() {
                    let _ = self.let_go.send(*id);
                }
            }
            Order::Commit => self.commit()?,
            Order::Pause => self.consumer.pause(None),
            Order::Resume => self.consumer.resume(None),
            Order::Rejoin => self.consumer.request_rebalance(JoinReason::Requested),
        }
        Ok(Step::On)
    }

    /// What could not be written was not consumed. The group is left, so that nobody waits for this member's session to end.
    async fn end_unwritten(mut self, error: io::Error) -> Failure {
        self.consumer.not_consumed();
        self.letting_go.clear();
        let _ = tokio::time::timeout(LAST_GRACE, self.consumer.close_now()).await;
        unwritten(error)
    }

    fn close(&mut self, drain: bool) {
        self.closing = true;
        self.mention_waiting = None;
        self.consumer.begin_close(drain);
    }

    /// What is committed because it was asked for has been told before: whoever reads it misses nothing if this process dies.
    fn commit(&mut self) -> io::Result<()> {
        self.output.tell_records()?;
        let (commit, committed) = (self.consumer.commit(), self.committed.clone());
        tokio::spawn(async move { committed.send(commit.await) });
        Ok(())
    }

    fn tell_commit(&mut self, outcome: CommitOutcome) -> io::Result<Step> {
        match outcome {
            Ok(offsets) => {
                let offsets: Vec<_> = offsets
                    .iter()
                    .map(|(what, at)| json!([&*what.topic, what.partition, at.offset]))
                    .collect();
                self.output
                    .event("committed", &[("offsets", offsets.into())])?;
            }
            Err(CommitError::Refused(code)) => {
                let message = format!("the commit was refused: {code}");
                self.output.error(Some(code), &message, false)?;
            }
            Err(error) => tracing::warn!("{error}"),
        }
        Ok(Step::On)
    }

    fn cut_short(&mut self) -> Step {
        let what = format!(
            "group {} was not left: its coordinator did not answer at once; what was not committed will be read again",
            self.group
        );
        self.failure.get_or_insert(Error::TimedOut { what });
        Step::Ended
    }

    fn say_what_is_waited_for(&mut self) -> io::Result<Step> {
        self.mention_waiting = None;
        if !self.owned.is_empty() {
            eprintln!("{}", waiting_for_records(&self.arguments));
            return Ok(Step::On);
        }
        eprintln!(
            "kohort: waiting for partitions of group {}: for its coordinator, for members that have to let go first, or for topics to appear",
            self.group
        );
        Ok(Step::On)
    }

    fn on_event(&mut self, event: Event) -> io::Result<Step> {
        match event {
            Event::Assigned(assigned) => {
                if !assigned.added.is_empty() && self.mention_waiting.is_some() {
                    self.mention_waiting = Some(Instant::now() + PATIENCE);
                }
                self.owned = assigned.owned.clone();
                self.output.assigned(&assigned)?;
            }
            Event::Revoked(revocation) => return self.let_go(revocation),
            Event::Lost(lost) => self.lose(&lost)?,
            Event::Records(records) => return self.take(&records),
            Event::AtEnd => {
                if self.arguments.at_end && !self.closing {
                    self.consumer.stop_delivery();
                    self.close(true);
                }
            }
            Event::Rebalance { cause, deadline } => self.output.rebalance(&cause, deadline)?,
            Event::Rebalanced(record) => self.output.rebalanced(&record)?,
            Event::Warning { code, text } => self.warn(code, &text)?,
            Event::Error(error) => {
                self.output.failure(&error)?;
                self.failure.get_or_insert(error);
            }
            Event::Closed => {
                self.output.event("closed", &[])?;
                self.output.tell_records()?;
                return Ok(Step::Ended);
            }
        }
        Ok(Step::On)
    }

    fn warn(&mut self, code: Option<ErrorCode>, text: &str) -> io::Result<()> {
        let missing = code == Some(ErrorCode::UnknownTopicOrPartition) && self.owned.is_empty();
        if !missing {
            return self.output.error(code, text, false);
        }
        if self.arguments.at_end {
            // There is no end of a topic that does not exist.
            let error = Error::Config(format!("{text}; --at-end does not wait for it"));
            self.output.failure(&error)?;
            self.failure.get_or_insert(error);
            self.close(false);
            return Ok(());
        }
        self.mention_waiting = None;
        eprintln!("kohort: {text}; waiting for it");
        self.output.error_event(code, text, false)
    }

    fn take(&mut self, records: &Records) -> io::Result<Step> {
        self.mention_waiting = None;
        if self.left == 0 {
            self.consumer.not_consumed();
            return Ok(Step::On);
        }
        match self.output.records(records, self.left) {
            Ok(count) => {
                self.output.write_values()?;
                self.left -= count;
                if self.left == 0 {
                    self.enough(records, count)?;
                }
                if self.arguments.commit == Some(Commit::Each) {
                    self.commit()?;
                }
            }
            Err(Failed::Output(error)) => return Err(error),
            Err(Failed::Records(error)) => {
                self.output.failure(&error)?;
                self.failure.get_or_insert(error);
                self.consumer.not_consumed();
                self.consumer.stop_delivery();
                self.close(false);
            }
        }
        Ok(Step::On)
    }

    /// As many as were asked for: what comes after them in the last batch was not consumed.
    fn enough(&mut self, records: &Records, taken: u64) -> io::Result<()> {
        self.consumer.stop_delivery();
        if taken < records.len() as u64 {
            let last = records.iter().nth(taken as usize);
            if let Some(Ok(next)) = last {
                self.consumer.consumed_before(next.offset);
            }
        }
        self.output.tell_records()?;
        if !self.closing {
            self.close(true);
        }
        Ok(())
    }

    fn let_go(&mut self, revocation: Revocation) -> io::Result<Step> {
        let id = self.next_revocation;
        self.next_revocation += 1;
        self.letting_go.insert(id, revocation);
        if self.arguments.revoke_ms == 0 || self.give_up.is_some() {
            return self.finish_revocation(id);
        }
        let (over, pause) = (
            self.let_go.clone(),
            Duration::from_millis(self.arguments.revoke_ms),
        );
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            let _ = over.send(id);
        });
        Ok(Step::On)
    }

    /// Says that letting go has ended, then ends it: nobody else can have the partitions before it was said.
    fn finish_revocation(&mut self, id: u64) -> io::Result<Step> {
        let Some(revocation) = self.letting_go.remove(&id) else {
            return Ok(Step::On);
        };
        let mut ended = Partitions::new();
        for (topic, partition) in revocation.partitions.iter() {
            // What was lost meanwhile has been told as lost.
            if self.owned.remove(topic, partition) {
                ended.insert(topic, partition);
            }
        }
        if !ended.is_empty() {
            self.output
                .revoked(&ended, revocation.generation, self.owned.len())?;
        }
        drop(revocation);
        Ok(Step::On)
    }

    fn lose(&mut self, lost: &Lost) -> io::Result<()> {
        let mut gone = Partitions::new();
        for (topic, partition) in lost.partitions.iter() {
            if self.owned.remove(topic, partition) {
                gone.insert(topic, partition);
            }
        }
        // A revocation of what is lost has nothing left to say.
        self.letting_go.retain(|_, revocation| {
            revocation
                .partitions
                .iter()
                .any(|(topic, number)| !lost.partitions.contains(topic, number))
        });
        if gone.is_empty() {
            return Ok(());
        }
        self.output.lost(&Lost {
            partitions: gone,
            ..lost.clone()
        })
    }
}
