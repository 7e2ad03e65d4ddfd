//! What became of a run, and of many.

use crate::faults::{Fault, FaultCounts};
use crate::scenario::Scenario;
use crate::transition::Transition;
use kohort_wire::{ApiKey, ErrorCode};
use std::collections::BTreeMap;
use std::fmt;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule: an invariant's id and name.
    pub rule: &'static str,
    /// When, in virtual milliseconds.
    pub at: u64,
    /// What was expected and what came.
    pub what: String,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The run's seed.
    pub seed: u64,
    /// Whether it was a calm run.
    pub calm: bool,
    /// The hash of everything that happened: the same for the same seed.
    pub hash: u64,
    /// How many events there were.
    pub events: u64,
    /// How long it took, in virtual milliseconds.
    pub virtual_ms: u64,
    /// How often each fault bit.
    pub faults: FaultCounts,
    /// The error codes that members were told, by API.
    pub codes: BTreeMap<(ApiKey, ErrorCode), u64>,
    /// The alarms that fired.
    pub alarms: BTreeMap<&'static str, u64>,
    /// The transitions that the machines took.
    pub transitions: BTreeMap<Transition, u64>,
    /// Records that applications read, repetitions included.
    pub delivered: u64,
    /// Rebalances that the coordinator has recorded.
    pub rebalances: u64,
    /// Of a calm run: how often each change took how many rounds.
    pub rounds: BTreeMap<(&'static str, i32), u64>,
    /// How often the nemesis struck.
    pub strikes: u64,
    /// The broken rule, if there is one.
    pub violation: Option<Violation>,
    /// What the seed drew.
    pub scenario: Scenario,
    /// The last events in words, if they were asked for.
    pub last: Vec<String>,
}

/// A failed run: the rule, the last events, and how to see it again.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(violation) = &self.violation else {
            return write!(
                f,
                "seed {}: {} events in {} virtual ms, trace {:016x}",
                self.seed, self.events, self.virtual_ms, self.hash
            );
        };
        writeln!(f, "{:?}", self.scenario)?;
        for line in &self.last {
            writeln!(f, "{line}")?;
        }
        writeln!(
            f,
            "seed {} broke {} at {} ms:\n  {}",
            self.seed, violation.rule, violation.at, violation.what
        )?;
        write!(
            f,
            "see it again: kohort lab {}--seeds {}..{} --trace 60",
            if self.calm { "--calm " } else { "" },
            self.seed,
            self.seed + 1
        )
    }
}

/// What became of many runs.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many there were.
    pub runs: u64,
    /// The seeds that broke a rule, with the rule.
    pub failed: Vec<(u64, &'static str)>,
    /// How many virtual milliseconds they took in all.
    pub virtual_ms: u64,
    /// How many events there were in all.
    pub events: u64,
    /// Records that applications read in all, repetitions included.
    pub delivered: u64,
    /// Rebalances in all.
    pub rebalances: u64,
    /// How often each fault bit.
    pub faults: FaultCounts,
    /// The error codes that members were told, by API.
    pub codes: BTreeMap<(ApiKey, ErrorCode), u64>,
    /// The alarms that fired.
    pub alarms: BTreeMap<&'static str, u64>,
    /// The transitions that the machines took.
    pub transitions: BTreeMap<Transition, u64>,
    /// Of calm runs: how often each change took how many rounds.
    pub rounds: BTreeMap<(&'static str, i32), u64>,
}

impl Summary {
    /// Adds a run.
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.virtual_ms += outcome.virtual_ms;
        self.events += outcome.events;
        self.delivered += outcome.delivered;
        self.rebalances += outcome.rebalances;
        if let Some(violation) = &outcome.violation {
            self.failed.push((outcome.seed, violation.rule));
        }
        sum(&mut self.faults, &outcome.faults);
        sum(&mut self.codes, &outcome.codes);
        sum(&mut self.alarms, &outcome.alarms);
        sum(&mut self.transitions, &outcome.transitions);
        sum(&mut self.rounds, &outcome.rounds);
    }

    /// Adds all runs of another summary.
    pub fn merge(&mut self, other: &Summary) {
        self.runs += other.runs;
        self.virtual_ms += other.virtual_ms;
        self.events += other.events;
        self.delivered += other.delivered;
        self.rebalances += other.rebalances;
        self.failed.extend_from_slice(&other.failed);
        sum(&mut self.faults, &other.faults);
        sum(&mut self.codes, &other.codes);
        sum(&mut self.alarms, &other.alarms);
        sum(&mut self.transitions, &other.transitions);
        sum(&mut self.rounds, &other.rounds);
    }

    /// The seeds that failed, by the rule that they broke.
    #[must_use]
    pub fn failed_by_rule(&self) -> BTreeMap<&'static str, Vec<u64>> {
        let mut by_rule: BTreeMap<&'static str, Vec<u64>> = BTreeMap::new();
        for (seed, rule) in &self.failed {
            by_rule.entry(rule).or_default().push(*seed);
        }
        by_rule
    }

    /// The faults that never bit.
    #[must_use]
    pub fn never_bit(&self) -> Vec<Fault> {
        Fault::ALL
            .iter()
            .copied()
            .filter(|fault| !self.faults.contains_key(fault))
            .collect()
    }
}

fn sum<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *into.entry(key.clone()).or_default() += count;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} runs, {} virtual hours, {} events, {} rebalances, {} records read; {} failed",
            self.runs,
            self.virtual_ms / 3_600_000,
            self.events,
            self.rebalances,
            self.delivered,
            self.failed.len()
        )?;
        writeln!(f, "faults that bit:")?;
        for fault in Fault::ALL {
            let count = self.faults.get(fault).copied().unwrap_or(0);
            writeln!(f, "{count:>10}  {fault}")?;
        }
        writeln!(f, "error codes that members were told:")?;
        for ((api, code), count) in &self.codes {
            writeln!(f, "{count:>10}  {} {}", api.name(), code.name())?;
        }
        writeln!(f, "alarms that fired:")?;
        for (alarm, count) in &self.alarms {
            writeln!(f, "{count:>10}  {alarm}")?;
        }
        writeln!(f, "transitions that were taken:")?;
        for (transition, count) in &self.transitions {
            writeln!(f, "{count:>10}  {transition}")?;
        }
        if !self.rounds.is_empty() {
            writeln!(f, "rounds of a change:")?;
        }
        for ((change, rounds), count) in &self.rounds {
            writeln!(f, "{count:>10}  {change}: {rounds}")?;
        }
        for (rule, seeds) in self.failed_by_rule() {
            let some: Vec<String> = seeds.iter().take(8).map(u64::to_string).collect();
            writeln!(
                f,
                "{:>10}  broke {rule}: seeds {} …",
                seeds.len(),
                some.join(" ")
            )?;
        }
        Ok(())
    }
}
