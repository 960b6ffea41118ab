//! Holds the rows of an INSERT or UPSERT against existing ones and each other.

use std::collections::HashSet;

use sqlparser::ast::Ident;

use super::StagedChanges;
use crate::engine::rows::check_nulls;
use crate::engine::view::{StatementView, column_named};
use crate::error::{Error, Result, sqlstate};
use crate::exec::dml::{ChangeSet, all_taken};
use crate::exec::row_sorter::NumberedRow;
use crate::key::{ColumnId, Rowkey};
use crate::schema::{IndexId, IndexState, TableDef};
use crate::sql::{InsertMode, name_of, span_of_name};
use crate::value::{Value, name_sql};

/// An INSERT's rows, after the check against existing ones.
#[derive(Default)]
pub(super) struct StagedInsert {
    /// Those that are touched include those that DO UPDATE may change.
    pub(super) changed: StagedChanges,
    pub(super) conflicts: Vec<Conflict>,
    /// What an UPSERT makes of each of its rows, if the table has constraints, which nothing has checked yet; and the
    /// numbers of these rows.
    pub(super) merged: (Vec<Vec<Value>>, Vec<u64>),
}

/// An existing row that DO UPDATE may change.
pub(super) struct Conflict {
    /// Its position among the rows that are touched.
    pub(super) place: usize,
    /// The number of the proposed row.
    pub(super) number: u64,
    pub(super) rowkey: Rowkey,
    pub(super) old: Vec<Value>,
    pub(super) proposed: Vec<Value>,
}

/// The keys whose duplicates ON CONFLICT handles; a duplicate of any other key is an error.
#[derive(Default)]
struct Arbiter {
    /// A duplicate rowkey.
    rowkey: bool,
    /// Duplicate keys in these UNIQUE indexes.
    indexes: Vec<IndexId>,
}

impl Arbiter {
    /// The keys that the columns in `target` identify; without columns, all unique keys.
    ///
    /// Errors: an unknown column; columns that are no key.
    fn new(table: &TableDef, target: &[Ident]) -> Result<Arbiter> {
        let columns: HashSet<ColumnId> =
            target.iter().map(|name| column_named(table, name)).collect::<Result<_>>()?;
        let named =
            |key: &[ColumnId]| target.is_empty() || key.iter().copied().collect::<HashSet<_>>() == columns;
        // An index that is not Ready may lack entries.
        let unique = table.indexes.iter().filter(|i| i.unique && i.state == IndexState::Ready);
        let unique = unique.filter(|i| named(&i.layout.columns()));
        // Rows that differ in a drawn bucket only are several.
        let is_row = target.is_empty() || !table.key.is_drawn();
        let rowkey = is_row && named(&table.key.columns());
        let arbiter = Arbiter { rowkey, indexes: unique.map(|i| i.id).collect() };
        if arbiter.rowkey || !arbiter.indexes.is_empty() {
            return Ok(arbiter);
        }
        if let Some(index) = table.indexes.iter().find(|i| i.unique && named(&i.layout.columns())) {
            let state = index.state.name();
            return Err(Error::invalid(format!("UNIQUE index \"{}\" is {state}", index.name))
                .why("it may lack entries, so it does not tell which rows are there")
                .hint(match index.state {
                    IndexState::Building => "wait until it is built".to_owned(),
                    _ => format!("REPAIR INDEX {} builds it anew", name_sql(&index.name)),
                })
                .state(sqlstate::INVALID_COLUMN_REFERENCE)
                .at(target.first().and_then(span_of_name)));
        }
        let names: Vec<String> = target.iter().map(name_of).collect();
        let (why, hint) = match table.key.is_drawn() && named(&table.key.columns()) {
            true => (
                "its bucket is drawn, so several rows may have the same values there",
                "CREATE UNIQUE INDEX makes them a key",
            ),
            false => (
                "ON CONFLICT names the columns of the primary key or of a UNIQUE index",
                "leave the columns out: then DO NOTHING answers to every conflict",
            ),
        };
        Err(Error::invalid(format!("({}) is not a key of table \"{}\"", names.join(", "), table.name))
            .why(why)
            .hint(hint)
            .state(sqlstate::INVALID_COLUMN_REFERENCE)
            .at(target.first().and_then(span_of_name)))
    }
}

/// Checks the proposed rows against existing ones and each other. `given`: the columns that the statement gives.
pub(super) fn stage(
    view: &StatementView,
    table: &TableDef,
    mode: &InsertMode,
    proposed: Vec<NumberedRow>,
    given: &[ColumnId],
) -> Result<StagedInsert> {
    let reader = view.snapshot.reader()?;
    let arbiter = match mode {
        InsertMode::OnConflictDoNothing { target } | InsertMode::OnConflictUpdate { target, .. } => {
            Arbiter::new(table, target)?
        }
        InsertMode::Insert | InsertMode::Upsert => Arbiter::default(),
    };
    let mut stage = Stage {
        table,
        writer: ChangeSet::new(table, &*reader, &view.watch, view.as_of_us),
        touched: Vec::with_capacity(proposed.len()),
        conflicts: Vec::new(),
        merged: (Vec::new(), Vec::new()),
        met: HashSet::new(),
    };
    stage.writer.read(proposed.iter().map(|proposed| &proposed.rowkey))?;
    for row in proposed {
        let number = row.number;
        stage.add(row, mode, given, &arbiter).map_err(|e| e.of_row(number))?;
    }
    let Stage { writer, touched, conflicts, merged, .. } = stage;
    Ok(StagedInsert { changed: StagedChanges { changes: writer.into_changes(), touched }, conflicts, merged })
}

/// A [`StagedInsert`] in progress.
struct Stage<'a> {
    table: &'a TableDef,
    writer: ChangeSet<'a>,
    touched: Vec<Rowkey>,
    conflicts: Vec<Conflict>,
    merged: (Vec<Vec<Value>>, Vec<u64>),
    /// Rows that DO UPDATE has added, or will change in any case.
    met: HashSet<Rowkey>,
}

impl Stage<'_> {
    fn add(
        &mut self,
        NumberedRow { mut rowkey, row, number }: NumberedRow,
        mode: &InsertMode,
        given: &[ColumnId],
        arbiter: &Arbiter,
    ) -> Result<()> {
        if self.table.key.is_drawn() {
            rowkey = self.free(rowkey, &row, mode)?;
        }
        match mode {
            InsertMode::Insert => self.insert(rowkey, row),
            InsertMode::Upsert => self.upsert(rowkey, (row, number), given),
            InsertMode::OnConflictDoNothing { .. } => match self.holder(&rowkey, &row, arbiter)? {
                Some(_) => Ok(()),
                None => self.insert(rowkey, row),
            },
            InsertMode::OnConflictUpdate { filter, .. } => match self.holder(&rowkey, &row, arbiter)? {
                Some(holder) => self.conflict(holder, (row, number), filter.is_none()),
                None => {
                    self.met.insert(rowkey.clone());
                    self.insert(rowkey, row)
                }
            },
        }
    }

    /// The rowkey, or that of another bucket if a row has it. Errors: all are taken, and no ON CONFLICT handles that.
    fn free(&mut self, drawn: Rowkey, row: &[Value], mode: &InsertMode) -> Result<Rowkey> {
        match (self.writer.free(drawn.clone(), row)?, mode) {
            (Some(free), _) => Ok(free),
            // Whichever row it would overwrite is another one.
            (None, InsertMode::Insert | InsertMode::Upsert) => Err(all_taken(self.table, &drawn)),
            (None, _) => Ok(drawn),
        }
    }

    fn insert(&mut self, rowkey: Rowkey, row: Vec<Value>) -> Result<()> {
        self.writer.insert(&rowkey, row)?;
        self.touched.push(rowkey);
        Ok(())
    }

    /// Adds the row with that number, or overwrites the `given` columns of the existing one.
    fn upsert(
        &mut self,
        rowkey: Rowkey,
        (mut row, number): (Vec<Value>, u64),
        given: &[ColumnId],
    ) -> Result<()> {
        if let Some(old) = self.writer.current(&rowkey)? {
            row = overwrite(self.table, old, &row, given);
        }
        check_nulls(self.table, &row)?;
        if !self.table.checks.is_empty() {
            self.merged.0.push(row.clone());
            self.merged.1.push(number);
        }
        self.writer.replace(&rowkey, row)?;
        self.touched.push(rowkey);
        Ok(())
    }

    /// The row that has a key of this one, among those that ON CONFLICT handles. If none has, this one has them now.
    fn holder(&mut self, rowkey: &Rowkey, row: &[Value], arbiter: &Arbiter) -> Result<Option<Rowkey>> {
        match self.writer.current(rowkey)? {
            Some(_) if arbiter.rowkey => Ok(Some(rowkey.clone())),
            _ => self.writer.claim_unique(row, rowkey, &arbiter.indexes),
        }
    }

    /// Leaves what becomes of an existing row to DO UPDATE. Errors: it is changed twice.
    fn conflict(
        &mut self,
        holder: Rowkey,
        (proposed, number): (Vec<Value>, u64),
        is_changed: bool,
    ) -> Result<()> {
        if self.met.contains(&holder) {
            return Err(changed_twice(self.table, &holder));
        }
        if is_changed {
            self.met.insert(holder.clone());
        }
        let old = self.writer.current(&holder)?.map(<[Value]>::to_vec).unwrap_or_default();
        let (place, rowkey) = (self.touched.len(), holder.clone());
        self.conflicts.push(Conflict { place, number, rowkey, old, proposed });
        self.touched.push(holder);
        Ok(())
    }
}

/// The error for a row that DO UPDATE would change again.
pub(super) fn changed_twice(table: &TableDef, rowkey: &Rowkey) -> Error {
    Error::invalid("ON CONFLICT DO UPDATE cannot change one row twice")
        .why(format!("two rows of the statement go to rowkey {}", table.key.show(rowkey)))
        .state(sqlstate::CARDINALITY)
}

/// `old` with the given columns of `new`, and its write time.
fn overwrite(table: &TableDef, old: &[Value], new: &[Value], given: &[ColumnId]) -> Vec<Value> {
    let mut row = old.to_vec();
    for id in given.iter().chain(&table.written_at) {
        row[usize::from(id.0)] = new[usize::from(id.0)].clone();
    }
    row
}
