//! Text in columns.

use crate::failure::Failure;
use crate::stdout;

/// A table that is as wide as what is in it; without rows nothing is printed.
pub(super) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; what is empty is a hyphen, so that every column can be cut out.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| {
            if cell.is_empty() {
                "-".to_owned()
            } else {
                cell
            }
        });
        self.rows.push(cells.collect());
    }

    /// The lines.
    pub(super) fn lines(&self) -> Vec<String> {
        if self.rows.is_empty() {
            return Vec::new();
        }
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max();
            widest.unwrap_or(0).max(self.head[column].chars().count())
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let head = self.head.iter().map(|cell| (*cell).to_owned()).collect();
        std::iter::once(&head)
            .chain(&self.rows)
            .map(|row: &Vec<String>| {
                let cells = row.iter().zip(&widths);
                let padded: Vec<_> = cells
                    .map(|(cell, width)| format!("{cell:<width$}"))
                    .collect();
                padded.join("  ").trim_end().to_owned()
            })
            .collect()
    }

    pub(super) fn print(&self) -> Result<(), Failure> {
        self.lines().iter().try_for_each(stdout::line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let mut table = Table::new(&["A", "LONG-HEAD", "C"]);
        assert!(table.lines().is_empty());
        table.row(["wide cell", "", "x"].map(str::to_owned));
        assert_eq!(
            table.lines(),
            ["A          LONG-HEAD  C", "wide cell  -          x"]
        );
    }
}
