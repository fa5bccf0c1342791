//! Who starts the children, reads their lines, and kills them.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::check::{Checker, Flight};
use crate::child::ChildOptions;
use crate::copies::Copies;
use crate::gauge::Gauge;
use crate::log::Line;
use crate::log_file::Log;
use crate::script::{Next, Progress, Script};

/// How many timers of earlier rounds a child learns of.
const KNOWN: usize = 300;
/// A child that says nothing for so long has nothing more to say, even on a busy machine.
const SILENCE: Duration = Duration::from_secs(30);
/// A child whose timers are delivered says nothing for so long.
const QUIET: Duration = Duration::from_millis(700);
/// With so many broken promises, a script is not played to its end.
const ENOUGH_TO_END: usize = 50;
/// After the time of a kill, this long for a commit to be met.
const COMMIT_WAIT: Duration = Duration::from_secs(5);
/// After so long, a child that is stopped has said its last line, and it was read.
const STILL: Duration = Duration::from_millis(10);

/// When a round ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// The child is killed after so long; `in_commit`: as soon as it is busy with a commit then.
    Killed { after: Duration, in_commit: bool },
    /// All moves of the clock were played.
    ClockDone,
    /// All timers were delivered.
    Delivered,
    /// Its [script](Parent::script) says so.
    Scripted,
    /// It has lived for so long. It shuts down then.
    Lived(Duration),
}

#[derive(Debug)]
pub(crate) struct Parent {
    pub(crate) checker: Checker,
    log: Log,
    /// Lines that a kill has cut off.
    pub(crate) torn: usize,
    pub(crate) script: Option<Script>,
    pub(crate) gauge: Option<Gauge>,
    pub(crate) copies: Option<Copies>,
    /// What was seen in the present round.
    progress: Progress,
}

/// What came of a round.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) flight: Flight,
    pub(crate) lived: Duration,
}

impl Parent {
    pub(crate) fn new(log: &Path) -> Result<Parent, String> {
        Ok(Parent {
            checker: Checker::default(),
            log: Log::create(log).map_err(|error| error.to_string())?,
            torn: 0,
            script: None,
            gauge: None,
            copies: None,
            progress: Progress::default(),
        })
    }

    /// Runs one child from its start to its end.
    pub(crate) fn play(&mut self, options: &ChildOptions, until: Until) -> Result<Played, String> {
        self.note(Line::Round {
            number: options.round,
        })?;
        self.progress = Progress::default();
        let start = Instant::now();
        let mut child = start_child(options).map_err(|error| error.to_string())?;
        let mut input = child.stdin.take();
        // A child that ends at once reads nothing: its status says why.
        let _ = self.introduce(input.as_mut());
        let chunks = read_chunks(&mut child);
        let mut round = Round {
            child,
            input,
            until,
            start,
            last_line: start,
            is_killed: false,
            stopped_at: None,
            frozen_at: None,
            is_silent: false,
        };
        let mut rest = VecDeque::new();
        loop {
            match chunks.recv_timeout(Duration::from_millis(20)) {
                Ok(chunk) => {
                    rest.extend(chunk);
                    round.last_line = Instant::now();
                    self.read(&mut rest, &mut round)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            round.go_on(&self.checker);
            self.follow_script(&mut round)?;
            self.follow_copies(&mut round)?;
            if let Some(gauge) = &mut self.gauge {
                gauge.turn(round.child.id(), &mut self.checker);
            }
        }
        let status = round.child.wait().map_err(|error| error.to_string())?;
        let flight = self.checker.flight();
        self.end_copies()?;
        self.end(&round, status, !rest.is_empty())?;
        Ok(Played {
            flight,
            lived: start.elapsed(),
        })
    }

    /// Hands the child the handles of timers that are there.
    fn introduce(&self, input: Option<&mut ChildStdin>) -> std::io::Result<()> {
        let Some(input) = input else {
            return Ok(());
        };
        let (alive, dead) = self.checker.alive(KNOWN);
        let mut text = String::new();
        for handle in alive {
            text.push_str(&format!("alive {handle}\n"));
        }
        for id in dead {
            text.push_str(&format!("dead {id:x}\n"));
        }
        text.push('\n');
        input.write_all(text.as_bytes())
    }

    /// Reads the whole lines; the rest of one stays.
    fn read(&mut self, rest: &mut VecDeque<u8>, round: &mut Round) -> Result<(), String> {
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line[..end]);
            match text.parse::<Line>() {
                Ok(line) => {
                    if line == Line::ClockDone && matches!(round.until, Until::ClockDone) {
                        round.stop();
                    }
                    self.note(line)?;
                }
                Err(_) => self.checker.unreadable(&text),
            }
        }
        Ok(())
    }

    fn follow_script(&mut self, round: &mut Round) -> Result<(), String> {
        let is_over = round.is_killed || round.stopped_at.is_some();
        let Some(script) = self.script.as_mut().filter(|_| !is_over) else {
            return Ok(());
        };
        if self.checker.broken().len() > ENOUGH_TO_END {
            round.kill();
            return Ok(());
        }
        match script.go_on(&self.progress) {
            Next::Wait => {}
            Next::Command(command) => round.send(command),
            Next::Copy => self.begin_copy()?,
            Next::Kill => round.kill(),
            Next::Stop => round.stop(),
            Next::Failed(what) => {
                self.note(Line::Wrong(what))?;
                round.kill();
            }
        }
        Ok(())
    }

    /// What was read so far is in the copy.
    fn begin_copy(&mut self) -> Result<(), String> {
        let Some(line) = self.copies.as_mut().map(Copies::next) else {
            return Ok(());
        };
        self.note(line)?;
        if let Some(copies) = &mut self.copies {
            copies.begin(&self.progress);
        }
        Ok(())
    }

    fn follow_copies(&mut self, round: &mut Round) -> Result<(), String> {
        match self.copies.as_mut().map_or(Ok(None), Copies::command) {
            Ok(Some(command)) => round.send(&command),
            Ok(None) => {}
            Err(what) => {
                self.note(Line::Wrong(what))?;
                round.kill();
            }
        }
        Ok(())
    }

    /// The child has ended.
    fn end_copies(&mut self) -> Result<(), String> {
        match self.copies.as_mut().map_or(Ok(None), Copies::end) {
            Ok(Some(line)) => self.note(line),
            Ok(None) => Ok(()),
            Err(what) => self.note(Line::Wrong(what)),
        }
    }

    pub(crate) fn note(&mut self, line: Line) -> Result<(), String> {
        self.progress.note(&line);
        if let Some(copies) = &mut self.copies {
            copies.note(&line, &self.progress);
        }
        if let Some(gauge) = &mut self.gauge {
            gauge.note(&line);
        }
        self.log.write(&line).map_err(|error| error.to_string())?;
        self.checker.feed(line);
        Ok(())
    }

    fn end(&mut self, round: &Round, status: ExitStatus, is_torn: bool) -> Result<(), String> {
        self.torn += usize::from(is_torn);
        if round.is_silent {
            let owed = self.checker.owed();
            let text = format!("{owed} timers that were due were not delivered");
            self.note(Line::Wrong(text))?;
        }
        let line = match (round.is_killed, round.until) {
            (true, Until::Killed { .. } | Until::Scripted) => Line::Killed,
            (false, it) if status.success() && !matches!(it, Until::Killed { .. }) => Line::Stopped,
            (is_killed, until) => {
                let why = if is_killed { "hung" } else { "ended by itself" };
                self.note(Line::Wrong(format!("the child {why}: {status}, {until:?}")))?;
                Line::Killed
            }
        };
        self.note(line)?;
        self.log.flush().map_err(|error| error.to_string())
    }
}

struct Round {
    child: Child,
    input: Option<ChildStdin>,
    until: Until,
    start: Instant,
    last_line: Instant,
    is_killed: bool,
    stopped_at: Option<Instant>,
    /// When a signal has stopped it, to see whether its store is busy.
    frozen_at: Option<Instant>,
    /// It delivers nothing any more, and something was to be delivered.
    is_silent: bool,
}

impl Round {
    /// Ends the child when its time has come.
    fn go_on(&mut self, checker: &Checker) {
        if self.is_killed {
            return;
        }
        let silent = self.last_line.elapsed();
        match self.until {
            Until::Killed { after, in_commit } => {
                let lived = self.start.elapsed();
                if lived > after + COMMIT_WAIT || lived > after && !in_commit {
                    self.kill();
                } else if lived > after {
                    self.kill_in_commit(checker, silent);
                }
            }
            Until::ClockDone if silent > SILENCE => self.kill(),
            Until::ClockDone | Until::Scripted => {}
            Until::Lived(time) if self.stopped_at.is_none() && self.start.elapsed() > time => {
                self.stop();
            }
            Until::Lived(_) => {}
            Until::Delivered if self.stopped_at.is_some() || silent < QUIET => {}
            Until::Delivered if checker.owed() == 0 => self.stop(),
            // What is lost is never delivered.
            Until::Delivered if silent > SILENCE => {
                self.is_silent = true;
                self.stop();
            }
            Until::Delivered => {}
        }
        if self.stopped_at.is_some_and(|at| at.elapsed() > 4 * SILENCE) {
            self.kill();
        }
    }

    /// Kills the child while its store is busy with a commit. A line alone comes too late for that, on a machine with much to do. So the child is stopped when a
    /// commit has begun. If the commit has returned by then, the child goes on.
    fn kill_in_commit(&mut self, checker: &Checker, silent: Duration) {
        match self.frozen_at {
            None if checker.is_in_commit() => {
                self.signal(Signal::STOP);
                self.frozen_at = Some(Instant::now());
            }
            Some(since) if since.elapsed().min(silent) > STILL => match checker.is_in_commit() {
                true => self.kill(),
                false => {
                    self.frozen_at = None;
                    self.signal(Signal::CONT);
                }
            },
            _ => {}
        }
    }

    /// A child that has ended by itself gets none: its status says so.
    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    fn kill(&mut self) {
        self.is_killed = true;
        // It may have ended by itself: its status says so.
        let _ = self.child.kill();
    }

    /// A child that has ended by itself carries out no command: its status says so.
    fn send(&mut self, command: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{command}").and_then(|()| input.flush());
        }
    }

    /// The end of its input is the child's command to stop.
    fn stop(&mut self) {
        self.stopped_at = Some(Instant::now());
        self.input = None;
    }
}

fn start_child(options: &ChildOptions) -> std::io::Result<Child> {
    let program: PathBuf = std::env::current_exe()?;
    Command::new(program)
        .arg("child")
        .args(options.arguments())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

/// Reads what the child says, in a thread, until its end of the pipe is closed. What it had said before a kill is all there.
fn read_chunks(child: &mut Child) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    let output = child.stdout.take();
    std::thread::spawn(move || {
        let Some(mut output) = output else {
            return;
        };
        let mut chunk = vec![0; 65_536];
        while let Ok(length @ 1..) = output.read(&mut chunk) {
            if sender.send(chunk[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}
