//! What a bar chart is made of: panels, in them a group for each contestant, in these the bars.

use waterwheel_suite::Spread;

use crate::looks::Look;

/// A metric of one load.
pub(crate) struct Panel {
    pub(crate) heading: String,
    pub(crate) unit: String,
    /// By contestant, in the same order in all panels.
    pub(crate) groups: Vec<BarGroup>,
}

/// The bars of one contestant: one for each variant; none where it was not measured.
pub(crate) struct BarGroup {
    pub(crate) look: Look,
    pub(crate) bars: Vec<Option<Bar>>,
    /// Whether the chart is about this contestant: then its bars are never torn.
    pub(crate) whole: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Bar {
    pub(crate) spread: Spread,
    pub(crate) floor: Option<f64>,
}

/// Whether the panels measure the same, and are to be compared with each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axes {
    Shared,
    Separate,
}

impl Panel {
    pub(crate) fn has_floor(&self) -> bool {
        self.bars().any(|bar| bar.floor.is_some())
    }

    pub(super) fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.groups
            .iter()
            .flat_map(|group| group.bars.iter().flatten())
    }
}

impl Bar {
    /// With one round there is no spread.
    pub(super) fn has_whisker(&self) -> bool {
        self.spread.min < self.spread.max
    }

    pub(super) fn length(&self) -> f64 {
        self.spread.median.max(self.floor.unwrap_or(0.0))
    }
}
