//! The rooms of `src`, and the imports between them, which point one way. `schedule` has those of the scheduler.

mod circles;
mod crates;
mod durable;
mod house;
mod imports;
mod schedule;

use std::fs;

use house::House;
use imports::{Import, Sources, circles};

const HOUSE: House = House {
    sources: "src",
    rooms: ROOMS,
    nested: &["driver", "integration"],
    lower: "Hand in what the lower room needs, as `Shard::arm` is handed `spawn_catch_up`; or, if the arrow is right, enter it in `ROOMS` \
            here and in ARCHITECTURE.md, \"Dependencies\".",
};

/// The rooms, each with those that it may import from. A folder is a room, a file in `src` is one, and so is each file and
/// folder of `driver` and `integration`. A room that is missing here fails the test, so that a new one has to say where it stands.
const ROOMS: &[(&str, &[&str])] = &[
    ("sync", &[]),
    ("wheel", &[]),
    ("error", &["wheel"]),
    ("clock", &["wheel", "error", "sync"]),
    // The driver, from the ground up.
    ("driver/metrics", &[]),
    ("driver/snapshot", &["wheel"]),
    ("driver/instances", &[]),
    ("driver/host", &["clock"]),
    ("driver/lifecycle", &["error", "sync", "driver/host"]),
    ("driver/wakeup", &["wheel", "clock", "sync", "driver/host"]),
    (
        "driver/shard",
        &[
            "wheel",
            "clock",
            "sync",
            "driver/lifecycle",
            "driver/metrics",
            "driver/snapshot",
            "driver/wakeup",
        ],
    ),
    (
        "driver/drain",
        &["sync", "driver/lifecycle", "driver/shard", "driver/wakeup"],
    ),
    (
        "driver/ending",
        &[
            "sync",
            "driver/host",
            "driver/lifecycle",
            "driver/shard",
            "driver/drain",
            "driver/wakeup",
        ],
    ),
    (
        "driver/turn",
        &[
            "wheel",
            "clock",
            "sync",
            "driver/ending",
            "driver/host",
            "driver/lifecycle",
            "driver/metrics",
            "driver/shard",
            "driver/wakeup",
        ],
    ),
    (
        "driver/core",
        &[
            "wheel",
            "clock",
            "error",
            "driver/host",
            "driver/instances",
            "driver/lifecycle",
            "driver/shard",
            "driver/turn",
            "driver/wakeup",
        ],
    ),
    (
        "driver/timer",
        &[
            "wheel",
            "clock",
            "error",
            "driver/core",
            "driver/drain",
            "driver/lifecycle",
            "driver/metrics",
            "driver/shard",
            "driver/snapshot",
            "driver/drain",
        ],
    ),
    (
        "driver/current",
        &[
            "driver/core",
            "driver/host",
            "driver/lifecycle",
            "driver/shard",
            "driver/timer",
        ],
    ),
    (
        "driver/builder",
        &[
            "wheel",
            "clock",
            "error",
            "driver/core",
            "driver/host",
            "driver/instances",
            "driver/timer",
            "driver/wakeup",
        ],
    ),
    // The part of the room that others see.
    ("driver", &[]),
    (
        "time",
        &[
            "wheel",
            "clock",
            "error",
            "driver",
            "driver/current",
            "driver/lifecycle",
            "driver/shard",
            "driver/timer",
            "driver/turn",
        ],
    ),
    ("clocks", &["sync"]),
    ("ext", &["error", "time"]),
    (
        "rpc",
        &[
            "sync",
            "wheel",
            "error",
            "driver/lifecycle",
            "driver/timer",
            "time",
        ],
    ),
    // Adapters to other crates' traits, one per feature.
    ("integration/hyper", &["driver/timer", "time"]),
    (
        "integration/tower",
        &["error", "driver/timer", "time", "rpc"],
    ),
    ("integration", &[]),
    (
        "delay_queue",
        &["wheel", "clock", "error", "sync", "driver/timer", "time"],
    ),
    (
        "callback",
        &[
            "wheel",
            "clock",
            "error",
            "sync",
            "driver/host",
            "driver/lifecycle",
            "driver/timer",
            "time",
        ],
    ),
    ("lib", &[]),
    // Pages, and no code.
    ("_documentation", &[]),
    // Shared by the tests of the rooms.
    ("tests", &["clock", "wheel"]),
];

/// The only names that the wheel may import from elsewhere. It is handed the time: no clock, no thread, no lock, no future.
const IN_THE_WHEEL: &[&str] = &[
    "std::fmt",
    "std::iter",
    "std::mem",
    "std::num",
    "std::ops::Range",
    "std::time::Duration",
    "slab",
];

/// Names that it must not use by a path either.
const NOT_IN_THE_WHEEL: &[&str] = &[
    "tokio",
    "Instant",
    "SystemTime",
    "Waker",
    "std::thread",
    "std::sync",
];

#[test]
fn the_arrows_between_the_rooms_point_one_way() {
    HOUSE.assert_one_way();
}

#[test]
fn the_table_of_rooms_itself_has_no_way_back() {
    HOUSE.assert_ordered();
}

#[test]
fn an_arrow_that_is_turned_round_is_found() {
    let imports = sources().imports();
    let arrow = imports.iter().find(|it| {
        HOUSE.room_of(&it.from) == "driver/turn" && HOUSE.room_of(&it.to) == "driver/shard"
    });
    let arrow = arrow.expect("a turn knows its shard").clone();
    let mut turned = imports.clone();
    turned.insert(Import {
        from: arrow.to.clone(),
        to: arrow.from.clone(),
        name: "planted".to_owned(),
    });
    assert!(
        HOUSE
            .wrong_arrows(&turned)
            .iter()
            .any(|it| it.contains("planted"))
    );
    assert!(circles(&turned).iter().any(|circle| circle.len() > 2));
}

#[test]
fn each_form_of_an_import_is_seen() {
    for form in [
        "use crate::up::Up;",
        "use super::up::Up;",
        "use self::super::up::Up;",
        "use super::up::{\nself,\nUp as Other,\n};",
        "use super::up::*;",
        "use crate::up;\nfn f() -> up::Up { up::Up }",
        "fn f() -> crate::up::Up { crate::up::Up } // no use of it",
        "fn f() { super::up::file::go() }",
        "#[cfg(test)]\nuse std::fmt;\nuse crate::up::Up;",
        "pub(super) use super::up::Up;",
        "mod inner;\npub use inner::Inner;\nuse super::up::Up;",
    ] {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let sources = Sources::of([
            file("lib.rs", "mod down;\nmod up;"),
            file("down/mod.rs", form),
            file("down/inner.rs", "pub struct Inner;"),
            file("up/mod.rs", "mod file;\npub use file::Up;"),
            file("up/file.rs", "pub struct Up;\npub fn go() {}"),
        ]);
        let imports = sources.imports();
        let is_seen = imports
            .iter()
            .any(|it| it.from == "down/mod.rs" && it.to.starts_with("up/"));
        assert!(is_seen, "{form}: {imports:?}");
    }
}

#[test]
fn no_import_circle_has_more_than_two_files() {
    let imports = sources().imports();
    for circle in circles(&imports) {
        let inside = imports
            .iter()
            .filter(|it| circle.contains(it.from.as_str()) && circle.contains(it.to.as_str()));
        let arrows: Vec<_> = inside.collect();
        assert!(circle.len() <= 2, "{circle:?}, by {arrows:#?}");
    }
    // This shows that the test would see cycles.
    for pair in [
        ["driver/shard/list.rs", "driver/shard/mod.rs"],
        ["driver/wakeup/mod.rs", "driver/wakeup/watchdog.rs"],
    ] {
        assert!(circles(&imports).contains(&pair.into()), "{pair:?}");
    }
}

#[test]
fn the_wheel_knows_no_clock_no_thread_and_no_future() {
    let sources = sources();
    for (file, name) in sources.foreign("wheel/") {
        let is_known = IN_THE_WHEEL
            .iter()
            .any(|it| name == *it || name.starts_with(&format!("{it}::")));
        assert!(is_known, "{file} takes {name}");
    }
    for (file, code) in sources.code().filter(|it| it.0.starts_with("wheel/")) {
        for word in NOT_IN_THE_WHEEL {
            assert!(!code.contains(word), "{file} names {word}");
        }
    }
}

#[test]
fn no_file_allows_unsafe_code() {
    let lib = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    assert!(lib.contains("#![forbid(unsafe_code)]"));
}

// In a virtual machine such a clock lags by more than `clock_getres` says, and timers would be early.
#[test]
fn no_file_reads_a_coarse_clock() {
    for (file, code) in sources().code() {
        for name in ["MonotonicCoarse", "RealtimeCoarse"] {
            assert!(!code.contains(name), "{file} reads {name}");
        }
    }
}

fn sources() -> Sources {
    HOUSE.sources()
}
