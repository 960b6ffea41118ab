//! What is fuzzed: each function takes any bytes, and panics if what must hold does not.
//!
//! `fuzz_targets/` hands them to libFuzzer; `tests/it/fuzz.rs` runs them over what was found and over chance.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use rowkeydb::catalog::Catalog;
use rowkeydb::key::{ColumnId, hex};
use rowkeydb::row::{PackedRow, unpack};
use rowkeydb::schema::TableDef;
use rowkeydb::sql::{self, Splitter, Statement};
use rowkeydb::store::{Direction, FailingStore, KeyspaceId, MemoryStore, Snapshot, Store, WriteBatch};
use rowkeydb::value::{ColumnType, Value};
use rowkeydb::{Database, Error, Kind, Result, Session};

/// Bytes as a row of choices; when they are used up, always the first.
struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, n: usize) -> usize {
        usize::from(self.byte()) % n
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn is_spent(&self) -> bool {
        self.0.is_empty()
    }
}

/// A statement of this engine's own making must not be at fault.
fn allow<T>(result: Result<T>, sql: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(e) if e.kind() == Kind::Internal => panic!("{sql}\n{e}"),
        Err(_) => None,
    }
}

/// Any text: it is refused, or prints as what means the same.
pub fn sql_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut splitter = Splitter::default();
    splitter.push(text);
    while splitter.next_statement().is_some() {}
    let _ = sql::lift(text);
    let Some(statement) = allow(sql::parse(text), text) else { return };
    // Hints print with their places, but for those of a query alone.
    let print = |statement: &Statement| match statement {
        Statement::Query(query) => sql::text_of(query),
        other => other.to_string(),
    };
    let printed = print(&statement);
    if !matches!(statement, Statement::Query(_)) && printed.contains("/*") {
        return;
    }
    match sql::parse(&printed) {
        Ok(again) => assert_eq!(print(&again), printed, "{text}"),
        Err(e) => panic!("{text}\nprints as\n{printed}\n{e}"),
    }
}

/// Tables of all kinds of key parts and column types.
const TABLES: &[&str] = &[
    "CREATE TABLE t0 (a BIGINT, b TEXT, c BYTEA, PRIMARY KEY (a, b, c))",
    "CREATE TABLE t1 (a INT, b TEXT, PRIMARY KEY (reverse(lpad(a, 9)), '_', b))",
    "CREATE TABLE t2 (a TEXT, b DOUBLE, c BOOLEAN, d UUID, PRIMARY KEY (a DESC, b, c DESC, d))",
    "CREATE TABLE t3 (a BIGINT, b TIMESTAMP, PRIMARY KEY (left(md5(a), 4), a % 16, b DESC, a))",
    "CREATE TABLE t4 (a DECIMAL(9, 2), b DATE, c TEXT, PRIMARY KEY (a, b, rpad(c, 5, ' ')))",
    "CREATE TABLE t5 (a TEXT, b BIGINT, PRIMARY KEY (md5(a), lpad(999999 - b, 6)))",
    "CREATE TABLE t6 (a TEXT, b TIMESTAMPTZ, c REAL, PRIMARY KEY (reverse(a), '_', to_char(b, 'YYYYMMDDHH24MISS'), c))",
    "CREATE TABLE t7 (a BYTEA, b SMALLINT, PRIMARY KEY (a, reverse_bytes(b)))",
];

fn definitions() -> Vec<Arc<TableDef>> {
    let store = Arc::new(MemoryStore::new());
    let db = Database::over_store(Box::new(FailingStore::new(Arc::clone(&store)).0)).unwrap();
    for sql in TABLES {
        db.execute(sql).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let catalog = Catalog::load(&*snapshot.reader().unwrap()).unwrap();
    catalog.tables().cloned().collect()
}

thread_local! {
    static DEFINITIONS: Vec<Arc<TableDef>> = definitions();
}

/// Any bytes as a key, which may decode to a row; any values as a row, whose key must decode to them and to no
/// others.
pub fn key_codec(data: &[u8]) {
    DEFINITIONS.with(|tables| {
        let mut choices = Choices(data);
        let table = &tables[choices.below(tables.len())];
        let encode = |row: &[Value]| {
            let mut key = Vec::new();
            table.key.encode(row, &|id| table.column_name(id), 0, &mut key).is_ok().then_some(key)
        };
        let mut row = vec![Value::Null; table.columns.len()];
        let given = table.key.decode(choices.0, &mut |id, value| row[usize::from(id.0)] = value.to_value());
        // Bytes that no row has may decode to values that no row holds; those of a key that is in use mean the same.
        if given.is_ok_and(|len| len == choices.0.len()) && table.key.undoable().len() == row.len() {
            table.key.show(choices.0);
            if let Some(again) = encode(&row) {
                let mut other = vec![Value::Null; row.len()];
                table
                    .key
                    .decode(&again, &mut |id, value| other[usize::from(id.0)] = value.to_value())
                    .unwrap();
                assert_eq!(format!("{other:?}"), format!("{row:?}"), "{}", table.name);
            }
        }
        let mut rows = Vec::new();
        for _ in 0..2 {
            let row: Vec<Value> = table.columns.iter().map(|column| value(&mut choices, column.ty)).collect();
            let Some(key) = encode(&row) else { continue };
            let mut back = row.clone();
            let len = table.key.decode(&key, &mut |id, value| back[usize::from(id.0)] = value.to_value());
            assert_eq!(len.ok(), Some(key.len()), "{}: {row:?}", table.name);
            assert_eq!(format!("{back:?}"), format!("{row:?}"), "{}", table.name);
            table.key.show(&key);
            rows.push((key, format!("{row:?}")));
        }
        if let [(a, x), (b, y)] = &rows[..] {
            assert_eq!(a == b, x == y, "{}: keys {} and {} of {x} and {y}", table.name, hex(a), hex(b));
        }
    });
}

/// Some value of a type, one in a form that the engine makes.
fn value(choices: &mut Choices<'_>, ty: ColumnType) -> Value {
    let number = |choices: &mut Choices<'_>| {
        let len = choices.below(9);
        let mut bytes = [0; 8];
        let given = choices.bytes(len);
        bytes[..given.len()].copy_from_slice(given);
        i64::from_le_bytes(bytes)
    };
    let text = |choices: &mut Choices<'_>| {
        let len = choices.below(12);
        String::from_utf8_lossy(choices.bytes(len)).into_owned()
    };
    let raw = match ty {
        ColumnType::Varchar => Value::Text(text(choices)),
        ColumnType::Varbinary => {
            let len = choices.below(12);
            Value::Bytes(choices.bytes(len).to_vec())
        }
        ColumnType::Uuid => {
            let mut bytes = [0; 16];
            let given = choices.bytes(16);
            bytes[..given.len()].copy_from_slice(given);
            Value::Uuid(bytes)
        }
        ColumnType::Boolean => Value::Boolean(choices.below(2) == 1),
        ColumnType::Double => Value::Double(f64::from_bits(number(choices) as u64)),
        ColumnType::Real => Value::Double(f64::from(f32::from_bits(number(choices) as u32))),
        ColumnType::Date => Value::Date((number(choices) % 2_000_000) as i32),
        // A time finer than its pattern is refused; whole seconds suit all.
        ColumnType::Timestamp => Value::Timestamp(number(choices) % 4_000_000_000 * 1_000_000),
        ColumnType::TimestampTz => Value::TimestampTz(number(choices) % 4_000_000_000 * 1_000_000),
        _ => Value::Int(number(choices)),
    };
    raw.cast(ty).unwrap_or(Value::Null)
}

/// Any bytes as the packed columns of a row, of every type.
pub fn packed_row(data: &[u8]) {
    let Some((first, packed)) = data.split_first() else { return };
    let types = [
        ColumnType::Boolean,
        ColumnType::SmallInt,
        ColumnType::Integer,
        ColumnType::BigInt,
        ColumnType::Real,
        ColumnType::Double,
        ColumnType::Decimal { precision: 10, scale: 2 },
        ColumnType::Varchar,
        ColumnType::Varbinary,
        ColumnType::Date,
        ColumnType::Timestamp,
        ColumnType::TimestampTz,
        ColumnType::Uuid,
        ColumnType::Json,
    ];
    let ty = types[usize::from(*first) % types.len()];
    let _ = unpack(ColumnId(0), ty, packed).map(|value| value.to_value().to_string());
    if let Ok(opened) = rowkeydb::row::open(packed)
        && let Ok(row) = PackedRow::new(&opened)
    {
        row.stamp();
        for column in row.columns() {
            for ty in types {
                let _ = row.get(column, ty).map(|value| value.map(|value| value.to_value().to_string()));
            }
        }
        let _ = row.get(ColumnId(u16::MAX), ty);
    }
}

const STORED: &str = "
    CREATE TABLE t (a INT, b INT, c TEXT, d DECIMAL(10, 2), FAMILY f (c) WITH (compression = 'lz4'), PRIMARY KEY (reverse(lpad(a, 4))));
    CREATE INDEX by_b ON t (lpad(b, 3), a DESC) INCLUDE (d);
    CREATE UNIQUE INDEX by_c ON t (c) WHERE b > 2;
    INSERT INTO t SELECT value, value % 7, repeat('c' || value, 20), value * 1.5 FROM generate_series(1, 30)";

/// Entries changed where no checksum sees it: every statement answers or says what is wrong, and CHECK finds
/// whatever makes two ways to the same rows differ.
pub fn stored_bytes(data: &[u8]) {
    let mut choices = Choices(data);
    let store = Arc::new(MemoryStore::new());
    let open = || Database::over_store(Box::new(FailingStore::new(Arc::clone(&store)).0));
    {
        let db = open().unwrap();
        for sql in STORED.split(';') {
            db.execute(sql).unwrap();
        }
    }
    while !choices.is_spent() {
        let keyspace = KeyspaceId(choices.below(7) as u32);
        let mut entries = entries(&*store.snapshot().unwrap(), keyspace);
        if entries.is_empty() {
            continue;
        }
        let (key, mut value) = entries.swap_remove(choices.below(entries.len()));
        let mut batch = WriteBatch::default();
        match choices.below(4) {
            0 if !value.is_empty() => {
                let at = choices.below(value.len());
                value[at] ^= choices.byte().max(1);
                batch.put(keyspace, &key[..], value);
            }
            1 => {
                let len = choices.below(8);
                batch.put(keyspace, &key[..], choices.bytes(len).to_vec());
            }
            2 => batch.delete(keyspace, &key[..]),
            _ => {
                let mut key = key.clone();
                let at = choices.below(key.len());
                key[at] ^= choices.byte().max(1);
                batch.put(keyspace, &key[..], value);
            }
        }
        store.commit(batch).unwrap();
    }
    let Some(db) = allow(open(), "open") else { return };
    let rows = |sql: &str| -> Option<BTreeSet<String>> {
        let rows = allow(db.query(sql), sql)?.collect::<Result<Vec<_>>>();
        let text = |row: rowkeydb::Row| format!("{:?}", row.values().unwrap());
        Some(allow(rows, sql)?.into_iter().map(text).collect())
    };
    let found = rows("CHECK DATABASE");
    let ways = [
        "SELECT /*+ FULL */ a, b, d FROM t WHERE b >= 0",
        "SELECT /*+ INDEX(by_b) */ a, b, d FROM t WHERE b >= 0",
    ];
    if let ([Some(by_table), Some(by_index)], Some(found)) = (ways.map(rows), &found) {
        assert!(by_table == by_index || found.len() > 1, "{by_table:?}\n{by_index:?}");
    }
    for sql in [
        "SELECT c FROM t WHERE c LIKE 'c1%' AND b > 2",
        "SELECT b, count(*), sum(d) FROM t GROUP BY b",
        "SHOW TABLES",
        "UPDATE t SET d = d + 1, b = b + 1 WHERE a < 20",
        "DELETE FROM t WHERE b = 3",
        "REPAIR INDEX by_b",
    ] {
        rows(sql);
    }
}

fn entries(snapshot: &dyn Snapshot, keyspace: KeyspaceId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let reader = snapshot.reader().unwrap();
    let all = rowkeydb::key::KeyRange::all();
    let mut cursor = reader.cursor(keyspace, &all, Direction::Forward).unwrap();
    let mut out = Vec::new();
    while let Some((key, value)) = cursor.next().unwrap() {
        out.push((key.to_vec(), value.to_vec()));
    }
    out
}

/// Any file, as CSV and as JSON lines: what it loads is written out and loads as the same rows.
pub fn files(data: &[u8]) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("in"), data).unwrap();
    let options = ["FORMAT csv, HEADER false", "FORMAT csv", "FORMAT jsonl"];
    for (n, format) in options.iter().enumerate() {
        let db = Database::in_memory().unwrap();
        let columns = "(n BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, a INT, b TEXT, c DECIMAL(9, 2), d TIMESTAMP)";
        for table in ["t", "u"] {
            db.execute(&format!("CREATE TABLE {table} {columns}")).unwrap();
        }
        let copy = format!("COPY t (a, b, c, d) FROM '{}' WITH ({format})", path("in"));
        if allow(db.execute(&copy), &copy).is_none() {
            continue;
        }
        let out = path(&format!("out{n}"));
        for sql in [
            format!("COPY (SELECT a, b, c, d FROM t ORDER BY n) TO '{out}' WITH ({format})"),
            format!("COPY u (a, b, c, d) FROM '{out}' WITH ({format})"),
        ] {
            db.execute(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
        }
        let rows = |table: &str| -> Vec<String> {
            let rows = db.query(&format!("SELECT a, b, c, d FROM {table} ORDER BY n")).unwrap();
            rows.map(|row| format!("{:?}", row.unwrap().values().unwrap())).collect()
        };
        assert_eq!(rows("t"), rows("u"), "{format}");
    }
}

/// Writes, transactions and questions: here with index tables the same as in SQLite.
pub fn statements(data: &[u8]) {
    let mut choices = Choices(data);
    let sqlite = rusqlite::Connection::open_in_memory().unwrap();
    sqlite.execute_batch("PRAGMA case_sensitive_like = ON").unwrap();
    let db = Database::in_memory().unwrap();
    let ours = RefCell::new(db.session());
    let create = "CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b TEXT)";
    sqlite.execute_batch(create).unwrap();
    let keys = ["id", "reverse(lpad(id, 3))", "id % 4, id", "id DESC", "left(md5(id), 2), id"];
    let key = choices.pick(&keys);
    db.execute(&format!("CREATE TABLE t (id BIGINT, a BIGINT, b TEXT, PRIMARY KEY ({key}))")).unwrap();
    for index in ["i0 ON t (a, id)", "i1 ON t (b DESC) INCLUDE (a)", "i2 ON t (b) WHERE a IS NOT NULL"] {
        if choices.below(2) == 1 {
            db.execute(&format!("CREATE INDEX {index}")).unwrap();
        }
    }
    let mut history = Vec::new();
    while !choices.is_spent() && history.len() < 40 {
        let sql = statement(&mut choices);
        // To SQLite, a savepoint alone is a transaction.
        if sql.starts_with("SAVEPOINT") && !ours.borrow().in_transaction() {
            continue;
        }
        history.push(sql.clone());
        if sql.starts_with("SELECT") {
            assert_eq!(answer(&ours, &sql), expected(&sqlite, &sql), "{}", history.join(";\n"));
        } else {
            let theirs = sqlite.execute(&sql, []);
            let affected = ours.borrow_mut().execute(&sql, &[]).map(|outcome| outcome.affected);
            assert_eq!(theirs.is_ok(), affected.is_ok(), "{theirs:?} {affected:?} {}", history.join(";\n"));
        }
    }
    if ours.borrow().in_transaction() {
        ours.borrow_mut().execute("COMMIT", &[]).unwrap();
        sqlite.execute_batch("COMMIT").unwrap();
    }
    let all = "SELECT id, a, b FROM t";
    assert_eq!(answer(&ours, all), expected(&sqlite, all), "{}", history.join(";\n"));
    assert_eq!(db.query("CHECK DATABASE").unwrap().count(), 1, "{}", history.join(";\n"));
}

fn statement(choices: &mut Choices<'_>) -> String {
    let id = choices.below(40);
    match choices.below(16) {
        0..4 => format!("INSERT INTO t VALUES ({id}, {}, {})", number(choices), text(choices)),
        4 => format!("INSERT INTO t VALUES ({id}, 1, 'x'), ({}, 2, NULL)", id + 1 + choices.below(3)),
        5 => format!("INSERT INTO t SELECT id + 40, a, b FROM t WHERE id < 99 AND {}", condition(choices, 2)),
        6 => format!("UPDATE t SET a = {} WHERE {}", number(choices), condition(choices, 2)),
        7 => format!("UPDATE t SET b = {}, a = a + 1 WHERE id = {id}", text(choices)),
        8 => format!("DELETE FROM t WHERE {}", condition(choices, 2)),
        9 => choices.pick(&["BEGIN", "COMMIT", "ROLLBACK"]).to_owned(),
        10 => choices.pick(&["SAVEPOINT s", "ROLLBACK TO s", "RELEASE s"]).to_owned(),
        11 => format!("SELECT count(*), sum(a), min(b), max(id) FROM t WHERE {}", condition(choices, 3)),
        12 => format!("SELECT a, count(*) FROM t WHERE {} GROUP BY a", condition(choices, 2)),
        13 => format!("SELECT DISTINCT b FROM t WHERE {}", condition(choices, 2)),
        14 => format!("SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.id WHERE x.{}", simple(choices)),
        _ => {
            let order = choices.pick(&["id", "id DESC", "a, id", "b DESC, id"]);
            format!("SELECT id, a, b FROM t WHERE {} ORDER BY {order} LIMIT {}", condition(choices, 3), id)
        }
    }
}

fn condition(choices: &mut Choices<'_>, depth: usize) -> String {
    match choices.below(if depth == 0 { 1 } else { 4 }) {
        0 => simple(choices),
        1 => format!("({} AND {})", condition(choices, depth - 1), condition(choices, depth - 1)),
        2 => format!("({} OR {})", condition(choices, depth - 1), condition(choices, depth - 1)),
        _ => format!("NOT ({})", condition(choices, depth - 1)),
    }
}

fn simple(choices: &mut Choices<'_>) -> String {
    let comparison = choices.pick(&["=", "<", ">", "<=", ">=", "<>"]);
    let column = choices.pick(&["id", "a"]);
    match choices.below(8) {
        0 | 1 => format!("{column} {comparison} {}", number(choices)),
        2 => format!("b {comparison} {}", text(choices)),
        3 => format!("{column} IN ({}, {}, {})", number(choices), number(choices), number(choices)),
        4 => format!("{column} BETWEEN {} AND {}", number(choices), number(choices)),
        5 => format!("b LIKE {}", choices.pick(&["'x%'", "'%y'", "'_'", "'%'", "''"])),
        6 => choices.pick(&["a IS NULL", "b IS NULL", "b IS NOT NULL", "a IS NOT NULL"]).to_owned(),
        _ => format!("{column} {comparison} {} + 1", number(choices)),
    }
}

fn number(choices: &mut Choices<'_>) -> String {
    match choices.below(30) {
        29 => "NULL".to_owned(),
        28 => "-1".to_owned(),
        n => n.to_string(),
    }
}

fn text(choices: &mut Choices<'_>) -> &'static str {
    choices.pick(&["'x'", "''", "'xy'", "'y'", "NULL", "'X'", "'yé'", "'x%'"])
}

/// Rows as text, in the order of that text: what has an order of its own has a limit, which tells.
fn answer(session: &RefCell<Session>, sql: &str) -> Vec<String> {
    let rows = session.borrow_mut().query(sql, &[]).and_then(|rows| rows.collect::<Result<Vec<_>, Error>>());
    let rows = rows.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let cells = |row: &rowkeydb::Row| row.values().unwrap().iter().map(Value::to_string).collect::<Vec<_>>();
    let mut rows: Vec<String> = rows.iter().map(|row| cells(row).join("|")).collect();
    rows.sort();
    rows
}

fn expected(sqlite: &rusqlite::Connection, sql: &str) -> Vec<String> {
    use rusqlite::types::Value as Cell;
    let mut statement = sqlite.prepare(sql).unwrap();
    let columns = statement.column_count();
    let cell = |cell: Cell| match cell {
        Cell::Null => "NULL".to_owned(),
        Cell::Integer(n) => n.to_string(),
        Cell::Text(text) => text,
        other => format!("{other:?}"),
    };
    let rows = statement.query_map([], |row| {
        (0..columns).map(|n| row.get::<_, Cell>(n).map(cell)).collect::<rusqlite::Result<Vec<_>>>()
    });
    let mut rows: Vec<String> = rows.unwrap().map(|row| row.unwrap().join("|")).collect();
    rows.sort();
    rows
}
