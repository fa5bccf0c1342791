//! A store in a SQLite file, as its users and its operators see it.
//!
//! | file | question |
//! |---|---|
//! | `conformance` | does it pass the suite of all stores? |
//! | `open`, `refusals` | which files are opened, what does the error of a refused one say, and is that file unchanged? |
//! | `acknowledged` | is lost acknowledged work noticed? |
//! | `migration` | is a file of an older version upgraded, whatever happens meanwhile? |
//! | `faults`, `damage` | what is reported for a failing disk and a damaged file, and what is left afterwards? |
//! | `space`, `full` | what is refused on a full disk, and what continues? |
//! | `growth` | how long is the file, once timers have come and gone? |
//! | `reader`, `check`, `backup` | what is read, found and copied with and without a process that has the file open? |
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
