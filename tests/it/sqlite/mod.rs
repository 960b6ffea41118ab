//! The same SQL in SQLite and here: generated tables, queries and writes in the shape of SQLite's own
//! sqllogictest, whose index family is one of the suites this engine answers to.
//!
//! A [`World`] holds the same tables three times: in SQLite, here with index tables and here without.
//! [`questions`] asks all three the same and compares the answers as sqllogictest does; [`scripts`] writes to
//! all three and compares the tables. Every number comes from a seed, which a failure names.
//!
//! `SQLITE_QUESTIONS=50000 SQLITE_SEED=7 cargo test --test it sqlite:: -- --nocapture` looks longer,
//! `SQLITE_WORLD=12` begins at the tables of that number.

mod answers;
mod conditions;
mod questions;
mod scripts;
mod tables;
mod world;

use std::collections::BTreeMap;

use crate::dice::{Dice, setting};
use world::World;

/// What became of the questions.
#[derive(Default)]
struct Tally {
    answered: usize,
    /// By message: how often, and one of them.
    refused: BTreeMap<String, (usize, String)>,
    wrong: Vec<Wrong>,
}

/// A statement that did something else than in SQLite.
struct Wrong {
    sql: String,
    how: String,
    /// Every statement before it.
    history: String,
}

impl Tally {
    fn refused(&mut self, sql: &str, why: &str) {
        let (times, _) = self.refused.entry(why.to_owned()).or_insert_with(|| (0, sql.to_owned()));
        *times += 1;
    }

    fn wrong(&mut self, world: &World, sql: &str, how: String) {
        self.wrong.push(Wrong { sql: sql.to_owned(), how, history: world.history.borrow().join(";\n") });
    }

    /// Prints the counts. Fails if an answer is wrong, or a refusal is not one of `allowed`.
    fn report(&self, name: &str, seed: u64, allowed: &[&str]) {
        let refused: usize = self.refused.values().map(|(times, _)| times).sum();
        println!(
            "{name}, seed {seed}: {} answered, {refused} refused, {} wrong",
            self.answered,
            self.wrong.len()
        );
        for (why, (times, sql)) in &self.refused {
            println!("  refused {times} times: {why}\n    as in {sql}");
        }
        for wrong in &self.wrong {
            println!("  wrong: {}\n    {}", wrong.sql, wrong.how);
        }
        if let Some(wrong) = self.wrong.iter().min_by_key(|wrong| wrong.sql.len() + wrong.history.len()) {
            println!("the shortest:\n{};\n{};", wrong.history, wrong.sql);
        }
        assert!(self.wrong.is_empty(), "{} wrong answers, seed {seed}", self.wrong.len());
        let unknown: Vec<_> =
            self.refused.keys().filter(|why| !allowed.iter().any(|a| why.contains(a))).collect();
        assert!(unknown.is_empty(), "refused for other reasons, seed {seed}: {unknown:?}");
    }
}

/// What SQLite answers and SQL does not: SQLite makes NULL of it.
const DIVISION: &str = "division by zero";

/// SQLite's INTEGER has 64 bits.
const INTEGER: &str = "out of range for INTEGER";

/// A subquery in the SELECT list that compares with the outer row by something else than `=`.
const CORRELATED: &str = "this subquery cannot be made a join";

/// Questions over one set of tables before the next.
const WORLD: usize = 100;

#[test]
fn the_same_answers_as_sqlite() {
    let (questions, seed) = (setting("SQLITE_QUESTIONS", 300) as usize, setting("SQLITE_SEED", 1));
    let mut tally = Tally::default();
    let first = setting("SQLITE_WORLD", 0) as usize;
    for n in first..first + questions.div_ceil(WORLD) {
        let mut dice = Dice::new(seed, n as u64);
        let world = World::new(&mut dice);
        for _ in 0..WORLD.min(questions - (n - first) * WORLD) {
            let question = questions::question(&mut dice);
            questions::ask(&world, &question, n, &mut tally);
            // The third time, a plan is kept.
            let more = if dice.chance(15) { 3 } else { 0 };
            for _ in 0..more {
                questions::ask(&world, &questions::again(&mut dice, &question), n, &mut tally);
            }
        }
        world.check();
    }
    tally.report("questions", seed, &[DIVISION, INTEGER, CORRELATED]);
}

#[test]
fn the_same_tables_as_sqlite() {
    let (scripts, seed) = (setting("SQLITE_SCRIPTS", 6), setting("SQLITE_SEED", 1));
    let mut tally = Tally::default();
    for n in 0..scripts {
        scripts::run(&mut Dice::new(seed ^ 0x5C21, n), &mut tally);
    }
    tally.report("statements", seed, &[]);
}
