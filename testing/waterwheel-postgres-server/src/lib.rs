//! Starts a PostgreSQL server for a test, in a temporary folder. It ends with the process that has started it, however that ends.
//!
//! The programs of the server have to be installed: those of the highest version in `/usr/lib/postgresql`, or those in `PATH`.

#![forbid(unsafe_code)]

mod proxy;

pub use proxy::Proxy;

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A server that listens on a socket in its folder.
#[derive(Debug)]
pub struct Server {
    program: Program,
    port: u16,
    databases: AtomicU32,
}

/// A server with TLS.
#[derive(Debug)]
pub struct Encrypted {
    /// The server.
    pub server: Server,
    /// Its port.
    pub port: u16,
    /// The file with the certificate that has signed that of the server.
    pub root: PathBuf,
}

/// PgBouncer in transaction mode, before a server.
#[derive(Debug)]
pub struct Pooler(Program);

/// A program with a folder of its own.
#[derive(Debug)]
struct Program {
    folder: PathBuf,
    account: Account,
    /// Whether the WAL is on a small volume of its own.
    has_small_wal: bool,
    /// Ends the program and removes the folder, once the pipe to it is closed.
    guard: Option<Child>,
}

impl Program {
    fn new() -> Result<Program, NotStarted> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |it| it.subsec_nanos());
        let folder = format!("waterwheel-pg-{}-{count}-{now}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir(&folder)?;
        let account = Account::current(&folder)?;
        account.own(&folder)?;
        Ok(Program {
            folder,
            account,
            has_small_wal: false,
            guard: None,
        })
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Starts it, and waits until it listens on this port. The signal ends it at once.
    fn start(&mut self, command: &[&OsStr], port: u16, signal: &str) -> Result<(), NotStarted> {
        let mut guard = match self.has_small_wal {
            true => self.in_small_volume()?,
            false => Command::new("/bin/sh"),
        };
        guard.args(["-c", GUARD, "guard", signal]).arg(&self.folder);
        guard.args(command).stdin(Stdio::piped());
        if !self.has_small_wal {
            self.account.run(&mut guard, &self.folder);
        }
        self.guard = Some(guard.spawn()?);
        self.until(port, true)
    }

    /// A shell in a mount namespace of its own, so that the volume disappears with its last process.
    fn in_small_volume(&self) -> Result<Command, NotStarted> {
        let Account::Other(uid, gid) = self.account else {
            return Err(NotStarted("only root can mount a volume".into()));
        };
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "/bin/sh", "-ec", SMALL_VOLUME, "mount"]);
        unshare.arg(self.folder.join("wal"));
        unshare.args(["setpriv", "--clear-groups"]);
        unshare.args([format!("--reuid={uid}"), format!("--regid={gid}")]);
        unshare.arg("/bin/sh").current_dir(&self.folder);
        Ok(unshare)
    }

    /// Waits until it listens on this port, or no longer does.
    fn until(&self, port: u16, listens: bool) -> Result<(), NotStarted> {
        let until = Instant::now() + Duration::from_secs(60);
        let ready = tool("pg_isready")?;
        let port = port.to_string();
        let is_ready = || {
            let mut ready = Command::new(&ready);
            ready.args(["-q", "-p", &port, "-h"]).arg(&self.folder);
            Ok::<_, NotStarted>(ready.status()?.success())
        };
        while is_ready()? != listens {
            if Instant::now() > until {
                let log = fs::read_to_string(self.folder.join("log"));
                return Err(NotStarted(log.unwrap_or_default()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Tells the guard to end it or to start it again.
    fn order(&self, order: &str) -> Result<(), NotStarted> {
        let stdin = self.guard.as_ref().and_then(|guard| guard.stdin.as_ref());
        if let Some(mut stdin) = stdin {
            stdin.write_all(order.as_bytes())?;
        }
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(guard) = &mut self.guard {
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
        // The guard cannot remove the mount point of a volume.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The server has not started. The message contains its log.
#[derive(Debug)]
pub struct NotStarted(String);

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no PostgreSQL server for the test: {}", self.0)
    }
}

impl std::error::Error for NotStarted {}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> NotStarted {
        NotStarted(error.to_string())
    }
}

/// Moves a folder to a small volume, and runs a command.
const SMALL_VOLUME: &str = r#"
wal=$1
shift
mv "$wal" "$wal-before"
mkdir "$wal"
mount -t tmpfs -o size=64m tmpfs "$wal"
cp -a "$wal-before/." "$wal"
chown --reference="$wal-before" "$wal"
chmod 700 "$wal"
exec "$@"
"#;

/// Runs a program in the background, with its output in a file, until the pipe to this shell is closed. Then removes the folder. Signals to the process group
/// of the test do not end it before. Each line in between ends it, starts it again, or fills or frees its volume.
const GUARD: &str = r#"
signal=$1 folder=$2
shift 2
start() {
    "$@" >>"$folder/log" 2>&1 </dev/null &
}
start "$@"
trap '' HUP INT TERM
while read -r order; do
    case $order in
        stop) kill -"$signal" $!; wait ;;
        start) start "$@" ;;
        fill) dd if=/dev/zero of="$folder/wal/filler" bs=64k 2>/dev/null ;;
        free) rm "$folder/wal/filler" ;;
    esac
done
kill -"$signal" $! 2>/dev/null
wait
rm -rf "$folder" 2>/dev/null
"#;

/// Only a role named `secured` has a password, and connections to a port are encrypted.
const ACCESS: &str = "
local replication all trust
local all secured scram-sha-256
local all all trust
hostssl all secured 127.0.0.1/32 scram-sha-256
hostssl all all 127.0.0.1/32 trust
";

/// What a server needs for tests that cut no power.
const OPTIONS: [&str; 8] = [
    "-c",
    "listen_addresses=",
    "-c",
    "fsync=off",
    "-c",
    "max_connections=200",
    "-c",
    "max_wal_size=4GB",
];

impl Server {
    /// The server of this process.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn of_process() -> &'static Server {
        static SERVER: LazyLock<Server> = LazyLock::new(|| match Server::start(&[]) {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        });
        &SERVER
    }

    /// Starts a server with these command-line options.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn start(options: &[&str]) -> Result<Server, NotStarted> {
        Server::create(Program::new()?, PORT, options)
    }

    /// Starts a server whose WAL is on a volume of 64 MB. Only root can.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn start_with_small_wal() -> Result<Server, NotStarted> {
        let mut program = Program::new()?;
        program.has_small_wal = true;
        let options = [
            "-c",
            "max_wal_size=8MB",
            "-c",
            "min_wal_size=2MB",
            "-c",
            "restart_after_crash=off",
        ];
        Server::create(program, PORT, &options)
    }

    /// Fills the volume of the WAL, and waits until the server has ended because of that.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn fill_wal(&self) -> Result<(), NotStarted> {
        self.program.order("fill\n")?;
        // The server has some segments in reserve.
        let write = "SELECT pg_logical_emit_message(false, '', repeat('x', 1000000))";
        while self.try_sql("postgres", write).is_ok() {}
        self.program.until(self.port, false)
    }

    /// Frees the volume of the WAL, and starts the server again.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn free_wal(&self) -> Result<(), NotStarted> {
        self.program.order("free\n")?;
        self.start_again()
    }

    /// Creates the files of a server, and starts it.
    fn create(program: Program, port: u16, options: &[&str]) -> Result<Server, NotStarted> {
        let mut init = Command::new(tool("initdb")?);
        init.args([
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "-U",
            USER,
            "--no-sync",
            "-D",
        ]);
        init.arg(program.data());
        if program.has_small_wal {
            init.arg("--wal-segsize=1")
                .arg("-X")
                .arg(program.folder.join("wal"));
        }
        run(program.account.run(&mut init, &program.folder))?;
        fs::write(program.data().join("pg_hba.conf"), ACCESS)?;
        Server::run(program, port, options)
    }

    fn run(mut program: Program, port: u16, options: &[&str]) -> Result<Server, NotStarted> {
        let (postgres, data) = (tool("postgres")?, program.data());
        let folder = program.folder.clone();
        let mut command: Vec<&OsStr> = vec![postgres.as_os_str(), "-D".as_ref(), data.as_os_str()];
        command.extend(["-k".as_ref(), folder.as_os_str()]);
        command.extend(OPTIONS.iter().chain(options).map(OsStr::new));
        program.start(&command, port, "QUIT")?;
        Ok(Server {
            program,
            port,
            databases: AtomicU32::new(0),
        })
    }

    /// Ends the server at once, as if it had crashed.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn stop(&self) -> Result<(), NotStarted> {
        self.program.order("stop\n")?;
        self.program.until(self.port, false)
    }

    /// Starts the server again, and waits until it has recovered.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn start_again(&self) -> Result<(), NotStarted> {
        self.program.order("start\n")?;
        self.program.until(self.port, true)
    }

    /// Starts a standby of this server, which receives its WAL.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn start_standby(&self) -> Result<Server, NotStarted> {
        let program = Program::new()?;
        let mut copy = Command::new(tool("pg_basebackup")?);
        copy.args(["-R", "--checkpoint=fast", "-d"]);
        copy.arg(self.url("postgres")).arg("-D").arg(program.data());
        run(program.account.run(&mut copy, &program.folder))?;
        Server::run(program, PORT, &[])
    }

    /// Copies a database to another server, by a dump.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn dump_to(&self, other: &Server, database: &str) -> Result<(), NotStarted> {
        let file = self.program.folder.join("dump");
        let mut dump = Command::new(tool("pg_dump")?);
        dump.arg("-d").arg(self.url(database)).arg("-f").arg(&file);
        run(&mut dump)?;
        other.sql("postgres", &format!("CREATE DATABASE {database}"));
        let mut restore = Command::new(tool("psql")?);
        restore.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d"]);
        run(restore.arg(other.url(database)).arg("-f").arg(&file))
    }

    /// Starts a server that also listens on a port of `localhost`. Connections to the port have to be encrypted.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn start_encrypted() -> Result<Encrypted, NotStarted> {
        let failed = |error: rcgen::Error| NotStarted(error.to_string());
        let key = KeyPair::generate().map_err(failed)?;
        let mut authority = CertificateParams::new([]).map_err(failed)?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&key).map_err(failed)?.pem();
        let issuer = Issuer::new(authority, key);
        let key = KeyPair::generate().map_err(failed)?;
        let own = CertificateParams::new(["localhost".into()]).map_err(failed)?;
        let own = own.signed_by(&key, &issuer).map_err(failed)?.pem();

        let program = Program::new()?;
        let file = |name: &str, content: String| -> Result<PathBuf, NotStarted> {
            let file = program.folder.join(name);
            fs::write(&file, content)?;
            program.account.own(&file)?;
            Ok(file)
        };
        let root = file("root.pem", root)?;
        let (own, key) = (file("own.pem", own)?, file("key.pem", key.serialize_pem())?);
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        // Free until the server takes it, unless another process does.
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let setting = |name: &str, value: &Path| format!("{name}={}", value.display());
        let (own, key) = (
            setting("ssl_cert_file", &own),
            setting("ssl_key_file", &key),
        );
        let port_setting = format!("port={port}");
        let options = [
            "listen_addresses=127.0.0.1",
            "ssl=on",
            &own,
            &key,
            &port_setting,
        ];
        let options: Vec<_> = options.into_iter().flat_map(|it| ["-c", it]).collect();
        Ok(Encrypted {
            server: Server::create(program, port, &options)?,
            port,
            root,
        })
    }

    /// Creates an empty database, and returns its URL.
    ///
    /// # Panics
    ///
    /// If the server refuses that.
    pub fn database(&self) -> String {
        let number = self.databases.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{number}");
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(&name)
    }

    /// Carries out statements in a database, and returns what `psql` prints.
    ///
    /// # Panics
    ///
    /// If a statement fails.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let done = self.try_sql(database, sql);
        done.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Carries out statements in a database, and returns what `psql` prints.
    ///
    /// # Errors
    ///
    /// The message, if a statement fails.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        sql_at(&self.url(database), sql)
    }

    /// Returns the folder of its socket, which stands for a host in a connection string.
    #[must_use]
    pub fn host(&self) -> &str {
        self.program.folder.to_str().unwrap_or_default()
    }

    /// Returns the URL of a database.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        url_at(&self.program.folder, self.port, database)
    }
}

impl Pooler {
    /// Starts a pooler before a server.
    ///
    /// # Errors
    ///
    /// [`NotStarted`].
    pub fn start(server: &Server) -> Result<Pooler, NotStarted> {
        let mut program = Program::new()?;
        let folder = program.folder.clone();
        let (own, other) = (folder.display(), server.program.folder.display());
        let config = format!(
            "[databases]
            * = host={other} port={}
            [pgbouncer]
            unix_socket_dir = {own}
            listen_port = {POOLER_PORT}
            auth_type = trust
            auth_file = {own}/users
            pool_mode = transaction
            default_pool_size = 20
            max_client_conn = 200",
            server.port
        );
        let config = config.replace("            ", "");
        let file = folder.join("config");
        fs::write(&file, config)?;
        fs::write(folder.join("users"), format!("\"{USER}\" \"\""))?;
        let pooler = tool("pgbouncer")?;
        program.start(&[pooler.as_os_str(), file.as_os_str()], POOLER_PORT, "TERM")?;
        Ok(Pooler(program))
    }

    /// Returns the URL of a database behind the pooler, given its URL at the server.
    #[must_use]
    pub fn url(&self, url: &str) -> String {
        url_at(&self.0.folder, POOLER_PORT, database_of(url))
    }
}

/// Carries out statements in a database, and returns what `psql` prints.
///
/// # Errors
///
/// The message, if a statement fails.
pub fn sql_at(url: &str, sql: &str) -> Result<String, String> {
    let psql = tool("psql").map_err(|error| error.to_string())?;
    let mut psql = Command::new(psql);
    psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url]);
    let done = psql.args(["-c", sql]).output();
    let done = done.map_err(|error| format!("psql: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match done.status.success() {
        true => Ok(text(&done.stdout)),
        false => Err(text(&done.stderr)),
    }
}

/// Returns the name of the database in a URL.
#[must_use]
pub fn database_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

fn url_at(folder: &Path, port: u16, database: &str) -> String {
    let socket = folder.display().to_string().replace('/', "%2F");
    format!("postgres://{USER}@{socket}:{port}/{database}")
}

const PORT: u16 = 5_432;

const POOLER_PORT: u16 = 6_432;

/// The role that owns the databases.
const USER: &str = "waterwheel";

/// Runs a program to its end.
fn run(command: &mut Command) -> Result<(), NotStarted> {
    let done = command.output()?;
    match done.status.success() {
        true => Ok(()),
        false => Err(NotStarted(
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )),
    }
}

/// Finds a program.
fn tool(name: &str) -> Result<PathBuf, NotStarted> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.flatten().map(|it| it.path()).max_by_key(version);
    let in_path = std::env::var_os("PATH").unwrap_or_default();
    let folders = newest.map(|it| it.join("bin")).into_iter();
    let folders = folders
        .chain(std::env::split_paths(&in_path))
        .chain(["/usr/sbin".into()]);
    let mut candidates = folders.map(|it| it.join(name));
    candidates.find(|it| it.exists()).ok_or_else(|| {
        NotStarted(format!(
            "`{name}` is not installed: on Debian, `apt-get install postgresql pgbouncer`"
        ))
    })
}

/// The account that runs the server, which refuses to be run by root.
#[derive(Debug, Clone, Copy)]
enum Account {
    Own,
    Other(u32, u32),
}

impl Account {
    /// Decides by the owner of a folder that this process has created.
    fn current(folder: &Path) -> Result<Account, NotStarted> {
        if fs::metadata(folder)?.uid() != 0 {
            return Ok(Account::Own);
        }
        let accounts = fs::read_to_string("/etc/passwd")?;
        let ids = accounts.lines().find_map(|line| {
            let mut fields = line.strip_prefix("postgres:")?.split(':').skip(1);
            let (uid, gid) = (fields.next()?.parse(), fields.next()?.parse());
            Some((uid.ok()?, gid.ok()?))
        });
        match ids {
            Some((uid, gid)) => Ok(Account::Other(uid, gid)),
            None => Err(NotStarted(
                "root cannot run it, and there is no account `postgres`".into(),
            )),
        }
    }

    /// Gives it a file or folder.
    fn own(self, path: &Path) -> io::Result<()> {
        match self {
            Account::Own => Ok(()),
            Account::Other(uid, gid) => chown(path, Some(uid), Some(gid)),
        }
    }

    /// Lets a program run in the folder under this account.
    fn run<'a>(self, command: &'a mut Command, folder: &Path) -> &'a mut Command {
        if let Account::Other(uid, gid) = self {
            command.uid(uid).gid(gid);
        }
        command.current_dir(folder)
    }
}
