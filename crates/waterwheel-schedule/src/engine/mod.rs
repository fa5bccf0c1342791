//! The engine: it decides when a job starts, runs it, and decides what follows.
//!
//! ```text
//! submit ──► table ──► driver ──► admission ──► task ──► completion ─┐
//!             ▲ ▲                                                    │
//!             │ └────────────── the next run, by the plan ◄──────────┘
//!             └── control: pause, resume, trigger, reschedule, cancel, shutdown
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `table` | all jobs and the phase of the scheduler, under one lock; submission |
//! | `plan` | when a job runs next: recurrences, misfires, retries |
//! | `concurrency_limit` | permits, and the queue of the jobs that wait for one |
//! | `wall_clock` | the wall clock, and the jobs that wait for a time that it shows |
//! | `driver` | the task that starts what is due, by the wheel and by the wall clock |
//! | `admission` | which jobs that are due run now, and which are queued; the run queue |
//! | `task` | a job's closure and result, and the future of a run |
//! | `completion` | the step after a run |
//! | `control` | what users do to a job: inspect, pause, resume, trigger, reschedule, cancel; shutdown |
//! | `work` | the kinds of closures, and their return types |
//! | `context` | the argument of a closure |
//!
//! A waiting job is an entry of a [`Wheel`](waterwheel::wheel::Wheel), not a task. The entry lives as long as the job: while the job is
//! running, queued or paused, its entry is disarmed. So the key identifies the job for life, and the table's lock decides each race.
//!
//! An admitted job holds its permits, and a task begins its run later. Whether that run begins or is withdrawn, by a cancel or a shutdown,
//! is decided by the lock of the job's cell (`Holder::begin_run`, `Job::withdraw`), which may be taken while the table's is held. So a run
//! takes the table's lock only once, when it ends.
//!
//! Closures, results, wakers and the event hook are foreign code: they are called and dropped with no lock held.

mod admission;
mod completion;
pub(crate) mod concurrency_limit;
mod context;
mod control;
pub(crate) mod driver;
pub(crate) mod plan;
pub(crate) mod table;
pub(crate) mod task;
pub(crate) mod wall_clock;
pub(crate) mod work;

pub use context::Context;
pub use work::Outcome;
