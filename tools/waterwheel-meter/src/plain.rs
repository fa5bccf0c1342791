//! The output without a terminal: the same figures, one per line.

use crate::format;
use crate::history::{History, ROWS};
use crate::job::JobList;
use crate::reading::Reading;
use crate::view;

/// The columns of a dial's bars.
const BARS: usize = 50;
/// The number of jobs that fit on a large terminal.
pub(crate) const JOBS: usize = 30;

pub(crate) fn text(reading: &Reading, history: &History, jobs: Option<&JobList>) -> String {
    let mut lines = vec![format!(
        "waterwheel meter  {}",
        view::title_of(reading, usize::MAX)
    )];
    lines.extend(view::rows(reading, BARS).map(|row| row.text()));
    lines.push(view::beyond(reading));
    let rates = ROWS.iter().map(|(name, total)| {
        let last = history.rates(total).last().copied().unwrap_or(0.0);
        format!("{name} {}", format::short(last))
    });
    let rates: Vec<String> = rates.collect();
    lines.push(format!("a second: {}", rates.join(", ")));
    lines.push(format!("late: {}", view::quantiles(&history.late())));
    if let Some(jobs) = jobs {
        let (shown, total) = (jobs.shown.len(), format::grouped(jobs.total as u64));
        lines.push(format!("jobs: {shown} of {total}"));
        let rows = jobs.shown.iter();
        lines.extend(rows.map(|job| view::row_of_job(job, usize::MAX)));
    }
    let lines = lines.iter().map(|line| line.trim_end());
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::text;
    use crate::history::History;
    use crate::sample;

    #[test]
    fn the_summary_has_all_figures_and_no_escape() {
        let (reading, history, jobs) = (sample::reading(), sample::history(), sample::jobs());
        let text = text(&reading, &history, Some(&jobs));
        assert_eq!(text, include_str!("plain.txt"));
        assert!(!text.contains('\x1b'));
    }

    #[test]
    fn a_summary_needs_no_jobs_and_no_second_reading() {
        let text = text(&sample::reading(), &History::default(), None);
        assert!(text.ends_with("late: none yet\n"), "{text}");
        assert!(text.contains("a second: armed 0, fired 0,"), "{text}");
    }
}
