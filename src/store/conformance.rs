//! One test suite that every engine passes: memory, embedded, LSM, and a transaction's view over memory.
//!
//! Each test takes an empty store and uses only the `Store` trait. What an engine promises beyond it (files, locks,
//! damage) is tested next to the engine.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use proptest::prelude::*;
use tempfile::TempDir;

use super::rules::check_batch;
use super::testing::{A, B, Entries, all, batch, get, get_in, put};
use super::*;
use crate::error::{Kind, Result, sqlstate};
use crate::key::{End, Rowkey};
use crate::txn::Transaction;

/// An engine under test and the directory it lives in, if any.
struct Subject<S> {
    store: S,
    _directory: Option<TempDir>,
}

fn memory() -> Subject<MemoryStore> {
    Subject { store: MemoryStore::new(), _directory: None }
}

/// Relaxed, because the suite makes thousands of commits and simulates no power failure.
fn embedded() -> Subject<EmbeddedStore> {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(directory.path(), Durability::Relaxed).unwrap();
    Subject { store, _directory: Some(directory) }
}

fn lsm() -> Subject<LsmStore> {
    let directory = tempfile::tempdir().unwrap();
    let store = LsmStore::open(directory.path(), Durability::Relaxed).unwrap();
    Subject { store, _directory: Some(directory) }
}

fn overlay() -> Subject<OverlayStore> {
    let base = MemoryStore::new();
    let mut batch = WriteBatch::default();
    // Deleted in the transaction, so it must not show through.
    batch.put(A, "gone", b"base".to_vec());
    base.commit(batch).unwrap();
    let mut txn = Transaction::new(Recording::new(base.snapshot().unwrap()));
    let mut batch = WriteBatch::default();
    batch.delete(A, "gone");
    txn.apply(batch);
    Subject { store: OverlayStore(Mutex::new(txn)), _directory: None }
}

/// A transaction that never ends, seen as a store.
struct OverlayStore(Mutex<Transaction>);

impl Store for OverlayStore {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(self.0.lock().view())
    }

    fn commit(&self, batch: WriteBatch) -> Result<()> {
        check_batch(&batch)?;
        self.0.lock().apply(batch);
        Ok(())
    }

    fn bulk(&self) -> Result<Box<dyn BulkWriter + '_>> {
        unimplemented!("bulk ingestion goes around transactions")
    }
}

macro_rules! conforms {
    ($engine:ident: $($test:ident)+) => {
        mod $engine {
            $(#[test] fn $test() { super::$test(&super::$engine().store); })+
        }
    };
}

conforms!(memory: get_put_delete_clear scans snapshots_are_stable batches_are_atomic reads_are_guarded
    random_operations bulk_writes changes_in_key_order dropped_bulk_leaves_nothing concurrent_commits_all_land
    impossible_keys versions_grow entry_counts);
conforms!(embedded: get_put_delete_clear scans snapshots_are_stable batches_are_atomic reads_are_guarded
    random_operations bulk_writes changes_in_key_order dropped_bulk_leaves_nothing concurrent_commits_all_land
    impossible_keys versions_grow entry_counts);
conforms!(lsm: get_put_delete_clear scans snapshots_are_stable batches_are_atomic reads_are_guarded
    random_operations bulk_writes changes_in_key_order dropped_bulk_leaves_nothing concurrent_commits_all_land
    impossible_keys versions_grow entry_counts);
conforms!(overlay: get_put_delete_clear scans snapshots_are_stable batches_are_atomic random_operations);

fn get_text(store: &impl Store, keyspace: KeyspaceId, key: &str) -> Option<String> {
    get(store, keyspace, key).map(|value| String::from_utf8(value).unwrap())
}

/// What a cursor yields up to its end; checks that it stays there.
fn scan(
    snapshot: &Arc<dyn Snapshot>,
    keyspace: KeyspaceId,
    range: &KeyRange,
    direction: Direction,
) -> Entries {
    let reader = snapshot.reader().unwrap();
    let mut cursor = reader.cursor(keyspace, range, direction).unwrap();
    let mut entries = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        entries.push((key.to_vec(), value.to_vec()));
    }
    assert_eq!(cursor.next().unwrap(), None, "{range:?} ended");
    entries
}

fn keys(store: &impl Store, keyspace: KeyspaceId, range: &KeyRange, direction: Direction) -> String {
    let entries = scan(&store.snapshot().unwrap(), keyspace, range, direction);
    entries.into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect::<Vec<_>>().join(" ")
}

fn get_put_delete_clear(store: &impl Store) {
    assert_eq!(get_text(store, A, "k"), None);
    put(store, A, "k", "1");
    put(store, A, "k", "2");
    put(store, A, "empty", "");
    put(store, B, "k", "other");
    assert_eq!(get_text(store, A, "k").as_deref(), Some("2"));
    assert_eq!(get_text(store, A, "empty").as_deref(), Some(""));
    assert_eq!(get_text(store, A, "kk"), None);
    assert_eq!(get_text(store, A, ""), None);
    store.commit(batch(|b| b.delete(A, "k"))).unwrap();
    store.commit(batch(|b| b.delete(A, "never was"))).unwrap();
    store.commit(batch(|b| b.delete(KeyspaceId(99), "nowhere"))).unwrap();
    assert_eq!(get_text(store, A, "k"), None);
    store.commit(batch(|b| b.clear(A))).unwrap();
    store.commit(batch(|b| b.clear(KeyspaceId(99)))).unwrap();
    assert_eq!(get_text(store, A, "empty"), None);
    assert_eq!(get_text(store, B, "k").as_deref(), Some("other"));
    put(store, A, "again", "1");
    assert_eq!(keys(store, A, &KeyRange::all(), Direction::Forward), "again");
}

fn scans(store: &impl Store) {
    ["a", "b", "ba", "c", "d"].iter().for_each(|key| put(store, A, key, key));
    let cases = [
        (KeyRange::all(), "a b ba c d"),
        (KeyRange::starting_at("b"), "b ba c d"),
        (KeyRange::starting_at("bb"), "c d"),
        (KeyRange::starting_at("e"), ""),
        (KeyRange::new("", "b"), "a"),
        (KeyRange::new("", ""), ""),
        (KeyRange::new("b", "c"), "b ba"),
        (KeyRange::new("0", "z"), "a b ba c d"),
        (KeyRange::new("c", "b"), ""),
        (KeyRange::new("c", "c"), ""),
        (KeyRange::new("b", ""), ""),
        (KeyRange::point("b"), "b"),
        (KeyRange::point("bx"), ""),
        (KeyRange::prefix("b"), "b ba"),
        (KeyRange::prefix(""), "a b ba c d"),
        (KeyRange::starting_at(vec![b'd'; KEY_BYTES_MAX + 5]), ""),
        (KeyRange::new("c", vec![b'd'; KEY_BYTES_MAX + 5]), "c d"),
    ];
    for (range, expected) in cases {
        let reversed = expected.split(' ').rev().collect::<Vec<_>>().join(" ");
        assert_eq!(keys(store, A, &range, Direction::Forward), expected, "{range:?}");
        assert_eq!(keys(store, A, &range, Direction::Reverse), reversed, "{range:?} in reverse");
        assert_eq!(keys(store, B, &range, Direction::Forward), "", "{range:?} of nothing");
    }
}

fn snapshots_are_stable(store: &impl Store) {
    put(store, A, "a", "1");
    let before = store.snapshot().unwrap();
    store
        .commit(batch(|b| {
            b.put(A, "a", b"2".to_vec());
            b.put(A, "b", b"2".to_vec());
            b.put(B, "new keyspace", b"2".to_vec());
        }))
        .unwrap();
    let between = store.snapshot().unwrap();
    store.commit(batch(|b| b.clear(A))).unwrap();
    let all = KeyRange::all();
    let see = |snapshot, keyspace| scan(snapshot, keyspace, &all, Direction::Forward).len();
    assert_eq!((see(&before, A), see(&before, B)), (1, 0));
    assert_eq!((see(&between, A), see(&between, B)), (2, 1));
    assert_eq!(get_in(&before, A, b"a"), Some(b"1".to_vec()));
    assert_eq!(get_in(&between, A, b"a"), Some(b"2".to_vec()));
    assert_eq!(get_in(&before, B, b"new keyspace"), None);
    assert_eq!(get_text(store, A, "a"), None);
    // A snapshot may move to another thread, and outlive its readers.
    let moved = thread::spawn(move || get_in(&between, A, b"b")).join().unwrap();
    assert_eq!(moved, Some(b"2".to_vec()));
}

fn batches_are_atomic(store: &impl Store) {
    put(store, A, "a", "1");
    let failing = batch(|b| {
        b.put(A, "a", b"2".to_vec());
        b.put(B, "b", b"2".to_vec());
        b.clear(A);
        b.put(B, "", b"a key is not empty".to_vec());
    });
    assert_eq!(store.commit(failing).unwrap_err().kind(), Kind::Invalid);
    assert_eq!(get_text(store, A, "a").as_deref(), Some("1"));
    assert_eq!(get_text(store, B, "b"), None);
    store
        .commit(batch(|b| {
            b.put(A, "a", b"lost".to_vec());
            b.clear(A);
            b.put(A, "b", b"1".to_vec());
            b.put(A, "b", b"2".to_vec());
            b.put(A, "c", b"3".to_vec());
            b.delete(A, "c");
            b.put(B, "b", b"4".to_vec());
        }))
        .unwrap();
    assert_eq!(keys(store, A, &KeyRange::all(), Direction::Forward), "b");
    assert_eq!(get_text(store, A, "b").as_deref(), Some("2"), "the later change wins");
    assert_eq!(get_text(store, B, "b").as_deref(), Some("4"));
    store.commit(WriteBatch::default()).unwrap();
}

/// A batch that depends on what `snapshot` shows in `range`.
fn made_of(snapshot: &Arc<dyn Snapshot>, keyspace: KeyspaceId, range: KeyRange) -> WriteBatch {
    let mut reads = Reads::new(snapshot.version());
    reads.add(keyspace, range);
    WriteBatch { reads, ..batch(|b| b.put(B, "made", b"of it".to_vec())) }
}

fn reads_are_guarded(store: &impl Store) {
    put(store, A, "k", "1");
    let old = store.snapshot().unwrap();
    let made_of_old = |range| store.commit(made_of(&old, A, range));
    made_of_old(KeyRange::all()).unwrap();
    put(store, A, "k", "2");
    put(store, A, "m", "2");
    store.commit(batch(|b| b.delete(A, "p"))).unwrap();
    for range in [KeyRange::all(), KeyRange::point("k"), KeyRange::new("l", "n"), KeyRange::point("m")] {
        let error = made_of_old(range).unwrap_err();
        assert_eq!((error.kind(), error.sqlstate()), (Kind::Conflict, "40001"));
        assert!(error.fix().is_some_and(|hint| hint.contains("retry")), "{error}");
    }
    for range in [KeyRange::new("", "k"), KeyRange::new("l", "m"), KeyRange::starting_at("q")] {
        made_of_old(range).unwrap();
    }
    store.commit(made_of(&old, KeyspaceId(99), KeyRange::all())).unwrap();
    store.commit(made_of(&store.snapshot().unwrap(), A, KeyRange::all())).unwrap();
    // Clearing a keyspace, or loading much into it, counts as writing all of it.
    let before = store.snapshot().unwrap();
    store.commit(batch(|b| b.clear(A))).unwrap();
    assert!(store.commit(made_of(&before, A, KeyRange::point("z"))).is_err());
    let before = store.snapshot().unwrap();
    let mut bulk = store.bulk().unwrap();
    bulk.put(A, b"a", b"1").unwrap();
    bulk.check(&made_of(&before, A, KeyRange::all()).reads).unwrap();
    assert!(bulk.check(&made_of(&old, A, KeyRange::point("k")).reads).is_err());
    bulk.commit().unwrap();
    assert!(store.commit(made_of(&before, A, KeyRange::point("a"))).is_err());
    store.commit(made_of(&before, A, KeyRange::point("z"))).unwrap();
    let mut bulk = store.bulk().unwrap();
    (0..100).for_each(|n| bulk.put(A, &[n], b"1").unwrap());
    bulk.commit().unwrap();
    assert!(store.commit(made_of(&before, A, KeyRange::point("z"))).is_err());
    // A failed or dropped write conflicts with nothing.
    let before = store.snapshot().unwrap();
    store.commit(batch(|b| b.put(A, "", Vec::new()))).unwrap_err();
    let mut bulk = store.bulk().unwrap();
    bulk.put(A, b"b", b"1").unwrap();
    drop(bulk);
    store.commit(made_of(&before, A, KeyRange::all())).unwrap();
    store.commit(batch(|b| b.delete(KeyspaceId(98), "nothing there"))).unwrap();
    let after = store.snapshot().unwrap();
    store.commit(made_of(&after, KeyspaceId(98), KeyRange::all())).unwrap();
}

fn versions_grow(store: &impl Store) {
    let version = || store.snapshot().unwrap().version();
    let before = store.snapshot().unwrap();
    put(store, A, "a", "1");
    let second = version();
    assert!(second > before.version());
    store.commit(made_of(&before, A, KeyRange::all())).unwrap_err();
    assert_eq!(version(), second, "a refused batch is no commit");
}

fn entry_counts(store: &impl Store) {
    ["a", "b", "c"].iter().for_each(|key| put(store, A, key, key));
    let snapshot = store.snapshot().unwrap();
    let reader = snapshot.reader().unwrap();
    assert_eq!((reader.entries(A).unwrap(), reader.entries(B).unwrap()), (3, 0));
    // Loads take 0 entries as proof that the keyspace is empty.
    put(store, B, "a", "a");
    store.commit(batch(|b| b.delete(B, "is not there"))).unwrap();
    let entries = || store.snapshot().unwrap().reader().unwrap().entries(B).unwrap();
    assert_ne!(entries(), 0);
    store.commit(batch(|b| b.delete(B, "a"))).unwrap();
    assert_eq!(entries(), 0);
    store.commit(batch(|b| b.delete(B, "a"))).unwrap();
    put(store, B, "b", "b");
    assert_ne!(entries(), 0);
}

fn impossible_keys(store: &impl Store) {
    let max = KEY_BYTES_MAX;
    let longest = vec![7u8; max];
    store.commit(batch(|b| b.put(A, longest.clone(), b"fits".to_vec()))).unwrap();
    assert_eq!(get_in(&store.snapshot().unwrap(), A, &longest), Some(b"fits".to_vec()));
    for key in [vec![], vec![7; max + 1]] {
        let refused = store.commit(batch(|b| {
            b.put(A, "first", b"1".to_vec());
            b.put(A, key.clone(), b"1".to_vec());
        }));
        let in_bulk = store.bulk().unwrap().put(A, &key, b"1");
        for error in [refused.unwrap_err(), in_bulk.unwrap_err()] {
            assert_eq!((error.kind(), error.sqlstate()), (Kind::Invalid, sqlstate::LIMIT));
            assert!(error.to_string().contains(&max.to_string()), "{error}");
        }
        assert_eq!(get_in(&store.snapshot().unwrap(), A, &key), None);
        store.commit(batch(|b| b.delete(A, key))).unwrap();
    }
    assert_eq!(get_text(store, A, "first"), None);
}

fn bulk_writes(store: &impl Store) {
    put(store, A, "0500", "old");
    put(store, A, "0501", "old");
    let before = store.snapshot().unwrap();
    let mut bulk = store.bulk().unwrap();
    let key = |n: u32| format!("{n:04}").into_bytes();
    // Ascending, past the old entries and past each other; then in between and over existing ones.
    (1000..3000).for_each(|n| bulk.put(A, &key(n), &[b'x'; 100]).unwrap());
    (0..1000).rev().for_each(|n| bulk.put(A, &key(n), b"y").unwrap());
    (0..1000).for_each(|n| bulk.put(B, &key(n), b"z").unwrap());
    bulk.delete(A, &key(2999)).unwrap();
    bulk.put(A, &key(2999), b"again").unwrap();
    bulk.delete(A, &key(2998)).unwrap();
    bulk.delete(KeyspaceId(99), b"nowhere").unwrap();
    assert_eq!(bulk.get(A, &key(500)).unwrap().as_deref(), Some(&b"y"[..]));
    assert_eq!(bulk.get(A, &key(2998)).unwrap(), None);
    assert_eq!(bulk.get(KeyspaceId(99), b"nowhere").unwrap(), None);
    assert_eq!(get_text(store, A, "0500").as_deref(), Some("old"), "not yet");
    bulk.commit().unwrap();
    let after = store.snapshot().unwrap();
    let all = |snapshot, keyspace| scan(snapshot, keyspace, &KeyRange::all(), Direction::Forward);
    let expected: Vec<_> = (0..3000).filter(|n| *n != 2998).map(key).collect();
    assert_eq!(all(&after, A).into_iter().map(|(key, _)| key).collect::<Vec<_>>(), expected);
    assert_eq!(all(&after, B).len(), 1000);
    assert_eq!((all(&before, A).len(), all(&before, B).len()), (2, 0));
    assert_eq!(get_text(store, A, "2999").as_deref(), Some("again"));
    assert!(after.version() > before.version());
}

/// Some of a bulk writer's changes of one keyspace: every `stride`th of its keys from `first` on.
#[derive(Clone, Debug)]
struct SomeChanges {
    first: u32,
    stride: u32,
    most: usize,
    /// Of eight keys, which are deleted, by bits.
    deleted: u8,
    bytes: usize,
}

impl SomeChanges {
    fn changes(&self) -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> {
        let of = |n: u32| {
            // Of different lengths.
            let key = [&n.to_be_bytes()[..], &vec![7; n as usize % 5]].concat();
            let value = vec![n as u8; self.bytes + n as usize % 3];
            (key, (self.deleted >> (n.trailing_ones() % 8) & 1 == 0).then_some(value))
        };
        (self.first..3000).step_by(self.stride as usize).take(self.most).map(of)
    }
}

fn changes_in_key_order(store: &impl Store) {
    let bytes = prop_oneof![4 => 0usize..40, 2 => 100usize..400, 1 => 3000usize..9000];
    let some = (0u32..3000, 1u32..40, 0usize..1500, any::<u8>(), bytes).prop_map(
        |(first, stride, most, deleted, bytes)| SomeChanges { first, stride, most, deleted, bytes },
    );
    let steps = prop::collection::vec((some, 0u8..4, any::<bool>()), 1..8);
    let config = ProptestConfig { failure_persistence: None, cases: 60, ..<_>::default() };
    let outcome = proptest::test_runner::TestRunner::new(config).run(&steps, |steps| {
        store.commit(batch(|b| b.clear(A))).unwrap();
        let mut model = BTreeMap::new();
        for (some, kind, is_dropped) in steps {
            let (before, old) = (store.snapshot().unwrap(), model.clone());
            let mut bulk = store.bulk().unwrap();
            if kind == 1 {
                bulk.put(A, b"written before", b"1").unwrap();
            }
            let mut changes = some.changes().peekable();
            let first = changes.peek().cloned();
            bulk.change_all(A, some.most as u64, &mut |take| {
                changes.try_for_each(|(key, value)| take((&key, value.as_deref())))
            })
            .unwrap();
            if let Some((key, value)) = &first {
                assert_eq!(bulk.get(A, key).unwrap(), *value);
                if kind == 2 {
                    bulk.delete(A, key).unwrap();
                    bulk.put(A, b"written behind", b"2").unwrap();
                }
            }
            if is_dropped && kind == 3 {
                drop(bulk);
            } else {
                bulk.commit().unwrap();
                if kind == 1 {
                    model.insert(b"written before".to_vec(), b"1".to_vec());
                }
                for (key, value) in some.changes() {
                    match value {
                        Some(value) => drop(model.insert(key, value)),
                        None => drop(model.remove(&key)),
                    }
                }
                if let Some((key, _)) = first.filter(|_| kind == 2) {
                    model.remove(&key);
                    model.insert(b"written behind".to_vec(), b"2".to_vec());
                }
            }
            let after = store.snapshot().unwrap();
            for (snapshot, model) in [(&before, &old), (&after, &model)] {
                let expected: Vec<_> =
                    model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
                assert!(all(snapshot, A) == expected);
                let reader = snapshot.reader().unwrap();
                reader.verify(A, &mut |_| Ok(())).unwrap();
                let count = reader.count(A).unwrap();
                assert!(count.is_none_or(|count| count == expected.len() as u64));
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

fn dropped_bulk_leaves_nothing(store: &impl Store) {
    put(store, A, "a", "1");
    let mut bulk = store.bulk().unwrap();
    bulk.put(A, b"b", b"2").unwrap();
    bulk.put(B, b"b", b"2").unwrap();
    bulk.delete(A, b"a").unwrap();
    drop(bulk);
    assert_eq!(keys(store, A, &KeyRange::all(), Direction::Forward), "a");
    assert_eq!(keys(store, B, &KeyRange::all(), Direction::Forward), "");
    // The keyspace it began to create can be created again, and is not mistaken for another.
    put(store, KeyspaceId(21), "c", "3");
    put(store, B, "b", "4");
    assert_eq!(keys(store, KeyspaceId(21), &KeyRange::all(), Direction::Forward), "c");
    assert_eq!(get_text(store, B, "b").as_deref(), Some("4"));
}

fn concurrent_commits_all_land(store: &impl Store) {
    const THREADS: u32 = 8;
    const COMMITS: u32 = 25;
    let increment = || loop {
        let recording: Arc<Recording> = Recording::new(store.snapshot().unwrap()).into();
        let old = get_in(&(recording.clone() as Arc<dyn Snapshot>), A, b"hits");
        let hits: u32 = old.map_or(0, |text| String::from_utf8_lossy(&text).parse().unwrap());
        let put = batch(|b| b.put(A, "hits", (hits + 1).to_string().into_bytes()));
        match store.commit(WriteBatch { reads: recording.reads(), ..put }) {
            Ok(()) => break,
            Err(e) => assert_eq!(e.kind(), Kind::Conflict, "{e}"),
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for n in 0..COMMITS {
                    // A keyspace per thread, so that creations, commits and snapshots overlap.
                    put(store, KeyspaceId(100 + thread), &format!("{n:04}"), "mine");
                    put(store, B, &format!("{thread}-{n:04}"), "shared");
                    increment();
                }
            });
        }
    });
    let snapshot = store.snapshot().unwrap();
    let count = |keyspace| scan(&snapshot, keyspace, &KeyRange::all(), Direction::Forward).len();
    (0..THREADS).for_each(|thread| assert_eq!(count(KeyspaceId(100 + thread)), COMMITS as usize));
    assert_eq!(count(B), (THREADS * COMMITS) as usize);
    assert_eq!(get_text(store, A, "hits"), Some((THREADS * COMMITS).to_string()));
}

type Model = BTreeMap<(KeyspaceId, Rowkey), Vec<u8>>;

/// Few keys, so that operations collide; including prefixes of each other and FF.
fn some_key() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop::sample::select(vec![0u8, b'a', 0xFF]), 1..4)
}

fn some_keyspace() -> impl Strategy<Value = KeyspaceId> {
    prop::sample::select(vec![A, B])
}

fn some_batch() -> impl Strategy<Value = WriteBatch> {
    let mutation = (some_keyspace(), some_key(), prop::collection::vec(any::<u8>(), 0..30), 0..20);
    let mutation = mutation.prop_map(|(keyspace, key, value, kind)| match kind {
        0 => Mutation::Clear(keyspace),
        1..8 => Mutation::Delete(keyspace, key.into()),
        _ => Mutation::Put(keyspace, key.into(), value),
    });
    prop::collection::vec(mutation, 0..12)
        .prop_map(|mutations| WriteBatch { mutations, ..WriteBatch::default() })
}

fn some_range() -> impl Strategy<Value = KeyRange> {
    let bound = || prop::option::of(some_key());
    (bound(), bound()).prop_map(|(start, end)| KeyRange {
        start: start.unwrap_or_default().into(),
        end: end.map_or(End::Open, |end| End::Before(end.into())),
    })
}

fn apply_to_model(model: &mut Model, batch: &WriteBatch) {
    for mutation in batch.mutations.clone() {
        match mutation {
            Mutation::Put(keyspace, key, value) => drop(model.insert((keyspace, key), value)),
            Mutation::Delete(keyspace, key) => drop(model.remove(&(keyspace, key))),
            Mutation::Clear(keyspace) => model.retain(|(other, _), _| *other != keyspace),
        }
    }
}

fn agrees_with_model(snapshot: &Arc<dyn Snapshot>, model: &Model, keyspace: KeyspaceId, range: &KeyRange) {
    let all = model.range((Bound::Included((keyspace, Rowkey::default())), Bound::Unbounded));
    let mut expected: Entries = all
        .filter(|((other, key), _)| *other == keyspace && range.contains(key))
        .map(|((_, key), value)| (key.to_vec(), value.clone()))
        .collect();
    assert_eq!(scan(snapshot, keyspace, range, Direction::Forward), expected, "{range:?}");
    expected.reverse();
    assert_eq!(scan(snapshot, keyspace, range, Direction::Reverse), expected, "{range:?} in reverse");
}

fn random_operations(store: &impl Store) {
    let steps = prop::collection::vec((some_batch(), some_keyspace(), some_range(), some_key()), 1..20);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..<_>::default()
    });
    let outcome = runner.run(&steps, |steps| {
        store.commit(batch(|b| [A, B].into_iter().for_each(|keyspace| b.clear(keyspace)))).unwrap();
        let mut model = Model::new();
        for (batch, keyspace, range, key) in steps {
            let (old, old_model) = (store.snapshot().unwrap(), model.clone());
            apply_to_model(&mut model, &batch);
            store.commit(batch).unwrap();
            let new = store.snapshot().unwrap();
            for (snapshot, model) in [(&old, &old_model), (&new, &model)] {
                agrees_with_model(snapshot, model, keyspace, &KeyRange::all());
                agrees_with_model(snapshot, model, keyspace, &range);
                assert_eq!(
                    get_in(snapshot, keyspace, &key).as_ref(),
                    model.get(&(keyspace, key.clone().into()))
                );
            }
        }
        Ok(())
    });
    outcome.unwrap();
}
