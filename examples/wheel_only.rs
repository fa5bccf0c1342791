//! The wheel alone, without tokio: a game loop that passes its own time to the wheel.
//!
//! ```text
//! cargo run --example wheel_only
//! ```

use waterwheel::wheel::{Resolution, Tick, Ticks, Wheel};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Wave(u32),
    ShieldEnds,
    PoisonKills,
}

const FRAME: Ticks = Ticks::new(16);
const BETWEEN_WAVES: Ticks = Ticks::new(400);

fn main() {
    // A tick is a millisecond of game time, which stands still while the game is paused.
    let mut wheel = Wheel::new(Resolution::MILLISECOND);
    wheel.insert(Tick::new(100), Event::Wave(1));
    wheel.insert(Tick::new(650), Event::ShieldEnds);
    let poison = wheel.insert(Tick::new(900), Event::PoisonKills);

    let mut now = Tick::ZERO;
    let mut log = Vec::new();
    while now < Tick::new(1_200) {
        now = now.saturating_add(FRAME);
        // The events that are due in this frame, in order. A timer between two frames waits for the second.
        let due: Vec<_> = wheel.expire(now, usize::MAX).collect();
        for (_key, deadline, event) in due {
            assert!(deadline <= now && now.saturating_since(deadline) < FRAME);
            println!("{now:>5} ms: {event:?}, due at {deadline}");
            log.push(event);
            match event {
                // The next wave counts from the deadline, so that the waves do not drift by the frames.
                Event::Wave(n) => {
                    wheel.insert(deadline.saturating_add(BETWEEN_WAVES), Event::Wave(n + 1));
                }
                Event::ShieldEnds => {
                    // The player drinks the antidote.
                    assert_eq!(wheel.cancel(poison), Some(Event::PoisonKills));
                }
                Event::PoisonKills => unreachable!("it was cancelled"),
            }
        }
    }
    let [first, second, third] = [1, 2, 3].map(Event::Wave);
    assert_eq!(log, [first, second, Event::ShieldEnds, third]);

    // The next event, and how long the game may sleep until then.
    let (_, deadline, next) = wheel.peek().expect("there is always a next wave");
    assert_eq!((deadline, *next), (Tick::new(1_300), Event::Wave(4)));
    let wait = deadline.saturating_since(now);
    println!(
        "{now:>5} ms: {next:?} in {wait} ms, and {} pending",
        wheel.len()
    );
    assert!(wheel.next_expiration() <= Some(deadline));
}
