//! Ends a process, and begins the next one.

use waterwheel_durable_core::store::{DeadLetters, Scope, Store};

use super::{DAY, HANDLERS, SECOND, TICK, World};

impl World {
    /// Shuts the service down, as far as possible, and starts it again.
    pub(super) fn stop(&mut self) -> Result<(), String> {
        self.follow()?;
        if self.traces {
            eprintln!("the service shuts down");
        }
        self.engine.handle_stop();
        self.is_stopping = true;
        // Some deliveries may not end in time. Then they are given up, or the process ends without that.
        let is_patient = self.rng.bool();
        let gives_up = !is_patient && self.rng.bool();
        if gives_up {
            self.engine.handle_abandon();
        }
        for _ in 0..50_000 {
            self.follow()?;
            let is_written = self.engine.is_written();
            // No request waits to be repeated.
            let is_given_up = gives_up && is_written && self.engine.poll_timeout().is_none();
            let is_idle = self.engine.is_idle();
            let is_cut = is_written && !is_patient && !gives_up;
            if !self.is_stopping {
                // The store has failed meanwhile.
                return Ok(());
            } else if is_idle || is_given_up {
                self.model.stopped(is_idle)?;
                self.namespaces.is_answered()?;
                self.calendars.is_answered()?;
                if !is_idle {
                    self.calendars.crashed();
                }
                self.starts.clear();
                self.accused.clear();
                return self.start_again();
            } else if is_cut {
                self.model.crashed(false);
                self.calendars.crashed();
                self.namespaces.crashed();
                return self.start_again();
            }
            match self.rng.u32(0..4) {
                0 if !self.with_handlers.is_empty() => self.end_delivery()?,
                1 if self.disk.is_in_flight() => self.work(self.has_faults, false),
                2 if self.disk.has_replied() => self.reply()?,
                3 if self.rng.u32(0..8) == 0 => self.cancel(),
                _ if self.disk.is_in_flight() || self.disk.has_replied() => {}
                _ => {
                    let next = self.engine.poll_timeout().unwrap_or_default();
                    self.pass(next.saturating_sub(self.now.boot_micros));
                }
            }
        }
        Err(format!("it does not come to rest: {:?}", self.engine))
    }

    /// The machine stops, and starts again after a while.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        // Answers that were given before the crash count.
        self.follow()?;
        if self.traces {
            eprintln!("the machine stops");
        }
        self.disk.crash(&mut self.rng);
        self.model.crashed(self.is_stopping);
        self.calendars.crashed();
        self.namespaces.crashed();
        self.start_again()
    }

    /// A new process begins.
    pub(super) fn start_again(&mut self) -> Result<(), String> {
        self.disk.restart();
        self.with_handlers.clear();
        self.on_their_way.clear();
        self.commands.ends();
        (self.is_stopping, self.writes) = (false, None);
        let off = match self.rng.u32(0..3) {
            0 => self.rng.i64(0..SECOND),
            1 => self.rng.i64(0..DAY),
            _ => self.rng.i64(0..40 * DAY),
        };
        self.now.boot_micros = self.rng.u64(0..60_000_000);
        self.now.wall_micros += off;
        self.calendars.begins();
        self.calendars.shows(self.now.wall_micros);
        self.change_zone();
        self.last_commit = 0;
        self.engine = self
            .disk
            .begin(&self.config, self.now, self.ahead, &HANDLERS);
        (self.concurrency, self.may_wait_until) = ([0; HANDLERS.len()], 0);
        self.inserts = None;
        self.accused.extend(self.starts.drain());
        self.starting.clear();
        self.shares.clear();
        self.process_begins()?;
        self.deploy();
        if self.is_ending {
            self.open_all();
        }
        Ok(())
    }

    /// Notifies the oracle of a process that has just begun.
    pub(super) fn process_begins(&mut self) -> Result<(), String> {
        self.jumps_made = 0;
        self.ahead_of_boot = self.now.wall_micros - self.now.boot_micros.cast_signed();
        let settings = self.disk.store().settings().unwrap_or_default();
        self.namespaces.begins(&settings, self.now.boot_micros)
    }

    /// Lets the store handle and answer all pending requests without faults.
    pub(super) fn store_rests(&mut self) -> Result<(), String> {
        for _ in 0..1_000 {
            if self.disk.has_replied() {
                self.reply()?;
            } else if self.disk.is_in_flight() {
                self.work(false, false);
            } else {
                break;
            }
            self.follow()?;
        }
        Ok(())
    }

    /// Plays the final phase, in which everything that is left comes due.
    pub(super) fn all_comes_due(&mut self) -> Result<(), String> {
        (self.is_ending, self.has_faults) = (true, false);
        self.disk.set_full(false);
        self.deploy();
        self.open_all();
        self.follow()?;
        let mut crashes = if self.crashes { 8 } else { 0 };
        for _ in 0..20_000 {
            let is_busy = self.disk.is_in_flight() || self.disk.has_replied();
            if self.disk.has_replied() {
                self.reply()?;
            } else if self.disk.is_in_flight() {
                // Most cascades happen now.
                let stops = crashes > 0 && self.rng.u32(0..8) == 0;
                self.work(false, stops);
                if stops && self.disk.is_unsynced() {
                    crashes -= 1;
                    self.crash()?;
                }
            } else if !self.with_handlers.is_empty() {
                self.end_delivery()?;
            } else {
                match self.engine.poll_timeout() {
                    // A timer that is overdue when it is loaded fires at the next tick.
                    Some(next)
                        if next > self.now.boot_micros + TICK
                            && self.now.boot_micros > self.may_wait_until
                            && self.calendars.is_answered().is_ok()
                            && self.engine.calendars().next().is_some() =>
                    {
                        self.end_calendars()?;
                    }
                    Some(next) => self.pass(next.saturating_sub(self.now.boot_micros)),
                    None if !is_busy => return self.is_done(),
                    None => {}
                }
            }
            self.follow()?;
        }
        let left = self.disk.store().len();
        Err(format!(
            "it does not come to an end: {left} are left, {:?}",
            self.engine
        ))
    }

    pub(super) fn is_done(&mut self) -> Result<(), String> {
        let dead = DeadLetters::all(self.disk.store(), Scope::All);
        let dead = dead.unwrap_or_default().into_iter();
        let (occurrences, dead): (Vec<_>, Vec<_>) =
            dead.partition(|it| it.row.id.occurrence().is_some());
        self.model.is_done(&dead)?;
        self.calendars.is_done(&occurrences)?;
        let stored = self.disk.store().len();
        let known = self.engine.stats().in_memory + self.engine.stats().in_wheel;
        let (held, bytes) = (self.engine.stats().held, self.engine.stats().held_bytes);
        let is_idle = self.engine.is_idle() && self.engine.is_written();
        match (stored, known, held, bytes, is_idle) {
            (0, 0, 0, 0, true) => Ok(()),
            _ => Err(format!(
                "{stored} are stored, {known} known, {held} and {bytes} bytes counted at the end"
            )),
        }
    }
}
