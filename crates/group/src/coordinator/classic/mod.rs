//! The classic group: one file for each story.

mod heartbeat;
mod join;
mod leave;
mod membership;
mod overtaken;
mod round;
mod state;
mod static_members;
mod sync;

pub(super) use membership::{Identity, Member};
pub(super) use state::{Group, GroupState};
pub(super) use static_members::Undo;
