//! How each contestant is shown: the same colour, mark and label on every chart.

use waterwheel_bench_kit::chart::{Look, Mark};

/// In the order of the charts: the drop-in, a timer of one's own, tokio's two, then the others.
const KNOWN: [Known; 9] = [
    known("current", "current", "waterwheel (drop-in)", Mark::Circle),
    known("own", "own", "own Timer", Mark::Diamond),
    known("tokio", "tokio", "tokio::time", Mark::Square),
    known(
        "tokio, alt timer",
        "tokio-alt",
        "tokio, alt timer",
        Mark::Ring,
    ),
    known(
        "own, thread",
        "own-thread",
        "own Timer, Thread",
        Mark::TriangleUp,
    ),
    known(
        "own, tokio only",
        "own-tokio-only",
        "own Timer, TokioOnly",
        Mark::OpenSquare,
    ),
    known(
        "pingora-timeout",
        "pingora-timeout",
        "pingora-timeout",
        Mark::Ring,
    ),
    known("async-io", "async-io", "async-io", Mark::TriangleDown),
    known(
        "futures-timer",
        "futures-timer",
        "futures-timer",
        Mark::Cross,
    ),
];

struct Known {
    /// In the results.
    name: &'static str,
    class: &'static str,
    label: &'static str,
    mark: Mark,
}

const fn known(name: &'static str, class: &'static str, label: &'static str, mark: Mark) -> Known {
    Known {
        name,
        class,
        label,
        mark,
    }
}

/// The look of the contestant that has this name in the results.
pub(crate) fn look(name: &str) -> Look {
    let found = KNOWN.iter().position(|known| known.name == name);
    let rank = found.unwrap_or(KNOWN.len());
    match found.map(|index| &KNOWN[index]) {
        Some(known) => Look {
            rank,
            class: known.class,
            label: known.label.to_owned(),
            package: Some(known.package()),
            mark: known.mark,
            ours: known.package() == OURS,
        },
        None => Look {
            rank,
            class: "other",
            label: name.to_owned(),
            package: None,
            mark: Mark::Ring,
            ours: false,
        },
    }
}

const OURS: &str = "waterwheel";

impl Known {
    fn package(&self) -> &'static str {
        match self.class {
            "own" | "current" | "own-thread" | "own-tokio-only" => OURS,
            "tokio" | "tokio-alt" => "tokio",
            package => package,
        }
    }
}
