//! The main job on one screen: two groups of real consumers play the same story on one broker.

mod lanes;
mod ledger;
mod rebalances;
mod report;
mod screen;
mod story;
mod track;
