//! The reads that a change relies on: keys and key ranges, for conflict detection.
//!
//! A [`Recording`] is a snapshot that records what is read through it: each GET as one key, each walk as the range
//! from where it began to where it stopped. The [`Reads`] go into the [`WriteBatch`](super::WriteBatch) made from
//! them, and the store refuses the batch when a later commit wrote into one of them. So a batch is committed only if
//! its reads would still give the same, and transactions are serializable in commit order: no lost update, no write
//! skew, no phantom.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Cursor, Direction, Entry, KeyspaceId, Mutation, Reader, Snapshot};
use crate::error::Result;
use crate::key::{End, KeyRange, KeyRanges, Rowkey};

/// Ranges kept per keyspace (count); with more, neighbours are joined, including the gaps between them.
const RANGES_MAX: usize = 8192;

/// Key ranges read from a snapshot; they conflict with any write after `since`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Version of the snapshot they were read from.
    since: u64,
    keyspaces: BTreeMap<KeyspaceId, KeyspaceReads>,
}

/// The ranges of one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct KeyspaceReads {
    joined: KeyRanges,
    /// Ranges added since the last join; never more than `joined` has, so that each range is moved only a few times.
    more: Vec<KeyRange>,
}

impl KeyspaceReads {
    fn add(&mut self, range: KeyRange) {
        self.more.push(range);
        if self.more.len() > self.joined.as_slice().len() {
            self.join();
        }
    }

    fn join(&mut self) {
        if self.more.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.joined).into_vec();
        all.append(&mut self.more);
        self.joined = KeyRanges::new(all).coarsen(RANGES_MAX);
    }
}

impl Reads {
    /// No reads yet, of a snapshot of this version.
    pub fn new(since: u64) -> Reads {
        Reads { since, keyspaces: BTreeMap::new() }
    }

    /// Version of the snapshot they were read from.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// Adds a range, joining it with those it touches. Beyond a limit per keyspace ranges become coarser, but never
    /// cover fewer keys.
    pub fn add(&mut self, keyspace: KeyspaceId, range: KeyRange) {
        if !range.is_empty() {
            self.keyspaces.entry(keyspace).or_default().add(range);
        }
    }

    /// Adds keys. Most of them were already read by the walk that found them.
    fn add_keys<'k>(&mut self, keyspace: KeyspaceId, keys: impl IntoIterator<Item = &'k [u8]>) {
        let ranges = self.keyspaces.entry(keyspace).or_default();
        for key in keys {
            if !ranges.joined.contains(key) {
                ranges.add(KeyRange::point(key));
            }
        }
    }

    /// `key` is within a recorded read.
    pub fn contains(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        let Some(KeyspaceReads { joined, more }) = self.keyspaces.get(&keyspace) else { return false };
        joined.contains(key) || more.iter().any(|range| range.contains(key))
    }

    /// The mutation changes what was read.
    pub fn meet(&self, mutation: &Mutation) -> bool {
        match mutation.change() {
            Some((key, _)) => self.contains(mutation.keyspace(), key),
            None => self.keyspaces.contains_key(&mutation.keyspace()),
        }
    }

    /// Keyspaces that were read.
    pub fn keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        self.keyspaces.keys().copied()
    }
}

/// A snapshot that records what is read through it.
pub struct Recording {
    base: Arc<dyn Snapshot>,
    reads: Mutex<Reads>,
}

impl Recording {
    /// Records reads of `base` from now on.
    pub fn new(base: Arc<dyn Snapshot>) -> Recording {
        let reads = Mutex::new(Reads::new(base.version()));
        Recording { base, reads }
    }

    /// What was read so far.
    pub fn reads(&self) -> Reads {
        let mut reads = self.reads.lock();
        reads.keyspaces.values_mut().for_each(KeyspaceReads::join);
        reads.clone()
    }
}

impl Snapshot for Recording {
    fn reader(&self) -> Result<Box<dyn Reader + '_>> {
        Ok(Box::new(RecordingReader { base: self.base.reader()?, reads: &self.reads }))
    }

    fn unrecorded(&self) -> Result<Box<dyn Reader + '_>> {
        self.base.unrecorded()
    }

    fn version(&self) -> u64 {
        self.base.version()
    }
}

struct RecordingReader<'s> {
    base: Box<dyn Reader + 's>,
    reads: &'s Mutex<Reads>,
}

impl Reader for RecordingReader<'_> {
    fn get(&self, keyspace: KeyspaceId, key: &[u8]) -> Result<Option<&[u8]>> {
        self.reads.lock().add_keys(keyspace, [key]);
        self.base.get(keyspace, key)
    }

    fn get_many(&self, keyspace: KeyspaceId, keys: &[&[u8]]) -> Result<Vec<Option<&[u8]>>> {
        self.reads.lock().add_keys(keyspace, keys.iter().copied());
        self.base.get_many(keyspace, keys)
    }

    fn cursor<'a>(
        &'a self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>> {
        let base = self.base.cursor(keyspace, range, direction)?;
        let (range, walked, last) = (range.clone(), Walked::Nothing, Vec::new());
        Ok(Box::new(RecordingCursor { base, reads: self.reads, keyspace, range, direction, walked, last }))
    }

    /// Not recorded: an estimate for plans, which no answer depends on.
    fn entries(&self, keyspace: KeyspaceId) -> Result<u64> {
        self.base.entries(keyspace)
    }

    /// Not recorded, like [`Reader::entries`].
    fn estimate(&self, keyspace: KeyspaceId, range: &KeyRange) -> Result<Option<u64>> {
        self.base.estimate(keyspace, range)
    }

    /// Recorded as a read of every key.
    fn count(&self, keyspace: KeyspaceId) -> Result<Option<u64>> {
        let count = self.base.count(keyspace)?;
        if count.is_some() {
            self.reads.lock().add(keyspace, KeyRange::all());
        }
        Ok(count)
    }

    /// Not recorded: it does not affect what is written.
    fn verify(&self, keyspace: KeyspaceId, watch: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        self.base.verify(keyspace, watch)
    }
}

/// How far a cursor got.
enum Walked {
    Nothing,
    /// Up to the last key, inclusive.
    ToLast,
    /// To the end of its range, or to an error.
    ToEnd,
}

/// Tracks where it stopped, and records the range when dropped.
struct RecordingCursor<'a> {
    base: Box<dyn Cursor + 'a>,
    reads: &'a Mutex<Reads>,
    keyspace: KeyspaceId,
    range: KeyRange,
    direction: Direction,
    walked: Walked,
    last: Vec<u8>,
}

impl Cursor for RecordingCursor<'_> {
    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        self.walked = Walked::ToEnd;
        let entry = self.base.next()?;
        if let Some((key, _)) = entry {
            self.walked = Walked::ToLast;
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        Ok(entry)
    }
}

impl Drop for RecordingCursor<'_> {
    fn drop(&mut self) {
        let mut range = self.range.clone();
        match (&self.walked, self.direction) {
            (Walked::Nothing, _) => return,
            (Walked::ToLast, Direction::Forward) => {
                range.end = End::Before(Rowkey::from(&self.last[..]).successor());
            }
            (Walked::ToLast, Direction::Reverse) => range.start = Rowkey::from(&self.last[..]),
            (Walked::ToEnd, _) => {}
        }
        self.reads.lock().add(self.keyspace, range);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryStore, Store, WriteBatch};
    use proptest::prelude::*;

    const T: KeyspaceId = KeyspaceId(1);

    /// A recording of the keys a to e.
    fn recording() -> Recording {
        let store = MemoryStore::new();
        let mut batch = WriteBatch::default();
        ["a", "b", "c", "d", "e"].iter().for_each(|key| batch.put(T, *key, Vec::new()));
        store.commit(batch).unwrap();
        Recording::new(store.snapshot().unwrap())
    }

    fn walk(recording: &Recording, range: KeyRange, direction: Direction, steps: usize) {
        let reader = recording.reader().unwrap();
        let mut cursor = reader.cursor(T, &range, direction).unwrap();
        for _ in 0..steps {
            cursor.next().unwrap();
        }
    }

    fn shown(recording: &Recording) -> String {
        let reads = recording.reads();
        let ranges = reads.keyspaces.get(&T).map_or(&[][..], |ranges| ranges.joined.as_slice());
        ranges.iter().map(|range| format!("{range:?}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_walk_is_recorded_as_far_as_it_went() {
        let cases = [
            (KeyRange::new("a", "e"), Direction::Forward, 0, ""),
            (KeyRange::new("a", "e"), Direction::Forward, 2, r"['a' .. 'b\x00')"),
            (KeyRange::new("a", "e"), Direction::Forward, 5, "['a' .. 'e')"),
            (KeyRange::new("0", "e"), Direction::Reverse, 2, "['c' .. 'e')"),
            (KeyRange::all(), Direction::Reverse, 9, "['' ..)"),
            (KeyRange::new("x", "y"), Direction::Forward, 1, "['x' .. 'y')"),
            (KeyRange::new("y", "x"), Direction::Forward, 1, ""),
        ];
        for (range, direction, steps, expected) in cases {
            let recording = recording();
            walk(&recording, range, direction, steps);
            assert_eq!(shown(&recording), expected);
        }
    }

    #[test]
    fn a_walk_that_goes_on_is_one_range_and_gets_are_points() {
        let recording = recording();
        walk(&recording, KeyRange::starting_at("a"), Direction::Forward, 2);
        walk(&recording, KeyRange::starting_at(Rowkey::from("b").successor()), Direction::Forward, 1);
        let reader = recording.reader().unwrap();
        reader.get(T, b"e").unwrap();
        reader.get(T, b"nothing here").unwrap();
        assert_eq!(
            shown(&recording),
            r"['a' .. 'c\x00') ['e' .. 'e\x00') ['nothing here' .. 'nothing here\x00')"
        );
    }

    #[test]
    fn many_reads_become_coarser_and_lose_no_key() {
        let mut reads = Reads::new(1);
        let key = |n: usize| format!("{n:08}");
        (0..5 * RANGES_MAX).for_each(|n| reads.add(T, KeyRange::point(&*key(n))));
        let KeyspaceReads { joined, more } = &reads.keyspaces[&T];
        assert!(joined.as_slice().len() <= RANGES_MAX && more.len() <= RANGES_MAX);
        assert!((0..5 * RANGES_MAX).all(|n| reads.contains(T, key(n).as_bytes())));
        assert!(!reads.contains(T, b"1") && !reads.contains(T, b"/"));
    }

    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(vec![0u8, 7, 0xFF]), 0..3)
    }

    proptest! {
        #[test]
        fn what_was_added_is_contained_and_nothing_else(
            ranges in prop::collection::vec((key(), prop::option::of(key())), 0..8),
            points in prop::collection::vec(key(), 0..8),
            keys in prop::collection::vec(key(), 20),
        ) {
            let mut reads = Reads::new(1);
            let ranges: Vec<KeyRange> = ranges
                .into_iter()
                .map(|(start, end)| end.map_or_else(|| KeyRange::starting_at(start.clone()), |end| KeyRange::new(start.clone(), end)))
                .collect();
            ranges.iter().for_each(|range| reads.add(T, range.clone()));
            reads.add_keys(T, points.iter().map(|key| &key[..]));
            for key in keys {
                let is_read = points.contains(&key) || ranges.iter().any(|range| range.contains(&key));
                prop_assert_eq!(reads.contains(T, &key), is_read);
                prop_assert!(!reads.contains(KeyspaceId(2), &key));
            }
            reads.keyspaces.values_mut().for_each(KeyspaceReads::join);
            let kept = reads.keyspaces.get(&T).map_or(&[][..], |ranges| ranges.joined.as_slice());
            let are_apart = |pair: &[KeyRange]| matches!(&pair[0].end, End::Before(end) if *end < pair[1].start);
            prop_assert!(kept.windows(2).all(are_apart), "disjoint, not touching");
        }
    }
}
