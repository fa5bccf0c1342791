//! Nothing is due, and millions are pending.

use std::time::{Duration, Instant};

use waterwheel_durable::Durable;

use crate::place::{HANDLER, Place, Played, shut_down};
use crate::process;
use crate::sample::Sample;

pub(crate) async fn play(place: Place) -> Played {
    let timers = place.open(Durable::builder()).await?;
    timers.handle(HANDLER, |_| async { Ok(()) });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (start, cpu) = (Instant::now(), process::cpu_time());
    tokio::time::sleep(place.pick(Duration::from_secs(20), Duration::from_secs(2))).await;
    let cpu = process::cpu_time().saturating_sub(cpu);
    let mut sample = Sample::default();
    let share = cpu.as_secs_f64() / start.elapsed().as_secs_f64();
    sample.set("% of a core", share * 100.0);
    sample.set("peak memory", process::peak_memory());
    sample.set("bytes on disk", place.size()?);
    shut_down(&timers).await?;
    Ok(sample)
}
