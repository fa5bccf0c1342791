//! Lines, one for each contestant: how a figure grows with a parameter.

use svg::node::element::{Group, Text};

use super::card::{INNER, Sign, moved};
use super::draw::{bar, line, mark, polyline, text, whisker_standing, width_of};
use super::figures::{tick, time_tick};
use super::look::Look;
use super::scale::{Kind, Scale, round_ends};

/// A panel with its own axes.
pub struct Panel {
    pub heading: String,
    /// A remark below the panel, in small letters.
    pub remark: String,
    pub x: Axis,
    pub y: Axis,
    /// The value of x from which on the background is shaded, and the reason in a few words.
    pub shaded: Option<(f64, String)>,
    pub curves: Vec<Curve>,
}

/// The ends, ticks with their labels, and a description of the values.
#[derive(Clone)]
pub struct Axis {
    pub kind: Kind,
    pub ends: (f64, f64),
    pub ticks: Vec<(f64, String)>,
    pub label: String,
}

pub struct Curve {
    pub look: Look,
    pub points: Vec<Point>,
    /// How the rounds are shown.
    pub rounds: Rounds,
}

/// How the range from the lowest round to the highest is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rounds {
    /// A whisker and a mark on each point: for a few points.
    Whiskers,
    /// A band along the line, which has a mark now and then.
    Band,
}

#[derive(Clone, Copy)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// The values of the lowest and the highest round.
    pub ends: (f64, f64),
}

const BETWEEN_PANELS: f64 = 30.0;
const HEADING: f64 = 40.0;
const Y_LABELS: f64 = 48.0;
const TICKS: usize = 5;
/// The room above the highest point.
const ROOM: f64 = 1.05;
/// A whisker that reaches this many times as high as the highest point ends in an arrow.
const FAR: f64 = 1.5;
const X_LABELS: f64 = 44.0;
/// The distance of marks on a line with a band, in points.
const MARK_EVERY: usize = 20;
/// The distance between the whiskers of two contestants on the same step.
const ASIDE: f64 = 4.0;
/// The length of a line in the legend: enough for a dash pattern.
const SAMPLE: f64 = 34.0;

/// Draws panels side by side in rows of `columns`. Returns the drawing and its height.
pub fn draw(panels: &[Panel], columns: usize, plot_height: f64) -> (Group, f64) {
    let width = (INNER - BETWEEN_PANELS * (columns - 1) as f64) / columns as f64;
    let height = HEADING + plot_height + X_LABELS;
    let mut body = Group::new();
    for (index, panel) in panels.iter().enumerate() {
        let x = (index % columns) as f64 * (width + BETWEEN_PANELS);
        let y = (index / columns) as f64 * height;
        body = body.add(moved(draw_panel(panel, width, plot_height), x, y));
    }
    (body, panels.len().div_ceil(columns) as f64 * height)
}

/// The line and the mark of each contestant.
pub fn legend<'a>(curves: impl Iterator<Item = &'a Curve>) -> Vec<Sign> {
    let mut curves: Vec<&Curve> = curves.collect();
    curves.sort_by_key(|curve| curve.look.rank);
    curves.dedup_by(|next, curve| next.look == curve.look);
    curves.into_iter().map(sign).collect()
}

fn sign(curve: &Curve) -> Sign {
    let look = &curve.look;
    let line = polyline("line", &[(0.0, -4.0), (SAMPLE, -4.0)]);
    let symbol = Group::new().set("class", look.class).add(line);
    Sign {
        symbol: symbol.add(mark(look.mark, (SAMPLE / 2.0, -4.0))),
        width: SAMPLE,
        label: look.label.clone(),
        ours: look.ours,
    }
}

fn draw_panel(panel: &Panel, width: f64, plot_height: f64) -> Group {
    // Leave room, so that a mark at the edge of the plot is not cut.
    let x = panel.x.scale((Y_LABELS + 8.0, width - 10.0));
    let y = panel.y.scale((HEADING + plot_height, HEADING));
    let (top, bottom) = (HEADING, HEADING + plot_height);

    let mut group = Group::new()
        .add(text("heading strong", (0.0, 10.0), &panel.heading))
        .add(text("small", (0.0, 25.0), &panel.remark));
    if let Some((from, why)) = &panel.shaded {
        let from = x.place(*from);
        group = group
            .add(bar("shaded", (from, top), (width - from, plot_height)))
            .add(text("small middle", ((from + width) / 2.0, top - 5.0), why));
    }
    for (value, label) in &panel.y.ticks {
        let at = y.place(*value);
        group = group
            .add(line("grid", (Y_LABELS, at), (width, at)))
            .add(text("small end", (Y_LABELS - 6.0, at + 4.0), label));
    }
    group = group.add(line("axis", (Y_LABELS, bottom), (width, bottom)));
    for (value, label) in &panel.x.ticks {
        let at = x.place(*value);
        group = group
            .add(line("axis", (at, bottom), (at, bottom + 4.0)))
            .add(line("grid", (at, top), (at, bottom)))
            .add(x_label(label, at, bottom + 17.0, width));
    }
    let middle = (Y_LABELS + width) / 2.0;
    group = group.add(text(
        "small middle",
        (middle, bottom + 33.0),
        &panel.x.label,
    ));
    // Ours are on top, and the thinner, dashed lines of `own` above the thicker one of `current`, which they often follow.
    let (ours, peers): (Vec<_>, Vec<_>) = panel.curves.iter().partition(|curve| curve.look.ours);
    let curves = || peers.iter().rev().chain(&ours);
    // Bands come first, so that none dims a line.
    for curve in curves().filter(|curve| curve.rounds == Rounds::Band) {
        let band = polyline("fill band", &band(&curve.points, &x, &y));
        group = group.add(Group::new().set("class", curve.look.class).add(band));
    }
    for curve in curves() {
        group = group.add(draw_curve(curve, &x, &y));
    }
    group
}

/// A label under its tick, unless it would extend beyond the right edge.
fn x_label(label: &str, at: f64, base_line: f64, width: f64) -> Text {
    let end = width + 8.0;
    if at + width_of(label) / 2.0 > end {
        text("small end", (end, base_line), label)
    } else {
        text("small middle", (at, base_line), label)
    }
}

fn draw_curve(curve: &Curve, x: &Scale, y: &Scale) -> Group {
    // Whiskers on the same step stand side by side.
    let aside = match curve.rounds {
        Rounds::Whiskers => (curve.look.rank.min(3) as f64 - 1.5) * ASIDE,
        Rounds::Band => 0.0,
    };
    let points = curve.points.iter();
    let places: Vec<_> = points
        .map(|point| (x.place(point.x) + aside, y.place(point.y)))
        .collect();
    let mut group = Group::new().set("class", curve.look.class);
    group = group.add(polyline("line", &places));
    match curve.rounds {
        Rounds::Band => {
            // Marks at different points, so that those of lines that coincide stand side by side.
            let first = 1 + 2 * curve.look.rank;
            for at in places.into_iter().skip(first).step_by(MARK_EVERY) {
                group = group.add(mark(curve.look.mark, at));
            }
        }
        Rounds::Whiskers => {
            for (point, at) in curve.points.iter().zip(places) {
                let (min, max) = point.ends;
                let reach = (y.place(min), y.place(max));
                group = group
                    .add(whisker_standing(at.0, reach, y.is_beyond(max)))
                    .add(mark(curve.look.mark, at));
            }
        }
    }
    group
}

/// The outline of a band: along the lowest round, and back along the highest.
fn band(points: &[Point], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let least = points.iter().map(|point| (point.x, point.ends.0));
    let greatest = points.iter().rev().map(|point| (point.x, point.ends.1));
    let ends = least.chain(greatest);
    ends.map(|end| (x.place(end.0), y.place(end.1))).collect()
}

impl Curve {
    /// Every figure that must be on the axis.
    pub fn reach(&self) -> impl Iterator<Item = f64> {
        self.points
            .iter()
            .flat_map(|point| [point.y, point.ends.0, point.ends.1])
    }
}

impl Axis {
    /// A scale of times in ns, from the least to the greatest; `None` if there are none.
    pub fn log_time(nanos: impl Iterator<Item = f64>) -> Option<Self> {
        Some(Self::ticked(Kind::Log, round_ends(nanos)?, time_tick))
    }

    /// A scale from 0 to a little beyond the highest point; `None` if there is none. Whiskers that are far longer are cut.
    pub fn from_zero(curves: &[Curve]) -> Option<Self> {
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let highest = points().map(|point| point.y).fold(0.0, f64::max);
        let whiskers = points().map(|point| point.ends.1).fold(0.0, f64::max);
        let top = whiskers.clamp(highest * ROOM, highest * FAR);
        (highest > 0.0).then(|| Self::ticked(Kind::Linear, (0.0, top), tick))
    }

    fn ticked(kind: Kind, ends: (f64, f64), label: fn(f64) -> String) -> Self {
        let ticks = Scale::new(kind, ends, (0.0, 1.0)).ticks(TICKS);
        Self {
            kind,
            ends,
            ticks: ticks.into_iter().map(|it| (it, label(it))).collect(),
            label: String::new(),
        }
    }

    fn scale(&self, pixels: (f64, f64)) -> Scale {
        Scale::new(self.kind, self.ends, pixels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::look::tests::look;

    fn curve(points: &[(f64, f64)]) -> Curve {
        let point = |&(y, max): &(f64, f64)| Point {
            x: 0.0,
            y,
            ends: (y, max),
        };
        Curve {
            look: look("own"),
            points: points.iter().map(point).collect(),
            rounds: Rounds::Whiskers,
        }
    }

    #[test]
    fn whiskers_fit_unless_they_are_far_out() {
        let top = |points: &[(f64, f64)]| Axis::from_zero(&[curve(points)]).map(|axis| axis.ends.1);
        assert_eq!(top(&[(100.0, 120.0), (50.0, 60.0)]), Some(120.0));
        assert_eq!(top(&[(100.0, 900.0)]), Some(150.0));
        assert_eq!(top(&[]), None);
    }

    #[test]
    fn the_legend_has_each_contestant_once() {
        let curves = [curve(&[]), curve(&[])];
        assert_eq!(legend(curves.iter()).len(), 1);
    }
}
