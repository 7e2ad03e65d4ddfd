//! What can happen next, and that it ends well when nothing is broken any more.

use crate::room::{Fault, Room};
use kohort_group::coordinator;
use kohort_group::member::{Input, Lane, SendFailure};

/// After a fault, so many steps are enough to converge.
const PATIENCE: usize = 4_000;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The next request of a connection is processed.
    Up(usize, Lane),
    /// The next answer of a connection arrives.
    Down(usize, Lane),
    /// A request of a broken connection is processed.
    Zombie(usize),
    /// A process starts that was to start later.
    Start(usize),
    /// Nothing is under way: the earliest alarm rings.
    Alarm,
    /// A fault at a connection, or at the process in this place.
    Break(Fault, usize, Lane),
}

impl Room {
    /// All that can happen now.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let mut actions = self.messages();
        // A broken connection's request is processed before any time-out.
        if actions.is_empty() && self.zombies.is_empty() && !self.settled() {
            actions.push(Action::Alarm);
        } else if !self.setup.every_order {
            actions.truncate(1);
        }
        actions.extend((0..self.zombies.len()).map(Action::Zombie));
        actions.extend(self.late().map(Action::Start));
        if self.left > 0 {
            self.faults(&mut actions);
        }
        actions
    }

    /// Whether there is no choice any more.
    pub(crate) fn ends_alike(&self) -> bool {
        self.left == 0
            && !self.setup.every_order
            && self.zombies.is_empty()
            && self.late().next().is_none()
    }

    /// The next process that has not started.
    fn late(&self) -> impl Iterator<Item = usize> {
        let place = self.people.iter().position(|person| !person.started);
        place.into_iter()
    }

    fn messages(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        for (place, person) in self.people.iter().enumerate() {
            for (lane, link) in &person.links {
                if !link.down.is_empty() {
                    actions.push(Action::Down(place, *lane));
                }
                if link.busy.is_none() && !link.up.is_empty() {
                    actions.push(Action::Up(place, *lane));
                }
            }
        }
        actions
    }

    fn faults(&self, actions: &mut Vec<Action>) {
        let people = self.people.iter().enumerate();
        for (place, person) in people.filter(|(_, person)| person.started) {
            for (lane, link) in &person.links {
                for fault in &self.setup.kinds {
                    let bites = match fault {
                        Fault::CutBefore | Fault::CutAfter => {
                            !link.up.is_empty() && link.busy.is_none()
                        }
                        Fault::AnswerLost => !link.down.is_empty(),
                        Fault::CoordinatorCrash | Fault::MemberCrash => false,
                    };
                    if bites {
                        actions.push(Action::Break(*fault, place, *lane));
                    }
                }
            }
            if self.setup.kinds.contains(&Fault::MemberCrash) {
                actions.push(Action::Break(Fault::MemberCrash, place, Lane::Rounds));
            }
        }
        if self.setup.kinds.contains(&Fault::CoordinatorCrash) {
            actions.push(Action::Break(Fault::CoordinatorCrash, 0, Lane::Rounds));
        }
    }

    /// Lets it happen; true if it was a fault.
    pub(crate) fn act(&mut self, action: &Action) -> Result<bool, String> {
        let fault = self.happen(action)?;
        for place in 0..self.people.len() {
            if self.people[place].ended {
                self.restart(place);
            }
        }
        Ok(fault)
    }

    fn happen(&mut self, action: &Action) -> Result<bool, String> {
        self.way.push(format!("{:>7} {action:?}", self.now.0));
        match *action {
            Action::Up(place, lane) => self.up(place, lane),
            Action::Down(place, lane) => {
                if let Some((token, response)) = self.down(place, lane) {
                    self.tell(place, Input::Response(token, response))?;
                }
            }
            Action::Zombie(at) => {
                let (version, request) = self.zombies.remove(at);
                self.excused |= matches!(request, coordinator::GroupRequest::JoinGroup(_));
                self.ask(None, version, request);
            }
            Action::Start(place) => self.start(place),
            Action::Alarm => self.alarm()?,
            Action::Break(fault, place, lane) => {
                self.left -= 1;
                self.strike(fault, place, lane)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn up(&mut self, place: usize, lane: Lane) {
        let Some(link) = self.people[place].links.get_mut(&lane) else {
            return;
        };
        let Some((token, version, request)) = link.up.pop_front() else {
            return;
        };
        // Busy before it is asked: the answer may come at once.
        link.busy = Some((coordinator::RequestId(0), token));
        let id = self.ask(Some((place, lane, token)), version, request);
        if let Some(link) = self.people[place].links.get_mut(&lane)
            && let Some(busy) = &mut link.busy
        {
            busy.0 = id;
        }
    }

    fn down(
        &mut self,
        place: usize,
        lane: Lane,
    ) -> Option<(kohort_group::member::Token, coordinator::GroupResponse)> {
        self.people[place].links.get_mut(&lane)?.down.pop_front()
    }

    /// Time goes on to the earliest alarm.
    fn alarm(&mut self) -> Result<(), String> {
        let members = self.people.iter().enumerate();
        let first = members
            .filter_map(|(place, person)| Some((person.member.deadline()?, place)))
            .min();
        let theirs = self.coordinator.deadline();
        match (first, theirs) {
            (Some((due, place)), theirs) if theirs.is_none_or(|theirs| due <= theirs) => {
                self.now = self.now.max(due);
                match self.people[place].member.wakeup() {
                    Some(kohort_group::member::Alarm::Poll) => self.tell(place, Input::Polled),
                    Some(alarm) => self.tell(place, Input::Alarm(alarm)),
                    None => Ok(()),
                }
            }
            (_, Some(due)) => {
                self.now = self.now.max(due);
                if let Some(alarm) = self.coordinator.wakeup() {
                    use coordinator::Alarm;
                    self.excused |= matches!(
                        alarm,
                        Alarm::Session(..) | Alarm::Rebalance(_) | Alarm::PendingSync(_)
                    );
                    self.coordinate(coordinator::Input::Alarm(alarm));
                }
                Ok(())
            }
            (_, None) => {
                Err(self.broken("L1 the group converges", "nothing will ever happen again"))
            }
        }
    }

    fn strike(&mut self, fault: Fault, place: usize, lane: Lane) -> Result<(), String> {
        match fault {
            Fault::CutBefore | Fault::AnswerLost => self.cut(place, lane),
            Fault::CutAfter => {
                let link = self.people[place].links.get(&lane);
                if let Some((_, version, request)) = link.and_then(|link| link.up.front()) {
                    self.zombies.push((*version, request.clone()));
                }
                self.cut(place, lane)
            }
            Fault::CoordinatorCrash => {
                // What the last round gave out may not be stored: members learn of it from the next coordinator.
                self.excused = true;
                self.crash();
                for place in 0..self.people.len() {
                    let lanes: Vec<Lane> = self.people[place].links.keys().copied().collect();
                    for lane in lanes {
                        self.cut(place, lane)?;
                    }
                }
                Ok(())
            }
            Fault::MemberCrash => {
                self.excused = true;
                self.restart(place);
                Ok(())
            }
        }
    }

    /// A connection breaks: what waits for an answer hears of it.
    fn cut(&mut self, place: usize, lane: Lane) -> Result<(), String> {
        let Some(link) = self.people[place].links.remove(&lane) else {
            return Ok(());
        };
        if let Some((id, _)) = link.busy {
            self.forget_route(id);
        }
        let tokens = (link.busy.iter().map(|(_, token)| *token))
            .chain(link.down.iter().map(|(token, _)| *token))
            .chain(link.up.iter().map(|(token, ..)| *token));
        for token in tokens.collect::<Vec<_>>() {
            self.tell(place, Input::Failed(token, SendFailure::Disconnected))?;
        }
        Ok(())
    }

    /// From here, with no more faults, a fair run converges.
    pub(crate) fn heals(mut self) -> Result<(), String> {
        self.left = 0;
        for step in 0..PATIENCE {
            if self.converged() {
                return Ok(());
            }
            let actions = self.actions();
            // Each in turn, so that nobody waits for ever.
            let Some(action) = actions.get(step % actions.len().max(1)) else {
                break;
            };
            self.act(action)?;
        }
        let states: Vec<_> = self
            .people
            .iter()
            .map(|person| person.member.state())
            .collect();
        Err(self.broken(
            "L1 the group converges",
            &format!("after {PATIENCE} steps: {states:?}"),
        ))
    }
}
