//! The program in a terminal: however it ends, it restores the terminal.

#![cfg(target_os = "linux")]

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Action, Winsize, tcflow, tcgetattr, tcsetwinsize};

/// Longer than any step takes on a busy machine.
const LIMIT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// The two ends of a terminal of 80 × 24: the user's end, and the program's.
fn terminal() -> (File, File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let path = ptsname(&user, Vec::new()).unwrap().into_bytes();
    let path = OsString::from_vec(path);
    let program = File::options().read(true).write(true).open(path).unwrap();
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&program, size).unwrap();
    (user.into(), program)
}

/// The settings that raw mode changes.
fn modes(terminal: &File) -> impl PartialEq + Debug + use<> {
    let modes = tcgetattr(terminal).unwrap();
    (
        modes.input_modes,
        modes.output_modes,
        modes.control_modes,
        modes.local_modes,
    )
}

/// A meter that runs in a terminal.
struct Running {
    child: Child,
    /// A descriptor that is readable when the program has ended.
    ended: OwnedFd,
    user: File,
    program: File,
    seen: String,
}

impl Running {
    fn start() -> Running {
        let (user, program) = terminal();
        let end = || OwnedFd::from(program.try_clone().unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_waterwheel-meter"))
            .args(["--timers", "100", "--orders", "100"])
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        Running {
            child,
            ended,
            user,
            program,
            seen: String::new(),
        }
    }

    /// Reads until the program has written this text.
    fn wait_for(&mut self, text: &str) {
        let mut bytes = [0; 4096];
        while !self.seen.contains(text) {
            let mut ready = [PollFd::new(&self.user, PollFlags::IN)];
            let count = poll(&mut ready, Some(&LIMIT)).unwrap();
            assert!(count > 0, "no {text:?} in {:?}", self.seen);
            let count = self.user.read(&mut bytes).unwrap();
            self.seen
                .push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    /// The exit code, once the program has ended.
    fn code(&mut self) -> Option<i32> {
        assert!(self.ends_within(&LIMIT), "it goes on");
        self.child.wait().unwrap().code()
    }

    fn ends_within(&self, limit: &Timespec) -> bool {
        let mut ended = [PollFd::new(&self.ended, PollFlags::IN)];
        poll(&mut ended, Some(limit)).unwrap() == 1
    }

    fn kill(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A failing test leaves no program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A meter that has drawn a frame.
fn drawn() -> Running {
    let mut meter = Running::start();
    meter.wait_for("\x1b[?1049h");
    meter.wait_for("q quits");
    meter
}

/// Ends a meter, and returns its exit code. Fails if it does not restore the terminal.
fn code_after(end: impl FnOnce(&mut Running)) -> Option<i32> {
    let mut meter = drawn();
    let (_user, fresh) = terminal();
    assert_ne!(modes(&meter.program), modes(&fresh), "it is not raw");
    end(&mut meter);
    // The previous screen, and the cursor. After that it writes nothing.
    meter.wait_for("\x1b[?1049l\x1b[?25h");
    let code = meter.code();
    assert_eq!(modes(&meter.program), modes(&fresh));
    code
}

#[test]
fn a_signal_ends_the_program_and_gives_the_terminal_back() {
    let signals = [(Signal::TERM, 15), (Signal::INT, 2), (Signal::HUP, 1)];
    for (signal, number) in signals {
        let code = code_after(|meter| meter.kill(signal));
        assert_eq!(code, Some(128 + number));
    }
}

// By Ctrl-S, or a stuck connection: the program's next write blocks.
#[test]
fn a_second_signal_ends_a_program_that_cannot_write() {
    for (second, numbers) in [(Signal::TERM, [15, 15]), (Signal::HUP, [15, 1])] {
        let mut meter = drawn();
        let (_user, fresh) = terminal();
        tcflow(&meter.program, Action::OOff).unwrap();
        meter.kill(Signal::TERM);
        meter.kill(second);
        // Two signals of one kind may be merged into one.
        let moment = Timespec {
            tv_sec: 0,
            tv_nsec: 100_000_000,
        };
        for _ in 0..10 * LIMIT.tv_sec {
            if second != Signal::TERM || meter.ends_within(&moment) {
                break;
            }
            meter.kill(second);
        }
        let code = meter.code();
        assert!(
            numbers.map(|number| Some(128 + number)).contains(&code),
            "{code:?}"
        );
        assert_eq!(modes(&meter.program), modes(&fresh));
    }
}

#[test]
fn a_key_ends_the_program_and_gives_the_terminal_back() {
    for key in ["q", "\x03"] {
        let code = code_after(|meter| meter.user.write_all(key.as_bytes()).unwrap());
        assert_eq!(code, Some(0));
    }
}

// As when a connection breaks. The program used to poll for keys forever, without a pause.
#[test]
fn the_program_ends_with_its_terminal() {
    let mut meter = drawn();
    let (elsewhere, program) = terminal();
    drop(std::mem::replace(&mut meter.user, elsewhere));
    drop(std::mem::replace(&mut meter.program, program));
    assert_eq!(meter.code(), Some(1));
}
