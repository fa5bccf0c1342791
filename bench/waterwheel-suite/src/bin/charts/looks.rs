//! The look of each contestant: the same colour, mark and label on every chart.

use waterwheel_bench_kit::chart::{Look, Mark};

/// In the order of the charts: the drop-in replacement, a separate timer, tokio's two, then the others. The name in the results, the
/// class, the label, the mark.
const KNOWN: [(&str, &str, &str, Mark); 9] = [
    ("current", "current", "waterwheel (drop-in)", Mark::Circle),
    ("own", "own", "own Timer", Mark::Diamond),
    ("tokio", "tokio", "tokio::time", Mark::Square),
    (
        "tokio, alt timer",
        "tokio-alt",
        "tokio, alt timer",
        Mark::Ring,
    ),
    (
        "own, thread",
        "own-thread",
        "own Timer, Thread",
        Mark::TriangleUp,
    ),
    (
        "own, tokio only",
        "own-tokio-only",
        "own Timer, TokioOnly",
        Mark::OpenSquare,
    ),
    (
        "pingora-timeout",
        "pingora-timeout",
        "pingora-timeout",
        Mark::Ring,
    ),
    ("async-io", "async-io", "async-io", Mark::TriangleDown),
    (
        "futures-timer",
        "futures-timer",
        "futures-timer",
        Mark::Cross,
    ),
];
const OURS: &str = "waterwheel";

/// The look of the contestant that has this name in the results.
pub(crate) fn look(name: &str) -> Look {
    let found = KNOWN.iter().position(|known| known.0 == name);
    let rank = found.unwrap_or(KNOWN.len());
    let (_, class, label, mark) = found.map_or(("", "other", name, Mark::Ring), |at| KNOWN[at]);
    let package = match class {
        "own" | "current" | "own-thread" | "own-tokio-only" => OURS,
        "tokio" | "tokio-alt" => "tokio",
        package => package,
    };
    Look {
        rank,
        class,
        label: label.to_owned(),
        package: found.map(|_| package),
        mark,
        ours: package == OURS,
    }
}
