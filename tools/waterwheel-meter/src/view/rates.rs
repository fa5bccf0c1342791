use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::pane::{BARS, draw_box, inside};
use crate::bars;
use crate::format;
use crate::history::{History, ROWS};

/// The columns before a row: its name, and its last rate.
const BEFORE: usize = 17;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, history: &History) {
    let width = inside(area).saturating_sub(BEFORE);
    let rows = ROWS.iter().map(|(name, total)| {
        let rates = history.rates(total);
        let last = rates
            .last()
            .map_or_else(|| "–".to_owned(), |rate| format::short(*rate));
        Line::from(vec![
            Span::raw(format!("{name:<9}{last:>7} ")),
            Span::styled(bars::sparkline(&rates, width), BARS),
        ])
    });
    draw_box(
        frame,
        area,
        Block::bordered().title(" a second "),
        rows.collect(),
    );
}
