//! The tables of the pages, row by row.

use crate::grid::{Grid, Ratio, Row};

pub(crate) const CPU: &str = "CPU a timer";
pub(crate) const P50: &str = "lateness p50";
const P99: &str = "lateness p99";
const SWITCHES: &str = "context switches a timer";
pub(crate) const OPERATION: &str = "one operation, per thread";

const TOKIO: (&str, &str) = ("`tokio::time`", "tokio");
const ALT: (&str, &str) = ("its alt timer", "tokio, alt timer");
const CURRENT: (&str, &str) = ("the runtime's", "current");
const OWN: (&str, &str) = ("own `Timer`", "own");
const THREAD: (&str, &str) = ("`Thread`", "own, thread");
const TOKIO_ONLY: (&str, &str) = ("`TokioOnly`", "own, tokio only");
const PINGORA: (&str, &str) = ("pingora", "pingora-timeout");
const FLOOR: (&str, &str) = ("floor", "floor");

const CURRENT_TIMES: Ratio<'_> = Ratio {
    head: "tokio / the runtime's",
    this: "current",
    than: "tokio",
};
const OWN_TIMES: Ratio<'_> = Ratio {
    head: "tokio / own",
    this: "own",
    than: "tokio",
};

pub(crate) const QUIET: Grid<'_> = Grid {
    corner: "timers a second",
    columns: &[TOKIO, CURRENT, OWN, THREAD, TOKIO_ONLY],
    ratios: &[CURRENT_TIMES],
    rows: &[
        row("100: CPU a timer", "rate, 100 a second", CPU),
        row("lateness p50", "rate, 100 a second", P50),
        row("lateness p99", "rate, 100 a second", P99),
        row("context switches a timer", "rate, 100 a second", SWITCHES),
        row("1000: CPU a timer", "rate, 1000 a second", CPU),
        row("lateness p50", "rate, 1000 a second", P50),
        row("lateness p99", "rate, 1000 a second", P99),
        row("context switches a timer", "rate, 1000 a second", SWITCHES),
        row("10 000: CPU a timer", "rate, 10000 a second", CPU),
        row("lateness p50", "rate, 10000 a second", P50),
        row("lateness p99", "rate, 10000 a second", P99),
        row("context switches a timer", "rate, 10000 a second", SWITCHES),
        row("100 000: CPU a timer", "rate, 100000 a second", CPU),
        row("lateness p50", "rate, 100000 a second", P50),
        row("lateness p99", "rate, 100000 a second", P99),
        row(
            "context switches a timer",
            "rate, 100000 a second",
            SWITCHES,
        ),
        row(
            "100, armed one after the other: CPU a timer",
            "rate, in turn, 100 a second",
            CPU,
        ),
        row(
            "1000, armed one after the other: CPU a timer",
            "rate, in turn, 1000 a second",
            CPU,
        ),
        row(
            "10 000, armed one after the other: CPU a timer",
            "rate, in turn, 10000 a second",
            CPU,
        ),
        row(
            "one task, sleeps of 1 to 2 ms: lateness p50",
            "rate, lone",
            P50,
        ),
        row("CPU a timer", "rate, lone", CPU),
        row(
            "one interval of a second: context switches in 10 s",
            "interval, 1 of 1000 ms",
            "context switches",
        ),
        row(
            "a million timers pending, none due: CPU of the count",
            "idle, 1000000 timers",
            "CPU",
        ),
    ],
};

pub(crate) const SERVICE: Grid<'_> = Grid {
    corner: "`rpc_timeouts`",
    columns: &[TOKIO, CURRENT],
    ratios: &[CURRENT_TIMES],
    rows: &[
        row("CPU a call", "service, rpc_timeouts", "CPU a call"),
        row("calls a second", "service, rpc_timeouts", "calls"),
        row(
            "lateness of the calls that time out, p50",
            "service, rpc_timeouts",
            P50,
        ),
        row("lateness p99", "service, rpc_timeouts", P99),
    ],
};

pub(crate) const OPERATIONS: Grid<'_> = Grid {
    corner: "on each thread",
    columns: &[TOKIO, ALT, OWN, CURRENT, PINGORA, FLOOR],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row(
            "`cancel`: arm and cancel, 1 thread",
            "cancel, 1 thread, 0 pending",
            OPERATION,
        ),
        row(
            "with 100 000 others pending, 1 thread",
            "cancel, 1 thread, 100000 pending",
            OPERATION,
        ),
        row(
            "`cancel`, 2 threads",
            "cancel, 2 threads, 0 pending",
            OPERATION,
        ),
        row(
            "with 100 000 others pending, 2 threads",
            "cancel, 2 threads, 100000 pending",
            OPERATION,
        ),
        row(
            "each in a new task, less its spawn, 2 threads",
            "cancel/fresh-task, 2 threads",
            "net of the spawn",
        ),
        row(
            "armed on one thread, cancelled on the other",
            "foreign cancel",
            OPERATION,
        ),
        row(
            "`churn`: of a million, drop the oldest and arm a new one, 1 thread",
            "churn 1000000, 1 thread",
            OPERATION,
        ),
        row("`churn`, 2 threads", "churn 1000000, 2 threads", OPERATION),
        row(
            "`timeout` of a call that is ready at its second poll, 1 thread",
            "timeout/pending, 1 thread",
            OPERATION,
        ),
        row(
            "`timeout` of a call that is ready at its second poll, 2 threads",
            "timeout/pending, 2 threads",
            OPERATION,
        ),
        row(
            "`timeout` of a call that is ready at once",
            "timeout/ready, 1 thread",
            OPERATION,
        ),
        row(
            "`postpone`: push back one of 100 000 sleeps",
            "postpone 100000",
            OPERATION,
        ),
        row("and poll it", "postpone 100000, then poll", OPERATION),
    ],
};

pub(crate) const FIRING: Grid<'_> = Grid {
    corner: "",
    columns: &[TOKIO, ALT, OWN, CURRENT, TOKIO_ONLY],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row(
            "`herd`, a million tasks asleep to one instant: longest gap of a 1 ms heartbeat",
            "herd, 1000000 tasks",
            "longest heartbeat gap",
        ),
        row("until all ran", "herd, 1000000 tasks", "until all ran"),
        row(
            "`fire`, 100 000 timers over a second: lateness p50",
            "fire, 100000 timers",
            P50,
        ),
        row("lateness p99", "fire, 100000 timers", P99),
        row("CPU a timer", "fire, 100000 timers", CPU),
        row(
            "`fire`, a million timers over a second: lateness p50",
            "fire, 1000000 timers",
            P50,
        ),
        row("lateness p99", "fire, 1000000 timers", P99),
        row("CPU a timer", "fire, 1000000 timers", CPU),
        row(
            "`interval`, 10 000 of 100 ms: CPU a tick",
            "interval, 10000 of 100 ms",
            "CPU a tick",
        ),
    ],
};

pub(crate) const CALLS: Grid<'_> = Grid {
    corner: "in-process calls a second",
    columns: &[("no time limit", "bare"), TOKIO, ALT, OWN, CURRENT, PINGORA],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row("1 client", "rpc, 1 client", "calls"),
        row("2 clients", "rpc, 2 clients", "calls"),
    ],
};

pub(crate) const WHEEL: Grid<'_> = Grid {
    corner: "a million timers",
    columns: &[
        ("due over 1 s", "over 1 s"),
        ("1 min", "over 1 min"),
        ("1 h", "over 1 h"),
        ("1 min, in turn", "over 1 min, in turn"),
    ],
    ratios: &[],
    rows: &[
        row("insert", "wheel, 1000000 timers", "insert"),
        row(
            "cancel, oldest first",
            "wheel, 1000000 timers",
            "cancel, oldest first",
        ),
        row(
            "cancel at random",
            "wheel, 1000000 timers",
            "cancel at random",
        ),
        row(
            "insert after cancels at random",
            "wheel, 1000000 timers",
            "insert after cancels at random",
        ),
        row("expire", "wheel, 1000000 timers", "expire"),
    ],
};

/// An idle deadline that each packet pushes back.
pub(crate) const IDLE: Grid<'_> = Grid {
    corner: "a packet",
    columns: &[
        ("tokio, `reset`", "tokio"),
        ("tokio, `timeout`", "tokio, timeout"),
        ("`IdleTimeout`", "own"),
        ("`set_deadline`", "own, set_deadline"),
        ("`timeout`", "own, timeout"),
        ("the packet alone", "clock read"),
    ],
    ratios: &[Ratio {
        head: "tokio, `reset` / `IdleTimeout`",
        ..OWN_TIMES
    }],
    rows: &[row("its time is read", "touch", OPERATION)],
};

/// The same, with the time of the packet known.
pub(crate) const IDLE_AT: Grid<'_> = Grid {
    corner: "a packet whose time is known",
    columns: &[
        ("tokio, `reset`", "tokio"),
        ("`IdleTimeout`", "own"),
        ("`set_deadline`", "own, set_deadline"),
        ("async-io", "async-io"),
        ("the packet alone", "packet"),
    ],
    ratios: &[Ratio {
        head: "tokio, `reset` / `IdleTimeout`",
        ..OWN_TIMES
    }],
    rows: &[
        row(
            "of a tick that has had one",
            "touch_at, tick not new",
            OPERATION,
        ),
        row("of a new tick", "touch_at, tick new", OPERATION),
    ],
};

pub(crate) const SLACK: Grid<'_> = Grid {
    corner: "",
    columns: &[
        TOKIO,
        OWN,
        ("5 % slack", "own, 5 % slack"),
        ("25 % slack", "own, 25 % slack"),
    ],
    ratios: &[
        Ratio {
            head: "own / 5 % slack",
            this: "own, 5 % slack",
            than: "own",
        },
        Ratio {
            head: "own / 25 % slack",
            this: "own, 25 % slack",
            than: "own",
        },
    ],
    rows: &[
        row(
            "a million timers over 4 s: CPU a timer",
            "slack, 1000000 timers",
            CPU,
        ),
        row("arm and cancel", "slack/cancel", OPERATION),
    ],
};

pub(crate) const QUEUE: Grid<'_> = Grid {
    corner: "an item",
    columns: &[
        ("tokio-util", "tokio-util"),
        ("`DelayQueue`", "delay queue"),
        ("many at a time", "delay queue, many"),
        ("the bare wheel", "pure wheel"),
    ],
    ratios: &[Ratio {
        head: "tokio-util / `DelayQueue`",
        this: "delay queue",
        than: "tokio-util",
    }],
    rows: &[
        row(
            "insert and remove, of 1000",
            "delay_queue, 1000 items",
            "insert + remove",
        ),
        row("of 100 000", "delay_queue, 100000 items", "insert + remove"),
        row(
            "of a million",
            "delay_queue, 1000000 items",
            "insert + remove",
        ),
        row(
            "with `insert_at`, of 1000",
            "delay_queue, 1000 items",
            "insert at + remove",
        ),
        row(
            "of 100 000",
            "delay_queue, 100000 items",
            "insert at + remove",
        ),
        row(
            "of a million",
            "delay_queue, 1000000 items",
            "insert at + remove",
        ),
        row(
            "taken when due, of 1000",
            "delay_queue, 1000 items",
            "drain one",
        ),
        row("of 100 000", "delay_queue, 100000 items", "drain one"),
        row("of a million", "delay_queue, 1000000 items", "drain one"),
    ],
};

pub(crate) const TESTS: Grid<'_> = Grid {
    corner: "a sleep of 1 ms on a paused clock: CPU",
    columns: &[TOKIO, OWN, CURRENT, ("`ManualClock`", "own, manual clock")],
    ratios: &[OWN_TIMES, CURRENT_TIMES],
    rows: &[
        row("one a `block_on`", "simulate, 1 sleep", "CPU a sleep"),
        row("50 tasks", "simulate, 50 tasks", "CPU a sleep"),
        row(
            "one a `block_on`, not optimised",
            "simulate, 1 sleep, profile dev",
            "CPU a sleep",
        ),
        row(
            "50 tasks, not optimised",
            "simulate, 50 tasks, profile dev",
            "CPU a sleep",
        ),
    ],
};

const fn row<'a>(label: &'a str, workload: &'a str, metric: &'a str) -> Row<'a> {
    Row {
        label,
        workload,
        metric,
    }
}
