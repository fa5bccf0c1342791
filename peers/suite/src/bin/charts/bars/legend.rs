//! What the signs beside the bars mean.

use svg::node::element::Group;

use super::panel::shade;
use super::{Axes, Panel, axis};
use crate::card::Sign;
use crate::draw::{bar, line, whisker_lying};

/// What the tints of the variants mean, the floor if there is one, and the whisker.
pub(crate) fn legend(variants: &[&str], floor: Option<&str>) -> Vec<Sign> {
    let sign = |symbol: Group, width, label: &str| Sign {
        symbol,
        width,
        label: label.to_owned(),
        ours: false,
    };
    let mut signs = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        let shade = bar(shade(index, variants.len()), (0.0, -9.0), (22.0, 10.0));
        signs.push(sign(
            Group::new().set("class", "anyone").add(shade),
            22.0,
            variant,
        ));
    }
    signs.push(sign(
        Group::new().add(whisker_lying(-4.0, (0.0, 22.0), false)),
        22.0,
        "least to greatest round",
    ));
    if let Some(label) = floor {
        let tick = line("floor ink", (2.0, -10.0), (2.0, 2.0));
        signs.push(sign(Group::new().add(tick), 4.0, label));
    }
    signs
}

/// What must be said of bars that are longer than their axis; nothing if there are none.
pub(crate) fn notes(panels: &[Panel], axes: Axes) -> Vec<String> {
    let torn = |panel: &Panel| {
        let end = axis::end(panel, panels, axes);
        panel.bars().any(|bar| bar.spread.median > end)
    };
    let any = panels.iter().any(torn);
    any.then(|| "A torn bar is longer than the axis; its figure stands behind it.".to_owned())
        .into_iter()
        .collect()
}
