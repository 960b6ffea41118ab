//! The mark beside the log: how far the log and the tree had come, which the next open must find.
//!
//! A file of 96 bytes with three numbers, each in two places that are written in turn, so that a torn write leaves
//! the previous number. The greater number whose checksum holds counts. All are little-endian:
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 0 | 8 | the oldest segment that is needed |
//! | 8 | 8 | XXH3-64 of the 8 bytes before |
//! | 16 | 16 | the same again |
//! | 32 | 16 | the last record that was acknowledged, and the XXH3-64 of its number |
//! | 48 | 16 | the same again |
//! | 64 | 16 | the version up to which the tree had everything, and the XXH3-64 of its number; the LSM engine leaves 0 |
//! | 80 | 16 | the same again |
//!
//! Example: `0700000000000000 af96b5d6581e6781` is segment, record or version 7.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::{path_of, u64_at};
use crate::error::Result;
use crate::store::directory::{damaged, unavailable};
use crate::store::trust::Trust;

pub(in crate::store) struct Mark {
    folder: PathBuf,
    trust: Arc<Trust>,
    state: Mutex<MarkState>,
}

struct MarkState {
    file: File,
    oldest: Number,
    acknowledged: Number,
    settled: Number,
    /// Something was written since the last flush.
    is_dirty: bool,
}

/// The numbers in a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkedNumbers {
    pub(super) oldest: u64,
    pub(super) acknowledged: u64,
    pub(super) settled: u64,
}

/// A number, stored in two places, the first of them at `at`.
struct Number {
    at: usize,
    value: u64,
    /// The place with the current number, 0 or 1.
    place: usize,
}

pub(super) const MARK_FILE: &str = "acknowledged";

const NUMBER_BYTES: usize = 16;
const OLDEST_AT: usize = 0;
const ACKNOWLEDGED_AT: usize = 2 * NUMBER_BYTES;
const SETTLED_AT: usize = 4 * NUMBER_BYTES;
const MARK_BYTES: usize = 6 * NUMBER_BYTES;

fn encode(value: u64) -> [u8; NUMBER_BYTES] {
    let value = value.to_le_bytes();
    let mut bytes = [0; NUMBER_BYTES];
    bytes[..8].copy_from_slice(&value);
    bytes[8..].copy_from_slice(&xxh3_64(&value).to_le_bytes());
    bytes
}

impl Number {
    /// The current number, if either place holds a valid one.
    fn decode(mark: &[u8], at: usize) -> Option<Number> {
        let places = (0..2).filter_map(|place| {
            let value = u64_at(mark, at + place * NUMBER_BYTES)?;
            mark[at + place * NUMBER_BYTES..].starts_with(&encode(value)).then_some(Number {
                at,
                value,
                place,
            })
        });
        places.max_by_key(|number| number.value)
    }

    /// Writes `value` into the place without the current number, and makes it current.
    fn write(&mut self, file: &mut File, value: u64) -> io::Result<()> {
        let place = 1 - self.place;
        file.seek(SeekFrom::Start((self.at + place * NUMBER_BYTES) as u64))?;
        file.write_all(&encode(value))?;
        (self.value, self.place) = (value, place);
        Ok(())
    }
}

impl MarkedNumbers {
    /// The numbers in the mark of `folder`.
    pub(super) fn read(folder: &Path) -> Result<MarkedNumbers> {
        let bytes = bytes_of(folder)?;
        let [oldest, acknowledged, settled] = numbers_of(folder, &bytes)?.map(|number| number.value);
        Ok(MarkedNumbers { oldest, acknowledged, settled })
    }

    pub(super) fn encode(self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        let numbers = [self.oldest, self.acknowledged, self.settled];
        for (places, number) in bytes.chunks_exact_mut(2 * NUMBER_BYTES).zip(numbers) {
            places.copy_from_slice(&encode(number).repeat(2));
        }
        bytes
    }
}

impl Mark {
    /// Creates the mark of a new log. Its directory entry is not flushed.
    pub(super) fn create(folder: &Path, trust: Arc<Trust>) -> Result<Mark> {
        let bytes = MarkedNumbers { oldest: 1, acknowledged: 0, settled: 0 }.encode();
        let created = || {
            let mut file = File::create(folder.join(MARK_FILE))?;
            file.write_all(&bytes)?;
            Ok(file)
        };
        let file = created().map_err(|e| trust.after_write(e))?;
        file.sync_all().map_err(|e| trust.after_flush(e))?;
        Mark::over(folder, trust, file, &bytes)
    }

    pub(super) fn open(folder: &Path, trust: Arc<Trust>) -> Result<Mark> {
        let bytes = bytes_of(folder)?;
        let file = File::options().write(true).open(folder.join(MARK_FILE));
        Mark::over(folder, trust, file.map_err(|e| unavailable("the log cannot be opened", e))?, &bytes)
    }

    fn over(folder: &Path, trust: Arc<Trust>, file: File, bytes: &[u8]) -> Result<Mark> {
        let [oldest, acknowledged, settled] = numbers_of(folder, bytes)?;
        let state = MarkState { file, oldest, acknowledged, settled, is_dirty: false };
        Ok(Mark { folder: folder.to_owned(), trust, state: Mutex::new(state) })
    }

    pub(super) fn marked(&self) -> MarkedNumbers {
        let state = self.state.lock();
        MarkedNumbers {
            oldest: state.oldest.value,
            acknowledged: state.acknowledged.value,
            settled: state.settled.value,
        }
    }

    /// The version that the tree must have reached.
    pub(in crate::store) fn settled(&self) -> u64 {
        self.state.lock().settled.value
    }

    /// Notes the last record that is on the disk. If the mark cannot be written, it proves less, but nothing wrong.
    pub(super) fn acknowledge(&self, record: u64) {
        let mut state = self.state.lock();
        let MarkState { file, acknowledged, is_dirty, .. } = &mut *state;
        *is_dirty = true;
        acknowledged.write(file, record).unwrap_or_else(|e| drop(self.trust.after_write(e)));
    }

    /// Notes the version up to which the tree on the disk has everything. A failure does as little harm as in
    /// [`Mark::acknowledge`].
    pub(in crate::store) fn note_in_tree(&self, version: u64) {
        let mut state = self.state.lock();
        let MarkState { file, settled, is_dirty, .. } = &mut *state;
        *is_dirty = true;
        settled.write(file, version).unwrap_or_else(|e| drop(self.trust.after_write(e)));
    }

    /// Flushes the mark.
    pub(super) fn sync(&self) -> Result<()> {
        let mut state = self.state.lock();
        if std::mem::take(&mut state.is_dirty) {
            state.file.sync_all().map_err(|e| self.trust.after_flush(e))?;
        }
        Ok(())
    }

    /// Notes the oldest segment that is needed, on the disk.
    pub(super) fn keep_from(&self, segment: u64) -> Result<()> {
        {
            let mut state = self.state.lock();
            let MarkState { file, oldest, is_dirty, .. } = &mut *state;
            *is_dirty = true;
            oldest.write(file, segment).map_err(|e| self.trust.after_write(e))?;
        }
        self.sync()
    }

    /// Removes the segments up to `segment`, which are no longer needed.
    pub(in crate::store) fn forget(&self, segment: u64) -> Result<()> {
        let before = self.marked().oldest;
        self.keep_from(before.max(segment + 1))?;
        for segment in before..=segment {
            // On failure it is removed when the log is opened.
            let _ = fs::remove_file(path_of(&self.folder, segment));
        }
        Ok(())
    }
}

fn bytes_of(folder: &Path) -> Result<Vec<u8>> {
    fs::read(folder.join(MARK_FILE)).map_err(|e| match e.kind() {
        ErrorKind::NotFound => damaged(folder, MARK_FILE, "it is missing"),
        _ => unavailable("the log cannot be read", e),
    })
}

/// The oldest segment, the last acknowledged record, the version of the tree.
fn numbers_of(folder: &Path, bytes: &[u8]) -> Result<[Number; 3]> {
    if bytes.len() != MARK_BYTES {
        let why = format!("it has {} bytes instead of {MARK_BYTES}", bytes.len());
        return Err(damaged(folder, MARK_FILE, why));
    }
    let number = |at| {
        Number::decode(bytes, at)
            .ok_or_else(|| damaged(folder, MARK_FILE, "its checksums do not match its bytes"))
    };
    Ok([number(OLDEST_AT)?, number(ACKNOWLEDGED_AT)?, number(SETTLED_AT)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::key::hex;

    #[test]
    fn the_example_of_the_table() {
        assert_eq!(hex(&encode(7)), "0700000000000000af96b5d6581e6781");
    }

    #[test]
    fn a_write_that_ends_half_way_leaves_the_number_before() {
        let folder = tempfile::tempdir().unwrap();
        let mark = Mark::create(folder.path(), Arc::default()).unwrap();
        let path = folder.path().join(MARK_FILE);
        for record in 1..9 {
            let before = fs::read(&path).unwrap();
            mark.acknowledge(record);
            mark.forget(record - 1).unwrap();
            mark.note_in_tree(record);
            let whole = fs::read(&path).unwrap();
            for cut in 0..MARK_BYTES {
                fs::write(&path, [&whole[..cut], &before[cut..]].concat()).unwrap();
                let found = Mark::open(folder.path(), Arc::default()).unwrap().marked();
                let of = |number: u64, before: u64| number == before || number == before + 1;
                assert!(of(found.oldest, (record - 1).max(1)), "{found:?} at {cut}");
                assert!(of(found.acknowledged, record - 1), "{found:?} at {cut}");
                assert!(of(found.settled, record - 1), "{found:?} at {cut}");
            }
            fs::write(&path, &whole).unwrap();
        }
        for place in 0..2 {
            let mut hurt = fs::read(&path).unwrap();
            hurt[place * NUMBER_BYTES] ^= 1;
            fs::write(&path, hurt).unwrap();
        }
        let error = Mark::open(folder.path(), Arc::default()).err().unwrap();
        assert_eq!(error.kind(), Kind::Corrupt);
        assert!(error.what().ends_with("/acknowledged is damaged"), "{error}");
    }
}
