//! Faults that are planted in the engine, to show that the commands find them.

/// Plants a fault in this process.
#[cfg(feature = "planted")]
pub(crate) fn plant(name: Option<&str>) -> Result<(), String> {
    if let Some(fault) = named(name)? {
        waterwheel_durable::engine::planted::plant_everywhere(fault);
    }
    Ok(())
}

/// Whether there is a fault of this name.
#[cfg(feature = "planted")]
pub(crate) fn check(name: Option<&str>) -> Result<(), String> {
    named(name).map(drop)
}

#[cfg(feature = "planted")]
fn named(
    name: Option<&str>,
) -> Result<Option<waterwheel_durable::engine::planted::Planted>, String> {
    use waterwheel_durable::engine::planted::Planted;

    Ok(Some(match name {
        None => return Ok(None),
        Some("ack-before-commit") => Planted::AnswerBeforeCommit,
        Some("never-settled") => Planted::NeverSettled,
        Some("rounded-down") => Planted::RoundedDown,
        Some("known-taken-again") => Planted::KnownTakenAgain,
        Some("forgotten-before-settled") => Planted::ForgottenBeforeSettled,
        Some(other) => return Err(format!("there is no fault {other:?}")),
    }))
}

#[cfg(not(feature = "planted"))]
pub(crate) fn check(name: Option<&str>) -> Result<(), String> {
    plant(name)
}

#[cfg(not(feature = "planted"))]
pub(crate) fn plant(name: Option<&str>) -> Result<(), String> {
    match name {
        None => Ok(()),
        Some(_) => Err("faults are planted by a build with --features planted".into()),
    }
}
