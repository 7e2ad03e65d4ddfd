//! What the oracle knows: who holds what, what was asked, produced, read and committed. Made of facts alone.

use crate::fact::{Fact, Process};
use kohort_group::coordinator::record::{GroupValue, Record};
use kohort_group::coordinator::{Alarm, GroupRequest, GroupResponse, RequestId};
use kohort_group::member::{Input, Output, Subscription};
use kohort_group::partitions::{Partitions, Topic, TopicPartition};
use kohort_wire::messages::OffsetCommitRequest;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A member as the oracle sees it.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    pub(crate) alive: bool,
    pub(crate) instance: Option<String>,
    pub(crate) eager: bool,
    /// The topics that its application wants.
    pub(crate) wants: BTreeSet<Topic>,
    /// From `Assign` until `Revoked` or `Lost`.
    pub(crate) owned: Partitions,
    /// Told to release, not released yet.
    pub(crate) releasing: Partitions,
    /// The generation of its last assignment.
    pub(crate) generation: i32,
    /// The next offset that its application will read.
    pub(crate) positions: BTreeMap<TopicPartition, i64>,
    /// The offset after the last that it ever read. A commit may wait for a round in which the partition was let go and came back.
    pub(crate) reached: BTreeMap<TopicPartition, i64>,
    /// It has asked for a new member id under its instance id before.
    pub(crate) entered: bool,
    /// The group may have gone on without it.
    pub(crate) fenced: bool,
    /// What it held then, until an assignment says whether that is still its own: a static member stays in the group with the claims of
    /// its last join, so the leader may give away what it was given after that (Kafka has the same).
    pub(crate) overdue: Partitions,
    /// An assignment has come, and what it revokes comes next.
    judged: bool,
    /// Its member id was never stored, and the coordinator that gave it is gone. Its successor knows the instance by another id, and says
    /// FENCED_INSTANCE_ID; a member that has not seen its coordinator go takes it for the end, as Kafka's does.
    pub(crate) forgotten: bool,
}

impl Holder {
    /// The group goes on without it.
    fn fence(&mut self) {
        self.fenced = true;
        self.overdue = self.owned.clone();
    }

    /// What nobody else may hold.
    pub(crate) fn sure(&self) -> Partitions {
        self.owned.minus(&self.overdue)
    }
}

/// A request that has reached the coordinator and has no answer yet.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) at: u64,
    pub(crate) process: Process,
    pub(crate) what: Question,
    pub(crate) abandoned: bool,
    zombie: bool,
}

/// What a request asks, as far as it matters here.
#[derive(Debug)]
pub(crate) enum Question {
    Join,
    Commit(Commit),
    Other,
}

/// A commit that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub(crate) generation: i32,
    pub(crate) member_id: String,
    pub(crate) offsets: Vec<(TopicPartition, i64)>,
}

/// A partition's records.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) values: Vec<u64>,
    /// Everything before this was read by somebody.
    pub(crate) read: i64,
    /// What was read beyond it.
    beyond: BTreeSet<i64>,
    /// The durable commit.
    pub(crate) committed: Option<i64>,
}

/// The oracle's knowledge.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Nothing was broken so far, and nobody was too slow.
    pub(crate) quiet: bool,
    pub(crate) holders: BTreeMap<Process, Holder>,
    pub(crate) requests: BTreeMap<RequestId, Asked>,
    /// Requests that were answered, but whose answers wait for an append.
    answered: BTreeMap<RequestId, Asked>,
    /// The commit that the coordinator is at.
    pub(crate) committing: Option<Commit>,
    /// Which process a member id was given to.
    pub(crate) ids: BTreeMap<String, Process>,
    /// The topics that exist.
    pub(crate) exist: BTreeSet<Topic>,
    /// The most partitions that each topic ever had.
    pub(crate) ever: BTreeMap<Topic, i32>,
    pub(crate) logs: BTreeMap<TopicPartition, Log>,
    /// Partitions for which a zombie's commit came: it may have overtaken a later one of the same member, and put the offset back.
    /// Kafka's protocol has nothing against that; the next commit mends it.
    pub(crate) overtaken: BTreeSet<TopicPartition>,
    /// Appends under way.
    pub(crate) pending: VecDeque<Record>,
    /// The generation that the coordinator has issued last, and the one that its log brings back.
    pub(crate) issued: Issued,
    pub(crate) stored: Issued,
}

/// A generation, and who is or was in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Issued {
    pub(crate) generation: i32,
    pub(crate) members: BTreeSet<String>,
}

impl Issued {
    fn of(value: Option<&GroupValue>) -> Self {
        value.map_or_else(Self::default, |value| Self {
            generation: value.generation,
            members: value.members.iter().map(|m| m.member_id.clone()).collect(),
        })
    }

    fn to(&mut self, generation: i32, member: &str) {
        if generation != self.generation {
            self.generation = generation;
            self.members.clear();
        }
        self.members.insert(member.to_owned());
    }
}

impl Ledger {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            holders: BTreeMap::new(),
            requests: BTreeMap::new(),
            answered: BTreeMap::new(),
            committing: None,
            ids: BTreeMap::new(),
            exist: BTreeSet::new(),
            ever: BTreeMap::new(),
            logs: BTreeMap::new(),
            overtaken: BTreeSet::new(),
            pending: VecDeque::new(),
            issued: Issued::default(),
            stored: Issued::default(),
        }
    }

    /// Members that are alive, with their processes.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (Process, &Holder)> {
        self.holders
            .iter()
            .filter(|(_, holder)| holder.alive)
            .map(|(process, holder)| (*process, holder))
    }

    /// The values that a fetch of this partition's offset may give: the durable one, and those under way.
    pub(crate) fn may_be_committed(&self, partition: &TopicPartition, offset: i64) -> bool {
        // The offsets of a deleted topic are on their way out.
        if !self.exist.contains(&partition.topic) {
            return true;
        }
        let durable = self.logs.get(partition).and_then(|log| log.committed);
        let under_way = self.pending.iter().any(|record| {
            offset_of(record).is_some_and(|(at, value)| at == *partition && value == Some(offset))
        });
        durable == Some(offset) || under_way || (durable.is_none() && offset == -1)
    }

    /// Takes a fact in.
    pub(crate) fn take(&mut self, now: u64, fact: &Fact<'_>) {
        match fact {
            Fact::Started {
                process,
                instance,
                eager,
            } => {
                let holder = Holder {
                    alive: true,
                    instance: instance.map(str::to_owned),
                    eager: *eager,
                    generation: -1,
                    ..Holder::default()
                };
                self.holders.insert(*process, holder);
            }
            Fact::Told { process, input } => self.told(*process, input),
            Fact::Said { process, output } => self.said(*process, output),
            Fact::Ended(process) => {
                if let Some(holder) = self.holders.get_mut(process) {
                    holder.alive = false;
                    // What it had read and not committed is read again.
                    self.quiet &= holder.owned.is_empty();
                    holder.owned = Partitions::new();
                }
            }
            Fact::Asked {
                id,
                process,
                zombie,
                request,
            } => self.asked(now, *id, *process, *zombie, request),
            Fact::Abandoned(id) => {
                if let Some(asked) = self.requests.get_mut(id) {
                    asked.abandoned = true;
                }
            }
            Fact::Woke(alarm) => self.woke(alarm),
            Fact::Answered { id, response } => self.answered(*id, response),
            Fact::Appending(record) => {
                if let Record::Group { value, .. } = record {
                    self.issued = Issued::of(value.as_ref());
                }
                self.pending.push_back((*record).clone());
            }
            Fact::Durable(record) => self.durable(record),
            Fact::Undone => {
                self.pending.clear();
                self.issued.members.extend(self.stored.members.clone());
            }
            Fact::CoordinatorDown => {
                self.forget_ids();
                self.pending.clear();
                self.issued = self.stored.clone();
                self.requests.clear();
                self.answered.clear();
                self.committing = None;
            }
            Fact::Read {
                process,
                partition,
                offset,
                ..
            } => self.read(*process, partition, *offset),
            Fact::Produced { partition, value } => {
                let log = self.logs.entry((*partition).clone()).or_default();
                log.values.push(*value);
            }
            Fact::Topics(topics) => {
                self.exist = topics.keys().cloned().collect();
                for (topic, count) in *topics {
                    let ever = self.ever.entry(topic.clone()).or_default();
                    *ever = (*ever).max(*count);
                }
            }
            Fact::Sent { id, .. } => {
                self.answered.remove(id);
            }
            Fact::Unanswered(id) => {
                if let Some(asked) = self.answered.remove(id) {
                    self.requests.insert(*id, asked);
                }
            }
            Fact::Unloaded => {
                self.forget_ids();
                self.issued = self.stored.clone();
            }
            Fact::Replayed(_) | Fact::Slept { .. } => {}
        }
    }

    /// Ids that were given out and not stored are gone with the coordinator.
    fn forget_ids(&mut self) {
        for id in self.issued.members.difference(&self.stored.members) {
            if let Some(process) = self.ids.get(id)
                && let Some(holder) = self.holders.get_mut(process)
            {
                holder.forgotten = true;
            }
        }
    }

    fn told(&mut self, process: Process, input: &Input) {
        let Some(holder) = self.holders.get_mut(&process) else {
            return;
        };
        if std::mem::take(&mut holder.judged) {
            holder.overdue = holder.overdue.intersection(&holder.releasing);
        }
        match input {
            Input::Subscribe(Subscription::Topics(topics)) => holder.wants.clone_from(topics),
            Input::Unsubscribe => holder.wants.clear(),
            _ => {}
        }
    }

    fn said(&mut self, process: Process, output: &Output) {
        // What a failed commit was to say is read again.
        self.quiet &= !matches!(
            output,
            Output::Lost { .. } | Output::AutoCommitFailed(_) | Output::Committed(_, Err(_))
        );
        let Some(holder) = self.holders.get_mut(&process) else {
            return;
        };
        match output {
            Output::Assign {
                owned, generation, ..
            } => {
                holder.owned = owned.clone();
                holder.generation = *generation;
                holder.judged = true;
            }
            Output::Start(offsets) => {
                for (partition, offset) in offsets {
                    let from = offset.as_ref().map_or(0, |offset| offset.offset);
                    holder.positions.insert(partition.clone(), from);
                }
            }
            Output::Revoke { partitions, .. } => holder.releasing.extend(partitions),
            Output::Revoked { partitions, .. } | Output::Lost { partitions, .. } => {
                holder.owned = holder.owned.minus(partitions);
                holder.releasing = holder.releasing.minus(partitions);
                holder
                    .positions
                    .retain(|at, _| !partitions.contains(&at.topic, at.partition));
            }
            _ => {}
        }
    }

    fn asked(
        &mut self,
        now: u64,
        id: RequestId,
        process: Process,
        zombie: bool,
        request: &GroupRequest,
    ) {
        let what = match request {
            GroupRequest::JoinGroup(join) => {
                // The leader may be shown what it claimed earlier, and give away what it has come to hold since: a connection's last
                // breath takes the place of a newer join, as in Kafka, unless its claims are older beyond doubt.
                if zombie && let Some(holder) = self.holders.get_mut(&process) {
                    holder.overdue = holder.owned.clone();
                }
                if let (Some(instance), "") = (&join.group_instance_id, join.member_id.as_str()) {
                    self.replaced(process, instance);
                }
                Question::Join
            }
            GroupRequest::OffsetCommit(commit) => Question::Commit(committing(commit)),
            _ => Question::Other,
        };
        let asked = Asked {
            at: now,
            process,
            what,
            abandoned: zombie,
            zombie,
        };
        self.committing = match &asked.what {
            Question::Commit(commit) => Some(commit.clone()),
            Question::Join | Question::Other => None,
        };
        if let (true, Question::Commit(commit)) = (zombie, &asked.what) {
            let partitions = commit.offsets.iter().map(|(partition, _)| partition);
            self.overtaken.extend(partitions.cloned());
        }
        self.requests.insert(id, asked);
    }

    /// Another process takes a static member's place.
    fn replaced(&mut self, by: Process, instance: &str) {
        // Its own earlier join may come second, and take the place of the later one (a zombie).
        for (process, holder) in &mut self.holders {
            if holder.instance.as_deref() == Some(instance) {
                if *process != by || holder.entered {
                    holder.fence();
                }
                holder.entered |= *process == by;
            }
        }
    }

    fn woke(&mut self, alarm: &Alarm) {
        self.committing = None;
        match alarm {
            Alarm::Session(_, member_id) | Alarm::PendingJoin(_, member_id) => {
                self.quiet = false;
                if let Some(process) = self.ids.get(&**member_id)
                    && let Some(holder) = self.holders.get_mut(process)
                {
                    holder.fence();
                }
            }
            Alarm::Rebalance(_) | Alarm::PendingSync(_) => {
                self.quiet = false;
                let joined: BTreeSet<Process> = self
                    .requests
                    .values()
                    .filter(|asked| matches!(asked.what, Question::Join))
                    .map(|asked| asked.process)
                    .collect();
                for (process, holder) in &mut self.holders {
                    if !joined.contains(process) {
                        holder.fence();
                    }
                }
            }
            Alarm::InitialDelay(_) | Alarm::Retention => {}
        }
    }

    fn answered(&mut self, id: RequestId, response: &GroupResponse) {
        let Some(asked) = self.requests.remove(&id) else {
            return;
        };
        if let GroupResponse::JoinGroup(join) = response {
            if !join.member_id.is_empty() {
                self.ids.insert(join.member_id.clone(), asked.process);
            }
            if join.error_code.is_none() {
                self.issued.to(join.generation_id, &join.member_id);
            }
            if join.error_code.is_none()
                && !asked.zombie
                && let Some(holder) = self.holders.get_mut(&asked.process)
            {
                holder.fenced = false;
                holder.forgotten = false;
            }
        }
        self.answered.insert(id, asked);
    }

    fn durable(&mut self, record: &Record) {
        self.pending.pop_front();
        if let Some((partition, offset)) = offset_of(record) {
            self.logs.entry(partition).or_default().committed = offset;
        }
        if let Record::Group { value, .. } = record {
            self.stored = Issued::of(value.as_ref());
        }
    }

    fn read(&mut self, process: Process, partition: &TopicPartition, offset: i64) {
        if let Some(holder) = self.holders.get_mut(&process) {
            holder.positions.insert(partition.clone(), offset + 1);
            let reached = holder.reached.entry(partition.clone()).or_default();
            *reached = (*reached).max(offset + 1);
        }
        let log = self.logs.entry(partition.clone()).or_default();
        if offset >= log.read {
            log.beyond.insert(offset);
        }
        while log.beyond.remove(&log.read) {
            log.read += 1;
        }
    }
}

/// The partition and offset of an offset record.
pub(crate) fn offset_of(record: &Record) -> Option<(TopicPartition, Option<i64>)> {
    match record {
        Record::Offset {
            topic,
            partition,
            value,
            ..
        } => Some((
            TopicPartition::new(topic.as_str(), *partition),
            value.as_ref().map(|value| value.offset),
        )),
        Record::Group { .. } | Record::Causes { .. } => None,
    }
}

/// What a commit request asks.
pub(crate) fn committing(request: &OffsetCommitRequest) -> Commit {
    let offsets = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| {
            (
                TopicPartition::new(topic.name.as_str(), partition.partition_index),
                partition.committed_offset,
            )
        })
    });
    Commit {
        generation: request.generation_id_or_member_epoch,
        member_id: request.member_id.clone(),
        offsets: offsets.collect(),
    }
}
