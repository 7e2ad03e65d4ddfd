//! A coordinator's state with times relative to now and without what only people read: what a model checker compares.

use super::Coordinator;
use crate::time::{Alarms, Timestamp};

/// Where "now" is put.
const NOW: u64 = 1 << 48;

impl Coordinator {
    /// This state with times relative to `now`, without records of rebalances, causes and counters. Two coordinators that do the same from
    /// now on, member ids aside, are equal in this form. It is for comparing, not for going on with.
    #[must_use]
    pub fn canonical(&self, now: Timestamp) -> Self {
        let mut this = self.clone();
        this.now = Timestamp(NOW);
        this.next_append = 0;
        let mut alarms = Alarms::default();
        for (alarm, due) in self.alarms.iter() {
            // Offsets that expire in a week tell no two states apart.
            if !matches!(alarm, super::Alarm::Retention) {
                let due = Timestamp((NOW + due.0).saturating_sub(now.0));
                alarms.set(alarm.clone(), due);
            }
        }
        this.alarms = alarms;
        for group in this.groups.values_mut() {
            group.plain();
        }
        this
    }
}
