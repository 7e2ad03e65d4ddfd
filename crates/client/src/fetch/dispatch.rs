//! Which partitions are fetched when, and what is done with the answers.

use super::{LANES, Position, Shared, State, reset};
use crate::cluster::{Purpose, lock};
use crate::error::Error;
use crate::metadata::View;
use crate::records::Records;
use kohort_group::partitions::TopicPartition;
use kohort_wire::messages::{
    FetchRequest, FetchRequestPartition, FetchRequestTopic, FetchResponse, FetchResponsePartition,
};
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// From this version on topics go by their ids.
const FIRST_VERSION_WITH_IDS: i16 = 13;

/// A partition in a fetch that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) incarnation: u64,
    from: Position,
    current_epoch: i32,
}

type Wanted = BTreeMap<TopicPartition, Asked>;

/// Starts fetches whenever there is something to fetch and a lane to do it on.
pub(super) async fn run(shared: Weak<Shared>) {
    loop {
        let Some(strong) = shared.upgrade() else {
            return;
        };
        let mut views = strong.cluster.watch();
        views.mark_unchanged();
        let look_again = start_fetches(&strong);
        reset::start(&strong);
        let longest = Instant::now() + Duration::from_secs(1);
        let due = look_again.map_or(longest, |moment| moment.min(longest));
        tokio::select! {
            () = strong.work.notified() => {}
            _ = views.changed() => {}
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

/// Gives when to look again for partitions that pause after a failure.
fn start_fetches(shared: &Arc<Shared>) -> Option<Instant> {
    let view = shared.cluster.view();
    let (by_leader, look_again, orphans) = choose(shared, &view);
    if orphans {
        shared.cluster.want_refresh();
    }
    for ((node, lane), wanted) in by_leader {
        shared.spawn(fetch(shared.clone(), node, lane, wanted));
    }
    look_again
}

type Choice = (BTreeMap<(i32, u8), Wanted>, Option<Instant>, bool);

fn choose(shared: &Shared, view: &View) -> Choice {
    let settings = &shared.cluster.settings;
    let mut state = lock(&shared.state);
    let State {
        partitions,
        busy,
        buffered_bytes,
        halted,
        ..
    } = &mut *state;
    let mut chosen: BTreeMap<(i32, u8), Wanted> = BTreeMap::new();
    let (mut look_again, mut orphans): (Option<Instant>, bool) = (None, false);
    let now = Instant::now();
    let full = *buffered_bytes >= settings.fetch_max_bytes as usize;
    for (what, partition) in partitions {
        let Some(from) = partition.fetch_from else {
            continue;
        };
        let enough = partition.buffered_bytes >= settings.max_partition_fetch_bytes as usize;
        if *halted
            || partition.under_way
            || partition.paused
            || enough
            || (full && partition.buffered_bytes > 0)
        {
            continue;
        }
        if let Some(moment) = partition.not_before.filter(|moment| *moment > now) {
            look_again = Some(look_again.map_or(moment, |earlier| earlier.min(moment)));
            continue;
        }
        let Some((leader, current_epoch)) = view.leader(&what.topic, what.partition) else {
            orphans = true;
            continue;
        };
        let Some(lane) = (0..LANES).find(|lane| !busy.contains(&(leader, *lane))) else {
            continue;
        };
        partition.under_way = true;
        let asked = Asked {
            incarnation: partition.incarnation,
            from,
            current_epoch,
        };
        chosen
            .entry((leader, lane))
            .or_default()
            .insert(what.clone(), asked);
    }
    busy.extend(chosen.keys());
    (chosen, look_again, orphans)
}

async fn fetch(shared: Arc<Shared>, node: i32, lane: u8, wanted: Wanted) {
    let outcome = exchange(&shared, node, lane, &wanted).await;
    let failed = outcome.as_ref().err().cloned();
    lock(&shared.state).busy.remove(&(node, lane));
    match outcome {
        Ok(mut answers) => {
            for (what, asked) in &wanted {
                let answer = answers.remove(what);
                take_in(&shared, what, *asked, answer);
            }
        }
        Err(_) => {
            for (what, asked) in &wanted {
                rest(&shared, what, *asked);
            }
        }
    }
    if let Some(error) = failed {
        tracing::debug!("fetch from broker {node}: {error}");
        shared.cluster.want_refresh();
    }
    shared.work.notify_one();
}

async fn exchange(
    shared: &Shared,
    node: i32,
    lane: u8,
    wanted: &Wanted,
) -> Result<BTreeMap<TopicPartition, FetchResponsePartition>, Error> {
    let connection = shared
        .cluster
        .connection(node, Purpose::Fetch(lane))
        .await?;
    let view = shared.cluster.view();
    let ids_known = wanted.keys().all(|what| {
        view.topics
            .get(&what.topic)
            .is_some_and(|topic| topic.id != [0; 16])
    });
    let limit = if ids_known {
        i16::MAX
    } else {
        FIRST_VERSION_WITH_IDS - 1
    };
    let version = connection.version_up_to::<FetchRequest>(limit)?;
    let settings = &shared.cluster.settings;
    let request = FetchRequest {
        max_wait_ms: i32::try_from(settings.fetch_max_wait_ms).unwrap_or(i32::MAX),
        min_bytes: settings.fetch_min_bytes,
        max_bytes: settings.fetch_max_bytes,
        topics: topics(wanted, &view, settings.max_partition_fetch_bytes),
        ..Default::default()
    };
    let patience =
        shared.cluster.request_limit() + Duration::from_millis(settings.fetch_max_wait_ms.into());
    let answer = connection.call_at(&request, version, patience).await?;
    if !answer.error_code.is_none() {
        return Err(Error::broker(
            ApiKey::Fetch,
            answer.error_code,
            format!("broker {node}"),
        ));
    }
    Ok(by_partition(answer, &view))
}

fn topics(wanted: &Wanted, view: &View, partition_bytes: i32) -> Vec<FetchRequestTopic> {
    let mut topics: Vec<FetchRequestTopic> = Vec::new();
    for (what, asked) in wanted {
        let partition = FetchRequestPartition {
            partition: what.partition,
            current_leader_epoch: asked.current_epoch,
            fetch_offset: asked.from.offset,
            partition_max_bytes: partition_bytes,
            ..Default::default()
        };
        match topics.last_mut() {
            Some(topic) if topic.topic == *what.topic => topic.partitions.push(partition),
            _ => topics.push(FetchRequestTopic {
                topic: what.topic.to_string(),
                topic_id: view
                    .topics
                    .get(&what.topic)
                    .map_or([0; 16], |topic| topic.id),
                partitions: vec![partition],
            }),
        }
    }
    topics
}

fn by_partition(
    answer: FetchResponse,
    view: &View,
) -> BTreeMap<TopicPartition, FetchResponsePartition> {
    let mut found = BTreeMap::new();
    for topic in answer.responses {
        let name = if topic.topic.is_empty() {
            match view.topic_name(&topic.topic_id) {
                Some(name) => name.clone(),
                None => continue,
            }
        } else {
            topic.topic.into()
        };
        for partition in topic.partitions {
            found.insert(
                TopicPartition::new(name.clone(), partition.partition_index),
                partition,
            );
        }
    }
    found
}

/// Puts what came of a partition into its buffer, if it is still read.
fn take_in(
    shared: &Shared,
    what: &TopicPartition,
    asked: Asked,
    answer: Option<FetchResponsePartition>,
) {
    let Some(answer) = answer else {
        return rest(shared, what, asked);
    };
    if !answer.error_code.is_none() {
        return refused(shared, what, asked, answer.error_code);
    }
    let records = answer.records.unwrap_or_default();
    let came = Records::new(
        what.clone(),
        records,
        asked.from.offset,
        answer.high_watermark,
        shared.cluster.settings.check_crcs,
    );
    let mut state = lock(&shared.state);
    let Some(partition) = state
        .partitions
        .get_mut(what)
        .filter(|it| it.incarnation == asked.incarnation)
    else {
        return;
    };
    partition.under_way = false;
    partition.end = Some(answer.high_watermark);
    let came = match came {
        Ok(Some(came)) => came,
        Ok(None) => {
            let before = partition.reached_end;
            partition.reached_end |=
                partition.buffered.is_empty() && asked.from.offset >= answer.high_watermark;
            if partition.reached_end && !before {
                shared.filled.notify_one();
            }
            return;
        }
        Err(error) => {
            partition.not_before = Some(Instant::now() + pause(shared));
            drop(state);
            let _ = shared.failures.send(error);
            return;
        }
    };
    partition.fetch_from = Some(Position {
        offset: came.next_offset(),
        leader_epoch: came.leader_epoch(),
    });
    let size = came.size();
    partition.buffered_bytes += size;
    if partition.buffered.is_empty() {
        state.ready.push_back(what.clone());
    }
    if let Some(partition) = state.partitions.get_mut(what) {
        partition.buffered.push_back(came);
    }
    state.buffered_bytes += size;
    drop(state);
    shared.filled.notify_one();
}

fn pause(shared: &Shared) -> Duration {
    Duration::from_millis(shared.cluster.settings.retry_backoff_ms.into())
}

/// Tries again after a pause.
fn rest(shared: &Shared, what: &TopicPartition, asked: Asked) {
    let mut state = lock(&shared.state);
    if let Some(partition) = state
        .partitions
        .get_mut(what)
        .filter(|it| it.incarnation == asked.incarnation)
    {
        partition.under_way = false;
        partition.not_before = Some(Instant::now() + pause(shared));
    }
}

fn refused(shared: &Shared, what: &TopicPartition, asked: Asked, code: ErrorCode) {
    match code {
        ErrorCode::OffsetOutOfRange => {
            tracing::warn!(
                "{what}: offset {} does not exist (any more)",
                asked.from.offset
            );
            let mut state = lock(&shared.state);
            if let Some(partition) = state
                .partitions
                .get_mut(what)
                .filter(|it| it.incarnation == asked.incarnation)
            {
                partition.under_way = false;
                partition.fetch_from = None;
            }
        }
        code if crate::error::is_retriable(code) => {
            tracing::debug!("{what}: fetch: {code}");
            shared.cluster.want_refresh();
            rest(shared, what, asked);
        }
        code => {
            rest(shared, what, asked);
            let _ = shared
                .failures
                .send(Error::broker(ApiKey::Fetch, code, what.to_string()));
        }
    }
}
