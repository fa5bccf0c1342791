//! Is a command from another process carried out once, or not at all, and do both sides know which?

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rusqlite::Connection;
use waterwheel_durable_core::store::{Command, Op, Outcome, Store};
use waterwheel_durable_sqlite::{
    CommandResult, OpenError, Reader, SendError, SqliteStore, backup, send_commands,
};

use crate::folder::*;
use crate::rows::*;

/// Longer than any test waits for an event.
const LONG: Duration = Duration::from_secs(60);

fn pause(namespace: &str) -> Command {
    Command::Pause(namespace.into())
}

/// Waits for commands, as the store's thread does.
fn wait_for(store: &mut SqliteStore, count: usize) -> Vec<(u64, Command)> {
    let started = Instant::now();
    loop {
        let commands = store.commands().unwrap();
        if commands.len() >= count {
            return commands;
        }
        assert!(started.elapsed() < LONG, "no command comes");
        thread::sleep(Duration::from_millis(1));
    }
}

fn rows_of_commands(path: &Path) -> i64 {
    query(path, "SELECT count(*) FROM commands")
}

/// Puts a command into the file as another process does. It expires after `until` milliseconds.
fn put(path: &Path, body: &str, until: i64) {
    let until = format!("unixepoch() * 1000 + {until}");
    let put = format!("INSERT INTO commands (body, until) VALUES ('{body}', {until})");
    execute(path, &put);
}

fn send(path: &Path, commands: &[Command]) -> Vec<CommandResult> {
    send_commands(path, commands, LONG).unwrap()
}

#[test]
fn a_command_to_a_file_that_is_empty_leaves_its_wal() {
    let (folder, _, mut store) = new_store();
    insert_one(&mut store, 1, row(1, "mail", 5_000));
    // As after a crash, with a file that was truncated.
    let (alone, wal) = (folder.file("alone.db"), folder.file("alone.db-wal"));
    fs::copy(folder.file("timers.db-wal"), &wal).unwrap();
    fs::write(&alone, "").unwrap();
    let length = fs::metadata(&wal).unwrap().len();
    assert!(length > 0);
    let results = send_commands(&alone, &[pause("shop")], Duration::ZERO);
    assert!(
        matches!(results, Err(SendError::Open(OpenError::Corrupt(_)))),
        "{results:?}"
    );
    assert_eq!(fs::metadata(&wal).unwrap().len(), length);
}

#[test]
fn a_command_is_answered_by_the_commit_that_carries_it_out() {
    let (_folder, path, mut store) = new_store();
    assert!(store.commands_every().is_some());
    let timer = row(1, "mail", 5_000);
    store.commit(1, &[insert_second(timer.clone())]).unwrap();
    let commands = [Command::Cancel(timer.handle()), pause("shop")];
    let results = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&path, &commands));
        let taken = wait_for(&mut store, 2);
        assert!(taken.iter().map(|it| &it.1).eq(&commands), "{taken:?}");
        assert!(!sending.is_finished());
        let first = [
            Op::Cancel(timer.handle()),
            Op::Reply(taken[0].0, "done".into()),
        ];
        let outcomes = store.commit(2, &first).unwrap();
        assert_eq!(outcomes, [Outcome::Cancelled(true), Outcome::Done]);
        assert_eq!(store.commands().unwrap(), taken[1..]);
        let second = Op::Reply(taken[1].0, "there is no namespace shop".into());
        store.commit(3, &[Op::All(vec![second])]).unwrap();
        assert_eq!(store.commands().unwrap(), []);
        sending.join().unwrap()
    });
    let answers = ["done", "there is no namespace shop"];
    let answers = answers.map(|it| CommandResult::Answered(it.into()));
    assert_eq!(results, answers);
    assert_eq!(rows_of_commands(&path), 0);
    assert_eq!(store.commands().unwrap(), []);
}

/// More commands than the 500 that one transaction writes.
fn many() -> Vec<Command> {
    (0..1_200).map(|it| pause(&it.to_string())).collect()
}

/// Answers the next commands, each with its own name.
fn answer(store: &mut SqliteStore, commit: u64, count: usize) {
    let taken = wait_for(store, count);
    let replies = taken.into_iter().map(|(number, command)| {
        let words = command.to_string();
        Op::Reply(number, words.into())
    });
    let replies: Vec<_> = replies.collect();
    // Another connection may have the file locked for a moment.
    while let Err(error) = store.commit(commit, &replies) {
        assert!(error.is_definite(), "{error:?}");
    }
}

/// Sends commands, answers all that arrive, and returns the results.
fn sent_and_answered(
    path: &Path,
    store: &mut SqliteStore,
    commands: &[Command],
) -> Vec<CommandResult> {
    thread::scope(|scope| {
        let sending = scope.spawn(|| send(path, commands));
        let mut commit = 0;
        while !sending.is_finished() {
            commit += 1;
            if !store.commands().unwrap_or_default().is_empty() {
                answer(store, commit, 1);
            }
            thread::sleep(Duration::from_millis(1));
        }
        sending.join().unwrap()
    })
}

fn answers(commands: &[Command]) -> Vec<CommandResult> {
    let answers = commands.iter().map(|it| it.to_string().into());
    answers.map(CommandResult::Answered).collect()
}

#[test]
fn some_thousand_commands_are_written_by_several_transactions() {
    let (_folder, path, mut store) = new_store();
    let commands = many();
    let results = sent_and_answered(&path, &mut store, &commands);
    assert!(results == answers(&commands));
    assert_eq!(rows_of_commands(&path), 0);
    // Only the first 500 can be written.
    let other = Connection::open(&path).unwrap();
    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON commands
        WHEN (SELECT count(*) FROM commands) >= 700 BEGIN SELECT RAISE(ABORT, 'no'); END";
    other.execute_batch(refuse).unwrap();
    let (results, late) = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&path, &commands));
        let late = wait_for(&mut store, 500).len();
        answer(&mut store, 10_000, 500);
        (sending.join().unwrap(), late)
    });
    assert_eq!(late, 500);
    assert!(results[..500] == answers(&commands[..500]));
    let rest = vec![CommandResult::Withdrawn; 700];
    assert!(results[500..] == rest);
    assert_eq!((results.len(), rows_of_commands(&path)), (1_200, 0));
    // If the answers cannot be read to the end, nothing is known of the rest.
    let refuse = "DROP TRIGGER refuse; CREATE TRIGGER refuse BEFORE DELETE ON commands
        WHEN (SELECT count(*) FROM commands) <= 600 BEGIN SELECT RAISE(ABORT, 'no'); END";
    other.execute_batch(refuse).unwrap();
    let results = sent_and_answered(&path, &mut store, &commands);
    assert!(results[..500] == answers(&commands[..500]));
    let rest = vec![CommandResult::Unknown; 700];
    assert!(results[500..] == rest);
    assert_eq!((results.len(), rows_of_commands(&path)), (1_200, 700));
}

#[test]
fn a_command_of_another_sender_is_not_waited_for() {
    let (_folder, path, mut store) = new_store();
    // The command is too old to be taken, and its number is among the others.
    let put_one = "CREATE TRIGGER put AFTER INSERT ON commands WHEN new.number = 300 BEGIN
        INSERT INTO commands (body, until) VALUES ('pause other', unixepoch() * 1000 - 60000); END";
    execute(&path, put_one);
    let started = Instant::now();
    let commands = many();
    let results = sent_and_answered(&path, &mut store, &commands);
    assert!(results == answers(&commands));
    assert!(started.elapsed() < LONG);
    assert_eq!(rows_of_commands(&path), 1);
}

#[test]
fn what_is_withdrawn_is_not_carried_out_later() {
    let (_folder, path, mut store) = new_store();
    let results = send_commands(&path, &[pause("shop")], Duration::from_millis(30)).unwrap();
    assert_eq!(results, [CommandResult::Withdrawn]);
    assert_eq!(store.commands().unwrap(), []);
    assert_eq!(rows_of_commands(&path), 0);
}

#[test]
fn of_a_withdrawal_and_a_store_that_takes_one_wins() {
    let (_folder, path, mut store) = new_store();
    let rounds = 300;
    let timers: Vec<_> = (0..rounds).map(|it| row(it, "mail", 5_000)).collect();
    let started = Instant::now();
    store.commit(1, &insert_all(&timers)).unwrap();
    let commit = u64::try_from(started.elapsed().as_micros()).unwrap();
    let is_over = AtomicBool::new(false);
    let results: Vec<CommandResult> = thread::scope(|scope| {
        scope.spawn(|| {
            let mut commit = 1;
            while !is_over.load(Ordering::Relaxed) {
                // Another connection may have the file locked for a moment.
                let commands = store.commands().unwrap_or_default();
                for (number, command) in commands {
                    let Command::Cancel(handle) = command else {
                        unreachable!("{command}");
                    };
                    let steps = [Op::Cancel(handle), Op::Reply(number, "done".into())];
                    commit += 1;
                    // A refused answer is still to be given.
                    if let Err(error) = store.commit(commit, &steps) {
                        assert!(error.is_definite(), "{error:?}");
                    }
                }
            }
        });
        let mut rng = Rng::with_seed(9);
        let results = timers.iter().map(|timer| {
            let within = Duration::from_micros(rng.u64(0..4_000 + 4 * commit));
            let results = send_commands(&path, &[Command::Cancel(timer.handle())], within);
            results.map_or(CommandResult::Withdrawn, |mut results| results.remove(0))
        });
        let results = results.collect();
        is_over.store(true, Ordering::Relaxed);
        results
    });
    let left: Vec<_> = load(&mut store, "mail").iter().map(|it| it.id).collect();
    let (mut done, mut withdrawn) = (0, 0);
    for (timer, results) in timers.iter().zip(results) {
        match results {
            CommandResult::Answered(_) => {
                done += 1;
                assert!(!left.contains(&timer.id), "{} is there", timer.id);
            }
            CommandResult::Withdrawn => {
                withdrawn += 1;
                assert!(left.contains(&timer.id), "{} is gone", timer.id);
            }
            CommandResult::Unknown => {}
        }
    }
    println!("{done} done, {withdrawn} withdrawn of {rounds}");
    assert!(
        done > 0 && withdrawn > 0,
        "{done} done, {withdrawn} withdrawn"
    );
}

#[test]
fn what_is_taken_is_not_withdrawn() {
    let (_folder, path, mut store) = new_store();
    let mut within = Duration::from_millis(300);
    let results = loop {
        let results = thread::scope(|scope| {
            let sending = scope.spawn(|| send_commands(&path, &[pause("shop")], within).unwrap());
            while !sending.is_finished() && store.commands().unwrap().is_empty() {
                thread::sleep(Duration::from_millis(1));
            }
            sending.join().unwrap()
        });
        // The command was withdrawn before this thread could take it: the machine is slow.
        if results != [CommandResult::Withdrawn] {
            break results;
        }
        within *= 4;
        assert!(within < LONG);
    };
    assert_eq!(results, [CommandResult::Unknown]);
    // The command is still to be answered.
    assert_eq!(store.commands().unwrap().len(), 1);
}

#[test]
fn what_has_waited_too_long_is_never_taken() {
    let (_folder, path, mut store) = new_store();
    // The sender has ended before it could withdraw the command.
    for age in [1_000, 7_200_000] {
        put(&path, "pause shop", -age);
        assert_eq!(store.commands().unwrap(), []);
    }
    // Commands older than an hour are deleted with the next one.
    put(&path, "pause shop", 60_000);
    assert_eq!(store.commands().unwrap().len(), 1);
    assert_eq!(rows_of_commands(&path), 2);
}

#[test]
fn what_was_taken_before_a_restart_is_not_carried_out_after_it() {
    let (_folder, path, mut store) = new_store();
    let started = Instant::now();
    let (results, store) = thread::scope(|scope| {
        let path = &path;
        let mut taken = 0;
        let sending = [pause("one"), pause("two")].map(|command| {
            let one = scope.spawn(move || send(path, &[command]));
            taken += 1;
            wait_for(&mut store, taken);
            one
        });
        drop(store);
        let mut store = begun(path);
        assert_eq!(store.commands().unwrap(), []);
        (sending.map(|it| it.join().unwrap()), store)
    });
    assert_eq!(
        results,
        [[CommandResult::Unknown], [CommandResult::Unknown]]
    );
    // The senders have not waited for an answer that cannot come.
    assert!(started.elapsed() < LONG);
    // A command that was not taken is.
    put(&path, "pause three", 60_000);
    drop(store);
    let mut store = begun(&path);
    assert_eq!(store.commands().unwrap()[0].1, pause("three"));
}

#[test]
fn a_command_is_withdrawn_once_no_process_has_the_file() {
    let folder = Folder::new();
    let path = folder.file("timers.db");
    let started = Instant::now();
    let store = begun(&path);
    let results = thread::scope(|scope| {
        let sending = scope.spawn(|| send(&path, &[pause("shop")]));
        while rows_of_commands(&path) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        drop(store);
        sending.join().unwrap()
    });
    assert_eq!(results, [CommandResult::Withdrawn]);
    assert!(started.elapsed() < LONG);
    assert_eq!(rows_of_commands(&path), 0);
}

#[test]
fn a_store_that_is_asked_for_no_commands_writes_nothing() {
    let (folder, path, mut store) = new_store();
    insert_one(&mut store, 1, row(1, "mail", 5));
    assert_eq!(store.commands().unwrap(), []);
    let wal = || fs::read(folder.file("timers.db-wal")).unwrap();
    let before = wal();
    for _ in 0..100 {
        assert_eq!(store.commands().unwrap(), []);
    }
    assert!(wal() == before);
    // Nor if another connection has written something else.
    let other = Connection::open(&path).unwrap();
    execute(&path, "INSERT INTO settings VALUES ('mine', x'07')");
    let before = wal();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(store.commands().unwrap(), []);
    assert!(wal() == before);
}

#[test]
fn a_command_that_is_refused_for_now_is_taken_later() {
    let (_folder, path, mut store) = new_store();
    put(&path, "pause shop", 60_000);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.commands().unwrap_err();
    assert!(error.is_definite(), "{error:?}");
    other.execute_batch("ROLLBACK").unwrap();
    let taken = store.commands().unwrap();
    assert_eq!(taken.len(), 1);
    // A command stays until a commit answers it.
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let reply = Op::Reply(taken[0].0, "done".into());
    store.commit(1, &[reply]).unwrap_err();
    assert_eq!(store.commands().unwrap(), taken);
}

#[test]
fn a_command_that_makes_no_sense_is_answered() {
    let (_folder, path, mut store) = new_store();
    put(&path, "dance", 60_000);
    assert_eq!(store.commands().unwrap(), []);
    let other = Connection::open(&path).unwrap();
    let answer = "SELECT answer FROM commands";
    let answer: String = other.query_row(answer, [], |row| row.get(0)).unwrap();
    assert!(answer.starts_with("the service does not know"), "{answer}");
}

#[test]
fn the_number_of_a_command_is_not_given_again() {
    let (_folder, path, mut store) = new_store();
    let mut last = 0;
    for _ in 0..3 {
        let results = thread::scope(|scope| {
            let sending = scope.spawn(|| send(&path, &[pause("shop")]));
            let number = wait_for(&mut store, 1)[0].0;
            assert!(number > last);
            // An answer to the previous command is ignored.
            let replies = [
                Op::Reply(last, "late".into()),
                Op::Reply(number, "done".into()),
            ];
            store.commit(number, &replies).unwrap();
            last = number;
            sending.join().unwrap()
        });
        assert_eq!(results, [CommandResult::Answered("done".into())]);
    }
}

#[test]
fn a_file_that_cannot_be_asked_is_refused() {
    let folder = Folder::new();
    let soon = Duration::from_millis(50);
    let commands = [pause("shop")];
    let missing = folder.file("missing.db");
    let refused = send_commands(&missing, &commands, soon).unwrap_err();
    assert!(
        matches!(refused, SendError::Open(OpenError::Io { .. })),
        "{refused:?}"
    );
    assert!(!fs::exists(&missing).unwrap());
    let text = folder.file("text");
    fs::write(&text, "Dear diary, ".repeat(1_000)).unwrap();
    let refused = send_commands(&text, &commands, soon).unwrap_err();
    assert!(matches!(refused, SendError::Open(OpenError::NotADatabase)));
    let path = folder.file("timers.db");
    let store = begun(&path);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = send_commands(&path, &commands, soon).unwrap_err();
    assert!(matches!(refused, SendError::Busy { .. }), "{refused:?}");
    other.execute_batch("ROLLBACK").unwrap();
    drop(store);
    other.pragma_update(None, "user_version", 0).unwrap();
    let refused = send_commands(&path, &commands, soon).unwrap_err();
    assert!(
        matches!(refused, SendError::Open(OpenError::Older { found: 0 })),
        "{refused:?}"
    );
}

#[test]
fn a_copy_has_no_commands() {
    let (folder, path, store) = new_store();
    let copy = folder.file("copy.db");
    put(&path, "pause shop", 60_000);
    backup(&path, &copy).unwrap();
    assert_eq!(rows_of_commands(&path), 1);
    assert_eq!(rows_of_commands(&copy), 0);
    assert_eq!(Reader::open(&copy).unwrap().settings().unwrap(), []);
    drop(store);
}
