//! Runs that were missed, under each misfire policy.

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Context, Misfire, Scheduler};

use super::support::{Log, ms, on_manual_clock, paused, secs};

/// The times of the runs, their due times, and the number of missed runs, of a job every 100 ms whose first run takes 350 ms.
fn runs(misfire: Misfire) -> (Vec<u64>, Vec<u64>, u64) {
    paused().block_on(async {
        let (scheduler, log, start) = (Scheduler::new(), Log::new(), Instant::now());
        let job = scheduler.every(ms(100)).misfire(misfire);
        let runs = log.each(
            move |context| (context.scheduled() - start).as_millis() as u64,
            |context| sleep(ms(if context.run() == 1 { 350 } else { 0 })),
        );
        job.until(start + ms(800)).run(runs).await.unwrap();
        (log.times(), log.lines(), scheduler.counts().missed)
    })
}

// The first run ends at 450: those of 200, 300 and 400 are missed. One run stands for all, or they are caught up one by one.
#[test]
fn missed_runs_are_skipped_replaced_or_caught_up() {
    for (misfire, at, due, missed) in [
        (Misfire::Skip, &[100][..], &[100][..], 3),
        (Misfire::Once, &[100, 450], &[100, 400], 2),
        (Misfire::CatchUpTo(0), &[100], &[100], 3),
        (Misfire::CatchUpTo(2), &[100, 450, 450], &[100, 300, 400], 1),
        (
            Misfire::CatchUp,
            &[100, 450, 450, 450],
            &[100, 200, 300, 400],
            0,
        ),
    ] {
        // The phase is unchanged.
        let and_on = |first: &[u64]| [first, &[500, 600, 700, 800]].concat();
        let expected = (and_on(at), and_on(due), missed);
        assert_eq!(runs(misfire), expected, "{misfire:?}");
    }
}

// A jump over many periods, as after a suspension, must not replay them all: spring#18458.
#[tokio::test(start_paused = true)]
async fn a_long_gap_is_one_late_run_and_then_the_grid() {
    let (clock, scheduler) = on_manual_clock();
    let start = clock.now();
    let log = Log::new();
    let since = move |context: &Context| (context.scheduled() - start).as_millis();
    let job = scheduler.every(secs(1)).run(log.each(since, |_| async {}));
    sleep(ms(1)).await;
    clock.advance(secs(86_400) + ms(500));
    sleep(ms(1)).await;
    assert_eq!(log.lines(), [1_000]);
    clock.advance(ms(500));
    sleep(ms(1)).await;
    assert_eq!(log.lines(), [1_000, 86_401_000]);
    assert_eq!(scheduler.counts().missed, 86_399);
    assert_eq!(job.runs(), 2);
}
