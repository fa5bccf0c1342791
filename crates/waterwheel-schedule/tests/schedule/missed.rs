//! Runs that were missed, under each misfire policy.

use tokio::time::{Instant, sleep};
use waterwheel_schedule::{Misfire, Scheduler};

use super::support::{Log, ms, on_manual_clock, paused, secs};

/// The times of the runs, and the places of the grid that they stood for, of a job every 100 ms whose first run takes 350 ms.
fn runs(misfire: Misfire) -> (Vec<u64>, Vec<u64>, u64) {
    paused().block_on(async {
        let (scheduler, log, start) = (Scheduler::new(), Log::new(), Instant::now());
        let runs = log.clone();
        let job = scheduler
            .every(ms(100))
            .misfire(misfire)
            .until(start + ms(800));
        job.run(move |context| {
            runs.add((context.scheduled() - start).as_millis() as u64);
            let is_first = context.run() == 1;
            async move {
                if is_first {
                    sleep(ms(350)).await;
                }
            }
        })
        .await
        .unwrap();
        (log.times(), log.lines(), scheduler.counts().missed)
    })
}

// The first run ends at 450: those of 200, 300 and 400 are missed.
#[test]
fn missed_runs_are_skipped_and_the_phase_stays() {
    let (at, due, missed) = runs(Misfire::Skip);
    assert_eq!(at, [100, 500, 600, 700, 800]);
    assert_eq!((due, missed), (at, 3));
}

#[test]
fn one_run_stands_for_all_that_were_missed() {
    let (at, due, missed) = runs(Misfire::Once);
    assert_eq!(at, [100, 450, 500, 600, 700, 800]);
    assert_eq!(due, [100, 400, 500, 600, 700, 800]);
    assert_eq!(missed, 2);
}

#[test]
fn the_latest_of_the_missed_runs_are_caught_up() {
    let (at, due, missed) = runs(Misfire::CatchUpTo(2));
    assert_eq!(at, [100, 450, 450, 500, 600, 700, 800]);
    assert_eq!(due, [100, 300, 400, 500, 600, 700, 800]);
    assert_eq!(missed, 1);
}

#[test]
fn all_missed_runs_are_caught_up_one_by_one() {
    let (at, due, missed) = runs(Misfire::CatchUp);
    assert_eq!(at, [100, 450, 450, 450, 500, 600, 700, 800]);
    assert_eq!(due, [100, 200, 300, 400, 500, 600, 700, 800]);
    assert_eq!(missed, 0);
}

#[test]
fn catching_up_to_none_is_skipping() {
    assert_eq!(runs(Misfire::CatchUpTo(0)), runs(Misfire::Skip));
}

// A jump over many periods, such as a suspended machine's, costs no replay: spring#18458.
#[tokio::test(start_paused = true)]
async fn a_long_gap_is_one_late_run_and_then_the_grid() {
    let (clock, scheduler) = on_manual_clock();
    let start = clock.now();
    let log = Log::new();
    let runs = log.clone();
    let job = scheduler.every(secs(1)).run(move |context| {
        runs.add((context.scheduled() - start).as_millis());
        async {}
    });
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
