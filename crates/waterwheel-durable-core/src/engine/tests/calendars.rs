//! Calendars while requests, refusals and replies are pending.

use std::time::Duration;

use super::*;
use crate::engine::calendar::{
    Cursor, Declared, Misfire, Occurrences, Plan, Progress, SETTINGS, Stored,
};

const HOUR: i64 = 3_600;

/// Every hour, in a time zone this many seconds ahead of UTC.
#[derive(Debug)]
struct Hourly(i64);

impl Occurrences for Hourly {
    fn next_after(&self, after: Due) -> Option<Due> {
        let hours = after.second().div_euclid(HOUR) + 1;
        Some(Due::from_second(hours * HOUR))
    }

    fn civil(&self, at: Due) -> i64 {
        at.as_millis() + self.0 * 1_000
    }

    fn instant(&self, civil: i64, _: Due) -> Due {
        Due::from_millis(civil - self.0 * 1_000)
    }

    fn rules(&self, _: Due) -> u64 {
        self.0.cast_unsigned()
    }

    fn stored(&self, progress: &Progress) -> Arc<[u8]> {
        let Progress { number, cursor } = progress;
        format!("{number} {}", cursor.at.second())
            .into_bytes()
            .into()
    }
}

fn plan(definition: &str, payload: usize) -> Plan {
    Plan {
        definition: definition.into(),
        times: "each hour".into(),
        handler: "mail".into(),
        payload: vec![7; payload].into(),
        misfire: Misfire::CatchUpTo(1_000),
        occurrences: Arc::new(Hourly(0)),
    }
}

/// Another plan, with different times.
fn others() -> Plan {
    Plan {
        times: "others".into(),
        ..plan("b", 0)
    }
}

/// An engine with a calendar `h`.
fn with_calendar() -> Subject {
    let mut it = Subject::new(Config::default()).handles(1_000);
    it.declare("h", plan("a", 0));
    it.settle();
    assert_eq!(it.answers, [CREATED]);
    it.answers.clear();
    it
}

/// The first hour after the start.
fn first_hour() -> i64 {
    Hourly(0)
        .next_after(Due::from_millis(NOW))
        .unwrap()
        .second()
}

impl Subject {
    fn declare(&mut self, name: &str, plan: Plan) {
        self.engine.handle_calendar(7, &name.into(), Some(plan));
        self.follow();
    }

    /// Moves the clock on to this hour. Returns the hours that are delivered then.
    fn hours_at(&mut self, hour: i64) -> Vec<i64> {
        self.pass_to(hour);
        self.settle();
        self.pass(SECOND);
        self.delivered_hours()
    }

    /// Lets the store refuse the next commit, before it has carried out the earlier reads.
    fn refuse_commit(&mut self) {
        while ops_of(&self.requests[0]).is_none() {
            self.requests.pop_front();
        }
        self.reply(refused());
        self.pass(SECOND);
        self.settle();
    }

    fn remove(&mut self, name: &str) {
        self.engine.handle_calendar(8, &name.into(), None);
        self.follow();
    }

    /// Moves the clock on to this hour, counted from the first one.
    fn pass_to(&mut self, hour: i64) {
        let at = (first_hour() + hour * HOUR) * 1_000_000;
        let left = at - self.engine.now().wall_micros;
        self.pass(left.cast_unsigned());
    }

    fn setting(&mut self, name: &str) -> Option<String> {
        let name = format!("{SETTINGS}{name}");
        let settings = self.store.settings().unwrap();
        let setting = settings.into_iter().find(|it| *it.name == *name)?;
        Some(String::from_utf8(setting.value.to_vec()).unwrap())
    }

    fn delivered_hours(&mut self) -> Vec<i64> {
        let rows = std::mem::take(&mut self.delivered).into_iter();
        let hours = rows.map(|row| {
            self.engine.handle_ended(row.id, Ended::Well);
            let (_, second) = row.id.occurrence().unwrap();
            assert_eq!(row.due, Due::from_second(second));
            (second - first_hour()) / HOUR
        });
        let hours = hours.collect();
        self.settle();
        hours
    }
}

const CREATED: Answer = Answer::Declared(Declared::Created);
const REPLACED: Answer = Answer::Declared(Declared::Replaced);
const UNCHANGED: Answer = Answer::Declared(Declared::Unchanged);

#[test]
fn occurrences_and_the_cursor_are_one_step() {
    let mut it = with_calendar();
    it.pass_to(0);
    let steps = it.next_commit();
    let [Op::All(steps)] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert!(
        matches!(&steps[..], [Op::Insert(..), Op::Set(..)]),
        "{steps:?}"
    );
    it.settle();
    it.pass(0);
    assert_eq!(it.delivered_hours(), [0]);
    let stored = it.setting("h").unwrap();
    assert!(stored.ends_with(&format!(" {}", first_hour())), "{stored}");
}

#[test]
fn what_is_asked_of_a_calendar_waits_for_what_it_files() {
    let mut it = with_calendar();
    it.pass_to(0);
    // The commit of this declaration is on the way.
    it.declare("h", plan("b", 0));
    it.declare("h", plan("b", 0));
    it.remove("h");
    it.remove("h");
    it.declare("h", plan("c", 0));
    assert_eq!(it.answers, []);
    it.settle();
    let gone = Answer::NotFound;
    assert_eq!(
        it.answers,
        [REPLACED, UNCHANGED, Answer::Done, gone, CREATED]
    );
    assert_eq!(it.engine.calendars().count(), 1);
    it.pass(0);
    assert_eq!(it.delivered_hours(), [0]);
}

#[test]
fn a_refused_occurrence_is_tried_again_and_holds_up_no_removal() {
    let mut it = Subject::new(Config::default()).handles(9);
    it.declare("h", plan("a", 0));
    it.declare("gone", plan("a", 0));
    it.settle();
    it.answers.clear();
    it.pass_to(0);
    it.remove("gone");
    // Both have an occurrence to file, in one commit.
    while ops_of(&it.requests[0]).is_none() {
        it.carry_out_next();
    }
    it.reply(refused());
    assert_eq!((it.refusals.len(), &it.answers[..]), (1, &[][..]));
    assert_eq!(it.engine.calendars.len(), (2, 2));
    let next = it.engine.poll_timeout().unwrap();
    let now = it.engine.now().boot_micros;
    assert!(next > now, "it would turn without a pause");
    it.settle();
    assert_eq!(it.store.len(), 0);
    it.advance(SECOND);
    assert_eq!(it.answers, [Answer::Done]);
    it.pass(0);
    // The occurrence of the removed calendar was not filed, as it was decided again.
    assert_eq!(it.delivered_hours(), [0]);
    assert_eq!((it.setting("gone"), it.store.len()), (None, 0));
}

#[test]
fn what_was_missed_comes_by_a_new_definition_of_the_same_times() {
    for (times, expected) in [("each hour", &[0, 1][..]), ("others", &[])] {
        let mut it = with_calendar();
        it.pass_to(1);
        let other = Plan {
            times: times.into(),
            ..plan("b", 5)
        };
        it.declare("h", other);
        it.refuse_commit();
        it.pass(SECOND);
        assert!(it.delivered.iter().all(|row| row.payload.len() == 5));
        assert_eq!(it.delivered_hours(), expected);
    }
}

#[test]
fn other_times_bring_no_instant_again_by_a_clock_set_back() {
    let mut it = with_calendar();
    assert_eq!(it.hours_at(0), [0]);
    it.set(-1_800 * SECOND.cast_signed());
    it.declare("h", others());
    it.settle();
    it.pass_to(0);
    it.settle();
    assert_eq!(it.hours_at(1), [1]);
}

#[test]
fn a_refused_declaration_leaves_nothing() {
    let mut it = Subject::new(Config::default()).handles(9);
    it.declare("h", plan("a", 0));
    it.declare("h", plan("b", 0));
    it.reply(refused());
    assert!(
        matches!(&it.answers[..], [Answer::Refused(_)]),
        "{:?}",
        it.answers
    );
    it.answers.clear();
    // The waiting calendar is retried on its own.
    it.advance(SECOND);
    assert_eq!(it.answers, [CREATED]);
    it.answers.clear();
    it.declare("g", plan("a", 0));
    it.reply(refused());
    assert_eq!(it.engine.calendars().count(), 1);
    it.remove("g");
    assert_eq!(it.answers.pop(), Some(Answer::NotFound));
    assert_eq!(it.engine.calendars.len(), (1, 1));
}

/// The number that a calendar would get as the `count`th number drawn in the first run of a store.
fn drawn(name: &str, count: i64) -> u32 {
    let mut hash = calendar::Hash::default();
    hash.bytes(name.as_bytes());
    hash.number(1);
    hash.number(count);
    (hash.finish() >> 42) as u32
}

fn number(it: &mut Subject, name: &str) -> u32 {
    let stored = it.setting(name).unwrap();
    stored.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_calendar_has_a_number_that_no_other_one_has() {
    let mut it = Subject::new(Config::default());
    let first = drawn("h", 1);
    // The number of an unreadable calendar counts as taken, and so does the next number.
    let taken = [("x", first), ("y", first + 1)].map(|(name, number)| Stored {
        name: name.into(),
        read: Err((Some(number), "damage".into())),
    });
    it.engine.restore_calendars(taken);
    it.declare("h", plan("a", 0));
    it.settle();
    assert_eq!(number(&mut it, "h"), first + 2);
    // A new definition keeps the number. A calendar that was removed and declared again gets a new one.
    it.declare("h", plan("b", 0));
    it.settle();
    assert_eq!(number(&mut it, "h"), first + 2);
    it.remove("h");
    it.declare("h", plan("a", 0));
    it.declare("x", plan("a", 0));
    it.settle();
    assert_eq!(number(&mut it, "h"), drawn("h", 3));
    assert_eq!(number(&mut it, "x"), drawn("x", 2));
    assert_eq!(it.engine.calendars.len(), (3, 3));
}

#[test]
fn two_names_of_one_hash_that_come_at_once_have_two_numbers() {
    let mut it = Subject::new(Config::default());
    let names = twins();
    assert_eq!(drawn(&names[0], 1), drawn(&names[1], 2));
    for name in &names {
        it.declare(name, plan("a", 0));
    }
    it.settle();
    let numbers = names.map(|name| number(&mut it, &name));
    assert_ne!(numbers[0], numbers[1]);
}

/// Two names that would get the same number if drawn one after the other.
fn twins() -> [String; 2] {
    let first = (0..10_000).map(|it| it.to_string());
    let first: std::collections::HashMap<_, _> = first.map(|it| (drawn(&it, 1), it)).collect();
    let mut second = (10_000..).map(|it| it.to_string());
    let twins = second.find_map(|it| Some([first.get(&drawn(&it, 2))?.clone(), it]));
    twins.unwrap()
}

#[test]
fn a_cursor_that_goes_back_uses_no_id_twice() {
    let mut it =
        Subject::with(|config| config.retry_delays = vec![Duration::from_secs(5_400)]).handles(9);
    it.declare("h", plan("a", 0));
    it.settle();
    let first = number(&mut it, "h");
    it.pass_to(0);
    it.settle();
    it.pass(0);
    // It fails and is retried later, so it is in the store with its id.
    let row = it.end_first(&Ended::Failed("no".into()));
    assert_eq!(it.hours_at(1), [1]);
    let two_days = 48 * HOUR * 1_000_000;
    it.jump(-two_days);
    assert_ne!(number(&mut it, "h"), first);
    assert_eq!(it.engine.calendars.len(), (1, 1));
    // Its time comes again.
    for hour in -46..0 {
        assert_eq!(it.hours_at(hour), [hour]);
    }
    it.pass_to(0);
    it.settle();
    it.pass(SECOND);
    let again = it.delivered.remove(0);
    let (_, second) = again.id.occurrence().unwrap();
    assert_eq!((second, again.failures), (first_hour(), 0));
    assert_ne!(again.id, row.id);
    it.pass_to(2);
    it.settle();
    it.pass(SECOND);
    let retry = it.delivered.iter().find(|it| it.id == row.id);
    assert_eq!(retry.unwrap().failures, 1);
}

#[test]
fn a_calendar_that_no_number_is_left_for_is_reported() {
    let mut it = Subject::new(Config::default()).handles(9);
    it.declare("h", plan("a", 0));
    it.pass_to(0);
    it.settle();
    it.engine.calendars.use_up_numbers();
    it.jump(-48 * HOUR * 1_000_000);
    let [report] = &it.reports[..] else {
        panic!("{:?}", it.reports);
    };
    assert!(report.starts_with("the calendar h: "), "{report}");
    // A new calendar reports that to its caller.
    it.declare("i", plan("a", 0));
    assert_eq!(it.answers.pop(), Some(Answer::OutOfIds));
}

#[test]
fn a_large_backlog_is_filed_in_small_steps() {
    for (payload, largest) in [(0, 64), (300_000, 3), (2 << 20, 1)] {
        let mut it = Subject::new(Config::default()).handles(1_000);
        it.declare("h", plan("a", payload));
        it.settle();
        let days = 10;
        it.pass_to(days * 24 - 1);
        let mut filed = 0;
        while filed < days * 24 {
            let steps = it.next_commit();
            for op in &steps {
                if let Op::All(steps) = op {
                    let inserts = steps.len() - 1;
                    assert!(inserts <= largest, "{inserts}");
                    filed += inserts as i64;
                }
            }
        }
        assert_eq!(filed, days * 24);
    }
}

#[test]
fn a_stop_answers_what_waits_and_files_nothing() {
    let mut it = with_calendar();
    it.pass_to(0);
    it.declare("h", plan("b", 0));
    it.engine.handle_stop();
    it.settle();
    assert_eq!(it.answers, [Answer::ShuttingDown]);
    it.pass_to(5);
    it.settle();
    assert!(it.engine.is_idle() && it.engine.poll_timeout().is_none());
    assert_eq!(it.store.len(), 1);
    it.remove("h");
    assert_eq!(it.answers.pop(), Some(Answer::ShuttingDown));
}

#[test]
fn a_store_that_fails_answers_what_waits() {
    let mut it = Subject::new(Config::default()).handles(9);
    it.declare("h", plan("a", 0));
    it.declare("h", plan("b", 0));
    it.reply(Err(StoreError::indeterminate("damage")));
    assert!(
        matches!(&it.answers[..], [Answer::Unknown(_), Answer::Failed(_)]),
        "{:?}",
        it.answers
    );
}

#[test]
fn a_restored_calendar_goes_on_from_its_cursor() {
    let mut it = Subject::new(Config::default()).handles(9);
    let at = Due::from_second(first_hour() - 3 * HOUR);
    let progress = Progress {
        number: 5,
        cursor: Cursor::starting(at, &Hourly(0)),
    };
    let stored = Stored {
        name: "h".into(),
        read: Ok((plan("a", 0), progress)),
    };
    it.engine.restore_calendars([stored]);
    it.advance(0);
    it.pass(0);
    assert_eq!(it.delivered_hours(), [-2, -1]);
    let next = it.engine.poll_timeout().unwrap();
    assert_eq!(
        next,
        it.engine.now().boot_at(Due::from_second(first_hour()))
    );
}

#[test]
fn other_times_bring_no_time_of_the_wall_twice_by_new_rules() {
    let mut it = Subject::new(Config::default()).handles(9);
    // Under the old rules, the wall clock has already shown the next hour.
    let progress = Progress {
        number: 5,
        cursor: Cursor::starting(Due::from_millis(NOW), &Hourly(HOUR)),
    };
    let stored = Stored {
        name: "h".into(),
        read: Ok((plan("a", 0), progress)),
    };
    it.engine.restore_calendars([stored]);
    it.pass(0);
    // The store refuses the write after the rules changed.
    it.declare("h", others());
    it.refuse_commit();
    assert_eq!(it.answers, [REPLACED]);
    for hour in 0..2 {
        it.pass_to(hour);
        it.settle();
    }
    it.pass(SECOND);
    assert_eq!(it.delivered_hours(), [1]);
}
