//! Whom a round waited for.

use crate::history::{Wait, WaitedTo};
use crate::time::Timestamp;
use std::sync::Arc;

/// The most members that one wait is laid on.
const SLOWEST: usize = 3;

/// The ones that came late, and how long after those before them. Where several came late together each of them is one: they are those
/// after the longest pause.
pub(super) fn latecomers(mut came: Vec<(Timestamp, Arc<str>)>, to: WaitedTo) -> Vec<Wait> {
    came.sort_unstable();
    let pause = |at: usize| came[at].0.since(came[at - 1].0);
    let Some(longest) = (1..came.len()).rev().max_by_key(|at| pause(*at)) else {
        return Vec::new();
    };
    let before = came[longest - 1].0;
    let late = came[longest..].iter().rev().take(SLOWEST);
    late.map(|(at, id)| Wait {
        member_id: id.to_string(),
        to,
        ms: at.since(before),
    })
    .filter(|wait| wait.ms > 0)
    .collect()
}

/// One wait, if it took any time.
pub(super) fn wait(member_id: &str, to: WaitedTo, ms: u64) -> Option<Wait> {
    (ms > 0).then(|| Wait {
        member_id: member_id.to_owned(),
        to,
        ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(came: &[(u64, &str)]) -> Vec<(String, u64)> {
        let came = came.iter().map(|(at, id)| (Timestamp(*at), Arc::from(*id)));
        latecomers(came.collect(), WaitedTo::Join)
            .into_iter()
            .map(|wait| (wait.member_id, wait.ms))
            .collect()
    }

    #[test]
    fn those_after_the_longest_pause_are_waited_for() {
        let of = |id: &str, ms| (id.to_owned(), ms);
        assert_eq!(late(&[(9, "a"), (5, "b"), (3_000, "c")]), [of("c", 2_991)]);
        assert_eq!(
            late(&[(5, "a"), (3_000, "b"), (3_100, "c")]),
            [of("c", 3_095), of("b", 2_995)]
        );
        assert_eq!(late(&[(5, "a")]), []);
        assert_eq!(late(&[(5, "a"), (5, "b")]), []);
    }
}
