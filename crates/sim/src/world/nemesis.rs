//! The nemesis: breaks one thing after another, each run with the faults that its seed drew. Its strikes are numbered and have a chance
//! of their own, so that a shrunk run can leave some out.

use super::broker::NextAppend;
use super::network::Cut;
use super::{Event, World};
use crate::fact::Process as ProcessId;
use crate::faults::Fault;
use kohort_group::member::{Input, Lane, Subscription};
use kohort_group::reason::JoinReason;
use kohort_wire::ErrorCode;

impl World {
    /// Breaks something, and comes back later.
    pub(super) fn nemesis(&mut self) {
        if self.peace.is_some() {
            return;
        }
        let gap = self.fate.between(1, self.scenario.fault_gap_ms);
        self.after(gap, Event::Nemesis);
        let known: Vec<Fault> = self.scenario.faults.iter().copied().collect();
        if !known.is_empty() {
            let fault = *self.fate.pick(&known);
            self.strikes += 1;
            if !self.case.skip.contains(&self.strikes) {
                self.strike(fault);
            }
        }
    }

    pub(super) fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::CoordinatorCrash | Fault::TailLost => {
                let tail = fault == Fault::TailLost;
                if self.fate.percent(70) || tail {
                    self.broker.next_append = NextAppend::Crash { tail };
                } else {
                    self.after(0, Event::Crash { tail });
                }
            }
            Fault::CoordinatorMoved => {
                self.move_away();
            }
            Fault::AppendFailed => {
                let code = *self.fate.pick(&[
                    ErrorCode::NotEnoughReplicas,
                    ErrorCode::RequestTimedOut,
                    ErrorCode::NotLeaderOrFollower,
                    ErrorCode::MessageTooLarge,
                ]);
                self.broker.next_append = NextAppend::Fails(code);
            }
            Fault::SlowNetwork => {
                let length = self.fate.between(500, 5_000);
                self.broker.slow_network_until = self.now + length;
                self.bit(fault);
            }
            Fault::TopicGrown => self.bit_if(fault, Self::grow_topic),
            Fault::TopicCreated => self.bit_if(fault, Self::create_topic),
            Fault::TopicDeleted => self.bit_if(fault, Self::delete_topic),
            Fault::MemberJoin => self.join(),
            // They show by themselves.
            Fault::SlowLoad | Fault::MixedModes | Fault::OldVersions | Fault::ClockSkew => {}
            _ => self.strike_member(fault),
        }
    }

    fn bit_if(&mut self, fault: Fault, strike: impl FnOnce(&mut Self) -> bool) {
        if strike(self) {
            self.bit(fault);
        }
    }

    /// A process starts in an empty place, or in a new one.
    fn join(&mut self) {
        let empty = self.slots.iter().position(|slot| slot.process.is_none());
        let slot = match empty {
            Some(slot) if self.starting == 0 => slot,
            None if (self.slots.len() as u64) < self.scenario.consumers.1 => self.new_slot(),
            _ => return,
        };
        self.bit(Fault::MemberJoin);
        self.start_later(slot, 0);
    }

    /// Breaks something about one member.
    fn strike_member(&mut self, fault: Fault) {
        let live: Vec<ProcessId> = self.live.iter().copied().collect();
        if live.is_empty() {
            return;
        }
        let process = *self.fate.pick(&live);
        let lane = *self.fate.pick(&[Lane::Rounds, Lane::Control]);
        let slot = self.processes[process].slot;
        let is_static = self.slots[slot].instance.is_some();
        let (session, max_poll) = (self.scenario.session_ms, self.scenario.max_poll_ms);
        match fault {
            Fault::CutBefore => {
                self.processes[process].cuts.insert(lane, Cut::Before);
            }
            Fault::CutAfter => {
                self.processes[process].cuts.insert(lane, Cut::After);
            }
            Fault::AnswerLost => {
                self.processes[process].cuts.insert(lane, Cut::Answer);
            }
            Fault::MemberCrash => {
                self.end(process);
                self.bit(fault);
                let delay = self.fate.between(100, 2 * session);
                self.start_later(slot, delay);
            }
            Fault::StaticRestart if is_static => {
                self.end(process);
                self.bit(fault);
                let delay = self.fate.between(10, session / 2);
                self.start_later(slot, delay);
            }
            Fault::DuplicateInstance if is_static => {
                self.bit(fault);
                self.start_later(slot, 0);
            }
            Fault::SessionPause => {
                let pause = session + self.fate.between(100, session);
                self.pause(fault, process, pause);
            }
            Fault::RebalancePause => {
                let pause = max_poll + self.fate.between(100, 5_000);
                self.pause(fault, process, pause);
            }
            Fault::Throttled => {
                self.processes[process].throttle_ms = self.fate.between(50, 3_000);
            }
            Fault::PollPause => {
                self.bit(fault);
                let pause = max_poll + self.fate.between(1, 5_000);
                self.processes[process].silent_until = self.now + pause;
            }
            Fault::SlowRevoke => {
                let longer = self.fate.between(500, max_poll / 2);
                self.processes[process].slow_release = Some((longer, fault));
            }
            Fault::StuckRevoke => {
                let longer = max_poll + self.fate.between(1, 5_000);
                self.processes[process].slow_release = Some((longer, fault));
            }
            Fault::LateSync => {
                self.processes[process].late_sync_ms = self.fate.between(20, max_poll / 2);
            }
            _ => self.strike_application(fault, process, slot),
        }
    }

    /// A process stands still.
    fn pause(&mut self, fault: Fault, process: ProcessId, length: u64) {
        self.processes[process].paused = true;
        self.bit(fault);
        self.after(length, Event::Resume(process));
    }

    /// An application changes its mind.
    fn strike_application(&mut self, fault: Fault, process: ProcessId, slot: usize) {
        if self.processes[process].paused || self.processes[process].closing {
            return;
        }
        match fault {
            Fault::SubscriptionChanged => {
                self.bit(fault);
                self.resubscribe(process, slot);
            }
            Fault::Unsubscribed => {
                self.bit(fault);
                self.tell(process, Input::Unsubscribe);
                let delay = self.fate.between(0, 5_000);
                let wants = self.slots[slot].wants.clone();
                let input = Input::Subscribe(Subscription::Topics(wants));
                self.after(delay, Event::Input(process, Box::new(input)));
            }
            Fault::MemberLeave => {
                self.bit(fault);
                self.processes[process].closing = true;
                let drain = self.fate.percent(60);
                self.tell(process, Input::Close { drain });
            }
            Fault::RebalanceRequested => {
                self.bit(fault);
                let reason = *self
                    .random
                    .pick(&[JoinReason::Requested, JoinReason::StateReady]);
                self.tell(process, Input::RequestRebalance(reason));
            }
            _ => {}
        }
    }

    fn resubscribe(&mut self, process: ProcessId, slot: usize) {
        let wants = self.draw_topics();
        self.slots[slot].wants.clone_from(&wants);
        self.tell(process, Input::Subscribe(Subscription::Topics(wants)));
    }
}
