//! The database that is compared with, in plain vectors.

use rowkeydb::Value;

use super::relation::{Cond, Relation, Sql};
use super::values::Compute;
use super::{COLUMNS, Rows, Seeds, UNIQUE, Verdict, Write};

/// The same database in plain vectors.
pub struct Model {
    /// Its rows are filled in for each question. Formulas are columns behind the others.
    pub table: Relation,
    /// The column each formula is computed from, and how.
    pub formulas: Vec<(usize, Compute)>,
    pub key_columns: usize,
    pub nullable: u8,
    pub pools: Vec<Vec<Value>>,
    pub indexes: Vec<Built>,
    pub rows: Rows,
}

/// An index that exists.
pub struct Built {
    pub name: String,
    pub create: String,
    /// Columns of a UNIQUE index.
    pub unique: Option<Vec<usize>>,
    pub filter: Option<Cond>,
}

impl Model {
    pub fn row(&self, seeds: &Seeds) -> Vec<Value> {
        let mut row: Vec<Value> = (0..COLUMNS).map(|c| self.value(c, seeds[c])).collect();
        self.compute(&mut row);
        row
    }

    /// Computes the formulas of a row.
    pub fn compute(&self, row: &mut Vec<Value>) {
        row.truncate(COLUMNS);
        let computed: Vec<Value> = self.formulas.iter().map(|(of, compute)| compute(&row[*of])).collect();
        row.extend(computed);
    }

    pub fn value(&self, column: usize, seed: u8) -> Value {
        if column >= self.key_columns && self.nullable >> column & 1 == 1 && seed % 6 == 5 {
            return Value::Null;
        }
        let pool = &self.pools[column];
        pool[usize::from(seed) % pool.len()].clone()
    }

    pub fn key(&self, row: &[Value]) -> Vec<Value> {
        row[..self.key_columns].to_vec()
    }

    /// A column behind the key.
    pub fn other(&self, column: u8) -> usize {
        self.key_columns + usize::from(column) % (COLUMNS - self.key_columns)
    }

    pub fn matches(&self, cond: &Cond, row: &[Value]) -> bool {
        self.table.eval(cond, row) == Some(true)
    }

    pub fn indexed(&self, index: &Built, row: &[Value]) -> bool {
        index.filter.as_ref().is_none_or(|filter| self.matches(filter, row))
    }

    /// Another row that a UNIQUE index does not allow next to `row`.
    pub fn rival<'r>(&self, rows: &'r Rows, row: &[Value]) -> Option<&'r Vec<Value>> {
        self.indexes.iter().find_map(|index| {
            let columns = index.unique.as_ref()?;
            if !self.indexed(index, row) || columns.iter().any(|c| row[*c].is_null()) {
                return None;
            }
            let same = |other: &&Vec<Value>| {
                columns.iter().all(|c| other[*c] == row[*c])
                    && self.indexed(index, other)
                    && self.key(other) != self.key(row)
            };
            rows.values().find(same)
        })
    }

    /// The rows as they are after a statement, if they may be so.
    pub fn settled(&self, mut rows: Rows, affected: u64) -> Verdict {
        rows.values_mut().for_each(|row| self.compute(row));
        if rows.values().any(|row| self.rival(&rows, row).is_some()) {
            return Err(UNIQUE);
        }
        Ok((rows, affected))
    }

    pub fn apply(&self, write: &Write) -> Verdict {
        let mut rows = self.rows.clone();
        let mut affected = 0;
        match write {
            Write::Insert(all) => {
                for row in all.iter().map(|seeds| self.row(seeds)) {
                    affected += 1;
                    if rows.insert(self.key(&row), row).is_some() {
                        return Err(UNIQUE);
                    }
                }
            }
            Write::Upsert(seeds, given) => {
                let mut row = self.row(seeds);
                for c in self.key_columns..COLUMNS {
                    if given >> c & 1 == 0 && self.nullable >> c & 1 == 1 {
                        row[c] = rows.get(&self.key(&row)).map_or(Value::Null, |old| old[c].clone());
                    }
                }
                rows.insert(self.key(&row), row);
                affected = 1;
            }
            Write::DoNothing(all) => {
                for row in all.iter().map(|seeds| self.row(seeds)) {
                    if !rows.contains_key(&self.key(&row)) && self.rival(&rows, &row).is_none() {
                        rows.insert(self.key(&row), row);
                        affected += 1;
                    }
                }
            }
            Write::DoUpdate(seeds) => {
                let row = self.row(seeds);
                match rows.get_mut(&self.key(&row)) {
                    Some(old) => old[self.key_columns..].clone_from_slice(&row[self.key_columns..]),
                    None => drop(rows.insert(self.key(&row), row)),
                }
                affected = 1;
            }
            Write::Update(c, seed, cond) => {
                let c = self.other(*c);
                for row in rows.values_mut().filter(|row| self.matches(cond, row)) {
                    row[c] = self.value(c, *seed);
                    affected += 1;
                }
            }
            Write::Copy(to, from, cond) => {
                let (to, from) = self.copied(*to, *from);
                for row in rows.values_mut().filter(|row| self.matches(cond, row)) {
                    row[to] = row[from].clone();
                    affected += 1;
                }
            }
            Write::Delete(cond) => {
                let before = rows.len();
                rows.retain(|_, row| !self.matches(cond, row));
                affected = (before - rows.len()) as u64;
            }
            Write::RolledBack(_) | Write::Transaction(_) | Write::Rebuild(_) | Write::Rekey(..) => {}
        }
        self.settled(rows, affected)
    }

    /// Columns of a [`Write::Copy`]: of one type, and never NULL into NOT NULL.
    pub fn copied(&self, to: u8, from: u8) -> (usize, usize) {
        let to = self.other(to);
        let fits = |from: &usize| {
            self.table.columns[*from].1 == self.table.columns[to].1
                && self.pools[*from].len() == self.pools[to].len()
                && self.nullable & 1 << from <= self.nullable & 1 << to
        };
        let from = (0..COLUMNS).map(|n| (usize::from(from) + n) % COLUMNS).find(fits);
        (to, from.unwrap_or(to))
    }

    pub fn write_sql(&self, write: &Write) -> Sql {
        let mut out = Sql::default();
        let names: Vec<&str> = self.table.columns[..COLUMNS].iter().map(|(n, _)| n.as_str()).collect();
        let key = names[..self.key_columns].join(", ");
        let values = |out: &mut Sql, all: &[Seeds], columns: &[usize]| {
            for (i, seeds) in all.iter().enumerate() {
                out.text.push_str(if i == 0 { "(" } else { ", (" });
                for (i, c) in columns.iter().enumerate() {
                    out.text.push_str(if i == 0 { "" } else { ", " });
                    out.value(&self.value(*c, seeds[*c]), self.table.columns[*c].1, seeds[*c] % 2 == 0);
                }
                out.text.push(')');
            }
        };
        let all: Vec<usize> = (0..COLUMNS).collect();
        match write {
            Write::Insert(rows) => {
                out.text = "INSERT INTO t VALUES ".into();
                values(&mut out, rows, &all);
            }
            Write::Upsert(seeds, given) => {
                let fixed = |c: &usize| *c < self.key_columns || self.nullable >> c & 1 == 0;
                let columns: Vec<usize> = (0..COLUMNS).filter(|c| fixed(c) || given >> c & 1 == 1).collect();
                let list: Vec<&str> = columns.iter().map(|c| names[*c]).collect();
                out.text = format!("UPSERT INTO t ({}) VALUES ", list.join(", "));
                values(&mut out, &[*seeds], &columns);
            }
            Write::DoNothing(rows) => {
                out.text = "INSERT INTO t VALUES ".into();
                values(&mut out, rows, &all);
                out.text.push_str(" ON CONFLICT DO NOTHING");
            }
            Write::DoUpdate(seeds) => {
                out.text = "INSERT INTO t VALUES ".into();
                values(&mut out, &[*seeds], &all);
                let sets: Vec<String> =
                    names[self.key_columns..].iter().map(|n| format!("{n} = excluded.{n}")).collect();
                out.text.push_str(&format!(" ON CONFLICT ({key}) DO UPDATE SET {}", sets.join(", ")));
            }
            Write::Update(c, seed, cond) => {
                let c = self.other(*c);
                out.text = format!("UPDATE t SET {} = ", names[c]);
                out.value(&self.value(c, *seed), self.table.columns[c].1, seed % 2 == 0);
                out.text.push_str(" WHERE ");
                self.table.write(cond, &mut out);
            }
            Write::Copy(to, from, cond) => {
                let (to, from) = self.copied(*to, *from);
                out.text = format!("UPDATE t SET {} = {} WHERE ", names[to], names[from]);
                self.table.write(cond, &mut out);
            }
            Write::Delete(cond) => {
                out.text = "DELETE FROM t WHERE ".into();
                self.table.write(cond, &mut out);
            }
            Write::RolledBack(_) | Write::Transaction(_) | Write::Rebuild(_) | Write::Rekey(..) => {}
        }
        out
    }
}
