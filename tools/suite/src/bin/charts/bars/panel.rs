//! One panel: its axis, and the bars on it.

use svg::node::element::Group;

use super::parts::{Bar, BarGroup, Panel};
use crate::card::moved;
use crate::draw::{bar, line, polyline, text, whisker_lying, width_of};
use crate::figures::{figure, tick};
use crate::scale::Scale;

const THICK: f64 = 11.0;
const BETWEEN_BARS: f64 = 2.0;
pub(super) const BETWEEN_GROUPS: f64 = 10.0;
pub(super) const HEADING: f64 = 26.0;
const AXIS: f64 = 24.0;
/// Of a figure, from the top of its bar.
const BASE_LINE: f64 = 9.5;
/// On an axis, about.
const TICKS: usize = 4;

/// With the gap below.
pub(super) fn group_height(group: &BarGroup) -> f64 {
    let bars = group.bars.len() as f64;
    bars * THICK + (bars - 1.0) * BETWEEN_BARS + BETWEEN_GROUPS
}

/// With heading and axis.
pub(super) fn height(panel: &Panel) -> f64 {
    HEADING + panel.groups.iter().map(group_height).sum::<f64>() + AXIS
}

/// On the scale, from (0, 0).
pub(super) fn draw(panel: &Panel, scale: &Scale) -> Group {
    let bottom = height(panel) - AXIS - BETWEEN_GROUPS / 2.0;
    let mut group = Group::new().add(text("heading strong", (0.0, 10.0), &panel.heading));
    let ticks = scale.ticks(TICKS);
    for (index, value) in ticks.iter().enumerate() {
        let x = scale.place(*value);
        let class = if index == 0 { "axis" } else { "grid" };
        group = group.add(line(class, (x, HEADING - 6.0), (x, bottom)));
        let is_last = index + 1 == ticks.len();
        let unit = if is_last {
            format!("\u{a0}{}", panel.unit)
        } else {
            String::new()
        };
        // The unit hangs over, so that the number stays under its line.
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

/// The last variant has the full colour, those before it a tint.
pub(super) fn shade(index: usize, variants: usize) -> &'static str {
    if index + 1 == variants {
        "fill"
    } else {
        "fill faint"
    }
}
