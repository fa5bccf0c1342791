//! How a contestant is shown: the same colour, mark and label on every chart.

/// The look of a contestant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Its position on every chart: the drop-in replacement first.
    pub rank: usize,
    /// Its class in the style sheet.
    pub class: &'static str,
    /// Its name on the chart.
    pub label: String,
    /// The package it comes from, for the versions in the footer.
    pub package: Option<&'static str>,
    /// Its points in line charts.
    pub mark: Mark,
    /// Whether it belongs to this project: its label is bold.
    pub ours: bool,
}

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Circle,
    Ring,
    Square,
    OpenSquare,
    Diamond,
    TriangleUp,
    TriangleDown,
    Cross,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::chart) fn look(name: &str) -> Look {
        Look {
            rank: 0,
            class: "anyone",
            label: name.to_owned(),
            package: None,
            mark: Mark::Ring,
            ours: name == "own",
        }
    }
}
