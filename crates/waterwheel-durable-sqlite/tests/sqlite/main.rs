//! A store in a SQLite file, as its users and its operators see it.
//!
//! | file | question |
//! |---|---|
//! | `conformance` | does it pass the suite of all stores? |
//! | `open`, `refusals` | which files are opened, what is said of one that is refused, and is that left as it was? |
//! | `acknowledged` | is acknowledged work that is gone noticed? |
//! | `migration` | is a file of an older version brought up to date, whatever happens meanwhile? |
//! | `faults`, `damage` | what is said of a disk that fails and of a damaged file, and what is there afterwards? |
//! | `space`, `full` | what is refused on a full disk, and what goes on? |
//! | `growth` | how long is the file, once timers have come and gone? |
//! | `reader`, `check`, `backup` | what is read, found and copied beside a process, and without one? |
//! | `commands` | is a command from another process carried out once, or not at all? |

mod acknowledged;
mod backup;
mod check;
mod commands;
mod conformance;
mod damage;
mod faults;
mod faulty_disk;
mod folder;
mod full;
mod growth;
mod migration;
mod open;
mod reader;
mod refusals;
mod rows;
mod space;
