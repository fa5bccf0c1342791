//! The terminal: taken over, drawn on until the user quits, and restored, whatever happens.

use std::io::{self, stdout};
use std::mem;
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::meter::{FRAME, Meter};
use crate::view;

type Stdout = Terminal<CrosstermBackend<io::Stdout>>;

pub(crate) fn run(meter: &mut Meter) -> io::Result<()> {
    let screen = Screen::take()?;
    let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
    let quit = draw_until_quit(meter, &screen, &mut terminal);
    if terminal.show_cursor().is_err() {
        // The terminal is gone. The drop would show the cursor again, and print that it cannot: a panic, if stderr is gone as well.
        mem::forget(terminal);
    }
    quit
}

fn draw_until_quit(meter: &mut Meter, screen: &Screen, terminal: &mut Stdout) -> io::Result<()> {
    while !meter.quits() {
        let next = Instant::now() + FRAME;
        if screen.spoiled.swap(false, Ordering::Relaxed) {
            terminal.clear()?;
        }
        let reading = meter.read();
        let jobs = meter.list(view::rows_of_jobs(terminal.size()?.height));
        terminal.draw(|frame| view::draw(frame, &reading, meter.history(), jobs.as_ref()))?;
        if quits_until(next)? {
            break;
        }
    }
    Ok(())
}

/// Waits for the next frame. Returns whether the user quits before that.
fn quits_until(next: Instant) -> io::Result<bool> {
    loop {
        let left = next.saturating_duration_since(Instant::now());
        if left == Duration::ZERO || !event::poll(left)? {
            return Ok(false);
        }
        match event::read()? {
            Event::Key(key) if quits(key) => return Ok(true),
            // The next frame is for the new size.
            Event::Resize(..) => return Ok(false),
            _ => (),
        }
    }
}

/// In raw mode, Ctrl-C is a key like any other.
fn quits(key: KeyEvent) -> bool {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && match key.code {
            KeyCode::Char('c') => is_control,
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
            _ => false,
        }
}

type Hook = dyn Fn(&PanicHookInfo<'_>) + Send + Sync;

/// The terminal in raw mode, with the alternate screen. The drop restores it.
///
/// While it exists, a panic on this thread restores the terminal before it prints its message. The message of a panic on another thread,
/// which may well be caught there, spoils the screen; the next frame is then drawn anew.
struct Screen {
    is_taken: Arc<AtomicBool>,
    spoiled: Arc<AtomicBool>,
    hook_before: Arc<Hook>,
}

impl Screen {
    fn take() -> io::Result<Screen> {
        let screen = Screen {
            is_taken: Arc::new(AtomicBool::new(true)),
            spoiled: Arc::new(AtomicBool::new(false)),
            hook_before: Arc::from(panic::take_hook()),
        };
        let (is_taken, spoiled) = (Arc::clone(&screen.is_taken), Arc::clone(&screen.spoiled));
        let (hook, here) = (Arc::clone(&screen.hook_before), thread::current().id());
        panic::set_hook(Box::new(move |info| {
            if cfg!(panic = "abort") || thread::current().id() == here {
                give_back(&is_taken);
            } else {
                spoiled.store(true, Ordering::Relaxed);
            }
            hook(info);
        }));
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back(&self.is_taken);
        // A thread that panics must not set the hook.
        if !thread::panicking() {
            let hook = Arc::clone(&self.hook_before);
            panic::set_hook(Box::new(move |info| hook(info)));
        }
    }
}

/// Restores the terminal, once. Errors are ignored: they mean that the terminal is gone.
fn give_back(is_taken: &AtomicBool) {
    if is_taken.swap(false, Ordering::Relaxed) {
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::quits;

    #[test]
    fn q_escape_and_control_c_quit() {
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        let control = |code| KeyEvent::new(code, KeyModifiers::CONTROL);
        assert!(quits(key(KeyCode::Char('q'))) && quits(key(KeyCode::Esc)));
        assert!(quits(control(KeyCode::Char('c'))));
        assert!(!quits(key(KeyCode::Char('c'))) && !quits(key(KeyCode::Enter)));
    }
}
