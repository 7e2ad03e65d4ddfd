//! One coordinator and what drives it: inputs go in under a lock, outputs are performed in order, alarms are fed when due.
//!
//! ```text
//!   connection ─ ask ─▶ lock ─▶ Coordinator::handle ─▶ outputs ─┬─ Append     ─▶ one record batch ─▶ Appended back in
//!   timer task ─ alarm ─▶                                        ├─ Reply      ─▶ to the connection that waits for it
//!   topics     ─ image ─▶                                        └─ Rebalanced ─▶ its own topic, hook
//! ```
//!
//! A lock rather than a task with a mailbox: a heartbeat is answered without waking another thread, and an append to the
//! log takes microseconds.

use super::published::Published;
use crate::clock::Clock;
use crate::node::Exchange;
use crate::partition::Partition;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    ConnectionId, Coordinator, GroupRequest, GroupResponse, Input, Output, RequestId,
};
use kohort_group::history::RebalanceRecord;
use kohort_wire::records::{BatchBuilder, Compression, batches};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};
use tokio::time::sleep_until;

/// Told of every rebalance that has ended.
pub(crate) type OnRebalance = Arc<dyn Fn(&RebalanceRecord) + Send + Sync>;

/// How much of the log is read at once while loading.
const LOAD_BYTES: usize = 1 << 20;

/// A coordinator with its log.
pub(crate) struct Shard {
    clock: Clock,
    log: Arc<Partition>,
    state: Mutex<State>,
    /// The earliest alarm has changed.
    rearmed: Notify,
    on_rebalance: Option<OnRebalance>,
    published: Option<Published>,
}

struct State {
    machine: Coordinator,
    outputs: Vec<Output>,
    waiting: HashMap<RequestId, oneshot::Sender<GroupResponse>>,
    next_request: u64,
}

impl Shard {
    /// A coordinator that has not loaded its log yet.
    pub(crate) fn new(
        machine: Coordinator,
        log: Arc<Partition>,
        clock: Clock,
        on_rebalance: Option<OnRebalance>,
        published: Option<Published>,
    ) -> Self {
        let state = State {
            machine,
            outputs: Vec::new(),
            waiting: HashMap::new(),
            next_request: 1,
        };
        Self {
            clock,
            log,
            state: Mutex::new(state),
            rearmed: Notify::new(),
            on_rebalance,
            published,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks, and waits for the answer; `None` if the coordinator will not give one.
    pub(crate) async fn ask(
        &self,
        exchange: &Exchange,
        request: GroupRequest,
    ) -> Option<GroupResponse> {
        let (id, mut answered) = self.submit(exchange, request);
        if let Ok(response) = answered.try_recv() {
            return Some(response);
        }
        let _waiting = Waiting { shard: self, id };
        answered.await.ok()
    }

    fn submit(
        &self,
        exchange: &Exchange,
        request: GroupRequest,
    ) -> (RequestId, oneshot::Receiver<GroupResponse>) {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state();
        let id = RequestId(state.next_request);
        state.next_request += 1;
        state.waiting.insert(id, answer);
        let input = Input::Request {
            id,
            connection: exchange.connection,
            client: Arc::clone(&exchange.client),
            version: exchange.version,
            request,
        };
        self.drive(state, input);
        (id, answered)
    }

    /// Feeds an input that nobody waits for.
    pub(crate) fn feed(&self, input: Input) {
        self.drive(self.state(), input);
    }

    pub(crate) fn disconnected(&self, connection: ConnectionId) {
        self.feed(Input::Disconnected(connection));
    }

    /// Lets the machine handle an input, and everything that follows from it.
    fn drive(&self, mut state: MutexGuard<'_, State>, input: Input) {
        let armed = state.machine.deadline();
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let state = &mut *state;
            state
                .machine
                .handle(self.clock.now(), input, &mut state.outputs);
            self.perform(state, &mut inputs);
        }
        if state.machine.deadline() != armed {
            drop(state);
            self.rearmed.notify_one();
        }
    }

    /// Appends first, then the rest in order: a reply that waits for an append finds it done.
    fn perform(&self, state: &mut State, inputs: &mut VecDeque<Input>) {
        let mut failed = None;
        let mut appends = Vec::new();
        for output in &state.outputs {
            if let Output::Append(n, record) = output {
                appends.push((*n, record));
            }
        }
        if !appends.is_empty() {
            failed = self.append(&appends, inputs);
        }
        for output in state.outputs.drain(..) {
            match output {
                Output::Append(..) => {}
                Output::Reply {
                    id,
                    response,
                    after,
                } => {
                    // After a failed append the coordinator sends another reply.
                    let lost =
                        after.is_some_and(|after| failed.is_some_and(|failed| after >= failed));
                    if !lost && let Some(waiting) = state.waiting.remove(&id) {
                        let _ = waiting.send(response);
                    }
                }
                Output::Rebalanced(record) => {
                    tracing::info!(
                        "group {} rebalanced: generation {}",
                        record.group,
                        record.generation
                    );
                    if let Some(on_rebalance) = &self.on_rebalance {
                        on_rebalance(&record);
                    }
                    if let Some(published) = &self.published {
                        published.publish(*record);
                    }
                }
            }
        }
    }

    /// Appends records as one batch, or as several if it would be too large; the number of the first one that failed.
    fn append(&self, appends: &[(u64, &Record)], inputs: &mut VecDeque<Input>) -> Option<u64> {
        let now = self.clock.wall();
        let limit = self.log.log().max_message_bytes();
        let mut rest = appends;
        while let [(first, _), ..] = rest {
            let mut batch = BatchBuilder::new(Compression::None);
            let mut taken = 0;
            for (_, record) in rest {
                let (key, value) = (record.encode_key(), record.encode_value());
                let more = BatchBuilder::record_size(Some(&key), value.as_deref(), &[]);
                if taken > 0 && batch.size() + more > limit {
                    break;
                }
                if batch.push(now, Some(&key), value.as_deref(), &[]).is_err() {
                    break;
                }
                taken += 1;
            }
            let built = batch.build().map_err(|error| error.error_code());
            if let Err(error) = built.and_then(|batch| self.log.append(&batch, now)) {
                inputs.extend(rest.iter().map(|(n, _)| Input::AppendFailed(*n, error)));
                return Some(*first);
            }
            inputs.extend(rest[..taken].iter().map(|(n, _)| Input::Appended(*n)));
            rest = &rest[taken..];
        }
        None
    }

    /// Replays the log, then serves. Until then requests are answered COORDINATOR_LOAD_IN_PROGRESS.
    pub(crate) fn load(&self) {
        let mut offset = self.log.log().start_offset();
        loop {
            let read = self.log.log().read(offset, LOAD_BYTES, true);
            let bytes = match read {
                Ok(bytes) if bytes.is_empty() => break,
                Ok(bytes) => bytes,
                Err(error) => {
                    tracing::error!(
                        "cannot read the offsets topic: {error}; what follows offset {offset} is not known"
                    );
                    break;
                }
            };
            for batch in batches(bytes) {
                let Ok(batch) = batch else { break };
                offset = batch.header().next_offset();
                self.replay(&batch);
            }
        }
        self.feed(Input::Loaded);
    }

    fn replay(&self, batch: &kohort_wire::records::Batch) {
        let records = batch
            .records(usize::MAX >> 1)
            .into_iter()
            .flatten()
            .flatten();
        for record in records {
            let Some(key) = record.key else { continue };
            match Record::decode(key, record.value) {
                Ok(Some(decoded)) => self.feed(Input::Replay(decoded)),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("a record of the offsets topic was passed over: {error}")
                }
            }
        }
    }

    /// Feeds alarms when they are due, until it is aborted.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            let deadline = self.state().machine.deadline();
            let due = async {
                match deadline {
                    Some(deadline) => sleep_until(self.clock.instant(deadline)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.rearmed.notified() => {}
                () = due => self.fire(),
            }
        }
    }

    /// Feeds the alarm that is due, if one is.
    fn fire(&self) {
        let state = self.state();
        if state
            .machine
            .deadline()
            .is_some_and(|deadline| deadline <= self.clock.now())
            && let Some(alarm) = state.machine.wakeup()
        {
            self.drive(state, Input::Alarm(alarm));
        }
    }
}

/// Forgets a request when its connection does.
struct Waiting<'a> {
    shard: &'a Shard,
    id: RequestId,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shard.state().waiting.remove(&self.id);
    }
}
