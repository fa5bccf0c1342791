//! The conditions of the run, for the foot of each card.

use waterwheel_suite::Conditions;

/// Who was measured, on what, and how a figure was made.
pub(crate) fn line(conditions: &Conditions, packages: &[&str]) -> String {
    let mut parts = Vec::new();
    for package in packages {
        if let Some(version) = conditions.versions.get(*package) {
            parts.push(format!("{package} {version}"));
        }
    }
    parts.push(
        conditions
            .rustc
            .split(" (")
            .next()
            .unwrap_or_default()
            .to_owned(),
    );
    let Conditions {
        processor,
        cores,
        workers,
        rounds,
        ..
    } = conditions;
    format!(
        "{}. {processor}, {cores} cores; a multi-thread runtime with {workers} workers. Medians of {rounds} interleaved rounds.",
        parts.join(", ")
    )
}

/// Why no figure of this run is to be quoted, if so.
pub(crate) fn alert(conditions: &Conditions) -> Option<&'static str> {
    if conditions.debug_assertions {
        Some("DEBUG ASSERTIONS WERE ON: no figure here means anything.")
    } else if conditions.quick {
        Some("QUICK RUN: small sizes and few rounds, for plausibility only.")
    } else {
        None
    }
}
