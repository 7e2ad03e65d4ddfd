//! G6: no machine wakes up again and again without time going on.
//!
//! Would have caught KAFKA-10134: a client that spun while the group prepared a rebalance.

use super::Invariant;
use crate::fact::{Fact, Machine};
use crate::ledger::Ledger;
use std::collections::BTreeMap;

/// More alarms than a machine may have armed for one moment.
const MOST_AT_ONCE: u32 = 60;

#[derive(Default)]
pub(crate) struct NoBusyLoop {
    woken: BTreeMap<Machine, (u64, u32)>,
}

impl Invariant for NoBusyLoop {
    fn name(&self) -> &'static str {
        "G6 no busy loop"
    }

    fn see(&mut self, now: u64, fact: &Fact<'_>, _: &Ledger) -> Result<(), String> {
        let Fact::Slept { machine, deadline } = fact else {
            return Ok(());
        };
        if deadline.is_none_or(|deadline| deadline > now) {
            self.woken.remove(machine);
            return Ok(());
        }
        let (at, times) = self.woken.entry(*machine).or_insert((now, 0));
        if *at != now {
            (*at, *times) = (now, 0);
        }
        *times += 1;
        if *times > MOST_AT_ONCE {
            return Err(format!("{machine:?} wakes up again and again at {now}"));
        }
        Ok(())
    }
}
