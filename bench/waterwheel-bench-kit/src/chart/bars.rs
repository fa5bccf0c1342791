//! Horizontal bars, a group for each contestant: how a cost compares, and the effect of a second thread.
//!
//! A bar starts at 0, so that lengths are proportional to the figures. It shows the median, its whisker reaches from the
//! lowest to the highest round, and a tick across it is the floor.
//!
//! Two things must not squeeze all other bars. If the machine was busy in one round, a whisker may be far longer than every
//! bar: it ends in an arrow. The bar of a contestant with another purpose may be torn, but its figure is complete.

use svg::node::element::Group;

use super::card::{INNER, Sign, moved};
use super::draw::{bar, bold_width_of, line, polyline, text, whisker_lying, width_of};
use super::figures::{figure, tick};
use super::look::Look;
use super::scale::Scale;
use crate::Spread;

const BETWEEN_PANELS: f64 = 26.0;
/// Room for a figure behind the longest bar.
const VALUE: f64 = 46.0;
const THICK: f64 = 11.0;
const BETWEEN_BARS: f64 = 2.0;
const BETWEEN_GROUPS: f64 = 10.0;
const HEADING: f64 = 26.0;
const AXIS: f64 = 24.0;
/// The distance of a figure from the top of its bar.
const BASE_LINE: f64 = 9.5;
/// The approximate number of ticks on an axis.
const TICKS: usize = 4;
/// A bar this many times longer than the longest whole one is torn.
const TORN: f64 = 2.5;
/// A whisker this many times longer than the longest bar ends in an arrow.
const FAR: f64 = 1.5;

/// A metric of one load.
pub struct Panel {
    pub heading: String,
    pub unit: String,
    /// The groups of bars, by contestant, in the same order in all panels.
    pub groups: Vec<BarGroup>,
}

/// The bars of one contestant: one for each variant; `None` for a variant that was not measured.
pub struct BarGroup {
    pub look: Look,
    pub bars: Vec<Option<Bar>>,
    /// Whether the chart is about this contestant: then its bars are never torn.
    pub whole: bool,
}

#[derive(Clone, Copy)]
pub struct Bar {
    pub spread: Spread,
    pub floor: Option<f64>,
}

/// Whether the panels measure the same quantity, and should be compared with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Axes {
    Shared,
    Separate,
}

impl Panel {
    pub fn has_floor(&self) -> bool {
        self.bars().any(|bar| bar.floor.is_some())
    }

    fn bars(&self) -> impl Iterator<Item = &Bar> {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        bars.flatten()
    }
}

impl Bar {
    /// Whether there is a whisker: one round has no spread.
    fn has_whisker(&self) -> bool {
        self.spread.min < self.spread.max
    }

    fn length(&self) -> f64 {
        self.spread.median.max(self.floor.unwrap_or(0.0))
    }
}

/// Draws panels side by side, with names at the left. Returns the drawing and its height.
pub fn draw(panels: &[Panel], axes: Axes) -> (Group, f64) {
    let names = names_width(panels);
    let gaps = BETWEEN_PANELS * (panels.len() - 1) as f64;
    let width = (INNER - names - gaps) / panels.len() as f64;
    let mut body = draw_names(&panels[0], names);
    for (column, panel) in panels.iter().enumerate() {
        let scale = Scale::linear(axis_end(panel, panels, axes), width - VALUE);
        let x = names + column as f64 * (width + BETWEEN_PANELS);
        body = body.add(moved(draw_panel(panel, &scale), x, 0.0));
    }
    let height = panels.iter().map(panel_height).fold(0.0, f64::max);
    (body, height)
}

fn names_width(panels: &[Panel]) -> f64 {
    let groups = panels.iter().flat_map(|panel| &panel.groups);
    let widths = groups.map(|group| bold_width_of(&group.look.label));
    widths.fold(0.0, f64::max) + 12.0
}

fn draw_names(panel: &Panel, width: f64) -> Group {
    let mut names = Group::new();
    let mut y = HEADING;
    for group in &panel.groups {
        let height = group_height(group);
        let class = if group.look.ours {
            "end ours strong"
        } else {
            "end"
        };
        let middle = y + (height - BETWEEN_GROUPS) / 2.0 + 4.0;
        names = names.add(text(class, (width - 10.0, middle), &group.look.label));
        y += height;
    }
    names
}

/// The height of a group, including the gap below.
fn group_height(group: &BarGroup) -> f64 {
    let bars = group.bars.len() as f64;
    bars * THICK + (bars - 1.0) * BETWEEN_BARS + BETWEEN_GROUPS
}

/// The height of a panel, including heading and axis.
fn panel_height(panel: &Panel) -> f64 {
    HEADING + panel.groups.iter().map(group_height).sum::<f64>() + AXIS
}

/// Draws a panel on the scale, from (0, 0).
fn draw_panel(panel: &Panel, scale: &Scale) -> Group {
    let bottom = panel_height(panel) - AXIS - BETWEEN_GROUPS / 2.0;
    let mut group = Group::new().add(text("heading strong", (0.0, 10.0), &panel.heading));
    let ticks = scale.ticks(TICKS);
    for (index, value) in ticks.iter().enumerate() {
        let x = scale.place(*value);
        let class = if index == 0 { "axis" } else { "grid" };
        group = group.add(line(class, (x, HEADING - 6.0), (x, bottom)));
        let is_last = index + 1 == ticks.len();
        let unit = is_last.then(|| format!("\u{a0}{}", panel.unit));
        let unit = unit.unwrap_or_default();
        // The unit overhangs, so that the number stays under its line.
        let middle = (x + width_of(&unit) * 0.46, bottom + 15.0);
        group = group.add(text("small middle", middle, &(tick(*value) + &unit)));
    }
    let mut y = HEADING;
    for contestant in &panel.groups {
        group = group.add(moved(draw_bars(contestant, scale), 0.0, y));
        y += group_height(contestant);
    }
    group
}

fn draw_bars(contestant: &BarGroup, scale: &Scale) -> Group {
    let mut group = Group::new().set("class", contestant.look.class);
    for (index, measured) in contestant.bars.iter().enumerate() {
        let y = index as f64 * (THICK + BETWEEN_BARS);
        let drawn = match measured {
            Some(measured) => draw_bar(measured, shade(index, contestant.bars.len()), scale),
            None => Group::new().add(text("small", (4.0, BASE_LINE), "–")),
        };
        group = group.add(moved(drawn, 0.0, y));
    }
    group
}

fn draw_bar(measured: &Bar, shade: &str, scale: &Scale) -> Group {
    let Bar { spread, floor } = *measured;
    let end = scale.place(spread.median);
    let mut group = Group::new().add(bar(shade, (0.0, 0.0), (end, THICK)));
    let mut behind = end;
    if scale.is_beyond(spread.median) {
        let tear = |x: f64| polyline("halo", &[(x - 4.0, THICK + 1.0), (x + 4.0, -1.0)]);
        group = group.add(tear(end - 12.0));
    } else if measured.has_whisker() {
        let reach = (scale.place(spread.min), scale.place(spread.max));
        group = group.add(whisker_lying(
            THICK / 2.0,
            reach,
            scale.is_beyond(spread.max),
        ));
        behind = reach.1;
    }
    if let Some(floor) = floor.map(|floor| scale.place(floor)) {
        let (top, foot) = ((floor, -1.0), (floor, THICK + 1.0));
        group = group
            .add(line("halo", top, foot))
            .add(line("floor ink", top, foot));
        behind = behind.max(floor);
    }
    group.add(text(
        "small strong",
        (behind + 6.0, BASE_LINE),
        &figure(spread.median),
    ))
}

/// The colour class of a variant: the last one has the full colour, those before it a tint.
fn shade(index: usize, variants: usize) -> &'static str {
    if index + 1 == variants {
        "fill"
    } else {
        "fill faint"
    }
}

/// The end of the axis of one of these panels.
fn axis_end(panel: &Panel, panels: &[Panel], axes: Axes) -> f64 {
    end_of(match axes {
        Axes::Shared => panels,
        Axes::Separate => std::slice::from_ref(panel),
    })
}

/// The end of an axis that holds every bar that is not torn, and every whisker that is not far out.
fn end_of(panels: &[Panel]) -> f64 {
    let bars = |whole: bool| {
        let groups = panels.iter().flat_map(|panel| &panel.groups);
        let groups = groups.filter(move |group| group.whole || !whole);
        groups.flat_map(|group| group.bars.iter().flatten())
    };
    let longest = |whole| bars(whole).map(Bar::length).fold(0.0, f64::max);
    let (whole, all) = (longest(true), longest(false));
    let torn_from = if whole > 0.0 { TORN * whole } else { all };
    let drawn = || bars(false).filter(|bar| bar.length() <= torn_from);
    let longest = drawn().map(Bar::length).fold(0.0, f64::max);
    let whiskers = drawn().map(|bar| bar.spread.max).fold(0.0, f64::max);
    // Anything, if all values are 0.
    whiskers
        .clamp(longest, longest * FAR)
        .max(f64::MIN_POSITIVE)
}

/// The legend of the tints of the variants, the whisker, and the floor, as far as the panels have them.
pub fn legend(panels: &[Panel], variants: &[&str]) -> Vec<Sign> {
    let sign = |symbol: Group, width, label: &str| Sign {
        symbol,
        width,
        label: label.to_owned(),
        ours: false,
    };
    let mut signs = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        let shade = bar(shade(index, variants.len()), (0.0, -9.0), (22.0, 10.0));
        let symbol = Group::new().set("class", "anyone").add(shade);
        signs.push(sign(symbol, 22.0, variant));
    }
    let bars = || panels.iter().flat_map(Panel::bars);
    if bars().any(Bar::has_whisker) {
        let symbol = Group::new().add(whisker_lying(-4.0, (0.0, 22.0), false));
        signs.push(sign(symbol, 22.0, "lowest to highest round"));
    }
    if panels.iter().any(Panel::has_floor) {
        let symbol = Group::new().add(line("floor ink", (2.0, -10.0), (2.0, 2.0)));
        signs.push(sign(symbol, 4.0, "floor: what no timer can avoid"));
    }
    signs
}

/// The note about bars that are longer than their axis, if there are any.
pub fn note(panels: &[Panel], axes: Axes) -> Option<String> {
    let torn = |panel: &Panel| {
        let end = axis_end(panel, panels, axes);
        panel.bars().any(|bar| bar.spread.median > end)
    };
    let note = "A torn bar is longer than the axis; the figure next to it is its length.";
    panels.iter().any(torn).then(|| note.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::look::tests::look;

    fn panel(bars: &[(&str, f64, f64)]) -> Panel {
        let group = |&(name, median, max): &(&str, f64, f64)| {
            let min = median / 2.0;
            let bar = Bar {
                spread: Spread { median, min, max },
                floor: None,
            };
            BarGroup {
                look: look(name),
                bars: vec![Some(bar), None],
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
    fn the_axis_ends_with_the_ordinary_bars_and_whiskers() {
        let end = |max, other: &[_]| {
            let bars = [&[("own", 50.0, 60.0), ("tokio", 100.0, max)], other].concat();
            end_of(&[panel(&bars)])
        };
        assert_eq!(end(120.0, &[]), 120.0);
        // One wild round does not squeeze the bars.
        assert_eq!(end(5000.0, &[]), 150.0);
        // A bar out of proportion is torn.
        assert_eq!(end(120.0, &[("other", 9000.0, 9100.0)]), 120.0);
    }

    #[test]
    fn the_figure_of_a_torn_bar_stays_and_nothing_measured_draws_nothing() {
        let bars = [("own", 50.0, 60.0), ("other", 9000.0, 9100.0)];
        let (drawn, _) = draw(&[panel(&bars)], Axes::Separate);
        assert!(drawn.to_string().contains("9\u{a0}000"));
        let mut panel = panel(&[("own", 1.0, 1.0)]);
        panel.groups[0].bars = vec![None, None];
        let (drawn, _) = draw(&[panel], Axes::Shared);
        assert!(!drawn.to_string().contains("NaN"));
    }
}
