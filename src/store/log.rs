//! The write-ahead log of an engine on disk: every commit, in order, before it is acknowledged.
//!
//! The tree behind it gets recent writes later, from memory. So a commit first becomes a [`record`] here, and when
//! the database is opened, records that the tree does not have are replayed. The log is cut into *segments*, one file
//! each; a segment is removed once the tree has all of it.
//!
//! # Bytes
//!
//! All numbers are little-endian. A segment `log-7` starts with 32 bytes:
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 0 | 8 | `RKDBLOG1` |
//! | 8 | 8 | its number, 7 |
//! | 16 | 8 | number of its first record; records are numbered through |
//! | 24 | 8 | XXH3-64 of the 24 bytes before |
//!
//! Then records, one after the other, and zeros up to the end of the file. The zeros are written ahead, because
//! flushing a file that does not grow is cheaper:
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 0 | 4 | length of the content, not 0 |
//! | 4 | 8 | the record's number; its highest bit is set if the commit did not wait for a flush ([`Durability::Relaxed`]) |
//! | 12 | 8 | XXH3-64 of the content, seeded with the 8 bytes before |
//! | 20 | n | the content |
//!
//! Example: record 3 of content `hi` is `02000000 0300000000000000 033c1b010f197d0d 6869`.
//!
//! # What can be proved
//!
//! A write in progress when the power failed leaves a *torn* record: the last one, never acknowledged, and dropped
//! when the log is opened. An unreadable record is damage instead, and the log is refused, if a whole, flushed record
//! with a later number follows it anywhere, or if the [`Mark`] says that it was acknowledged. The mark is written after
//! each flush, but not flushed itself: it outlives the process, but a power failure may leave an older one. So one case
//! remains that looks torn but is not: the very last record, damaged after a power failure.
//!
//! Unflushed records may reach the disk in any order. The first unreadable one ends the log, unless it is known to
//! have been flushed later: by a flushed record behind it, with its segment, or when the log was closed.

mod mark;
pub(super) mod record;
mod tail;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Durability;
use super::directory::{damaged, sync_directory, unavailable};
use super::trust::Trust;
use crate::error::{Error, Result};
pub(super) use mark::Mark;
use mark::MarkedNumbers;
pub(super) use tail::LogTail;

const MAGIC: &[u8; 8] = b"RKDBLOG1";
const HEADER_BYTES: usize = 32;
const RECORD_HEADER_BYTES: usize = 20;
/// Bit in a record's number: the commit did not wait for a flush.
const NOT_FLUSHED: u64 = 1 << 63;

/// Bytes of a segment, zeros included: at first, and in which steps it grows in the end. It doubles in between, because
/// each open reads all of them.
const ROOM_BYTES: (u64, u64) = (32 << 10, 256 << 10);

/// Buffer capacity, in bytes, kept from one record to the next.
const RECORD_KEPT_BYTES: usize = 4 << 20;

/// The log: its newest segment, open for writing, and its mark.
pub(super) struct Log {
    folder: PathBuf,
    durability: Durability,
    trust: Arc<Trust>,
    mark: Arc<Mark>,
    file: File,
    segment: u64,
    /// Where the next record goes.
    end: u64,
    /// The segment is flushed up to here.
    flushed: u64,
    /// Length of the file.
    room: u64,
    /// Number of the next record.
    next: u64,
    /// The last record; the buffer is reused, unless it was large.
    record: Vec<u8>,
}

impl Log {
    /// Creates a log in `folder`, which has none.
    pub(super) fn create(folder: &Path, durability: Durability, trust: Arc<Trust>) -> Result<Log> {
        let mark = Arc::new(Mark::create(folder, trust.clone())?);
        let (file, end) = begin(folder, 1, 1, &trust)?;
        Ok(Log {
            folder: folder.to_owned(),
            durability,
            trust,
            mark,
            file,
            segment: 1,
            end,
            flushed: end,
            room: room_for(end),
            next: 1,
            record: Vec::new(),
        })
    }

    /// Opens the log in `folder`, passing the content of each record to `replay`, in order.
    ///
    /// Errors: `Corrupt` when an acknowledged record is missing or unreadable; `Unavailable` when the disk refuses;
    /// errors of `replay`.
    pub(super) fn open(
        folder: &Path,
        durability: Durability,
        trust: Arc<Trust>,
        mut replay: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<Log> {
        let mark = Mark::open(folder, trust.clone())?;
        let segments = segments_that_count(folder, &mark)?;
        let read = read_all(folder, &segments, mark.marked(), &mut replay)?;
        for segment in segments.iter().filter(|other| **other > read.segment) {
            fs::remove_file(path_of(folder, *segment))
                .and_then(|()| sync_directory(folder))
                .map_err(|e| unavailable("the log cannot be written", e))?;
        }
        let file = read.resume(folder, &mark).map_err(|e| unavailable("the log cannot be written", e))?;
        let LastSegment { segment, next, end, room, .. } = read;
        let (folder, mark) = (folder.to_owned(), Arc::new(mark));
        let record = Vec::new();
        Ok(Log { folder, durability, trust, mark, file, segment, end, flushed: end, room, next, record })
    }

    /// Appends a record; unless durability is relaxed, it is on the disk when this returns. `write` appends its
    /// content.
    ///
    /// Errors: `Unavailable`; then the log is unchanged, or accepts nothing more.
    pub(super) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        self.trust.check()?;
        let mut record = mem::take(&mut self.record);
        record.clear();
        record.resize(RECORD_HEADER_BYTES, 0);
        write(&mut record);
        let appended = self.append_record(&mut record);
        if record.capacity() <= RECORD_KEPT_BYTES {
            self.record = record;
        }
        appended
    }

    /// Appends a record whose header is still to be filled in. Errors: as [`Log::append`].
    fn append_record(&mut self, record: &mut [u8]) -> Result<()> {
        let content = &record[RECORD_HEADER_BYTES..];
        let len = u32::try_from(content.len()).map_err(|_| {
            Error::invalid("the commit is too large")
                .why("one commit holds less than 4 GiB")
                .hint("load it with COPY")
        })?;
        let number = match self.durability {
            Durability::Sync => self.next,
            Durability::Relaxed => self.next | NOT_FLUSHED,
        };
        let sum = xxh3_64_with_seed(content, number);
        record[..4].copy_from_slice(&len.to_le_bytes());
        record[4..12].copy_from_slice(&number.to_le_bytes());
        record[12..20].copy_from_slice(&sum.to_le_bytes());
        let room = self.room;
        if let Err(e) = self.write(record) {
            // A full disk takes no zeros in place of the record, if it does not keep files where they are.
            let cut = self.cut(room).or_else(|_| self.cut(self.end));
            if cut.and_then(|()| self.file.sync_all()).is_err() {
                self.trust.lose();
            }
            return Err(self.trust.after_write(e));
        }
        if self.flushes() {
            self.file.sync_data().map_err(|e| self.trust.after_flush(e))?;
            self.mark.acknowledge(self.next);
            self.flushed = self.end + record.len() as u64;
        }
        self.end += record.len() as u64;
        self.next += 1;
        Ok(())
    }

    /// Flushes appended records that are not flushed yet: before anything that depends on them reaches the disk.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.flushed < self.end {
            self.trust.check()?;
            self.file.sync_data().map_err(|e| self.trust.after_flush(e))?;
            self.mark.acknowledge(self.next - 1);
            self.flushed = self.end;
        }
        Ok(())
    }

    fn write(&mut self, record: &[u8]) -> io::Result<()> {
        let end = self.end + record.len() as u64;
        if end > self.room {
            // The zeros first: once the record is whole, readers of a relaxed log believe it.
            let room = room_for(end);
            self.file.seek(SeekFrom::Start(end))?;
            self.file.write_all(&vec![0; (room - end) as usize])?;
            self.file.seek(SeekFrom::Start(self.end))?;
            self.room = room;
        }
        self.file.write_all(record)
    }

    /// Cuts off a record that may be half written, leaving `room`: a shorter one may fit in there.
    fn cut(&mut self, room: u64) -> io::Result<()> {
        self.file.set_len(room)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&vec![0; (room - self.end) as usize])?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.room = room;
        Ok(())
    }

    /// Begins a new segment; gives the number of the previous one.
    pub(super) fn rotate(&mut self) -> Result<u64> {
        self.trust.check()?;
        self.file.sync_all().map_err(|e| self.trust.after_flush(e))?;
        let sealed = self.segment;
        (self.file, self.end) =
            begin(&self.folder, sealed + 1, self.next, &self.trust).inspect_err(|_| {
                // If it stays, opening the log skips it, since it is empty.
                let _ = fs::remove_file(path_of(&self.folder, sealed + 1));
            })?;
        (self.segment, self.room, self.flushed) = (sealed + 1, room_for(self.end), self.end);
        Ok(sealed)
    }

    /// Each record is flushed before it is acknowledged.
    pub(super) fn flushes(&self) -> bool {
        self.durability == Durability::Sync
    }

    /// How far the newest segment is flushed, in bytes.
    #[cfg(test)]
    pub(super) fn flushed(&self) -> u64 {
        self.flushed
    }

    /// Bytes in the newest segment.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// The mark, shared with those who remove segments.
    pub(super) fn mark(&self) -> Arc<Mark> {
        self.mark.clone()
    }

    /// Flushes the records and the mark.
    pub(super) fn close(&mut self) -> Result<()> {
        self.trust.check()?;
        self.flush()?;
        self.mark.sync()
    }
}

/// The last segment, read to its end.
struct LastSegment {
    segment: u64,
    /// Number of the record that follows.
    next: u64,
    /// Where that record goes, and the length of the file up to which it is usable.
    end: u64,
    room: u64,
    /// The bytes before `end` of which nothing says that they are on the disk.
    doubtful: Vec<u8>,
}

/// Passes the content of each record of the `segments` to `replay`, in order; gives the last segment that has any, or
/// was begun whole.
///
/// Errors: those of [`Log::open`].
fn read_all(
    folder: &Path,
    segments: &[u64],
    MarkedNumbers { oldest, acknowledged, .. }: MarkedNumbers,
    replay: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<LastSegment> {
    let mut last: Option<LastSegment> = None;
    for (n, segment) in segments.iter().enumerate() {
        if *segment != oldest + n as u64 {
            return Err(damaged(folder, format!("log-{}", oldest + n as u64), "it is missing"));
        }
        let is_last = n + 1 == segments.len();
        let next = last.as_ref().map(|read| read.next);
        let bytes =
            fs::read(path_of(folder, *segment)).map_err(|e| unavailable("the log cannot be read", e))?;
        let header = LogRecords::new(&bytes, *segment);
        // Begun, perhaps not whole, when the log went on in the one before: nothing in it was acknowledged. That one was
        // flushed first, so it lacks nothing.
        let is_stillborn = || {
            let is_next = |next| header.as_ref().is_none_or(|header| header.number <= next);
            is_last && holds_nothing(&bytes) && next.is_some_and(|next| next > acknowledged && is_next(next))
        };
        let mut records = match &header {
            Some(header) if next.is_none_or(|next| next == header.number) => header.clone(),
            _ if is_stillborn() => break,
            _ => {
                let why = "its first bytes are not those of this segment";
                return Err(damaged(folder, format!("log-{segment}"), why));
            }
        };
        // Older segments were given up once this one was on the disk.
        let mut acknowledged_end = if *segment == oldest { records.at } else { 0 };
        while let Some(content) = records.next() {
            if records.number <= acknowledged + 1 {
                acknowledged_end = records.at;
            }
            replay(content)?;
        }
        let (number, end, is_at_end) = (records.number, records.at as u64, records.is_at_end());
        let lacks_acknowledged = is_last && number <= acknowledged;
        let is_cut = !is_at_end && (!is_last || records.is_followed());
        if lacks_acknowledged || is_cut {
            let why = format!("record {number}, at byte {end}, was acknowledged and cannot be read");
            return Err(damaged(folder, format!("log-{segment}"), why));
        }
        let room = if is_at_end { bytes.len() as u64 } else { end };
        let doubtful = bytes[acknowledged_end..records.at].to_vec();
        last = Some(LastSegment { segment: *segment, next: number, end, room, doubtful });
    }
    last.ok_or_else(|| damaged(folder, format!("log-{oldest}"), "it is missing"))
}

impl LastSegment {
    /// Opens the segment to be written where its records end, and flushes those that may not be on the disk.
    fn resume(&self, folder: &Path, mark: &Mark) -> io::Result<File> {
        let LastSegment { segment, next, end, room, doubtful } = self;
        let mut file = File::options().read(true).write(true).open(path_of(folder, *segment))?;
        file.seek(SeekFrom::Start(end - doubtful.len() as u64))?;
        // A flush of these may have failed: for the system their pages are clean then, and no flush writes them.
        file.write_all(doubtful)?;
        // Cuts off a torn record and everything behind it, so that it never comes back.
        let is_torn = file.metadata()?.len() > *room;
        if is_torn {
            file.set_len(*room)?;
        }
        if is_torn || !doubtful.is_empty() {
            file.sync_all()?;
            sync_directory(folder)?;
            mark.acknowledge(next - 1);
        }
        Ok(file)
    }
}

/// The segments that are needed, ascending; older ones are removed.
fn segments_that_count(folder: &Path, mark: &Mark) -> Result<Vec<u64>> {
    let oldest = mark.marked().oldest;
    let mut segments = segments(folder).map_err(|e| unavailable("the log cannot be read", e))?;
    let older: Vec<u64> = segments.extract_if(.., |segment| *segment < oldest).collect();
    if !older.is_empty() {
        // What says that they are not needed may not be on the disk.
        mark.keep_from(oldest)?;
    }
    for segment in older {
        // On failure it is removed the next time.
        let _ = fs::remove_file(path_of(folder, segment));
    }
    Ok(segments)
}

/// Creates a segment whose first record will be `next`; gives the file and where that record goes.
fn begin(folder: &Path, segment: u64, next: u64, trust: &Trust) -> Result<(File, u64)> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&segment.to_le_bytes());
    bytes.extend_from_slice(&next.to_le_bytes());
    bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
    let end = bytes.len() as u64;
    bytes.resize(room_for(end) as usize, 0);
    let write = || {
        let mut file = File::create(path_of(folder, segment))?;
        file.write_all(&bytes)?;
        file.seek(SeekFrom::Start(end))?;
        Ok(file)
    };
    let file = write().map_err(|e| trust.after_write(e))?;
    file.sync_all().and_then(|()| sync_directory(folder)).map_err(|e| trust.after_flush(e))?;
    Ok((file, end))
}

/// Length of a segment whose records end at `end`, in bytes.
fn room_for(end: u64) -> u64 {
    let (least, step) = ROOM_BYTES;
    end.next_multiple_of(end.next_power_of_two().clamp(least, step))
}

/// The records of a segment, up to the first that cannot be read.
#[derive(Clone)]
struct LogRecords<'a> {
    bytes: &'a [u8],
    /// Where the next one starts.
    at: usize,
    /// Number of the next one.
    number: u64,
}

impl<'a> LogRecords<'a> {
    /// `None` when the bytes are not those of this segment.
    fn new(bytes: &'a [u8], segment: u64) -> Option<LogRecords<'a>> {
        let header = bytes.get(..HEADER_BYTES)?;
        let sound = header[..8] == *MAGIC
            && u64_at(header, 8)? == segment
            && u64_at(header, 24)? == xxh3_64(&header[..24]);
        sound.then_some(LogRecords { bytes, at: HEADER_BYTES, number: u64_at(header, 16)? })
    }

    /// The content of the record at `at`, if it is whole and its number, including the highest bit, `is_wanted`.
    fn record(&self, at: usize, is_wanted: impl Fn(u64) -> bool) -> Option<&'a [u8]> {
        let number = u64_at(self.bytes, at + 4).filter(|number| is_wanted(*number))?;
        let len = u32::from_le_bytes(*self.bytes[at..].first_chunk()?) as usize;
        let content = self.bytes.get(at + RECORD_HEADER_BYTES..)?.get(..len).filter(|_| len > 0)?;
        (u64_at(self.bytes, at + 12)? == xxh3_64_with_seed(content, number)).then_some(content)
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        self.next_if(|_| true)
    }

    /// The next record, if its number, including the highest bit, `is_wanted`.
    fn next_if(&mut self, is_wanted: impl Fn(u64) -> bool) -> Option<&'a [u8]> {
        let is_next = |number| number & !NOT_FLUSHED == self.number && is_wanted(number);
        let content = self.record(self.at, is_next)?;
        self.at += RECORD_HEADER_BYTES + content.len();
        self.number += 1;
        Some(content)
    }

    /// Only zeros are left.
    fn is_at_end(&self) -> bool {
        is_zeros(&self.bytes[self.at..])
    }

    /// A later, flushed record is somewhere behind the unreadable one. The length of the latter may be what is wrong,
    /// so every offset is tried.
    fn is_followed(&self) -> bool {
        // An upper limit: no more records fit into the file.
        let later = self.number + 1..self.number + self.bytes.len() as u64;
        (self.at + 1..self.bytes.len()).any(|at| self.record(at, |number| later.contains(&number)).is_some())
    }
}

fn holds_nothing(bytes: &[u8]) -> bool {
    bytes.get(HEADER_BYTES..).is_none_or(is_zeros)
}

/// Checks 256 bytes at a time: a segment is mostly zeros, and every open reads them.
fn is_zeros(bytes: &[u8]) -> bool {
    bytes.chunks(256).all(|some| some.iter().fold(0, |bits, byte| bits | byte) == 0)
}

/// Numbers of the segments in `folder`, ascending.
fn segments(folder: &Path) -> io::Result<Vec<u64>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        segments.extend(name.to_str().and_then(|name| name.strip_prefix("log-")?.parse::<u64>().ok()));
    }
    segments.sort_unstable();
    Ok(segments)
}

fn path_of(folder: &Path, segment: u64) -> PathBuf {
    folder.join(format!("log-{segment}"))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
