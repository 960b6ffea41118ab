//! What is fuzzed: each function takes any bytes, and panics if what must hold does not.
//!
//! `fuzz_targets/` hands them to libFuzzer; `tests/it/fuzz.rs` runs them over what was found and over chance.

#[path = "disk.rs"]
pub mod disk;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use rowkeydb::catalog::Catalog;
use rowkeydb::key::{ColumnId, hex};
use rowkeydb::row::{ColumnBuilder, PackedRow, any_value_at, pack, unpack};
use rowkeydb::schema::TableDef;
use rowkeydb::sql::{self, Splitter, Statement};
use rowkeydb::store::{Direction, KeyspaceId, MemoryStore, Snapshot, Store, WriteBatch};
use rowkeydb::value::{ColumnType, Value};
use rowkeydb::{Database, Error, Kind, Result, Session};

pub use disk::database_files;

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

    fn wide(&mut self) -> usize {
        usize::from(self.byte()) << 8 | usize::from(self.byte())
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

/// Any script: a statement is refused, or prints as what means the same.
pub fn sql_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut splitter = Splitter::default();
    splitter.push(text);
    while let Some(statement) = splitter.next_statement() {
        printed(&statement.text);
    }
    if let Some(rest) = splitter.finish() {
        printed(&rest.text);
    }
    printed(text);
}

fn printed(text: &str) {
    let _ = sql::lift(text);
    let statement = match sql::parse(text) {
        Err(e) => {
            // It can be shown under its text.
            e.render(text);
            allow(Err::<(), _>(e), text);
            return;
        }
        Ok(statement) => statement,
    };
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
    let db = Database::over_store(Box::new(Arc::clone(&store))).unwrap();
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
        if given.is_ok_and(|len| len == choices.0.len()) && table.key.decodable().len() == row.len() {
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
        for column in row.columns() {
            for ty in types {
                let mut builder = ColumnBuilder::new(ty, 1);
                let appended = builder.append_packed(column, row.bytes(column).unwrap());
                let built = appended.and_then(|()| builder.finish());
                let Ok(value) = row.get(column, ty) else {
                    assert!(built.is_err(), "{ty} {packed:?}");
                    continue;
                };
                // A row and a column of rows say the same, and what is packed again comes back.
                let (value, shown) = (value.unwrap(), value.unwrap().to_value().to_string());
                assert_eq!(any_value_at(&built.unwrap(), 0).unwrap().to_string(), shown, "{ty}");
                let mut again = Vec::new();
                pack([(column, ty, value)], &mut again).unwrap();
                let again = PackedRow::new(&again).unwrap().get(column, ty).unwrap().unwrap();
                assert_eq!(again.to_value().to_string(), shown, "{ty}");
            }
        }
        let _ = row.get(ColumnId(u16::MAX), ty);
    }
}

const STORED: &str = "
    CREATE TABLE t (a INT, b INT, c TEXT, d DECIMAL(10, 2), FAMILY f (c) WITH (compression = 'lz4'), PRIMARY KEY (reverse(lpad(a, 4))));
    CREATE INDEX by_b ON t (lpad(b, 3), a DESC) INCLUDE (d);
    CREATE UNIQUE INDEX by_c ON t (c) WHERE b > 2;
    CREATE TABLE u (n BIGINT GENERATED BY DEFAULT AS IDENTITY, at TIMESTAMP DEFAULT '2024-01-01', j JSON, s TEXT, e DOUBLE CHECK (e > 0),
        PRIMARY KEY (n % 4, to_char(at, 'YYYY-MM-DD'), n)) SPLIT ON ('2');
    CREATE INDEX by_e ON u (upper(s), e);
    CREATE VIEW v AS SELECT a, e FROM t JOIN u ON a = n;
    INSERT INTO t SELECT value, value % 7, repeat('c' || value, 20), value * 1.5 FROM generate_series(1, 30);
    INSERT INTO u (j, s, e) SELECT '{\"k\":' || value || '}', 's' || value, value + 0.5 FROM generate_series(1, 12);
    ANALYZE";

/// More than these definitions take.
const KEYSPACES: u32 = 10;

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

fn stored() -> Vec<(KeyspaceId, Entry)> {
    let store = Arc::new(MemoryStore::new());
    let db = Database::over_store(Box::new(Arc::clone(&store))).unwrap();
    for sql in STORED.split(';') {
        db.execute(sql).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let all = |keyspace| entries(&*snapshot, keyspace).into_iter().map(move |entry| (keyspace, entry));
    (0..KEYSPACES).map(KeyspaceId).flat_map(all).collect()
}

thread_local! {
    static STORED_ENTRIES: Vec<(KeyspaceId, Entry)> = stored();
}

/// Numbers in the place of those in a definition.
const NUMBERS: &[&str] =
    &["0", "1", "2", "9", "-1", "255", "256", "65535", "65536", "4294967295", "1e9", "9223372036854775807"];

/// One entry as something may have made it.
fn damaged(choices: &mut Choices<'_>, (mut key, mut value): Entry, other: &Entry) -> Option<Entry> {
    let at = |choices: &mut Choices<'_>, len: usize| choices.wide() % len.max(1);
    match choices.below(9) {
        0 if !value.is_empty() => {
            let at = at(choices, value.len());
            value[at] ^= choices.byte().max(1);
        }
        1 => {
            let len = choices.below(40);
            value = choices.bytes(len).to_vec();
        }
        2 => return None,
        3 => value = other.1.clone(),
        4 => {
            let at = at(choices, value.len());
            value.truncate(at);
        }
        5 => {
            let (at, len) = (at(choices, value.len()), choices.below(8));
            value.splice(at..at, choices.bytes(len).iter().copied());
        }
        // Numbers and words of a definition.
        6 => {
            let is_digit = |at: usize| value.get(at).is_some_and(u8::is_ascii_digit);
            let mut starts = (0..value.len())
                .filter(|at| is_digit(*at) && (*at == 0 || !is_digit(at - 1)))
                .collect::<Vec<_>>();
            if !starts.is_empty() {
                let start = starts.swap_remove(at(choices, starts.len()));
                let end = (start..).find(|at| !is_digit(*at)).unwrap_or(value.len());
                value.splice(start..end, choices.pick(NUMBERS).bytes());
            }
        }
        7 => {
            let words = words(&value);
            if words.len() > 1 {
                let (from, to) = (&words[at(choices, words.len())], &words[at(choices, words.len())]);
                let word = value[from.clone()].to_vec();
                value.splice(to.clone(), word);
            }
        }
        _ => {
            let at = at(choices, key.len());
            match choices.below(3) {
                0 => key.truncate(at.max(1)),
                1 => key.insert(at, choices.byte()),
                _ => key[at] ^= choices.byte().max(1),
            }
        }
    }
    Some((key, value))
}

/// Where a JSON text has its quoted words.
fn words(json: &[u8]) -> Vec<std::ops::Range<usize>> {
    let quotes: Vec<usize> = (0..json.len()).filter(|at| json[*at] == b'"').collect();
    quotes.chunks_exact(2).map(|pair| pair[0]..pair[1] + 1).collect()
}

/// Entries changed where no checksum sees it: every statement answers or says what is wrong, and CHECK finds
/// whatever makes two ways to the same rows differ.
pub fn stored_bytes(data: &[u8]) {
    let mut choices = Choices(data);
    let store = Arc::new(MemoryStore::new());
    let open = || Database::over_store(Box::new(Arc::clone(&store)));
    STORED_ENTRIES.with(|stored| {
        let mut batch = WriteBatch::default();
        for (keyspace, (key, value)) in stored {
            batch.put(*keyspace, &key[..], value.clone());
        }
        store.commit(batch).unwrap();
    });
    while !choices.is_spent() {
        let keyspace = KeyspaceId(choices.below(KEYSPACES as usize) as u32);
        let mut entries = entries(&*store.snapshot().unwrap(), keyspace);
        if entries.is_empty() {
            continue;
        }
        let other = entries[choices.below(entries.len())].clone();
        let entry = entries.swap_remove(choices.below(entries.len()));
        let mut batch = WriteBatch::default();
        // Under another key, it is there no more or twice.
        let moves = choices.below(2) == 1;
        match damaged(&mut choices, entry.clone(), &other) {
            Some((key, value)) => {
                if moves && key != entry.0 {
                    batch.delete(keyspace, &entry.0[..]);
                }
                batch.put(keyspace, &key[..], value);
            }
            None => batch.delete(keyspace, &entry.0[..]),
        }
        store.commit(batch).unwrap();
    }
    let Some(db) = allow(open(), "open") else { return };
    let rows = |sql: &str| -> Option<BTreeSet<String>> {
        let rows = allow(db.query(sql), sql)?.map(|row| Ok(format!("{:?}", row?.values()?)));
        allow(rows.collect(), sql)
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
        "SELECT * FROM v WHERE a < 9",
        "SELECT * FROM u WHERE n BETWEEN 3 AND 7 ORDER BY n",
        "SELECT n FROM u WHERE upper(s) >= 'S2' AND at > '2023-01-01'",
        "SELECT count(*) FROM t JOIN u ON t.b = u.n",
        "SHOW TABLES",
        "SHOW INDEXES",
        "SHOW REGIONS FROM u",
        "DESCRIBE t",
        "DESCRIBE u",
        "LINT",
        "INSERT INTO u (j, e) VALUES ('1', 1)",
        "UPDATE t SET d = d + 1, b = b + 1 WHERE a < 20",
        "DELETE FROM t WHERE b = 3",
        "REPAIR INDEX by_b",
    ] {
        rows(sql);
    }
}

fn entries(snapshot: &dyn Snapshot, keyspace: KeyspaceId) -> Vec<Entry> {
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
        if sql.contains(" INDEX ") {
            allow(ours.borrow_mut().execute(&sql, &[]), &history.join(";\n"));
        } else if sql.starts_with("SELECT") || sql.starts_with("WITH") {
            assert_eq!(answer(&ours, &sql), expected(&sqlite, &sql), "{}", history.join(";\n"));
        } else {
            let theirs = sqlite.execute(&sql, []);
            let affected = ours.borrow_mut().execute(&sql, &[]).map(|outcome| outcome.affected);
            let same = match (&theirs, &affected) {
                (Ok(_), Ok(None)) => true,
                (Ok(theirs), Ok(Some(ours))) => *theirs as u64 == *ours,
                (Err(_), Err(e)) => e.kind() != Kind::Internal,
                _ => false,
            };
            assert!(same, "{theirs:?} {affected:?} {}", history.join(";\n"));
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
    match choices.below(24) {
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
        14 => {
            let join = choices.pick(&["JOIN", "LEFT JOIN"]);
            let on = choices.pick(&["x.a = y.id", "x.a = y.a", "x.id = y.a", "x.b = y.b", "x.a < y.id"]);
            format!("SELECT x.id, y.id, y.b FROM t x {join} t y ON {on} WHERE {}", simple(choices, "x."))
        }
        15 => {
            let on = choices
                .pick(&["ON CONFLICT DO NOTHING", "ON CONFLICT (id) DO UPDATE SET a = excluded.a, b = t.b"]);
            format!("INSERT INTO t VALUES ({id}, {}, {}) {on}", number(choices), text(choices))
        }
        16 => format!(
            "{} WHERE a {} (SELECT id FROM t WHERE {})",
            choices.pick(&["SELECT id, b FROM t", "DELETE FROM t", "UPDATE t SET b = 'z'"]),
            choices.pick(&["IN", "NOT IN"]),
            condition(choices, 1)
        ),
        17 => format!(
            "SELECT x.id FROM t x WHERE {} (SELECT 1 FROM t y WHERE y.{} AND {})",
            choices.pick(&["EXISTS", "NOT EXISTS"]),
            choices.pick(&["a = x.id", "b = x.b", "id = x.a"]),
            simple(choices, "y.")
        ),
        18 => format!(
            "SELECT id, a FROM t WHERE {} {} SELECT a, id FROM t WHERE {}",
            condition(choices, 1),
            choices.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT"]),
            condition(choices, 1)
        ),
        19 => format!(
            "SELECT {}, count(*), count(DISTINCT b), sum(a), min(id) FROM t WHERE {} GROUP BY 1 HAVING {}",
            choices.pick(&["a", "b", "id % 3", "a IS NULL"]),
            condition(choices, 1),
            choices.pick(&["count(*) > 1", "min(id) < 9", "sum(a) IS NOT NULL", "max(b) >= 'x'"])
        ),
        20 => format!(
            "SELECT id, {} FROM t WHERE {}",
            choices.pick(&[
                "row_number() OVER (PARTITION BY a ORDER BY id)",
                "sum(a) OVER (ORDER BY id)",
                "lag(b) OVER (ORDER BY a, id DESC)",
                "(SELECT max(y.id) FROM t y WHERE y.a = t.id)",
                "(SELECT count(*) FROM t y WHERE y.b = t.b)",
                "CASE WHEN a > 3 THEN b ELSE 'none' END",
            ]),
            condition(choices, 1)
        ),
        21 => format!(
            "WITH w AS (SELECT a, max(id) AS m FROM t WHERE {} GROUP BY a) SELECT t.id, w.m FROM t JOIN w ON t.{}",
            condition(choices, 1),
            choices.pick(&["a = w.a", "id = w.m", "id = w.a"])
        ),
        22 => choices
            .pick(&[
                "CREATE INDEX j ON t (a DESC, b)",
                "CREATE INDEX j ON t (b, id DESC) WHERE a > 3",
                "CREATE INDEX j ON t (a % 4, a)",
                "CREATE UNIQUE INDEX j ON t (id, a)",
                "DROP INDEX j",
            ])
            .to_owned(),
        _ => {
            let order = choices.pick(&["id", "id DESC", "a, id", "b DESC, id", "a DESC, id", "b, id DESC"]);
            let offset = choices.pick(&["", " OFFSET 1", " OFFSET 3"]);
            format!(
                "SELECT id, a, b FROM t WHERE {} ORDER BY {order} LIMIT {id}{offset}",
                condition(choices, 3)
            )
        }
    }
}

fn condition(choices: &mut Choices<'_>, depth: usize) -> String {
    match choices.below(if depth == 0 { 1 } else { 4 }) {
        0 => simple(choices, ""),
        1 => format!("({} AND {})", condition(choices, depth - 1), condition(choices, depth - 1)),
        2 => format!("({} OR {})", condition(choices, depth - 1), condition(choices, depth - 1)),
        _ => format!("NOT ({})", condition(choices, depth - 1)),
    }
}

/// A condition on columns of `table`: a name and a period, or nothing.
fn simple(choices: &mut Choices<'_>, table: &str) -> String {
    let comparison = choices.pick(&["=", "<", ">", "<=", ">=", "<>"]);
    let column = format!("{table}{}", choices.pick(&["id", "a"]));
    match choices.below(10) {
        0 | 1 => format!("{column} {comparison} {}", number(choices)),
        2 => format!("{table}b {comparison} {}", text(choices)),
        3 => format!("{column} IN ({}, {}, {})", number(choices), number(choices), number(choices)),
        4 => format!("{column} BETWEEN {} AND {}", number(choices), number(choices)),
        5 => format!("{table}b LIKE {}", choices.pick(&["'x%'", "'%y'", "'_'", "'%'", "''"])),
        6 => {
            format!("{table}{}", choices.pick(&["a IS NULL", "b IS NULL", "b IS NOT NULL", "a IS NOT NULL"]))
        }
        7 => format!("{column} % 4 {comparison} {}", number(choices)),
        8 => format!("({table}a, {table}id) {comparison} ({}, {})", number(choices), number(choices)),
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

/// Rows as text; in the order of that text, unless they have an order of their own.
fn answer(session: &RefCell<Session>, sql: &str) -> Vec<String> {
    let rows = session.borrow_mut().query(sql, &[]).and_then(|rows| rows.collect::<Result<Vec<_>, Error>>());
    let rows = rows.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let cell = |value: &Value| match value {
        // SQLite has numbers for them.
        Value::Boolean(b) => u8::from(*b).to_string(),
        other => other.to_string(),
    };
    let cells = |row: &rowkeydb::Row| row.values().unwrap().iter().map(cell).collect::<Vec<_>>();
    arranged(sql, rows.iter().map(|row| cells(row).join("|")).collect())
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
    arranged(sql, rows.unwrap().map(|row| row.unwrap().join("|")).collect())
}

fn arranged(sql: &str, mut rows: Vec<String>) -> Vec<String> {
    if !sql.contains("LIMIT") {
        rows.sort();
    }
    rows
}
