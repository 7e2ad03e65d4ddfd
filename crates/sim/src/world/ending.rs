//! The last phase: nothing is broken any more, and the group must converge in bounded time (L1).

use super::broker::NextAppend;
use super::{Event, World};
use crate::fact::Process as ProcessId;
use kohort_group::member::StateName;
use kohort_group::partitions::TopicPartition;

/// How often the world looks whether the group has converged.
const LOOK_EVERY_MS: u64 = 200;
const LOOK_IN_SILENCE_MS: u64 = 60_000;

/// How many characters all machines may need to say what they remember: for the coordinator with its history of rebalances, for each
/// member, and for each partition.
const MOST_CHARACTERS: (usize, usize, usize) = (10_000, 8_000, 1_000);

/// After the last fault there are at most so many generations for each process that is alive then, and as many more for the group (L2): a
/// process joins, or rejoins once after a fence that it doubts, gives up and gets partitions. Duplicates of one instance id have their rounds
/// one after the other.
const ROUNDS_OF_A_PROCESS: usize = 4;
const ROUNDS_OF_THE_GROUP: usize = 10;

impl World {
    /// The trouble is over: whatever was about to break does not, and all processes go on.
    pub(super) fn make_peace(&mut self) {
        self.peace = Some(self.now);
        self.peace_generation = self.ledger.issued.generation;
        self.most_rounds =
            ROUNDS_OF_THE_GROUP + ROUNDS_OF_A_PROCESS * (self.live.len() + self.starting);
        self.broker.next_append = NextAppend::Fine;
        self.broker.slow_network_until = 0;
        for process in self.live.clone() {
            let state = &mut self.processes[process];
            state.cuts.clear();
            state.late_sync_ms = 0;
            state.throttle_ms = 0;
            state.slow_release = None;
            state.silent_until = 0;
            self.resume(process);
        }
        let running = self
            .live
            .iter()
            .any(|process| !self.processes[*process].closing);
        if !running && self.starting == 0 {
            self.start_later(0, 0);
        }
        self.after(LOOK_EVERY_MS, Event::Look);
    }

    /// Looks whether the group has converged, and stays so for a while.
    pub(super) fn look(&mut self) {
        let silent = self.is_silent();
        let every = if silent {
            LOOK_IN_SILENCE_MS
        } else {
            LOOK_EVERY_MS
        };
        self.after(every, Event::Look);
        // The last two may have been a leaver and one that it had fenced.
        if self.live.is_empty() && self.starting == 0 {
            self.start_later(0, 0);
        }
        let rounds = self.ledger.issued.generation - self.peace_generation;
        let endless = usize::try_from(rounds).is_ok_and(|rounds| rounds > self.most_rounds);
        if endless && self.calm.is_none() {
            let what = format!(
                "{rounds} generations since the last fault, {} expected, and no end",
                self.most_rounds
            );
            self.fail("L2 rounds come to an end", what);
        }
        let missing = self.missing();
        let since = self.peace.unwrap_or(self.now);
        match missing {
            None => {
                let first = *self.converged.get_or_insert(self.now);
                let settled = first + 2 * self.scenario.heartbeat_ms + 1_000;
                let noticed = self.calm.as_ref().map_or(0, |calm| calm.noticed_at);
                if self.now >= settled.max(noticed) {
                    self.check_replay();
                    self.check_size();
                    self.done = !self.go_on_calmly();
                }
            }
            Some(missing) => {
                self.converged = None;
                if silent {
                    self.fail("L4 a quiet group rests", missing);
                } else if self.now > since + self.scenario.patience_ms() {
                    let what = format!("{} ms after the last fault: {missing}", self.now - since);
                    self.tell_states();
                    self.fail("L1 the group converges", what);
                }
            }
        }
    }

    /// G7: what the machines remember is bounded by who is there and what there is.
    fn check_size(&mut self) {
        let members = self.live.len();
        let partitions = self.topics.ends().count();
        let (fixed, member, partition) = MOST_CHARACTERS;
        let most = fixed + member * members + partition * partitions;
        let size = self.size();
        if size > most {
            let what = format!(
                "the machines of {members} members and {partitions} partitions need {size} characters, {most} expected"
            );
            self.fail("G7 bounded state", what);
        }
    }

    /// Writes down how the machines stand, for whoever reads the trace.
    fn tell_states(&mut self) {
        for process in &self.live {
            let member = &self.processes[*process].member;
            self.trace
                .event(self.now, process, || format!("p{process} is {member:?}"));
        }
    }

    /// What is still missing.
    fn missing(&self) -> Option<String> {
        if !self.broker.is_up() || self.broker.is_loading() {
            return Some("the coordinator is away".to_owned());
        }
        if self.starting > 0 {
            return Some("a process has not started".to_owned());
        }
        if self.live.is_empty() && self.starting == 0 {
            return Some("nobody is alive".to_owned());
        }
        for (process, holder) in self.ledger.alive() {
            if !holder.releasing.is_empty() {
                return Some(format!("process {process} releases {}", holder.releasing));
            }
            if let Some((topic, number)) = (holder.owned.iter()).find(|(topic, number)| {
                !holder.wants.contains(*topic)
                    || self
                        .topics
                        .counts()
                        .get(*topic)
                        .is_none_or(|count| number >= count)
            }) {
                return Some(format!(
                    "process {process} holds {topic}-{number}, which is not wanted or does not exist"
                ));
            }
        }
        self.restless().or_else(|| {
            self.topics
                .ends()
                .find_map(|(partition, end)| self.partition_misses(&partition, end))
        })
    }

    /// A member that is not stable.
    fn restless(&self) -> Option<String> {
        self.live.iter().find_map(|process| {
            let state = self.processes[*process].member.as_ref()?.state();
            (state != StateName::Stable).then(|| format!("process {process} is {state:?}"))
        })
    }

    fn partition_misses(&self, partition: &TopicPartition, end: i64) -> Option<String> {
        let wanted = self
            .ledger
            .alive()
            .any(|(_, holder)| holder.wants.contains(&partition.topic));
        if !wanted {
            return None;
        }
        let owners: Vec<ProcessId> = self
            .ledger
            .alive()
            .filter(|(_, holder)| holder.owned.contains(&partition.topic, partition.partition))
            .map(|(process, _)| process)
            .collect();
        let [owner] = owners[..] else {
            return Some(format!("{partition} is held by {owners:?}"));
        };
        let position = self.ledger.holders[&owner].positions.get(partition);
        if position != Some(&end) {
            return Some(format!(
                "process {owner} is at {position:?} of {end} in {partition}"
            ));
        }
        let (read, committed) = self
            .ledger
            .logs
            .get(partition)
            .map_or((0, None), |log| (log.read, log.committed));
        if read < end {
            return Some(format!("{partition} was read up to {read} of {end}"));
        }
        let commits =
            self.scenario.auto_commit_ms.is_some() && !self.ledger.overtaken.contains(partition);
        if commits && end > 0 && committed != Some(end) {
            return Some(format!(
                "{partition} is committed at {committed:?}, not {end}"
            ));
        }
        None
    }
}
