//! A member's state with times relative to now and counters renumbered: what a model checker compares, or its space would be infinite.

use super::backoff::Jitter;
use super::record::Records;
use super::requests::{Flight, Work};
use super::state::State;
use super::{Member, Token};
use crate::time::{Alarms, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Where "now" is put: times before it stay apart from each other.
const NOW: u64 = 1 << 48;

fn shift(time: &mut Timestamp, now: Timestamp) {
    time.0 = (NOW + time.0).saturating_sub(now.0);
}

/// How many of the numbers in use are not above this: order is kept, and nothing else.
fn rank(used: &BTreeSet<u64>, number: u64) -> u64 {
    used.range(..=number).count() as u64
}

impl Member {
    /// This state with times relative to `now`, without alarms (they follow from the rest), jitter and records, and with counters
    /// renumbered; and the new name of each request in flight, for whoever holds them. Two members that do the same from now on,
    /// jitter aside, are equal in this form. It is for comparing, not for going on with.
    #[must_use]
    pub fn canonical(&self, now: Timestamp) -> (Member, BTreeMap<Token, Token>) {
        let mut this = self.clone();
        this.alarms = Alarms::default();
        this.jitter = Jitter::new(0);
        this.record = Records::default();
        this.relative_times(now);
        this.renumber_commits();
        this.renumber_starts();
        let tokens = this.renumber_tokens();
        (this, tokens)
    }

    fn relative_times(&mut self, now: Timestamp) {
        for retry in [
            &mut self.rounds,
            &mut self.line.search,
            &mut self.offsets.fetch,
            &mut self.offsets.commits.retry,
            &mut self.beat.retry,
        ] {
            // A pause that is over is no pause.
            if retry.may(now) {
                retry.over();
            } else {
                shift(retry.time(), now);
            }
        }
        self.line.quiet.retain(|_, until| *until > now);
        // Nor do deadlines matter that have passed without anybody waiting for them.
        for due in [
            self.watching.time(),
            &mut self.offsets.next_auto,
            &mut self.beat.next,
        ] {
            *due = now.max(*due);
        }
        if self.offsets.commits.queue.is_empty() {
            self.offsets.release_hold();
        }
        let flights = self.line.flights.values_mut();
        let flights = flights.flat_map(|flight| [&mut flight.sent, &mut flight.due]);
        let flights = flights.chain(self.line.quiet.values_mut());
        let commits = &mut self.offsets.commits;
        let commits = commits
            .queue
            .iter_mut()
            .map(|entry| &mut entry.deadline)
            .chain(&mut commits.held);
        let release = self.ownership.release.as_mut();
        let since = match &mut self.state {
            State::Leaving(leaving) => leaving.time(),
            _ => None,
        };
        flights
            .chain(commits)
            .chain(release.map(|release| &mut release.deadline))
            .chain(since)
            .chain(self.closing.as_mut().map(|closing| &mut closing.deadline))
            .chain([
                &mut self.now,
                &mut self.polled,
                &mut self.membership.heard,
                &mut self.offsets.next_auto,
                &mut self.beat.next,
                self.watching.time(),
            ])
            .for_each(|time| shift(time, now));
    }

    fn renumber_commits(&mut self) {
        let commits = &mut self.offsets.commits;
        let used: BTreeSet<u64> = commits.queue.iter().map(|entry| entry.serial).collect();
        let batches = self.line.flights.values_mut().flat_map(|flight| {
            if let Work::Commit(batch) = &mut flight.work {
                vec![&mut batch.serials.0, &mut batch.serials.1]
            } else {
                Vec::new()
            }
        });
        let release = self.ownership.release.as_mut();
        let joining = match &mut self.state {
            State::Joining(joining) => Some(joining.barrier()),
            _ => None,
        };
        commits
            .queue
            .iter_mut()
            .map(|entry| &mut entry.serial)
            .chain(batches)
            .chain(release.and_then(|release| release.barrier.as_mut()))
            .chain(joining)
            .chain([&mut commits.serial])
            .for_each(|serial| *serial = rank(&used, *serial));
    }

    fn renumber_starts(&mut self) {
        let fetches = self.line.flights.values_mut().filter_map(|flight| {
            if let Work::Fetch(asked) = &mut flight.work {
                Some(asked)
            } else {
                None
            }
        });
        let (last, waiting) = self.offsets.starts();
        let used: BTreeSet<u64> = waiting.values().copied().collect();
        *last = rank(&used, *last);
        for asked in fetches {
            // What nobody waits for any more is as good as not asked for.
            asked.retain(|one, start| waiting.get(one) == Some(start));
            for start in asked.values_mut() {
                *start = rank(&used, *start);
            }
        }
        for start in waiting.values_mut() {
            *start = rank(&used, *start);
        }
    }

    fn renumber_tokens(&mut self) -> BTreeMap<Token, Token> {
        let flights: Vec<(Token, Flight)> =
            std::mem::take(&mut self.line.flights).into_iter().collect();
        self.line.last_token = flights.len() as u64;
        let mut names = BTreeMap::new();
        for (at, (token, flight)) in flights.into_iter().enumerate() {
            let name = Token(at as u64 + 1);
            names.insert(token, name);
            self.line.flights.insert(name, flight);
        }
        names
    }
}
