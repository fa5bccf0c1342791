//! The conditions of the run, for the footer of each card.

use waterwheel_suite::Conditions;

use crate::source::Source;

/// The contestants, the machine, and how a figure is computed.
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

/// The reason why no figure of this run may be quoted, if there is one.
pub(crate) fn alert(conditions: &Conditions) -> Option<&'static str> {
    if conditions.debug_assertions {
        Some("DEBUG ASSERTIONS WERE ON: no figure here means anything.")
    } else if conditions.quick {
        Some("QUICK RUN: small sizes and few rounds, for plausibility only.")
    } else {
        None
    }
}
