//! Faults that are planted in the engine, to show that the commands find them.

#[cfg(feature = "planted")]
use waterwheel_durable_core::engine::planted::{Planted, plant_everywhere};

/// Plants a fault in this process.
#[cfg(feature = "planted")]
pub(crate) fn plant(name: &str) -> Result<(), String> {
    named(name)?.into_iter().for_each(plant_everywhere);
    Ok(())
}

#[cfg(feature = "planted")]
fn named(name: &str) -> Result<Option<Planted>, String> {
    Ok(Some(match name {
        "" => return Ok(None),
        "ack-before-commit" => Planted::AnswerBeforeCommit,
        "never-settled" => Planted::NeverSettled,
        "rounded-down" => Planted::RoundedDown,
        "known-taken-again" => Planted::KnownTakenAgain,
        "pause-forgotten" => Planted::PauseForgotten,
        "called-though-early" => Planted::CalledThoughEarly,
        "forgotten-before-settled" => Planted::ForgottenBeforeSettled,
        other => return Err(format!("there is no fault {other:?}")),
    }))
}

#[cfg(not(feature = "planted"))]
pub(crate) fn plant(name: &str) -> Result<(), String> {
    named(name)
}

#[cfg(not(feature = "planted"))]
fn named(name: &str) -> Result<(), String> {
    match name {
        "" => Ok(()),
        _ => Err("faults are planted by a build with --features planted".into()),
    }
}

/// Checks that a fault of this name exists.
pub(crate) fn check(name: &str) -> Result<(), String> {
    named(name).map(drop)
}
