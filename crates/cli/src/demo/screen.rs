//! The demo on a terminal: both groups' lanes side by side, their rebalances below, drawn while the story runs.

use super::lanes::{self, Cell};
use super::ledger::Millis;
use super::rebalances;
use super::track::Track;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use ratatui::{Frame, TerminalOptions, Viewport};

const COLOURS: [Color; 8] = [
    Color::Blue,
    Color::Green,
    Color::Yellow,
    Color::Magenta,
    Color::Cyan,
    Color::LightRed,
    Color::LightGreen,
    Color::LightBlue,
];

/// A live picture in the terminal's own flow: what was drawn last stays there when the demo ends.
pub(super) struct Screen {
    terminal: ratatui::DefaultTerminal,
    colour: bool,
}

impl Screen {
    /// Reserves room below the cursor.
    pub(super) fn open(partitions: i32, colour: bool) -> std::io::Result<Self> {
        let height = u16::try_from(partitions)
            .unwrap_or(u16::MAX)
            .saturating_add(16);
        let (_, rows) = ratatui::crossterm::terminal::size()?;
        let viewport = Viewport::Inline(height.min(rows.saturating_sub(1)));
        let terminal = ratatui::try_init_with_options(TerminalOptions { viewport })?;
        // Ctrl-C is to reach us as a signal, not as a key that nobody reads.
        ratatui::crossterm::terminal::disable_raw_mode()?;
        Ok(Self { terminal, colour })
    }

    /// Draws the tracks as they are at `now`.
    pub(super) fn draw(
        &mut self,
        tracks: &[Track],
        now: Millis,
        span: Millis,
    ) -> std::io::Result<()> {
        let colour = self.colour;
        self.terminal
            .draw(|frame| picture(frame, tracks, now, span, colour))?;
        Ok(())
    }

    /// Leaves the last picture and goes below it.
    pub(super) fn close(mut self) {
        let bottom = self.terminal.get_frame().area().bottom();
        ratatui::restore();
        drop(self.terminal);
        let below = ratatui::crossterm::cursor::MoveTo(0, bottom.saturating_sub(1));
        let _ = ratatui::crossterm::execute!(std::io::stdout(), below);
        println!();
    }
}

fn picture(frame: &mut Frame<'_>, tracks: &[Track], now: Millis, span: Millis, colour: bool) {
    let share = Constraint::Ratio(1, tracks.len().max(1) as u32);
    let columns = Layout::horizontal(vec![share; tracks.len()]).split(frame.area());
    for (track, area) in tracks.iter().zip(columns.iter()) {
        panel(frame, track, *area, now, span, colour);
    }
}

fn panel(
    frame: &mut Frame<'_>,
    track: &Track,
    area: Rect,
    now: Millis,
    span: Millis,
    colour: bool,
) {
    let totals = track.totals(now);
    let title = format!(
        " {} · {:.0} partition-ms without an owner ",
        track.mode, totals.ownerless_partition_ms
    );
    let block = Block::bordered().title(title);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let rows = u16::try_from(track.partitions).unwrap_or(u16::MAX);
    let [lanes_area, axis_area, list_area] = Layout::vertical([
        Constraint::Length(rows),
        Constraint::Length(1),
        Constraint::Min(0),
    ])
    .areas(inner);
    let width = usize::from(inner.width.saturating_sub(4));
    let lines: Vec<Line<'_>> = (0..track.partitions)
        .map(|p| {
            lane(
                track,
                p,
                &lanes::draw(&track.ledger, p, now, span, width),
                colour,
            )
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), lanes_area);
    frame.render_widget(Paragraph::new(axis(width, span)), axis_area);
    frame.render_widget(
        Paragraph::new(list(track, now, usize::from(list_area.height))),
        list_area,
    );
}

fn lane<'a>(track: &Track, partition: i32, cells: &[Cell], colour: bool) -> Line<'a> {
    let mut spans = vec![Span::raw(format!("{partition:>3} "))];
    spans.extend(cells.iter().map(|cell| match cell {
        Cell::Nothing => Span::raw(" "),
        Cell::Gap => Span::styled("·", Style::default().fg(Color::Red)),
        Cell::Owned(owner) => Span::styled(letter(owner), style(track, owner, colour)),
        Cell::HandOver(owner) => Span::styled("▏", mark(track, owner, colour)),
        Cell::Digit(digit, owner) => Span::styled(digit.to_string(), mark(track, owner, colour)),
    }));
    Line::from(spans)
}

fn letter(owner: &str) -> String {
    owner.chars().take(1).collect()
}

fn hue(track: &Track, owner: &str) -> Color {
    let index = track
        .names
        .iter()
        .position(|name| name == owner)
        .unwrap_or(0);
    COLOURS[index % COLOURS.len()]
}

fn style(track: &Track, owner: &str, colour: bool) -> Style {
    if colour {
        let hue = hue(track, owner);
        Style::default()
            .fg(hue)
            .bg(hue)
            .add_modifier(Modifier::DIM)
            .fg(Color::Black)
    } else {
        Style::default()
    }
}

fn mark(track: &Track, owner: &str, colour: bool) -> Style {
    if colour {
        Style::default()
            .fg(Color::White)
            .bg(hue(track, owner))
            .add_modifier(Modifier::BOLD)
    } else {
        Style::default().add_modifier(Modifier::BOLD)
    }
}

fn axis<'a>(width: usize, span: Millis) -> Line<'a> {
    let mut text = vec![' '; width + 4];
    for second in (0..=(span / 1000.0) as usize).step_by(5) {
        let at = 4 + (second as f64 * 1000.0 / span * width as f64) as usize;
        for (i, c) in format!("{second}s").chars().enumerate() {
            if let Some(place) = text.get_mut(at + i) {
                *place = c;
            }
        }
    }
    Line::styled(
        text.into_iter().collect::<String>(),
        Style::default().add_modifier(Modifier::DIM),
    )
}

fn list<'a>(track: &Track, now: Millis, height: usize) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for (i, shown) in track.rebalances.iter().enumerate() {
        let moves = rebalances::moves(&track.rebalances, i, &track.ledger);
        lines.push(Line::raw(rebalances::short(shown)));
        let moved = format!("         {}", rebalances::moved(&moves));
        lines.push(Line::styled(
            moved,
            Style::default().add_modifier(Modifier::DIM),
        ));
    }
    if let Some(act) = &track.act {
        lines.push(Line::styled(
            format!("{:5.1} s  {act}", now / 1000.0),
            Style::default().add_modifier(Modifier::BOLD),
        ));
    }
    let skip = lines.len().saturating_sub(height);
    lines.split_off(skip)
}
