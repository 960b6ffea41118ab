//! The directory of a database: checks that it is one, of a format and engine we can open, and locks it against other
//! writers.
//!
//! Creation writes `FORMAT.tmp` first and renames it to `FORMAT` last, so that a crash in between leaves a directory
//! that is recognised as unfinished and started over.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::Engine;
use crate::error::{Error, Kind, Result, sqlstate};

/// Version of the on-disk format that this program reads and writes. Format 1 had other checksums, 2 no log in front
/// of LMDB, 3 a shorter mark beside the log.
const FORMAT: u32 = 4;

/// The content of `FORMAT`: this prefix, the version, and the engine's name unless it is LMDB.
const FORMAT_PREFIX: &str = "rowkeydb format ";
const FORMAT_FILE: &str = "FORMAT";
const UNFINISHED_FILE: &str = "FORMAT.tmp";
const LOCK_FILE: &str = "LOCK";
const DATA_FILE: &str = "data.mdb";
const READERS_FILE: &str = "lock.mdb";
const LOG_FOLDER: &str = "log";
const LSM_FOLDER: &str = "lsm";
const SCRATCH_FILE: &str = "SCRATCH";

/// How long to wait for the lock, for readers that read a long log while they hold it, and how often to try it.
const PATIENCE: Duration = Duration::from_millis(100);
const PATIENCE_WITH_READERS: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// Length of the file written to see whether the disk is full: more than another process, which also ran out of room,
/// is likely to free meanwhile.
const SCRATCH_BYTES: usize = 1 << 20;

/// A database directory, locked until dropped, or open for reading only.
pub(super) struct Directory {
    path: PathBuf,
    engine: Engine,
    is_new: bool,
    /// `None`: opened for reading; another process may hold the lock and write.
    _lock: Option<Lock>,
}

/// The lock file, locked.
///
/// Unlocked explicitly: a child that was just forked has the file open until it execs, which would keep it locked.
/// Such a child must not unlock it itself, hence `process`.
struct Lock {
    file: File,
    process: u32,
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // If unlocking fails, closing the file unlocks it.
            let _ = self.file.unlock();
        }
    }
}

/// Is there a whole database in the directory `path`?
pub fn is_database(path: &Path) -> bool {
    path.join(FORMAT_FILE).is_file()
}

/// What a directory contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Unfinished,
    Database,
}

impl Directory {
    /// Takes `path`, creating the directory (but none above it) if it is missing. A new one still
    /// needs its data and then [`Directory::finish`]. `engine`: what a new one will be, and one that is there must be.
    ///
    /// Errors: as [`store::open`](super::open).
    pub(super) fn open(path: &Path, engine: Option<Engine>) -> Result<Self> {
        create(path)?;
        // Inspected before locking too, so that no LOCK file is left in a directory that is not ours.
        let before = inspect(path)?;
        let lock = take_lock(path)?;
        // A database stays one.
        let content = if before == Content::Database { before } else { inspect(path)? };
        let found = match content {
            Content::Database => Some(check_format(path)?),
            Content::Unfinished => {
                discard_unfinished(path).map_err(|e| unusable(path, e))?;
                None
            }
            Content::Nothing => None,
        };
        if let Some(found) = found {
            check_engine(path, found, engine)?;
        }
        let engine = found.or(engine).unwrap_or_default();
        let directory =
            Directory { path: path.to_owned(), engine, is_new: found.is_none(), _lock: Some(lock) };
        if directory.is_new {
            directory.begin().map_err(|e| unusable(path, e))?;
        }
        Ok(directory)
    }

    /// Opens the database in `path` for reading, even while another process writes it. `engine`: the engine it must
    /// have.
    ///
    /// Errors: as [`store::open`](super::open); `Invalid` when there is none.
    pub(super) fn open_read_only(path: &Path, engine: Option<Engine>) -> Result<Self> {
        if !path.is_dir() || inspect(path)? != Content::Database {
            return Err(Error::invalid(format!("there is no database in {}", path.display()))
                .hint("name the folder of a database; none is made to be read"));
        }
        let found = check_format(path)?;
        check_engine(path, found, engine)?;
        Ok(Directory { path: path.to_owned(), engine: found, is_new: false, _lock: None })
    }

    /// Prevents others from opening the database to write while the result is held; `None` if a writer has it open.
    pub(super) fn keep_closed(&self) -> Option<impl Sized + use<>> {
        match File::open(self.path.join(LOCK_FILE)) {
            Ok(file) => file.try_lock_shared().ok().map(|()| Some(file)),
            // A writer creates the file when it opens the database.
            Err(e) if e.kind() == ErrorKind::NotFound => Some(None),
            Err(_) => None,
        }
    }

    /// The database was just created and has no data yet.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The engine of the database.
    pub(super) fn engine(&self) -> Engine {
        self.engine
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The LSM engine's folder.
    pub(super) fn lsm_folder(&self) -> PathBuf {
        self.path.join(LSM_FOLDER)
    }

    /// The folder of the log in front of LMDB.
    pub(super) fn log_folder(&self) -> PathBuf {
        self.path.join(LOG_FOLDER)
    }

    /// LMDB's file.
    pub(super) fn data_file(&self) -> PathBuf {
        self.path.join(DATA_FILE)
    }

    /// Declares a new database complete. Call it once the data file is on the disk.
    pub(super) fn finish(&self) -> Result<()> {
        fs::rename(self.path.join(UNFINISHED_FILE), self.path.join(FORMAT_FILE))
            .and_then(|()| sync_directory(&self.path))
            .map_err(|e| unusable(&self.path, e))
    }

    /// Gives LMDB's reader table its full length on the disk. LMDB maps it, and writing into a hole of a mapped file
    /// kills the process when the disk is full.
    pub(super) fn reserve_readers(&self, bytes: u64) -> Result<()> {
        let reserve = || {
            let mut file = File::options().create(true).append(true).open(self.path.join(READERS_FILE))?;
            let missing = bytes.saturating_sub(file.metadata()?.len());
            io::copy(&mut io::repeat(0).take(missing), &mut file)
        };
        reserve().map(drop).map_err(|e| unusable(&self.path, e))
    }

    /// The disk is full or the quota used up: not even a small file can be written.
    pub(super) fn is_out_of_room(&self) -> bool {
        self.in_scratch(|file| file.write_all(&vec![0; SCRATCH_BYTES])).is_err_and(|e| is_full(&e))
    }

    /// A file of so many bytes has room, as far as the disk can tell.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        !self.in_scratch(|file| reserve(file, bytes)).is_err_and(|e| is_full(&e))
    }

    fn in_scratch(&self, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
        let path = self.path.join(SCRATCH_FILE);
        let written = File::create(&path).and_then(|mut file| write(&mut file));
        // If it stays, it does no harm.
        let _ = fs::remove_file(path);
        written
    }

    fn begin(&self) -> io::Result<()> {
        let mut file = File::create(self.path.join(UNFINISHED_FILE))?;
        match self.engine {
            Engine::Lmdb => writeln!(file, "{FORMAT_PREFIX}{FORMAT}")?,
            engine => writeln!(file, "{FORMAT_PREFIX}{FORMAT} {engine}")?,
        }
        // Without this name, the other files would be those of a stranger.
        file.sync_all().and_then(|()| sync_directory(&self.path))
    }
}

/// Gives a file so many bytes on the disk, without writing them.
#[cfg(target_os = "linux")]
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, bytes)?)
}

/// No system but Linux says.
#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: u64) -> io::Result<()> {
    Ok(())
}

fn create(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(not_a_database(path, "it is a file")),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(unusable(path, e)
            .why("the directory it should be created in does not exist")
            .hint("create that directory first")),
        result => result.map_err(|e| unusable(path, e)),
    }
}

/// What is in `path`. Errors: `Invalid` when there are files, but not those of a database.
fn inspect(path: &Path) -> Result<Content> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(|e| unusable(path, e))? {
        names.push(entry.map_err(|e| unusable(path, e))?.file_name());
    }
    let has = |name: &str| names.iter().any(|found| found == name);
    if has(FORMAT_FILE) {
        return Ok(Content::Database);
    }
    let unfinished = has(UNFINISHED_FILE);
    let ours = |name: &str| match name {
        LOCK_FILE | UNFINISHED_FILE | SCRATCH_FILE => true,
        DATA_FILE | READERS_FILE | LOG_FOLDER | LSM_FOLDER => unfinished,
        _ => false,
    };
    match names.iter().find(|name| !name.to_str().is_some_and(ours)) {
        Some(stranger) => {
            let why = format!("it holds '{}' and no {FORMAT_FILE} file", stranger.display());
            Err(not_a_database(path, &why))
        }
        None if unfinished => Ok(Content::Unfinished),
        None => Ok(Content::Nothing),
    }
}

fn take_lock(path: &Path) -> Result<Lock> {
    let lock = File::options().create(true).truncate(false).write(true).open(path.join(LOCK_FILE));
    let lock = lock.map_err(|e| unusable(path, e))?;
    let since = Instant::now();
    let locked = loop {
        match lock.try_lock() {
            // A reader that opens the database holds the lock until it has read the log.
            Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE || is_only_read(&lock, since) => {
                thread::sleep(LOOK);
            }
            locked => break locked,
        }
    };
    match locked {
        Ok(()) => Ok(Lock { file: lock, process: std::process::id() }),
        Err(TryLockError::WouldBlock) => Err(open_elsewhere(path)),
        Err(TryLockError::Error(e)) => Err(unusable(path, e)),
    }
}

/// Whether readers alone hold the lock, and they may still end in time.
fn is_only_read(lock: &File, since: Instant) -> bool {
    let is_shared = since.elapsed() < PATIENCE_WITH_READERS && lock.try_lock_shared().is_ok();
    is_shared && lock.unlock().is_ok()
}

fn open_elsewhere(path: &Path) -> Error {
    let (why, hint) = match check_format(path) {
        Ok(Engine::Lsm) => (
            "one process at a time has a database of engine lsm open, and opens it once",
            "close the other one (a shell, perhaps), or share its Database handle",
        ),
        _ => (
            "one process at a time has a database open to write, and opens it once",
            "open it to read, beside the other one, with --read-only or Options::read_only, close the other one (a shell, perhaps), or share its Database handle",
        ),
    };
    let what = format!("database {} is open in another process", path.display());
    Error::new(Kind::Unavailable, what).why(why).hint(hint)
}

fn check_format(path: &Path) -> Result<Engine> {
    let text = fs::read(path.join(FORMAT_FILE)).map_err(|e| unusable(path, e))?;
    let words = std::str::from_utf8(&text).ok().and_then(|text| text.trim_end().strip_prefix(FORMAT_PREFIX));
    let (version, engine) = words.map_or((None, None), |words| {
        let (version, engine) = words.split_once(' ').unwrap_or((words, Engine::Lmdb.name()));
        (version.parse::<u32>().ok(), engine.parse::<Engine>().ok())
    });
    match (version, engine) {
        (Some(FORMAT), Some(engine)) => Ok(engine),
        (Some(other @ 1..), _) if other != FORMAT => Err(Error::unsupported(format!(
            "database {} has format {other}, this program reads format {FORMAT}",
            path.display()
        ))
        .why(if other > FORMAT { "a newer program wrote it" } else { "an older program wrote it" })
        .hint("open it with that program, or export its tables there and load them here")),
        _ => Err(Error::corrupt(format!("{} is damaged", path.join(FORMAT_FILE).display()))
            .why(format!("it should read '{FORMAT_PREFIX}{FORMAT}', and the name of an engine perhaps"))
            .hint("restore the database from a backup")),
    }
}

/// Errors: `Invalid` when the database in `path` has another engine than `wanted`.
fn check_engine(path: &Path, found: Engine, wanted: Option<Engine>) -> Result<()> {
    let Some(wanted) = wanted.filter(|wanted| *wanted != found) else { return Ok(()) };
    Err(Error::invalid(format!("database {} is kept by engine {found}, not {wanted}", path.display()))
        .why("a database stays with the engine that it was created with")
        .hint(format!("open it without naming one; BACKUP TO, then rowkeydb restore --engine {wanted}, makes a copy kept by the other")))
}

/// Removes what an unfinished creation has left; it holds no data.
fn discard_unfinished(path: &Path) -> io::Result<()> {
    for name in [DATA_FILE, READERS_FILE, SCRATCH_FILE] {
        match fs::remove_file(path.join(name)) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            result => result?,
        }
    }
    for name in [LOG_FOLDER, LSM_FOLDER] {
        match fs::remove_dir_all(path.join(name)) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            result => result?,
        }
    }
    Ok(())
}

/// Makes the names in `path`, and the name of `path` itself, survive a crash of the machine.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
        let absolute = path.canonicalize()?;
        match absolute.parent().map(File::open) {
            // We may not open the parent folder: how safe the name is then is up to its owner.
            Some(Err(e)) if e.kind() == ErrorKind::PermissionDenied => {}
            Some(parent) => parent?.sync_all()?,
            None => {}
        }
    }
    Ok(())
}

/// The hint when the disk is full.
const FULL: &str = "free some space on the disk";

/// The error says that the disk is full or the quota used up.
pub fn is_full(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// The error for a damaged `file` in `folder`, a folder of the database.
pub(super) fn damaged(folder: &Path, file: impl fmt::Display, why: impl Into<String>) -> Error {
    let folder = folder.file_name().unwrap_or_default();
    Error::damaged(format!("{}/{file} is damaged", folder.display()), why)
}

/// The error for a file of the database that the system refuses to open, read or write.
pub(super) fn unavailable(what: &str, e: io::Error) -> Error {
    let error = Error::new(Kind::Unavailable, what).why(e.to_string()).state(sqlstate::IO);
    let hint = match is_full(&e) {
        true => FULL,
        false => "see that the disk works, and that nobody else has put or taken files there",
    };
    error.hint(hint).caused_by(e)
}

fn not_a_database(path: &Path, why: &str) -> Error {
    Error::invalid(format!("{} is not a RowkeyDB database", path.display()))
        .why(why)
        .hint("name a database directory, or one that is empty or does not exist yet")
}

fn unusable(path: &Path, e: io::Error) -> Error {
    let error = Error::new(Kind::Unavailable, format!("database {} cannot be opened", path.display()))
        .why(e.to_string())
        .state(sqlstate::IO);
    let hint = match e.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "a database needs a directory it may write to, even to be read: change the permissions, or copy it"
        }
        _ if is_full(&e) => FULL,
        _ => "name a directory that is there, or one to be made in a directory that is there",
    };
    error.hint(hint).caused_by(e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_let_go_of_though_a_process_just_started_has_the_lock_file_open() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("db");
        let directory = Directory::open(&path, None).unwrap();
        // Like a forked child: the same open file under another descriptor.
        let inherited = directory._lock.as_ref().unwrap().file.try_clone().unwrap();
        drop(directory);
        Directory::open(&path, None).unwrap();
        drop(inherited);
    }

    #[test]
    fn a_writer_waits_for_readers_but_not_for_another_writer() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("db");
        let directory = Directory::open(&path, None).unwrap();
        directory.finish().unwrap();
        let refused = Directory::open(&path, None).err().unwrap();
        assert!(refused.what().contains("is open in another process"), "{refused}");
        assert!(Directory::open_read_only(&path, None).unwrap().keep_closed().is_none());
        drop(directory);
        let reading = Directory::open_read_only(&path, None).unwrap().keep_closed().expect("no writer");
        let reads = thread::spawn(move || {
            thread::sleep(3 * PATIENCE);
            drop(reading);
        });
        Directory::open(&path, None).unwrap();
        reads.join().unwrap();
    }
}
