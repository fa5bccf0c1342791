//! Lines, one for each contestant: how a figure grows with something.

use svg::node::element::Group;

use crate::card::{INNER, Sign, moved};
use crate::draw::{line, mark, polyline, text, whisker_standing};
use crate::figures::time_tick;
use crate::looks::Look;
use crate::scale::{Scale, round_ends};

/// A panel with axes of its own.
pub(crate) struct Panel {
    pub(crate) heading: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) curves: Vec<Curve>,
}

/// Ends, ticks with their labels, and what the values are.
#[derive(Clone)]
pub(crate) struct Axis {
    pub(crate) kind: AxisKind,
    pub(crate) ends: (f64, f64),
    pub(crate) ticks: Vec<(f64, String)>,
    pub(crate) label: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisKind {
    Linear,
    Log,
}

pub(crate) struct Curve {
    pub(crate) look: Look,
    pub(crate) points: Vec<Point>,
    /// With a mark and a whisker on each point; without, the line has a band from the least to the greatest round.
    pub(crate) marked: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// The least and the greatest of the rounds.
    pub(crate) ends: (f64, f64),
}

const BETWEEN_PANELS: f64 = 30.0;
const HEADING: f64 = 26.0;
const Y_LABELS: f64 = 48.0;
const TICKS: usize = 5;
const X_LABELS: f64 = 44.0;

/// Panels side by side in rows of `columns`. Returns the drawing and its height.
pub(crate) fn draw(panels: &[Panel], columns: usize, plot_height: f64) -> (Group, f64) {
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
pub(crate) fn legend<'a>(curves: impl Iterator<Item = &'a Curve>) -> Vec<Sign> {
    let mut signs: Vec<Sign> = Vec::new();
    for curve in curves {
        let look = &curve.look;
        if signs.iter().any(|sign| sign.label == look.label) {
            continue;
        }
        let mut symbol = Group::new()
            .set("class", look.class)
            .add(polyline("line", &[(0.0, -4.0), (24.0, -4.0)]));
        if curve.marked {
            symbol = symbol.add(mark(look.mark, (12.0, -4.0)));
        }
        signs.push(Sign {
            symbol,
            width: 24.0,
            label: look.label.clone(),
            ours: look.ours,
        });
    }
    signs
}

fn draw_panel(panel: &Panel, width: f64, plot_height: f64) -> Group {
    // A mark at the edge of the plot is not cut.
    let x = panel.x.scale((Y_LABELS + 8.0, width - 10.0));
    let y = panel.y.scale((HEADING + plot_height, HEADING));
    let (top, bottom) = (HEADING, HEADING + plot_height);

    let mut group = Group::new().add(text("heading strong", (0.0, 10.0), &panel.heading));
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
            .add(text("small middle", (at, bottom + 17.0), label));
    }
    let middle = (Y_LABELS + width) / 2.0;
    group = group.add(text(
        "small middle",
        (middle, bottom + 33.0),
        &panel.x.label,
    ));
    // Ours last, and so on top.
    for curve in panel.curves.iter().rev() {
        group = group.add(draw_curve(curve, &x, &y));
    }
    group
}

fn draw_curve(curve: &Curve, x: &Scale, y: &Scale) -> Group {
    let places = || {
        curve
            .points
            .iter()
            .map(|point| (x.place(point.x), y.place(point.y)))
    };
    let mut group = Group::new().set("class", curve.look.class);
    if !curve.marked {
        group = group.add(polyline("fill band", &band(&curve.points, x, y)));
    }
    group = group.add(polyline("line", &places().collect::<Vec<_>>()));
    if curve.marked {
        for (point, at) in curve.points.iter().zip(places()) {
            let (min, max) = point.ends;
            group = group
                .add(whisker_standing(at.0, (y.place(min), y.place(max))))
                .add(mark(curve.look.mark, at));
        }
    }
    group
}

/// There along the least, and back along the greatest.
fn band(points: &[Point], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let least = points
        .iter()
        .map(|point| (x.place(point.x), y.place(point.ends.0)));
    let greatest = points
        .iter()
        .rev()
        .map(|point| (x.place(point.x), y.place(point.ends.1)));
    least.chain(greatest).collect()
}

impl Curve {
    /// Every figure that must be on the axis.
    pub(crate) fn reach(&self) -> impl Iterator<Item = f64> {
        self.points
            .iter()
            .flat_map(|point| [point.y, point.ends.0, point.ends.1])
    }
}

impl Axis {
    /// Of times in ns, from the least to the greatest; none if there are none.
    pub(crate) fn log_time(nanos: impl Iterator<Item = f64>) -> Option<Self> {
        let ends = round_ends(nanos)?;
        let ticks = Scale::log(ends, (0.0, 1.0)).ticks(TICKS);
        Some(Self {
            kind: AxisKind::Log,
            ends,
            ticks: ticks
                .into_iter()
                .map(|nanos| (nanos, time_tick(nanos)))
                .collect(),
            label: String::new(),
        })
    }

    fn scale(&self, pixels: (f64, f64)) -> Scale {
        match self.kind {
            AxisKind::Linear => Scale::linear(self.ends, pixels),
            AxisKind::Log => Scale::log(self.ends, pixels),
        }
    }
}
