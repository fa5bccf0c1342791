//! The timers of one handler: which of them are loaded, are due, and are with it.

use std::collections::VecDeque;
use std::sync::Arc;

use waterwheel_store::{Due, Most, Position, Row};

use super::asked::What;
use super::near::Up;
use super::next::Next;
use super::planted::{self, Planted};
use super::{Call, Engine, Output};

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) handler: Arc<str>,
    pub(super) is_handled: bool,
    pub(super) concurrency: usize,
    pub(super) running: usize,
    /// Due, in order. Some may have left since.
    pub(super) ready: VecDeque<Up>,
    /// How many timers of it are in memory,
    pub(super) held: usize,
    /// and how large they are.
    pub(super) bytes: usize,
    /// Those that have not come up are due in this second or before.
    pub(super) last: i64,
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
            bytes: 0,
            last: i64::MIN,
            cursor: Position::START,
            bound: i64::MIN,
            next: Next::Unknown,
            is_asked: false,
            back: None,
            lowered: None,
            is_reported: false,
        }
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
        let lanes = 0..self.lanes.len();
        self.loads_at = lanes.filter_map(|lane| self.load_lane(lane)).min();
    }

    /// Does that for a lane. When to look at it again, if no call brings that up.
    fn load_lane(&mut self, index: usize) -> Option<Due> {
        let second = self.present().second();
        let lane = &mut self.lanes[index];
        if lane.is_asked {
            return None;
        }
        match lane.next {
            Next::None => None,
            Next::Unknown => {
                lane.is_asked = true;
                let call = Call::FirstSecond(Arc::clone(&lane.handler), lane.cursor.second);
                self.ask(call, What::Second(index));
                None
            }
            Next::At(first) if !lane.is_handled => {
                // A handler that is missing is reported once its timers are due.
                if lane.is_reported || first > second {
                    return (!lane.is_reported).then_some(start(first));
                }
                lane.is_reported = true;
                let handler = Arc::clone(&lane.handler);
                self.output.push_back(Output::Unhandled(handler));
                None
            }
            Next::At(first) => {
                let horizon = self.horizon();
                if first > horizon {
                    return Some(start(first.saturating_sub(self.config.window)));
                }
                // Else the reply to a commit brings it up.
                let most = self.room(index).or_else(|| self.make_room(index, first))?;
                self.load_rows(index, horizon.saturating_add(1), most);
                None
            }
        }
    }

    fn load_rows(&mut self, index: usize, before: i64, most: Most) {
        let lane = &mut self.lanes[index];
        if !planted::is(Planted::BoundAfterRead) {
            lane.bound = lane.bound.max(before);
        }
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
        self.room.ask(most);
        self.ask(call, what);
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
        self.room.answered(most);
        let horizon = self.horizon();
        // The second of the first row that was not taken, or that the load had no room for.
        let last = rows.last().map(|row| row.position().second);
        let mut left = last.filter(|_| !most.is_more_than(&rows));
        for row in rows {
            let position = row.position();
            if self.near.is_new(&row, index, Some(number)) || planted::is(Planted::KnownTakenAgain)
            {
                // Beyond the horizon, if the clock was set back since they were asked for.
                if position.second > horizon || !self.fits(index) {
                    left = Some(position.second);
                    break;
                }
                self.hold(row, index);
            }
            self.lanes[index].cursor = position;
        }
        let lane = &mut self.lanes[index];
        lane.bound = lane.bound.max(before);
        if left.is_none() {
            lane.cursor = lane.cursor.max(Position::before(before));
        }
        lane.answered(left.map_or(Next::Unknown, Next::At));
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

    /// Whether a row of this second would take the room that rows of an earlier one wait for.
    fn is_behind(&self, lane: usize, second: i64) -> bool {
        self.lanes[lane].next.is_before(second) && self.room(lane).is_none()
    }

    /// The last second whose timers are in memory.
    pub(super) fn horizon(&self) -> i64 {
        let second = self.present().second();
        second.saturating_add(self.config.window)
    }

    /// A row lies in its second from now on. It goes into memory, if what lies around it did.
    pub(super) fn admit(&mut self, row: &Row, lane: usize) {
        let second = row.due.second();
        if second >= self.lanes[lane].bound {
            self.lanes[lane].lower(second);
        } else if second <= self.horizon() && self.fits(lane) && !self.is_behind(lane, second) {
            if self.near.is_new(row, lane, None) {
                self.hold(row.clone(), lane);
            }
        } else if !planted::is(Planted::CursorOverUndelivered) {
            self.lanes[lane].go_back(second);
        }
    }
}

/// When a second begins.
fn start(second: i64) -> Due {
    Due::from_millis(second.saturating_mul(1_000))
}
