//! Lying bars, a group for each contestant: how a cost compares, and what a second thread does to it.
//!
//! A bar starts at 0, so that lengths compare as the figures do. It is the median, its whisker reaches from the least to the
//! greatest round, and a tick across it is the floor.
//!
//! Two things must not squeeze all other bars. One round in which the machine was busy with something else: a whisker that is
//! far longer than every bar ends in an arrow. And a contestant made for something else: its bar is torn, its figure is not.

mod axis;
mod legend;
mod panel;
mod parts;

use svg::node::element::Group;

use crate::card::{INNER, moved};
use crate::draw::{bold_width_of, text};
use crate::scale::Scale;

pub(crate) use legend::{legend, note};
pub(crate) use parts::{Axes, Bar, BarGroup, Panel};

const BETWEEN_PANELS: f64 = 26.0;
/// Room for a figure behind the longest bar.
const VALUE: f64 = 46.0;

/// Panels side by side, names at their left. Returns the drawing and its height.
pub(crate) fn draw(panels: &[Panel], axes: Axes) -> (Group, f64) {
    let names = names_width(panels);
    let gaps = BETWEEN_PANELS * (panels.len() - 1) as f64;
    let width = (INNER - names - gaps) / panels.len() as f64;
    let mut body = draw_names(&panels[0], names);
    for (column, panel) in panels.iter().enumerate() {
        let scale = Scale::linear((0.0, axis::end(panel, panels, axes)), (0.0, width - VALUE));
        let x = names + column as f64 * (width + BETWEEN_PANELS);
        body = body.add(moved(panel::draw(panel, &scale), x, 0.0));
    }
    let height = panels.iter().map(panel::height).fold(0.0, f64::max);
    (body, height)
}

fn names_width(panels: &[Panel]) -> f64 {
    let groups = panels.iter().flat_map(|panel| &panel.groups);
    groups
        .map(|group| bold_width_of(&group.look.label))
        .fold(0.0, f64::max)
        + 12.0
}

fn draw_names(panel: &Panel, width: f64) -> Group {
    let mut names = Group::new();
    let mut y = panel::HEADING;
    for group in &panel.groups {
        let height = panel::group_height(group);
        let class = if group.look.ours {
            "end ours strong"
        } else {
            "end"
        };
        let middle = y + (height - panel::BETWEEN_GROUPS) / 2.0 + 4.0;
        names = names.add(text(class, (width - 10.0, middle), &group.look.label));
        y += height;
    }
    names
}
