//! What the embedded store promises beyond the `Store` trait: files that last, and refusals when they are damaged.

mod damage;
mod held;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::tree::header;
use super::tree::{KEYSPACES_SPARE, MAP_BYTES, READERS_BYTES};
use super::*;
use crate::error::{Kind, sqlstate};
use crate::key::KeyRange;
use crate::store::testing::{A, B, batch, fill, get, key, put};
use crate::store::{Direction, KeyspaceId, Reads, testing};

type Place = testing::Place<EmbeddedStore>;

/// Writes past the log.
fn put_into_tree(store: &EmbeddedStore, keyspace: KeyspaceId, key: &str, value: impl AsRef<[u8]>) {
    let mut bulk = store.bulk().unwrap();
    bulk.put(keyspace, key.as_bytes(), value.as_ref()).unwrap();
    bulk.commit().unwrap();
}

#[test]
fn reopening_keeps_everything() {
    for durability in [Durability::Sync, Durability::Relaxed] {
        let place = Place::new();
        let store = EmbeddedStore::open(&place.path(), durability).unwrap();
        put(&store, A, "a", b"1");
        fill(&store, B, 1000);
        let version = store.snapshot().unwrap().version();
        drop(store);
        let store = place.open().unwrap();
        assert_eq!(get(&store, A, "a"), Some(b"1".to_vec()));
        assert_eq!(get(&store, B, "000999"), Some(vec![7; 500]));
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.version(), version);
        assert_eq!(snapshot.reader().unwrap().entries(B).unwrap(), 1000);
        assert_eq!(fs::read_to_string(place.file("FORMAT")).unwrap(), "rowkeydb format 4\n");
    }
}

#[test]
fn what_walks_pass_again_and_again_is_moved_into_the_tree() {
    let place = Place::new();
    let store = place.open().unwrap();
    fill(&store, A, 300);
    let mut waiting = 0;
    for n in 0..300 {
        let snapshot = store.snapshot().unwrap();
        let reader = snapshot.reader().unwrap();
        let mut cursor = reader.cursor(A, &KeyRange::all(), Direction::Forward).unwrap();
        let first = cursor.next().unwrap().map(|(first, _)| first.to_vec());
        drop(cursor);
        assert_eq!(first.as_deref(), Some(format!("{n:06}").as_bytes()));
        let mut batch = WriteBatch::default();
        batch.delete(A, first.unwrap());
        store.commit(batch).unwrap();
        store.shared.move_sealed().unwrap();
        waiting = waiting.max(store.shared.newest().active.bytes() / ENTRY_BYTES);
    }
    assert!(waiting < 20, "{waiting} deletions are in the way of the first row");
}

#[test]
fn a_database_opens_once_at_a_time_and_snapshots_count() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, A, "a", b"1");
    let error = place.refusal();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.what().ends_with("is open in another process"), "{error}");
    assert!(error.fix().is_some());
    let snapshot = store.snapshot().unwrap();
    drop(store);
    assert_eq!(place.refusal().kind(), Kind::Unavailable);
    assert_eq!(snapshot.reader().unwrap().get(A, b"a").unwrap(), Some(&b"1"[..]));
    drop(snapshot);
    place.open().unwrap();
}

#[test]
fn another_format_is_refused_naming_both() {
    let place = Place::new();
    drop(place.open().unwrap());
    for (format, who) in [(2, "an older"), (7, "a newer")] {
        fs::write(place.file("FORMAT"), format!("rowkeydb format {format}\n")).unwrap();
        let error = place.refusal();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(
            error.what().ends_with(&format!("has format {format}, this program reads format 4")),
            "{error}"
        );
        assert_eq!(error.reason(), Some(&*format!("{who} program wrote it")));
    }
    for damaged in ["", "rowkeydb format", "rowkeydb format 0", "sqlite"] {
        fs::write(place.file("FORMAT"), damaged).unwrap();
        assert_eq!(place.refusal().kind(), Kind::Corrupt, "{damaged:?}");
    }
}

#[test]
fn what_is_no_database_is_refused_and_left_alone() {
    let place = Place::new();
    fs::write(place.path(), "a file").unwrap();
    assert_eq!(place.refusal().kind(), Kind::Invalid);
    fs::remove_file(place.path()).unwrap();
    fs::create_dir(place.path()).unwrap();
    for stranger in ["notes.txt", "data.mdb"] {
        fs::write(place.file(stranger), "text").unwrap();
        let error = place.refusal();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains(stranger), "{error}");
        let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, [stranger]);
        fs::remove_file(place.file(stranger)).unwrap();
    }
    place.open().expect("an empty directory becomes a database");
}

#[test]
fn a_missing_parent_directory_is_named() {
    let place = Place::new();
    let error = EmbeddedStore::open(&place.file("below"), Durability::Sync).err().unwrap();
    assert_eq!((error.kind(), error.sqlstate()), (Kind::Unavailable, sqlstate::IO));
    assert!(error.fix().is_some_and(|hint| hint.starts_with("create that directory")), "{error}");
}

#[cfg(unix)]
#[test]
fn a_read_only_directory_is_refused_with_a_hint() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    drop(place.open().unwrap());
    for name in ["", "LOCK"] {
        fs::set_permissions(place.file(name), fs::Permissions::from_mode(0o500)).unwrap();
    }
    if fs::File::options().write(true).open(place.file("LOCK")).is_ok() {
        return; // The super-user may write anywhere.
    }
    let error = place.refusal();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.fix().is_some_and(|hint| hint.contains("may write")), "{error}");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_creation_that_crashed_is_started_over() {
    let place = Place::new();
    drop(place.open().unwrap());
    fs::rename(place.file("FORMAT"), place.file("FORMAT.tmp")).unwrap();
    fs::write(place.file("data.mdb"), "half a pa").unwrap();
    // Left over from a check for free disk space.
    fs::write(place.file("SCRATCH"), "").unwrap();
    put(&place.open().unwrap(), A, "a", b"1");
    assert_eq!(get(&place.open().unwrap(), A, "a"), Some(b"1".to_vec()));
}

#[test]
fn a_missing_or_foreign_data_file_is_corrupt() {
    let place = Place::new();
    drop(place.open().unwrap());
    for garbage in
        [None, Some(vec![]), Some(b"text".to_vec()), Some(vec![0; 20_000]), Some(vec![0xA5; 20_000])]
    {
        match &garbage {
            Some(bytes) => fs::write(place.file("data.mdb"), bytes).unwrap(),
            None => fs::remove_file(place.file("data.mdb")).unwrap(),
        }
        let error = place.refusal();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(error.what().contains("data.mdb"), "{error}");
    }
}

#[test]
fn a_truncated_data_file_is_refused_at_every_length() {
    let place = Place::new();
    let store = place.open().unwrap();
    fill(&store, A, 100);
    drop(store);
    let whole = fs::read(place.file("data.mdb")).unwrap();
    let pages = whole.len() / 4096;
    let lengths = (0..pages).map(|page| page * 4096).chain([1, 151, 4097, 4096 + 151, whole.len() - 1]);
    for length in lengths {
        fs::write(place.file("data.mdb"), &whole[..length]).unwrap();
        let error = place.refusal();
        assert_eq!(error.kind(), Kind::Corrupt, "{length} of {} bytes: {error}", whole.len());
    }
    fs::write(place.file("data.mdb"), &whole).unwrap();
    assert_eq!(get(&place.open().unwrap(), A, "000099"), Some(vec![7; 500]));
}

#[test]
fn pages_taken_and_freed_in_one_commit_need_not_be_in_the_file() {
    let place = Place::new();
    let store = place.open().unwrap();
    // Once there are free pages, LMDB keeps their list in memory.
    (0..5u8).for_each(|n| put_into_tree(&store, A, "small", [n]));
    let mut bulk = store.bulk().unwrap();
    bulk.put(A, b"large", &[7; 1 << 20]).unwrap();
    bulk.delete(A, b"large").unwrap();
    bulk.commit().unwrap();
    let env = &store.shared.tree.env;
    let page_bytes = u64::from(env.unnamed_database_stat().page_size);
    let promised = (env.info().last_page_number as u64 + 1) * page_bytes;
    drop(store);
    assert!(fs::metadata(place.file("data.mdb")).unwrap().len() < promised);
    fill(&place.open().unwrap(), A, 1000);
    assert_eq!(get(&place.open().unwrap(), A, "000999"), Some(vec![7; 500]));
}

#[test]
fn free_pages_at_the_end_may_be_cut_off_and_no_others() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, B, "kept", b"1");
    fill(&store, A, 5000);
    store.commit(batch(|b| b.clear(A))).unwrap();
    // The free list moves down into what it lists.
    (0..5u8).for_each(|n| put_into_tree(&store, B, "kept", [n]));
    drop(store);
    let data = place.file("data.mdb");
    let file = fs::File::options().write(true).open(&data).unwrap();
    let pages = fs::metadata(&data).unwrap().len() / 4096;
    let fits = |pages: u64| {
        file.set_len(pages * 4096).unwrap();
        header::check(&data).is_ok()
    };
    let whole = fs::read(&data).unwrap();
    let least = (0..=pages).rev().take_while(|&pages| fits(pages)).last().expect("whole, it is fine");
    assert!((1..pages / 2).contains(&least), "{least} of {pages} pages are needed");
    fs::write(&data, &whole[..least as usize * 4096]).unwrap();
    let store = place.open().unwrap();
    assert_eq!(get(&store, B, "kept"), Some(vec![4]));
    fill(&store, A, 5000);
    assert_eq!(get(&store, A, "004999"), Some(vec![7; 500]));
}

#[test]
fn a_flipped_byte_of_a_value_is_corrupt_and_named() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, A, "good", b"fine");
    put(&store, A, "hurt", b"a value found nowhere else");
    drop(store);
    let mut bytes = fs::read(place.file("data.mdb")).unwrap();
    let needle = b"found nowhere else";
    let found: Vec<_> = (0..bytes.len()).filter(|&at| bytes[at..].starts_with(needle)).collect();
    found.iter().for_each(|&at| bytes[at] ^= 0x20);
    fs::write(place.file("data.mdb"), bytes).unwrap();

    let store = place.open().unwrap();
    assert_eq!(get(&store, A, "good"), Some(b"fine".to_vec()));
    let snapshot = store.snapshot().unwrap();
    let reader = snapshot.reader().unwrap();
    let by_get = reader.get(A, b"hurt").unwrap_err();
    let mut cursor = reader.cursor(A, &KeyRange::all(), Direction::Reverse).unwrap();
    let by_cursor = cursor.next().unwrap_err();
    let by_bulk = store.bulk().unwrap().get(A, b"hurt").unwrap_err();
    for error in [by_get, by_cursor, by_bulk] {
        assert_eq!(error.kind(), Kind::Corrupt);
        assert_eq!(error.what(), "entry 68757274 of keyspace 1 is damaged");
    }
}

#[test]
fn a_refused_batch_does_not_fail_its_neighbours() {
    let place = Place::new();
    let store = place.open().unwrap();
    let version = store.snapshot().unwrap().version();
    let mut group = vec![WriteBatch { reads: Reads::new(version), ..WriteBatch::default() }; 4];
    group[0].put(A, "a", b"1".to_vec());
    group[1].put(A, "b", b"1".to_vec());
    group[1].reads.add(A, KeyRange::point("a"));
    group[2].reads.add(A, KeyRange::point("b"));
    group[2].put(B, "c", b"1".to_vec());
    group[3].put(A, "d", b"1".to_vec());
    let results = store.apply_group(&group);
    let kinds: Vec<_> = results.into_iter().map(|result| result.err().map(|e| e.kind())).collect();
    assert_eq!(kinds, [None, Some(Kind::Conflict), None, None], "each minds what the ones before it wrote");
    assert_eq!(get(&store, A, "b"), None);
    assert_eq!(get(&store, B, "c"), Some(b"1".to_vec()));
    assert_eq!(get(&store, A, "d"), Some(b"1".to_vec()));
    assert_eq!(store.snapshot().unwrap().version(), version + 1, "one commit for all");
}

#[test]
fn a_keyspace_too_many_is_refused_until_the_database_is_opened_again() {
    let place = Place::new();
    let store = place.open().unwrap();
    let mut bulk = store.bulk().unwrap();
    let error = (0..=KEYSPACES_SPARE).find_map(|n| bulk.put(KeyspaceId(n), b"k", b"v").err()).unwrap();
    assert_eq!((error.kind(), error.sqlstate()), (Kind::Unavailable, sqlstate::LIMIT));
    drop(bulk);
    let mut bulk = store.bulk().unwrap();
    (0..KEYSPACES_SPARE).for_each(|n| bulk.put(KeyspaceId(n), b"k", b"v").unwrap());
    bulk.commit().unwrap();
    drop(store);
    let store = place.open().unwrap();
    put(&store, KeyspaceId(KEYSPACES_SPARE), "k", b"v");
    assert_eq!(get(&store, KeyspaceId(KEYSPACES_SPARE - 1), "k"), Some(b"v".to_vec()));
}

#[test]
fn a_keyspace_too_many_fails_nobody_else() {
    let place = Place::new();
    let store = place.open().unwrap();
    let mut bulk = store.bulk().unwrap();
    (0..KEYSPACES_SPARE).for_each(|n| bulk.put(KeyspaceId(n), b"k", b"v").unwrap());
    bulk.commit().unwrap();
    let group = [KEYSPACES_SPARE, 0, KEYSPACES_SPARE + 1, 1]
        .map(|n| batch(|b| b.put(KeyspaceId(n), "a", b"1".to_vec())));
    let results = store.apply_group(&group);
    let kinds: Vec<_> = results.into_iter().map(|result| result.err().map(|e| e.sqlstate())).collect();
    assert_eq!(kinds, [Some(sqlstate::LIMIT), None, Some(sqlstate::LIMIT), None]);
    assert_eq!(get(&store, KeyspaceId(1), "a"), Some(b"1".to_vec()));
}

#[test]
fn a_moment_too_many_is_refused_before_anything_is_written() {
    let place = Place::new();
    let store = EmbeddedStore::open(&place.path(), Durability::Relaxed).unwrap();
    put(&store, A, "a", b"1");
    let clear = || store.commit(batch(|b| b.clear(B)));
    let mut held = Vec::new();
    let error = loop {
        held.push(store.snapshot().unwrap());
        match clear() {
            Ok(()) => put(&store, B, "b", b"1"),
            Err(e) => break e,
        }
    };
    assert_eq!(error.what(), "too many threads read at once");
    assert_eq!(get(&store, B, "b"), Some(b"1".to_vec()), "it is not cleared");
    put(&store, A, "a", b"2");
    held.clear();
    clear().unwrap();
    assert_eq!((get(&store, A, "a"), get(&store, B, "b")), (Some(b"2".to_vec()), None));
}

#[test]
fn the_file_is_as_large_as_its_data_not_as_its_map() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, A, "a", b"1");
    assert!(fs::metadata(place.file("data.mdb")).unwrap().len() < 1 << 20);
    assert!(store.shared.tree.env.info().map_size >= MAP_BYTES.1);
}

#[cfg(unix)]
#[test]
fn the_table_of_readers_has_no_holes() {
    use std::os::unix::fs::MetadataExt;
    let place = Place::new();
    let _store = place.open().unwrap();
    let readers = fs::metadata(place.file("lock.mdb")).unwrap();
    assert_eq!(readers.len(), READERS_BYTES);
    assert!(readers.blocks() * 512 >= READERS_BYTES, "a full disk would be fatal later");
}

#[test]
fn threads_read_one_snapshot_at_the_same_time_and_take_turns_once_it_is_old() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, A, "a", b"old");
    let snapshot = store.snapshot().unwrap();
    let read = || snapshot.reader().unwrap().get(A, b"a").unwrap().map(<[u8]>::to_vec);
    let held = snapshot.reader().unwrap();
    // It would wait forever if the readers shared one transaction.
    std::thread::scope(|scope| assert_eq!(scope.spawn(read).join().unwrap(), Some(b"old".to_vec())));
    put(&store, A, "a", b"new");
    // One of them is idle now and still sees the old value.
    assert_eq!(read(), Some(b"old".to_vec()));
    let second = snapshot.reader().unwrap();
    std::thread::scope(|scope| {
        let third = scope.spawn(read);
        drop((held, second));
        assert_eq!(third.join().unwrap(), Some(b"old".to_vec()));
    });
    assert_eq!(get(&store, A, "a"), Some(b"new".to_vec()));
}

/// What a killed process leaves. Nothing moves while it is copied.
fn killed(place: &Place, store: &EmbeddedStore) -> Place {
    let _still = (store.shared.writer.lock(), store.shared.moving.lock());
    place.copy()
}

/// Power failure: of the newest log segment, which was never flushed, any page may be missing.
#[test]
fn what_a_power_failure_leaves_without_flushes_is_as_it_was_after_some_commit() {
    const PAGE_BYTES: usize = 4096;
    const COMMITS: u32 = 300;
    let text = |n: u32| vec![n as u8; 500];
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix("log-")?.parse::<u64>().ok();
    let (left, newest, pages) = loop {
        let place = Place::new();
        let store = place.relaxed();
        put_into_tree(&store, A, "before", "all");
        (0..COMMITS).for_each(|n| put(&store, A, &key(n), text(n)));
        let left = killed(&place, &store);
        let logs = fs::read_dir(left.file("log")).unwrap().map(|entry| entry.unwrap().path());
        let newest = logs.max_by_key(|path| number(path)).unwrap();
        let written = fs::read(&newest).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
        // Unless the keeper has moved all of it.
        if written > 5 * PAGE_BYTES {
            break (left, newest, written / PAGE_BYTES + 1);
        }
    };
    let bytes = fs::read(&newest).unwrap();
    let mut seen = BTreeSet::new();
    for lost in 1..pages {
        let failed = left.copy();
        let mut holed = bytes.clone();
        holed[lost * PAGE_BYTES..][..PAGE_BYTES].fill(0);
        fs::write(failed.file("log").join(newest.file_name().unwrap()), holed).unwrap();
        let store = failed.open().unwrap();
        let there = (0..COMMITS).take_while(|n| get(&store, A, &key(*n)) == Some(text(*n))).count() as u32;
        assert!((there..COMMITS).all(|n| get(&store, A, &key(n)).is_none()), "page {lost}");
        seen.insert(there);
        put(&store, A, "after", "it");
        drop(store);
        assert_eq!(get(&failed.open().unwrap(), A, "after"), Some(b"it".to_vec()));
    }
    assert!(seen.len() == pages - 1 && !seen.contains(&COMMITS), "{pages} pages, {seen:?}");
}

/// Writes, in order, and what happens between them.
#[derive(Clone, Debug)]
enum Step {
    Commit(Vec<(u8, Option<u8>)>),
    Clear,
    Bulk(Vec<(u8, Option<u8>)>),
    Rotate,
    Move,
    Remember,
    /// Closed and opened again, with this durability.
    Reopen(Durability),
    /// The process is killed; what it left is opened.
    Kill(Durability),
}

fn some_steps() -> impl Strategy<Value = Vec<Step>> {
    let changes = || prop::collection::vec((0..12u8, any::<Option<u8>>()), 0..6);
    let durability = || prop_oneof![Just(Durability::Relaxed), Just(Durability::Sync)];
    let step = prop_oneof![
        6 => changes().prop_map(Step::Commit),
        1 => Just(Step::Clear),
        1 => changes().prop_map(Step::Bulk),
        2 => Just(Step::Rotate),
        2 => Just(Step::Move),
        3 => Just(Step::Remember),
        1 => durability().prop_map(Step::Reopen),
        1 => durability().prop_map(Step::Kill),
    ];
    prop::collection::vec(step, 0..25)
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn change(model: &mut Model, changes: &[(u8, Option<u8>)]) {
    for (key, value) in changes {
        match value {
            Some(value) => model.insert(vec![b'k', *key], vec![*value]),
            None => model.remove(&[b'k', *key][..]),
        };
    }
}

/// The snapshot shows the model, by every way of reading.
fn assert_shows(snapshot: &Arc<dyn Snapshot>, model: &Model) {
    let reader = snapshot.reader().unwrap();
    reader.verify(A, &mut |_| Ok(())).unwrap();
    for key in 0..12u8 {
        let key = [b'k', key];
        assert_eq!(reader.get(A, &key).unwrap(), model.get(&key[..]).map(Vec::as_slice));
    }
    for (start, end) in [(0, 12), (3, 9), (5, 6), (7, 7)] {
        let range = KeyRange::new(vec![b'k', start], vec![b'k', end]);
        let mut expected: Vec<_> = model.iter().filter(|(key, _)| range.contains(key)).collect();
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut cursor = reader.cursor(A, &range, direction).unwrap();
            for (key, value) in &expected {
                assert_eq!(cursor.next().unwrap(), Some((&key[..], &value[..])), "{direction:?}");
            }
            assert_eq!(cursor.next().unwrap(), None);
            assert_eq!(cursor.next().unwrap(), None);
            expected.reverse();
        }
    }
    assert_eq!(reader.count(A).unwrap(), Some(model.len() as u64));
    assert!(model.is_empty() || reader.entries(A).unwrap() > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn wherever_an_entry_is_it_is_found_by_every_snapshot(steps in some_steps()) {
        let mut place = Place::new();
        let mut store = Some(place.relaxed());
        // Created ahead; otherwise the first commit of each case would go into the tree.
        put_into_tree(store.as_ref().unwrap(), A, "before", "all");
        let mut model = Model::new();
        store.as_ref().unwrap().commit(batch(|b| b.delete(A, "before"))).unwrap();
        let mut remembered = Vec::new();
        for step in steps {
            let open = store.as_ref().unwrap();
            match step {
                Step::Commit(changes) => {
                    open.commit(batch(|b| {
                        for (key, value) in &changes {
                            match value {
                                Some(value) => b.put(A, vec![b'k', *key], vec![*value]),
                                None => b.delete(A, vec![b'k', *key]),
                            }
                        }
                    })).unwrap();
                    change(&mut model, &changes);
                }
                Step::Clear => {
                    open.commit(batch(|b| b.clear(A))).unwrap();
                    model.clear();
                }
                Step::Bulk(changes) => {
                    let mut bulk = open.bulk().unwrap();
                    for (key, value) in &changes {
                        match value {
                            Some(value) => bulk.put(A, &[b'k', *key], &[*value]).unwrap(),
                            None => bulk.delete(A, &[b'k', *key]).unwrap(),
                        }
                    }
                    bulk.commit().unwrap();
                    change(&mut model, &changes);
                }
                Step::Rotate => open.shared.seal(&mut open.shared.writer.lock().log).unwrap(),
                Step::Move => open.shared.move_sealed().unwrap(),
                Step::Remember => remembered.push((open.snapshot().unwrap(), model.clone())),
                Step::Reopen(durability) => {
                    remembered.clear();
                    drop(store.take());
                    store = Some(EmbeddedStore::open(&place.path(), durability).unwrap());
                }
                Step::Kill(durability) => {
                    remembered.clear();
                    let left = killed(&place, store.as_ref().unwrap());
                    drop(store.take());
                    place = left;
                    store = Some(EmbeddedStore::open(&place.path(), durability).unwrap());
                }
            }
            assert_shows(&store.as_ref().unwrap().snapshot().unwrap(), &model);
            remembered.iter().for_each(|(snapshot, model)| assert_shows(snapshot, model));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Of many leaves, in order of the keys for a while, then not: the sum of all checksums is right.
    #[test]
    fn one_transaction_changes_entries_in_any_order(
        mut changes in prop::collection::vec((0..600u32, prop::option::weighted(0.6, 0..900usize)), 0..400),
        sorted in 0..400usize,
    ) {
        let place = Place::new();
        let store = place.relaxed();
        let mut model: BTreeMap<String, Vec<u8>> =
            (0..500).step_by(2).map(|n| (key(n), vec![7; 300])).collect();
        let mut bulk = store.bulk().unwrap();
        model.iter().for_each(|(key, value)| bulk.put(A, key.as_bytes(), value).unwrap());
        bulk.commit().unwrap();
        let sorted = sorted.min(changes.len());
        changes[..sorted].sort_by_key(|(n, _)| *n);
        let mut bulk = store.bulk().unwrap();
        for (n, bytes) in changes {
            let key = key(n);
            match bytes {
                Some(bytes) => {
                    let value = vec![n as u8; bytes];
                    bulk.put(A, key.as_bytes(), &value).unwrap();
                    model.insert(key, value);
                }
                None => {
                    bulk.delete(A, key.as_bytes()).unwrap();
                    model.remove(&key);
                }
            }
        }
        bulk.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let reader = snapshot.reader().unwrap();
        reader.verify(A, &mut |_| Ok(())).unwrap();
        prop_assert_eq!(reader.count(A).unwrap(), Some(model.len() as u64));
        let mut cursor = reader.cursor(A, &KeyRange::all(), Direction::Forward).unwrap();
        for (key, value) in &model {
            prop_assert_eq!(cursor.next().unwrap(), Some((key.as_bytes(), &value[..])));
        }
        prop_assert_eq!(cursor.next().unwrap(), None);
    }
}

#[test]
fn many_changes_that_lie_close_together_go_into_the_tree_unless_more_waits() {
    let place = Place::new();
    let store = place.open().unwrap();
    store.keeper.stop();
    fill(&store, A, 1000);
    put(&store, A, "b", b"1");
    assert!(!store.shared.newest().active.is_empty(), "too few");
    let mut changed = BTreeSet::new();
    let mut goes_into_the_tree = |numbers: Vec<u32>| {
        let mut batch = WriteBatch::default();
        numbers.iter().for_each(|n| batch.put(A, key(*n).as_bytes(), vec![1; 500]));
        changed.extend(numbers);
        store.commit(batch).unwrap();
        store.shared.newest().active.is_empty()
    };
    assert!(!goes_into_the_tree((0..20).map(|n| 40 * n).collect()), "too far apart");
    assert!(!goes_into_the_tree((500..510).collect()), "more waits");
    assert!(goes_into_the_tree((500..580).step_by(2).collect()));
    assert!(goes_into_the_tree((1000..1010).collect()), "new ones");
    drop(store);
    let store = place.open().unwrap();
    for n in 0..1010 {
        let value = if changed.contains(&n) { 1 } else { 7 };
        assert_eq!(get(&store, A, &key(n)), Some(vec![value; 500]), "{n}");
    }
}

#[test]
fn what_nobody_adds_to_moves_into_the_tree_by_itself() {
    let place = Place::new();
    let store = place.open().unwrap();
    fill(&store, A, 1);
    (0..250).for_each(|n| put(&store, A, &format!("{n:03}"), [7; 300]));
    let is_behind = || !store.shared.newest().active.is_empty() || store.shared.newest().sealed.is_some();
    assert!(is_behind(), "more than a memtable was written, and less than two");
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_behind() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    let view = TreeView::of(&store.shared.tree).unwrap();
    assert_eq!(view.version().unwrap(), store.snapshot().unwrap().version());
    assert_eq!(view.reader().entries(A), 251);
    assert!(!place.file("log/log-1").exists(), "the tree has what was in it");
}
