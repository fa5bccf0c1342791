//! The layout of the screen: a title, and four boxes. At 80 × 24:
//!
//! | lines | file | box |
//! |---|---|---|
//! | 1 | this one | the title |
//! | 7 | `dials` | five dials |
//! | 7 | `rates`, `late` | rates per second, and lateness |
//! | the rest | `jobs` | the jobs |
//!
//! `pane` draws any of the boxes.
//!
//! A smaller terminal shows less of them, from the end.

mod dials;
mod jobs;
mod late;
mod pane;
mod rates;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::{Line, Span};

use crate::columns::cut;
use crate::format;
use crate::history::{History, ROWS};
use crate::job::JobList;
use crate::reading::Reading;
use pane::TITLE;

pub(crate) use dials::{beyond, rows};
pub(crate) use jobs::row as row_of_job;
pub(crate) use late::quantiles;

/// The minimum length that is shown of a timer's name.
const SHORTEST_NAME: usize = 8;

/// The height of a box with this many rows.
const fn boxed(rows: usize) -> u16 {
    rows as u16 + 2
}

/// The number of jobs that fit.
pub(crate) fn rows_of_jobs(height: u16) -> usize {
    let others = 1 + boxed(5) + boxed(ROWS.len());
    usize::from(height.saturating_sub(others + boxed(0)))
}

/// Draws the whole screen.
pub(crate) fn draw(
    frame: &mut Frame<'_>,
    reading: &Reading,
    history: &History,
    jobs: Option<&JobList>,
) {
    let lines = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(boxed(reading.dials.len())),
        Constraint::Length(boxed(ROWS.len())),
        Constraint::Min(0),
    ]);
    let [title, dials, middle, below] = lines.areas(frame.area());
    // 44 of 80 columns.
    let columns = Layout::horizontal([Constraint::Ratio(11, 20), Constraint::Min(0)]);
    let [rates, late] = columns.areas(middle);
    let program = Span::styled(" waterwheel meter  ", TITLE);
    let columns = usize::from(title.width).saturating_sub(program.width());
    let of = Span::raw(title_of(reading, columns));
    frame.render_widget(Line::from(vec![program, of]), title);
    dials::draw(frame, dials, reading);
    rates::draw(frame, rates, history);
    late::draw(frame, late, history);
    jobs::draw(frame, below, jobs);
}

/// `requests · 1 ms · 2 shards · up 00:12:31 · pending 1 048 221`, with a name that leaves room for the rest.
pub(crate) fn title_of(reading: &Reading, columns: usize) -> String {
    let shards = match reading.shards {
        1 => "1 shard".to_owned(),
        shards => format!("{shards} shards"),
    };
    let rest = format!(
        " · {} · {shards} · up {} · pending {}",
        format::span(reading.resolution),
        format::clock(reading.up),
        format::grouped(reading.pending),
    );
    let name = reading.name.as_deref().unwrap_or("a timer");
    let columns = columns.saturating_sub(rest.chars().count());
    cut(name, columns.max(SHORTEST_NAME)) + &rest
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::draw;
    use crate::history::History;
    use crate::job::JobList;
    use crate::reading::Reading;
    use crate::sample;

    /// The contents of the screen, line by line.
    fn drawn(
        (width, height): (u16, u16),
        reading: &Reading,
        history: &History,
        jobs: Option<&JobList>,
    ) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let drawing = terminal.draw(|frame| draw(frame, reading, history, jobs));
        drawing.unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        (0..height).map(line).collect()
    }

    #[test]
    fn it_fits_80_by_24() {
        let (reading, history, jobs) = (sample::reading(), sample::history(), sample::jobs());
        let screen = drawn((80, 24), &reading, &history, Some(&jobs));
        let expected: Vec<&str> = include_str!("screen.txt").lines().collect();
        assert_eq!(expected.len(), 24);
        for (at, (line, expected)) in screen.iter().zip(expected).enumerate() {
            assert_eq!(
                line.trim_end(),
                expected,
                "line {at} of\n{}",
                screen.join("\n")
            );
        }
    }

    #[test]
    fn without_a_reading_before_it_shows_empty_boxes() {
        let (mut reading, history) = (sample::reading(), History::default());
        reading.name = None;
        reading.time_left = Some(Duration::ZERO);
        let screen = drawn((80, 24), &reading, &history, None).join("\n");
        assert!(
            screen.contains("waterwheel meter  a timer · 1 ms"),
            "{screen}"
        );
        assert!(screen.contains("· due 0 · next now ┘"), "{screen}");
        assert!(screen.contains("┌ late  none yet ─"), "{screen}");
        assert!(screen.contains("│fired          –"), "{screen}");
        assert!(screen.contains("┌ jobs  none "), "{screen}");
    }

    #[test]
    fn a_long_name_leaves_room_for_the_pending_timers() {
        let (mut reading, history) = (sample::reading(), History::default());
        reading.name = Some("requests of all the customers in Europe".to_owned());
        let title = drawn((80, 24), &reading, &history, None).remove(0);
        let expected = "requests… · 1 ms · 2 shards · up 00:12:31 · pending 1 048 221";
        assert_eq!(title, format!(" waterwheel meter  {expected}"));
        let title = drawn((40, 24), &reading, &history, None).remove(0);
        assert_eq!(title, " waterwheel meter  request… · 1 ms · 2 s");
    }

    #[test]
    fn every_size_of_terminal_is_drawn() {
        let (reading, history, jobs) = (sample::reading(), sample::history(), sample::jobs());
        for width in (0..20).chain([30, 43, 44, 45, 60, 79, 81, 300]) {
            for height in (0..26).chain([100]) {
                let screen = drawn((width, height), &reading, &history, Some(&jobs));
                assert_eq!(screen.len(), usize::from(height));
            }
        }
    }

    #[test]
    fn the_hand_is_there_at_every_position() {
        let history = sample::history();
        for hand in [0, 1, 499, 998, 999] {
            let reading = sample::reading_after(hand);
            let screen = drawn((80, 24), &reading, &history, None);
            let row = &screen[2];
            assert_eq!(row.matches('▼').count(), 1, "{row}");
            assert!(row.contains(&format!("{hand}/1000")), "{row}");
        }
    }
}
