//! Commands from other processes, and what they are answered.

use super::*;

/// Passes a command to the engine, and returns its answer.
fn answer_to(it: &mut Subject, number: u64, command: Command) -> Arc<str> {
    it.engine.handle_command(number, command);
    it.follow();
    loop {
        let mut steps = it.next_commit().into_iter();
        let answer = steps.find_map(|step| match step {
            Op::Reply(of, answer) if of == number => Some(answer),
            _ => None,
        });
        if let Some(answer) = answer {
            it.settle();
            return answer;
        }
    }
}

#[test]
fn a_command_inserts_and_moves_timers() {
    let mut it = Subject::new(Config::default()).handles(1);
    let at = |millis: i64| Due::from_millis(NOW + millis);
    let key = Some(Arc::from(*b"order"));
    let new = |handler: &str| {
        let payload = Arc::from(*b"hello");
        new_row(handler.into(), at(90_000_000), key.clone(), payload)
    };
    let answer = answer_to(&mut it, 1, Command::Insert(new("mail")));
    let handle = answer.strip_prefix(Command::INSERTED).unwrap();
    let handle: Handle = handle.parse().unwrap();
    let stored = it.store.get(&handle).unwrap().unwrap();
    assert_eq!((&stored.key, &*stored.payload), (&key, &b"hello"[..]));
    let again = answer_to(&mut it, 2, Command::Insert(new("mail")));
    assert_eq!(*again, *format!("another timer has the key: {handle}"));
    let unknown = answer_to(&mut it, 3, Command::Insert(new("shop/mail")));
    assert_eq!(&*unknown, "there is no namespace \"shop\"");
    assert_eq!(it.store.len(), 1);

    let sooner = Command::Reschedule(handle.clone(), at(60_000));
    assert_eq!(&*answer_to(&mut it, 4, sooner), Command::DONE);
    assert_eq!(it.store.get(&handle).unwrap().unwrap().due, at(60_000));
    it.advance(SECOND);
    assert!(it.delivered.is_empty());
    let now = it.engine.now();
    let run_now = || Command::RunNow(handle.clone());
    assert_eq!(&*answer_to(&mut it, 5, run_now()), Command::DONE);
    it.run_until(now.boot_micros);
    assert_eq!(it.delivered.len(), 1);
    assert_eq!(it.delivered[0].due, now.due());
    assert_eq!(&*answer_to(&mut it, 6, run_now()), Command::FIRED);
    it.end_all(&Ended::Well);
    let later = Command::Reschedule(handle, at(90_000));
    assert_eq!(&*answer_to(&mut it, 7, later), Command::GONE);
    assert_eq!(it.store.len(), 0);
}

#[test]
fn a_command_replaces_the_policy_of_a_known_namespace() {
    let mut it = Subject::new(Config::default());
    it.namespace("shop", &Policy::default().priority(3));
    let policy = Policy::default().insert_rate(Rate::per_minute(1));
    let set = |name: &str, before: Policy| {
        Command::Policy(Box::new(PolicyChange {
            namespace: name.into(),
            before,
            policy: policy.clone(),
        }))
    };
    let seen = || Policy::default().priority(3);
    let done = answer_to(&mut it, 1, set("shop", seen()));
    assert_eq!(&*done, Command::DONE);
    assert_eq!(it.of("shop").policy, policy);
    // It is another one by now.
    it.set_policy("shop", &policy.clone().priority(9));
    let changed = answer_to(&mut it, 6, set("shop", policy.clone()));
    assert_eq!(&*changed, Command::POLICY_CHANGED);
    assert_eq!(it.of("shop").policy, policy.clone().priority(9));
    let unknown = answer_to(&mut it, 2, set("shopp", Policy::default()));
    assert_eq!(&*unknown, "there is no namespace \"shopp\"");
    assert!(it.engine.namespaces().get("shopp").is_none());
    // The default namespace is always known.
    let done = answer_to(&mut it, 3, set(DEFAULT, Policy::default()));
    assert_eq!(&*done, Command::DONE);
    let row = |handler: &str| new_row(handler.into(), Due::from_millis(NOW), None, Arc::from([]));
    let first = answer_to(&mut it, 4, Command::Insert(row("shop/mail")));
    assert!(first.starts_with(Command::INSERTED), "{first}");
    let second = answer_to(&mut it, 5, Command::Insert(row("shop/mail")));
    assert!(second.contains("has used up its quota"), "{second}");
}
