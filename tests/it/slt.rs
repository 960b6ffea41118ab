//! `tests/sql/*.slt`: answers, the same from every store and with every index.
//!
//! Each file runs in memory without index tables, and on each engine with them created where the file creates them and
//! with them built where it says `# the data is in`. To that end the runner moves every `CREATE INDEX`, except the
//! UNIQUE ones, whose rules are part of the answers.
//! What asks an index table by its name stands behind `onlyif indexed`.
//!
//! `UPDATE_EXPECT=1` writes the answers into the files: then read the diff.

use std::path::{Path, PathBuf};

use rowkeydb::row::write_text_cell;
use rowkeydb::{Database, Engine, Error, Session};
use sqllogictest::runner::strict_column_validator;
use sqllogictest::{DBOutput, DefaultColumnType, MakeConnection, Record, Runner, StatementExpect};

use crate::dice::planned_once;
use crate::engines;

/// When index tables are made.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Indexes {
    Never,
    First,
    Later,
}

/// The line behind which late indexes are built.
const DATA_IS_IN: &str = "the data is in";

struct Connection(Session);

impl Connection {
    fn answer(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let outcome = self.0.execute(sql, &[])?;
        if outcome.columns.is_empty() {
            return Ok(DBOutput::StatementComplete(outcome.affected.unwrap_or(0)));
        }
        let types = outcome.columns.iter().map(|column| column_type(&column.type_name)).collect();
        let mut rows = Vec::new();
        for batch in outcome.rows {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let cells = batch.columns().iter().map(|array| {
                    let mut cell = String::new();
                    Ok(match write_text_cell(&mut cell, array, row)? {
                        false => "NULL".to_owned(),
                        true if cell.is_empty() => "(empty)".to_owned(),
                        true => cell,
                    })
                });
                rows.push(cells.collect::<Result<_, Error>>()?);
            }
        }
        Ok(DBOutput::Rows { types, rows })
    }
}

impl sqllogictest::DB for Connection {
    type Error = Error;
    type ColumnType = DefaultColumnType;

    /// A query runs three times: by its own plan, by one that is made to be kept, and by the one that was kept.
    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Error> {
        let first = self.answer(&planned_once(sql))?;
        if let DBOutput::Rows { rows, types } = &first
            && sql.trim_start().to_lowercase().starts_with("select")
            && !sql.contains("random")
            && !sql.contains("uuid")
            && !sql.contains("now()")
        {
            for _ in 0..2 {
                let DBOutput::Rows { rows: again, types: of_again } = self.answer(sql)? else {
                    panic!("no rows: {sql}")
                };
                assert_eq!(&of_again, types, "types differ from run to run: {sql}");
                let sorted = |rows: &[Vec<String>]| {
                    let mut rows = rows.to_vec();
                    rows.sort();
                    rows
                };
                assert_eq!(sorted(&again), sorted(rows), "answers differ from run to run: {sql}");
            }
        }
        Ok(first)
    }

    fn error_sql_state(e: &Error) -> Option<String> {
        Some(e.sqlstate().to_owned())
    }
}

fn column_type(name: &str) -> DefaultColumnType {
    match name {
        "SMALLINT" | "INTEGER" | "BIGINT" => DefaultColumnType::Integer,
        "REAL" | "DOUBLE" => DefaultColumnType::FloatingPoint,
        name if name.starts_with("DECIMAL") => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

/// A runner whose every connection is a session of `db`.
fn runner(db: &Database, indexes: Indexes) -> Runner<Connection, impl MakeConnection<Conn = Connection>> {
    let db = db.clone();
    let mut runner = Runner::new(move || {
        let session = db.session();
        async move { Ok::<_, Error>(Connection(session)) }
    });
    runner.with_column_validator(strict_column_validator);
    if indexes != Indexes::Never {
        runner.add_label("indexed");
    }
    runner
}

fn is_movable_index(record: &Record<DefaultColumnType>) -> bool {
    matches!(record, Record::Statement { sql, expected: StatementExpect::Ok, .. } if sql.starts_with("CREATE INDEX"))
}

fn run(db: &Database, file: &Path, indexes: Indexes) {
    let mut runner = runner(db, indexes);
    let mut late = Vec::new();
    let mut check = |record: Record<DefaultColumnType>| {
        if let Err(e) = runner.run(record) {
            panic!(
                "{} with indexes {indexes:?}: {}",
                db.path().map_or("in memory", |_| "on disk"),
                e.display(false)
            );
        }
    };
    for record in sqllogictest::parse_file(file).unwrap() {
        match &record {
            _ if is_movable_index(&record) && indexes == Indexes::Never => {}
            _ if is_movable_index(&record) && indexes == Indexes::Later => late.push(record),
            Record::Comment(lines) if lines.iter().any(|line| line.trim() == DATA_IS_IN) => {
                late.drain(..).for_each(&mut check);
            }
            _ => check(record),
        }
    }
    assert!(late.is_empty(), "{} never says '# {DATA_IS_IN}'", file.display());
    for table in db.table_names() {
        let problems = db.query(&format!("CHECK TABLE \"{table}\"")).unwrap().count();
        assert_eq!(problems, 1, "{table} and its index tables differ");
    }
}

fn update(file: &Path) {
    let db = Database::in_memory().unwrap();
    let mut runner = runner(&db, Indexes::First);
    let updated = runner.update_test_file(
        file,
        " ",
        sqllogictest::default_validator,
        sqllogictest::default_normalizer,
        strict_column_validator,
    );
    futures::executor::block_on(updated).unwrap();
}

fn answers(name: &str) {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "sql", name].iter().collect();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        update(&file);
    }
    run(&Database::in_memory().unwrap(), &file, Indexes::Never);
    for engine in Engine::ALL {
        for indexes in [Indexes::First, Indexes::Later] {
            let directory = tempfile::tempdir().unwrap();
            run(&engines::open(directory.path().join("db"), engine), &file, indexes);
        }
    }
}

macro_rules! files {
    ($($test:ident)*) => {
        $(#[test] fn $test() { answers(concat!(stringify!($test), ".slt")); })*

        #[test]
        fn every_file_is_run() {
            let directory: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "sql"].iter().collect();
            let mut found: Vec<String> = std::fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            assert_eq!(found, [$(concat!(stringify!($test), ".slt")),*]);
        }
    };
}

files! { again aggregates as_of columns copy dialect drawn dumps elsewhere expiry families few_rows first_rows foreign_keys formulas found functions hints index_tables inner_orders intervals join_order json like limits lookups many_rows misled mistakes names operands queries recursion row_values rules same_names seeks sqlite subqueries table_as table_functions ties transactions types unkeyed versions widths writes }
