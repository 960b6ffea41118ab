//! Sorted runs on disk, for entries beyond the memory limit.
//!
//! The file has no name, or loses it once created, so that nothing remains of it however the process ends. It
//! consists of blocks; no entry crosses the end of a block:
//!
//! | bytes | holds |
//! |---|---|
//! | 8 | length of the entries, little-endian |
//! | 8 | XXH3-64 of the entries, seeded with the block's place in the file, little-endian |
//! | n | entries: length of the key and of the value, 4 bytes each, little-endian; the key; the value |

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::run::Run;
use super::watch::CancelHandle;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::store::is_full;

/// A block is written when its entries have this many bytes. A merge holds one block of each run in memory.
const BLOCK_BYTES: usize = if cfg!(test) { 256 } else { 64 << 10 };

/// Length of a block's header.
const HEADER_BYTES: usize = 16;

/// A file of runs.
pub struct Spill {
    file: File,
    /// Length of the file.
    bytes: u64,
    /// Where each run is in the file.
    runs: Vec<Range<u64>>,
}

impl Spill {
    /// Creates an empty file in `folder`.
    ///
    /// Errors: `Unavailable` when it cannot be created.
    pub fn create(folder: &Path) -> Result<Spill> {
        Ok(Spill::over(tempfile::tempfile_in(folder).map_err(unavailable)?))
    }

    fn over(file: File) -> Spill {
        Spill { file, bytes: 0, runs: Vec::new() }
    }

    /// Writes a sorted run.
    ///
    /// Errors: `Unavailable` when the disk refuses; `Cancelled`. Then the file cannot be used any more.
    pub fn append(&mut self, run: &Run, cancel: &CancelHandle) -> Result<()> {
        let start = self.bytes;
        let mut block = Vec::with_capacity(2 * BLOCK_BYTES);
        block.resize(HEADER_BYTES, 0);
        for (key, value) in run.iter() {
            block.extend_from_slice(&(key.len() as u32).to_le_bytes());
            block.extend_from_slice(&(value.len() as u32).to_le_bytes());
            block.extend_from_slice(key);
            block.extend_from_slice(value);
            if block.len() >= BLOCK_BYTES {
                cancel.check()?;
                self.write(&mut block)?;
            }
        }
        if block.len() > HEADER_BYTES {
            self.write(&mut block)?;
        }
        self.runs.push(start..self.bytes);
        Ok(())
    }

    /// Writes a block behind the others, and resets it.
    fn write(&mut self, block: &mut Vec<u8>) -> Result<()> {
        let (header, entries) = block.split_at_mut(HEADER_BYTES);
        header[..8].copy_from_slice(&(entries.len() as u64).to_le_bytes());
        header[8..].copy_from_slice(&xxh3_64_with_seed(entries, self.bytes).to_le_bytes());
        self.file.write_all(block).map_err(unavailable)?;
        self.bytes += block.len() as u64;
        block.truncate(HEADER_BYTES);
        Ok(())
    }

    /// Readers of all runs, each before its first entry.
    pub fn runs(&self) -> impl Iterator<Item = SpilledRun<'_>> {
        self.runs.iter().map(|place| SpilledRun {
            file: &self.file,
            unread: place.clone(),
            entries: Vec::new(),
            key: 0..0,
            value: 0..0,
        })
    }
}

/// Reads a run entry by entry.
pub struct SpilledRun<'s> {
    file: &'s File,
    /// Where the blocks not yet read are.
    unread: Range<u64>,
    /// The entries of the current block.
    entries: Vec<u8>,
    key: Range<usize>,
    value: Range<usize>,
}

impl SpilledRun<'_> {
    /// Moves to the next entry; false if there is none.
    ///
    /// Errors: `Corrupt` when the bytes are not what was written, `Unavailable` when the disk refuses.
    pub fn advance(&mut self) -> Result<bool> {
        let mut start = self.value.end;
        (self.key, self.value) = (0..0, 0..0);
        if start == self.entries.len() {
            self.entries.clear();
            if self.unread.is_empty() {
                return Ok(false);
            }
            self.read()?;
            start = 0;
        }
        let (key, value) = places(&self.entries, start).ok_or_else(|| damaged("an entry has no end"))?;
        (self.key, self.value) = (key, value);
        Ok(true)
    }

    /// The current entry; empty before the first and behind the last one.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        (&self.entries[self.key.clone()], &self.entries[self.value.clone()])
    }

    /// Reads the next block.
    fn read(&mut self) -> Result<()> {
        let place = self.unread.start;
        let mut file = self.file;
        let mut header = [0; HEADER_BYTES];
        file.seek(SeekFrom::Start(place)).and_then(|_| file.read_exact(&mut header)).map_err(unreadable)?;
        let header = u128::from_le_bytes(header);
        let (len, sum) = (header as u64, (header >> 64) as u64);
        let end = place.saturating_add(HEADER_BYTES as u64).saturating_add(len);
        if len == 0 || end > self.unread.end {
            return Err(damaged("a block has no end"));
        }
        self.entries.resize(len as usize, 0);
        let read = file.read_exact(&mut self.entries).map_err(unreadable);
        if read.is_ok() && xxh3_64_with_seed(&self.entries, place) == sum {
            self.unread.start = end;
            return Ok(());
        }
        self.entries.clear();
        Err(read.err().unwrap_or_else(|| damaged("a checksum does not match its bytes")))
    }
}

/// Where key and value of the entry at `start` are.
fn places(entries: &[u8], start: usize) -> Option<(Range<usize>, Range<usize>)> {
    let length = |at: usize| Some(u32::from_le_bytes(*entries.get(at..)?.first_chunk()?) as usize);
    let key = start + 8..(start + 8).checked_add(length(start)?)?;
    let value = key.end..key.end.checked_add(length(start + 4)?)?;
    (value.end <= entries.len()).then_some((key, value))
}

fn unavailable(e: io::Error) -> Error {
    let hint = match is_full(&e) {
        true => {
            "free some space on the disk of the database: a load temporarily needs up to twice its final size"
        }
        false => "see that the database's folder can be written to, and that the disk works",
    };
    Error::new(Kind::Unavailable, "there is no room to sort what is loaded")
        .why(format!(
            "it does not fit in memory, and the temporary file for the rest failed: {e}; nothing was changed"
        ))
        .hint(hint)
        .state(sqlstate::IO)
        .caused_by(e)
}

fn unreadable(e: io::Error) -> Error {
    match e.kind() {
        ErrorKind::UnexpectedEof => damaged("it is shorter than it was written"),
        _ => unavailable(e),
    }
}

fn damaged(why: &str) -> Error {
    Error::corrupt("the temporary file that sorts the load is damaged")
        .why(format!("{why}; nothing was changed"))
        .hint("check the disk, and load it again")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Rowkey;

    fn spilled(entries: u32) -> Spill {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::create(folder.path()).unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), usize::from(cfg!(windows)), "it has a name");
        let mut run = Run::default();
        (0..entries).for_each(|n| run.push(&Rowkey::from(format!("{n:06}").into_bytes()), &n.to_le_bytes()));
        spill.append(&run, &CancelHandle::default()).unwrap();
        spill
    }

    fn read(spill: &Spill) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let mut entries = Vec::new();
        for mut run in spill.runs() {
            while run.advance()? {
                let (key, value) = run.entry();
                entries.push((key.to_vec(), value.to_vec()));
            }
            assert!(!run.advance()?, "it ends once");
            assert_eq!(run.entry(), (&[][..], &[][..]));
        }
        Ok(entries)
    }

    #[test]
    fn what_was_written_is_read() {
        let expected = |n: u32| (format!("{n:06}").into_bytes(), n.to_le_bytes().to_vec());
        assert_eq!(read(&spilled(1000)).unwrap(), (0..1000).map(expected).collect::<Vec<_>>());
        assert_eq!(read(&spilled(0)).unwrap(), []);
    }

    #[test]
    fn an_entry_larger_than_a_block_is_one_block() {
        let mut spill = spilled(10);
        let mut run = Run::default();
        run.push(&Rowkey::from(vec![1; 1000]), &[2; 5000]);
        run.push(&Rowkey::from(vec![2]), &[]);
        spill.append(&run, &CancelHandle::default()).unwrap();
        assert_eq!(read(&spill).unwrap()[10..], [(vec![1; 1000], vec![2; 5000]), (vec![2], vec![])]);
    }

    #[test]
    fn no_damage_goes_unnoticed() {
        let bytes = spilled(100).bytes;
        for place in 0..bytes {
            let mut spill = spilled(100);
            let mut byte = [0];
            spill.file.seek(SeekFrom::Start(place)).unwrap();
            spill.file.read_exact(&mut byte).unwrap();
            byte[0] ^= 1 << (place % 8);
            spill.file.seek(SeekFrom::Start(place)).unwrap();
            spill.file.write_all(&byte).unwrap();
            assert_eq!(read(&spill).unwrap_err().kind(), Kind::Corrupt, "byte {place} of {bytes}");
        }
        for shorter in 0..bytes {
            let spill = spilled(100);
            spill.file.set_len(shorter).unwrap();
            assert_eq!(read(&spill).unwrap_err().kind(), Kind::Corrupt, "{shorter} bytes of {bytes}");
        }
    }

    #[test]
    fn blocks_that_changed_places_are_noticed() {
        let mut spill = spilled(100);
        let mut all = Vec::new();
        spill.file.rewind().unwrap();
        spill.file.read_to_end(&mut all).unwrap();
        let first = HEADER_BYTES + u64::from_le_bytes(*all.first_chunk().unwrap()) as usize;
        // All entries have one length, and so have all blocks but the last.
        assert_eq!(all[..8], all[first..][..8]);
        let (one, two) = all[..2 * first].split_at_mut(first);
        one.swap_with_slice(two);
        spill.file.rewind().unwrap();
        spill.file.write_all(&all).unwrap();
        assert_eq!(read(&spill).unwrap_err().kind(), Kind::Corrupt);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_told() {
        let mut spill = Spill::over(File::options().write(true).open("/dev/full").unwrap());
        let mut run = Run::default();
        run.push(&Rowkey::from(vec![1]), &[1]);
        let error = spill.append(&run, &CancelHandle::default()).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (Kind::Unavailable, sqlstate::IO));
        assert!(error.to_string().contains("free some space"), "{error}");
        let nowhere = Spill::create(Path::new("/dev/null/nowhere")).err().map(|e| e.kind());
        assert_eq!(nowhere, Some(Kind::Unavailable));
    }

    #[test]
    fn it_can_be_cancelled() {
        let cancel = CancelHandle::default();
        cancel.cancel();
        let mut run = Run::default();
        (0..100u8).for_each(|n| run.push(&Rowkey::from(vec![n]), &[n; 100]));
        let error = Spill::over(tempfile::tempfile().unwrap()).append(&run, &cancel).unwrap_err();
        assert_eq!(error.kind(), Kind::Cancelled);
    }
}
