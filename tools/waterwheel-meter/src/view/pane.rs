//! A box with a title, and the colours of all boxes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph};

pub(super) const BARS: Style = Style::new().fg(Color::Cyan);
pub(super) const HAND: Style = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
const FRAME: Style = Style::new().fg(Color::DarkGray);
pub(super) const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws lines in a box.
pub(super) fn draw_box<'a>(
    frame: &mut Frame<'_>,
    area: Rect,
    block: Block<'a>,
    lines: Vec<Line<'a>>,
) {
    let block = block.border_style(FRAME).title_style(TITLE);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// The number of columns inside a box.
pub(super) fn inside(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(2))
}
