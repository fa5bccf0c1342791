//! What the simulator cannot see from outside, or meets too seldom.

mod calendars;

use waterwheel_store::{Handle, MemoryStore, Op, Row, Store, StoreError};

use super::*;

const SECOND: u64 = 1_000_000;
const NOW: i64 = 1_800_000_000_000;

/// An engine on a store that does what it is asked when the test says so.
struct Subject {
    engine: Engine,
    store: MemoryStore,
    asked: VecDeque<Request>,
    answers: Vec<Answer>,
    delivered: Vec<Row>,
    /// What was put out of names without a handler.
    reports: Vec<String>,
    refusals: Vec<Arc<str>>,
    handler: Arc<str>,
}

impl Subject {
    fn new(config: Config) -> Subject {
        let now = Now {
            boot_micros: 5 * SECOND,
            wall_micros: NOW * 1_000,
        };
        let mut store = MemoryStore::new();
        let epoch = store.begin().unwrap();
        Subject {
            engine: Engine::new(config, epoch, Vec::new(), now),
            store,
            asked: VecDeque::new(),
            answers: Vec::new(),
            delivered: Vec::new(),
            reports: Vec::new(),
            refusals: Vec::new(),
            handler: Arc::from("mail"),
        }
    }

    fn handles(mut self, concurrency: usize) -> Subject {
        self.engine.handle(&self.handler, concurrency);
        self.settle();
        self
    }

    fn follow(&mut self) {
        while let Some(output) = self.engine.output() {
            match output {
                Output::Store(request) => self.asked.push_back(request),
                Output::Answer(_, answer) => self.answers.push(answer),
                Output::Deliver(delivery) => self.delivered.push(delivery.row),
                Output::Unhandled(name) => self.reports.push(format!("{name} is missed")),
                Output::NoneDue(name) => self.reports.push(format!("{name} is not missed")),
                Output::Refused(why) => self.refusals.push(why),
                Output::Dead(..) | Output::Failed(_) | Output::UnreadableCalendar(..) => {}
            }
        }
    }

    /// The store does all that it is asked.
    fn settle(&mut self) {
        self.follow();
        while let Some(Request { number, call }) = self.asked.pop_front() {
            let reply = call.ask(&mut self.store);
            self.engine.replied(number, reply);
            self.follow();
        }
    }

    /// The next request, which is to be of this kind, is replied to like this.
    fn reply(&mut self, reply: Result<Reply, StoreError>) {
        let request = self.asked.pop_front().unwrap();
        self.engine.replied(request.number, reply);
        self.follow();
    }

    /// The store does what it is asked, up to and with the next commit, whose steps these are.
    fn next_commit(&mut self) -> Vec<Op> {
        loop {
            let Request { number, call } = self.asked.pop_front().unwrap();
            let steps = match &call {
                Call::Commit(_, steps) => Some(steps.to_vec()),
                _ => None,
            };
            let reply = call.ask(&mut self.store);
            self.engine.replied(number, reply);
            self.follow();
            if let Some(steps) = steps {
                return steps;
            }
        }
    }

    fn pass(&mut self, micros: u64) {
        let mut now = self.engine.now();
        now.boot_micros += micros;
        now.wall_micros += micros.cast_signed();
        self.engine.turn(now);
        self.follow();
    }

    /// The wall clock is set.
    fn set(&mut self, by: i64) {
        let mut now = self.engine.now();
        now.wall_micros += by;
        self.engine.turn(now);
        self.follow();
    }

    fn insert(&mut self, millis: i64) {
        let timer = NewTimer {
            handler: Arc::clone(&self.handler),
            due: Due::from_millis(NOW + millis),
            key: None,
            payload: Arc::from([7; 64]),
        };
        self.engine.insert(0, timer);
        self.follow();
    }

    /// The handles of what was inserted and answered.
    fn created(&mut self) -> Vec<Handle> {
        let answers = std::mem::take(&mut self.answers).into_iter();
        let handles = answers.map(|answer| match answer {
            Answer::Created(handle) => handle,
            other => panic!("{other:?}"),
        });
        handles.collect()
    }
}

fn refused() -> Result<Reply, StoreError> {
    Err(StoreError::definite("the disk is full"))
}

#[test]
fn what_is_refused_counts_as_written_until_its_next_try() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert(0);
    it.settle();
    it.pass(SECOND);
    it.engine.ended(it.delivered[0].id, Ended::Well);
    it.follow();
    assert!(!it.engine.is_written() && !it.engine.is_idle());
    assert_eq!(it.engine.unsettled(), 1);
    it.engine.stop();
    it.reply(refused());
    assert!(it.engine.is_written() && !it.engine.is_idle());
    assert_eq!(it.engine.unsettled(), 1);
    it.pass(SECOND);
    assert!(!it.engine.is_written());
    it.settle();
    assert!(it.engine.is_written() && it.engine.is_idle() && it.store.is_empty());
    assert_eq!(it.engine.unsettled(), 0);
}

#[test]
fn what_waits_for_a_refused_retry_is_refused() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert(0);
    it.settle();
    let handle = it.created().remove(0);
    it.pass(SECOND);
    it.engine.ended(handle.id, Ended::Failed(Arc::from("no")));
    it.follow();
    it.engine.cancel(1, handle.clone());
    let later = Due::from_millis(NOW + 3_600_000);
    it.engine.reschedule(2, handle.clone(), later);
    it.follow();
    assert_eq!(it.answers, []);
    it.reply(refused());
    let why = "the store refused, and nothing was written: the disk is full";
    let refused = Answer::Refused(why.into());
    assert_eq!(it.answers, [refused.clone(), refused]);
    // The failure is written as soon as the store takes it, and the timer is as good as before.
    it.answers.clear();
    it.pass(SECOND);
    it.settle();
    it.engine.cancel(3, handle);
    it.settle();
    assert!(it.answers == [Answer::Done] && it.store.is_empty());
}

#[test]
fn a_missing_handler_is_reported_after_a_grace() {
    // Of an engine that begins with timers that are long due, as after a restart; and of timers that come due later.
    let mut it = Subject::new(Config::default());
    it.insert(-10_000);
    it.settle();
    it.pass(SECOND - 2_000);
    it.settle();
    assert!(it.reports.is_empty());
    it.pass(2_000);
    it.settle();
    assert_eq!(it.reports, ["mail is missed"]);
    it.handler = "close".into();
    it.insert(5_500);
    it.settle();
    it.pass(5 * SECOND);
    it.settle();
    assert_eq!(it.reports.len(), 1);
    // The engine asks for the turn at which it reports.
    let at = it.engine.next_turn().unwrap();
    assert!((6..=8).contains(&(at / SECOND - 5)), "{at}");
    it.pass(at - it.engine.now().boot_micros);
    it.settle();
    assert_eq!(it.reports, ["mail is missed", "close is missed"]);
}

#[test]
fn a_handler_in_time_is_not_reported_though_the_clock_is_set_back() {
    let mut it = Subject::new(Config::default());
    it.insert(0);
    it.settle();
    let mut now = it.engine.now();
    now.wall_micros -= 3_600 * SECOND.cast_signed();
    it.engine.turn(now);
    it.settle();
    it.insert(-3_700_000);
    it.settle();
    it.pass(SECOND / 2);
    it.settle();
    assert!(it.reports.is_empty());
    // The grace is counted by the clock that is not set.
    it.pass(SECOND / 2);
    it.settle();
    assert_eq!(it.reports, ["mail is missed"]);
    let mut it = Subject::new(Config::default());
    it.insert(0);
    it.settle();
    it.pass(SECOND / 2);
    it = it.handles(1);
    it.pass(10 * SECOND);
    it.settle();
    assert!(it.reports.is_empty() && it.delivered.len() == 1);
}

#[test]
fn a_name_whose_due_timers_have_left_is_no_longer_reported() {
    let mut it = Subject::new(Config::default());
    for millis in [0, 0, 3_600_000] {
        it.insert(millis);
    }
    it.settle();
    let handles = it.created();
    it.pass(3 * SECOND);
    it.settle();
    assert_eq!(it.reports, ["mail is missed"]);
    it.engine.cancel(1, handles[0].clone());
    it.settle();
    assert_eq!(it.reports.len(), 1);
    let later = Due::from_millis(NOW + 7_200_000);
    it.engine.reschedule(2, handles[1].clone(), later);
    it.settle();
    assert_eq!(it.reports, ["mail is missed", "mail is not missed"]);
    // And again, as the others come due.
    it.pass(3_700 * SECOND);
    it.settle();
    assert_eq!(it.reports.len(), 3);
    it.engine.cancel(3, handles[2].clone());
    it.settle();
    it.pass(3_700 * SECOND);
    it.settle();
    assert_eq!(it.reports[3..], ["mail is not missed", "mail is missed"]);
}

#[test]
fn a_reply_that_does_not_know_of_a_cancel_is_asked_for_again() {
    let mut it = Subject::new(Config::default());
    for _ in 0..2 {
        it.insert(0);
    }
    it.settle();
    let handles = it.created();
    it.pass(3 * SECOND);
    it.settle();
    assert_eq!(it.reports, ["mail is missed"]);
    it.engine.cancel(1, handles[0].clone());
    it.follow();
    let Request { number, call } = it.asked.pop_front().unwrap();
    let reply = call.ask(&mut it.store);
    it.engine.replied(number, reply);
    it.follow();
    // The store is asked what is left, and its reply comes after that to a later commit.
    let Request { number, call } = it.asked.pop_front().unwrap();
    assert!(matches!(call, Call::FirstSecond(..)), "{call:?}");
    let late = call.ask(&mut it.store);
    it.engine.cancel(2, handles[1].clone());
    it.settle();
    assert_eq!(it.reports.len(), 1);
    it.engine.replied(number, late);
    it.settle();
    assert_eq!(it.reports, ["mail is missed", "mail is not missed"]);
}

#[test]
fn replies_that_cannot_be_lost_ask_for_no_turn() {
    let config = Config {
        reply_micros: u64::MAX,
        ..Config::default()
    };
    let mut it = Subject::new(config).handles(1);
    it.insert(86_400_000 * 365);
    assert_eq!(it.asked.len(), 1);
    assert_eq!(it.engine.next_turn(), None);
    it.pass(1_000 * SECOND);
    assert_eq!(it.asked.len(), 1);
}

#[test]
fn a_handle_of_an_unknown_handler_leaves_nothing() {
    let mut it = Subject::new(Config::default()).handles(1);
    for count in 0..100 {
        let handle = format!("7@5@handler {count}").parse().unwrap();
        it.engine.cancel(0, handle);
        it.settle();
        assert_eq!(it.answers.pop(), Some(Answer::NotFound));
    }
    assert_eq!((it.engine.lanes.len(), it.engine.in_memory()), (1, 0));
}

#[test]
fn what_is_cancelled_leaves_the_queue_of_a_handler_that_hangs() {
    let mut it = Subject::new(Config::default()).handles(1);
    for _ in 0..3 {
        it.insert(0);
    }
    it.settle();
    it.pass(10_000);
    assert_eq!((it.delivered.len(), it.created().len()), (1, 3));
    for _ in 0..100 {
        for _ in 0..10 {
            it.insert(0);
        }
        it.settle();
        it.pass(10_000);
        for handle in it.created() {
            it.engine.cancel(0, handle);
        }
        it.settle();
        assert!(it.answers.drain(..).all(|answer| answer == Answer::Done));
        it.pass(10_000);
    }
    assert_eq!((it.delivered.len(), it.engine.held()), (1, 3));
    assert!(it.engine.lanes[0].ready.len() < 20);
    for count in 1..=3 {
        assert_eq!(it.delivered.len(), count);
        it.engine.ended(it.delivered[count - 1].id, Ended::Well);
        it.settle();
    }
    assert!(it.store.is_empty());
}

#[test]
fn what_left_is_forgotten_though_some_load_always_goes_on() {
    let mut it = Subject::new(Config::default()).handles(1_000);
    let mut loads = VecDeque::new();
    for round in 0..50 {
        // The load of a new handler is asked for before that of the last one is answered.
        it.handler = format!("handler {round}").into();
        it.insert(0);
        it.settle();
        it.engine.handle(&it.handler, 1);
        it.follow();
        loads.extend(it.asked.drain(..));
        if loads.len() > 1 {
            let Request { number, call } = loads.pop_front().unwrap();
            let reply = call.ask(&mut it.store);
            it.engine.replied(number, reply);
        }
        it.pass(10_000);
        for row in std::mem::take(&mut it.delivered) {
            it.engine.ended(row.id, Ended::Well);
        }
        it.follow();
        let mut others = std::mem::take(&mut it.asked);
        while let Some(position) = others
            .iter()
            .position(|it| matches!(it.call, Call::Commit(..)))
        {
            let Request { number, call } = others.remove(position).unwrap();
            let reply = call.ask(&mut it.store);
            it.engine.replied(number, reply);
            it.follow();
        }
        assert!(it.engine.asked.loading().is_some());
    }
    let gone = it.engine.near.gone.len();
    assert!(gone < 5, "{gone} of 50 are kept");
}

#[test]
fn a_reply_of_other_outcomes_is_a_failure_and_answers_all() {
    let mut it = Subject::new(Config::default());
    it.settle();
    it.insert(0);
    for _ in 0..2 {
        it.insert(1);
    }
    it.reply(Ok(Reply::Committed(Vec::new())));
    assert!(it.engine.has_failed());
    let is = |answer: &Answer| matches!(answer, Answer::Unknown(_));
    assert!(is(&it.answers[0]), "{:?}", it.answers);
    // These were never asked of the store.
    let is = |answer: &Answer| matches!(answer, Answer::Failed(_));
    assert!(it.answers[1..].iter().all(is) && it.answers.len() == 3);
}

#[test]
fn a_clock_set_back_lets_go_of_what_is_far_again() {
    let mut it = Subject::new(Config::default()).handles(0);
    // The only place is taken.
    it.insert(0);
    it.settle();
    it.pass(SECOND);
    assert_eq!(it.delivered.len(), 1);
    for count in 0..100 {
        it.insert(3_600_000 + count * 10);
    }
    it.settle();
    assert_eq!(it.engine.held(), 1);
    let hour = 3_600 * SECOND.cast_signed();
    // Half of them come up, and wait for the handler.
    for by in [hour - 500_000, -hour] {
        it.set(by);
        it.settle();
        let is_ahead = by > 0;
        assert_eq!(it.engine.held(), if is_ahead { 101 } else { 1 });
    }
    it.engine.ended(it.delivered[0].id, Ended::Well);
    it.settle();
    assert_eq!((it.engine.held(), it.engine.held_bytes()), (0, 0));
    it.set(hour + SECOND.cast_signed());
    it.settle();
    for count in 1..=100 {
        it.pass(1_000);
        it.settle();
        it.engine.ended(it.delivered[count].id, Ended::Well);
        it.settle();
    }
    assert!(it.store.is_empty());
}

#[test]
fn what_callers_ask_for_keeps_no_step_of_the_engine_waiting() {
    let config = Config {
        most_in_commit: 10,
        ..Config::default()
    };
    let mut it = Subject::new(config).handles(1);
    it.insert(0);
    it.settle();
    it.pass(10_000);
    for _ in 0..100 {
        it.insert(1);
    }
    let id = it.delivered[0].id;
    it.engine.ended(id, Ended::Well);
    it.follow();
    let first = it.next_commit();
    assert!(first.iter().all(|op| matches!(op, Op::Insert(..))));
    let second = it.next_commit();
    assert!(
        matches!(&second[0], Op::Settle(row) if row.id == id),
        "{second:?}"
    );
    assert_eq!(second.len(), 10);
}

#[test]
fn a_commit_of_large_timers_has_few_of_them() {
    let config = Config {
        // Each timer has 64.
        most_bytes_in_commit: 130,
        ..Config::default()
    };
    let mut it = Subject::new(config).handles(1);
    for _ in 0..8 {
        it.insert(1);
    }
    let commits: Vec<_> = (0..4).map(|_| it.next_commit().len()).collect();
    assert_eq!(commits, [1, 3, 3, 1]);
    assert_eq!(it.created().len(), 8);
}

#[test]
fn an_insert_without_space_is_answered_and_nothing_else_waits() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert(0);
    it.settle();
    it.pass(SECOND);
    it.engine.ended(it.delivered[0].id, Ended::Well);
    it.store.set_full(true);
    it.answers.clear();
    it.insert(1);
    it.settle();
    assert_eq!(it.answers, [Answer::Full]);
    assert!(it.store.is_empty() && it.engine.is_idle() && it.engine.in_memory() == 0);
    it.store.set_full(false);
    it.answers.clear();
    it.insert(1);
    it.settle();
    assert_eq!(it.created().len(), 1);
}

#[test]
fn steps_of_the_engine_leave_a_half_of_each_commit_to_callers() {
    let config = Config {
        most_in_commit: 10,
        ..Config::default()
    };
    let mut it = Subject::new(config).handles(100);
    for _ in 0..100 {
        it.insert(0);
    }
    it.settle();
    it.pass(10_000);
    for row in std::mem::take(&mut it.delivered) {
        it.engine.ended(row.id, Ended::Well);
    }
    for _ in 0..3 {
        it.insert(1_000_000_000);
    }
    it.follow();
    it.next_commit();
    let second = it.next_commit();
    let inserts = second.iter().filter(|op| matches!(op, Op::Insert(..)));
    assert_eq!((inserts.count(), second.len()), (3, 10));
}

#[test]
fn a_refused_commit_is_tried_with_half_its_steps() {
    let mut it = Subject::new(Config::default()).handles(100);
    for _ in 0..100 {
        it.insert(0);
    }
    it.settle();
    it.pass(10_000);
    let rows = std::mem::take(&mut it.delivered);
    assert_eq!(rows.len(), 100);
    it.engine.ended(rows[0].id, Ended::Well);
    it.follow();
    for row in &rows[1..] {
        it.engine.ended(row.id, Ended::Well);
    }
    it.next_commit();
    // A caller's step has its turn as well.
    it.insert(1_000_000_000);
    it.created();
    let mut first = Vec::new();
    for most in [99, 49, 24, 12, 6, 3, 1, 1, 1, 1] {
        let Call::Commit(_, steps) = &it.asked[0].call else {
            panic!("{:?}", it.asked);
        };
        assert_eq!(steps.len(), most);
        first.push(steps[0].clone());
        it.reply(refused());
        it.pass(SECOND);
    }
    assert!(matches!(it.answers[..], [Answer::Refused(_)]));
    it.insert(1_000_000_000);
    for _ in 0..3 {
        it.reply(refused());
        it.pass(SECOND);
    }
    let [_, Answer::Refused(_)] = it.answers[..] else {
        panic!(
            "a caller has its turn where there is room for one: {:?}",
            it.answers
        );
    };
    let (second_last, last) = (&first[first.len() - 2], &first[first.len() - 1]);
    assert_ne!(second_last, last, "another one has its turn");
    for most in [1, 2, 4, 8] {
        assert_eq!(it.next_commit().len(), most);
    }
    it.settle();
    assert!(it.store.is_empty() && it.engine.is_idle());
}

#[test]
fn a_cascade_that_is_refused_is_tried_with_half_its_rows() {
    let mut it = Subject::new(Config::default()).handles(1);
    for _ in 0..3_000 {
        it.insert(3_600_000 * 24);
    }
    it.settle();
    it.set(3_600_000_000 * 24);
    for page in [4_096, 2_048, 1_024] {
        let Call::Commit(_, steps) = &it.asked[0].call else {
            panic!("{:?}", it.asked);
        };
        assert!(matches!(&steps[..], [Op::Cascade { most, .. }] if most.rows == page));
        it.reply(refused());
        it.pass(SECOND);
    }
    it.settle();
    it.pass(SECOND);
    assert_eq!((it.delivered.len(), it.engine.held()), (1, 3_000));
}

#[test]
fn a_store_that_refuses_is_reported_once_and_counted() {
    let mut it = Subject::new(Config::default());
    it.pass(0);
    it.settle();
    for reports in 1..=2 {
        for count in 1..=3 {
            it.insert(0);
            it.reply(refused());
            it.pass(SECOND);
            assert_eq!(it.refusals.len(), reports, "{count}");
        }
        it.insert(0);
        it.settle();
    }
    assert_eq!(it.engine.refusals(), 6);
    assert!(it.refusals[0].contains("the disk is full"));
    // Of reads, too.
    it.engine.handle(&it.handler.clone(), 1);
    it.follow();
    for _ in 0..3 {
        it.reply(refused());
        it.pass(SECOND);
    }
    assert_eq!((it.refusals.len(), it.engine.refusals()), (3, 9));
}

#[test]
fn requests_for_one_timer_share_a_commit() {
    let mut it = Subject::new(Config::default()).handles(1);
    it.insert(3_600_000);
    it.settle();
    let handle = it.created().remove(0);
    for count in 0..100 {
        let due = Due::from_millis(NOW + 1_000 + count);
        it.engine.reschedule(0, handle.clone(), due);
    }
    it.follow();
    assert_eq!((it.next_commit().len(), it.answers.len()), (1, 1));
    let last = Due::from_millis(NOW + 1_099);
    let second = it.next_commit();
    assert!(matches!(&second[..], [Op::Reschedule(_, due, _)] if *due == last));
    assert_eq!(it.answers, vec![Answer::Done; 100]);
    it.answers.clear();
    let mut other = handle.clone();
    other.handler = "another".into();
    for _ in 0..100 {
        it.engine.cancel(0, other.clone());
    }
    for _ in 0..100 {
        it.engine.cancel(0, handle.clone());
    }
    it.engine.reschedule(0, handle, last);
    it.follow();
    // The last one of these finds the timer: none after it can.
    for (answers, done) in [(1, 0), (100, 0), (201, 1)] {
        assert_eq!(it.next_commit().len(), 1);
        assert_eq!(it.answers.len(), answers);
        let is_done = |answer: &&Answer| **answer == Answer::Done;
        assert_eq!(it.answers.iter().filter(is_done).count(), done);
    }
    it.settle();
    assert!(it.store.is_empty() && it.engine.is_idle() && it.engine.deferred.is_empty());
    assert_eq!((it.engine.in_memory(), it.answers.len()), (0, 201));
}
