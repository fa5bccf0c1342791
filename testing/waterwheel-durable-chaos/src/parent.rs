//! Starts the children, reads their lines, and kills them.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::check::{Checker, Flight};
use crate::copies::Copies;
use crate::gauge::Gauge;
use crate::place;
use crate::protocol::{ChildOptions, Line};
use crate::report::in_words;
use crate::schedule::{Progress, Step};

/// The number of timers of earlier rounds that a child learns of.
const KNOWN: usize = 300;
/// How long a child must be silent to have nothing more to say, even on a busy machine.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a child must be silent once its timers are delivered.
const QUIET: Duration = Duration::from_millis(700);
/// The number of broken promises after which a child does not finish its steps.
const ENOUGH_TO_END: usize = 50;
/// How long to wait for a commit.
const COMMIT_WAIT: Duration = Duration::from_secs(5);
/// How long after it is stopped a child has written its last line, and it was read.
const STILL: Duration = Duration::from_millis(10);
/// The number of lines that are read before the current step is looked at.
const AT_ONCE: usize = 1_000;
/// How long a step may take without evidence of its end before it has failed, even on a busy machine.
const LONGEST: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) checker: Checker,
    log: Log,
    /// The number of lines that a kill has cut off.
    pub(crate) torn: usize,
    pub(crate) gauge: Option<Gauge>,
    pub(crate) copies: Option<Copies>,
    /// The progress in the current round.
    progress: Progress,
}

/// The result of a round.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) flight: Flight,
    pub(crate) lived: Duration,
    /// The progress in each step that had to observe something.
    pub(crate) seen: Vec<(&'static str, Progress)>,
    /// The maximum size of the foreign file, in bytes.
    pub(crate) filled: u64,
}

impl Parent {
    pub(crate) fn new(log: &Path) -> Result<Parent, String> {
        Ok(Parent {
            checker: Checker::default(),
            log: Log::create(log).map_err(in_words)?,
            torn: 0,
            gauge: None,
            copies: None,
            progress: Progress::default(),
        })
    }

    /// Runs one child from its start to its end, with these steps. The foreign file that takes up space is this one, or in the child's memory.
    pub(crate) fn play(
        &mut self,
        options: &ChildOptions,
        steps: Vec<Step>,
        foreign: Option<PathBuf>,
    ) -> Result<Played, String> {
        let number = options.round;
        self.note(Line::Round { number })?;
        self.progress = Progress::default();
        let start = Instant::now();
        let mut child = start_child(options).map_err(in_words)?;
        let mut round = Round {
            input: child.stdin.take(),
            steps: steps.into(),
            foreign,
            before: Progress::default(),
            since: start,
            seen: Vec::new(),
            filled: 0,
            last_line: start,
            is_killed: false,
            is_hung: false,
            stopped_at: None,
            frozen_at: None,
            child,
        };
        let known = self.checker.known(KNOWN);
        round.send(&serde_json::to_string(&known).map_err(in_words)?);
        let lines = read_lines(&mut round.child);
        loop {
            match lines.recv_timeout(Duration::from_millis(20)) {
                Ok(line) => {
                    round.last_line = Instant::now();
                    for line in [line].into_iter().chain(lines.try_iter().take(AT_ONCE)) {
                        self.read(&line)?;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while !round.is_over() && self.step(&mut round)? {}
            round.ends_in_time();
            match self.copied(false) {
                Ok(Some(line)) => round.send(&line.to_string()),
                Ok(None) => {}
                Err(text) => self.fails(&mut round, text)?,
            }
            if let Some(gauge) = &mut self.gauge {
                gauge.turn(round.child.id(), &mut self.checker);
            }
        }
        let status = round.child.wait().map_err(in_words)?;
        let flight = self.checker.flight();
        match self.copied(true) {
            Ok(line) => line.map_or(Ok(()), |line| self.note(line))?,
            Err(text) => self.note(Line::Wrong { text })?,
        }
        self.end(&round, status)?;
        Ok(Played {
            flight,
            lived: start.elapsed(),
            seen: round.seen,
            filled: round.filled,
        })
    }

    fn read(&mut self, line: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(line);
        match (text.strip_suffix('\n'), text.parse::<Line>()) {
            (None, _) => self.torn += 1,
            (_, Ok(line)) => self.note(line)?,
            (Some(text), Err(_)) => self.checker.unreadable(text),
        }
        Ok(())
    }

    /// Plays the current step. Returns whether it is done, so that the next one may follow at once.
    fn step(&mut self, round: &mut Round) -> Result<bool, String> {
        if self.checker.broken().len() > ENOUGH_TO_END && round.is_followed() {
            round.kill();
        }
        let Some(step) = round.steps.front().copied() else {
            return Ok(false);
        };
        let (waited, silent) = (round.since.elapsed(), round.last_line.elapsed());
        let is_done = match step {
            Step::Until(name, min) => {
                let now = self.progress.since(&round.before);
                let is_seen = now.has(&min);
                if is_seen {
                    round.seen.push((name, now));
                } else if waited > LONGEST {
                    self.fails(round, format!("{name}: {now:?} was seen, and not {min:?}"))?;
                }
                is_seen
            }
            Step::Pass(time) => waited >= time,
            Step::Commit => waited >= COMMIT_WAIT || round.is_in_commit(&self.checker),
            Step::Delivered if silent < QUIET => false,
            Step::Delivered => match self.checker.owed() {
                0 => true,
                // Timers that are lost are never delivered.
                owed if silent > SILENCE => {
                    let text = format!("{owed} timers that were due were not delivered");
                    self.note(Line::Wrong { text })?;
                    true
                }
                _ => false,
            },
            Step::Fill | Step::Free => {
                let is_full = matches!(step, Step::Fill);
                let changed = round.foreign.as_ref().map(|it| place::change(it, is_full));
                match changed {
                    Some(Ok(length)) => round.filled = round.filled.max(length),
                    Some(Err(error)) => self.fails(round, format!("the foreign file: {error}"))?,
                    None => round.send(&Line::Disk { is_full }.to_string()),
                }
                true
            }
            Step::Copy => {
                // The copy contains everything that was read up to here.
                if let Some(copies) = &mut self.copies {
                    let line = copies.begin(&self.progress);
                    self.note(line)?;
                }
                true
            }
            Step::Kill => {
                round.kill();
                true
            }
            Step::Stop => {
                // The end of its input is the child's request to stop.
                round.stopped_at = Some(Instant::now());
                round.input = None;
                true
            }
        };
        if is_done {
            round.steps.pop_front();
            round.before = self.progress;
            round.since = Instant::now();
        }
        Ok(is_done)
    }

    fn copied(&mut self, is_over: bool) -> Result<Option<Line>, String> {
        let copies = self.copies.as_mut();
        copies.map_or(Ok(None), |copies| copies.copied(is_over))
    }

    fn fails(&mut self, round: &mut Round, text: String) -> Result<(), String> {
        round.kill();
        self.note(Line::Wrong { text })
    }

    pub(crate) fn note(&mut self, line: Line) -> Result<(), String> {
        self.progress.note(&line);
        if let Some(copies) = &mut self.copies {
            copies.note(&line, &self.progress);
        }
        if let Some(gauge) = &mut self.gauge {
            gauge.note(&line);
        }
        self.log.write(&line).map_err(in_words)?;
        self.checker.feed(line);
        Ok(())
    }

    fn end(&mut self, round: &Round, status: ExitStatus) -> Result<(), String> {
        let is_killed = round.is_killed && !round.is_hung;
        let is_clean = !round.is_killed && round.stopped_at.is_some() && status.success();
        if !is_killed && !is_clean {
            let (is_hung, steps) = (round.is_hung, &round.steps);
            let text = format!("the child has ended: {status}, hung: {is_hung}, before {steps:?}");
            self.note(Line::Wrong { text })?;
        }
        self.note(Line::Over { is_clean })?;
        self.log.file.flush().map_err(in_words)
    }
}

struct Round {
    child: Child,
    input: Option<ChildStdin>,
    steps: VecDeque<Step>,
    foreign: Option<PathBuf>,
    /// The progress before the current step began.
    before: Progress,
    since: Instant,
    seen: Vec<(&'static str, Progress)>,
    filled: u64,
    last_line: Instant,
    is_killed: bool,
    /// Whether it was killed because it did not end.
    is_hung: bool,
    stopped_at: Option<Instant>,
    /// When a signal stopped the child, to see whether its store is busy.
    frozen_at: Option<Instant>,
}

impl Round {
    fn is_over(&self) -> bool {
        self.is_killed || self.stopped_at.is_some()
    }

    /// Whether a remaining step needs an observation that a service with broken promises may never make.
    fn is_followed(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|step| matches!(step, Step::Until(..)))
    }

    /// Kills a child that should shut down, but hangs.
    fn ends_in_time(&mut self) {
        if self.stopped_at.is_some_and(|at| at.elapsed() > 4 * SILENCE) && !self.is_killed {
            self.is_hung = true;
            self.kill();
        }
    }

    /// Whether the store is busy with a commit, and stays so because the child is stopped. On a busy machine, the line alone comes too late. So the child is stopped
    /// when a commit has begun. If the commit has returned by then, the child goes on.
    fn is_in_commit(&mut self, checker: &Checker) -> bool {
        match self.frozen_at {
            None if checker.is_in_commit() => {
                self.signal(Signal::STOP);
                self.frozen_at = Some(Instant::now());
            }
            Some(since) if since.elapsed().min(self.last_line.elapsed()) > STILL => {
                if checker.is_in_commit() {
                    return true;
                }
                self.frozen_at = None;
                self.signal(Signal::CONT);
            }
            _ => {}
        }
        false
    }

    /// Sends a signal, unless the child has ended by itself: its status tells so.
    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    fn kill(&mut self) {
        self.is_killed = true;
        // The child may have ended by itself: its status tells so.
        let _ = self.child.kill();
    }

    /// Sends a line. A child that has ended by itself reads nothing: its status tells so.
    fn send(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }
}

fn start_child(options: &ChildOptions) -> io::Result<Child> {
    Command::new(std::env::current_exe()?)
        .arg("child")
        .arg(serde_json::to_string(options)?)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// Reads the child's lines in a thread until its end of the pipe is closed. All lines from before a kill are there.
fn read_lines(child: &mut Child) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let mut output = output.map(BufReader::new);
        let mut line = Vec::new();
        while let Some(output) = &mut output
            && let Ok(1..) = output.read_until(b'\n', &mut line)
            && sender.send(std::mem::take(&mut line)).is_ok()
        {}
    });
    receiver
}

/// The size in bytes at which the log is renamed, replacing the previous one, and a new one begins. Only `soak` reaches it.
const LARGEST_LOG: usize = 1 << 29;

/// Where the lines are kept: only the last ones, if there are many.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: usize,
}

impl Log {
    fn create(path: &Path) -> io::Result<Log> {
        Ok(Log {
            path: path.to_owned(),
            file: BufWriter::new(File::create(path)?),
            bytes: 0,
        })
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        if self.bytes > LARGEST_LOG {
            self.file.flush()?;
            fs::rename(&self.path, self.path.with_extension("before"))?;
            *self = Log::create(&self.path)?;
        }
        let text = format!("{line}\n");
        self.bytes += text.len();
        self.file.write_all(text.as_bytes())
    }
}
