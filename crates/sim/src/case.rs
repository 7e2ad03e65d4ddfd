//! One run in a file: the seed, and what is left out of it. A failing seed is shrunk to the smallest case that breaks the same rule.

use crate::outcome::Outcome;
use crate::scenario::Scenario;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The first line of a trace file.
const HEAD: &str = "kohort trace 1";

/// How many runs a shrinking takes at most.
const MOST_RUNS: usize = 400;

/// A run: the seed decides all that is not said here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Case {
    /// The seed.
    pub seed: u64,
    /// The strikes of the nemesis that are left out, by number, the first being 1.
    pub skip: BTreeSet<u64>,
    /// How many consumers there are at first, if not as many as the seed says.
    pub consumers: Option<u64>,
    /// How many milliseconds things are broken, if not as long as the seed says.
    pub trouble_ms: Option<u64>,
    /// How late each SyncGroup of every other member is, always.
    pub late_sync_ms: Option<u64>,
    /// Whether nothing breaks, and one thing changes at a time.
    pub calm: bool,
}

impl Case {
    /// The whole run of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// The calm run of a seed: nothing breaks, and one thing changes at a time.
    #[must_use]
    pub fn calm(seed: u64) -> Self {
        Self {
            calm: true,
            ..Self::of(seed)
        }
    }

    pub(crate) fn lessen(&self, scenario: &mut Scenario) {
        if let Some(consumers) = self.consumers {
            scenario.consumers.0 = consumers;
        }
        if let Some(trouble) = self.trouble_ms {
            scenario.trouble_ms = trouble;
        }
        if self.calm {
            scenario.faults.clear();
        }
    }

    /// The smallest case that was found to break the rule that this one breaks, and what becomes of it; as it is if it breaks none.
    #[must_use]
    pub fn shrink(&self) -> (Self, Outcome) {
        let outcome = crate::run_case(self, 0);
        let Some(violation) = &outcome.violation else {
            return (self.clone(), outcome);
        };
        let mut search = Search {
            best: self.clone(),
            rule: violation.rule,
            strikes: outcome.strikes,
            runs: 0,
        };
        let until = Self {
            trouble_ms: Some(violation.at.max(1)),
            ..self.clone()
        };
        search.better(until);
        search.fewer_strikes();
        search.fewer_consumers();
        search.fewer_strikes();
        let last = crate::run_case(&search.best, crate::LAST_EVENTS);
        (search.best, last)
    }

    /// The file: the case, and below it what happens, as comments.
    #[must_use]
    pub fn file(&self) -> String {
        let outcome = crate::run_case(self, usize::MAX);
        let mut text = format!("{self}\n");
        text.push_str("# kohort replay FILE runs it again. What happens:\n");
        for line in &outcome.last {
            text.push_str(&format!("# {line}\n"));
        }
        if let Some(violation) = &outcome.violation {
            text.push_str(&format!(
                "# broke {} at {} ms: {}\n",
                violation.rule, violation.at, violation.what
            ));
        }
        text
    }
}

struct Search {
    best: Case,
    rule: &'static str,
    strikes: u64,
    runs: usize,
}

impl Search {
    /// Takes the case if it breaks the same rule.
    fn better(&mut self, case: Case) -> bool {
        if self.runs == MOST_RUNS {
            return false;
        }
        self.runs += 1;
        let outcome = crate::run_case(&case, 0);
        let same = outcome
            .violation
            .is_some_and(|violation| violation.rule == self.rule);
        if same {
            self.strikes = outcome.strikes;
            self.best = case;
        }
        same
    }

    /// Leaves strikes out, half of them at once, then ever smaller parts (delta debugging).
    fn fewer_strikes(&mut self) {
        let mut size = self.strikes;
        while size > 0 {
            let mut from = 1;
            while from <= self.strikes {
                let part = from..=(from + size - 1).min(self.strikes);
                from += size;
                let mut case = self.best.clone();
                let before = case.skip.len();
                case.skip.extend(part);
                if case.skip.len() > before {
                    self.better(case);
                }
            }
            size /= 2;
        }
        self.best.skip.retain(|strike| *strike <= self.strikes);
    }

    fn fewer_consumers(&mut self) {
        for consumers in 1..=3 {
            let fewer = Case {
                consumers: Some(consumers),
                ..self.best.clone()
            };
            if self.better(fewer) {
                return;
            }
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}\nseed {}", self.seed)?;
        if let Some(consumers) = self.consumers {
            writeln!(f, "consumers {consumers}")?;
        }
        if let Some(trouble) = self.trouble_ms {
            writeln!(f, "trouble_ms {trouble}")?;
        }
        if let Some(late) = self.late_sync_ms {
            writeln!(f, "late_sync_ms {late}")?;
        }
        if self.calm {
            writeln!(f, "calm")?;
        }
        write!(f, "skip")?;
        self.skip
            .iter()
            .try_for_each(|strike| write!(f, " {strike}"))
    }
}

/// Reads a trace file; lines that begin with `#` say nothing.
impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEAD) {
            return Err(format!(
                "expected a trace file, whose first line is {HEAD:?}"
            ));
        }
        let mut case = Self::default();
        let mut seeded = false;
        for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let (name, value) = line.split_once(' ').unwrap_or((line, ""));
            let numbers: Result<Vec<u64>, _> = value.split_whitespace().map(str::parse).collect();
            match (name, numbers.as_deref()) {
                ("seed", Ok([seed])) => (case.seed, seeded) = (*seed, true),
                ("consumers", Ok([consumers])) => case.consumers = Some(*consumers),
                ("trouble_ms", Ok([trouble])) => case.trouble_ms = Some(*trouble),
                ("late_sync_ms", Ok([late])) => case.late_sync_ms = Some(*late),
                ("calm", Ok([])) => case.calm = true,
                ("skip", Ok(strikes)) => case.skip = strikes.iter().copied().collect(),
                _ => {
                    return Err(format!(
                        "expected seed, consumers, trouble_ms, late_sync_ms, calm or skip with numbers, got {line:?}"
                    ));
                }
            }
        }
        if seeded {
            Ok(case)
        } else {
            Err("expected a line \"seed N\"".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_was_written() {
        let case = Case {
            seed: 7,
            skip: [1, 2, 9].into(),
            consumers: Some(2),
            trouble_ms: Some(30_000),
            late_sync_ms: Some(30),
            calm: true,
        };
        assert_eq!(case.to_string().parse(), Ok(case.clone()));
        assert_eq!(format!("{case}\n# a word\n").parse(), Ok(case));
        assert_eq!(Case::of(3).to_string().parse(), Ok(Case::of(3)));
        assert!("seed 3".parse::<Case>().is_err());
        assert!("kohort trace 1\nskip x".parse::<Case>().is_err());
    }
}
