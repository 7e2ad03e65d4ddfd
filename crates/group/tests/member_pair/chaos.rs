//! Several members, connections that break, processes that die and come: no two owners where nobody was fenced, and in the end all is well.

use crate::room::Room;
use kohort_group::assign::by_name;
use kohort_group::member::{Input, Lane, MemberConfig};
use kohort_group::reason::JoinReason;
use kohort_wire::ApiKey;

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn run(seed: u64, restarts: bool) {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        dice.below(2);
    }
    let kind = dice.below(4);
    let mut change = |config: &mut MemberConfig| {
        config.auto_commit_interval_ms = Some(700);
        match kind {
            0 => config.assignors = vec![by_name("range").unwrap()],
            1 => config.explicit_revocation = false,
            2 => config.explicit_revocation = dice.below(2) == 0,
            _ => {}
        }
        config.seed ^= seed;
    };
    let mut room = Room::new(&[("t", 4), ("u", 3)]);
    for _ in 0..3 {
        room.enter(&mut change);
    }
    let mut dice = Dice(seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1);
    for _ in 0..60 {
        let who = dice.below(room.people.len());
        match dice.below(16) {
            0..=2 => room.cut(who, Lane::Rounds),
            3..=4 => room.cut(who, Lane::Control),
            5 if room.people.len() < 7 => {
                room.enter(&mut change);
            }
            6 => room.tell(who, Input::Close { drain: true }),
            7 => room.tell(who, Input::RequestRebalance(JoinReason::Requested)),
            8 => {
                let api = [ApiKey::SyncGroup, ApiKey::JoinGroup, ApiKey::Heartbeat][dice.below(3)];
                room.people[who].late = Some((api, 1 + dice.below(80) as u64));
            }
            9 => room.people[who].release_ms = dice.below(400) as u64,
            10 => {
                let count = 1 + dice.below(6);
                room.change_topics("u", count);
            }
            11 if dice.below(6) == 0 => room.kill(who),
            13 if dice.below(8) == 0 => {
                // Stopped for longer than its session, or not quite.
                let time = [500, 9_000, 15_000][dice.below(3)];
                let until = room.now + time;
                let stopped = &mut room.people[who].stopped;
                *stopped = until.max(*stopped);
            }
            14 if dice.below(4) == 0 => room.pass(5_000),
            12 if restarts && dice.below(4) == 0 => room.restart(),
            _ => room.pass([1, 2, 3, 5, 20, 100][dice.below(6)]),
        }
    }
    for person in &mut room.people {
        person.late = None;
        person.release_ms = 0;
    }
    room.enter(&mut change);
    // Closes end, sessions of the dead end, then the group settles and stays so.
    room.pass(45_000);
    room.until(30_000, "healed", Room::settled);
    let (generations, sizes) = (room.generations, room.sizes());
    room.pass(20_000);
    assert!(room.settled());
    assert_eq!((room.generations, room.sizes()), (generations, sizes));
    for person in &room.people {
        let bad = person
            .seen
            .iter()
            .find(|(_, text)| text.starts_with("fatal"));
        assert!(bad.is_none(), "{bad:?}");
        let closed = person.seen.iter().filter(|(_, text)| text == "closed");
        assert!(closed.count() <= 1);
    }
}

/// kafka-python#1562, kafka-python#1623, kafka-python#1626, kafka-python#1985, kafka-python#2077: connections break at any moment, with
/// requests of all kinds under way; nothing waits for what will not come.
#[test]
fn a_group_heals() {
    seeds(|seed| run(seed, false));
}

#[test]
fn a_group_heals_after_restarts_of_its_coordinator() {
    seeds(|seed| run(seed, true));
}

/// The usual seeds, or `SEED`, or `SEEDS=FIRST+COUNT`.
fn seeds(run: impl Fn(u64) + std::panic::RefUnwindSafe) {
    if let Ok(seed) = std::env::var("SEED") {
        return run(seed.parse().unwrap());
    }
    let (first, count) = match std::env::var("SEEDS") {
        Ok(range) => {
            let (first, count) = range.split_once('+').unwrap();
            (first.parse().unwrap(), count.parse().unwrap())
        }
        Err(_) => (0, 40),
    };
    for seed in first..first + count {
        if std::panic::catch_unwind(|| run(seed)).is_err() {
            panic!("seed {seed}");
        }
    }
}
