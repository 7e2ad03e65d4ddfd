//! The residual network and its negative cycles (Bellman and Ford, with a look for cycles after each pass).

use std::collections::BTreeMap;
use std::ops::Add;

use crate::assign::problem::{NOBODY, Owners, Problem};

/// Loads, moves, evenness: the earlier decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost(i64, i64, i64);

impl Add for Cost {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0, self.1 + other.1, self.2 + other.2)
    }
}

/// What an arc does when a unit passes it. Only the first and the last of a transfer matter; loads follow from transfers.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A cell gives up a partition of a class.
    Give { cell: usize, class: usize },
    /// A cell gets one.
    Take { cell: usize },
    /// Everything else.
    Pass,
}

#[derive(Clone, Copy, Debug)]
struct Arc {
    from: usize,
    to: usize,
    cost: Cost,
    step: Step,
}

/// One topic at one member.
#[derive(Debug)]
struct Cell {
    lot: usize,
    member: usize,
    count: i64,
}

/// The partitions of one topic that one member holds, or that nobody holds.
#[derive(Debug)]
struct Class {
    lot: usize,
    /// The holder's cell.
    home: Option<usize>,
}

/// A complete solution, and what can be changed about it.
#[derive(Debug)]
pub(super) struct Network {
    cells: Vec<Cell>,
    classes: Vec<Class>,
    /// Where the cells of each topic begin.
    starts: Vec<usize>,
    /// The places of the partitions that a cell has of a class.
    held: BTreeMap<(usize, usize), Vec<usize>>,
    loads: Vec<i64>,
    owners: Owners,
    evenly: bool,
}

impl Network {
    pub(super) fn new(
        problem: &Problem<'_>,
        holders: &Owners,
        owners: Owners,
        evenly: bool,
    ) -> Self {
        let mut this = Self {
            cells: Vec::new(),
            classes: Vec::new(),
            starts: Vec::new(),
            held: BTreeMap::new(),
            loads: vec![0; problem.members.len()],
            owners,
            evenly,
        };
        for (lot, it) in problem.lots.iter().enumerate() {
            let start = this.cells.len();
            this.starts.push(start);
            let cell = |member: &u32| Cell {
                lot,
                member: *member as usize,
                count: 0,
            };
            this.cells.extend(it.members.iter().map(cell));
            let mut classes: BTreeMap<u32, usize> = BTreeMap::new();
            for (place, holder) in holders[lot].iter().enumerate() {
                let next = this.classes.len();
                let class = *classes.entry(*holder).or_insert(next);
                if class == next {
                    let home = (*holder != NOBODY)
                        .then(|| start + it.members.partition_point(|member| member < holder));
                    this.classes.push(Class { lot, home });
                }
                let owner = this.owners[lot][place];
                let cell = start + it.members.partition_point(|member| *member < owner);
                this.held.entry((cell, class)).or_default().push(place);
                this.cells[cell].count += 1;
                this.loads[owner as usize] += 1;
            }
        }
        this
    }

    pub(super) fn into_owners(self) -> Owners {
        self.owners
    }

    /// Cancels negative cycles; false if there is none.
    pub(super) fn cancel(&mut self) -> bool {
        let (nodes, arcs) = self.residual();
        let cycles = negative_cycles(nodes, &arcs);
        for cycle in &cycles {
            self.apply(cycle);
        }
        !cycles.is_empty()
    }

    /// The arcs that a unit may take now. Nodes: members, the sink, topics, cells, classes.
    fn residual(&self) -> (usize, Vec<Arc>) {
        let sink = self.loads.len();
        let topics = sink + 1;
        let cells = topics + self.starts.len();
        let classes = cells + self.cells.len();
        let mut arcs = Vec::new();
        let mut arc = |from, to, cost, step| {
            arcs.push(Arc {
                from,
                to,
                cost,
                step,
            });
        };
        for (member, load) in self.loads.iter().enumerate() {
            arc(member, sink, Cost(2 * load + 1, 0, 0), Step::Pass);
            if *load > 0 {
                arc(sink, member, Cost(1 - 2 * load, 0, 0), Step::Pass);
            }
        }
        for (at, cell) in self.cells.iter().enumerate() {
            let (node, take) = (cells + at, Step::Take { cell: at });
            arc(topics + cell.lot, node, Cost::default(), take);
            let even = i64::from(self.evenly);
            let more = Cost(0, 0, even * (2 * cell.count + 1));
            arc(node, cell.member, more, Step::Pass);
            if cell.count > 0 {
                let less = Cost(0, 0, even * (1 - 2 * cell.count));
                arc(cell.member, node, less, Step::Pass);
            }
        }
        for (at, class) in self.classes.iter().enumerate() {
            let moved = i64::from(class.home.is_some());
            let node = classes + at;
            arc(node, topics + class.lot, Cost(0, moved, 0), Step::Pass);
            if let Some(home) = class.home {
                let take = Step::Take { cell: home };
                arc(node, cells + home, Cost::default(), take);
            }
        }
        for (cell, class) in self.held.keys() {
            let home = self.classes[*class].home;
            let moved = i64::from(home.is_some_and(|home| home != *cell));
            let give = Step::Give {
                cell: *cell,
                class: *class,
            };
            arc(cells + cell, classes + class, Cost(0, -moved, 0), give);
        }
        (classes + self.classes.len(), arcs)
    }

    /// Moves one partition for each transfer of the cycle.
    fn apply(&mut self, cycle: &[Arc]) {
        let steps = cycle.iter().map(|arc| arc.step);
        // Begin at a Give, so that each is followed by its Take.
        let start = steps
            .clone()
            .position(|step| matches!(step, Step::Give { .. }))
            .unwrap_or(0);
        let mut giving = None;
        for step in steps.clone().cycle().skip(start).take(cycle.len()) {
            match step {
                Step::Give { cell, class } => giving = Some((cell, class)),
                Step::Take { cell } => {
                    if let Some((from, class)) = giving.take()
                        && from != cell
                    {
                        self.transfer(class, from, cell);
                    }
                }
                Step::Pass => {}
            }
        }
    }

    fn transfer(&mut self, class: usize, from: usize, to: usize) {
        let Some(places) = self.held.get_mut(&(from, class)) else {
            return;
        };
        let Some(place) = places.pop() else { return };
        if places.is_empty() {
            self.held.remove(&(from, class));
        }
        self.held.entry((to, class)).or_default().push(place);
        self.cells[from].count -= 1;
        self.cells[to].count += 1;
        self.loads[self.cells[from].member] -= 1;
        self.loads[self.cells[to].member] += 1;
        self.owners[self.classes[class].lot][place] = self.cells[to].member as u32;
    }
}

/// Some cycles of negative cost that share no node; none only if there is none.
fn negative_cycles(nodes: usize, arcs: &[Arc]) -> Vec<Vec<Arc>> {
    let mut distance = vec![Cost::default(); nodes];
    let mut parent: Vec<Option<usize>> = vec![None; nodes];
    loop {
        let mut relaxed = false;
        for (at, arc) in arcs.iter().enumerate() {
            let through = distance[arc.from] + arc.cost;
            if through < distance[arc.to] {
                distance[arc.to] = through;
                parent[arc.to] = Some(at);
                relaxed = true;
            }
        }
        if !relaxed {
            return Vec::new();
        }
        let cycles = parent_cycles(&parent, arcs);
        if !cycles.is_empty() {
            return cycles;
        }
    }
}

/// The cycles among parents: each node has one parent, so no two of them meet.
fn parent_cycles(parent: &[Option<usize>], arcs: &[Arc]) -> Vec<Vec<Arc>> {
    let mut seen_by = vec![usize::MAX; parent.len()];
    let mut cycles = Vec::new();
    for root in 0..parent.len() {
        let mut node = root;
        while seen_by[node] == usize::MAX {
            seen_by[node] = root;
            let Some(arc) = parent[node] else { break };
            node = arcs[arc].from;
        }
        if seen_by[node] != root || parent[node].is_none() {
            continue;
        }
        let mut cycle = Vec::new();
        let mut at = node;
        while let Some(arc) = parent[at] {
            cycle.push(arcs[arc]);
            at = arcs[arc].from;
            if at == node {
                break;
            }
        }
        cycle.reverse();
        cycles.push(cycle);
    }
    cycles
}
