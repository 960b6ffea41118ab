//! Writes and transactions: the same statements, then the same tables.

use super::Tally;
use super::answers::{self, difference};
use super::conditions;
use super::tables::{self, COLUMNS};
use super::world::World;
use crate::dice::Dice;

/// Statements of one script.
const STATEMENTS: usize = 40;

/// Runs one script and compares the tables whenever no transaction is open.
pub fn run(dice: &mut Dice, tally: &mut Tally) {
    let world = World::new(dice);
    for n in 0..dice.below(3) {
        let table = dice.below(tables::TABLES);
        // Neither makes it if the rows are not different.
        let _ = world.index(&tables::index(dice, table, &format!("once_{n}"), true));
    }
    let mut open = Vec::new();
    for _ in 0..STATEMENTS {
        let sql = statement(dice, &mut open);
        if !execute(&world, &sql, tally) {
            return;
        }
        if open.is_empty() || dice.chance(10) {
            compare(&world, &sql, tally);
        }
    }
    for _ in 0..open.len().min(1) {
        execute(&world, "COMMIT", tally);
    }
    compare(&world, "the end", tally);
    world.check();
}

/// One statement; `open` holds the open transaction and the savepoints in it.
fn statement(dice: &mut Dice, open: &mut Vec<String>) -> String {
    if dice.chance(25) {
        match (open.len(), dice.below(4)) {
            (0, _) => {
                open.push("transaction".into());
                return dice.pick(&["BEGIN", "BEGIN TRANSACTION"]).to_owned();
            }
            (_, 0) => {
                open.clear();
                return dice.pick(&["COMMIT", "ROLLBACK", "ROLLBACK"]).to_owned();
            }
            (1, _) | (_, 1) => {
                let name = format!("s{}", open.len());
                open.push(name.clone());
                return format!("SAVEPOINT {name}");
            }
            (n, what) => {
                let at = 1 + dice.below(n - 1);
                let name = open[at].clone();
                open.truncate(at + usize::from(what == 2));
                let word = if what == 2 { "ROLLBACK TO SAVEPOINT" } else { "RELEASE SAVEPOINT" };
                return format!("{word} {name}");
            }
        }
    }
    write(dice)
}

fn write(dice: &mut Dice) -> String {
    let table = dice.below(tables::TABLES);
    let pk = dice.below(40);
    let given = dice.below(COLUMNS.len());
    let (column, ty) = COLUMNS[given];
    match dice.below(14) {
        0 | 1 => format!("INSERT INTO tab{table} VALUES {}", tables::row(dice, pk)),
        2 => format!("INSERT INTO tab{table} (pk, {column}) VALUES ({pk}, {})", tables::value(dice, given)),
        3 => {
            let rows = [tables::row(dice, pk), tables::row(dice, pk + 1)];
            format!("INSERT INTO tab{table} VALUES {}", rows.join(", "))
        }
        4 => format!(
            "INSERT INTO tab{table} SELECT pk + {}, col0, col1, col2, col3, col4, col5 FROM tab{} WHERE {}",
            dice.below(60),
            dice.below(tables::TABLES),
            conditions::deep(dice, "")
        ),
        5 => format!("INSERT INTO tab{table} VALUES {} ON CONFLICT DO NOTHING", tables::row(dice, pk)),
        6 | 7 => {
            let change = dice.pick(&["excluded.", "tab."]).replace("tab.", &format!("tab{table}."));
            let filter = if dice.chance(30) { format!(" WHERE tab{table}.col3 > 20") } else { String::new() };
            format!(
                "INSERT INTO tab{table} VALUES {} ON CONFLICT (pk) DO UPDATE SET {column} = {change}{column}{filter}",
                tables::row(dice, pk)
            )
        }
        // SQLite checks UNIQUE row by row, so that only the whole of one statement is the same for both
        // if it sets one row, or all rows to one value.
        8 => format!("UPDATE tab{table} SET {column} = {} WHERE pk = {pk}", tables::value(dice, given)),
        9 => format!(
            "UPDATE tab{table} SET {column} = {} WHERE {}",
            tables::value(dice, given),
            conditions::deep(dice, "")
        ),
        10 if ty == "INTEGER" => format!("UPDATE tab{table} SET {column} = {column} + 1 WHERE pk = {pk}"),
        10 => format!(
            "UPDATE tab{table} SET col0 = col3, col3 = col0, col2 = col5 WHERE pk BETWEEN {pk} AND {pk}"
        ),
        11 => format!("DELETE FROM tab{table} WHERE pk = {pk}"),
        12 => format!(
            "DELETE FROM tab{table} WHERE {} AND {}",
            conditions::deep(dice, ""),
            conditions::deep(dice, "")
        ),
        _ => format!(
            "DELETE FROM tab{table} WHERE pk IN (SELECT pk FROM tab{} WHERE {})",
            dice.below(tables::TABLES),
            conditions::deep(dice, "")
        ),
    }
}

/// Runs a statement everywhere; false if the databases are no longer the same.
fn execute(world: &World, sql: &str, tally: &mut Tally) -> bool {
    let theirs = world.sqlite.execute(sql, []).map(|n| n as u64);
    world.history.borrow_mut().push(sql.to_owned());
    let same = match &theirs {
        Ok(theirs) => {
            let same =
                |ours: &Result<Option<u64>, _>| matches!(ours, Ok(n) if n.is_none_or(|n| n == *theirs));
            world.write(sql).iter().all(same)
        }
        Err(_) => world.write(sql).iter().all(Result::is_err),
    };
    if same {
        tally.answered += 1;
    } else {
        let ours = world.write(sql);
        tally.wrong(world, sql, format!("SQLite: {theirs:?}; here, a second time: {ours:?}"));
    }
    same
}

fn compare(world: &World, sql: &str, tally: &mut Tally) {
    for table in 0..tables::TABLES {
        let all = format!("SELECT * FROM tab{table}");
        let theirs = answers::sqlite(&world.sqlite, &all).expect("SQLite reads its table");
        for ours in world.ours(&all) {
            let difference =
                ours.map_or_else(|e| Some(e.to_string()), |rows| difference(&rows, &theirs, &[]));
            if let Some(difference) = difference {
                tally.wrong(world, &format!("{all} after {sql}"), difference);
                return;
            }
        }
    }
}
