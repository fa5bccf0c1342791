//! The id of a job, wherever it is visible.

use std::collections::HashSet;

use tokio::time::sleep;
use waterwheel_schedule::{Event, JobId, Misfire, Scheduler};

use super::support::{HOUR, Log, ms, multi_thread, within};

#[tokio::test(start_paused = true)]
async fn every_place_that_shows_a_job_shows_its_id() {
    let events = Log::new();
    let hook = events.clone();
    let scheduler = Scheduler::builder()
        .on_event(move |event| {
            hook.add(match event {
                Event::Started { id, run, .. } => (Some(*id), format!("starts {run}")),
                Event::Finished { id, run, .. } => (Some(*id), format!("ends {run}")),
                Event::Missed { id, runs, .. } => (Some(*id), format!("missed {runs}")),
                // No id was assigned.
                Event::Refused { .. } => (None, "refused".to_owned()),
                other => panic!("{other:?}"),
            });
        })
        .build();
    let _first = scheduler.after(HOUR).run(|_| async {});
    let job = scheduler.every(ms(100)).misfire(Misfire::Skip).max_runs(2);
    let ids = Log::new();
    let seen = ids.clone();
    let job = job.run(move |context| {
        seen.add(context.id());
        sleep(ms(150))
    });
    let id = job.id();
    assert_eq!(job.control().id(), id);
    let listed = scheduler.jobs().into_iter().map(|job| (job.id, job.runs));
    assert!(listed.collect::<Vec<_>>().contains(&(id, 0)));
    for shown in [
        format!("{job:?}"),
        format!("{:?}", job.control()),
        format!("{:?}", scheduler.jobs()),
    ] {
        assert!(shown.contains(&format!("{id:?}")), "{shown}");
    }
    let control = job.control();
    job.await.unwrap();
    assert_eq!((control.id(), ids.lines()), (id, vec![id, id]));
    let never = scheduler.shutdown_now();
    assert_eq!(never.len(), 1);
    assert!(never[0].id < id);
    assert!(scheduler.after(ms(1)).try_run(|_| async {}).is_err());
    let expected = ["starts 1", "ends 1", "missed 1", "starts 2", "ends 2"];
    let mut expected: Vec<_> = expected.map(|it| (Some(id), it.to_owned())).into();
    expected.push((None, "refused".to_owned()));
    assert_eq!(events.lines(), expected);
}

#[test]
fn ids_count_up_from_1_and_none_is_given_twice() {
    multi_thread().block_on(within(async {
        let scheduler = Scheduler::builder().max_pending(1_000).build();
        assert_eq!(scheduler.after(HOUR).run(|_| async {}).id(), JobId::from(1));
        let threads = [(); 3].map(|()| {
            let scheduler = scheduler.clone();
            tokio::spawn(async move {
                let mut ids = Vec::new();
                for n in 0..500 {
                    // The jobs use the same places of the wheel again and again.
                    let job = scheduler.after(HOUR).run(|_| async {});
                    ids.push(job.id());
                    assert!(n % 3 == 0 || job.cancel());
                }
                assert!(ids.is_sorted());
                ids
            })
        });
        let mut all = HashSet::from([JobId::from(1)]);
        for thread in threads {
            all.extend(thread.await.unwrap());
        }
        // Jobs that were cancelled before they began have ids, too.
        assert_eq!(scheduler.counts().submitted, 1_501);
        assert_eq!(all, (1..=1_501).map(JobId::from).collect());
    }));
}

#[tokio::test(start_paused = true)]
async fn a_refused_job_takes_no_id() {
    let scheduler = Scheduler::builder().max_pending(1).build();
    let first = scheduler.after(HOUR).run(|_| async {});
    assert!(scheduler.after(HOUR).try_run(|_| async {}).is_err());
    assert!(first.cancel());
    let second = scheduler.after(HOUR).run(|_| async {});
    assert_eq!([first.id(), second.id()], [1, 2].map(JobId::from));
}

// Like an operator's page: a list, and then a request with the text of an id.
#[tokio::test(start_paused = true)]
async fn a_job_is_found_by_its_id_until_it_has_ended() {
    let scheduler = Scheduler::new();
    let jobs: Vec<_> = (0..1_000)
        .map(|_| scheduler.after(HOUR).name("same").run(|_| async {}))
        .collect();
    let listed: Vec<String> = scheduler
        .jobs()
        .iter()
        .map(|it| it.id.to_string())
        .collect();
    let wanted = jobs[617].id().to_string();
    assert_eq!(listed.iter().filter(|id| **id == wanted).count(), 1);
    let id = JobId::from(wanted.parse::<u64>().unwrap());
    let control = scheduler.job(id).unwrap();
    assert_eq!(control.id(), id);
    assert!(control.cancel());
    let done = jobs.iter().filter(|job| job.is_done());
    assert_eq!(done.map(|job| job.id()).collect::<Vec<_>>(), [id]);
    assert!(scheduler.job(id).is_none());
    // This job takes the place of the ended one in the wheel.
    let next = scheduler.after(HOUR).run(|_| async {});
    assert!(scheduler.job(id).is_none() && scheduler.job(next.id()).is_some());
    for unknown in [0, 5_000, u64::MAX] {
        assert!(scheduler.job(JobId::from(unknown)).is_none());
    }
}

#[test]
fn an_id_prints_as_its_number() {
    let id = JobId::from(42);
    assert_eq!(id.to_string(), "42");
    assert_eq!(format!("{id:>5}|{id:?}"), "   42|JobId(42)");
    assert_eq!(u64::from(id), 42);
}
