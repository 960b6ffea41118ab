//! Sorts any number of entries by key: an external merge sort.
//!
//! [`Sorter::push`] gathers entries in memory, in a [`Run`] for each keyspace. When they exceed the memory limit,
//! [`Sorter::make_room`] sorts the runs and moves them to files ([`Spill`]), one for each keyspace. In the end
//! [`Pile::merge`] walks all runs of a keyspace at once, those on disk and the last one in memory, so that every
//! entry is written and read at most once. The merge holds one block of each run in memory.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::path::PathBuf;

use super::run::{Run, sort_all};
use super::spill::{Spill, SpilledRun};
use super::watch::CancelHandle;
use crate::error::Result;
use crate::key::{KeyHead, Rowkey};
use crate::store::KeyspaceId;

/// Gathers entries of several keyspaces.
pub struct Sorter {
    piles: BTreeMap<KeyspaceId, Pile>,
    /// Where files may be created; without a folder everything stays in memory.
    folder: Option<PathBuf>,
    /// Memory limit, and memory used, in bytes.
    room: usize,
    filled: usize,
}

/// Entries of one keyspace.
#[derive(Default)]
pub struct Pile {
    gathered: Run,
    spilled: Option<Spill>,
    entries: u64,
}

impl Sorter {
    /// An empty sorter, which uses about `room` bytes of memory if there is a folder for the rest.
    pub fn new(folder: Option<PathBuf>, room: usize) -> Sorter {
        Sorter { piles: BTreeMap::new(), folder, room, filled: 0 }
    }

    /// Adds an entry. Keys and values are shorter than 4 GiB.
    pub fn push(&mut self, keyspace: KeyspaceId, key: &Rowkey, value: &[u8]) {
        let pile = self.piles.entry(keyspace).or_default();
        let before = pile.gathered.size();
        pile.gathered.push(key, value);
        pile.entries += 1;
        self.filled += pile.gathered.size() - before;
    }

    /// Spills what is in memory to disk, if it exceeds the limit.
    ///
    /// Errors: `Unavailable` when the disk refuses; `Cancelled`.
    pub fn make_room(&mut self, cancel: &CancelHandle) -> Result<()> {
        let Some(folder) = self.folder.as_ref().filter(|_| self.filled >= self.room) else { return Ok(()) };
        for pile in self.piles.values_mut().filter(|pile| pile.gathered.len() > 0) {
            cancel.check()?;
            sort_all(std::iter::once(&mut pile.gathered));
            let spilled = match &mut pile.spilled {
                Some(spilled) => spilled,
                none => none.insert(Spill::create(folder)?),
            };
            spilled.append(&pile.gathered, cancel)?;
            pile.gathered.clear();
        }
        self.filled = 0;
        Ok(())
    }

    /// Takes everything gathered, by keyspace.
    pub fn take(&mut self) -> BTreeMap<KeyspaceId, Pile> {
        self.filled = 0;
        std::mem::take(&mut self.piles)
    }
}

impl Pile {
    /// Number of entries.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// All entries in key order, those with equal keys as they came.
    ///
    /// Errors: as [`RunMerge::next`].
    pub fn merge(&mut self) -> Result<RunMerge<'_>> {
        sort_all(std::iter::once(&mut self.gathered));
        let spilled = self.spilled.iter().flat_map(Spill::runs).map(Origin::Disk);
        let origins = spilled.chain(std::iter::once(Origin::Memory(&self.gathered, 0)));
        let mut sources = BinaryHeap::new();
        for (number, mut from) in origins.enumerate() {
            // The run in memory starts at its first entry; one on disk is before it.
            let is_there = match &mut from {
                Origin::Disk(run) => run.advance()?,
                Origin::Memory(run, _) => run.len() > 0,
            };
            if is_there {
                sources.push(Reverse(RunCursor::new(number, from)));
            }
        }
        Ok(RunMerge { sources, is_lent: false })
    }
}

/// A walk over several sorted runs at once.
pub struct RunMerge<'p> {
    /// Runs that have not ended, the one with the smallest key on top.
    sources: BinaryHeap<Reverse<RunCursor<'p>>>,
    /// The entry on top was given out.
    is_lent: bool,
}

impl RunMerge<'_> {
    /// The next entry; `None` at the end, and after that.
    ///
    /// Errors: `Corrupt` when the bytes read are not those that were written, `Unavailable` when the disk refuses.
    pub fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        if std::mem::replace(&mut self.is_lent, true)
            && let Some(mut top) = self.sources.peek_mut()
            && !top.0.advance()?
        {
            PeekMut::pop(top);
        }
        Ok(self.sources.peek().map(|Reverse(source)| source.from.entry()))
    }
}

/// A run, positioned at an entry.
struct RunCursor<'p> {
    /// The start of the entry's key.
    head: KeyHead,
    /// The run's number, in order of spilling: of equal keys, the one of the earlier run comes first.
    number: usize,
    from: Origin<'p>,
}

/// A run on disk, or one in memory with its position.
enum Origin<'p> {
    Disk(SpilledRun<'p>),
    Memory(&'p Run, usize),
}

impl<'p> RunCursor<'p> {
    fn new(number: usize, from: Origin<'p>) -> Self {
        RunCursor { head: KeyHead::of(from.entry().0), number, from }
    }

    /// Moves to the next entry; false if there is none.
    fn advance(&mut self) -> Result<bool> {
        let is_there = match &mut self.from {
            Origin::Disk(run) => run.advance()?,
            Origin::Memory(run, at) => {
                *at += 1;
                *at < run.len()
            }
        };
        self.head = KeyHead::of(self.from.entry().0);
        Ok(is_there)
    }
}

impl Origin<'_> {
    /// The current entry; empty behind the last one.
    fn entry(&self) -> (&[u8], &[u8]) {
        match self {
            Origin::Disk(run) => run.entry(),
            Origin::Memory(run, at) => run.get(*at).unwrap_or_default(),
        }
    }
}

impl Ord for RunCursor<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_key = || self.from.entry().0.cmp(other.from.entry().0);
        self.head.cmp(&other.head).then_with(by_key).then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for RunCursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunCursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RunCursor<'_> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::{Kind, Result};

    type Entries = Vec<(KeyspaceId, Vec<u8>, Vec<u8>)>;

    fn merged(sorter: &mut Sorter) -> Result<Entries> {
        let mut entries = Vec::new();
        for (keyspace, mut pile) in sorter.take() {
            let (before, len) = (entries.len() as u64, pile.len());
            let mut merge = pile.merge()?;
            while let Some((key, value)) = merge.next()? {
                entries.push((keyspace, key.to_vec(), value.to_vec()));
            }
            assert!(merge.next()?.is_none(), "it stays at the end");
            assert_eq!(entries.len() as u64 - before, len);
        }
        Ok(entries)
    }

    fn gather(entries: impl IntoIterator<Item = (u32, Vec<u8>)>, room: usize) -> (Sorter, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(Some(folder.path().to_owned()), room);
        for (n, (keyspace, key)) in entries.into_iter().enumerate() {
            sorter.push(KeyspaceId(keyspace), &Rowkey::from(key), &n.to_be_bytes());
            sorter.make_room(&CancelHandle::default()).unwrap();
        }
        (sorter, folder)
    }

    proptest! {
        /// Entries with equal keys are in the order in which they came.
        #[test]
        fn as_a_map_has_them(
            entries in prop::collection::vec(
                (0..3u32, prop::collection::vec(prop::sample::select(vec![0u8, 1, 255]), 0..20)), 0..300,
            ),
            room in 1..20_000usize,
        ) {
            let mut expected: BTreeMap<_, Vec<Vec<u8>>> = BTreeMap::new();
            for (n, (keyspace, key)) in entries.iter().enumerate() {
                let values = expected.entry((KeyspaceId(*keyspace), key.clone())).or_default();
                values.push(n.to_be_bytes().to_vec());
            }
            let (mut sorter, _folder) = gather(entries, room);
            let sorted = merged(&mut sorter).unwrap();
            let keys = sorted.chunk_by(|a, b| (a.0, &a.1) == (b.0, &b.1));
            let values = |same: &[(_, _, Vec<u8>)]| same.iter().map(|(.., value)| value.clone()).collect();
            let found: Vec<_> =
                keys.map(|same| ((same[0].0, same[0].1.clone()), values(same))).collect();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn of_one_key_the_first_run_comes_first() {
        let (mut sorter, _folder) = gather((0..50).map(|_| (1, b"key".to_vec())), 1);
        let values: Vec<_> = merged(&mut sorter).unwrap().into_iter().map(|(.., value)| value).collect();
        assert_eq!(values, (0..50usize).map(|n| n.to_be_bytes().to_vec()).collect::<Vec<_>>());
    }

    #[test]
    fn memory_is_bounded_where_there_is_a_folder() {
        let entries = || (0..10_000u32).map(|n| (n % 2, n.to_le_bytes().to_vec()));
        let (mut sorter, folder) = gather(entries(), 4096);
        assert!(sorter.filled < 4096 && sorter.piles.values().all(|pile| pile.gathered.size() < 4096));
        assert!(
            sorter.piles.values().all(|pile| pile.spilled.as_ref().is_some_and(|s| s.runs().count() > 50))
        );
        drop(folder);
        assert_eq!(
            merged(&mut sorter).unwrap().len(),
            10_000,
            "its files are there for whoever has them open"
        );
        let mut sorter = Sorter::new(None, 4096);
        for (keyspace, key) in entries() {
            sorter.push(KeyspaceId(keyspace), &Rowkey::from(key), &[]);
            sorter.make_room(&CancelHandle::default()).unwrap();
        }
        assert!(sorter.piles.values().all(|pile| pile.spilled.is_none()));
        assert_eq!(merged(&mut sorter).unwrap().len(), 10_000);
    }

    #[test]
    fn what_stops_it_is_told() {
        let mut sorter = Sorter::new(Some("/dev/null/nowhere".into()), 1);
        sorter.push(KeyspaceId(1), &Rowkey::from("key"), b"value");
        let cancel = CancelHandle::default();
        assert_eq!(sorter.make_room(&cancel).unwrap_err().kind(), Kind::Unavailable);
        cancel.cancel();
        assert_eq!(sorter.make_room(&cancel).unwrap_err().kind(), Kind::Cancelled);
    }
}
