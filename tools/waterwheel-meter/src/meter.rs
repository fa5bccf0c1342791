use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::{Duration, Instant};

use waterwheel::Timer;

use crate::asked::Asked;
use crate::history::History;
use crate::job::JobList;
use crate::plain;
use crate::reading::Reading;
use crate::screen;

/// The interval at which the screen is drawn.
pub(crate) const FRAME: Duration = Duration::from_millis(250);

/// Displays a [`Timer`] while it runs.
///
/// Takes a [`Timer::snapshot`] four times a second, which costs about 4 % of a processor with a million timers.
///
/// ```no_run
/// use waterwheel::Timer;
/// use waterwheel_meter::{Job, JobList, Meter};
///
/// # fn show(timer: &Timer) -> std::io::Result<()> {
/// // On a thread of its own: it blocks until the user presses `q`.
/// Meter::new(timer)
///     .jobs(|most| JobList {
///         total: 1,
///         shown: vec![Job { name: "report".to_owned(), ..Job::default() }],
///     })
///     .run()
/// # }
/// ```
pub struct Meter {
    timer: Timer,
    started: Instant,
    history: History,
    jobs: Option<Asked>,
    quit: Box<dyn FnMut() -> bool + Send>,
}

impl Meter {
    /// A meter for this timer.
    #[must_use]
    pub fn new(timer: &Timer) -> Meter {
        let mut meter = Meter {
            timer: timer.clone(),
            started: Instant::now(),
            history: History::default(),
            jobs: None,
            quit: Box::new(|| false),
        };
        meter.read();
        meter
    }

    /// Shows jobs as well. `jobs` is called with the number of available rows; it may return more or fewer. It is called for each frame, or less often, so
    /// that it takes at most a hundredth of the time; and when there are more rows than before. [`JobList::of`] returns those of a scheduler.
    #[must_use]
    pub fn jobs(mut self, jobs: impl FnMut(usize) -> JobList + Send + 'static) -> Meter {
        self.jobs = Some(Asked::new(Box::new(jobs)));
        self
    }

    /// Also quits when `quit` returns true. It is called for each frame: four times a second.
    ///
    /// The program handles signals itself, and one that ends the process at once leaves the terminal raw. So a program should listen for
    /// `SIGTERM`, `SIGINT` and `SIGHUP`, for example by `tokio::signal`, and return here whether one has come.
    #[must_use]
    pub fn quit_if(mut self, quit: impl FnMut() -> bool + Send + 'static) -> Meter {
        self.quit = Box::new(quit);
        self
    }

    /// Draws the timer until the user presses `q`, Escape or Ctrl-C, or [`quit_if`](Meter::quit_if) says so, and restores the terminal, even if
    /// this thread panics. If stdout is not a terminal, does the same as [`print_once`](Meter::print_once).
    ///
    /// This blocks the thread: within a runtime, call it on a separate thread.
    ///
    /// # Errors
    ///
    /// If the terminal or stdout fails.
    pub fn run(mut self) -> io::Result<()> {
        if !io::stdout().is_terminal() {
            return self.print_once();
        }
        screen::run(&mut self)
    }

    /// Prints a summary of a second as plain text. This blocks for that second.
    ///
    /// # Errors
    ///
    /// If stdout fails. A closed pipe is no error.
    pub fn print_once(mut self) -> io::Result<()> {
        // A second reading is needed for rates.
        thread::sleep(Duration::from_secs(1));
        let reading = self.read();
        let jobs = self.list(plain::JOBS);
        let text = plain::text(&reading, &self.history, jobs.as_ref());
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => done,
        }
    }

    pub(crate) fn read(&mut self) -> Reading {
        let reading = Reading::of(&self.timer, self.started.elapsed());
        self.history.add(&reading);
        reading
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn quits(&mut self) -> bool {
        (self.quit)()
    }

    pub(crate) fn list(&mut self, most: usize) -> Option<JobList> {
        let (jobs, started) = (self.jobs.as_mut()?, self.started);
        Some(jobs.list(most, || started.elapsed()))
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("timer", &self.timer)
            .field("started", &self.started)
            .finish_non_exhaustive()
    }
}
