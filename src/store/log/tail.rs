//! Reads the log in a process beside the one that writes it.
//!
//! Segments may be removed and begun meanwhile, and the last record may be half written. So one failed read does not
//! prove damage: the reader starts over, and reports the error only if it persists.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::mark::MarkedNumbers;
use super::{HEADER_BYTES, LogRecords, NOT_FLUSHED, RECORD_HEADER_BYTES, path_of};
use crate::error::Result;
use crate::store::directory::{damaged, unavailable};

/// Bytes read at once: at first, and at most unless a record is longer.
const PIECE_BYTES: (usize, usize) = (4 << 10, 1 << 20);

/// Reads records as they are appended.
pub(in crate::store) struct LogTail {
    folder: PathBuf,
    /// Where reading stopped; `None`: the log must be read from its beginning.
    place: Option<LogPosition>,
}

/// Position of the next record, which may not be there yet.
struct LogPosition {
    segment: u64,
    file: File,
    at: u64,
    /// The number of that record.
    next: u64,
}

impl LogTail {
    /// A reader of the log in `folder`.
    pub(in crate::store) fn new(folder: PathBuf) -> LogTail {
        LogTail { folder, place: None }
    }

    /// Goes back to the beginning.
    pub(in crate::store) fn rewind(&mut self) {
        self.place = None;
    }

    /// The log is still to be read from its beginning.
    pub(in crate::store) fn is_at_start(&self) -> bool {
        self.place.is_none()
    }

    /// Passes to `visit` the content of each following record that was acknowledged. If `is_closed` (no writer has
    /// the log open), also those that would count when it is opened. Gives a version that the tree has reached at
    /// least.
    ///
    /// Errors: `Corrupt` when an acknowledged record is not found, or no longer there; errors of `visit`.
    pub(in crate::store) fn read(
        &mut self,
        is_closed: bool,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<u64> {
        let MarkedNumbers { oldest, acknowledged, settled } = MarkedNumbers::read(&self.folder)?;
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

/// The start of a segment; `None` if it does not exist, or has just been begun.
fn open(folder: &Path, segment: u64) -> Result<Option<LogPosition>> {
    let mut file = match File::open(path_of(folder, segment)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|e| unavailable("the log cannot be read", e))?,
    };
    let header = piece(&mut file, 0, HEADER_BYTES)?;
    let first = LogRecords::new(&header, segment).map(|records| records.number);
    Ok(first.map(|next| LogPosition { segment, file, at: HEADER_BYTES as u64, next }))
}

/// Up to `len` bytes of a file from `at` on.
fn piece(file: &mut File, at: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.take(len as u64).read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(|e| unavailable("the log cannot be read", e))
}

impl LogPosition {
    /// Visits the whole records of this segment that are to be shown, and moves past them.
    fn read(
        &mut self,
        is_shown: impl Fn(u64) -> bool,
        visit: &mut impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut len, most) = PIECE_BYTES;
        loop {
            let bytes = piece(&mut self.file, self.at, len)?;
            let mut records = LogRecords { bytes: &bytes, at: 0, number: self.next };
            while let Some(content) = records.next_if(&is_shown) {
                visit(content)?;
            }
            let missing = records.missing();
            (self.at, self.next) = (self.at + records.at as u64, records.number);
            // The file ends here, for now, unless as many bytes came as were asked for.
            match missing {
                Some(missing) if bytes.len() == len => len = (4 * len).min(most).max(missing),
                _ => return Ok(()),
            }
        }
    }
}

impl LogRecords<'_> {
    /// Number of bytes that the next record takes, if it extends beyond those at hand.
    fn missing(&self) -> Option<usize> {
        let rest = &self.bytes[self.at..];
        let Some(header) = rest.get(..RECORD_HEADER_BYTES) else { return Some(RECORD_HEADER_BYTES) };
        let len = u32::from_le_bytes(*header.first_chunk()?) as usize;
        (len > rest.len() - RECORD_HEADER_BYTES).then_some(RECORD_HEADER_BYTES + len)
    }
}
