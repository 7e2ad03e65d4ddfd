//! The main job on one screen: two groups of real consumers play the same story on one broker, one in the mode that is shown and one in the
//! mode that it is compared with.
//!
//! ```text
//!   story ── scenes ──▶ play ── orders ──▶ members (a thread and a runtime each) ── TCP ──▶ broker
//!                        ▲ ◀── notes ─────────┘                                   ▲
//!                     ledger ──▶ lanes ──▶ screen, report                        flow (records)
//! ```

mod flow;
mod lanes;
mod ledger;
mod member;
mod play;
mod rebalances;
mod report;
mod screen;
mod story;
mod track;

use crate::commands::cluster::Format;
use crate::failure::Failure;
use kohort::Settings;
use kohort::settings::Reset;
use kohort_broker::Broker;
use ledger::Millis;
use member::{Note, Told};
use play::Play;
use screen::Screen;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use story::Story;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use track::{Produced, Track};

/// Kafka's shortest session, so that a crash fits into the story.
const SHORT_SESSION_MS: u32 = 6_000;
/// On a real cluster a broker may be killed meanwhile; a session must outlive that.
const CLUSTER_SESSION_MS: u32 = 20_000;
/// How long the first members wait for each other on the embedded broker (Kafka's default is 3000).
const INITIAL_DELAY_MS: i32 = 300;
/// How often the picture is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// How a group rebalances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mode {
    /// Cooperative, and the leader tells each member what to revoke and when to rejoin.
    Explicit,
    /// Cooperative, as Kafka ships it.
    Cooperative,
    /// Everybody stops, every time.
    Eager,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Explicit => "explicit",
            Mode::Cooperative => "cooperative",
            Mode::Eager => "eager",
        }
    }

    fn apply(self, settings: &mut Settings) {
        let assignor = if self == Mode::Eager {
            "range"
        } else {
            "cooperative-sticky"
        };
        settings.assignors = vec![assignor.to_owned()];
        settings.explicit_revocation = self == Mode::Explicit;
    }
}

/// What is played, and where.
#[derive(Clone, Debug)]
pub(crate) struct Demo {
    pub(crate) mode: Mode,
    pub(crate) members: usize,
    pub(crate) partitions: i32,
    pub(crate) seed: u64,
    pub(crate) input: Option<PathBuf>,
    pub(crate) bootstrap: Option<String>,
    pub(crate) format: Format,
}

impl Demo {
    /// Plays the story and says how it went.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let lines = self.input.as_deref().map(read_lines).transpose()?;
        let session = if self.bootstrap.is_some() {
            CLUSTER_SESSION_MS
        } else {
            SHORT_SESSION_MS
        };
        let story = Story::new(self.members, session.into());
        let (notes, heard) = unbounded_channel();
        let began = Instant::now();
        let unique = unique();
        let modes = [
            self.mode,
            if self.mode == Mode::Eager {
                Mode::Explicit
            } else {
                Mode::Eager
            },
        ];
        let groups = modes.map(|mode| format!("demo-{}-{unique}", mode.name()));
        let broker = match &self.bootstrap {
            Some(_) => None,
            None => Some(start_broker(began, notes.clone(), groups.clone()).await?),
        };
        let address = match (&self.bootstrap, &broker) {
            (Some(address), _) => address.clone(),
            (None, Some(broker)) => broker.address().to_string(),
            (None, None) => String::new(),
        };
        let topic = format!("demo-{unique}");
        let settings = |mode: Mode, group: &str| {
            let bootstrap = address.split(',').map(|one| one.trim().to_owned());
            let mut settings = Settings {
                bootstrap: bootstrap.collect(),
                group_id: Some(group.to_owned()),
                session_timeout_ms: session,
                auto_offset_reset: Reset::Earliest,
                ..Settings::default()
            };
            mode.apply(&mut settings);
            settings
        };
        let settings: Vec<Settings> = modes
            .iter()
            .zip(&groups)
            .map(|(mode, group)| settings(*mode, group))
            .collect();
        let admin = kohort::Admin::with(settings[0].clone()).await?;
        admin.create_topic(&topic, self.partitions).await?;
        let produced = Produced::default();
        let play = Play {
            tracks: modes
                .iter()
                .map(|mode| {
                    let mut track = Track::new(mode.name(), self.partitions, produced.clone());
                    track.names = story.names();
                    track
                })
                .collect(),
            story,
            topic: topic.clone(),
            settings,
            began,
            notes,
            heard,
            waiting: Vec::new(),
            running: BTreeMap::new(),
            coordinator_tells: broker.is_some(),
        };
        let outcome = self.play(play, lines, &address).await;
        if self.bootstrap.is_some() {
            let _ = admin.delete_topic(&topic).await;
        }
        if let Some(broker) = broker {
            broker.shutdown().await;
        }
        outcome
    }

    async fn play(
        &self,
        mut play: Play,
        lines: Option<Vec<Vec<u8>>>,
        address: &str,
    ) -> Result<(), Failure> {
        let text = self.format == Format::Text;
        if text {
            println!("{}", self.introduction(&play, address));
        }
        let on_terminal = text && std::io::stdout().is_terminal();
        let colour = std::env::var_os("NO_COLOR").is_none();
        let mut screen = if on_terminal {
            Screen::open(self.partitions, colour).ok()
        } else {
            None
        };
        let flow = play.flow(self.seed, lines);
        let played = self.scenes(&mut play, &mut screen, text).await;
        if let Some(screen) = screen {
            screen.close();
        }
        played?;
        let now = play.now();
        play.listen(true);
        let produced = flow
            .await
            .map_err(|_| Failure::failed("the producer was stopped"))?;
        let sound = play.tracks.iter().all(|track| track.totals(now).sound());
        if text {
            println!(
                "\n{}\n{}",
                report::text(&play.tracks, now),
                report::verdict(&play.tracks, now)
            );
        } else {
            println!("{}", report::object(&play.tracks, now));
        }
        play.finish().await;
        produced?;
        if sound {
            Ok(())
        } else {
            Err(Failure::failed(
                "a record is missing, or two members held a partition at once",
            ))
        }
    }

    /// Plays scene after scene, drawing what happens.
    async fn scenes(
        &self,
        play: &mut Play,
        screen: &mut Option<Screen>,
        text: bool,
    ) -> Result<(), Failure> {
        let mut scenes = play.scenes().into_iter().peekable();
        let span = play.story.end_ms as Millis + 1_000.0;
        let mut plain = report::Plain::new(play.tracks.len());
        let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
        loop {
            let now = play.now();
            while let Some(scene) = scenes.next_if(|scene| scene.at_ms as Millis <= now) {
                play.act(&scene)
                    .map_err(|e| Failure::failed(format!("cannot start a member: {e}")))?;
                if text && screen.is_none() {
                    println!("{:5.1} s  {}", now / 1000.0, scene.words());
                }
            }
            play.listen(false);
            match screen {
                Some(screen) => screen
                    .draw(&play.tracks, now, span)
                    .map_err(Failure::failed)?,
                None if text => plain.print(&play.tracks, now),
                None => {}
            }
            if now > play.story.end_ms as Millis && play.over() {
                break;
            }
            tokio::select! {
                () = tokio::time::sleep(FRAME) => {}
                _ = &mut interrupted => return Err(Failure::failed("interrupted before the story ended")),
            }
        }
        if screen.is_none() && text {
            plain.print(&play.tracks, Millis::INFINITY);
        }
        Ok(())
    }

    fn introduction(&self, play: &Play, address: &str) -> String {
        let place = match &self.bootstrap {
            Some(_) => format!("the cluster at {address}"),
            None => format!("an embedded broker at {address}"),
        };
        format!(
            "Two consumer groups on {place} read {} partitions; their members play the same story.\n\
             {} on the left, {} on the right. Heartbeats every 3 s (Kafka's default); the session is {} s so that a crash fits in.\n\
             Each member takes {} ms to let go of partitions. {} is a static member.",
            self.partitions,
            play.tracks[0].mode,
            play.tracks[1].mode,
            play.story.session_ms / 1000,
            play.story.revoke_ms,
            play.story.fixed,
        )
    }
}

/// The embedded broker, which tells of each rebalance itself.
async fn start_broker(
    began: Instant,
    notes: UnboundedSender<Note>,
    groups: [String; 2],
) -> Result<Broker, Failure> {
    let settings = kohort_broker::Settings {
        group_initial_rebalance_delay_ms: INITIAL_DELAY_MS,
        ..kohort_broker::Settings::default()
    };
    let tell = move |record: &kohort::RebalanceRecord| {
        let at = began.elapsed().as_secs_f64() * 1000.0;
        if let Some(track) = groups.iter().position(|group| *group == record.group) {
            let told = Told::Rebalanced(Box::new(record.clone()));
            let _ = notes.send(Note {
                track,
                at,
                member: String::new(),
                told,
            });
        }
    };
    let builder = Broker::builder()
        .listen("127.0.0.1:0")
        .settings(settings)
        .on_rebalance(tell);
    builder.start().await.map_err(Failure::failed)
}

fn read_lines(path: &std::path::Path) -> Result<Vec<Vec<u8>>, Failure> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    let mut lines: Vec<Vec<u8>> = bytes
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    if lines.is_empty() {
        return Err(Failure::usage(format!("{} has no lines", path.display())));
    }
    Ok(lines)
}

/// Tells one run's topic and groups from another's.
fn unique() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_millis())
}
