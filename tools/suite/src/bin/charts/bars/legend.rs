//! What the signs beside the bars mean.

use svg::node::element::Group;

use super::axis;
use super::panel::shade;
use super::parts::{Axes, Bar, Panel};
use crate::card::Sign;
use crate::draw::{bar, line, whisker_lying};

/// What the tints of the variants mean, the whisker, and the floor; each if there is one.
pub(crate) fn legend(panels: &[Panel], variants: &[&str]) -> Vec<Sign> {
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

/// What must be said of bars that are longer than their axis; nothing if there are none.
pub(crate) fn note(panels: &[Panel], axes: Axes) -> Option<String> {
    let torn = |panel: &Panel| {
        let end = axis::end(panel, panels, axes);
        panel.bars().any(|bar| bar.spread.median > end)
    };
    let any = panels.iter().any(torn);
    any.then(|| {
        "A torn bar is longer than the axis; the figure next to it is its length.".to_owned()
    })
}
