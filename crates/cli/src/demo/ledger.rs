//! The demo's book-keeping: who owned which partition when, and which record came out how often.
//!
//! It believes nobody: ownership is what the members said in the order of one clock, and a record counts as delivered when a
//! member that owned its partition handed it over with the bytes that were produced.

use std::collections::BTreeMap;

/// Milliseconds since the story began.
pub(super) type Millis = f64;

/// Why a partition had no owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// It went from one live member to another.
    HandOver,
    /// Its owner crashed, and the group waited for the session to end.
    Crashed,
    /// Its owner, a static member, was restarting.
    Away,
}

/// Something that happened to a group.
#[derive(Clone, Debug)]
pub(super) enum Happened {
    /// A member owns these from now on.
    Assigned(Vec<i32>),
    /// A member has let go of these.
    Released(Vec<i32>),
    /// A member was told that it no longer owns these.
    Lost(Vec<i32>),
    /// A member's process died.
    Crashed,
    /// A static member goes away to come back: what it releases is not a hand-over.
    GoesAway,
    /// A static member is back.
    Back,
    /// A record came out of a member: partition, offset, and what it contained.
    Delivered(i32, i64, u64),
}

/// A stretch of time in which a partition had one owner, or none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) owner: Option<String>,
    pub(super) from: Millis,
    pub(super) until: Option<Millis>,
}

/// A partition that changed hands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moved {
    pub(super) partition: i32,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) at: Millis,
    pub(super) ownerless_ms: Millis,
    pub(super) gap: Gap,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    stretches: Vec<Stretch>,
    /// The last owner, and why it is gone.
    gone: Option<(String, Gap)>,
}

/// What is added up at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) produced: usize,
    /// Produced records that came out at least once.
    pub(super) delivered: usize,
    /// Deliveries beyond the first.
    pub(super) repeated: usize,
    /// Of these, such as were read again because their reader crashed before it committed.
    pub(super) repeated_after_crash: usize,
    pub(super) missing: usize,
    /// Deliveries that fit no produced record.
    pub(super) phantom: usize,
    pub(super) two_owners: usize,
    pub(super) ownerless_partition_ms: Millis,
    pub(super) crashed_partition_ms: Millis,
    pub(super) away_partition_ms: Millis,
}

/// The book of one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    lanes: BTreeMap<i32, Lane>,
    crashed: Vec<String>,
    away: Vec<String>,
    /// (partition, offset) → (content, times delivered).
    delivered: BTreeMap<(i32, i64), (u64, usize)>,
    repeated: usize,
    repeated_after_crash: usize,
    two_owners: Vec<(i32, String, String, Millis)>,
    moves: Vec<Moved>,
}

impl Ledger {
    /// A book of so many partitions.
    pub(super) fn new(partitions: i32) -> Self {
        Self {
            lanes: (0..partitions).map(|p| (p, Lane::default())).collect(),
            ..Self::default()
        }
    }

    /// Writes down what `member` did at `at`. Must be called in the order of time.
    pub(super) fn write(&mut self, at: Millis, member: &str, what: Happened) {
        match what {
            Happened::Assigned(partitions) => {
                for p in partitions {
                    self.assigned(at, member, p);
                }
            }
            Happened::Released(partitions) => {
                let gap = if self.away.iter().any(|m| m == member) {
                    Gap::Away
                } else {
                    Gap::HandOver
                };
                for p in partitions {
                    self.ownerless(at, member, p, gap);
                }
            }
            Happened::Lost(partitions) => {
                for p in partitions {
                    self.ownerless(at, member, p, Gap::HandOver);
                }
            }
            Happened::Crashed => {
                self.crashed.push(member.to_owned());
                for p in self.owned(member) {
                    self.ownerless(at, member, p, Gap::Crashed);
                }
            }
            Happened::GoesAway => self.away.push(member.to_owned()),
            Happened::Back => self.away.retain(|m| m != member),
            Happened::Delivered(partition, offset, content) => {
                self.deliver(partition, offset, content);
            }
        }
    }

    fn assigned(&mut self, at: Millis, member: &str, partition: i32) {
        let lane = self.lanes.entry(partition).or_default();
        if let Some(last) = lane.stretches.last_mut() {
            match &last.owner {
                Some(owner) if owner == member => return,
                Some(owner) => {
                    let two = (partition, owner.clone(), member.to_owned(), at);
                    self.two_owners.push(two);
                    last.until = Some(at);
                }
                None => {
                    last.until = Some(at);
                    if let Some((from, gap)) = lane.gone.take() {
                        self.moves.push(Moved {
                            partition,
                            from,
                            to: member.to_owned(),
                            at,
                            ownerless_ms: at - last.from,
                            gap,
                        });
                    }
                }
            }
        }
        lane.stretches.push(Stretch {
            owner: Some(member.to_owned()),
            from: at,
            until: None,
        });
    }

    fn ownerless(&mut self, at: Millis, member: &str, partition: i32, gap: Gap) {
        let lane = self.lanes.entry(partition).or_default();
        let Some(last) = lane.stretches.last_mut() else {
            return;
        };
        if last.owner.as_deref() != Some(member) {
            return;
        }
        last.until = Some(at);
        lane.gone = Some((member.to_owned(), gap));
        lane.stretches.push(Stretch {
            owner: None,
            from: at,
            until: None,
        });
    }

    fn deliver(&mut self, partition: i32, offset: i64, content: u64) {
        let seen = self
            .delivered
            .entry((partition, offset))
            .or_insert((content, 0));
        seen.1 += 1;
        if seen.1 == 1 {
            return;
        }
        self.repeated += 1;
        if self.after_crash(partition) {
            self.repeated_after_crash += 1;
        }
    }

    /// Whether a crash is the last thing that took the partition from somebody.
    fn after_crash(&self, partition: i32) -> bool {
        self.moves
            .iter()
            .rev()
            .find(|m| m.partition == partition)
            .is_some_and(|m| m.gap == Gap::Crashed)
    }

    /// The partitions that `member` owns now.
    pub(super) fn owned(&self, member: &str) -> Vec<i32> {
        let owns = |lane: &Lane| {
            lane.stretches
                .last()
                .is_some_and(|s| s.owner.as_deref() == Some(member))
        };
        self.lanes
            .iter()
            .filter(|(_, lane)| owns(lane))
            .map(|(p, _)| *p)
            .collect()
    }

    /// Whether every partition has an owner now.
    pub(super) fn all_owned(&self) -> bool {
        self.lanes
            .values()
            .all(|lane| lane.stretches.last().is_some_and(|s| s.owner.is_some()))
    }

    /// The stretches of a partition, the first one first.
    pub(super) fn stretches(&self, partition: i32) -> &[Stretch] {
        self.lanes
            .get(&partition)
            .map_or(&[], |lane| &lane.stretches)
    }

    /// Everything that moved so far, in order.
    pub(super) fn moves(&self) -> &[Moved] {
        &self.moves
    }

    /// Where two live members held a partition: partition, the one, the other, when.
    pub(super) fn two_owners(&self) -> &[(i32, String, String, Millis)] {
        &self.two_owners
    }

    /// How many different records came out so far.
    pub(super) fn delivered_once(&self) -> usize {
        self.delivered.len()
    }

    /// Adds everything up at `now`, against what was `produced`: (partition, offset) → content.
    pub(super) fn totals(&self, now: Millis, produced: &BTreeMap<(i32, i64), u64>) -> Totals {
        let came_out = |key, content| {
            self.delivered
                .get(key)
                .is_some_and(|seen| seen.0 == content)
        };
        let delivered = produced
            .iter()
            .filter(|(key, content)| came_out(key, **content))
            .count();
        let phantom = |key, seen: &(u64, usize)| produced.get(key) != Some(&seen.0);
        let mut totals = Totals {
            produced: produced.len(),
            delivered,
            repeated: self.repeated,
            repeated_after_crash: self.repeated_after_crash,
            missing: produced.len() - delivered,
            phantom: self
                .delivered
                .iter()
                .filter(|(key, seen)| phantom(key, seen))
                .count(),
            two_owners: self.two_owners.len(),
            ..Totals::default()
        };
        for moved in &self.moves {
            totals.add_gap(moved.gap, moved.ownerless_ms);
        }
        for lane in self.lanes.values() {
            if let (Some((_, gap)), Some(last)) = (&lane.gone, lane.stretches.last()) {
                totals.add_gap(*gap, now - last.from);
            }
        }
        totals
    }
}

impl Totals {
    fn add_gap(&mut self, gap: Gap, ms: Millis) {
        match gap {
            Gap::HandOver => self.ownerless_partition_ms += ms,
            Gap::Crashed => self.crashed_partition_ms += ms,
            Gap::Away => self.away_partition_ms += ms,
        }
    }

    /// Whether the story went as promised.
    pub(super) fn sound(&self) -> bool {
        self.missing == 0 && self.two_owners == 0 && self.phantom == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn produced(n: i64) -> BTreeMap<(i32, i64), u64> {
        (0..n).map(|offset| ((0, offset), offset as u64)).collect()
    }

    #[test]
    fn a_hand_over_counts_from_release_to_assignment() {
        let mut ledger = Ledger::new(1);
        ledger.write(0.0, "a", Happened::Assigned(vec![0]));
        ledger.write(10.0, "a", Happened::Released(vec![0]));
        ledger.write(14.5, "b", Happened::Assigned(vec![0]));
        let totals = ledger.totals(20.0, &produced(0));
        assert_eq!((totals.ownerless_partition_ms, totals.two_owners), (4.5, 0));
        assert_eq!(ledger.moves()[0].to, "b");
    }

    #[test]
    fn two_live_owners_are_seen_and_a_crashed_one_is_not_counted() {
        let mut ledger = Ledger::new(2);
        ledger.write(0.0, "a", Happened::Assigned(vec![0, 1]));
        ledger.write(1.0, "b", Happened::Assigned(vec![0]));
        assert_eq!(ledger.two_owners().len(), 1);
        ledger.write(2.0, "a", Happened::Crashed);
        ledger.write(8.0, "b", Happened::Assigned(vec![1]));
        assert_eq!(ledger.two_owners().len(), 1);
        assert_eq!(ledger.totals(9.0, &produced(0)).crashed_partition_ms, 6.0);
    }

    #[test]
    fn a_restart_is_not_a_hand_over() {
        let mut ledger = Ledger::new(1);
        ledger.write(0.0, "s", Happened::Assigned(vec![0]));
        ledger.write(1.0, "s", Happened::GoesAway);
        ledger.write(2.0, "s", Happened::Released(vec![0]));
        ledger.write(3.0, "s", Happened::Back);
        ledger.write(4.0, "s", Happened::Assigned(vec![0]));
        let totals = ledger.totals(9.0, &produced(0));
        assert_eq!(
            (totals.away_partition_ms, totals.ownerless_partition_ms),
            (2.0, 0.0)
        );
    }

    #[test]
    fn missing_repeated_and_strange_records_are_told_apart() {
        let mut ledger = Ledger::new(1);
        ledger.write(0.0, "a", Happened::Assigned(vec![0]));
        for (offset, content) in [(0, 0), (1, 1), (1, 1), (7, 7)] {
            ledger.write(1.0, "a", Happened::Delivered(0, offset, content));
        }
        let totals = ledger.totals(9.0, &produced(3));
        assert_eq!(
            (
                totals.delivered,
                totals.missing,
                totals.repeated,
                totals.phantom
            ),
            (2, 1, 1, 1)
        );
        assert!(!totals.sound());
    }

    #[test]
    fn a_gap_that_never_ends_is_counted_until_now() {
        let mut ledger = Ledger::new(1);
        ledger.write(0.0, "a", Happened::Assigned(vec![0]));
        ledger.write(5.0, "a", Happened::Released(vec![0]));
        assert!(!ledger.all_owned());
        assert_eq!(ledger.totals(9.0, &produced(0)).ownerless_partition_ms, 4.0);
    }
}
