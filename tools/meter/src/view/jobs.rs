use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Block;

use super::draw_box;
use crate::format;
use crate::job::{Job, JobList};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, jobs: Option<&JobList>) {
    let title = match jobs {
        Some(jobs) => {
            let shown = jobs
                .shown
                .len()
                .min(usize::from(area.height.saturating_sub(2)));
            let total = format::grouped(jobs.total as u64);
            format!(" jobs {shown} of {total} ")
        }
        None => " jobs  none given ".to_owned(),
    };
    let shown = jobs.iter().flat_map(|jobs| &jobs.shown);
    let lines = shown.map(|job| Line::from(row(job))).collect();
    let block = Block::bordered()
        .title(title)
        .title_bottom(Line::from(" q quits ").right_aligned());
    draw_box(frame, area, block, lines);
}

/// The name, the state, when it runs next, its period, its runs, and its last error.
pub(crate) fn row(job: &Job) -> String {
    let next = job.next_run.map(|left| match left {
        Duration::ZERO => "now".to_owned(),
        left => format!("in {}", format::span(left)),
    });
    let period = job.period.map(format::span);
    format!(
        "{:<16} {:<9} {:<14} {:<10} {:<8} {}",
        cut(&job.name, 16),
        cut(&job.state, 9),
        next.as_deref().unwrap_or("–"),
        period.as_deref().unwrap_or("–"),
        job.runs,
        // A line of its own would break the row.
        job.last_error
            .as_deref()
            .unwrap_or("")
            .lines()
            .next()
            .unwrap_or(""),
    )
}

/// At most so many characters, with a sign where it was cut.
fn cut(text: &str, most: usize) -> String {
    let text = text.lines().next().unwrap_or("");
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, row};
    use crate::job::Job;

    #[test]
    fn a_row_stays_a_row_whatever_the_job_is_called() {
        assert_eq!(cut("sixteen letters.", 16), "sixteen letters.");
        assert_eq!(cut("seventeen letters", 16), "seventeen lette…");
        let job = Job {
            name: "übermäßig lange\nNamen".to_owned(),
            state: String::new(),
            last_error: Some("first\nsecond".to_owned()),
            ..Job::default()
        };
        let row = row(&job);
        assert!(row.starts_with("übermäßig lange  "), "{row}");
        assert!(row.ends_with(" first") && !row.contains('\n'), "{row}");
    }
}
