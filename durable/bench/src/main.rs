//! What durable timers cost.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

mod callers;
mod disk;
mod process;
mod random;
mod rows;
mod sample;
mod stage;

use stage::{Failure, Stage, WORKERS};

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("a row")?;
    let folder = arguments.next().ok_or("a folder")?;
    let quick = arguments.next().is_some();
    let row = rows::ALL
        .iter()
        .find(|row| row.name == name)
        .ok_or("no such row")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()?;
    let stage = Stage {
        folder: folder.into(),
        quick,
    };
    let _ = std::fs::remove_dir_all(&stage.folder);
    std::fs::create_dir_all(&stage.folder)?;
    // The main thread is no worker: the callers are tasks.
    let sample = runtime.block_on((row.play)(stage))?;
    println!("{}", serde_json::to_string(&sample)?);
    Ok(())
}
