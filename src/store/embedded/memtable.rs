//! The memtable: the entries that are in the log but not yet in the tree, with every version of every key.
//!
//! One thread writes while others read. All versions of a key are kept, so that a snapshot finds the one of its time.
//! Walks have to pass those that they do not show, and deletions with the entry of the tree that each hides. A memtable
//! counts what is passed in it, so that it is moved before that costs more than moving it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_skiplist::SkipMap;
use crossbeam_skiplist::map::{Entry, Range};
use parking_lot::RwLock;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::MEMTABLE_BYTES;
use crate::key::{End, KeyHead, KeyRange};
use crate::store::log::record::LogOperation;
use crate::store::rules::may_exist;
use crate::store::{Change, ChangeCursor, Direction, KeyspaceId};

/// Approximate memory per entry besides its key and value, in bytes.
pub(super) const ENTRY_BYTES: usize = 144;

/// Versions (count) of a key that a walk passes one by one; then it searches for what is behind them.
const STREAK: usize = 8;

/// What walks may pass (count) before the memtable is in the way: for each entry, and besides. To pass one takes some
/// 40 to 150 ns; any move takes a millisecond, and each entry has to be moved some time (2026-12-01).
const PASSED: (u64, u64) = if cfg!(test) { (1, 16) } else { (4, 20_000) };

/// Position of one version of a key: keys ascend; of one key, the newest version comes first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct VersionedKey {
    keyspace: KeyspaceId,
    /// The first bytes of the key, which decide most comparisons without reading the key itself.
    head: KeyHead,
    key: Box<[u8]>,
    version: Reverse<u64>,
}

impl VersionedKey {
    fn new(keyspace: KeyspaceId, key: &[u8], version: u64) -> VersionedKey {
        VersionedKey { keyspace, head: KeyHead::of(key), key: key.into(), version: Reverse(version) }
    }

    /// The same key in another version.
    fn at(&self, version: u64) -> VersionedKey {
        VersionedKey { version: Reverse(version), ..self.clone() }
    }

    fn is_of(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        self.keyspace == keyspace && *self.key == *key
    }

    /// Both are versions of one key.
    fn is_same(&self, other: &VersionedKey) -> bool {
        self.head == other.head && self.is_of(other.keyspace, &other.key)
    }
}

/// The value; `None`: deleted.
type NewValue = Option<Box<[u8]>>;

#[derive(Default)]
pub(super) struct Memtable {
    entries: SkipMap<VersionedKey, NewValue>,
    keys: BloomFilter,
    bytes: AtomicUsize,
    /// The newest version in it.
    version: AtomicU64,
    /// Puts minus deletes, for each keyspace with entries here.
    more: RwLock<BTreeMap<KeyspaceId, i64>>,
    /// How many deletions, and versions that they did not show, walks have passed.
    passed: AtomicU64,
}

impl Memtable {
    /// Approximate memory used, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// Walks have passed so much in it that moving it to the tree would have taken less.
    pub(super) fn is_in_the_way(&self) -> bool {
        let entries = self.entries.len() as u64;
        self.passed.load(Ordering::Relaxed) > PASSED.0 * entries + PASSED.1
    }

    /// Notes that so much was passed.
    pub(super) fn pass(&self, count: u64) {
        self.passed.fetch_add(count, Ordering::Relaxed);
    }

    /// Adds the steps of commit `version`. Only the writer calls it.
    pub(super) fn write<'a>(&self, version: u64, steps: impl Iterator<Item = LogOperation<'a>>) {
        let mut more = BTreeMap::new();
        let mut bytes = 0;
        for step in steps {
            let (keyspace, key, value) = match step {
                LogOperation::Put(keyspace, key, value) => (keyspace, key, Some(value)),
                LogOperation::Delete(keyspace, key) if may_exist(key) => (keyspace, key, None),
                _ => continue,
            };
            bytes += ENTRY_BYTES + key.len() + value.map_or(0, <[u8]>::len);
            *more.entry(keyspace).or_insert(0) += if value.is_some() { 1 } else { -1 };
            self.keys.add(keyspace, key);
            self.entries.insert(VersionedKey::new(keyspace, key, version), value.map(Box::from));
        }
        let mut all = self.more.write();
        more.into_iter().for_each(|(keyspace, more)| *all.entry(keyspace).or_insert(0) += more);
        self.version.fetch_max(version, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Puts minus deletes of a keyspace; `None` if it has no entries here.
    pub(super) fn more(&self, keyspace: KeyspaceId) -> Option<i64> {
        self.more.read().get(&keyspace).copied()
    }

    /// The entry of a key as of `version`; `None` if the key was not written.
    pub(super) fn get(&self, keyspace: KeyspaceId, key: &[u8], version: u64) -> Option<FoundEntry<'_>> {
        if !self.keys.may_have(keyspace, key) {
            return None;
        }
        self.at(VersionedKey::new(keyspace, key, version)).map(FoundEntry)
    }

    /// The entry of a key as of its version, from the skip list.
    fn at(&self, key: VersionedKey) -> Option<Entry<'_, VersionedKey, NewValue>> {
        let found = self.entries.lower_bound(Bound::Included(&key))?;
        found.key().is_of(key.keyspace, &key.key).then_some(found)
    }

    /// The changes of a range as of `version`, in cursor order.
    pub(super) fn changes(
        &self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        direction: Direction,
        version: u64,
    ) -> Layer<'_> {
        // Sorts before every version of the key.
        let place = |key: &[u8]| VersionedKey::new(keyspace, key, u64::MAX);
        let end = match &range.end {
            End::Before(key) => Bound::Excluded(place(key)),
            End::Open => match keyspace.0.checked_add(1) {
                Some(next) => Bound::Excluded(VersionedKey::new(KeyspaceId(next), &[], u64::MAX)),
                None => Bound::Unbounded,
            },
        };
        let bounds = (Bound::Included(place(&range.start)), end);
        let rest = self.entries.range(bounds.clone());
        let mut layer =
            Layer { memtable: self, rest, bounds, direction, version, here: None, ahead: None, passed: 0 };
        layer.advance();
        layer
    }

    /// The newest version of each key, ordered by keyspace and key.
    pub(super) fn newest(&self) -> impl Iterator<Item = Newest<'_>> {
        let mut before: Option<Entry<'_, VersionedKey, NewValue>> = None;
        self.entries.iter().filter_map(move |entry| {
            let is_older = before.as_ref().is_some_and(|before| before.key().is_same(entry.key()));
            before = Some(entry.clone());
            (!is_older).then_some(Newest(entry))
        })
    }
}

/// A Bloom filter over the keys that were written; all bits of one key lie in one word. Most keys looked up were not
/// written, and searching the skip list for them costs a cache miss per step.
///
/// A key's bits are set before the version that writes it becomes visible, so a reader of that version finds them.
struct BloomFilter([OnceLock<Box<Segment>>; SEGMENTS]);

/// Allocated when the first key falls into it: most memtables get few keys.
type Segment = [AtomicU64; SEGMENT_WORDS];

const SEGMENT_WORDS: usize = if cfg!(test) { 64 } else { 512 };

/// Enough that a full memtable of short entries has fewer than 1 false positive in 1,000 lookups.
const SEGMENTS: usize = (MEMTABLE_BYTES / 256).div_ceil(SEGMENT_WORDS);

impl Default for BloomFilter {
    fn default() -> BloomFilter {
        BloomFilter([const { OnceLock::new() }; SEGMENTS])
    }
}

impl BloomFilter {
    fn add(&self, keyspace: KeyspaceId, key: &[u8]) {
        let BloomPosition { segment, word, bits } = BloomPosition::of(keyspace, key);
        let words = self.0[segment].get_or_init(|| Box::new([const { AtomicU64::new(0) }; SEGMENT_WORDS]));
        words[word].fetch_or(bits, Ordering::Relaxed);
    }

    fn may_have(&self, keyspace: KeyspaceId, key: &[u8]) -> bool {
        let BloomPosition { segment, word, bits } = BloomPosition::of(keyspace, key);
        self.0[segment].get().is_some_and(|words| words[word].load(Ordering::Relaxed) & bits == bits)
    }
}

/// Position of a key's bits.
struct BloomPosition {
    segment: usize,
    word: usize,
    bits: u64,
}

impl BloomPosition {
    fn of(keyspace: KeyspaceId, key: &[u8]) -> BloomPosition {
        let hash = xxh3_64_with_seed(key, keyspace.0.into());
        let bit = |n: u32| 1 << (hash >> (6 * n) & 63);
        let (segment, word) = ((hash >> 48) as usize % SEGMENTS, (hash >> 32) as usize % SEGMENT_WORDS);
        BloomPosition { segment, word, bits: bit(0) | bit(1) | bit(2) | bit(3) }
    }
}

/// An entry of [`Memtable::newest`].
pub(super) struct Newest<'m>(Entry<'m, VersionedKey, NewValue>);

impl Newest<'_> {
    pub(super) fn change(&self) -> (KeyspaceId, Change<'_>) {
        let VersionedKey { keyspace, key, .. } = self.0.key();
        (*keyspace, (key, self.0.value().as_deref()))
    }
}

/// The entry found under a key.
pub(super) struct FoundEntry<'m>(Entry<'m, VersionedKey, NewValue>);

impl FoundEntry<'_> {
    /// `None`: it was deleted.
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.0.value().as_deref()
    }
}

type KeyBounds = (Bound<VersionedKey>, Bound<VersionedKey>);

/// Changes of a range of one memtable, as of a version.
pub(super) struct Layer<'m> {
    memtable: &'m Memtable,
    rest: Range<'m, VersionedKey, KeyBounds, VersionedKey, NewValue>,
    /// Those of the range.
    bounds: KeyBounds,
    direction: Direction,
    version: u64,
    here: Option<Entry<'m, VersionedKey, NewValue>>,
    /// Used in reverse, where older versions come first: an entry read ahead, the oldest of the next key.
    ahead: Option<Entry<'m, VersionedKey, NewValue>>,
    /// What was passed and is not yet noted in the memtable (count).
    passed: u64,
}

impl<'m> Layer<'m> {
    fn shows(&self, entry: &Entry<'m, VersionedKey, NewValue>) -> bool {
        entry.key().version.0 <= self.version
    }

    /// The first entry to show behind those of the key at `before`, which was shown.
    fn forward(
        &mut self,
        mut before: Option<Entry<'m, VersionedKey, NewValue>>,
    ) -> Option<Entry<'m, VersionedKey, NewValue>> {
        let (mut was_shown, mut streak) = (true, 0);
        loop {
            let entry = self.rest.next()?;
            if !before.as_ref().is_some_and(|before| before.key().is_same(entry.key())) {
                (was_shown, streak) = (false, 0);
            }
            if !was_shown && self.shows(&entry) {
                return Some(entry);
            }
            streak += 1;
            self.passed += 1;
            if streak == STREAK {
                let start = match was_shown {
                    true => Bound::Excluded(entry.key().at(0)),
                    false => Bound::Included(entry.key().at(self.version)),
                };
                self.rest = self.memtable.entries.range((start, self.bounds.1.clone()));
            }
            before = Some(entry);
        }
    }

    /// The first entry to show from here down.
    fn backward(&mut self) -> Option<Entry<'m, VersionedKey, NewValue>> {
        loop {
            let oldest = self.ahead.take().or_else(|| self.rest.next_back())?;
            let mut shown = Some(&oldest).filter(|oldest| self.shows(oldest)).cloned();
            let mut streak = 0;
            loop {
                self.ahead = self.rest.next_back();
                let Some(entry) = self.ahead.take_if(|entry| oldest.key().is_same(entry.key())) else {
                    break;
                };
                streak += 1;
                self.passed += 1;
                if streak == STREAK {
                    let key = entry.key();
                    shown = self.memtable.at(key.at(self.version));
                    let end = Bound::Excluded(key.at(u64::MAX));
                    self.rest = self.memtable.entries.range((self.bounds.0.clone(), end));
                } else if self.shows(&entry) {
                    shown = Some(entry);
                }
            }
            if shown.is_some() {
                return shown;
            }
        }
    }
}

impl Drop for Layer<'_> {
    fn drop(&mut self) {
        if self.passed > 0 {
            self.memtable.pass(self.passed);
        }
    }
}

impl ChangeCursor for Layer<'_> {
    fn peek(&self) -> Option<Change<'_>> {
        self.here.as_ref().map(|entry| (&*entry.key().key, entry.value().as_deref()))
    }

    fn advance(&mut self) {
        let before = self.here.take();
        self.passed += u64::from(before.as_ref().is_some_and(|before| before.value().is_none()));
        self.here = match self.direction {
            Direction::Forward => self.forward(before),
            Direction::Reverse => self.backward(),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const T: KeyspaceId = KeyspaceId(3);

    fn walked(
        table: &Memtable,
        range: &KeyRange,
        direction: Direction,
        version: u64,
    ) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut layer = table.changes(T, range, direction, version);
        let mut found = Vec::new();
        while let Some((key, value)) = layer.peek() {
            found.push((key.to_vec(), value.map(<[u8]>::to_vec)));
            layer.advance();
        }
        found
    }

    #[test]
    fn most_keys_that_were_not_written_are_told_at_once() {
        let table = Memtable::default();
        assert!(!table.keys.may_have(T, b"0"));
        let key = |n: usize| n.to_string().into_bytes();
        let written = MEMTABLE_BYTES / (ENTRY_BYTES + 50);
        for n in 0..written {
            table.write(1, std::iter::once(LogOperation::Put(T, &key(n), b"")));
        }
        assert!((0..written).all(|n| table.keys.may_have(T, &key(n))));
        let others = (written..written + 100_000).filter(|n| table.keys.may_have(T, &key(*n)));
        assert!(others.count() < 100, "of 100,000");
    }

    #[test]
    fn walks_pass_few_versions_of_a_key_and_note_what_they_pass() {
        let table = Memtable::default();
        let mut writes = 0;
        let mut write = |key: &str, value: Option<&[u8]>| {
            writes += 1;
            let step = match value {
                Some(value) => LogOperation::Put(T, key.as_bytes(), value),
                None => LogOperation::Delete(T, key.as_bytes()),
            };
            table.write(writes, std::iter::once(step));
        };
        write("a", Some(b"first"));
        (0..1_000).for_each(|_| write("b", Some(b"next")));
        write("c", Some(b"last"));
        for (version, shown) in [(1, 1), (2, 2), (500, 2), (2_000, 3)] {
            for direction in [Direction::Forward, Direction::Reverse] {
                let before = table.passed.load(Ordering::Relaxed);
                assert_eq!(walked(&table, &KeyRange::all(), direction, version).len(), shown);
                assert!(table.passed.load(Ordering::Relaxed) - before <= 3 * STREAK as u64);
            }
        }
        let before = table.passed.load(Ordering::Relaxed);
        write("a", None);
        assert_eq!(
            walked(&table, &KeyRange::prefix("a"), Direction::Forward, 2_000),
            [(b"a".to_vec(), None)]
        );
        assert_eq!(table.passed.load(Ordering::Relaxed) - before, 2, "the deletion and what it deleted");
        assert!(!table.is_in_the_way());
        table.pass(PASSED.0 * 1_003 + PASSED.1);
        assert!(table.is_in_the_way());
    }

    proptest! {
        #[test]
        fn every_version_sees_what_was_there(
            writes in prop::collection::vec((0..2u32, "[ab]{1,2}", any::<Option<u8>>()), 0..100),
            start in "[ab]{0,2}",
            end in "[ab]{0,2}",
        ) {
            let table = Memtable::default();
            let mut model: BTreeMap<Vec<u8>, Option<Vec<u8>>> = BTreeMap::new();
            let mut moments = vec![model.clone()];
            for (n, (other, key, value)) in writes.iter().enumerate() {
                let value = value.map(|value| [value]);
                let keyspace = KeyspaceId(T.0 + other);
                let step = match &value {
                    Some(value) => LogOperation::Put(keyspace, key.as_bytes(), value),
                    None => LogOperation::Delete(keyspace, key.as_bytes()),
                };
                table.write(n as u64 + 1, std::iter::once(step));
                if *other == 0 {
                    model.insert(key.clone().into(), value.map(|value| value.to_vec()));
                }
                moments.push(model.clone());
            }
            let range = KeyRange::new(start.as_str(), end.as_str());
            for (version, moment) in moments.iter().enumerate() {
                let version = version as u64;
                for key in ["a", "b", "aa", "ab", "ba", "bb"] {
                    let found = table.get(T, key.as_bytes(), version);
                    let found = found.map(|found| found.value().map(<[u8]>::to_vec));
                    prop_assert_eq!(found.as_ref(), moment.get(key.as_bytes()));
                }
                let inside = moment.iter().filter(|(key, _)| range.contains(key));
                let mut expected: Vec<_> = inside.map(|(key, value)| (key.clone(), value.clone())).collect();
                prop_assert_eq!(&walked(&table, &range, Direction::Forward, version), &expected);
                expected.reverse();
                prop_assert_eq!(&walked(&table, &range, Direction::Reverse, version), &expected);
            }
            let of_t = table.newest().filter(|newest| newest.change().0 == T).count();
            prop_assert_eq!(of_t, model.len());
            prop_assert_eq!(table.more(T).is_some(), !model.is_empty());
        }
    }
}
