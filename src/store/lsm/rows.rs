//! A row cache: values that were looked up, kept in memory. Without it, each lookup searches the memtable and every
//! run of tables.
//!
//! # Why a cached value is right
//!
//! A reader sees the commits below its sequence number. A cached value is stored with the number of the reader that
//! looked it up, and given only to readers of that number and above; older readers search the tree. So it could be
//! wrong only if a commit between the two wrote the key. But each commit announces its keys to the cache before any
//! reader can see it: that removes the cached value, and records the commit's number, so that readers of that number
//! and below, which may have looked up the old value, can no longer cache it.
//!
//! # In memory
//!
//! Keys are spread by hash over [`SHARDS`], each with a lock. A shard is a ring buffer of entries, the newest
//! overwriting the oldest, and a hash table of buckets. A bucket has the greatest number of a commit to its keys, and
//! the places of entries in the ring. The full size is 144 MiB, reached once every shard is in use.

use std::array;

use lsm_tree::UserValue;
use parking_lot::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::slots::SlotId;

const SHARDS: usize = 64;

/// Size of a shard's ring buffer, in bytes.
const RING_BYTES: usize = if cfg!(test) { 16 << 10 } else { 2 << 20 };

/// Buckets of a shard: enough that the ring fills up before they do, if an entry takes 100 bytes.
const BUCKETS: usize = RING_BYTES / 512;

/// Places in a bucket, which then fills a cache line.
const PLACES: usize = 7;

/// Longer entries are not cached: the ring has room for too few.
const LONG_BYTES: usize = RING_BYTES / 32;

/// Cached values by slot and key.
pub(super) struct RowCache {
    shards: [Mutex<Shard>; SHARDS],
}

#[derive(Default)]
struct Shard {
    /// The greatest number of a commit while there were no buckets.
    last_write: u64,
    /// Empty until the first value is cached.
    buckets: Box<[Bucket]>,
    ring: Box<[u8]>,
    /// Total number of bytes ever written into the ring.
    written: u64,
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Bucket {
    /// The greatest number of a commit to one of its keys.
    last_write: u64,
    places: [TaggedOffset; PLACES],
}

/// Where an entry begins, as of [`Shard::written`], plus one, in 48 bits, and 16 bits of its hash; zero: unused.
#[derive(Clone, Copy, Default, PartialEq)]
struct TaggedOffset(u64);

const AT_BITS: u32 = 48;

/// Length of an entry's header in the ring: its reader's number, its slot, the lengths of key and value.
const HEAD_BYTES: usize = 20;

/// The position of a key in the cache.
struct BucketPosition {
    shard: usize,
    bucket: usize,
    tag: u64,
}

impl BucketPosition {
    fn of(slot: SlotId, key: &[u8]) -> BucketPosition {
        let hash = xxh3_64_with_seed(key, slot.into());
        BucketPosition {
            shard: hash as usize % SHARDS,
            bucket: (hash >> 8) as usize % BUCKETS,
            tag: hash >> AT_BITS,
        }
    }
}

impl Default for RowCache {
    fn default() -> RowCache {
        RowCache { shards: array::from_fn(|_| Mutex::default()) }
    }
}

impl RowCache {
    fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].lock()
    }

    /// The cached value of a key, for a reader of the numbers below `below`.
    pub(super) fn get(&self, slot: SlotId, key: &[u8], below: u64) -> Option<UserValue> {
        let spot = BucketPosition::of(slot, key);
        let shard = self.lock(spot.shard);
        let places = shard.buckets.get(spot.bucket)?.places;
        let entries = places.into_iter().filter(|place| place.tag() == spot.tag);
        let mut entries = entries.filter_map(|place| shard.entry(place));
        let entry = entries.find(|entry| entry.slot == slot && entry.key == key && entry.below <= below)?;
        Some(entry.value.into())
    }

    /// Caches a value looked up by a reader of the numbers below `below`, unless it may have changed since.
    pub(super) fn keep(&self, slot: SlotId, key: &[u8], value: &[u8], below: u64) {
        if key.len() + value.len() > LONG_BYTES {
            return;
        }
        let spot = BucketPosition::of(slot, key);
        let mut shard = self.lock(spot.shard);
        if shard.last_write >= below {
            return;
        }
        if shard.buckets.is_empty() {
            let last_write = shard.last_write;
            shard.buckets = vec![Bucket { last_write, ..Bucket::default() }; BUCKETS].into();
            shard.ring = vec![0; RING_BYTES].into();
        }
        if shard.buckets[spot.bucket].last_write >= below {
            return;
        }
        let at = shard.write(&CachedEntry { below, slot, key, value });
        let oldest = |place: &&mut TaggedOffset| place.at();
        if let Some(place) = shard.buckets[spot.bucket].places.iter_mut().min_by_key(oldest) {
            *place = TaggedOffset::new(at, spot.tag);
        }
    }

    /// Announces a commit that writes the key. No reader must see it yet.
    pub(super) fn forget(&self, slot: SlotId, key: &[u8], version: u64) {
        let spot = BucketPosition::of(slot, key);
        let mut shard = self.lock(spot.shard);
        let Some(bucket) = shard.buckets.get_mut(spot.bucket) else {
            shard.last_write = shard.last_write.max(version);
            return;
        };
        bucket.last_write = bucket.last_write.max(version);
        for place in bucket.places.iter_mut().filter(|place| place.tag() == spot.tag) {
            *place = TaggedOffset::default();
        }
    }

    /// Announces a commit that may write any key. No reader must see it yet.
    pub(super) fn forget_all(&self, version: u64) {
        for shard in 0..SHARDS {
            let mut shard = self.lock(shard);
            *shard = Shard { last_write: shard.last_write.max(version), ..Shard::default() };
        }
    }
}

struct CachedEntry<'a> {
    below: u64,
    slot: SlotId,
    key: &'a [u8],
    value: &'a [u8],
}

impl Shard {
    /// The entry at a place; `None` if it was overwritten.
    fn entry(&self, place: TaggedOffset) -> Option<CachedEntry<'_>> {
        let at = place.at().checked_sub(1)?;
        if self.written - at > RING_BYTES as u64 {
            return None;
        }
        let (head, rest) = self.ring.get(at as usize % RING_BYTES..)?.split_first_chunk::<HEAD_BYTES>()?;
        let number = |from: usize| head[from..from + 4].iter().rev().fold(0, |n, b| n << 8 | u32::from(*b));
        let (key, rest) = rest.split_at_checked(number(12) as usize)?;
        let below = u64::from(number(0)) | u64::from(number(4)) << 32;
        Some(CachedEntry { below, slot: number(8), key, value: rest.get(..number(16) as usize)? })
    }

    /// Writes an entry behind the newest one; gives where it begins.
    fn write(&mut self, entry: &CachedEntry<'_>) -> u64 {
        let len = HEAD_BYTES + entry.key.len() + entry.value.len();
        let left = RING_BYTES - self.written as usize % RING_BYTES;
        if left < len {
            self.written += left as u64;
        }
        let at = self.written;
        self.written += len as u64;
        let mut room = &mut self.ring[at as usize % RING_BYTES..][..len];
        let mut put = |bytes: &[u8]| {
            let (now, rest) = std::mem::take(&mut room).split_at_mut(bytes.len());
            now.copy_from_slice(bytes);
            room = rest;
        };
        put(&entry.below.to_le_bytes());
        put(&entry.slot.to_le_bytes());
        put(&(entry.key.len() as u32).to_le_bytes());
        put(&(entry.value.len() as u32).to_le_bytes());
        put(entry.key);
        put(entry.value);
        at
    }
}

impl TaggedOffset {
    fn new(at: u64, tag: u64) -> TaggedOffset {
        TaggedOffset((at + 1) & ((1 << AT_BITS) - 1) | tag << AT_BITS)
    }

    fn at(self) -> u64 {
        self.0 & ((1 << AT_BITS) - 1)
    }

    fn tag(self) -> u64 {
        self.0 >> AT_BITS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;

    use super::*;

    const SLOT: SlotId = 3;

    fn value(key: u8, version: u64) -> Vec<u8> {
        format!("{key}@{version}").repeat(1 + usize::from(key) % 9).into_bytes()
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// A commit writes these keys.
        Commit(Vec<u8>),
        CommitAny,
        /// A reader begins.
        Begin,
        /// A reader looks up a key in the cache, or else in the store, and caches it.
        Read(prop::sample::Index, u8),
        /// The same, but with a commit between the lookup in the store and the caching.
        ReadAround(prop::sample::Index, u8, Vec<u8>),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0..40u8;
        let keys = prop::collection::vec(key.clone(), 1..5);
        prop_oneof![
            3 => keys.clone().prop_map(Step::Commit),
            1 => Just(Step::CommitAny),
            3 => Just(Step::Begin),
            20 => (any::<prop::sample::Index>(), key.clone()).prop_map(|(at, key)| Step::Read(at, key)),
            3 => (any::<prop::sample::Index>(), key, keys)
                .prop_map(|(at, key, keys)| Step::ReadAround(at, key, keys)),
        ]
    }

    /// Every version of every key.
    #[derive(Default)]
    struct Model {
        versions: HashMap<u8, BTreeMap<u64, Vec<u8>>>,
        next: u64,
    }

    impl Model {
        fn commit(&mut self, rows: &RowCache, keys: &[u8]) {
            let version = self.next;
            self.next += 1;
            for key in keys {
                self.versions.entry(*key).or_default().insert(version, value(*key, version));
                rows.forget(SLOT, &[*key], version);
            }
        }

        fn get(&self, key: u8, below: u64) -> Option<&Vec<u8>> {
            self.versions.get(&key)?.range(..below).next_back().map(|(_, value)| value)
        }
    }

    proptest! {
        #[test]
        fn a_reader_sees_its_own_moment(steps in prop::collection::vec(step(), 1..300)) {
            let rows = RowCache::default();
            let mut model = Model { next: 1, ..Model::default() };
            let mut readers = vec![1];
            for step in steps {
                match step {
                    Step::Commit(keys) => model.commit(&rows, &keys),
                    Step::CommitAny => {
                        let all: Vec<u8> = (0..40).collect();
                        let version = model.next;
                        model.commit(&RowCache::default(), &all);
                        rows.forget_all(version);
                    }
                    Step::Begin => readers.push(model.next),
                    Step::Read(at, key) => {
                        let below = *at.get(&readers);
                        let expected = model.get(key, below).cloned();
                        match rows.get(SLOT, &[key], below) {
                            Some(found) => prop_assert_eq!(Some(found.to_vec()), expected),
                            None => expected.into_iter().for_each(|value| rows.keep(SLOT, &[key], &value, below)),
                        }
                    }
                    Step::ReadAround(at, key, keys) => {
                        let below = *at.get(&readers);
                        let looked_up = model.get(key, below).cloned();
                        model.commit(&rows, &keys);
                        looked_up.into_iter().for_each(|value| rows.keep(SLOT, &[key], &value, below));
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_looked_up_is_found_until_the_ring_is_full() {
        let rows = RowCache::default();
        let key = |n: u32| n.to_be_bytes();
        for n in 0..100 {
            assert!(rows.get(SLOT, &key(n), 10).is_none());
            rows.keep(SLOT, &key(n), &[7; 20], 10);
            assert_eq!(&*rows.get(SLOT, &key(n), 12).unwrap(), &[7; 20]);
            assert!(rows.get(SLOT, &key(n), 9).is_none(), "an older reader");
            assert!(rows.get(SLOT + 1, &key(n), 12).is_none(), "another keyspace");
        }
        assert!((0..100).all(|n| rows.get(SLOT, &key(n), 10).is_some()));
        (100..100_000).for_each(|n| rows.keep(SLOT, &key(n), &[7; 20], 10));
        assert!(
            (0..100).all(|n| rows.get(SLOT, &key(n), 10).is_none()),
            "the newest are written over the oldest"
        );
        let kept = (100..100_000).filter(|n| rows.get(SLOT, &key(*n), 10).is_some()).count();
        assert!(kept * (HEAD_BYTES + 24) > SHARDS * RING_BYTES / 2, "{kept}");
        rows.keep(SLOT, b"long", &[0; RING_BYTES], 10);
        assert!(rows.get(SLOT, b"long", 10).is_none());
    }

    /// Readers cache what they looked up while a writer commits: none may find a value older than its own moment.
    #[test]
    fn readers_beside_a_writer_see_their_own_moment() {
        let rows = RowCache::default();
        let keys = 8u64;
        // The current version of each key; readers see what is below `next`.
        let stored: Vec<AtomicU64> = (0..keys).map(|_| AtomicU64::new(0)).collect();
        let (next, done) = (AtomicU64::new(1), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut n = 0u64;
                    while done.load(Ordering::SeqCst) == 0 {
                        n += 1;
                        let (at, below) = (n % keys, next.load(Ordering::SeqCst));
                        let before = stored[at as usize].load(Ordering::SeqCst);
                        // Otherwise a later version is stored already, and the one to expect is unknown.
                        if before < below {
                            match rows.get(SLOT, &at.to_le_bytes(), below) {
                                Some(found) => assert_eq!(*found, before.to_le_bytes()),
                                None => rows.keep(SLOT, &at.to_le_bytes(), &before.to_le_bytes(), below),
                            }
                        }
                    }
                });
            }
            for version in 1..200_000u64 {
                let at = version * 7 % keys;
                stored[at as usize].store(version, Ordering::SeqCst);
                rows.forget(SLOT, &at.to_le_bytes(), version);
                next.store(version + 1, Ordering::SeqCst);
            }
            done.store(1, Ordering::SeqCst);
        });
    }
}
