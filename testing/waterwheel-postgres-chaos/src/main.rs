//! Kills, stops and shuts down processes that share durable timers in PostgreSQL, and their server, and looks at what they have delivered.
//!
//! Each command plays rounds: one process owns the timers, another one waits, 750 timers a second are due, and something happens. It exits with 1 if a timer is
//! lost, early or delivered more often than it may, and with `--quiet-machine` if a pause is too long. The judgement depends on nothing but the logs of the handlers, and for
//! `stop` on an audit table that triggers write.
//!
//! | file | question |
//! |---|---|
//! | `processes`, `server` | what happens to a process or to the server, and what must be true afterwards? |
//! | `rounds` | what do all rounds have in common? |
//! | `cluster` | which processes and which server are there? |
//! | `node` | what does a process do? |
//! | `log` | what did the processes note, and what follows from that? |

mod cluster;
mod log;
mod node;
mod processes;
mod rounds;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use rounds::Terms;

#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// How long a process may be unreachable until another one takes its timers over.
    #[arg(long, global = true, default_value_t = 3)]
    ttl_seconds: u64,
    /// Fails if deliveries pause for longer than they may on a machine that does nothing else.
    #[arg(long = "quiet-machine", global = true)]
    is_quiet: bool,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// The owner is killed, and a standby takes over.
    Kill {
        #[arg(long, default_value_t = 20)]
        rounds: u32,
    },
    /// The owner shuts down while its handlers run.
    HandOver {
        #[arg(long, default_value_t = 20)]
        rounds: u32,
    },
    /// The owner is stopped for longer than one TTL, and goes on.
    Stop {
        #[arg(long, default_value_t = 20)]
        rounds: u32,
        /// Removes the fence from the database: there are stale writes in each round, or the check is worthless.
        #[arg(long)]
        without_fence: bool,
    },
    /// The server crashes and starts again at once.
    Restart {
        #[arg(long, default_value_t = 10)]
        rounds: u32,
    },
    /// All connections are closed by the server.
    Terminate {
        #[arg(long, default_value_t = 10)]
        rounds: u32,
    },
    /// The server is away for longer than one TTL.
    Away {
        #[arg(long, default_value_t = 5)]
        rounds: u32,
    },
    /// No transaction of the server can commit for longer than one TTL.
    Stall {
        #[arg(long, default_value_t = 5)]
        rounds: u32,
    },
    /// The volume of the server's WAL is full for longer than one TTL. Only root can create the volume.
    Full {
        #[arg(long, default_value_t = 5)]
        rounds: u32,
    },
    /// The replies to commits are lost.
    Replies {
        #[arg(long, default_value_t = 200)]
        count: u32,
    },
    /// A standby of the server is promoted that misses the last commits.
    Promote {
        #[arg(long, default_value_t = 10)]
        rounds: u32,
        /// Removes the check from the database: there are timers that no engine knows in each round, or the round is worthless.
        #[arg(long)]
        without_check: bool,
    },
    /// The wall clock of the owner is set by three seconds in both directions.
    Clock {
        #[arg(long, default_value_t = 10)]
        rounds: u32,
    },
    /// The process of a node, for the other commands.
    #[command(hide = true)]
    Node { url: String, log: PathBuf },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let terms = Terms {
        ttl: Duration::from_secs(arguments.ttl_seconds),
        is_quiet: arguments.is_quiet,
    };
    let done = match arguments.command {
        Command::Kill { rounds } => processes::kill(terms, rounds),
        Command::HandOver { rounds } => processes::hand_over(terms, rounds),
        Command::Stop {
            rounds,
            without_fence,
        } => processes::stop(terms, rounds, without_fence),
        Command::Restart { rounds } => server::restart(terms, rounds),
        Command::Terminate { rounds } => server::terminate(terms, rounds),
        Command::Away { rounds } => server::away(terms, rounds),
        Command::Stall { rounds } => server::stall(terms, rounds),
        Command::Full { rounds } => server::full(terms, rounds),
        Command::Replies { count } => server::replies(terms, count),
        Command::Promote {
            rounds,
            without_check,
        } => server::promote(terms, rounds, without_check),
        Command::Clock { rounds } => processes::clock(terms, rounds),
        Command::Node { url, log } => node::run(&url, &log),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
