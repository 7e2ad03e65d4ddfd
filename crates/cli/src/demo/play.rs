//! The play: the story is told to both groups at once, and what they say is written down.

use super::flow::Flow;
use super::ledger::{Happened, Millis};
use super::member::{Note, Order, Role, Running, Told};
use super::rebalances::Shown;
use super::story::{AWAY_MS, Act, Scene, Story};
use super::track::{Produced, Track};
use kohort::{Error, Settings};
use kohort_group::history::CauseKind;
use kohort_group::reason::JoinReason;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;

/// Notes of different threads are put in the order of time within so long.
const SETTLE_MS: Millis = 30.0;
/// How long what is left may take to come out, after the last record was produced.
const PATIENCE_MS: Millis = 15_000.0;

/// Everything that plays.
pub(super) struct Play {
    pub(super) story: Story,
    pub(super) tracks: Vec<Track>,
    pub(super) topic: String,
    /// The clients' settings, by track.
    pub(super) settings: Vec<Settings>,
    pub(super) began: Instant,
    pub(super) notes: UnboundedSender<Note>,
    pub(super) heard: UnboundedReceiver<Note>,
    pub(super) waiting: Vec<Note>,
    pub(super) running: BTreeMap<(usize, String), Running>,
    /// Whether the coordinator tells of rebalances itself; otherwise the members' view is shown.
    pub(super) coordinator_tells: bool,
}

impl Play {
    pub(super) fn now(&self) -> Millis {
        self.began.elapsed().as_secs_f64() * 1000.0
    }

    /// Starts the flow of records.
    pub(super) fn flow(
        &self,
        seed: u64,
        lines: Option<Vec<Vec<u8>>>,
    ) -> JoinHandle<Result<(), Error>> {
        let flow = Flow {
            settings: self.settings.first().cloned().unwrap_or_default(),
            topic: self.topic.clone(),
            partitions: self.tracks.first().map_or(1, |track| track.partitions),
            seed,
            lines,
            lasts: Duration::from_millis(self.story.end_ms),
        };
        let produced = self
            .tracks
            .first()
            .map_or_else(Produced::default, |t| t.produced.clone());
        tokio::spawn(flow.run(produced))
    }

    /// The scenes that are due, in order; a restart is two.
    pub(super) fn scenes(&self) -> Vec<Scene> {
        let mut scenes = self.story.scenes.clone();
        for restart in self
            .story
            .scenes
            .iter()
            .filter(|scene| scene.act == Act::Restart)
        {
            scenes.push(Scene {
                at_ms: restart.at_ms + AWAY_MS,
                member: restart.member.clone(),
                act: Act::Start,
            });
        }
        scenes.sort_by_key(|scene| scene.at_ms);
        scenes
    }

    /// Plays a scene on all tracks.
    pub(super) fn act(&mut self, scene: &Scene) -> std::io::Result<()> {
        for track in 0..self.tracks.len() {
            self.tracks[track].act = Some(scene.words());
            let key = (track, scene.member.clone());
            match scene.act {
                Act::Start => {
                    let running = self.role(track, &scene.member).start()?;
                    self.running.insert(key, running);
                    let at = self.now();
                    self.tracks[track]
                        .ledger
                        .write(at, &scene.member, Happened::Back);
                }
                Act::Leave | Act::Restart | Act::Crash => {
                    let order = match scene.act {
                        Act::Leave => Order::Close,
                        Act::Crash => Order::Crash,
                        Act::Start | Act::Restart => Order::Restart,
                    };
                    if let Some(running) = self.running.get(&key) {
                        let _ = running.orders.send(order);
                    }
                }
            }
        }
        Ok(())
    }

    fn role(&self, track: usize, name: &str) -> Role {
        let mut settings = self.settings[track].clone();
        settings.client_id = name.to_owned();
        settings.group_instance_id = (name == self.story.fixed).then(|| name.to_owned());
        Role {
            track,
            name: name.to_owned(),
            settings,
            topic: self.topic.clone(),
            revoke: Duration::from_millis(self.story.revoke_ms),
            began: self.began,
            notes: self.notes.clone(),
        }
    }

    /// Writes down what was said, in the order of time; what is very fresh waits for what may still come before it.
    pub(super) fn listen(&mut self, everything: bool) {
        while let Ok(note) = self.heard.try_recv() {
            self.waiting.push(note);
        }
        self.waiting.sort_by(|a, b| a.at.total_cmp(&b.at));
        let limit = if everything {
            Millis::INFINITY
        } else {
            self.now() - SETTLE_MS
        };
        let ripe = self.waiting.partition_point(|note| note.at <= limit);
        let ripe: Vec<Note> = self.waiting.drain(..ripe).collect();
        for note in ripe {
            self.write(note);
        }
    }

    fn write(&mut self, note: Note) {
        let told_by_coordinator = note.member.is_empty();
        let track = &mut self.tracks[note.track];
        match note.told {
            Told::Happened(what) => track.ledger.write(note.at, &note.member, what),
            Told::Failed(why) => track.errors.push(format!("{}: {why}", note.member)),
            Told::Ended => {}
            Told::Rebalanced(record) => {
                if told_by_coordinator != self.coordinator_tells {
                    return;
                }
                let follows = matches!(
                    record.causes.first().map(|cause| cause.kind),
                    Some(CauseKind::Joined(JoinReason::RevocationDone))
                );
                let shown = Shown::from_record(note.at, &record);
                track.rebalanced(shown, follows);
            }
        }
    }

    /// Whether everything that was produced has come out everywhere, or will not any more.
    pub(super) fn over(&self) -> bool {
        let complete = self
            .tracks
            .iter()
            .all(|track| track.complete() && track.ledger.all_owned());
        complete || self.now() > self.story.end_ms as Millis + PATIENCE_MS
    }

    /// Ends all members, bounded.
    pub(super) async fn finish(self) {
        for running in self.running.values() {
            let _ = running.orders.send(Order::Finish);
        }
        let deadline = Instant::now() + Duration::from_secs(3);
        while Instant::now() < deadline
            && self
                .running
                .values()
                .any(|running| !running.thread.is_finished())
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
