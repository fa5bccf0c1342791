//! The timers of one handler: which of them are loaded, are due, and are with it.

use std::collections::VecDeque;
use std::sync::Arc;

use waterwheel_store::{Due, Most, Position, Row};

use super::asked::What;
use super::near::Held;
use super::next::Next;
use super::planted::{self, Planted};
use super::{Call, Config, Engine, Output};

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) handler: Arc<str>,
    pub(super) is_handled: bool,
    pub(super) concurrency: usize,
    pub(super) running: usize,
    /// Due, in order. Some may have left since.
    pub(super) ready: VecDeque<Held>,
    /// How many timers of it are in memory.
    pub(super) held: usize,
    /// All rows up to here are in memory, or are gone.
    cursor: Position,
    /// What lies before this second goes into memory as it is written: a load has been asked for all of it.
    bound: i64,
    /// The first second that has rows beyond the cursor.
    next: Next,
    /// The store was asked for it, or for rows.
    is_asked: bool,
    /// Meanwhile the cursor went back to this second.
    back: Option<i64>,
    /// Meanwhile a row was written to this second. The reply may not know of it.
    lowered: Option<i64>,
    is_reported: bool,
}

impl Lane {
    pub(super) fn new(handler: Arc<str>) -> Lane {
        Lane {
            handler,
            is_handled: false,
            concurrency: 1,
            running: 0,
            ready: VecDeque::new(),
            held: 0,
            cursor: Position::START,
            bound: i64::MIN,
            next: Next::Unknown,
            is_asked: false,
            back: None,
            lowered: None,
            is_reported: false,
        }
    }

    /// When rows are to be loaded next, if it is known.
    pub(super) fn loads_at(&self, config: &Config) -> Option<Due> {
        match self.next {
            Next::At(second) if !self.is_asked && self.has_room(config) => {
                // A handler that is missing is reported once its timers are due.
                let window = if self.is_handled { config.window } else { 0 };
                let is_done = !self.is_handled && self.is_reported;
                let at = second.saturating_sub(window).saturating_mul(1_000);
                (!is_done).then_some(Due::from_millis(at))
            }
            _ => None,
        }
    }

    /// Whether enough of the memory is free for a load to be worth it.
    fn has_room(&self, config: &Config) -> bool {
        self.held <= config.most_in_memory / 4 * 3
    }

    /// The cursor goes back: rows from this second on are to be loaded, again.
    fn go_back(&mut self, second: i64) {
        if self.is_asked {
            self.back = Some(self.back.map_or(second, |back| back.min(second)));
        }
        self.cursor = self.cursor.min(Position::before(second));
        self.next.lower(second);
    }

    /// What came in while the store was asked.
    fn answered(&mut self, next: Next) {
        self.is_asked = false;
        self.next = next;
        if let Some(second) = self.back.take() {
            self.cursor = self.cursor.min(Position::before(second));
            self.next.lower(second);
        }
        if let Some(second) = self.lowered.take() {
            self.next.lower(second);
        }
    }

    /// A row was written to this second, which is not loaded yet.
    fn lower(&mut self, second: i64) {
        if self.is_asked {
            self.lowered = Some(self.lowered.map_or(second, |first| first.min(second)));
        }
        self.next.lower(second);
    }
}

impl Engine {
    /// Asks for rows whose time is near, and for when the next ones come.
    pub(super) fn load(&mut self) {
        let second = self.present().second();
        let horizon = second.saturating_add(self.config.window);
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if lane.is_asked {
                continue;
            }
            if lane.next == Next::At(i64::MIN) && !lane.is_handled {
                // A refused commit has left a row where it was: what is reported as due has to be due.
                lane.next = Next::Unknown;
            }
            match lane.next {
                Next::None => {}
                Next::Unknown => {
                    lane.is_asked = true;
                    let call = Call::FirstSecond(Arc::clone(&lane.handler), lane.cursor.second);
                    self.asked.ask(
                        call,
                        What::Second(index),
                        self.now,
                        &self.config,
                        &mut self.output,
                    );
                }
                Next::At(first) if !lane.is_handled => {
                    if first <= second && !lane.is_reported {
                        lane.is_reported = true;
                        let handler = Arc::clone(&lane.handler);
                        self.output.push_back(Output::Unhandled(handler));
                    }
                }
                Next::At(first) => {
                    if first > horizon || !lane.has_room(&self.config) {
                        continue;
                    }
                    let before = horizon.saturating_add(1);
                    if !planted::is(Planted::BoundAfterRead) {
                        lane.bound = lane.bound.max(before);
                    }
                    let free = self.config.most_in_memory - lane.held;
                    let most = Most::rows(self.config.page.min(free));
                    lane.is_asked = true;
                    let call = Call::Load {
                        handler: Arc::clone(&lane.handler),
                        after: lane.cursor,
                        before,
                        most,
                    };
                    let what = What::Rows {
                        lane: index,
                        before,
                        most,
                    };
                    self.asked
                        .ask(call, what, self.now, &self.config, &mut self.output);
                }
            }
        }
    }

    /// The store has said which second is next.
    pub(super) fn second_found(&mut self, lane: usize, first: Option<i64>) {
        self.lanes[lane].answered(Next::found(first));
    }

    /// The store has handed out rows.
    pub(super) fn loaded(
        &mut self,
        index: usize,
        before: i64,
        most: Most,
        rows: Vec<Row>,
        number: u64,
    ) {
        let mut is_all = most.is_more_than(&rows);
        for row in rows {
            let position = row.position();
            if self.near.is_new(row.id, number) || planted::is(Planted::KnownTakenAgain) {
                if self.lanes[index].held >= self.config.most_in_memory {
                    is_all = false;
                    break;
                }
                self.hold(row, index);
            }
            self.lanes[index].cursor = position;
        }
        let lane = &mut self.lanes[index];
        lane.bound = lane.bound.max(before);
        let next = match is_all {
            true => {
                lane.cursor = lane.cursor.max(Position::before(before));
                Next::Unknown
            }
            false => Next::At(lane.cursor.second),
        };
        lane.answered(next);
    }

    /// A row lies in this second from now on, and is not in memory.
    pub(super) fn written(&mut self, lane: usize, second: i64) {
        let lane = &mut self.lanes[lane];
        if second < lane.bound {
            lane.go_back(second);
        } else {
            lane.lower(second);
        }
    }

    /// A row lies in its second from now on. It goes into memory, if what lies around it did.
    pub(super) fn admit(&mut self, row: Row, lane: usize) {
        let second = row.due.second();
        let of = &self.lanes[lane];
        if second >= of.bound {
            self.lanes[lane].lower(second);
        } else if of.held < self.config.most_in_memory {
            if self.near.get(row.id).is_none() {
                self.hold(row, lane);
            }
        } else if !planted::is(Planted::CursorOverUndelivered) {
            self.lanes[lane].go_back(second);
        }
    }

    fn hold(&mut self, row: Row, lane: usize) {
        self.lanes[lane].held += 1;
        self.near.hold(Held { row, lane }, self.now);
    }
}
