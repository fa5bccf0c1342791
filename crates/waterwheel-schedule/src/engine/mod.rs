//! When does a job start, and what becomes of it?
//!
//! | file | question |
//! |---|---|
//! | `table` | which jobs are there, and in which phase is the scheduler? All under one lock |
//! | `entry` | where does a job stand, and what does the table keep of it? |
//! | `intake` | what is taken, and what is refused? |
//! | `admission` | what runs now, and what queues for a permit? |
//! | `plan` | when does a job run next? |
//! | `fixed_rate` | which deadline at a fixed rate is next? |
//! | `occurrences` | which time of a calendar is next? |
//! | `clock_set_back` | was the wall clock set back so far that the calendar starts again? |
//! | `concurrency_limit` | how many run at a time? |
//! | `due` | what is due, and was not started yet? |
//! | `run_queue` | who starts jobs that are due together? |
//! | `driver` | who starts what is due? One task |
//! | `completion` | what follows a run? |
//! | `ending` | what ends jobs before their time: a cancel, a shutdown? |
//! | `moves` | what moves a job that does not run: pause, resume, a run at once, another deadline? |
//! | `inspect` | what do users see of a job? |
//! | `wall_clock` | what time of day is it? |
//! | `wall_deadlines` | which jobs wait for a wall-clock time? |
//! | `wall_clock_check` | is a job due by the wall clock, which may have been set? |
//! | `job` | what is a job, whatever its closure and its result, and what is one run of it? |
//! | `job_cell` | what holds a job's closure and its result? |
//! | `typed_job` | what does a handle wait for? |
//! | `table_ref` | what leads from a job to the table? |
//! | `run` | how does a run go? In one task, which short runs share |
//! | `context`, `outcome` | what is a run handed, and what may it give? |
//! | `work` | which kinds of closures are there? |
//!
//! A waiting job is an entry of a [`Wheel`](waterwheel::wheel::Wheel), and no task. The entry lives as long as the job: while the job runs, is
//! queued behind a limit or is paused, its entry is disarmed. So the key names the job for life, and one lock decides each race.
//!
//! A job that is admitted has its permits, and its run is begun by a task later. Whether it begins or is withdrawn, by a cancel or a shutdown, the lock of
//! its own cell decides (`Holder::begin_run`, `Job::withdraw`), which may be taken within the table's. So a run takes the table's lock once, as it ends.
//!
//! Closures, results, wakers and the event hook are foreign code: they are called and dropped with no lock held.

mod admission;
#[cfg(feature = "cron")]
mod clock_set_back;
mod completion;
pub(crate) mod concurrency_limit;
mod context;
pub(crate) mod driver;
mod due;
mod ending;
pub(crate) mod entry;
mod fixed_rate;
mod inspect;
mod intake;
pub(crate) mod job;
pub(crate) mod job_cell;
mod moves;
#[cfg(feature = "cron")]
mod occurrences;
mod outcome;
pub(crate) mod plan;
mod run;
mod run_queue;
pub(crate) mod table;
pub(crate) mod table_ref;
pub(crate) mod typed_job;
pub(crate) mod wall_clock;
mod wall_clock_check;
mod wall_deadlines;
pub(crate) mod work;

pub use context::Context;
#[cfg(feature = "cron")]
pub(crate) use occurrences::first as first_occurrence;
pub use outcome::Outcome;
pub(crate) use outcome::{Plain, ToPlain};
