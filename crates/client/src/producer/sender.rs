//! The sender: takes batches that may go, one request for each leader, and settles or repeats them.

use super::Shared;
use super::accumulator::{Batch, Identity, size_of};
use crate::cluster::{Backoff, Purpose, lock};
use crate::error::{self, Error};
use crate::record_batch::{self, Sequence};
use crate::settings::Acks;
use kohort_group::partitions::TopicPartition;
use kohort_wire::messages::{
    InitProducerIdRequest, ProduceRequest, ProduceRequestPartition, ProduceRequestTopic,
    ProduceResponse, ProduceResponsePartition,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Produce up to this version names topics; later ones want topic ids, which bring nothing here.
const LAST_VERSION_WITH_NAMES: i16 = 12;
/// Looks for batches that have waited too long at least this often.
const EXPIRY_CHECK: Duration = Duration::from_millis(500);

type Batches = Vec<(TopicPartition, Batch)>;

pub(super) async fn run(shared: Arc<Shared>) {
    let settings = shared.cluster.settings.clone();
    let linger = Duration::from_millis(settings.linger_ms.into());
    let batch_size = settings.batch_size as usize;
    let mut views = shared.cluster.watch();
    let mut backoff = Backoff::new(settings.retry_backoff_ms, settings.retry_backoff_max_ms);
    loop {
        expire(&shared);
        let identity = match identify(&shared).await {
            Ok(identity) => {
                backoff.reset();
                identity
            }
            Err(error) if error.is_retriable() => {
                tracing::debug!("no producer id yet: {error}");
                tokio::time::sleep(backoff.next()).await;
                continue;
            }
            Err(error) => {
                fail_all(&shared, &error);
                None
            }
        };
        let view = shared.cluster.view();
        let idempotent = settings.enable_idempotence && settings.acks == Acks::All;
        let mut leaderless = false;
        let (ready, look_again) =
            lock(&shared.queues).take_ready(Instant::now(), linger, batch_size, identity, |of| {
                (identity.is_some() || !idempotent)
                    && view.leader(&of.topic, of.partition).is_some()
            });
        {
            let queues = lock(&shared.queues);
            for of in queues.waiting() {
                leaderless |= view.leader(&of.topic, of.partition).is_none();
            }
        }
        if leaderless {
            shared.cluster.want_refresh();
        }
        for (node, batches) in by_leader(ready, &view) {
            for part in by_size(batches, settings.max_request_size as usize) {
                tokio::spawn(send(shared.clone(), node, part));
            }
        }
        if shared.closing.load(Ordering::Relaxed) && lock(&shared.queues).undone == 0 {
            return;
        }
        let soon = Instant::now() + EXPIRY_CHECK;
        tokio::select! {
            () = shared.wake.notified() => {}
            _ = views.changed() => {}
            () = tokio::time::sleep_until(look_again.map_or(soon, |moment| moment.min(soon))) => {}
        }
    }
}

/// The producer id, asked for when the first batch wants to go.
async fn identify(shared: &Shared) -> Result<Option<Identity>, Error> {
    let settings = &shared.cluster.settings;
    if !settings.enable_idempotence || settings.acks != Acks::All {
        return Ok(None);
    }
    if let Some(known) = *lock(&shared.identity) {
        return Ok(Some(known));
    }
    if lock(&shared.queues).waiting().next().is_none() {
        return Ok(None);
    }
    let connection = shared.cluster.any_connection().await?;
    let request = InitProducerIdRequest {
        transaction_timeout_ms: i32::MAX,
        ..Default::default()
    };
    let answer = connection
        .call(&request, shared.cluster.request_limit())
        .await?;
    if !answer.error_code.is_none() {
        let about = "no producer id; enable.idempotence=false does without";
        return Err(Error::broker(
            ApiKey::InitProducerId,
            answer.error_code,
            about,
        ));
    }
    let identity = Identity {
        producer_id: answer.producer_id,
        epoch: answer.producer_epoch,
    };
    *lock(&shared.identity) = Some(identity);
    Ok(Some(identity))
}

fn by_leader(batches: Batches, view: &crate::metadata::View) -> BTreeMap<i32, Batches> {
    let mut nodes: BTreeMap<i32, Batches> = BTreeMap::new();
    for (of, batch) in batches {
        // They were taken because this view knows a leader.
        let node = view
            .leader(&of.topic, of.partition)
            .map_or(-1, |(node, _)| node);
        nodes.entry(node).or_default().push((of, batch));
    }
    nodes
}

/// Requests of at most `limit` bytes, about (a single batch may be larger).
fn by_size(batches: Batches, limit: usize) -> Vec<Batches> {
    let mut requests: Vec<Batches> = Vec::new();
    let mut size = 0;
    for (of, batch) in batches {
        if requests.is_empty() || size + batch.bytes > limit {
            requests.push(Vec::new());
            size = 0;
        }
        size += batch.bytes;
        if let Some(request) = requests.last_mut() {
            request.push((of, batch));
        }
    }
    requests
}

async fn send(shared: Arc<Shared>, node: i32, mut batches: Batches) {
    match exchange(&shared, node, &mut batches).await {
        Ok(answer) => {
            let mut answers = index(answer);
            for (of, batch) in batches {
                let answer = answers.remove(&(of.topic.to_string(), of.partition));
                settle(&shared, &of, batch, answer);
            }
        }
        Err(error) => {
            tracing::debug!("produce to broker {node}: {error}");
            shared.cluster.want_refresh();
            for (of, batch) in batches {
                repeat_or_fail(&shared, &of, batch, error.clone());
            }
        }
    }
    shared.wake.notify_one();
    shared.settled.notify_waiters();
}

/// One request and its answer; `None` where acks=0 has none.
async fn exchange(
    shared: &Shared,
    node: i32,
    batches: &mut Batches,
) -> Result<Option<ProduceResponse>, Error> {
    let settings = &shared.cluster.settings;
    let mut topics: Vec<ProduceRequestTopic> = Vec::new();
    for (of, batch) in batches.iter_mut() {
        let records = record_batch::encode(&batch.records, settings.compression, numbered(batch))?;
        let partition = ProduceRequestPartition {
            index: of.partition,
            records: Some(records),
        };
        match topics.iter_mut().find(|topic| topic.name == *of.topic) {
            Some(topic) => topic.partition_data.push(partition),
            None => topics.push(ProduceRequestTopic {
                name: of.topic.to_string(),
                partition_data: vec![partition],
                ..Default::default()
            }),
        }
    }
    let request = ProduceRequest {
        acks: match settings.acks {
            Acks::All => -1,
            Acks::Leader => 1,
            Acks::None => 0,
        },
        timeout_ms: i32::try_from(settings.request_timeout_ms).unwrap_or(i32::MAX),
        topic_data: topics,
        ..Default::default()
    };
    let connection = shared.cluster.connection(node, Purpose::Produce).await?;
    let version = connection.version_up_to::<ProduceRequest>(LAST_VERSION_WITH_NAMES)?;
    if settings.acks == Acks::None {
        connection.send_only(&request, version)?;
        return Ok(None);
    }
    let answer = connection
        .call_at(&request, version, shared.cluster.request_limit())
        .await?;
    Ok(Some(answer))
}

fn numbered(batch: &Batch) -> Option<Sequence> {
    batch.sequence.map(|(identity, first)| Sequence {
        producer_id: identity.producer_id,
        epoch: identity.epoch,
        first,
    })
}

type Answers = BTreeMap<(String, i32), ProduceResponsePartition>;

fn index(answer: Option<ProduceResponse>) -> Answers {
    let topics = answer.into_iter().flat_map(|answer| answer.responses);
    topics
        .flat_map(|topic| {
            let partitions = topic.partition_responses.into_iter();
            let name = topic.name;
            partitions.map(move |partition| ((name.clone(), partition.index), partition))
        })
        .collect()
}

fn settle(
    shared: &Shared,
    of: &TopicPartition,
    batch: Batch,
    answer: Option<ProduceResponsePartition>,
) {
    let Some(answer) = answer else {
        if shared.cluster.settings.acks == Acks::None {
            return stored(shared, of, batch, -1);
        }
        let what = "the answer does not mention the partition";
        return repeat_or_fail(shared, of, batch, Error::TimedOut { what: what.into() });
    };
    match answer.error_code {
        ErrorCode::None => stored(shared, of, batch, answer.base_offset),
        ErrorCode::DuplicateSequenceNumber => stored(shared, of, batch, -1),
        ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge if batch.records.len() > 1 => {
            lock(&shared.queues).split(of, batch);
        }
        ErrorCode::OutOfOrderSequenceNumber
        | ErrorCode::UnknownProducerId
        | ErrorCode::InvalidProducerEpoch => {
            // The broker lost what it knew of this producer, or a batch before this one was given up: start afresh.
            *lock(&shared.identity) = None;
            lock(&shared.queues).forget_identity(of);
            let mut batch = batch;
            batch.sequence = None;
            let error = refused(of, answer.error_code, answer.error_message);
            repeat_or_fail(shared, of, batch, error);
        }
        code => {
            let error = refused(of, code, answer.error_message);
            if error::is_retriable(code) {
                shared.cluster.want_refresh();
                return repeat_or_fail(shared, of, batch, error);
            }
            lock(&shared.queues).take_back(of, &batch);
            failed(shared, of, batch, error);
        }
    }
}

fn refused(of: &TopicPartition, code: ErrorCode, words: Option<String>) -> Error {
    // What only repeats the code helps nobody.
    let words = words.filter(|words| words != code.meaning());
    let hint = words.map_or(String::new(), |words| format!(" ({words})"));
    Error::broker(
        ApiKey::Produce,
        code,
        format!("{}-{}{hint}", of.topic, of.partition),
    )
}

fn stored(shared: &Shared, of: &TopicPartition, batch: Batch, base: i64) {
    batch.outcome.stored(of.partition, base);
    release(shared, of, &batch);
}

fn failed(shared: &Shared, of: &TopicPartition, batch: Batch, error: Error) {
    batch.outcome.failed(error);
    release(shared, of, &batch);
}

fn release(shared: &Shared, of: &TopicPartition, batch: &Batch) {
    shared
        .room
        .add_permits(batch.records.iter().map(size_of).sum());
    lock(&shared.queues).done(of);
}

fn repeat_or_fail(shared: &Shared, of: &TopicPartition, mut batch: Batch, error: Error) {
    let settings = &shared.cluster.settings;
    let limit = Duration::from_millis(settings.delivery_timeout_ms.into());
    let refreshed = matches!(
        error.code(),
        Some(
            ErrorCode::OutOfOrderSequenceNumber
                | ErrorCode::UnknownProducerId
                | ErrorCode::InvalidProducerEpoch
        )
    );
    let again = (error.is_retriable() || refreshed || matches!(error, Error::Peer { .. }))
        && settings.acks != Acks::None;
    if !again || batch.created.elapsed() >= limit {
        lock(&shared.queues).forget_identity(of);
        return failed(shared, of, batch, error);
    }
    let mut backoff = Backoff::new(settings.retry_backoff_ms, settings.retry_backoff_max_ms);
    let pause = (0..batch.attempts.min(20)).fold(Duration::ZERO, |_, _| backoff.next());
    if batch.attempts == 3 {
        tracing::warn!(
            "{}-{}: {error}; trying again until delivery.timeout.ms is over",
            of.topic,
            of.partition
        );
    }
    batch.last_error = Some(error);
    lock(&shared.queues).retry(of, batch, Instant::now() + pause);
}

/// Fails what has waited for longer than `delivery.timeout.ms`.
fn expire(shared: &Shared) {
    let limit = Duration::from_millis(shared.cluster.settings.delivery_timeout_ms.into());
    let expired = lock(&shared.queues).take_expired(Instant::now(), limit);
    for (of, batch) in expired {
        if batch.sequence.is_some() {
            lock(&shared.queues).forget_identity(&of);
        }
        let why = batch
            .last_error
            .clone()
            .or_else(|| shared.cluster.trouble());
        let why = why.map_or("the partition has no leader".into(), |error| {
            error.to_string()
        });
        give_up(
            shared,
            &batch,
            Error::TimedOut {
                what: format!(
                    "{}-{}: not stored within {} ms (delivery.timeout.ms): {why}",
                    of.topic,
                    of.partition,
                    limit.as_millis()
                ),
            },
        );
    }
}

pub(super) fn fail_all(shared: &Shared, error: &Error) {
    let all = lock(&shared.queues).take_expired(Instant::now(), Duration::ZERO);
    for (_, batch) in all {
        give_up(shared, &batch, error.clone());
    }
}

fn give_up(shared: &Shared, batch: &Batch, error: Error) {
    batch.outcome.failed(error);
    shared
        .room
        .add_permits(batch.records.iter().map(size_of).sum());
    shared.settled.notify_waiters();
}
