//! Faults that are planted in the engine, to show that the commands find them.

/// Plants a fault in this process.
#[cfg(feature = "planted")]
pub(crate) fn plant(name: &str) -> Result<(), String> {
    if let Some(fault) = named(name)? {
        waterwheel_durable_core::engine::planted::plant_everywhere(fault);
    }
    Ok(())
}

/// Whether there is a fault of this name.
#[cfg(feature = "planted")]
pub(crate) fn check(name: &str) -> Result<(), String> {
    named(name).map(drop)
}

#[cfg(feature = "planted")]
fn named(name: &str) -> Result<Option<waterwheel_durable_core::engine::planted::Planted>, String> {
    use waterwheel_durable_core::engine::planted::Planted;

    Ok(Some(match name {
        "" => return Ok(None),
        "ack-before-commit" => Planted::AnswerBeforeCommit,
        "never-settled" => Planted::NeverSettled,
        "rounded-down" => Planted::RoundedDown,
        "known-taken-again" => Planted::KnownTakenAgain,
        "given-up-comes-back" => Planted::GivenUpComesBack,
        "pause-forgotten" => Planted::PauseForgotten,
        "called-though-early" => Planted::CalledThoughEarly,
        "forgotten-before-settled" => Planted::ForgottenBeforeSettled,
        other => return Err(format!("there is no fault {other:?}")),
    }))
}

#[cfg(not(feature = "planted"))]
pub(crate) fn check(name: &str) -> Result<(), String> {
    plant(name)
}

#[cfg(not(feature = "planted"))]
pub(crate) fn plant(name: &str) -> Result<(), String> {
    match name {
        "" => Ok(()),
        _ => Err("faults are planted by a build with --features planted".into()),
    }
}
