use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Block;

use super::pane::{draw_box, inside};
use crate::columns::{cut, fill};
use crate::format;
use crate::job::{Job, JobList};

/// The columns before the error.
const ERROR: usize = 54;

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
    let lines = shown
        .map(|job| Line::from(row(job, inside(area))))
        .collect();
    let block = Block::bordered()
        .title(title)
        .title_bottom(Line::from(" q quits ").right_aligned());
    draw_box(frame, area, block, lines);
}

/// The name, the state, the next run, the period, the runs, and the last error of a job, in this many columns.
pub(crate) fn row(job: &Job, columns: usize) -> String {
    let next = job.next_run.map(|left| match left {
        Duration::ZERO => "now".to_owned(),
        left => format!("in {}", format::span(left)),
    });
    let period = job.period.map(format::span);
    let runs = match job.runs {
        0..100_000_000 => job.runs.to_string(),
        many => format::short(many as f64),
    };
    let parts = [
        (&*job.name, 16),
        (&job.state, 8),
        (next.as_deref().unwrap_or("–"), 10),
        (period.as_deref().unwrap_or("–"), 7),
        (&runs, 8),
    ];
    let parts = parts.map(|(text, columns)| fill(text, columns) + " ");
    let error = job.last_error.as_deref().unwrap_or("");
    parts.concat() + &cut(error, columns.saturating_sub(ERROR))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::row;
    use crate::job::Job;

    #[test]
    fn a_row_keeps_its_columns_whatever_the_job_says() {
        let job = |name: &str, error: &str| Job {
            name: name.to_owned(),
            state: "in its own words".to_owned(),
            next_run: Some(Duration::MAX),
            period: Some(Duration::MAX),
            runs: u64::MAX,
            last_error: Some(error.to_owned()),
        };
        assert_eq!(
            row(&job("übermäßig lange\nNamen", "first\nsecond"), 78),
            "übermäßig lange  in its … in 213503… 213503… 1844674… first"
        );
        assert_eq!(
            row(
                &job("注文の締め切りと請求", "connection reset by its peer"),
                78
            ),
            "注文の締め切り…  in its … in 213503… 213503… 1844674… connection reset by its…"
        );
        let narrow = row(&job("export", "timeout"), 10);
        assert!(narrow.starts_with("export  ") && narrow.ends_with("… "));
    }

    #[test]
    fn a_number_of_runs_is_exact_as_long_as_it_fits() {
        let runs = |runs| {
            let job = Job {
                runs,
                ..Job::default()
            };
            let row = row(&job, 78);
            row.chars().skip(45).collect::<String>().trim().to_owned()
        };
        assert_eq!(
            [0, 99_999_999, 100_000_000].map(runs),
            ["0", "99999999", "100 M"]
        );
    }
}
