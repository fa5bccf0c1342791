//! Kills durable timers at the worst moment, and checks what is left: see the README of this crate.
//!
//! | file | question |
//! |---|---|
//! | `commands` | what was requested, and which schedule of faults is that? |
//! | `schedule` | which children live, and what happens to them and to their file, in which order? |
//! | `run` | what comes of a schedule? |
//! | `parent` | when is a child started, followed and killed? |
//! | `child` | which handlers and callers does the killed process have? |
//! | `protocol` | what do parent and child say to each other? |
//! | `check` | were the promises kept, by the log alone? |
//! | `look` | what is left in the file, by plain SQL? |
//! | `copies`, `damage`, `place` | how is a file copied and restored, its WAL damaged, its disk filled? |
//! | `gauge`, `flat` | how much memory has a child and how late is it, by the minute, and is that as it was? |
//! | `power_cut` | is each answered commit there after a power cut, and nothing else? |

mod check;
mod child;
mod commands;
mod copies;
mod damage;
mod flat;
mod gauge;
mod look;
mod parent;
mod place;
mod planted;
mod power_cut;
mod protocol;
mod report;
mod run;
mod schedule;

fn main() -> std::process::ExitCode {
    commands::main()
}
