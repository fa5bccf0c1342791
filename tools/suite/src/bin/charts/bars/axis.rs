//! Where an axis ends: what is in proportion fits, and nothing else makes it longer.

use super::parts::{Axes, Bar, Panel};

/// A bar so many times longer than the longest whole one is torn.
const TORN: f64 = 2.5;
/// A whisker so many times longer than the longest bar ends in an arrow.
const FAR: f64 = 1.5;

/// The end of the axis of one of these panels.
pub(super) fn end(panel: &Panel, panels: &[Panel], axes: Axes) -> f64 {
    end_of(match axes {
        Axes::Shared => panels,
        Axes::Separate => std::slice::from_ref(panel),
    })
}

/// Holds every bar that is not torn, and every whisker that is not far out.
fn end_of(panels: &[Panel]) -> f64 {
    let bars = |whole: bool| {
        let groups = panels.iter().flat_map(|panel| &panel.groups);
        groups
            .filter(move |group| group.whole || !whole)
            .flat_map(|group| group.bars.iter().flatten())
    };
    let longest = |whole| bars(whole).map(Bar::length).fold(0.0, f64::max);
    let (whole, all) = (longest(true), longest(false));
    let torn_from = if whole > 0.0 { TORN * whole } else { all };
    let drawn = || bars(false).filter(|bar| bar.length() <= torn_from);
    let longest = drawn().map(Bar::length).fold(0.0, f64::max);
    let whiskers = drawn().map(|bar| bar.spread.max).fold(0.0, f64::max);
    // Something, if all is 0.
    whiskers
        .clamp(longest, longest * FAR)
        .max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bars::{BarGroup, draw};
    use crate::looks::look;
    use waterwheel_suite::Spread;

    fn panel(bars: &[(&str, f64, f64)]) -> Panel {
        let group = |&(name, median, max): &(&str, f64, f64)| {
            let spread = Spread {
                median,
                min: median / 2.0,
                max,
            };
            BarGroup {
                look: look(name),
                bars: vec![
                    Some(Bar {
                        spread,
                        floor: None,
                    }),
                    None,
                ],
                whole: name != "other",
            }
        };
        Panel {
            heading: String::new(),
            unit: "ns".to_owned(),
            groups: bars.iter().map(group).collect(),
        }
    }

    #[test]
    fn ordinary_bars_and_whiskers_fit() {
        assert_eq!(
            end_of(&[panel(&[("own", 50.0, 60.0), ("tokio", 100.0, 120.0)])]),
            120.0
        );
    }

    #[test]
    fn one_wild_round_does_not_squeeze_the_bars() {
        assert_eq!(
            end_of(&[panel(&[("own", 50.0, 60.0), ("tokio", 100.0, 5000.0)])]),
            150.0
        );
    }

    #[test]
    fn a_bar_out_of_proportion_is_torn_and_its_figure_stays() {
        let panel = panel(&[
            ("own", 50.0, 60.0),
            ("tokio", 100.0, 120.0),
            ("other", 9000.0, 9100.0),
        ]);
        assert_eq!(end_of(std::slice::from_ref(&panel)), 120.0);
        let (drawn, _) = draw(&[panel], Axes::Separate);
        assert!(drawn.to_string().contains("9\u{a0}000"));
    }

    #[test]
    fn nothing_measured_draws_nothing_and_does_not_panic() {
        let mut panel = panel(&[("own", 1.0, 1.0)]);
        panel.groups[0].bars = vec![None, None];
        let (drawn, _) = draw(&[panel], Axes::Shared);
        assert!(!drawn.to_string().contains("NaN"));
    }
}
