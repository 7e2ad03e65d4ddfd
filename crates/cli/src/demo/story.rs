//! The story that both groups play: who does what, when.

/// Something that a member does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It starts and joins.
    Start,
    /// It hands its partitions over and leaves.
    Leave,
    /// It stops without leaving (it is a static member) and is started again a second later.
    Restart,
    /// Its process dies: no revocation, no goodbye.
    Crash,
}

/// A line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scene {
    /// Milliseconds after the beginning.
    pub(super) at_ms: u64,
    pub(super) member: String,
    pub(super) act: Act,
}

/// The whole story.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub(super) scenes: Vec<Scene>,
    /// When the producer stops; what is left is read to the end after that.
    pub(super) end_ms: u64,
    /// The member that is a static one.
    pub(super) fixed: String,
    /// `session.timeout.ms` of all members.
    pub(super) session_ms: u64,
    /// How long each member takes to let go.
    pub(super) revoke_ms: u64,
}

/// How long a restarting member is away, milliseconds.
pub(super) const AWAY_MS: u64 = 1000;

impl Story {
    /// The story for `members` at the beginning (at least 3), stretched for a session of `session_ms`.
    pub(super) fn new(members: usize, session_ms: u64) -> Self {
        let name = |i: usize| letter(i);
        let mut scenes: Vec<Scene> = (0..members)
            .map(|i| Scene {
                at_ms: 0,
                member: name(i),
                act: Act::Start,
            })
            .collect();
        let mut then = |at_ms, member: String, act| scenes.push(Scene { at_ms, member, act });
        let fixed = name(1);
        then(4_500, name(members), Act::Start);
        then(8_000, fixed.clone(), Act::Restart);
        then(11_500, name(2), Act::Leave);
        then(14_500, name(members + 1), Act::Start);
        then(18_000, name(0), Act::Crash);
        Self {
            scenes,
            end_ms: 18_000 + session_ms + 1_500,
            fixed,
            session_ms,
            revoke_ms: 50,
        }
    }

    /// The names of all members, in the order of their entrance.
    pub(super) fn names(&self) -> Vec<String> {
        let starts = self.scenes.iter().filter(|scene| scene.act == Act::Start);
        starts.map(|scene| scene.member.clone()).collect()
    }
}

/// a, b, c, …, z, a1, b1, …
fn letter(i: usize) -> String {
    let letter = char::from(b'a' + (i % 26) as u8);
    if i < 26 {
        letter.to_string()
    } else {
        format!("{letter}{}", i / 26)
    }
}

impl Scene {
    /// The scene in words.
    pub(super) fn words(&self) -> String {
        let member = &self.member;
        match self.act {
            Act::Start => format!("{member} starts"),
            Act::Leave => format!("{member} leaves"),
            Act::Restart => format!("{member} (a static member) restarts"),
            Act::Crash => format!("{member} crashes"),
        }
    }
}
