//! What the LSM store promises beyond the `Store` trait: files that last however the process ends, and refusals when
//! they are damaged. Memtables and bulk runs are small here ([`MEMTABLE_BYTES`]), so that all code paths are
//! exercised.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::error::{Kind, sqlstate};
use crate::store::KeyspaceId;
use crate::store::testing::{self, A, B, all, batch, fill, get, get_in, key, put};

type Place = testing::Place<LsmStore>;

impl Place {
    /// What a killed process leaves.
    fn killed(&self, store: &mut LsmStore) -> Place {
        store.threads.stop();
        self.copy()
    }

    /// What a power failure leaves: of the unflushed log, pieces from `lost` on are missing, all or every other one.
    fn failed(&self, store: &mut LsmStore, lost: usize, all: bool) -> Place {
        const PIECE_BYTES: usize = 512;
        let left = self.killed(store);
        let flushed = store.shared.writer.lock().log.flushed() as usize;
        let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("log-")?.parse::<u64>().ok();
        let logs = fs::read_dir(left.file("lsm")).unwrap().map(|entry| entry.unwrap().path());
        let newest = logs.max_by_key(|path| number(path)).unwrap();
        let mut bytes = fs::read(&newest).unwrap();
        for piece in bytes[flushed..].chunks_mut(PIECE_BYTES).skip(lost).step_by(if all { 1 } else { 2 }) {
            piece.fill(0);
        }
        fs::write(newest, bytes).unwrap();
        left
    }
}

#[test]
fn reopening_keeps_everything() {
    for durability in [Durability::Sync, Durability::Relaxed] {
        let place = Place::new();
        let store = LsmStore::open(&place.path(), durability).unwrap();
        put(&store, A, "a", b"1");
        fill(&store, B, 1000);
        let version = store.snapshot().unwrap().version();
        drop(store);
        let store = place.open().unwrap();
        assert_eq!(get(&store, A, "a"), Some(b"1".to_vec()));
        assert_eq!(get(&store, B, "000999"), Some(vec![7; 500]));
        let snapshot = store.snapshot().unwrap();
        assert!(snapshot.version() >= version);
        assert_eq!(snapshot.reader().unwrap().entries(B).unwrap(), 1000);
        assert_eq!(fs::read_to_string(place.file("FORMAT")).unwrap(), "rowkeydb format 4 lsm\n");
    }
}

#[test]
fn a_database_opens_once_at_a_time_and_with_its_own_engine() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, A, "a", b"1");
    assert_eq!(place.refusal().kind(), Kind::Unavailable);
    let snapshot = store.snapshot().unwrap();
    drop(store);
    assert_eq!(place.refusal().kind(), Kind::Unavailable);
    assert_eq!(snapshot.reader().unwrap().get(A, b"a").unwrap(), Some(&b"1"[..]));
    drop(snapshot);
    let error = crate::store::EmbeddedStore::open(&place.path(), Durability::Sync).err().unwrap();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.what().ends_with("is kept by engine lsm, not lmdb"), "{error}");
    let (store, engine) = crate::store::open(&place.path(), None, Durability::Sync).unwrap();
    assert_eq!((engine, store.snapshot().unwrap().reader().unwrap().entries(A).unwrap()), (Engine::Lsm, 1));
}

#[test]
fn a_creation_that_crashed_is_started_over() {
    let place = Place::new();
    drop(place.open().unwrap());
    fs::rename(place.file("FORMAT"), place.file("FORMAT.tmp")).unwrap();
    fs::write(place.file("lsm/log-1"), "half").unwrap();
    let store = place.open().unwrap();
    put(&store, A, "a", b"1");
}

#[test]
fn files_that_are_missing_are_named() {
    for file in ["lsm/acknowledged", "lsm/log-1", "lsm/tree/current"] {
        let place = Place::new();
        drop(place.open().unwrap());
        fs::remove_file(place.file(file)).unwrap();
        let error = place.refusal();
        assert_eq!(error.kind(), Kind::Corrupt);
        assert_eq!(error.what(), format!("{file} is damaged"));
    }
    let place = Place::new();
    let store = place.open().unwrap();
    fill(&store, A, 1000);
    drop(store);
    let tables = fs::read_dir(place.file("lsm/tree/tables")).unwrap();
    fs::remove_file(tables.last().unwrap().unwrap().path()).unwrap();
    assert_eq!(place.refusal().kind(), Kind::Corrupt);
}

/// A load bypasses log and memtable, so it must tell the row cache.
#[test]
fn a_load_over_rows_that_were_looked_up_shows() {
    let place = Place::new();
    let store = place.relaxed();
    (0..100).for_each(|n| put(&store, A, &key(n), [1; 100]));
    let before = store.snapshot().unwrap();
    assert!((0..100).all(|n| get(&store, A, &key(n)) == Some(vec![1; 100])));
    let mut bulk = store.bulk().unwrap();
    (0..100).for_each(|n| bulk.put(A, key(n).as_bytes(), &[2; 100]).unwrap());
    bulk.commit().unwrap();
    assert!((0..100).all(|n| get(&store, A, &key(n)) == Some(vec![2; 100])));
    let reader = before.reader().unwrap();
    assert!((0..100).all(|n| reader.get(A, key(n).as_bytes()).unwrap() == Some(&[1; 100][..])));
}

/// A snapshot stays readable while tables are written, merged, cleared and overwritten.
#[test]
fn snapshots_outlive_merges() {
    let place = Place::new();
    let store = place.relaxed();
    let mut expected = Vec::new();
    for round in 0..30u32 {
        for n in 0..100 {
            put(&store, A, &key(n), [round as u8; 100]);
        }
        if round % 7 == 3 {
            store.commit(batch(|b| b.clear(A))).unwrap();
            put(&store, A, "000050", b"after");
        }
        store.commit(batch(|b| b.delete(A, &*key(round)))).unwrap();
        let snapshot = store.snapshot().unwrap();
        let entries = all(&snapshot, A);
        let is_cleared = round % 7 == 3;
        assert_eq!(entries.len(), if is_cleared { 1 } else { 99 }, "round {round}");
        expected.push((snapshot, entries));
    }
    assert!(store.shared.tree.table_count() > 0);
    for (n, (snapshot, entries)) in expected.iter().enumerate() {
        assert!(all(snapshot, A) == *entries, "snapshot {n}");
    }
    drop(store);
    for (snapshot, entries) in &expected {
        assert!(all(snapshot, A) == *entries);
    }
}

#[test]
fn a_cleared_keyspace_gives_its_space_back() {
    let place = Place::new();
    let store = place.relaxed();
    fill(&store, A, 20_000);
    put(&store, B, "b", b"stays");
    let space = || {
        let tables = fs::read_dir(place.file("lsm/tree/tables")).unwrap();
        tables.map(|table| table.unwrap().metadata().map_or(0, |found| found.len())).sum::<u64>()
    };
    let full = space();
    store.commit(batch(|b| b.clear(A))).unwrap();
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while space() > full / 10 {
        assert!(std::time::Instant::now() < patience, "{} of {full} bytes", space());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(get(&store, B, "b").as_deref(), Some(&b"stays"[..]));
}

/// A command that drops a table ends at once.
#[test]
fn a_keyspace_cleared_just_before_the_end_gives_its_space_back() {
    let place = Place::new();
    let store = place.relaxed();
    fill(&store, A, 20_000);
    store.commit(batch(|b| b.clear(A))).unwrap();
    drop(store);
    let tables = fs::read_dir(place.file("lsm/tree/tables")).unwrap();
    assert!(tables.count() <= 2, "the slots are left, and what was not full");
}

/// The slots of an aborted load are never reused, however the process ends.
#[test]
fn what_a_killed_load_has_staged_is_never_seen() {
    let place = Place::new();
    let mut store = place.relaxed();
    put(&store, B, "old", b"1");
    let left = {
        store.threads.stop();
        let mut bulk = store.bulk().unwrap();
        for keyspace in [A, B] {
            (0..500).for_each(|n| bulk.put(keyspace, key(n).as_bytes(), &[9; 500]).unwrap());
        }
        place.copy()
    };
    assert!(fs::read_dir(left.file("lsm/tree/tables")).unwrap().count() > 0, "something was staged");
    drop(store);
    for place in [&place, &left] {
        let store = place.relaxed();
        assert_eq!(
            (all(&store.snapshot().unwrap(), A).len(), all(&store.snapshot().unwrap(), B).len()),
            (0, 1)
        );
        (100..110).for_each(|n| put(&store, KeyspaceId(n), "new", b"1"));
        store.commit(batch(|b| b.clear(B))).unwrap();
        put(&store, A, "a", b"1");
        put(&store, B, "b", b"1");
        let counts = [A, B, KeyspaceId(105)].map(|keyspace| all(&store.snapshot().unwrap(), keyspace).len());
        assert_eq!(counts, [1, 1, 1]);
    }
}

#[test]
fn a_load_into_a_full_keyspace_keeps_what_it_does_not_touch() {
    let place = Place::new();
    let store = place.relaxed();
    fill(&store, A, 300);
    let mut bulk = store.bulk().unwrap();
    for n in (0..600).step_by(2) {
        bulk.put(A, key(n).as_bytes(), &[8; 200]).unwrap();
    }
    for n in (0..600).step_by(6) {
        bulk.delete(A, key(n).as_bytes()).unwrap();
        assert_eq!(bulk.get(A, key(n).as_bytes()).unwrap(), None);
    }
    bulk.put(A, key(6).as_bytes(), b"again").unwrap();
    assert_eq!(bulk.get(A, key(2).as_bytes()).unwrap(), Some(vec![8; 200]));
    assert_eq!(bulk.get(A, key(3).as_bytes()).unwrap(), Some(vec![7; 500]));
    bulk.commit().unwrap();
    let expected = |n: u32| match n {
        6 => Some(b"again".to_vec()),
        n if n % 6 == 0 => None,
        n if n % 2 == 0 => Some(vec![8; 200]),
        n => (n < 300).then(|| vec![7; 500]),
    };
    let check = |store: &LsmStore| {
        let found: BTreeMap<_, _> = all(&store.snapshot().unwrap(), A).into_iter().collect();
        for n in 0..600 {
            assert_eq!(found.get(key(n).as_bytes()).cloned(), expected(n), "{n}");
        }
    };
    check(&store);
    drop(store);
    check(&place.relaxed());
}

/// The disk refuses: a directory stands where the next log segment would be.
#[test]
fn what_the_disk_refuses_is_not_there_and_ends_all_writing() {
    let place = Place::new();
    let store = place.relaxed();
    fs::create_dir(place.file("lsm/log-2")).unwrap();
    let commit = |n| store.commit(batch(|b| b.put(A, &*key(n), vec![1; 100])));
    let (n, error) = (0..2000).find_map(|n| Some((n, commit(n).err()?))).expect("a second segment");
    assert_eq!((error.kind(), error.sqlstate()), (Kind::Unavailable, sqlstate::IO));
    assert_eq!(get(&store, A, &key(n)), None);
    fs::remove_dir(place.file("lsm/log-2")).unwrap();
    assert_eq!(commit(n).unwrap_err().what(), "the database can only be read since a commit failed");
    drop(store);
    let store = place.relaxed();
    put(&store, A, &key(n), b"2");
    assert_eq!(all(&store.snapshot().unwrap(), A).len(), n as usize + 1);
}

/// Actions on a store between two ends of its process.
#[derive(Clone, Debug)]
enum Deed {
    Put(u32, u32, usize),
    Delete(u32, u32),
    Clear(u32),
    /// A bulk write: first key, number of entries, their length; and whether it is committed.
    Load(u32, u32, u32, usize, bool),
    Close,
    Kill,
    PowerFailure(usize, bool),
}

fn some_deed() -> impl Strategy<Value = Deed> {
    let keyspace = || 1..4u32;
    prop_oneof![
        6 => (keyspace(), 0..60u32, 0..4000usize).prop_map(|(s, k, len)| Deed::Put(s, k, len)),
        2 => (keyspace(), 0..60u32).prop_map(|(s, k)| Deed::Delete(s, k)),
        1 => keyspace().prop_map(Deed::Clear),
        2 => (keyspace(), 0..60u32, 1..200u32, 0..1500usize, any::<bool>())
            .prop_map(|(s, k, n, len, whole)| Deed::Load(s, k, n, len, whole)),
        1 => Just(Deed::Close),
        1 => Just(Deed::Kill),
        1 => (0..8usize, any::<bool>()).prop_map(|(lost, all)| Deed::PowerFailure(lost, all)),
    ]
}

type Model = BTreeMap<(u32, String), Vec<u8>>;

fn assert_shows(store: &LsmStore, model: &Model, why: &str) {
    assert!(shown(store) == *model, "{why}");
    let snapshot = store.snapshot().unwrap();
    for (space, k) in (1..4).flat_map(|space| (0..60).map(move |k| (space, key(k)))) {
        let found = get_in(&snapshot, KeyspaceId(space), k.as_bytes());
        assert!(found.as_ref() == model.get(&(space, k)), "{why}");
    }
}

fn shown(store: &LsmStore) -> Model {
    let snapshot = store.snapshot().unwrap();
    let of = |space| {
        let entries = all(&snapshot, KeyspaceId(space)).into_iter();
        entries.map(move |(k, v)| ((space, String::from_utf8(k).unwrap()), v))
    };
    (1..4).flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..<_>::default() })]

    #[test]
    fn however_a_process_ends_the_next_finds_what_was_acknowledged(
        deeds in prop::collection::vec(some_deed(), 1..40),
    ) {
        let mut model = Model::new();
        // The states that a power failure may leave, since commits are not flushed.
        let mut earlier = vec![Model::new()];
        let mut place = Place::new();
        let mut store = place.relaxed();
        for (n, deed) in deeds.into_iter().enumerate() {
            let value = |len| vec![n as u8; len];
            match deed {
                Deed::Put(space, k, len) => {
                    put(&store, KeyspaceId(space), &key(k), value(len));
                    model.insert((space, key(k)), value(len));
                }
                Deed::Delete(space, k) => {
                    store.commit(batch(|b| b.delete(KeyspaceId(space), &*key(k)))).unwrap();
                    model.remove(&(space, key(k)));
                }
                Deed::Clear(space) => {
                    store.commit(batch(|b| b.clear(KeyspaceId(space)))).unwrap();
                    model.retain(|(other, _), _| *other != space);
                }
                Deed::Load(space, first, count, len, whole) => {
                    let mut bulk = store.bulk().unwrap();
                    for k in first..first + count {
                        bulk.put(KeyspaceId(space), key(k).as_bytes(), &value(len)).unwrap();
                        if whole {
                            model.insert((space, key(k)), value(len));
                        }
                        if k % 5 == 4 {
                            bulk.delete(KeyspaceId(space), key(k - 3).as_bytes()).unwrap();
                            if whole {
                                model.remove(&(space, key(k - 3)));
                            }
                        }
                    }
                    if whole {
                        bulk.commit().unwrap();
                    }
                }
                Deed::Close => {
                    drop(store);
                    store = place.relaxed();
                    earlier.clear();
                }
                Deed::Kill => {
                    let left = place.killed(&mut store);
                    drop(store);
                    place = left;
                    store = place.relaxed();
                }
                Deed::PowerFailure(lost, all) => {
                    let left = place.failed(&mut store, lost, all);
                    drop(store);
                    place = left;
                    store = place.relaxed();
                    model = shown(&store);
                    prop_assert!(earlier.contains(&model), "after {}", n);
                    earlier.clear();
                }
            }
            assert_shows(&store, &model, &format!("after {n}"));
            earlier.push(model.clone());
        }
    }
}
