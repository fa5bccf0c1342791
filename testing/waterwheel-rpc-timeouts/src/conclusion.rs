//! The last line: what to remember of the figures above it, in one sentence.

use crate::ratio::Ratio;
use crate::window::{Course, Window};

/// The conclusion. `None` if one clock ran alone. `lost` is the number of connections that were lost.
pub(crate) fn conclusion(course: &Course, lost: u64) -> Option<String> {
    let ratio = |figure: fn(&Window) -> Option<f64>| match &course.windows[..] {
        [ours, theirs] => {
            let figures =
                [ours, theirs].map(|windows| windows.iter().map(figure).collect::<Vec<_>>());
            Some(Ratio::of(&figures[0], &figures[1]))
        }
        _ => None,
    };
    let cpu = ratio(Window::cpu_a_call)?;
    let lateness = ratio(|window| window.late(|quantiles| quantiles.p50))?;
    Some(too_busy(course.overlaps, lost).unwrap_or_else(|| sentence(cpu, lateness)))
}

/// Figures taken while calls of the other clock still ran, or while connections broke for want of time, compare nothing.
fn too_busy(overlaps: u32, lost: u64) -> Option<String> {
    let why = match (overlaps, lost) {
        (0, 0) => return None,
        (_, 0) => format!("{overlaps} slices overlapped"),
        (0, _) => format!("{lost} connections were lost"),
        _ => format!("{overlaps} slices overlapped and {lost} connections were lost"),
    };
    Some(format!(
        "in short: too busy to tell: {why}; run it again on an idle machine, with more --seconds or fewer --connections\n"
    ))
}

fn sentence(cpu: Option<Ratio>, lateness: Option<Ratio>) -> String {
    let (Some(cpu), Some(lateness)) = (cpu, lateness) else {
        return "in short: too little was measured; use a larger --seconds\n".to_owned();
    };
    if cpu.pairs.min(lateness.pairs) == 1 {
        return "in short: one pair of slices shows nothing; use a larger --seconds\n".to_owned();
    }
    let cpu = match Side::of(cpu) {
        Side::Lower => format!("{} less CPU time than", percent(1.0 - cpu.spread.median)),
        Side::Higher => format!("{} more CPU time than", percent(cpu.spread.median - 1.0)),
        Side::Both => "the same CPU time, within the spread, as".to_owned(),
    };
    let lateness = match Side::of(lateness) {
        Side::Lower => format!("{} less late", percent(1.0 - lateness.spread.median)),
        Side::Higher => format!("{} later", percent(lateness.spread.median - 1.0)),
        Side::Both => "as late, within the spread".to_owned(),
    };
    format!(
        "in short: with waterwheel's timers a call took {cpu} with tokio's, and the median timeout was {lateness}\n"
    )
}

/// On which side of 1 all ratios lie.
enum Side {
    Lower,
    Higher,
    Both,
}

impl Side {
    fn of(Ratio { spread, .. }: Ratio) -> Side {
        // A difference that is shown as 0 % is none.
        let is_seen = (spread.median - 1.0).abs() >= 0.005;
        if spread.max < 1.0 && is_seen {
            Side::Lower
        } else if spread.min > 1.0 && is_seen {
            Side::Higher
        } else {
            Side::Both
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use waterwheel_bench_kit::Spread;

    use super::*;

    fn spread(least: f64, median: f64, greatest: f64) -> Option<Ratio> {
        Some(Ratio {
            pairs: 3,
            spread: Spread {
                median,
                min: least,
                max: greatest,
            },
        })
    }

    #[test]
    fn on_a_busy_machine_nothing_is_concluded() {
        assert_eq!(too_busy(0, 0), None);
        for (overlaps, lost, why) in [
            (9, 0, "9 slices overlapped;"),
            (0, 140, "140 connections were lost;"),
            (9, 140, "9 slices overlapped and 140 connections were lost;"),
        ] {
            let sentence = too_busy(overlaps, lost).expect("a sentence");
            let wanted = format!("in short: too busy to tell: {why}");
            assert!(sentence.starts_with(&wanted), "{sentence}");
        }
    }

    #[test]
    fn a_difference_counts_if_all_pairs_agree_on_it() {
        let same = "the same CPU time, within the spread, as";
        for (cpu, lateness, expected) in [
            (
                spread(0.9, 1.0, 1.1),
                spread(0.4, 0.55, 0.99),
                [same, "45 % less late"],
            ),
            (
                spread(1.01, 1.2, 1.3),
                spread(0.9, 0.95, 1.0),
                ["20 % more CPU time than", "as late, within the spread"],
            ),
            (
                spread(0.5, 0.75, 0.9),
                spread(1.1, 1.5, 2.0),
                ["25 % less CPU time than", "50 % later"],
            ),
            // A difference of no per cent is none.
            (
                spread(0.99, 0.997, 0.999),
                spread(0.4, 0.5, 0.6),
                [same, "50 % less late"],
            ),
            // Pairs that agree to the digit show something.
            (
                spread(0.5, 0.5, 0.5),
                spread(0.4, 0.5, 0.6),
                ["50 % less CPU time than", "50 % less late"],
            ),
        ] {
            let [cpu_text, late_text] = expected;
            assert_eq!(
                sentence(cpu, lateness),
                format!(
                    "in short: with waterwheel's timers a call took {cpu_text} with tokio's, and the median timeout was {late_text}\n"
                )
            );
        }
    }

    #[test]
    fn too_few_slices_show_nothing() {
        let many = spread(0.4, 0.5, 0.6);
        let one = many.map(|ratio| Ratio { pairs: 1, ..ratio });
        for (few, why) in [
            (one, "one pair of slices"),
            (None, "too little was measured"),
        ] {
            for text in [sentence(few, many), sentence(many, few)] {
                assert!(text.contains(why), "{text}");
            }
        }
    }
}
