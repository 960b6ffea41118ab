//! Gathering with several threads.

use super::*;
use crate::engine::Database;
use crate::store::{MemoryStore, Store};

/// Whatever the limits, several threads gather exactly the entries of the table.
#[test]
fn all_rows_are_gathered_once() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id BIGINT, v BIGINT, PRIMARY KEY (reverse(lpad(id, 8))))").unwrap();
    db.execute("CREATE INDEX by_v ON t (v)").unwrap();
    db.table("t").unwrap().load((0..5000).map(|id: i64| vec![id.into(), (id % 977).into()])).unwrap();
    let (catalog, snapshot) = db.moment();
    let table = catalog.table("t").unwrap();
    let index = &table.indexes[0];
    let reader = snapshot.reader().unwrap();
    let mut expected = Vec::new();
    let mut cursor = reader.cursor(index.keyspace, &KeyRange::all(), Direction::Forward).unwrap();
    while let Some((key, _)) = cursor.next().unwrap() {
        expected.push(key.to_vec());
    }
    assert_eq!(expected.len(), 5000);
    let most = |rows, bytes| Most { rows, bytes };
    let several = [4 << 10, 20_000, 100_000, 400_000, usize::MAX].map(|bytes| most(u64::MAX, bytes));
    for most in [most(700, usize::MAX)].into_iter().chain(several) {
        let (mut found, mut rows, mut range, mut times) = (Vec::new(), 0, KeyRange::all(), 0);
        loop {
            let gathered =
                gather_entries((&table, index), &range, most, &*snapshot, &mut |_| Ok(())).unwrap();
            rows += gathered.rows;
            times += 1;
            for run in gathered.runs.values() {
                assert!(run.iter().is_sorted());
                found.extend(run.iter().map(|(key, _)| key.to_vec()));
            }
            let Some(last) = gathered.last else { break };
            range = KeyRange::starting_at(last.successor());
        }
        found.sort();
        assert!(found == expected, "{} entries with {most:?}", found.len());
        assert_eq!(rows, 5000, "{most:?}");
        // An entry takes some 90 bytes, so small pieces are gathered whole until there is enough.
        let times_max = if most.bytes < 100_000 { 5000 } else { 500_000 / most.bytes as u64 + 2 };
        let times_max = times_max.max(5000 / most.rows + 1);
        assert!((1..=times_max).contains(&times), "{times} times with {most:?}");
        assert!(times > 1 || most.bytes >= 400_000, "{most:?}");
    }
    let all = most(u64::MAX, usize::MAX);
    let mut heard = Vec::new();
    let progress = &mut |rows| {
        heard.push(rows);
        Ok(())
    };
    gather_entries((&table, index), &KeyRange::all(), all, &*snapshot, progress).unwrap();
    assert!(heard.is_sorted() && heard.last() <= Some(&5000), "{heard:?}");
    // So few rows are read by the calling thread alone.
    let progress = &mut |rows| if rows < 100 { Ok(()) } else { Err(Error::internal("enough")) };
    let stopped =
        gather_entries((&table, index), &KeyRange::all(), most(700, usize::MAX), &*snapshot, progress);
    assert_eq!(stopped.err().unwrap().what(), "enough");
}

/// Each step of a build had as many of its own, so that an error could name thousands of rows.
#[test]
fn examples_of_duplicate_keys_are_few_however_many_steps_there_are() {
    let db = Database::in_memory().unwrap();
    db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)").unwrap();
    db.execute("INSERT INTO t SELECT value, value % 2 FROM generate_series(1, 100)").unwrap();
    db.execute("CREATE UNIQUE INDEX by_v ON t (v)").unwrap_err();
    let (catalog, snapshot) = db.moment();
    let table = catalog.table("t").unwrap();
    let (index, store) = (&table.indexes[0], MemoryStore::new());
    let mut writer = store.bulk().unwrap();
    let (mut examples, mut range, mut left_out) = (Vec::new(), KeyRange::all(), 0);
    let most = Most { rows: 20, bytes: usize::MAX };
    loop {
        let step = gather_entries((&table, index), &range, most, &*snapshot, &mut |_| Ok(())).unwrap();
        let (before, cancel) = (&mut RowsBefore::new(&*snapshot, 0), CancelHandle::default());
        left_out += step.write_unique((&table, index), before, &mut *writer, &mut examples, &cancel).unwrap();
        let Some(last) = step.last else { break };
        range = KeyRange::starting_at(last.successor());
    }
    assert_eq!((left_out, examples.len()), (98, EXAMPLES_MAX));
}
