//! How far the log had come when it last told somebody: what the next open must find.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use super::log::{path_of, u64_at};
use super::{damaged, unavailable};
use crate::error::Result;

/// Two numbers in a file of 24 bytes: the oldest segment that is needed, and the last record that was acknowledged;
/// then the XXH3-64 of both.
pub(super) struct Mark {
    folder: PathBuf,
    state: Mutex<MarkState>,
}

struct MarkState {
    file: File,
    marked: Marked,
    /// What is on the disk, for all that is known.
    flushed: Marked,
}

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marked {
    pub(super) oldest: u64,
    pub(super) acknowledged: u64,
}

pub(super) const MARK_FILE: &str = "acknowledged";

impl Marked {
    pub(super) fn encode(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.oldest.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.acknowledged.to_le_bytes());
        let sum = xxh3_64(&bytes[..16]);
        bytes[16..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Marked> {
        let marked = Marked { oldest: u64_at(bytes, 0)?, acknowledged: u64_at(bytes, 8)? };
        (*bytes == marked.encode()).then_some(marked)
    }
}

impl Mark {
    pub(super) fn create(folder: &Path) -> io::Result<Mark> {
        let marked = Marked { oldest: 1, acknowledged: 0 };
        let mut file = File::create(folder.join(MARK_FILE))?;
        file.write_all(&marked.encode())?;
        file.sync_all()?;
        Ok(Mark::new(folder, file, marked))
    }

    fn new(folder: &Path, file: File, marked: Marked) -> Mark {
        Mark { folder: folder.to_owned(), state: Mutex::new(MarkState { file, marked, flushed: marked }) }
    }

    pub(super) fn open(folder: &Path) -> Result<Mark> {
        let opened = File::options().read(true).write(true).open(folder.join(MARK_FILE));
        let mut file = opened.map_err(|e| match e.kind() {
            ErrorKind::NotFound => damaged(MARK_FILE, "it is missing"),
            _ => unavailable("the log cannot be opened", e),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| unavailable("the log cannot be read", e))?;
        let marked = Marked::decode(&bytes)
            .ok_or_else(|| damaged(MARK_FILE, "its checksum does not match its bytes"))?;
        Ok(Mark::new(folder, file, marked))
    }

    pub(super) fn marked(&self) -> Marked {
        self.lock().marked
    }

    fn lock(&self) -> MutexGuard<'_, MarkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells of a record that is on the disk. A mark that cannot be written proves less, and nothing wrong.
    pub(super) fn acknowledge(&self, record: u64) {
        let mut state = self.lock();
        state.marked.acknowledged = record;
        let _ = state.write();
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.lock().sync()
    }

    /// Removes the segments up to this one, which nobody needs any more.
    pub(super) fn forget(&self, segment: u64) -> io::Result<()> {
        let before = {
            let mut state = self.lock();
            let before = state.marked.oldest;
            state.marked.oldest = before.max(segment + 1);
            state.write()?;
            state.sync()?;
            before
        };
        (before..=segment).try_for_each(|segment| match fs::remove_file(path_of(&self.folder, segment)) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        })
    }
}

impl MarkState {
    fn write(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&self.marked.encode())
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.flushed != self.marked {
            self.file.sync_all()?;
            self.flushed = self.marked;
        }
        Ok(())
    }
}
