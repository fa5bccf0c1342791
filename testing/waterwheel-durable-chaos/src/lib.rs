//! Ends durable timers in the worst moment, and looks at what is left. Each command has a checker of its own, which shares no code with what it checks.
//!
//! | file | question |
//! |---|---|
//! | `kill` | does a file keep its promises over a hundred kills? |
//! | `clocks` | is a timer early, lost or delivered twice when the wall clock is moved? |
//! | `backup` | does a copy that is made under load keep the promises, once it is in the place of its file? |
//! | `copies` | how is a copy made beside a child, and restored? |
//! | `soak` | is a service after an hour as it was, whatever has gone wrong? |
//! | `gauge` | how much memory has a child, and how late is it, by the minute? |
//! | `disk_full` | does a service go on when its disk is full, and take inserts again? |
//! | `script` | what becomes of a child's disk, and what must be seen before the next thing is done? |
//! | `parent` | when does a child start, and when is it killed? |
//! | `child` | which handlers and callers does the process have that is killed? |
//! | `log` | what does a child say, and how is it read? |
//! | `check` | were the promises kept, by the log alone? |
//! | `file` | what is left in the file, read without the store? |
//! | `power_cut` | is each commit that was answered there after a power cut, and nothing else? |
//! | `power_cut/life` | what does the life of a seed do, and when is its power cut? |
//! | `power_cut/steps` | what is a store asked to commit? |
//! | `power_cut/tables` | what must the tables have, and what do they have? |
//! | `power_cut/archive` | what must be archived, and what is? |
//! | `keys` | which timers have business keys, by what is in the file? |
//! | `arguments` | what was asked for? |
//!
//! `cargo run --release -p waterwheel-durable-chaos -- power-cut --seeds 1000` says how to repeat a seed that fails.

pub mod arguments;
pub mod keys;
pub mod power_cut;
