//! The log, read by a process beside the one that writes it.
//!
//! Segments may be removed and begun meanwhile, and the last record may be half there. So nothing is damaged because it
//! reads wrong once: whoever reads begins again, and believes it when it stays like that.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::mark::Marked;
use super::{HEADER_BYTES, NOT_FLUSHED, RECORD_HEADER_BYTES, Records, path_of};
use crate::error::Result;
use crate::store::directory::{damaged, unavailable};

/// So much is read at first, and at the most unless a record is longer, in bytes.
const PIECE_BYTES: (usize, usize) = (4 << 10, 1 << 20);

/// Reads records as they come.
pub(in crate::store) struct Tail {
    folder: PathBuf,
    /// Behind what was read; `None`: the log is to be read from its beginning.
    place: Option<Place>,
}

/// Where the next record is, or will be.
struct Place {
    segment: u64,
    file: File,
    at: u64,
    /// Its number.
    next: u64,
}

impl Tail {
    /// Of the log in `folder`.
    pub(in crate::store) fn new(folder: PathBuf) -> Tail {
        Tail { folder, place: None }
    }

    /// Goes back to the beginning.
    pub(in crate::store) fn rewind(&mut self) {
        self.place = None;
    }

    /// Shows to `visit` the content of each record that follows and was acknowledged, or, if `is_closed`, nobody having
    /// the log open to write, that would count when it is opened. Gives the version that the tree has at least.
    ///
    /// Errors: `Corrupt` when something that was acknowledged is not to be found, or not any more; what `visit` says.
    pub(in crate::store) fn read(
        &mut self,
        is_closed: bool,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let Marked { oldest, acknowledged, settled } = Marked::read(&self.folder)?;
        let is_shown = |number| is_closed || number <= acknowledged || number & NOT_FLUSHED != 0;
        let mut place = match self.place.take() {
            Some(place) => place,
            None => open(&self.folder, oldest)?
                .ok_or_else(|| damaged(&self.folder, format!("log-{oldest}"), "it is missing"))?,
        };
        loop {
            place.read(is_shown, &mut visit)?;
            match open(&self.folder, place.segment + 1)? {
                Some(following) if following.next == place.next => place = following,
                _ => break,
            }
        }
        if place.next <= acknowledged {
            let why =
                format!("record {}, at byte {}, was acknowledged and cannot be read", place.next, place.at);
            return Err(damaged(&self.folder, format!("log-{}", place.segment), why));
        }
        self.place = Some(place);
        Ok(settled)
    }
}

/// The first record of a segment; `None` if that is not there, or has just been begun.
fn open(folder: &Path, segment: u64) -> Result<Option<Place>> {
    let mut file = match File::open(path_of(folder, segment)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|e| unavailable("the log cannot be read", e))?,
    };
    let header = piece(&mut file, 0, HEADER_BYTES)?;
    let first = Records::new(&header, segment).map(|records| records.number);
    Ok(first.map(|next| Place { segment, file, at: HEADER_BYTES as u64, next }))
}

/// `len` bytes of a file from `at` on, or those that there are.
fn piece(file: &mut File, at: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.take(len as u64).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|e| unavailable("the log cannot be read", e))
}

impl Place {
    /// Goes past the records of this segment that are whole and are to be shown.
    fn read(
        &mut self,
        is_shown: impl Fn(u64) -> bool,
        visit: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut len, most) = PIECE_BYTES;
        loop {
            let bytes = piece(&mut self.file, self.at, len)?;
            let mut records = Records { bytes: &bytes, at: 0, number: self.next };
            while let Some(content) = records.next_if(&is_shown) {
                visit(content)?;
            }
            let missing = records.missing();
            (self.at, self.next) = (self.at + records.at as u64, records.number);
            // What follows is not there, or not yet, unless this is all that was asked for.
            match missing {
                Some(missing) if bytes.len() == len => len = (4 * len).min(most).max(missing),
                _ => return Ok(()),
            }
        }
    }
}

impl Records<'_> {
    /// How many bytes the next record takes, if these end before it does.
    fn missing(&self) -> Option<usize> {
        let rest = &self.bytes[self.at..];
        let Some(header) = rest.get(..RECORD_HEADER_BYTES) else { return Some(RECORD_HEADER_BYTES) };
        let len = u32::from_le_bytes(*header.first_chunk()?) as usize;
        (len > rest.len() - RECORD_HEADER_BYTES).then_some(RECORD_HEADER_BYTES + len)
    }
}
