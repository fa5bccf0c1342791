//! What was promised, and was it kept?

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use waterwheel_durable::engine::{Answer, NewTimer, Token};
use waterwheel_store::{Dead, Due, Handle, Id, Row};

/// What is known of the timers from outside: from answers, and from deliveries.
#[derive(Debug, Default)]
pub struct Model {
    timers: HashMap<Id, Timer>,
    asked: HashMap<Token, Asked>,
    /// All inserts there were, by their tokens: a payload begins with the token of its insert.
    inserts: HashMap<Token, Insert>,
    /// Requests whose handle is wrong. They may find the timer in spite of it.
    forged: HashSet<Token>,
    tokens: Token,
}

#[derive(Debug)]
struct Insert {
    timer: NewTimer,
    /// The timer that it has made.
    id: Option<Id>,
    /// The answer was that nothing was done.
    is_undone: bool,
}

#[derive(Debug)]
struct Timer {
    handle: Handle,
    key: Option<Arc<[u8]>>,
    /// When it may be due: more than one if the answer to a reschedule is not known.
    dues: Vec<Due>,
    /// It is due when it was redriven, which no answer says.
    was_redriven: bool,
    /// Its insert was answered.
    is_durable: bool,
    is_with_handler: bool,
    /// It came to its end in this process, or in one before.
    has_ended: Option<Process>,
    /// A cancel was answered with "done".
    is_cancelled: bool,
    /// A cancel was not answered.
    may_be_cancelled: bool,
    /// It was given up when it came to its end last.
    was_given_up: bool,
    /// How often it has failed,
    failures: u32,
    /// and at least, as far as that was written.
    least_failures: u32,
    /// How often it had failed before its last delivery.
    written_failures: u32,
    /// It is not tried again before.
    not_before: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    This,
    Earlier,
}

#[derive(Debug)]
enum Asked {
    Insert,
    Cancel(Id),
    Reschedule(Id, Due),
    Redrive(Id),
}

impl Timer {
    fn is_over(&self) -> bool {
        self.has_ended.is_some() || self.is_cancelled || self.may_be_cancelled
    }

    fn is_open(&self) -> bool {
        self.is_durable && !self.is_with_handler && !self.is_over()
    }

    /// Whether it is due as a row says. That is not known if it was redriven, or has failed and the process has ended since.
    fn may_be_due(&self, row: &Row) -> bool {
        let is_retry = row.failures > 0
            && self
                .not_before
                .is_none_or(|at| at == row.due.as_millis() * 1_000);
        !self.is_durable || self.was_redriven || is_retry || self.dues.contains(&row.due)
    }

    /// Since when it is certainly due, in microseconds. `None` if that is not known: it was redriven, or it has failed and the process has ended since.
    fn certain_due(&self) -> Option<i64> {
        if self.was_redriven {
            return None;
        }
        match self.failures {
            0 => self.dues.iter().max().map(|due| due.as_millis() * 1_000),
            _ => self.not_before,
        }
    }
}

/// A promise that was not kept, in words.
pub type Kept = Result<(), String>;

impl Model {
    /// Notes an insert, names it, and writes its name before the payload.
    pub fn inserts(&mut self, timer: &mut NewTimer) -> Token {
        let token = self.note(Asked::Insert);
        timer.payload = [&token.to_le_bytes()[..], &timer.payload].concat().into();
        let insert = Insert {
            timer: timer.clone(),
            id: None,
            is_undone: false,
        };
        self.inserts.insert(token, insert);
        token
    }

    /// Notes a cancel, and names it.
    pub fn cancels(&mut self, id: Id) -> Token {
        self.note(Asked::Cancel(id))
    }

    /// Notes a reschedule, and names it.
    pub fn reschedules(&mut self, id: Id, due: Due) -> Token {
        if let Some(timer) = self.timers.get_mut(&id) {
            // From now on it may be due then.
            timer.dues.push(due);
        }
        self.note(Asked::Reschedule(id, due))
    }

    /// Whether a redrive of this timer waits for its answer.
    #[must_use]
    pub fn is_redriven(&self, id: Id) -> bool {
        let mut asked = self.asked.values();
        asked.any(|asked| matches!(asked, Asked::Redrive(other) if *other == id))
    }

    /// Notes a redrive, and names it.
    pub fn redrives(&mut self, id: Id) -> Token {
        if let Some(timer) = self.timers.get_mut(&id) {
            // It may be delivered again before the answer.
            timer.has_ended = timer.has_ended.map(|_| Process::Earlier);
            (timer.failures, timer.least_failures, timer.written_failures) = (0, 0, 0);
            timer.not_before = None;
            timer.was_redriven = true;
        }
        self.note(Asked::Redrive(id))
    }

    /// The handle of this request is wrong.
    pub fn forges(&mut self, token: Token) {
        self.forged.insert(token);
    }

    fn note(&mut self, asked: Asked) -> Token {
        self.tokens += 1;
        self.asked.insert(self.tokens, asked);
        self.tokens
    }

    /// A timer that was inserted, by chance.
    #[must_use]
    pub fn any(&self, rng: &mut fastrand::Rng) -> Option<Handle> {
        let mut ids: Vec<_> = self.timers.keys().copied().collect();
        ids.sort_unstable();
        let id = rng.choice(ids)?;
        Some(self.timers[&id].handle.clone())
    }

    /// One of the timers that are to be delivered next, by chance: most of the engine's work is on them.
    #[must_use]
    pub fn any_near(&self, rng: &mut fastrand::Rng) -> Option<Handle> {
        let near = self.timers.values().filter(|it| it.is_open());
        let mut near: Vec<_> = near.map(|it| (it.dues.last(), &it.handle)).collect();
        near.sort_unstable_by_key(|(due, handle)| (*due, handle.id));
        near.truncate(4);
        rng.choice(near).map(|(_, handle)| handle.clone())
    }

    /// Checks an answer.
    ///
    /// # Errors
    ///
    /// What it says is not so.
    pub fn answered(&mut self, token: Token, answer: Answer) -> Kept {
        let Some(asked) = self.asked.remove(&token) else {
            return Err(format!(
                "request {token} was answered twice, with {answer:?}"
            ));
        };
        match (asked, answer) {
            (_, Answer::NotFound) if self.forged.contains(&token) => Ok(()),
            (Asked::Insert, Answer::Full) => {
                self.is_undone(token);
                Ok(())
            }
            (_, Answer::Refused(_) | Answer::Failed(_) | Answer::ShuttingDown) => {
                self.is_undone(token);
                Ok(())
            }
            (asked, Answer::Unknown(_)) => {
                self.unknown(asked);
                Ok(())
            }
            (Asked::Insert, Answer::Created(handle)) => self.is_created(token, &handle),
            (Asked::Insert, Answer::Existing(handle)) => {
                self.is_undone(token);
                self.exists(token, &handle)
            }
            (Asked::Cancel(id), Answer::Done) => {
                let timer = self.known(id)?;
                timer.is_cancelled = true;
                match timer.is_with_handler || timer.has_ended == Some(Process::This) {
                    true => Err(format!(
                        "a timer that was delivered is cancelled: {timer:?}"
                    )),
                    false => Ok(()),
                }
            }
            (Asked::Reschedule(id, due), Answer::Done) => {
                let others = self.asked.values().filter_map(|asked| match asked {
                    Asked::Reschedule(other, due) if *other == id => Some(*due),
                    _ => None,
                });
                let mut dues: Vec<_> = others.collect();
                dues.push(due);
                let timer = self.known(id)?;
                if timer.is_with_handler || timer.has_ended == Some(Process::This) {
                    return Err(format!("a timer that was delivered is moved: {timer:?}"));
                }
                timer.dues = dues;
                timer.not_before = None;
                Ok(())
            }
            (Asked::Redrive(id), Answer::Done) => {
                let timer = self.known(id)?;
                if timer.has_ended == Some(Process::Earlier) {
                    timer.has_ended = None;
                }
                Ok(())
            }
            (Asked::Redrive(_), Answer::NotFound) => Ok(()),
            (Asked::Cancel(id) | Asked::Reschedule(id, _), Answer::AlreadyFired) => {
                let timer = self.known(id)?;
                match timer.is_with_handler || timer.has_ended.is_some() {
                    true => Ok(()),
                    false => Err(format!(
                        "a timer that was not delivered had fired: {timer:?}"
                    )),
                }
            }
            (Asked::Cancel(id) | Asked::Reschedule(id, _), Answer::NotFound) => {
                let timer = self.known(id)?;
                let may_be_gone =
                    timer.has_ended.is_some() || timer.is_cancelled || timer.may_be_cancelled;
                match may_be_gone || !timer.is_durable {
                    true => Ok(()),
                    false => Err(format!("a timer is lost: {timer:?}")),
                }
            }
            (asked, answer) => Err(format!("{answer:?} is no answer to {asked:?}")),
        }
    }

    /// Checks a delivery.
    ///
    /// # Errors
    ///
    /// It is early, is one too many, or was cancelled.
    pub fn delivered(&mut self, row: &Row, wall_micros: i64) -> Kept {
        if row.due.as_millis() * 1_000 > wall_micros {
            return Err(format!("early, at {wall_micros} us: {row:?}"));
        }
        let token = self.is_as_inserted(row)?;
        let timer = self.timer(token, row.id, row.due)?;
        let wrong = if timer.is_cancelled {
            "it was cancelled"
        } else if timer.is_with_handler {
            "it is with its handler"
        } else if timer.has_ended == Some(Process::This) {
            "it has ended"
        } else if timer.not_before.is_some_and(|at| wall_micros < at) {
            "it is to be tried later"
        } else if row.failures > timer.failures {
            "it has not failed so often"
        } else if row.failures < timer.least_failures {
            "it has failed more often"
        } else if !timer.may_be_due(row) {
            "it was not due then"
        } else {
            timer.is_with_handler = true;
            (timer.failures, timer.written_failures) = (row.failures, row.failures);
            timer.least_failures = row.failures;
            timer.not_before = None;
            return Ok(());
        };
        Err(format!("{wrong}: {row:?} {timer:?}"))
    }

    /// A delivery has ended well, or the timer was given up.
    pub fn ended(&mut self, id: Id, was_given_up: bool) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.is_with_handler = false;
            timer.has_ended = Some(Process::This);
            timer.was_given_up = was_given_up;
        }
    }

    /// A delivery has failed. It may be tried again from then on.
    pub fn failed(&mut self, id: Id, not_before: i64) {
        if let Some(timer) = self.timers.get_mut(&id) {
            timer.is_with_handler = false;
            timer.failures += 1;
            timer.least_failures = timer.failures;
            timer.not_before = Some(not_before);
        }
    }

    /// The service has shut down. If it was idle, nothing is done a second time because of it.
    ///
    /// # Errors
    ///
    /// A request was not answered.
    pub fn stopped(&mut self, was_idle: bool) -> Kept {
        if !was_idle {
            self.crashed();
        }
        self.is_answered()
    }

    /// Checks that no timer of this handler waits that was certainly due by then.
    ///
    /// # Errors
    ///
    /// One waits.
    pub fn is_prompt(&self, handler: &str, wall_micros: i64) -> Kept {
        let timers = self.timers.values().filter(|it| it.is_open());
        let mut late = timers.filter(|it| {
            *it.handle.handler == *handler && it.certain_due().is_some_and(|at| at <= wall_micros)
        });
        // A request takes the timer out of memory until it is answered.
        let is_asked_for = |timer: &Timer| {
            let mut asked = self.asked.values();
            asked.any(|it| matches!(it, Asked::Cancel(id) | Asked::Reschedule(id, _) if *id == timer.handle.id))
        };
        match late.find(|timer| !is_asked_for(timer)) {
            None => Ok(()),
            Some(timer) => Err(format!("late, {wall_micros} us are past: {timer:?}")),
        }
    }

    fn is_answered(&self) -> Kept {
        match self.asked.iter().min_by_key(|(token, _)| **token) {
            None => Ok(()),
            Some((token, asked)) => Err(format!("request {token} was not answered: {asked:?}")),
        }
    }

    /// The process ends. What was not answered may have been done.
    pub fn crashed(&mut self) {
        for asked in std::mem::take(&mut self.asked).into_values() {
            self.unknown(asked);
        }
        for timer in self.timers.values_mut() {
            timer.is_with_handler = false;
            timer.not_before = None;
            timer.least_failures = timer.written_failures;
            // What had ended may not have been settled.
            timer.has_ended = timer.has_ended.map(|_| Process::Earlier);
        }
    }

    /// Checks that nothing is left to do.
    ///
    /// # Errors
    ///
    /// A timer was lost, a request was not answered, or the dead letters are not those that were given up.
    pub fn is_done(&mut self, dead: &[Dead]) -> Kept {
        self.is_answered()?;
        for Dead { row, .. } in dead {
            self.is_as_inserted(row)?;
            let timer = self.known(row.id)?;
            if !timer.was_given_up || timer.is_cancelled {
                return Err(format!("a dead letter that was not given up: {timer:?}"));
            }
        }
        let dead: HashSet<Id> = dead.iter().map(|dead| dead.row.id).collect();
        for timer in self.timers.values() {
            if timer.is_durable && !timer.is_over() {
                return Err(format!("never delivered: {timer:?}"));
            }
            let may_be_cancelled = timer.is_cancelled || timer.may_be_cancelled;
            let is_dead = timer.has_ended.is_some() && timer.was_given_up;
            if is_dead && !may_be_cancelled && !dead.contains(&timer.handle.id) {
                return Err(format!("given up, and no dead letter: {timer:?}"));
            }
        }
        Ok(())
    }

    fn unknown(&mut self, asked: Asked) {
        match asked {
            Asked::Cancel(id) => {
                if let Some(timer) = self.timers.get_mut(&id) {
                    timer.may_be_cancelled = true;
                }
            }
            // What is asked was noted as possible.
            Asked::Redrive(_) | Asked::Reschedule(..) | Asked::Insert => {}
        }
    }

    /// The timer of an insert, which has this id, and is due then if it was not known before.
    fn timer(&mut self, token: Token, id: Id, due: Due) -> Result<&mut Timer, String> {
        let Some(insert) = self.inserts.get_mut(&token) else {
            return Err(format!("no insert has made {id}"));
        };
        let made = *insert.id.get_or_insert(id);
        if made != id || insert.is_undone {
            return Err(format!("{insert:?} has made {id}"));
        }
        let NewTimer { handler, key, .. } = &insert.timer;
        Ok(self.timers.entry(id).or_insert_with(|| Timer {
            handle: Handle {
                id,
                due: insert.timer.due,
                handler: Arc::clone(handler),
            },
            key: key.clone(),
            dues: vec![due],
            was_redriven: false,
            is_durable: false,
            is_with_handler: false,
            has_ended: None,
            is_cancelled: false,
            may_be_cancelled: false,
            was_given_up: false,
            failures: 0,
            least_failures: 0,
            written_failures: 0,
            not_before: None,
        }))
    }

    /// Nothing came of this request.
    fn is_undone(&mut self, token: Token) {
        if let Some(insert) = self.inserts.get_mut(&token) {
            insert.is_undone = true;
        }
    }

    fn is_created(&mut self, token: Token, handle: &Handle) -> Kept {
        let insert = &self.inserts[&token].timer;
        let (due, key, handler) = (insert.due, insert.key.clone(), Arc::clone(&insert.handler));
        if handle.due != due || handle.handler != handler {
            return Err(format!("{handle:?} is not of {insert:?}"));
        }
        let mut others = self.timers.values().filter(|it| it.handle.id != handle.id);
        let other = others.find(|it| {
            it.key == key && it.handle.handler == handler && it.is_durable && !it.is_over()
        });
        if key.is_some()
            && let Some(other) = other.filter(|it| !it.was_redriven)
        {
            return Err(format!("{handle:?} has the key of {other:?}"));
        }
        self.timer(token, handle.id, due)?.is_durable = true;
        Ok(())
    }

    /// This timer is said to have the key of an insert.
    fn exists(&self, token: Token, handle: &Handle) -> Kept {
        let insert = &self.inserts[&token].timer;
        let has_key = match self.timers.get(&handle.id) {
            Some(timer) => {
                timer.key == insert.key && timer.handle == *handle && !timer.is_cancelled
            }
            // Made by an insert whose answer was lost.
            None => self.inserts.values().any(|it| {
                it.id.is_none()
                    && !it.is_undone
                    && (&it.timer.key, &it.timer.handler) == (&insert.key, &handle.handler)
                    && it.timer.due == handle.due
            }),
        };
        match has_key && insert.key.is_some() && handle.handler == insert.handler {
            true => Ok(()),
            false => Err(format!("{handle:?} is said to have the key of {insert:?}")),
        }
    }

    /// Checks that a row has what it was inserted with. Returns the token of the insert.
    fn is_as_inserted(&self, row: &Row) -> Result<Token, String> {
        let token = row.payload.first_chunk().copied().map(Token::from_le_bytes);
        let insert = token.and_then(|token| self.inserts.get(&token));
        let (Some(token), Some(Insert { timer, .. })) = (token, insert) else {
            return Err(format!("never inserted: {row:?}"));
        };
        let was_redriven = self.timers.get(&row.id).is_some_and(|it| it.was_redriven);
        let has_key = row.key == timer.key || was_redriven && row.key.is_none();
        match has_key && row.handler == timer.handler && row.payload == timer.payload {
            true => Ok(token),
            false => Err(format!("{row:?} was inserted as {timer:?}")),
        }
    }

    fn known(&mut self, id: Id) -> Result<&mut Timer, String> {
        self.timers
            .get_mut(&id)
            .ok_or_else(|| format!("{id} was never inserted"))
    }
}
