//! Lanes: one row a partition, time from left to right, a letter for the owner of each cell.

use super::ledger::{Ledger, Millis, Stretch};

/// One cell of a lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Nobody has owned the partition yet.
    Nothing,
    /// Owned all the time, by this member.
    Owned(String),
    /// Without an owner all the time, or for the greater part of the cell.
    Gap,
    /// It changed hands here, without an owner for less than a cell: the new owner.
    HandOver(String),
    /// A character of the number of milliseconds that belongs to the hand-over left of it.
    Digit(char, String),
}

/// Draws a partition's history as `width` cells over `span` milliseconds, as far as `now`.
pub(super) fn draw(
    ledger: &Ledger,
    partition: i32,
    now: Millis,
    span: Millis,
    width: usize,
) -> Vec<Cell> {
    let stretches = ledger.stretches(partition);
    let cell_ms = span / width as f64;
    let mut cells = Vec::with_capacity(width);
    for i in 0..width {
        let from = i as f64 * cell_ms;
        if from >= now {
            break;
        }
        cells.push(cell(stretches, from, (from + cell_ms).min(now)));
    }
    write_numbers(stretches, &mut cells, cell_ms);
    cells
}

/// The part of a stretch that lies between two times.
fn overlap(stretch: &Stretch, from: Millis, until: Millis) -> Millis {
    let end = stretch.until.unwrap_or(Millis::INFINITY).min(until);
    (end - stretch.from.max(from)).max(0.0)
}

fn cell(stretches: &[Stretch], from: Millis, until: Millis) -> Cell {
    let here: Vec<&Stretch> = stretches
        .iter()
        .filter(|s| overlap(s, from, until) > 0.0)
        .collect();
    let gap: Millis = here
        .iter()
        .filter(|s| s.owner.is_none())
        .map(|s| overlap(s, from, until))
        .sum();
    let owner = here.iter().rev().find_map(|s| s.owner.clone());
    match owner {
        None if here.is_empty() => Cell::Nothing,
        Some(owner) if gap < (until - from) / 2.0 => {
            let starts = here.iter().any(|s| {
                s.owner.as_deref() == Some(&owner) && s.from > from && s.from > stretches[0].from
            });
            if starts && !follows_long_gap(stretches, &owner, from, until) {
                Cell::HandOver(owner)
            } else {
                Cell::Owned(owner)
            }
        }
        _ => Cell::Gap,
    }
}

/// Whether the gap before the owner's stretch that starts in this cell is as long as a cell, and so is drawn by itself.
fn follows_long_gap(stretches: &[Stretch], owner: &str, from: Millis, until: Millis) -> bool {
    stretches.windows(2).any(|pair| {
        pair[1].owner.as_deref() == Some(owner)
            && pair[1].from > from
            && pair[1].from <= until
            && pair[0].owner.is_none()
            && pair[1].from - pair[0].from >= until - from
    })
}

/// Writes the length of each short gap into the cells right of it.
fn write_numbers(stretches: &[Stretch], cells: &mut [Cell], cell_ms: Millis) {
    for pair in stretches.windows(2) {
        let (Some(owner), None) = (&pair[1].owner, &pair[0].owner) else {
            continue;
        };
        let ms = pair[1].from - pair[0].from;
        let at = (pair[1].from / cell_ms) as usize;
        if ms >= cell_ms || !matches!(cells.get(at), Some(Cell::HandOver(_))) {
            continue;
        }
        for (i, digit) in format!("{ms:.0}").chars().enumerate() {
            match cells.get_mut(at + 1 + i) {
                Some(cell @ Cell::Owned(_)) => *cell = Cell::Digit(digit, owner.clone()),
                _ => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Happened;
    use super::*;

    fn text(cells: &[Cell]) -> String {
        let one = |cell: &Cell| match cell {
            Cell::Nothing => ' ',
            Cell::Owned(owner) => owner.chars().next().unwrap_or('?'),
            Cell::Gap => '·',
            Cell::HandOver(_) => '|',
            Cell::Digit(digit, _) => *digit,
        };
        cells.iter().map(one).collect()
    }

    #[test]
    fn a_short_gap_is_a_mark_with_its_number_and_a_long_one_is_blank() {
        let mut ledger = Ledger::new(1);
        ledger.write(100.0, "a", Happened::Assigned(vec![0]));
        ledger.write(410.0, "a", Happened::Released(vec![0]));
        ledger.write(422.0, "b", Happened::Assigned(vec![0]));
        ledger.write(800.0, "b", Happened::Released(vec![0]));
        ledger.write(1100.0, "c", Happened::Assigned(vec![0]));
        assert_eq!(text(&draw(&ledger, 0, 1300.0, 2000.0, 20)), " aaa|12b···cc");
    }
}
