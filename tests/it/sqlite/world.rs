//! One set of tables in three databases.

use std::cell::RefCell;

use rowkeydb::{Database, Error, Session};

use super::answers::{self, Rows};
use super::{conditions, tables};
use crate::dice::Dice;

/// The same tables in SQLite and here, with and without index tables.
pub struct World {
    pub sqlite: rusqlite::Connection,
    db: Database,
    indexed: RefCell<Session>,
    plain: RefCell<Session>,
    /// The statements that made them.
    pub history: RefCell<Vec<String>>,
}

impl World {
    /// Databases without tables.
    pub fn empty() -> World {
        let sqlite = rusqlite::Connection::open_in_memory().expect("SQLite opens");
        sqlite.execute_batch("PRAGMA case_sensitive_like = ON").expect("SQLite knows the setting");
        let db = Database::in_memory().expect("a database opens");
        let plain = Database::in_memory().expect("a database opens").session();
        World {
            sqlite,
            indexed: RefCell::new(db.session()),
            db,
            plain: RefCell::new(plain),
            history: RefCell::default(),
        }
    }

    /// Tables with rows, indexes made before and after them, and views.
    pub fn new(dice: &mut Dice) -> World {
        let world = World::empty();
        for table in 0..tables::TABLES {
            world.must(&tables::create(dice, table));
        }
        world.indexes(dice, 0);
        let rows = *dice.pick(&[&3, &10, &30]);
        for pk in 0..rows {
            world.must(&format!("INSERT INTO tab0 VALUES{}", tables::row(dice, pk)));
        }
        world.must("INSERT INTO tab1 SELECT * FROM tab0");
        world.must("INSERT INTO tab2 SELECT pk, col3, col4, col5, col0, col1, col2 FROM tab0 WHERE pk >= 1");
        world.indexes(dice, 1);
        for _ in 0..2 {
            let table = dice.below(tables::TABLES);
            world.must(&format!("DELETE FROM tab{table} WHERE {}", conditions::deep(dice, "")));
        }
        world.must(
            "CREATE VIEW view0 AS SELECT pk, col0, col1, col2, col3, col4, col5 FROM tab0 WHERE col0 > 10",
        );
        world.must("CREATE VIEW view1 AS SELECT * FROM view0 WHERE col3 IS NOT NULL OR col1 < 50.5");
        world
    }

    /// One to three indexes for every table.
    fn indexes(&self, dice: &mut Dice, round: usize) {
        for table in 0..tables::TABLES {
            for n in 0..dice.below(4) {
                let sql = tables::index(dice, table, &format!("idx_tab{table}_{round}_{n}"), false);
                self.index(&sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
            }
        }
    }

    /// Makes an index in SQLite and in one of our databases, or says why neither does. A UNIQUE one is part of
    /// the answers: all databases have it.
    pub fn index(&self, sql: &str) -> Result<(), String> {
        let theirs = self.sqlite.execute_batch(sql).map_err(|e| e.to_string());
        let ours = run(&self.indexed, sql).map_err(|e| e.to_string());
        match (theirs, ours) {
            (Ok(()), Ok(_)) => {
                self.history.borrow_mut().push(sql.to_owned());
                if sql.starts_with("CREATE UNIQUE") {
                    run(&self.plain, sql).map_err(|e| e.to_string())?;
                }
            }
            (Err(e), Err(_)) => {
                // A UNIQUE index whose rows collide is there, and Broken.
                let name = sql.split_whitespace().skip_while(|w| !w.eq_ignore_ascii_case("index")).nth(1);
                let drop_it = format!("DROP INDEX IF EXISTS {}", name.expect("an index has a name"));
                run(&self.indexed, &drop_it).map_err(|e| e.to_string())?;
                return Err(e);
            }
            (theirs, ours) => panic!("{sql}: SQLite says {theirs:?}, we say {ours:?}"),
        }
        Ok(())
    }

    /// Runs what works everywhere.
    fn must(&self, sql: &str) {
        self.sqlite.execute_batch(sql).unwrap_or_else(|e| panic!("SQLite: {sql}: {e}"));
        for session in [&self.indexed, &self.plain] {
            run(session, sql).unwrap_or_else(|e| panic!("{sql}: {}", e.render(sql)));
        }
        self.history.borrow_mut().push(sql.to_owned());
    }

    /// The answers to a query, here with index tables and without.
    pub fn ours(&self, sql: &str) -> [Result<Rows, Error>; 2] {
        [&self.indexed, &self.plain].map(|session| run(session, sql).map(|(rows, _)| rows))
    }

    /// What a write changed, here with index tables and without.
    pub fn write(&self, sql: &str) -> [Result<Option<u64>, Error>; 2] {
        [&self.indexed, &self.plain].map(|session| run(session, sql).map(|(_, affected)| affected))
    }

    /// Every index table fits its table.
    pub fn check(&self) {
        for table in self.db.table_names() {
            let problems: Vec<String> = self
                .db
                .query(&format!("CHECK TABLE {table}"))
                .expect("a table is checked")
                .map(|row| format!("{:?}", row.and_then(|row| row.deserialize::<serde_json::Value>())))
                .collect();
            let history = self.history.borrow();
            assert_eq!(
                problems.len(),
                1,
                "{table} and its index tables differ: {problems:#?} after {history:#?}"
            );
        }
    }
}

fn run(session: &RefCell<Session>, sql: &str) -> Result<(Rows, Option<u64>), Error> {
    let outcome = session.borrow_mut().execute(sql, &[])?;
    let affected = outcome.affected;
    Ok((answers::ours(outcome)?, affected))
}
