//! Pages of one keyspace are damaged: acknowledged changes stay, all other keyspaces can be written, and it can be
//! cleared.

use super::*;

/// Flips a bit in a page of `keyspace` while the database is closed: in the leaf that `key` belongs to, or in the
/// root.
fn hurt(place: &Place, keyspace: KeyspaceId, key: Option<&[u8]>) {
    let pages = TreeView::of(&place.open().unwrap().shared.tree)
        .unwrap()
        .reader()
        .path(keyspace, key.unwrap_or(b"0"));
    let mut data = fs::read(place.file("data.mdb")).unwrap();
    let at = if key.is_some() { pages.last() } else { pages.first() };
    // The number of its nodes.
    data[*at.unwrap() as usize * 4096 + 12] ^= 2;
    fs::write(place.file("data.mdb"), data).unwrap();
}

/// Moves all memtables into the tree.
fn empty_memtables(store: &EmbeddedStore) -> Result<()> {
    store.shared.empty_memtables(&mut store.shared.writer.lock().log)
}

fn refused(result: Result<()>) {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.what()), (Kind::Corrupt, "keyspace 1 is damaged"), "{error}");
    assert!(error.fix().is_some_and(|hint| hint.starts_with("REPAIR INDEX")), "{error}");
}

fn is_proved(store: &EmbeddedStore, keyspace: KeyspaceId) -> Result<()> {
    store.snapshot()?.reader()?.verify(keyspace, &mut |_| Ok(()))
}

/// Which page to damage: a leaf, or the root.
const PLACES: [Option<&[u8]>; 2] = [Some(b"000100"), None];

#[test]
fn a_damaged_page_keeps_no_other_keyspace_out_of_the_tree() {
    for key in PLACES {
        let mut place = Place::new();
        let store = place.open().unwrap();
        fill(&store, A, 2000);
        fill(&store, B, 100);
        drop(store);
        hurt(&place, A, key);

        let mut store = place.open().unwrap();
        let mut changes = WriteBatch::default();
        changes.put(A, "000100", b"acknowledged".to_vec());
        changes.put(A, "001900", b"there, too".to_vec());
        changes.delete(A, "000101");
        store.commit(changes).unwrap();
        put(&store, B, "b", b"1");
        empty_memtables(&store).unwrap();
        assert!(store.shared.newest().active.is_empty() && store.shared.newest().sealed.is_none());
        refused(store.commit(batch(|b| b.put(A, "000100", b"more".to_vec()))));
        refused(store.commit(batch(|b| b.delete(A, "001900"))));
        refused(store.bulk().unwrap().put(A, b"002000", b"more"));
        refused(store.bulk().unwrap().get(A, b"000100").map(drop));
        for round in 0..3u8 {
            // Elsewhere all goes on.
            put(&store, B, "b", [round]);
            fill(&store, B, 200);
            store.commit(batch(|b| b.clear(KeyspaceId(99)))).unwrap();
            match round {
                0 => {}
                1 => {
                    drop(store);
                    store = place.open().unwrap();
                }
                _ => {
                    let left = killed(&place, &store);
                    drop(store);
                    place = left;
                    store = place.open().unwrap();
                }
            }
            assert_eq!(get(&store, A, "000100"), Some(b"acknowledged".to_vec()), "round {round}");
            assert_eq!(get(&store, A, "001900"), Some(b"there, too".to_vec()));
            assert_eq!(get(&store, A, "000101"), None);
            assert_eq!(get(&store, B, "b"), Some(vec![round]));
            assert_eq!(get(&store, B, "000150"), Some(vec![7; 500]));
            assert!(is_proved(&store, A).is_err());
            is_proved(&store, B).unwrap();
            refused(store.commit(batch(|b| b.put(A, "000100", b"more".to_vec()))));
        }
    }
}

#[test]
fn a_damaged_keyspace_can_be_cleared_and_filled_again() {
    for (key, is_held) in PLACES.into_iter().flat_map(|key| [(key, false), (key, true)]) {
        let place = Place::new();
        let store = place.open().unwrap();
        fill(&store, A, 2000);
        fill(&store, B, 2000);
        drop(store);
        hurt(&place, A, key);

        let store = place.open().unwrap();
        put(&store, A, "000100", b"acknowledged");
        put(&store, B, "b", b"1");
        if is_held {
            empty_memtables(&store).unwrap();
        }
        let before = store.snapshot().unwrap();
        store
            .commit(batch(|b| {
                b.clear(A);
                b.put(A, "first", b"again".to_vec());
            }))
            .unwrap();
        assert_eq!(testing::all(&store.snapshot().unwrap(), A), [(b"first".to_vec(), b"again".to_vec())]);
        assert_eq!(testing::get_in(&before, A, b"000100"), Some(b"acknowledged".to_vec()));
        put(&store, A, "second", b"into the log");
        assert_eq!(get(&store, A, "000100"), None);
        let expect = |store: &EmbeddedStore, entries: u64| {
            for (keyspace, entries) in [(A, entries), (B, 2001)] {
                is_proved(store, keyspace).unwrap();
                let snapshot = store.snapshot().unwrap();
                let reader = snapshot.reader().unwrap();
                assert_eq!(reader.count(keyspace).unwrap(), Some(entries));
                assert_eq!(testing::all(&snapshot, keyspace).len() as u64, entries);
            }
        };
        expect(&store, 2);
        expect(&killed(&place, &store).open().unwrap(), 2);
        drop((before, store));
        expect(&place.open().unwrap(), 2);
        for entries in [2000, 3000] {
            let store = place.open().unwrap();
            fill(&store, A, entries);
            empty_memtables(&store).unwrap();
            expect(&store, u64::from(entries) + 2);
            drop(store);
            expect(&place.open().unwrap(), u64::from(entries) + 2);
        }
        // Once more, and then it is sound and its pages are given back.
        hurt(&place, A, key);
        for _ in 0..3 {
            let store = place.open().unwrap();
            store.commit(batch(|b| b.clear(A))).unwrap();
            expect(&store, 0);
            fill(&store, A, 3000);
            expect(&store, 3000);
        }
        let pages = fs::metadata(place.file("data.mdb")).unwrap().len() / 4096;
        let most = (2000 + 3000) / 7 + 2000 / 7 + 2 * 3000 / 7 + 200;
        assert!(pages < most, "{pages} pages");
    }
}

/// Whichever bit of its pages is flipped: LMDB gets no page back that another keyspace has.
#[test]
fn what_is_cleared_takes_nothing_from_others() {
    const LONG: [u8; 9000] = [0xA7; 9000];
    let key = |n: u32| format!("A-key-{n:06}");
    let load = |store: &EmbeddedStore, keyspace, round: u32| {
        let mut bulk = store.bulk().unwrap();
        for n in (0..700).filter(|n| n % 3 <= round) {
            let value = if n % 9 == 0 { &LONG[round as usize..] } else { &LONG[..200] };
            bulk.put(keyspace, key(n).as_bytes(), value).unwrap();
        }
        bulk.commit().unwrap();
    };
    let place = Place::new();
    let store = place.open().unwrap();
    (0..3).for_each(|round| [A, B].into_iter().for_each(|keyspace| load(&store, keyspace, round)));
    let pages =
        |store: &EmbeddedStore, keyspace| TreeView::of(&store.shared.tree).unwrap().reader().pages(keyspace);
    let of_a = pages(&store, A);
    drop(store);
    let data = fs::read(place.file("data.mdb")).unwrap();
    let rounds = std::env::var("DAMAGE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(24u64);
    let (mut random, mut given_up) = (1u64, 0);
    for _ in 0..rounds {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let page = of_a[(random >> 33) as usize % of_a.len()] as usize;
        // Every other one where a page tells of itself and its nodes.
        let bytes = if random >> 32 & 1 == 0 { 4096 } else { 120 };
        let bit = page * 4096 * 8 + (random >> 16) as usize % (bytes * 8);
        let mut hurt = data.clone();
        hurt[bit / 8] ^= 1 << (bit % 8);
        let at = format!("page {page} byte {} bit {}", bit / 8 % 4096, bit % 8);
        let copy = place.copy();
        fs::write(copy.file("data.mdb"), hurt).unwrap();
        let store = copy.open().unwrap_or_else(|e| panic!("{at}: {e}"));
        let snapshot = store.snapshot().unwrap();
        store.commit(batch(|b| b.clear(A))).unwrap_or_else(|e| panic!("{at}: {e}"));
        given_up += u32::from(store.shared.tree.env.unnamed_database_stat().entries > 3);
        drop(snapshot);
        for round in 0..3 {
            load(&store, A, round);
            let mut taken = BTreeSet::new();
            let all = [A, B].into_iter().flat_map(|keyspace| pages(&store, keyspace));
            all.for_each(|page| assert!(taken.insert(page), "{at}: page {page} twice"));
            [A, B].into_iter().for_each(|keyspace| is_proved(&store, keyspace).unwrap());
        }
        drop(store);
        let store = copy.open().unwrap();
        [A, B].into_iter().for_each(|keyspace| is_proved(&store, keyspace).unwrap());
    }
    println!("of {rounds} trees with a flipped bit {given_up} were given up");
    assert!(given_up > 0 && u64::from(given_up) < rounds);
}

/// Writes, in order, and what happens between them.
#[derive(Clone, Debug)]
enum Step {
    Commit(KeyspaceId, u8, Option<u8>),
    Bulk(KeyspaceId, u8, Option<u8>),
    Clear(KeyspaceId),
    Rotate,
    Move,
    Remember,
    Reopen,
    Kill,
    /// The root page of a keyspace is damaged, while nobody has the database open.
    Hurt(KeyspaceId),
}

fn some_steps() -> impl Strategy<Value = Vec<Step>> {
    let keyspace = || prop::sample::select(vec![A, B]);
    let step = prop_oneof![
        8 => (keyspace(), 0..12u8, any::<Option<u8>>()).prop_map(|(k, n, v)| Step::Commit(k, n, v)),
        2 => (keyspace(), 0..12u8, any::<Option<u8>>()).prop_map(|(k, n, v)| Step::Bulk(k, n, v)),
        2 => keyspace().prop_map(Step::Clear),
        2 => Just(Step::Rotate),
        2 => Just(Step::Move),
        2 => Just(Step::Remember),
        1 => Just(Step::Reopen),
        1 => Just(Step::Kill),
        2 => keyspace().prop_map(Step::Hurt),
    ];
    prop::collection::vec(step, 0..30)
}

/// What a keyspace must show.
#[derive(Clone, Default)]
struct Expected {
    entries: Model,
    /// Keys acknowledged since its root was damaged; nothing else can be read.
    since: Option<BTreeSet<Vec<u8>>>,
}

impl Expected {
    fn change(&mut self, key: u8, value: Option<u8>) {
        change(&mut self.entries, &[(key, value)]);
        self.since.iter_mut().for_each(|since| since.extend([vec![b'k', key]]));
    }

    fn assert_shown(&self, snapshot: &Arc<dyn Snapshot>, keyspace: KeyspaceId) {
        let reader = snapshot.reader().unwrap();
        match &self.since {
            None => {
                reader.verify(keyspace, &mut |_| Ok(())).unwrap();
                let shown: Model = testing::all(snapshot, keyspace).into_iter().collect();
                assert_eq!(shown, self.entries);
                assert_eq!(reader.count(keyspace).unwrap(), Some(self.entries.len() as u64));
            }
            Some(since) => {
                for key in since {
                    assert_eq!(reader.get(keyspace, key).unwrap(), self.entries.get(key).map(Vec::as_slice));
                }
                assert!(reader.verify(keyspace, &mut |_| Ok(())).is_err());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_damaged_nothing_that_was_acknowledged_is_lost(steps in some_steps()) {
        let mut place = Place::new();
        let mut store = Some(place.relaxed());
        let mut expected: BTreeMap<KeyspaceId, Expected> = BTreeMap::new();
        for keyspace in [A, B] {
            put_into_tree(store.as_ref().unwrap(), keyspace, "k\0", [0]);
            expected.entry(keyspace).or_default().change(0, Some(0));
        }
        let mut remembered: Vec<(Arc<dyn Snapshot>, BTreeMap<KeyspaceId, Expected>)> = Vec::new();
        for step in steps {
            let open = store.as_ref().unwrap();
            match step {
                Step::Commit(keyspace, key, value) => {
                    let written = open.commit(batch(|b| match value {
                        Some(value) => b.put(keyspace, vec![b'k', key], vec![value]),
                        None => b.delete(keyspace, vec![b'k', key]),
                    }));
                    let of = expected.get_mut(&keyspace).unwrap();
                    match written {
                        Ok(()) => of.change(key, value),
                        Err(e) => prop_assert!(e.kind() == Kind::Corrupt && of.since.is_some(), "{e}"),
                    }
                }
                Step::Bulk(keyspace, key, value) => {
                    let mut bulk = open.bulk().unwrap();
                    let written = match value {
                        Some(value) => bulk.put(keyspace, &[b'k', key], &[value]),
                        None => bulk.delete(keyspace, &[b'k', key]),
                    };
                    let of = expected.get_mut(&keyspace).unwrap();
                    match written {
                        Ok(()) => {
                            bulk.commit().unwrap();
                            of.change(key, value);
                        }
                        Err(e) => prop_assert!(e.kind() == Kind::Corrupt && of.since.is_some(), "{e}"),
                    }
                }
                Step::Clear(keyspace) => {
                    open.commit(batch(|b| b.clear(keyspace))).unwrap();
                    expected.insert(keyspace, Expected::default());
                }
                Step::Rotate => open.shared.seal(&mut open.shared.writer.lock().log).unwrap(),
                Step::Move => open.shared.move_sealed().unwrap(),
                Step::Remember => remembered.push((open.snapshot().unwrap(), expected.clone())),
                Step::Reopen => {
                    remembered.clear();
                    drop(store.take());
                    store = Some(place.relaxed());
                }
                Step::Kill => {
                    remembered.clear();
                    let left = killed(&place, open);
                    drop(store.take());
                    place = left;
                    store = Some(place.relaxed());
                }
                Step::Hurt(keyspace) => {
                    remembered.clear();
                    drop(store.take());
                    let of = expected.get_mut(&keyspace).unwrap();
                    // Changes kept beside it are not on its pages.
                    if of.since.is_none() && !of.entries.is_empty() {
                        hurt(&place, keyspace, None);
                        of.since = Some(BTreeSet::new());
                    }
                    store = Some(place.relaxed());
                }
            }
            let now = store.as_ref().unwrap().snapshot().unwrap();
            for (snapshot, expected) in remembered.iter().map(|(s, e)| (s, e)).chain([(&now, &expected)]) {
                expected.iter().for_each(|(keyspace, expected)| expected.assert_shown(snapshot, *keyspace));
            }
        }
    }
}
