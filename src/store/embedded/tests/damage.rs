//! Files that are missing, damaged or outdated: each is refused with the right error.

use super::*;

#[test]
fn what_is_missing_or_wrong_in_the_log_is_refused() {
    let place = Place::new();
    let store = place.open().unwrap();
    fill(&store, A, 1);
    put(&store, A, "logged", b"and nowhere else");
    let left = killed(&place, &store);
    drop(store);
    let log = left.file("log/log-1");
    let whole = fs::read(&log).unwrap();
    let refused = |what: &str| {
        let error = left.refusal();
        assert_eq!((error.kind(), error.what()), (Kind::Corrupt, "log/log-1 is damaged"), "{what}: {error}");
    };
    for at in (0..200).step_by(7).filter(|at| whole[*at..].iter().any(|byte| *byte != 0)) {
        let mut hurt = whole.clone();
        hurt[at] ^= 1;
        fs::write(&log, hurt).unwrap();
        // A longer run of zeros is no record either.
        if left.open().is_err() {
            refused(&format!("byte {at}"));
        } else {
            assert_eq!(get(&left.open().unwrap(), A, "logged"), Some(b"and nowhere else".to_vec()));
        }
    }
    fs::write(&log, &whole[..40]).unwrap();
    refused("cut short");
    fs::remove_file(&log).unwrap();
    refused("missing");
}

#[test]
fn a_tree_of_an_earlier_time_is_refused() {
    let place = Place::new();
    let store = place.open().unwrap();
    fill(&store, A, 1);
    let earlier = killed(&place, &store);
    put(&store, A, "moved", b"into the tree");
    store.shared.empty_memtables(&mut store.shared.writer.lock().log).unwrap();
    put(&store, A, "logged", b"after that");
    let left = killed(&place, &store);
    assert_eq!(get(&left.open().unwrap(), A, "logged"), Some(b"after that".to_vec()));
    let left = killed(&place, &store);
    fs::copy(earlier.file("data.mdb"), left.file("data.mdb")).unwrap();
    let error = left.refusal();
    assert_eq!((error.kind(), error.what()), (Kind::Corrupt, "the log does not go on where data.mdb ends"));
    assert_eq!(error.reason(), Some("that has version 1, and the log goes on with 3"));
}

/// Page size of LMDB's file.
fn page_bytes(data: &[u8]) -> usize {
    u32::from_ne_bytes(*data[40..].first_chunk().unwrap()) as usize
}

/// Found by `FAULT_SEED=77`, 575.
#[test]
fn a_first_page_that_was_not_written_to_its_end_leaves_the_commit_before() {
    let place = Place::new();
    let store = place.open().unwrap();
    for commit in 0..4 {
        put_into_tree(&store, A, "n", [b'0' + commit]);
        let left = killed(&place, &store);
        let before = fs::read(left.file("data.mdb")).unwrap();
        // Another keyspace, so that the trees differ in more than their roots.
        put_into_tree(&store, KeyspaceId(100 + u32::from(commit)), "n", b"new");
        let whole = fs::read(place.file("data.mdb")).unwrap();
        let page_bytes = page_bytes(&whole);
        let txn = |at: usize| u64::from_ne_bytes(*whole[at + 144..].first_chunk().unwrap());
        let first = if txn(0) > txn(page_bytes) { 0 } else { page_bytes };
        for cut in (32..=152).map(|cut| first + cut) {
            let torn =
                [&whole[..cut], &before[cut..first + page_bytes], &whole[first + page_bytes..]].concat();
            fs::write(left.file("data.mdb"), torn).unwrap();
            let opened = left.open().unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
            assert_eq!(get(&opened, A, "n"), Some(vec![b'0' + commit]), "cut at {cut}");
        }
    }
}

#[test]
fn the_commit_before_the_last_is_not_taken_for_it() {
    let place = Place::new();
    fill(&place.open().unwrap(), A, 1);
    let earlier = fs::read(place.file("data.mdb")).unwrap();
    put_into_tree(&place.open().unwrap(), A, "one", b"more");
    let whole = fs::read(place.file("data.mdb")).unwrap();
    fs::write(place.file("data.mdb"), earlier).unwrap();
    let error = place.refusal();
    assert_eq!((error.kind(), error.what()), (Kind::Corrupt, "data.mdb is damaged, or of an earlier time"));
    assert_eq!(error.reason(), Some("it has version 1, and had version 2 already"));

    // LMDB uses the one of its two meta pages with the greater transaction number.
    for bit in
        [0, page_bytes(&whole)].into_iter().flat_map(|page| (0..64).map(move |bit| (page + 144) * 8 + bit))
    {
        let mut hurt = whole.clone();
        hurt[bit / 8] ^= 1 << (bit % 8);
        fs::write(place.file("data.mdb"), hurt).unwrap();
        match EmbeddedStore::open(&place.path(), Durability::Sync) {
            Ok(store) => assert_eq!(get(&store, A, "one"), Some(b"more".to_vec()), "bit {bit}"),
            Err(e) => assert_eq!(e.kind(), Kind::Corrupt, "bit {bit}: {e}"),
        }
        fs::write(place.file("data.mdb"), &whole).unwrap();
    }
}

#[test]
fn a_damaged_list_of_free_pages_holds_up_writes_and_no_reads() {
    let place = Place::new();
    let store = place.open().unwrap();
    put(&store, B, "kept", b"1");
    fill(&store, A, 100);
    store.commit(batch(|b| b.clear(A))).unwrap();
    drop(store);
    let mut data = fs::read(place.file("data.mdb")).unwrap();
    let page_bytes = page_bytes(&data);
    let number = |at: usize| u64::from_ne_bytes(*data[at..].first_chunk().unwrap());
    let newest = [0, page_bytes].into_iter().max_by_key(|meta| number(meta + 144)).unwrap();
    // A leaf is filled from its end, where a list has its last page.
    let end = (number(newest + 80) as usize + 1) * page_bytes;
    data[end - 8..end].copy_from_slice(&u64::MAX.to_ne_bytes());
    fs::write(place.file("data.mdb"), &data).unwrap();
    for _ in 0..2 {
        let store = place.open().unwrap();
        assert_eq!(get(&store, B, "kept"), Some(b"1".to_vec()));
        for refused in [store.commit(batch(|b| b.put(B, "new", b"2".to_vec()))), store.bulk().map(drop)] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), Kind::Corrupt);
            assert_eq!(error.reason(), Some("its list of free pages makes no sense"));
        }
    }
    assert_eq!(fs::read(place.file("data.mdb")).unwrap(), data);
}

/// The entries of a keyspace, and the result of verifying it.
fn verified(place: &Place, keyspace: KeyspaceId) -> Result<(testing::Entries, Result<()>)> {
    let snapshot = place.open()?.snapshot()?;
    let reader = snapshot.reader()?;
    let mut cursor = reader.cursor(keyspace, &KeyRange::all(), Direction::Forward)?;
    let mut entries = Vec::new();
    while let Some((key, value)) = cursor.next()? {
        entries.push((key.to_vec(), value.to_vec()));
    }
    Ok((entries, reader.verify(keyspace, &mut |_| Ok(()))))
}

#[test]
fn a_page_of_an_earlier_commit_is_found_by_a_walk() {
    let place = Place::new();
    let store = place.open().unwrap();
    // One leaf, which each commit writes to another page, and soon to one it used before.
    fill(&store, A, 5);
    let mut files = Vec::new();
    for round in 0..12 {
        put_into_tree(&store, A, &testing::key(round % 3), [round as u8; 500]);
        let left = killed(&place, &store);
        files.push(fs::read(left.file("data.mdb")).unwrap());
    }
    drop(store);
    let whole = fs::read(place.file("data.mdb")).unwrap();
    let (expected, proof) = verified(&place, A).unwrap();
    proof.unwrap();
    let (mut unseen, page_bytes) = (0, page_bytes(&whole));
    for earlier in &files {
        for at in (2 * page_bytes..earlier.len()).step_by(page_bytes) {
            let page = at..at + page_bytes;
            if whole.get(page.clone()).is_none_or(|now| *now == earlier[page.clone()]) {
                continue;
            }
            let mut stale = whole.clone();
            stale[page.clone()].copy_from_slice(&earlier[page]);
            fs::write(place.file("data.mdb"), stale).unwrap();
            match verified(&place, A) {
                Err(e) => assert_eq!(e.kind(), Kind::Corrupt, "{e}"),
                Ok((entries, _)) if entries == expected => {}
                Ok((_, proof)) => {
                    unseen += 1;
                    let error = proof.expect_err("what is not there any more is found");
                    assert_eq!((error.kind(), error.what()), (Kind::Corrupt, "keyspace 1 is damaged"));
                }
            }
        }
    }
    assert!(unseen > 0, "reads alone do not find them all");
    println!("{unseen} pages were found by their sums alone");
}

#[test]
fn a_damaged_number_of_entries_is_refused() {
    let place = Place::new();
    let store = place.open().unwrap();
    fill(&store, A, 54321);
    fill(&store, B, 10);
    drop(store);
    let count = |store: &EmbeddedStore, keyspace| store.snapshot().unwrap().reader().unwrap().count(keyspace);
    let whole = fs::read(place.file("data.mdb")).unwrap();
    // LMDB's own counts, not the checksummed tallies.
    let needle = 54321u64.to_ne_bytes();
    let is_own =
        |at: &usize| whole[*at..].starts_with(&needle) && !whole[..*at].ends_with(&A.0.to_be_bytes());
    let mut hurt = whole.clone();
    (0..whole.len()).filter(is_own).for_each(|at| hurt[at] ^= 1);
    fs::write(place.file("data.mdb"), hurt).unwrap();
    assert_eq!(place.refusal().what(), "the number of entries of keyspace 1 is damaged");
    // Another name for the keyspace.
    let mut hurt = whole.clone();
    let name = (0..whole.len()).rfind(|at| whole[*at..].starts_with(b"\x02\0\x01\0\x31")).unwrap();
    hurt[name + 4] ^= 2;
    fs::write(place.file("data.mdb"), hurt).unwrap();
    assert_eq!(place.refusal().kind(), Kind::Corrupt);
    fs::write(place.file("data.mdb"), whole).unwrap();
    let store = place.open().unwrap();
    put_into_tree(&store, B, "one", b"more");
    assert_eq!((count(&store, A).unwrap(), count(&store, B).unwrap()), (Some(54321), Some(11)));
    put_into_tree(&store, A, "one", b"more");
    assert_eq!(count(&store, A).unwrap(), Some(54322));
}
