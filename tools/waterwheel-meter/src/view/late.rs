use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;

use super::pane::{BARS, draw_box, inside};
use crate::bars;
use crate::format;
use crate::history::History;
use crate::reading::Late;

/// The upper bounds of the rows, powers of two; the last row has the rest.
const BOUNDS: [Duration; 4] = [
    Duration::from_micros(64),
    Duration::from_micros(256),
    Duration::from_micros(1_024),
    Duration::from_micros(4_096),
];
/// The columns before a bar.
const BEFORE: usize = 9;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, history: &History) {
    let late = history.late();
    let rows = rows(&late);
    let most = rows.iter().map(|row| row.1).max().unwrap_or(0).max(1);
    let width = inside(area).saturating_sub(BEFORE);
    let lines = rows.into_iter().map(|(label, count)| {
        Line::from(vec![
            Span::raw(format!("{label:<BEFORE$}")),
            Span::styled(bars::bar(count as f64 / most as f64, width), BARS),
        ])
    });
    let title = format!(" late  {} ", quantiles(&late));
    draw_box(frame, area, Block::bordered().title(title), lines.collect());
}

/// `p50 0.13  p99 1.0 ms`
pub(crate) fn quantiles(late: &Late) -> String {
    match (late.quantile(0.5), late.quantile(0.99)) {
        (Some(half), Some(most)) => {
            format!(
                "p50 {}  p99 {} ms",
                format::millis(half),
                format::millis(most)
            )
        }
        _ => "none yet".to_owned(),
    }
}

/// The number of timers that were less late than each bound, but not less than the one before.
fn rows(late: &Late) -> Vec<(String, u64)> {
    let mut before = 0;
    let mut rows = Vec::new();
    for bound in BOUNDS {
        let below = late.below(bound);
        rows.push((
            format!("≤ {}", format::bound(bound)),
            below.saturating_sub(before),
        ));
        before = below;
    }
    let last = BOUNDS[BOUNDS.len() - 1];
    rows.push((
        format!("> {}", format::bound(last)),
        late.count.saturating_sub(before),
    ));
    rows
}

#[cfg(test)]
mod tests {
    use super::rows;
    use crate::sample;

    #[test]
    fn each_timer_is_in_one_row() {
        let late = sample::history().late();
        let rows = rows(&late);
        assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), late.count);
        let labels: Vec<&str> = rows.iter().map(|row| &*row.0).collect();
        assert_eq!(
            labels,
            ["≤ 64 µs", "≤ 256 µs", "≤ 1.0 ms", "≤ 4.1 ms", "> 4.1 ms"]
        );
    }
}
