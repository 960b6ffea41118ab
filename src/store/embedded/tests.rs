//! What the embedded store promises beyond the seam: files that last, and refusals when they are damaged.

use std::fs;

use super::*;
use crate::error::sqlstate;
use crate::key::KeyRange;
use crate::store::testing::{A, B, batch, fill, get, put};
use crate::store::{Direction, Reads, testing};

type Place = testing::Place<EmbeddedStore>;

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
        assert_eq!(fs::read_to_string(place.file("FORMAT")).unwrap(), "rowkeydb format 2\n");
    }
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
    for (format, who) in [(1, "an older"), (7, "a newer")] {
        fs::write(place.file("FORMAT"), format!("rowkeydb format {format}\n")).unwrap();
        let error = place.refusal();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(
            error.what().ends_with(&format!("has format {format}, this program reads format 2")),
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
    // Once there are free pages, LMDB has the list of them at hand.
    (0..5u8).for_each(|n| put(&store, A, "small", [n]));
    let large = batch(|b| {
        b.put(A, "large", vec![7; 1 << 20]);
        b.delete(A, "large");
    });
    store.commit(large).unwrap();
    let env = &store.shared.env;
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
    (0..5u8).for_each(|n| put(&store, B, "kept", [n]));
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
    let results = Writer::apply_group(&store.shared, &group);
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
fn an_idle_read_transaction_serves_the_next_snapshot_of_the_same_version_only() {
    let place = Place::new();
    let store = place.open().unwrap();
    let idle = || store.shared.idle.lock().unwrap().len();
    put(&store, A, "a", b"1");
    let (first, second) = (store.snapshot().unwrap(), store.snapshot().unwrap());
    drop(first);
    assert_eq!(idle(), 1);
    let again = store.snapshot().unwrap();
    assert_eq!(idle(), 0);
    drop(again);
    put(&store, A, "a", b"2");
    assert_eq!(idle(), 0, "a commit ends them, for they would keep its pages from reuse");
    drop(second);
    assert_eq!(idle(), 0, "an old one is not kept");
    assert_eq!(get(&store, A, "a"), Some(b"2".to_vec()));
}

#[test]
fn the_file_is_as_large_as_its_data_not_as_its_map() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, A, "a", b"1");
    assert!(fs::metadata(place.file("data.mdb")).unwrap().len() < 1 << 20);
    assert!(store.shared.env.info().map_size >= MAP_BYTES.1);
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
    // Would wait forever, had they one transaction between them.
    std::thread::scope(|scope| assert_eq!(scope.spawn(read).join().unwrap(), Some(b"old".to_vec())));
    put(&store, A, "a", b"new");
    // One of them is idle now, and sees what it saw.
    assert_eq!(read(), Some(b"old".to_vec()));
    let second = snapshot.reader().unwrap();
    std::thread::scope(|scope| {
        let third = scope.spawn(read);
        drop((held, second));
        assert_eq!(third.join().unwrap(), Some(b"old".to_vec()));
    });
    assert_eq!(get(&store, A, "a"), Some(b"new".to_vec()));
}
