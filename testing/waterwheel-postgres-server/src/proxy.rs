use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::{NotStarted, PORT, Program, Server, database_of, url_at};

/// Forwards connections to a server, holds some statements, and swallows the replies to some commits.
#[derive(Debug)]
pub struct Proxy {
    program: Program,
    state: Arc<State>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    /// The socket of the server.
    server: Mutex<PathBuf>,
    /// Whether the reply to the next commit is swallowed.
    swallows: AtomicBool,
    swallowed: AtomicU32,
    hold: Mutex<Hold>,
    released: Condvar,
    is_stopped: AtomicBool,
}

/// The message that is held, or will be.
#[derive(Debug, Default)]
struct Hold {
    /// A part of the statement, unless nothing is held.
    statement: Option<&'static str>,
    is_held: bool,
}

impl State {
    fn server(&self) -> MutexGuard<'_, PathBuf> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while a message with these bytes is held.
    fn wait(&self, chunk: &[u8]) {
        let mut hold = self.hold.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &str| contains(chunk, it.as_bytes());
        if hold.is_held || !hold.statement.is_some_and(is_it) {
            return;
        }
        hold.is_held = true;
        let waited = self.released.wait_while(hold, |it| it.statement.is_some());
        drop(waited);
    }
}

impl Proxy {
    /// Starts a proxy before a server.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn start(server: &Server) -> Result<Proxy, NotStarted> {
        let program = Program::new()?;
        let own = socket(&program.folder, PORT);
        let listener = UnixListener::bind(own)?;
        let state = Arc::new(State {
            server: Mutex::new(socket_of(server)),
            swallows: AtomicBool::default(),
            swallowed: AtomicU32::default(),
            hold: Mutex::default(),
            released: Condvar::default(),
            is_stopped: AtomicBool::default(),
        });
        let shared = Arc::clone(&state);
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if shared.is_stopped.load(Ordering::Relaxed) {
                    break;
                }
                if let (Ok(client), Ok(server)) = (client, UnixStream::connect(&*shared.server())) {
                    // If it fails, the client finds its connection closed.
                    let _ = forward(client, server, &shared);
                }
            }
        });
        Ok(Proxy {
            program,
            state,
            thread: Some(thread),
        })
    }

    /// Returns the URL of a database behind the proxy, given its URL at the server.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        url_at(&self.program.folder, PORT, database_of(url))
    }

    /// Forwards further connections to another server, as if the address of the first had moved to it.
    pub fn move_to(&self, server: &Server) {
        *self.state.server() = socket_of(server);
    }

    /// Closes the connection of the next `COMMIT` of timers once the server has replied, instead of forwarding the reply.
    pub fn swallow_next_commit(&self) {
        self.state.swallows.store(true, Ordering::Relaxed);
    }

    /// Holds the next message to the server that contains a statement with this text, until it is [released](Proxy::release).
    pub fn hold_next(&self, statement: &'static str) {
        let statement = Some(statement);
        let is_held = false;
        *self.hold() = Hold { statement, is_held };
    }

    /// Returns whether a message is held.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold().is_held
    }

    /// Forwards the message that is held.
    pub fn release(&self) {
        *self.hold() = Hold::default();
        self.state.released.notify_all();
    }

    fn hold(&self) -> MutexGuard<'_, Hold> {
        let hold = self.state.hold.lock();
        hold.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many replies were swallowed.
    #[must_use]
    pub fn swallowed(&self) -> u32 {
        self.state.swallowed.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.release();
        self.state.is_stopped.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = UnixStream::connect(socket(&self.program.folder, PORT));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn socket_of(server: &Server) -> PathBuf {
    socket(&server.program.folder, server.port)
}

fn socket(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

/// Forwards in both directions, each by a thread that ends with the connection.
fn forward(mut client: UnixStream, mut server: UnixStream, state: &Arc<State>) -> io::Result<()> {
    let swallows = Arc::new(AtomicBool::new(false));
    let (mut to_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let (mine, shared) = (Arc::clone(&swallows), Arc::clone(state));
    thread::spawn(move || {
        let mut has_timers = false;
        each_chunk(&mut client, |chunk| {
            // Heartbeats have connections of their own.
            has_timers |= contains(chunk, b"begin_commit(");
            if has_timers
                && contains(chunk, b"COMMIT\0")
                && shared.swallows.swap(false, Ordering::Relaxed)
            {
                mine.store(true, Ordering::Relaxed);
            }
            shared.wait(chunk);
            to_server.write_all(chunk)
        });
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let shared = Arc::clone(state);
    thread::spawn(move || {
        each_chunk(&mut server, |chunk| {
            let is_end = contains(chunk, b"COMMIT\0") || contains(chunk, b"ROLLBACK\0");
            if is_end && swallows.load(Ordering::Relaxed) {
                shared.swallowed.fetch_add(1, Ordering::Relaxed);
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            to_client.write_all(chunk)
        });
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Reads until the end, or until an error.
fn each_chunk(from: &mut UnixStream, mut call: impl FnMut(&[u8]) -> io::Result<()>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if call(&buffer[..length]).is_err() {
            break;
        }
    }
}

/// Whether a chunk has these bytes. They are short, and the only end of a message, so they are not split.
fn contains(chunk: &[u8], bytes: &[u8]) -> bool {
    chunk.windows(bytes.len()).any(|it| it == bytes)
}
