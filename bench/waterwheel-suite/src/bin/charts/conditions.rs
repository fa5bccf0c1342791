//! The conditions of the run, for the foot of each card.

use waterwheel_suite::Conditions;

use crate::source::Source;

/// Who was measured, on what, and how a figure was made.
pub(crate) fn line(conditions: &Conditions, source: &Source) -> String {
    let mut versions: Vec<String> = Vec::new();
    for package in &source.packages {
        if let Some(version) = conditions.versions.get(*package) {
            versions.push(format!("{package} {version}"));
        }
    }
    // Without the commit and its date.
    versions.extend(conditions.rustc.split(" (").next().map(str::to_owned));
    let Conditions {
        processor,
        cores,
        workers,
        ..
    } = conditions;
    let rounds = match source.rounds {
        (1, 1) => "One round".to_owned(),
        (fewest, most) if fewest == most => format!("Medians of {most} interleaved rounds"),
        (fewest, most) => format!("Medians of {fewest} to {most} interleaved rounds"),
    };
    format!(
        "{}. {processor}, {cores} cores; a multi-thread runtime with {workers} workers. {rounds}.",
        versions.join(", ")
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
