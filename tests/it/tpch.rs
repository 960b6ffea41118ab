//! TPC-H: the script in `sql_examples/` runs here, and SQLite answers the same questions over the same
//! rows. Every answer must be equal: numbers to a millionth, order as the query demands.

use rowkeydb::row::any_value_at;
use rowkeydb::sql::Splitter;
use rowkeydb::{Database, Value};
use rusqlite::types::{Value as Lite, ValueRef};
use rusqlite::{Connection, params_from_iter};

const SCRIPT: &str = include_str!("../../sql_examples/tpch.sql");

/// The smallest that the generator is made for; every query has rows to answer with.
const SCALE: &str = "0.01";

/// What joins go by; without them SQLite takes minutes over Q17 to Q22.
const SQLITE_INDEXES: &str = "
    CREATE INDEX part_key ON part (p_partkey);
    CREATE INDEX supplier_key ON supplier (s_suppkey);
    CREATE INDEX partsupp_key ON partsupp (ps_partkey, ps_suppkey);
    CREATE INDEX customer_key ON customer (c_custkey);
    CREATE INDEX orders_key ON orders (o_orderkey);
    CREATE INDEX orders_customer ON orders (o_custkey);
    CREATE INDEX lineitem_order ON lineitem (l_orderkey);
    CREATE INDEX lineitem_part ON lineitem (l_partkey, l_suppkey);
    ANALYZE;";

/// Where SQLite's SQL differs, in the words of the script. Doubles make 0.06 + 0.01 less than 0.07.
const SQLITE_WORDS: &[(&str, &str)] = &[
    ("DATE '1998-12-01' - INTERVAL '90' DAY", "date('1998-12-01', '-90 days')"),
    ("DATE '1993-07-01' + INTERVAL '3' MONTH", "date('1993-07-01', '+3 months')"),
    ("DATE '1993-10-01' + INTERVAL '3' MONTH", "date('1993-10-01', '+3 months')"),
    ("DATE '1994-01-01' + INTERVAL '1' YEAR", "date('1994-01-01', '+1 year')"),
    ("DATE '1995-09-01' + INTERVAL '1' MONTH", "date('1995-09-01', '+1 month')"),
    ("DATE '1996-01-01' + INTERVAL '3' MONTH", "date('1996-01-01', '+3 months')"),
    ("DATE '", "'"),
    ("EXTRACT(YEAR FROM l_shipdate)", "CAST(strftime('%Y', l_shipdate) AS INTEGER)"),
    ("EXTRACT(YEAR FROM o_orderdate)", "CAST(strftime('%Y', o_orderdate) AS INTEGER)"),
    ("SUBSTRING(c_phone FROM 1 FOR 2)", "substr(c_phone, 1, 2)"),
    ("BETWEEN 0.06 - 0.01 AND 0.06 + 0.01", "BETWEEN 0.05 AND 0.07"),
    // SQLite has no column names behind the alias of a subquery.
    ("SELECT c_custkey, count(o_orderkey)\n", "SELECT c_custkey, count(o_orderkey) AS c_count\n"),
    ("AS c_orders (c_custkey, c_count)", "AS c_orders"),
];

#[test]
fn all_22_answers_equal_those_of_sqlite() {
    let (setup, queries) = statements();
    assert_eq!(queries.len(), 22);
    let ours = Database::in_memory().unwrap();
    for sql in &setup {
        ours.execute(sql).unwrap_or_else(|e| panic!("{}", e.render(sql)));
    }
    let theirs = sqlite(&ours);
    for (name, sql) in &queries {
        let (ours, theirs) = (our_answer(&ours, sql), their_answer(&theirs, sql));
        assert!(!theirs.is_empty(), "{name} has no rows to compare");
        assert_equal(name, &ours, &theirs);
    }
}

/// Statements of the script up to the queries, and the queries with their names.
fn statements() -> (Vec<String>, Vec<(String, String)>) {
    let mut splitter = Splitter::new();
    let (mut setup, mut queries, mut name) = (Vec::new(), Vec::new(), None);
    for line in SCRIPT.replace(":scale", SCALE).lines() {
        if let Some(heading) = line.strip_prefix("\\echo ") {
            name = Some(heading.to_owned());
        } else if !line.starts_with('\\') {
            splitter.push(&format!("{line}\n"));
        }
        while let Some(statement) = splitter.next_statement() {
            match name.take() {
                Some(name) => queries.push((name, statement.text)),
                None => setup.push(statement.text),
            }
        }
    }
    (setup, queries)
}

/// A SQLite database with the rows that the generator gives, dates as text, decimals as doubles.
fn sqlite(ours: &Database) -> Connection {
    let sqlite = Connection::open_in_memory().unwrap();
    for table in ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"] {
        let batches = ours.query(&format!("SELECT * FROM tpch('{table}', {SCALE})")).unwrap().batches();
        let names: Vec<String> = batches.schema().fields().iter().map(|f| f.name().clone()).collect();
        let marks = vec!["?"; names.len()].join(", ");
        sqlite.execute_batch(&format!("CREATE TABLE {table} ({}); BEGIN", names.join(", "))).unwrap();
        let mut insert = sqlite.prepare(&format!("INSERT INTO {table} VALUES ({marks})")).unwrap();
        for batch in batches {
            let batch = batch.unwrap();
            for at in 0..batch.num_rows() {
                let row = batch.columns().iter().map(|column| lite(any_value_at(column, at).unwrap()));
                insert.execute(params_from_iter(row)).unwrap();
            }
        }
        sqlite.execute_batch("COMMIT").unwrap();
    }
    sqlite.execute_batch(SQLITE_INDEXES).unwrap();
    sqlite
}

fn lite(value: Value) -> Lite {
    match value {
        Value::Null => Lite::Null,
        Value::Int(i) => Lite::Integer(i),
        Value::Decimal(..) => Lite::Real(value.to_string().parse().unwrap()),
        other => Lite::Text(other.to_string()),
    }
}

/// What both sides' values have in common.
#[derive(Debug)]
enum Cell {
    Null,
    Number(f64),
    Text(String),
}

type Rows = Vec<Vec<Cell>>;

fn our_answer(db: &Database, sql: &str) -> Rows {
    let mut rows = Vec::new();
    for batch in db.query(sql).unwrap_or_else(|e| panic!("{}", e.render(sql))).batches() {
        let batch = batch.unwrap_or_else(|e| panic!("{}", e.render(sql)));
        let cell = |at, column| match any_value_at(column, at).unwrap() {
            Value::Null => Cell::Null,
            value @ (Value::Int(_) | Value::Double(_) | Value::Decimal(..)) => {
                Cell::Number(value.to_string().parse().unwrap())
            }
            other => Cell::Text(other.to_string()),
        };
        rows.extend((0..batch.num_rows()).map(|at| batch.columns().iter().map(|c| cell(at, c)).collect()));
    }
    rows
}

fn their_answer(sqlite: &Connection, sql: &str) -> Rows {
    let sql = SQLITE_WORDS.iter().fold(sql.to_owned(), |sql, (ours, theirs)| sql.replace(ours, theirs));
    let mut query = sqlite.prepare(&sql).unwrap_or_else(|e| panic!("{e}\n{sql}"));
    let columns = query.column_count();
    let cell = |value: ValueRef<'_>| match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(i) => Cell::Number(i as f64),
        ValueRef::Real(d) => Cell::Number(d),
        ValueRef::Text(text) | ValueRef::Blob(text) => Cell::Text(String::from_utf8_lossy(text).into()),
    };
    let rows = query.query_map([], |row| (0..columns).map(|i| row.get_ref(i).map(cell)).collect());
    rows.unwrap().collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{e}\n{sql}"))
}

fn assert_equal(name: &str, ours: &Rows, theirs: &Rows) {
    assert_eq!(ours.len(), theirs.len(), "rows of {name}");
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let equal = ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_same(a, b));
        assert!(equal, "{name}, row {}\n  ours: {ours:?}\ntheirs: {theirs:?}", at + 1);
    }
}

/// Numbers may differ by a millionth: averages and quotients of decimals keep six digits or more.
fn is_same(ours: &Cell, theirs: &Cell) -> bool {
    match (ours, theirs) {
        (Cell::Null, Cell::Null) => true,
        (Cell::Number(a), Cell::Number(b)) => (a - b).abs() <= 1e-6 * b.abs().max(1.0),
        (Cell::Text(a), Cell::Text(b)) => a == b,
        _ => false,
    }
}
