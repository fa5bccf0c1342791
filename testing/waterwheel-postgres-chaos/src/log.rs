//! The events that processes note, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The handlers, how long they take, and how many of them run at a time.
pub(crate) const HANDLERS: [(&str, Duration, usize); 3] = [
    ("instant", Duration::ZERO, 64),
    ("short", Duration::from_millis(100), 64),
    ("long", Duration::from_secs(4), 8),
];

/// An event in a process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    /// It owns the timers.
    Opens,
    /// Its store has failed.
    Fails,
    /// The insert of a timer was answered.
    Inserted { id: u64 },
    /// A handler is called.
    Begins {
        id: u64,
        handler: &'static str,
        due: SystemTime,
    },
    /// A handler returns.
    Ends { id: u64, handler: &'static str },
    /// It has shut down, and has abandoned this many deliveries.
    Ended { abandoned: usize },
}

fn micros(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The present, by the wall clock that all processes share.
pub(crate) fn now() -> u64 {
    micros(SystemTime::now())
}

impl Event {
    fn to_words(self) -> String {
        match self {
            Event::Opens => "opens".to_owned(),
            Event::Fails => "fails".to_owned(),
            Event::Inserted { id } => format!("inserted {id}"),
            Event::Begins { id, handler, due } => format!("begins {id} {handler} {}", micros(due)),
            Event::Ends { id, handler } => format!("ends {id} {handler}"),
            Event::Ended { abandoned } => format!("ended {abandoned}"),
        }
    }

    fn parse(text: &str) -> Option<Event> {
        let mut words = text.split(' ');
        let first = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        let handler = |name: &str| Some(HANDLERS.iter().find(|it| it.0 == name)?.0);
        Some(match first {
            "opens" => Event::Opens,
            "fails" => Event::Fails,
            "inserted" => Event::Inserted { id: number()? },
            "begins" => Event::Begins {
                id: number()?,
                handler: handler(words.next()?)?,
                due: UNIX_EPOCH + Duration::from_micros(words.next()?.parse().ok()?),
            },
            "ends" => Event::Ends {
                id: number()?,
                handler: handler(words.next()?)?,
            },
            "ended" => Event::Ended {
                abandoned: usize::try_from(number()?).ok()?,
            },
            _ => return None,
        })
    }
}

/// The log of a process. A line that was written is kept, however the process ends.
#[derive(Debug)]
pub(crate) struct Writer(File);

impl Writer {
    pub(crate) fn open(path: &Path) -> io::Result<Writer> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Writer(file))
    }

    /// Notes that an event happens now.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub(crate) fn write(&self, event: &Event) {
        let line = format!("{} {}\n", now(), event.to_words());
        (&self.0)
            .write_all(line.as_bytes())
            .expect("the log can be written");
    }
}

/// An event, when it was noted, and in which process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Noted {
    pub(crate) at: u64,
    pub(crate) process: usize,
    pub(crate) event: Event,
}

/// Reads the log of a process.
pub(crate) fn read(path: &Path, process: usize) -> Vec<Noted> {
    // A process that was killed may not have begun it, and may have left half a line.
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let noted = whole.lines().filter_map(|line| {
        let (at, event) = line.split_once(' ')?;
        Some(Noted {
            at: at.parse().ok()?,
            process,
            event: Event::parse(event)?,
        })
    });
    noted.collect()
}

/// The events of all processes, in order of their times.
#[derive(Debug)]
pub(crate) struct Story(Vec<Noted>);

impl Story {
    pub(crate) fn new(mut events: Vec<Noted>) -> Story {
        events.sort_by_key(|it| it.at);
        Story(events)
    }

    /// The ids that were assigned, each with when.
    fn inserted(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().filter_map(|it| match it.event {
            Event::Inserted { id } => Some((it.at, id)),
            _ => None,
        })
    }

    /// The number of timers whose handlers have not returned, without those that were inserted within this period.
    pub(crate) fn lost(&self, may_be_lost: &Range<u64>) -> usize {
        let ended = self.0.iter().filter_map(|it| match it.event {
            Event::Ends { id, .. } => Some(id),
            _ => None,
        });
        let ended: BTreeSet<u64> = ended.collect();
        let lost = self
            .inserted()
            .filter(|(at, id)| !may_be_lost.contains(at) && !ended.contains(id));
        lost.count()
    }

    /// The number of ids that were assigned to several timers.
    pub(crate) fn assigned_twice(&self) -> usize {
        let ids: BTreeSet<u64> = self.inserted().map(|(_, id)| id).collect();
        self.inserted().count() - ids.len()
    }

    /// The calls of handlers.
    fn begins(&self) -> impl Iterator<Item = (Noted, u64, SystemTime)> {
        self.0.iter().filter_map(|it| match it.event {
            Event::Begins { id, due, .. } => Some((*it, id, due)),
            _ => None,
        })
    }

    /// The number of calls before their due time, without those that were noted within one of these periods.
    pub(crate) fn early(&self, except: &[Range<u64>]) -> usize {
        let early = self.begins().filter(|(it, _, due)| {
            it.at < micros(*due) && !except.iter().any(|period| period.contains(&it.at))
        });
        early.count()
    }

    /// The timers that were delivered more than once, with their calls.
    pub(crate) fn twice(&self) -> Vec<(u64, Vec<Noted>)> {
        let mut calls: BTreeMap<u64, Vec<Noted>> = BTreeMap::new();
        for (noted, id, _) in self.begins() {
            calls.entry(id).or_default().push(noted);
        }
        calls.into_iter().filter(|(_, it)| it.len() > 1).collect()
    }

    /// When a delivery of a timer ended in a process.
    pub(crate) fn ended(&self, of: u64, process: usize) -> Option<u64> {
        self.0.iter().find_map(|it| match it.event {
            Event::Ends { id, .. } if id == of && it.process == process => Some(it.at),
            _ => None,
        })
    }

    /// How long no delivery began about the time when the timers changed hands, in milliseconds.
    pub(crate) fn pause(&self, from: usize, to: usize) -> Option<f64> {
        let last = self.begins().filter(|(it, ..)| it.process == from);
        let last = last.map(|(it, ..)| it.at).max()?;
        let first = self.begins().filter(|(it, ..)| it.process == to);
        let first = first.map(|(it, ..)| it.at).min()?;
        Some(first.saturating_sub(last) as f64 / 1_000.0)
    }

    /// The longest time in which no delivery began in a process, among those that include a time from then on, in milliseconds.
    pub(crate) fn longest_gap(&self, process: usize, from: u64) -> Option<f64> {
        let begins = self.begins().filter(|(it, ..)| it.process == process);
        let begins: Vec<u64> = begins.map(|(it, ..)| it.at).collect();
        let gaps = begins.windows(2).filter(|pair| pair[1] >= from);
        let longest = gaps.map(|pair| pair[1] - pair[0]).max()?;
        Some(longest as f64 / 1_000.0)
    }

    /// When the first delivery began from this time on, in any process.
    pub(crate) fn first_begin(&self, from: u64) -> Option<u64> {
        self.begins().map(|(it, ..)| it.at).find(|at| *at >= from)
    }

    /// The number of calls in a process from this time on.
    pub(crate) fn begins_from(&self, process: usize, at: u64) -> usize {
        let begins = self.begins();
        begins
            .filter(|(it, ..)| it.process == process && it.at >= at)
            .count()
    }

    /// The handlers that ran more often at a time than they may, in all processes together.
    pub(crate) fn over_limit(&self) -> Vec<(&'static str, i64)> {
        let mut most = Vec::new();
        for (name, _, limit) in HANDLERS {
            let (mut running, mut highest) = (0, 0);
            for noted in &self.0 {
                match noted.event {
                    Event::Begins { handler, .. } if handler == name => running += 1,
                    Event::Ends { handler, .. } if handler == name => running -= 1,
                    _ => {}
                }
                highest = highest.max(running);
            }
            if highest > i64::try_from(limit).unwrap_or(i64::MAX) {
                most.push((name, highest));
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(at: u64, process: usize, id: u64, handler: &'static str) -> Noted {
        let due = UNIX_EPOCH + Duration::from_micros(10);
        let event = Event::Begins { id, handler, due };
        Noted { at, process, event }
    }

    fn noted(at: u64, event: Event) -> Noted {
        let process = 0;
        Noted { at, process, event }
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let due = UNIX_EPOCH + Duration::from_micros(5);
        let (id, handler) = (7, "long");
        let events = [
            Event::Opens,
            Event::Fails,
            Event::Inserted { id },
            Event::Begins { id, handler, due },
            Event::Ends { id, handler },
            Event::Ended { abandoned: 3 },
        ];
        let log = Writer::open(&path).unwrap();
        events.iter().for_each(|event| log.write(event));
        // Killed in the middle of a line.
        fs::write(&path, fs::read_to_string(&path).unwrap() + "12 ends 7 lo").unwrap();
        let read = read(&path, 1);
        assert_eq!(read.len(), events.len());
        for (read, written) in read.iter().zip(events) {
            assert_eq!(read.event.to_words(), written.to_words());
            assert!(read.at > 0 && read.process == 1);
        }
    }

    #[test]
    fn a_story_shows_what_is_wrong() {
        let handler = "long";
        let ends = |at, id| noted(at, Event::Ends { id, handler });
        let mut events = vec![
            noted(1, Event::Inserted { id: 1 }),
            noted(1, Event::Inserted { id: 2 }),
            begins(9, 0, 1, handler),
            ends(30, 1),
            begins(3_040, 1, 1, handler),
            ends(3_050, 1),
        ];
        let story = Story::new(events.clone());
        assert_eq!((story.lost(&(0..0)), story.lost(&(1..2))), (1, 0));
        assert_eq!((story.early(&[]), story.early(&[0..1, 9..10])), (1, 0));
        assert_eq!(story.assigned_twice(), 0);
        let twice = story.twice();
        assert_eq!((twice.len(), twice[0].0, twice[0].1.len()), (1, 1, 2));
        assert_eq!(story.ended(1, 0), Some(30));
        assert_eq!(story.ended(1, 1), None);
        assert_eq!(story.pause(0, 1), Some(3.031));
        assert_eq!(story.pause(1, 2), None);
        assert_eq!(story.first_begin(10), Some(3_040));
        assert_eq!(story.longest_gap(0, 0), None);
        assert_eq!(
            (story.begins_from(1, 3_040), story.begins_from(1, 3_041)),
            (1, 0)
        );
        assert_eq!(story.over_limit(), []);
        events.push(noted(2, Event::Inserted { id: 2 }));
        events.extend((10..19).map(|id| begins(id, 0, id, handler)));
        let story = Story::new(events);
        assert_eq!(story.over_limit(), [(handler, 10)]);
        assert_eq!(story.assigned_twice(), 1);
        assert_eq!(story.longest_gap(0, 0), Some(0.001));
        assert_eq!(story.longest_gap(0, 19), None);
    }
}
