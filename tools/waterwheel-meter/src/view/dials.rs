use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::pane::{BARS, HAND, draw_box, inside};
use crate::format;
use crate::reading::{Dial, Reading};

/// The columns before a row: the name of the dial, its hand, its slots.
const BEFORE: usize = 16;
/// The columns after a row: the number of timers.
const AFTER: usize = 12;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, reading: &Reading) {
    let width = inside(area).saturating_sub(BEFORE + AFTER);
    let rows = rows(reading, width).map(|row| {
        let mut spans = vec![Span::raw(row.before)];
        let mut runs = row.bars.split('▼');
        spans.extend(runs.next().map(|run| Span::styled(run.to_owned(), BARS)));
        for run in runs {
            spans.push(Span::styled("▼", HAND));
            spans.push(Span::styled(run.to_owned(), BARS));
        }
        spans.push(Span::raw(row.after));
        Line::from(spans)
    });
    let block = Block::bordered()
        .title(" dials: timers a slot, log ")
        .title_bottom(Line::from(format!(" {} ", beyond(reading))).right_aligned());
    draw_box(frame, area, block, rows.collect());
}

pub(crate) struct Row {
    before: String,
    bars: String,
    after: String,
}

impl Row {
    pub(crate) fn text(&self) -> String {
        [&*self.before, &self.bars, &self.after].concat()
    }
}

/// The rows of all dials, with bars of this width, all on one scale.
pub(crate) fn rows(reading: &Reading, width: usize) -> impl Iterator<Item = Row> {
    let counts = reading.dials.iter().flat_map(|dial| dial.slots.counts());
    let most = counts.max();
    let most = most.copied().unwrap_or(0);
    reading.dials.iter().map(move |dial| row(dial, width, most))
}

fn row(dial: &Dial, width: usize, most: u64) -> Row {
    let Dial { name, slots: dial } = dial;
    let (hand, slots) = (dial.hand(), dial.slots());
    let before = format!("{name:<5}{hand:>5}/{slots:<5}");
    // A dial of ten thousand slots would touch its bars.
    let (before, width) = match before.ends_with(' ') {
        true => (before, width),
        false => (before + " ", width.saturating_sub(1)),
    };
    Row {
        before,
        bars: dial.row(width, most),
        after: format!("{:>11} ", dial.timers()),
    }
}

/// The counts that the dials do not show.
pub(crate) fn beyond(reading: &Reading) -> String {
    let next = match reading.time_left {
        Some(Duration::ZERO) => "next now".to_owned(),
        Some(left) => format!("next in {}", format::span(left)),
        None => "no next".to_owned(),
    };
    let (beyond, due) = (
        format::grouped(reading.beyond),
        format::grouped(reading.due),
    );
    format!("beyond {beyond} · due {due} · {next}")
}
