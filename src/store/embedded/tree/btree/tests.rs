//! Trees that LMDB wrote, read by our code: intact, and with a flipped bit.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Bound;

use proptest::prelude::*;

use super::*;
use crate::error::Kind;
use crate::key::{End, KeyRange, Rowkey};
use crate::store::embedded::tree::map::Map;
use crate::store::embedded::tree::meta::{META_BYTES, Meta};
use crate::store::embedded::tree::view::{TreeCursor, keyspaces};
use crate::store::{Cursor, Durability, EmbeddedStore, Store};

const A: KeyspaceId = KeyspaceId(1);
const B: KeyspaceId = KeyspaceId(2);

type Model = BTreeMap<KeyspaceId, BTreeMap<Vec<u8>, Vec<u8>>>;

/// The data file of a database, and the entries in it.
struct Written {
    directory: tempfile::TempDir,
    model: Model,
}

/// Keyspace, key, and the length of its new value; `None`: the key is deleted.
type Step = (KeyspaceId, Vec<u8>, Option<usize>);

impl Written {
    fn new(steps: &[Step]) -> Written {
        let directory = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(directory.path(), Durability::Relaxed).unwrap();
        let mut model = Model::new();
        for some in steps.chunks(200) {
            let mut bulk = store.bulk().unwrap();
            for (n, (keyspace, key, value)) in some.iter().enumerate() {
                let entries = model.entry(*keyspace).or_default();
                match value {
                    Some(len) => {
                        let value = vec![n as u8; *len];
                        bulk.put(*keyspace, key, &value).unwrap();
                        entries.insert(key.clone(), value);
                    }
                    None => {
                        bulk.delete(*keyspace, key).unwrap();
                        entries.remove(key);
                    }
                }
            }
            bulk.commit().unwrap();
        }
        Written { directory, model }
    }

    fn file(&self) -> File {
        File::options().read(true).write(true).open(self.directory.path().join("data.mdb")).unwrap()
    }

    fn map(&self) -> Result<Map> {
        Map::new(&self.file(), 1 << 30).map_err(|e| Error::corrupt(e.to_string()))
    }

    /// The trees in the file.
    fn trees<'m>(&self, map: &'m Map) -> Result<BTreeMap<KeyspaceId, Btree<'m>>> {
        let mut file = self.file();
        let mut metas = Vec::new();
        for page in 0..2 {
            let mut meta = [0; META_BYTES];
            file.seek(SeekFrom::Start(page * 4096)).unwrap();
            file.read_exact(&mut meta).unwrap();
            metas.push(Meta::parse(&meta).map_err(Error::corrupt)?);
        }
        let newest = metas.into_iter().max_by_key(|meta| meta.txn).unwrap();
        let pages = map.pages(file.metadata().unwrap().len(), newest.last_page);
        let roots = keyspaces(pages, newest.keyspaces)?;
        // As long as the test.
        let last_leaves: Option<&LastLeaves> = Some(Box::leak(Box::default()));
        let tree = |(keyspace, root)| (keyspace, Btree { pages, keyspace, root, last_leaves });
        Ok(roots.into_iter().map(tree).collect())
    }
}

/// Reads a tree in every way. Each answer must be right, or say that the tree is damaged.
fn read(tree: Btree<'_>, model: &BTreeMap<Vec<u8>, Vec<u8>>, damages: &mut u32) -> Result<(), String> {
    let mut right = |outcome: Result<bool>, what: &dyn Fn() -> String| match outcome {
        Ok(true) => Ok(()),
        Ok(false) => Err(what()),
        Err(e) if e.kind() == Kind::Corrupt => {
            *damages += 1;
            Ok(())
        }
        Err(e) => Err(e.to_string()),
    };
    for (key, value) in model {
        right(tree.get(key).map(|found| found == Some(value)), &|| format!("GET {}", hex(key)))?;
        let next = [key, &b"\0"[..]].concat();
        let is_there = model.contains_key(&next);
        right(tree.get(&next).map(|found| found.is_some() == is_there), &|| format!("no {}", hex(&next)))?;
    }
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    for some in keys.chunks(50) {
        let next: Vec<Vec<u8>> = some.iter().map(|key| [&key[..], b"\0"].concat()).collect();
        let behind: Vec<Vec<u8>> = next.iter().map(|key| [&key[..], b"\0"].concat()).collect();
        let some = some.iter().map(|key| &key[..]);
        let (next, behind) = (next.iter().map(|key| &key[..]), behind.iter().map(|key| &key[..]));
        let mut in_order: Vec<&[u8]> = some.clone().chain(next.clone()).chain(behind).collect();
        in_order.sort();
        for asked in [some.chain(next).collect(), in_order] {
            let expected: Vec<_> = asked.iter().map(|key| model.get(*key).map(|value| &value[..])).collect();
            right(tree.get_many(&asked).map(|found| found == expected), &|| {
                format!("GETs from {}", hex(asked[0]))
            })?;
        }
    }
    // Far from each other, so that few share a leaf, and with keys between them that are not there.
    for step in [7, 17] {
        let beside =
            |(n, key): (usize, &&Vec<u8>)| if n % 3 == 2 { [key, &b"\0"[..]].concat() } else { key.to_vec() };
        let sparse: Vec<Vec<u8>> = keys.iter().step_by(step).enumerate().map(beside).collect();
        let asked: Vec<&[u8]> = sparse.iter().map(|key| &key[..]).collect();
        let expected: Vec<_> = asked.iter().map(|key| model.get(*key).map(|value| &value[..])).collect();
        right(tree.get_many(&asked).map(|found| found == expected), &|| format!("each {step}th key"))?;
    }
    let ends = |at: usize| keys.get(at).map_or(End::Open, |key| End::Before(Rowkey::from(&key[..])));
    let mut ranges = vec![KeyRange::all()];
    for at in (0..keys.len()).step_by(17) {
        let start = Rowkey::from(&keys[at][..]);
        ranges.push(KeyRange { start: start.clone(), end: ends(at + 2) });
        ranges.push(KeyRange { start: start.successor(), end: ends(at + 40) });
    }
    let mut moving = [None, None];
    for range in ranges {
        // An estimate does not detect damage; it may be wrong, but must not crash.
        if !range.is_empty() {
            let _ = tree.estimate(&range);
        }
        for (direction, moving) in [Direction::Forward, Direction::Reverse].into_iter().zip(&mut moving) {
            let end = match &range.end {
                End::Before(end) => Bound::Excluded(end.to_vec()),
                End::Open => Bound::Unbounded,
            };
            let mut expected: Vec<_> = match range.is_empty() {
                true => Vec::new(),
                false => model.range((Bound::Included(range.start.to_vec()), end)).collect(),
            };
            if direction == Direction::Reverse {
                expected.reverse();
            }
            let new = || TreeCursor::new(tree, &range, direction);
            if !range.is_empty() {
                right(new().and_then(|mut cursor| walked(&mut cursor, &expected)), &|| {
                    format!("{range:?} {direction:?}")
                })?;
            }
            // The first of its entries, by a cursor that comes from elsewhere.
            let first = &expected[..expected.len().min(25)];
            let mut moved = |range: &KeyRange| {
                let mut cursor = match moving.take() {
                    Some(cursor) => cursor,
                    None => TreeCursor::new(tree, &KeyRange::all(), direction)?,
                };
                if !cursor.move_to(range)? {
                    cursor = TreeCursor::new(tree, range, direction)?;
                }
                let is_right =
                    begins(&mut cursor, first)? && (first.len() < expected.len() || cursor.next()?.is_none());
                *moving = Some(cursor);
                Ok(is_right)
            };
            right(moved(&range), &|| format!("moved to {range:?} {direction:?}"))?;
        }
    }
    Ok(())
}

/// Whether a walk gives the entries of a model, as far as it gets if it meets damage.
fn walked(cursor: &mut TreeCursor<'_>, expected: &[(&Vec<u8>, &Vec<u8>)]) -> Result<bool> {
    Ok(begins(cursor, expected)? && cursor.next()?.is_none())
}

/// Whether the first entries of a walk are those.
fn begins(cursor: &mut TreeCursor<'_>, expected: &[(&Vec<u8>, &Vec<u8>)]) -> Result<bool> {
    for (key, value) in expected {
        match cursor.next()? {
            Some((k, v)) if k == &key[..] && v == &value[..] => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(prop::sample::select(vec![0u8, 7, 0xFF]), 1..6),
        1 => (0..20usize, any::<u8>()).prop_map(|(len, byte)| vec![byte; 1000 + 49 * len]),
    ]
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let len = prop_oneof![8 => 0..60usize, 2 => 200..600usize, 1 => 2000..9000usize];
    let step = (prop::sample::select(vec![A, B]), key(), prop::option::weighted(0.7, len));
    prop::collection::vec(step, 1..most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn what_lmdb_wrote_is_read(steps in steps(600)) {
        let written = Written::new(&steps);
        let map = written.map().unwrap();
        let trees = written.trees(&map).unwrap();
        for (keyspace, model) in &written.model {
            if !trees.contains_key(keyspace) {
                prop_assert!(model.is_empty(), "nothing was ever put there");
                continue;
            }
            let mut damages = 0;
            read(trees[keyspace], model, &mut damages).unwrap();
            prop_assert_eq!(damages, 0);
            prop_assert_eq!(trees[keyspace].root.entries, model.len() as u64);
            prop_assert_eq!(trees[keyspace].check_pages().unwrap().entries, model.len() as u64);
        }
    }
}

/// Orders and two index tables of them: trees of three levels, with some entries deleted again.
fn market() -> Vec<Step> {
    let mut steps = Vec::new();
    for n in 0..3000u32 {
        let order = format!("{:08}", n.wrapping_mul(2654435761) % 100_000_000);
        steps.push((A, order.clone().into_bytes(), Some(40 + n as usize % 50)));
        steps.push((B, format!("{:04}{order}", n % 97).into_bytes(), Some(n as usize % 3 * 4)));
    }
    let gone: Vec<Step> =
        steps.iter().step_by(7).map(|(keyspace, key, _)| (*keyspace, key.clone(), None)).collect();
    steps.extend(gone);
    steps
}

#[test]
fn few_entries_are_estimated_exactly_and_many_nearly() {
    let written = Written::new(&market());
    let map = written.map().unwrap();
    let trees = written.trees(&map).unwrap();
    for (keyspace, model) in &written.model {
        let (tree, keys) = (trees[keyspace], model.keys().collect::<Vec<_>>());
        assert!(tree.root.depth > 1);
        assert_eq!(tree.estimate(&KeyRange::all()).unwrap(), keys.len() as u64);
        let (mut few, mut exact) = (0, 0);
        for start in (0..keys.len()).step_by(7) {
            for entries in [0, 1, 10, 100, 1000] {
                let Some(end) = keys.get(start + entries) else { continue };
                let range = KeyRange::new(&keys[start][..], &end[..]);
                let estimated = tree.estimate(&range).unwrap() as usize;
                assert!(estimated.abs_diff(entries) <= entries / 3, "{estimated} for {entries}");
                few += usize::from(entries <= 10);
                exact += usize::from(entries <= 10 && estimated == entries);
            }
        }
        assert!(exact * 100 > few * 99, "{exact} of {few}");
    }
}

#[test]
fn a_flipped_bit_is_seen_or_does_no_harm() {
    let written = Written::new(&market());
    let path = written.directory.path().join("data.mdb");
    let whole = fs::read(&path).unwrap();
    let mut file = written.file();
    let map = written.map().unwrap();
    let rounds = std::env::var("DAMAGE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(100u64);
    let mut random = 1u64;
    let (mut harmless, mut seen, mut wrong) = (0, 0, Vec::new());
    for _ in 0..rounds {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Half of the flips hit the start of a page, where its header and offsets are.
        let page = (random >> 33) as usize % (whole.len() / 4096);
        let bytes = if random >> 32 & 1 == 0 { 4096 } else { 120 };
        let bit = page * 4096 * 8 + (random >> 16) as usize % (bytes * 8);
        let mut set = |byte: u8| {
            file.seek(SeekFrom::Start(bit as u64 / 8)).unwrap();
            file.write_all(&[byte]).unwrap();
        };
        set(whole[bit / 8] ^ (1 << (bit % 8)));
        let mut damages = 0;
        let outcome = match written.trees(&map) {
            Err(e) if e.kind() == Kind::Corrupt => {
                damages += 1;
                Ok(())
            }
            Err(e) => Err(e.to_string()),
            Ok(trees) => written.model.iter().try_for_each(|(keyspace, model)| match trees.get(keyspace) {
                Some(tree) => read(*tree, model, &mut damages),
                None => Err(format!("keyspace {} is gone", keyspace.0)),
            }),
        };
        set(whole[bit / 8]);
        match outcome {
            Err(what) => {
                wrong.push(format!("page {} byte {} bit {}: {what}", bit / 8 / 4096, bit / 8 % 4096, bit % 8))
            }
            Ok(()) if damages > 0 => seen += 1,
            Ok(()) => harmless += 1,
        }
    }
    println!("{rounds} flipped bits: {harmless} harmless, {seen} seen, {} wrong", wrong.len());
    assert_eq!(wrong, Vec::<String>::new());
    assert!(seen > 0 && harmless > 0);
}
