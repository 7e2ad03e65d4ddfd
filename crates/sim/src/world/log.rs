//! The log of the coordinator: appends that become durable or fail, crashes with and without their tail, and recovery.

use super::{Event, GROUP, World};
use crate::fact::Fact;
use crate::faults::Fault;
use kohort_group::coordinator::record::Record;
use kohort_group::coordinator::{
    ConnectionId, Coordinator, GroupRequest, GroupResponse, Input, Output, RequestId,
};
use kohort_group::time::Timestamp;
use kohort_wire::ErrorCode;
use kohort_wire::messages::{
    DescribeGroupsRequest, DescribedGroup, OffsetFetchRequest, OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
};
use std::collections::BTreeMap;
use std::sync::Arc;

impl World {
    /// The oldest append is durable.
    pub(super) fn appended(&mut self, incarnation: u64, number: u64) {
        let oldest = self.broker.pending.front().map(|(number, _)| *number);
        if incarnation != self.broker.incarnation || oldest != Some(number) {
            return;
        }
        let Some((number, record)) = self.broker.pending.pop_front() else {
            return;
        };
        self.observe(&Fact::Durable(&record));
        self.broker.log.push(record);
        self.broker.durable = Some(number);
        self.coordinate(Input::Appended(number));
        self.release_held(number);
    }

    /// An append fails, and all after it.
    pub(super) fn append_failed(&mut self, incarnation: u64, number: u64, code: ErrorCode) {
        if incarnation != self.broker.incarnation {
            return;
        }
        // What was appended before is durable first.
        while let Some((earlier, _)) = self.broker.pending.front()
            && *earlier < number
        {
            let earlier = *earlier;
            self.appended(incarnation, earlier);
        }
        if self.broker.pending.is_empty() {
            return;
        }
        self.bit(Fault::AppendFailed);
        self.broker.pending.clear();
        for id in self.broker.drop_held(number) {
            self.observe(&Fact::Unanswered(id));
        }
        self.observe(&Fact::Undone);
        self.coordinate(Input::AppendFailed(number, code));
    }

    /// The coordinator dies.
    pub(super) fn crash(&mut self, tail: bool) {
        if !self.broker.is_up() {
            return;
        }
        self.check_replay();
        self.bit(Fault::CoordinatorCrash);
        // Some of the records under way may have reached the disk all the same.
        let under_way = self.broker.pending.len() as u64;
        let survive = if tail && under_way > 0 {
            self.random.between(0, under_way - 1)
        } else {
            under_way
        };
        if survive < under_way {
            self.bit(Fault::TailLost);
        }
        for _ in 0..survive {
            if let Some((_, record)) = self.broker.pending.pop_front() {
                self.observe(&Fact::Durable(&record));
                self.broker.log.push(record);
            }
        }
        self.broker.machine = None;
        self.broker.incarnation += 1;
        self.broker.forget();
        self.observe(&Fact::CoordinatorDown);
        self.break_all();
        let down = self.random.between(10, 3_000);
        self.after(down, Event::Boot);
    }

    /// The coordinator gives its groups away; it gets them back in a while.
    pub(super) fn move_away(&mut self) -> bool {
        if !self.broker.is_up() || self.broker.is_loading() || !self.broker.pending.is_empty() {
            return false;
        }
        self.bit(Fault::CoordinatorMoved);
        self.check_replay();
        self.coordinate(Input::Unload);
        self.observe(&Fact::Unloaded);
        self.broker.loading = true;
        self.broker.incarnation += 1;
        let away = self.random.between(0, 2_000);
        self.after(away, Event::Boot);
        true
    }

    /// A coordinator begins to load the log. It is another one, even if it is on the same broker.
    pub(super) fn boot(&mut self) {
        if self.broker.is_up() {
            // The groups come back to a broker that still runs: what it had is forgotten.
            self.broker.forget();
            self.break_all();
            self.observe(&Fact::CoordinatorDown);
        }
        self.broker.incarnation += 1;
        let seed = self.random.next();
        self.broker.machine = Some(Coordinator::new(self.coordinator_config(), seed));
        self.broker.loading = true;
        self.topics_at_broker();
        let load = if self.knows(Fault::SlowLoad) {
            self.random.between(0, 3_000)
        } else {
            self.random.between(0, 20)
        };
        let incarnation = self.broker.incarnation;
        self.after(load, Event::Loaded(incarnation));
    }

    /// The log is replayed.
    pub(super) fn loaded(&mut self, incarnation: u64) {
        if incarnation != self.broker.incarnation {
            return;
        }
        if self.random.percent(30) {
            self.broker.log = compacted(std::mem::take(&mut self.broker.log));
        }
        for record in self.broker.log.clone() {
            self.coordinate(Input::Replay(record));
        }
        self.broker.loading = false;
        self.coordinate(Input::Loaded);
    }

    /// Compares the coordinator with what its log says.
    pub(super) fn check_replay(&mut self) {
        let Some(machine) = &self.broker.machine else {
            return;
        };
        if self.broker.loading {
            return;
        }
        if !self.broker.pending.is_empty() {
            return;
        }
        let mut fresh = Coordinator::new(self.coordinator_config(), 0);
        let mut out = Vec::new();
        for record in &self.broker.log {
            fresh.handle(Timestamp(self.now), Input::Replay(record.clone()), &mut out);
        }
        fresh.handle(Timestamp(self.now), Input::Loaded, &mut out);
        let (mut has, mut says) = (seen(machine, self.now), seen(&fresh, self.now));
        // The offsets of a deleted topic are on their way out.
        for seen in [&mut has, &mut says] {
            for group in &mut seen.1 {
                group
                    .topics
                    .retain(|topic| self.ledger.exist.contains(topic.name.as_str()));
            }
        }
        // What is in the making is not in the log: only a stable group must come back as it is.
        let stable = |seen: &Seen| seen.0.iter().all(|group| group.group_state == "Stable");
        let verdict = if has.1 != says.1 || (stable(&has) && has.0 != says.0) {
            Err(difference(&has, &says))
        } else {
            Ok(())
        };
        self.observe(&Fact::Replayed(verdict));
    }
}

/// The last record of each key, in order.
fn compacted(log: Vec<Record>) -> Vec<Record> {
    let mut last = BTreeMap::new();
    for (at, record) in log.iter().enumerate() {
        let key = match record {
            Record::Offset {
                topic, partition, ..
            } => Some((topic.clone(), *partition)),
            Record::Group { .. } => None,
            // No topic has an empty name.
            Record::Causes { .. } => Some((String::new(), -1)),
        };
        last.insert(key, at);
    }
    log.into_iter()
        .enumerate()
        .filter(|(at, _)| last.values().any(|kept| kept == at))
        .map(|(_, record)| record)
        .collect()
}

/// What a coordinator shows of its group: members and assignments, and the offsets.
type Seen = (Vec<DescribedGroup>, Vec<OffsetFetchResponseGroup>);

/// Where they differ, in words.
fn difference(has: &Seen, says: &Seen) -> String {
    let (left, right) = (format!("{has:?}"), format!("{says:?}"));
    let same = left
        .char_indices()
        .zip(right.chars())
        .find(|((_, a), b)| a != b)
        .map_or(0, |((at, _), _)| at);
    let from = |text: &str| {
        text.chars()
            .skip(same.saturating_sub(80))
            .take(300)
            .collect::<String>()
    };
    format!(
        "the state is …{}…, but the log says …{}…",
        from(&left),
        from(&right)
    )
}

/// Asks a copy of the coordinator.
fn seen(machine: &Coordinator, now: u64) -> Seen {
    let mut machine = machine.clone();
    let describe = DescribeGroupsRequest {
        groups: vec![GROUP.to_owned()],
        ..Default::default()
    };
    let fetch = OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: GROUP.to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut out = Vec::new();
    for (version, request) in [
        (5, GroupRequest::DescribeGroups(describe)),
        (8, GroupRequest::OffsetFetch(fetch)),
    ] {
        let input = Input::Request {
            id: RequestId(u64::MAX),
            connection: ConnectionId(0),
            client: Arc::default(),
            version,
            request,
        };
        machine.handle(Timestamp(now), input, &mut out);
    }
    let mut seen = Seen::default();
    for output in out {
        if let Output::Reply { response, .. } = output {
            match response {
                GroupResponse::DescribeGroups(described) => seen.0 = described.groups,
                GroupResponse::OffsetFetch(fetched) => seen.1 = fetched.groups,
                _ => {}
            }
        }
    }
    seen
}
