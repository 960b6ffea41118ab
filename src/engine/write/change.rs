//! UPDATE and DELETE: a query finds the rows and computes their new values, which are then written.

use std::collections::HashSet;

use arrow::array::{Array, ArrayRef, BinaryArray, RecordBatch};
use sqlparser::ast::{BinaryOperator, Expr, LimitClause, OrderBy, OrderByKind, Query};

use super::returned::{OtherColumns, Returned};
use super::{
    Assigned, FOUND_ROWKEY, StatementWrites, WriteInputs, WriteTarget, assigned_columns, column_item,
    key_update, name_in, relations, select,
};
use crate::engine::bulk::BulkStatement;
use crate::engine::references::check_parents;
use crate::engine::rows::{check_constraints, check_null, literal};
use crate::engine::view::StatementView;
use crate::error::{Error, Result, sqlstate};
use crate::exec::changes::Changes;
use crate::exec::dml::{ROWS_READ, Writes};
use crate::exec::stored::{self, ColumnProjection, StoredRow};
use crate::key::{ColumnId, KeyRange, Rowkey, in_key_order};
use crate::row::{any_value_at, ref_at};
use crate::schema::{IndexDef, IndexState, TableDef};
use crate::sql::{Assignment, Delete, Update, name_of, name_sql, span_of};
use crate::store::{Direction, WriteBatch};
use crate::value::{ColumnType, Value, ValueRef};

/// Rows (count) from which a DELETE of all rows clears whole keyspaces, which costs one flush more than small
/// writes.
const ROWS_CLEARED: u64 = 4096;

/// Rows (count) that are sorted by their keys before they are changed.
const ROWS_SORTED: usize = 2 * ROWS_READ;

/// Rows (count) for whose writes memory is reserved at once.
const ROWS_RESERVED: usize = 1 << 16;

/// UPDATE.
pub async fn update(view: &StatementView, stmt: &Update, given: WriteInputs<'_>) -> Result<StatementWrites> {
    let of_column = |name: &String| stmt.assignments.iter().find(|a| name_of(&a.column) == *name);
    update_rows(view, stmt, given).await.map_err(|e| {
        let assigned = e.subject().column.as_ref().and_then(of_column);
        e.at(assigned.and_then(|assignment| span_of(&assignment.value)))
    })
}

async fn update_rows(view: &StatementView, stmt: &Update, given: WriteInputs<'_>) -> Result<StatementWrites> {
    let WriteInputs { params, queries } = given;
    let table = view.table(&stmt.table)?;
    let targets = updated_columns(view, &table, stmt, params)?;
    let is_joined = !stmt.from.is_empty();
    let returned =
        Returned::new(view, &table, &name_in(&stmt.table, &stmt.alias), &stmt.returning, &stmt.from)?;
    let assigned = Assigned::new(view, &table, &stmt.assignments, (&targets, params))?;
    let computed = assigned.computed().filter(|_| returned.takes_nothing());
    let query = queries.rows.of(computed, || update_query(stmt, &assigned, &returned))?;
    let found = view.select_rowkeys(query, FOUND_ROWKEY, params).await?;
    let (found, taken) = returned.split(found)?;
    let target = WriteTarget::new(view, &table, (&stmt.table, &stmt.alias), &returned.items, params);
    Rewriting::new(target, found.num_rows(), Some(&assigned))
        .keeping_keys(key_assignment(&table, &targets).map(|at| moved(view, &table, stmt, at)))
        .all(FoundRows::new(found, is_joined), taken)
        .await
}

/// DELETE.
pub async fn delete(view: &StatementView, stmt: &Delete, given: WriteInputs<'_>) -> Result<StatementWrites> {
    let WriteInputs { params, queries } = given;
    let table = view.table(&stmt.table)?;
    if clears(view, &table, stmt)? {
        return clear(view, &table);
    }
    let is_joined = !stmt.using.is_empty();
    let returned =
        Returned::new(view, &table, &name_in(&stmt.table, &stmt.alias), &stmt.returning, &stmt.using)?;
    let computed = returned.takes_nothing().then(Vec::new);
    let query = queries.rows.of(computed, || delete_query(stmt, &returned))?;
    let mut found = view.select_rowkeys(query, FOUND_ROWKEY, params).await?;
    if let Some(limit) = limit_of_pairs(stmt) {
        found = first_rows(found, limit_value(view, limit, params).await?)?;
    }
    let (found, taken) = returned.split(found)?;
    let target = WriteTarget::new(view, &table, (&stmt.table, &stmt.alias), &returned.items, params);
    Rewriting::new(target, found.num_rows(), None).all(FoundRows::new(found, is_joined), taken).await
}

/// The LIMIT of a DELETE whose query finds pairs of rows, of which it counts the first ones only.
fn limit_of_pairs(stmt: &Delete) -> Option<&Expr> {
    stmt.limit.as_ref().filter(|_| !stmt.using.is_empty())
}

/// The number of rows in a LIMIT; `None`: all. Errors: it is no number, or is negative.
async fn limit_value(view: &StatementView, limit: &Expr, params: &[Value]) -> Result<Option<usize>> {
    let number = view.compute(&format!("SELECT CAST({limit} AS BIGINT)"), Vec::new(), params).await?;
    match any_value_at(number.column(0), 0)? {
        Value::Int(rows) => usize::try_from(rows).map(Some).map_err(|_| {
            Error::invalid(format!("LIMIT takes a number of rows, not {rows}"))
                .hint("write LIMIT 10")
                .state(sqlstate::LIMIT_COUNT)
        }),
        _ => Ok(None),
    }
}

/// The pairs found of the first `limit` rows.
fn first_rows(found: RecordBatch, limit: Option<usize>) -> Result<RecordBatch> {
    let Some(limit) = limit else { return Ok(found) };
    let mut rows = HashSet::new();
    for at in 0..found.num_rows() {
        rows.insert(rowkey_at(found.column(0), at)?);
        if rows.len() > limit {
            return Ok(found.slice(0, at));
        }
    }
    Ok(found)
}

/// Can the DELETE clear its table without visiting the rows? It must ask for nothing but their number, they
/// must be many, and no index build, REKEY or counter may depend on single deletes.
pub(super) fn clears(view: &StatementView, table: &TableDef, stmt: &Delete) -> Result<bool> {
    let is_plain = stmt.filter.is_none() && stmt.limit.is_none() && stmt.returning.is_none();
    let is_alone = stmt.hints.is_empty() && stmt.using.is_empty() && stmt.order_by.is_empty();
    let is_at_rest = table.rekey.is_none() && table.splits.is_empty();
    let is_all_there_is = table.ttl_us.is_none() && table.history.is_none();
    let are_ready = table.indexes.iter().all(|index| index.state == IndexState::Ready);
    if !(is_plain && is_alone && is_at_rest && is_all_there_is && are_ready) {
        return Ok(false);
    }
    let reader = view.snapshot.reader()?;
    if reader.entries(table.rows())? < ROWS_CLEARED {
        return Ok(false);
    }
    for referrer in view.catalog.references_to(table.id).iter().filter(|of| of.child.id != table.id) {
        // That it is empty is recorded, unlike a number of entries.
        let mut cursor = reader.cursor(referrer.child.rows(), &KeyRange::all(), Direction::Forward)?;
        if cursor.next()?.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Clears the keyspaces of a table.
fn clear(view: &StatementView, table: &TableDef) -> Result<StatementWrites> {
    let affected = stored::count(table, &*view.snapshot.reader()?, &view.watch)?;
    let mut batch = WriteBatch::default();
    table.keyspaces().for_each(|keyspace| batch.clear(keyspace));
    Ok(StatementWrites { batch, affected, returning: None })
}

/// Writes the rows of an UPDATE or DELETE, piece by piece.
struct Rewriting<'a> {
    target: WriteTarget<'a>,
    /// The new values; `None`: the rows are deleted.
    assigned: Option<&'a Assigned<'a>>,
    writes: Writes<'a>,
    /// Advanced counters of identity columns.
    counters: WriteBatch,
    affected: u64,
    /// Rows for RETURNING.
    returned: Vec<ReturnedRow>,
    /// The error for a row whose key would change, if columns of the key are assigned.
    moved: Option<Error>,
    /// Only the changed columns matter: no CHECK, foreign key or RETURNING needs the whole row.
    is_simple: bool,
    /// What index entries that change are made from; `None`: none do.
    sources: Option<ColumnProjection>,
    /// The rows may be gathered and written through the bulk door, if they are many.
    may_be_many: bool,
    /// Which row is changed first does not matter.
    in_any_order: bool,
}

/// A row that was written.
struct ReturnedRow {
    rowkey: Rowkey,
    /// The new row, or the old one if it was deleted.
    row: Vec<Value>,
    /// Its position among the rows found.
    place: u64,
}

impl<'a> Rewriting<'a> {
    /// `rows`: their expected number.
    fn new(target: WriteTarget<'a>, rows: usize, assigned: Option<&'a Assigned<'a>>) -> Self {
        let mut batch = WriteBatch::default();
        batch.mutations.reserve(rows.min(ROWS_RESERVED));
        let WriteTarget { view, table, returning, .. } = target;
        let changed = assigned.map(|assigned| assigned.targets);
        let is_set = |id: &ColumnId| changed.is_some_and(|changed| changed.contains(id));
        let refers = table.references.iter().any(|reference| reference.columns.iter().any(is_set));
        let is_checked = refers || changed.is_some() && !table.checks.is_empty();
        let is_numbered = assigned.is_some_and(|assigned| !assigned.numbered.is_empty());
        let in_any_order = returning.is_none() && !is_numbered;
        let is_simple = in_any_order && !is_checked && Writes::are_simple(table, changed);
        let sources = Writes::sources_of_entries(table, changed);
        let may_be_many =
            view.recording.is_some() && returning.is_none() && Writes::are_apart(table, changed);
        let writes = Writes::new(table, batch, view.as_of_us);
        let (counters, returned) = (WriteBatch::default(), Vec::new());
        Rewriting {
            target,
            assigned,
            writes,
            counters,
            affected: 0,
            returned,
            moved: None,
            is_simple,
            sources,
            may_be_many,
            in_any_order,
        }
    }

    /// Columns of the key may be assigned what they have; for anything else, this is the error.
    fn keeping_keys(self, moved: Option<Error>) -> Self {
        Rewriting { is_simple: self.is_simple && moved.is_none(), moved, ..self }
    }

    /// Errors: a new row has another key.
    fn check_keys(&mut self, old: &[StoredRow], new: &[Vec<Value>]) -> Result<()> {
        let (table, Some(assigned), true) = (self.target.table, self.assigned, self.moved.is_some()) else {
            return Ok(());
        };
        let columns = assigned.targets.iter().filter(|id| table.is_key_column(**id));
        let stays = |(old, new): (&StoredRow, &Vec<Value>)| {
            columns.clone().all(|id| old.values[usize::from(id.0)] == new[usize::from(id.0)])
        };
        if old.iter().zip(new).all(stays) { Ok(()) } else { self.moved.take().map_or(Ok(()), Err) }
    }

    /// Writes all rows. `taken`: columns of other tables, for each row found.
    async fn all(mut self, mut pieces: FoundRows, taken: RecordBatch) -> Result<StatementWrites> {
        if self.in_any_order {
            pieces.sort()?;
        }
        while let Some(piece) = pieces.next().transpose()? {
            self.rewrite(piece).await?;
            if self.may_be_many && self.writes.are_many() {
                return self.through_the_bulk_door(pieces);
            }
        }
        self.finish(taken).await
    }

    /// Writes the pending changes and those of the rows still to come through the store's bulk door, in one atomic
    /// step that keeps other writers out.
    ///
    /// Errors: `Conflict` when something that was read has changed.
    fn through_the_bulk_door(mut self, mut pieces: FoundRows) -> Result<StatementWrites> {
        let WriteTarget { view, table, .. } = self.target;
        let mut bulk = BulkStatement::open(view, table)?;
        let rows = pieces.len();
        if self.is_simple && self.sources.is_none() && pieces.are_in_order() {
            bulk.writer.change_all(table.rows(), rows, &mut |take| {
                self.each_piece(&mut pieces, &mut |writes| {
                    writes.drain().try_for_each(|mutation| take(mutation.change_of_entry()?))
                })
            })?;
        } else {
            let mut gathered = Changes::new(table, bulk.writer.folder());
            self.each_piece(&mut pieces, &mut |writes| gathered.take(writes, &view.watch))?;
            gathered.write_to(&mut *bulk.writer, &view.watch)?;
        }
        self.counters.write_to(&mut *bulk.writer)?;
        bulk.finish()?;
        Ok(StatementWrites { batch: WriteBatch::default(), affected: self.affected, returning: None })
    }

    /// Gives `take` the pending changes, then those of each piece.
    fn each_piece(
        &mut self,
        pieces: &mut FoundRows,
        take: &mut dyn FnMut(&mut Writes<'a>) -> Result<()>,
    ) -> Result<()> {
        let WriteTarget { view, .. } = self.target;
        loop {
            take(&mut self.writes)?;
            let Some(piece) = pieces.next().transpose()? else { break };
            view.db.runtime().block_on(self.rewrite(piece))?;
            view.watch.step("changing rows", self.affected, Some(pieces.len()), "rows")?;
        }
        view.watch.finish("changing rows", self.affected, "rows");
        Ok(())
    }

    /// Writes the changes of a piece.
    async fn rewrite(&mut self, piece: RowPiece) -> Result<()> {
        let WriteTarget { view, table, .. } = self.target;
        view.watch.cancel.check()?;
        if self.is_simple {
            return self.rewrite_simple(piece);
        }
        let old = self.read(&piece)?;
        let new = match self.assigned {
            None => None,
            Some(assigned) => {
                let row = |(n, old): (usize, &StoredRow)| assigned.row(table, &old.values, piece.computed(n));
                let mut new = old.iter().enumerate().map(row).collect::<Result<Vec<_>>>()?;
                assigned.complete(view, table, &mut new, &mut self.counters)?;
                self.check_keys(&old, &new)?;
                check_constraints(view, table, &new).await?;
                let old = old.iter().map(|old| Some(&*old.values));
                check_parents(view, table, old.zip(new.iter().map(Vec::as_slice)), |_, error| error)?;
                Some(new)
            }
        };
        self.write(piece, old, new)
    }

    /// Like `rewrite`, where only the changed columns matter. Rows to delete that have no index entries are not read: the
    /// query has just found them.
    fn rewrite_simple(&mut self, mut piece: RowPiece) -> Result<()> {
        let WriteTarget { view, table, .. } = self.target;
        let Rewriting { assigned, writes, sources, .. } = self;
        self.affected += piece.rowkeys.len() as u64;
        if assigned.is_none() && sources.is_none() {
            piece.rowkeys.into_iter().for_each(|rowkey| writes.remove(rowkey));
            return Ok(());
        }
        let reader = view.snapshot.reader()?;
        let sealed = reader.get_many(table.rows(), &piece.rowkeys())?;
        let (mut changed, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (n, (rowkey, sealed)) in std::mem::take(&mut piece.rowkeys).into_iter().zip(sealed).enumerate() {
            let sealed = sealed.ok_or_else(|| gone(table, &rowkey))?;
            if let Some(sources) = sources {
                stored::values_into(&*reader, table, (&rowkey, sealed), sources, &mut old)?;
            }
            let Some(assigned) = assigned else {
                writes.remove(rowkey.clone());
                writes.change_entries(&*reader, &rowkey, Some(&old), None)?;
                continue;
            };
            changed.clear();
            for value in assigned.values(table, piece.computed(n)) {
                let (id, value) = value?;
                check_null(table, id, &value)?;
                changed.push((id, value));
            }
            if sources.is_none() {
                writes.assign(rowkey, sealed, &changed)?;
                continue;
            }
            new.clone_from(&old);
            changed.iter().for_each(|(id, value)| new[usize::from(id.0)] = value.clone());
            writes.assign(rowkey.clone(), sealed, &changed)?;
            writes.change_entries(&*reader, &rowkey, Some(&old), Some(&new))?;
        }
        Ok(())
    }

    /// Reads the rows of a piece. Errors: `Corrupt` when one is missing that an index has told of.
    fn read(&self, piece: &RowPiece) -> Result<Vec<StoredRow>> {
        let WriteTarget { view, table, .. } = self.target;
        let rowkeys = piece.rowkeys();
        let rows = stored::rows_of(&*view.snapshot.reader()?, table, &rowkeys)?;
        let there = |(row, rowkey): (Option<StoredRow>, &&[u8])| row.ok_or_else(|| gone(table, rowkey));
        rows.into_iter().zip(&rowkeys).map(there).collect()
    }

    /// Writes the new rows of a piece; without `new`, deletes them.
    fn write(&mut self, piece: RowPiece, old: Vec<StoredRow>, new: Option<Vec<Vec<Value>>>) -> Result<()> {
        let reader = self.target.view.snapshot.reader()?;
        let mut new = new.map(Vec::into_iter);
        for ((rowkey, place), old) in piece.rowkeys.into_iter().zip(piece.places).zip(old) {
            let new = new.as_mut().and_then(Iterator::next);
            self.writes.add(&*reader, &rowkey, Some(&old), new.as_deref())?;
            self.affected += 1;
            if self.target.returning.is_some() {
                self.returned.push(ReturnedRow { rowkey, row: new.unwrap_or(old.values), place });
            }
        }
        Ok(())
    }

    /// `taken`: columns of other tables, for each row found.
    async fn finish(self, taken: RecordBatch) -> Result<StatementWrites> {
        let Rewriting { target, writes, counters, affected, returned, .. } = self;
        let mut batch = writes.finish(&*target.view.snapshot.reader()?)?;
        batch.mutations.extend(counters.mutations);
        let others = OtherColumns::new(taken, returned.iter().map(|kept| kept.place));
        let target = WriteTarget { others, ..target };
        let rows = returned.iter().map(|kept| &kept.row[..]);
        let rowkeys: Vec<Rowkey> = returned.iter().map(|kept| kept.rowkey.clone()).collect();
        let returning = target.returning(&rowkeys, rows).await?;
        Ok(StatementWrites { batch, affected, returning })
    }
}

fn gone(table: &TableDef, rowkey: &[u8]) -> Error {
    Error::corrupt(format!("rowkey {} of table \"{}\" is not there", table.key.show(rowkey), table.name))
        .why("an index entry points to it")
        .hint(format!("CHECK TABLE {} lists what is wrong", name_sql(&table.name)))
}

/// The rows found, consumed in pieces.
struct FoundRows {
    found: RecordBatch,
    /// Positions of rows, in the order of their keys; `None`: as they were found.
    sorted: Option<Vec<usize>>,
    at: usize,
    /// Rowkeys so far; `None` where no row is found twice.
    seen: Option<HashSet<Rowkey>>,
}

struct RowPiece {
    rowkeys: Vec<Rowkey>,
    /// The position of each row among those found.
    places: Vec<u64>,
    /// The computed values of all rows found.
    computed: Vec<ArrayRef>,
}

impl RowPiece {
    /// The computed values of the `n`th row.
    fn computed(&self, n: usize) -> impl Iterator<Item = Result<Value>> {
        self.computed.iter().map(move |column| any_value_at(column, self.places[n] as usize))
    }

    fn rowkeys(&self) -> Vec<&[u8]> {
        self.rowkeys.iter().map(|rowkey| &rowkey[..]).collect()
    }
}

impl FoundRows {
    /// `is_joined`: the table is joined, so that a row may be found several times.
    fn new(found: RecordBatch, is_joined: bool) -> FoundRows {
        FoundRows { found, sorted: None, at: 0, seen: is_joined.then(HashSet::new) }
    }

    /// Gives many rows in the order of their keys, in which they are read and written faster, unless the first of
    /// several finds of a row counts.
    fn sort(&mut self) -> Result<()> {
        let (rows, rowkeys) = (self.found.num_rows(), self.found.column(0));
        if !self.are_in_order() {
            return Ok(());
        }
        let (mut last, mut is_sorted) = (&[][..], true);
        for at in 0..rows {
            let before = std::mem::replace(&mut last, key_at(rowkeys, at)?);
            is_sorted &= before <= last;
        }
        if !is_sorted {
            // Each was there a moment ago.
            let keys = (0..rows).map(|at| (at, key_at(rowkeys, at).unwrap_or_default()));
            let sorted = in_key_order(keys, |(_, key)| ((), key));
            self.sorted = Some(sorted.into_iter().map(|(at, _)| at).collect());
        }
        Ok(())
    }

    /// The pieces give each row once, in the order of their keys.
    fn are_in_order(&self) -> bool {
        self.found.num_rows() >= ROWS_SORTED && !self.may_repeat()
    }

    /// A row may be found several times.
    fn may_repeat(&self) -> bool {
        self.seen.is_some()
    }

    /// Rows found in all, duplicates included.
    fn len(&self) -> u64 {
        self.found.num_rows() as u64
    }

    fn piece(&mut self, rows: usize) -> Result<RowPiece> {
        let [rowkeys, computed @ ..] = self.found.columns() else {
            return Err(Error::internal("rows without a rowkey"));
        };
        let mut piece = RowPiece {
            rowkeys: Vec::with_capacity(rows),
            places: Vec::with_capacity(rows),
            computed: computed.to_vec(),
        };
        for at in self.at..self.at + rows {
            let at = self.sorted.as_ref().map_or(at, |sorted| sorted[at]);
            let rowkey = rowkey_at(rowkeys, at)?;
            if self.seen.as_mut().is_none_or(|seen| seen.insert(rowkey.clone())) {
                piece.rowkeys.push(rowkey);
                piece.places.push(at as u64);
            }
        }
        self.at += rows;
        Ok(piece)
    }
}

impl Iterator for FoundRows {
    type Item = Result<RowPiece>;

    fn next(&mut self) -> Option<Result<RowPiece>> {
        let rows = ROWS_READ.min(self.found.num_rows() - self.at);
        (rows > 0).then(|| self.piece(rows))
    }
}

/// The target columns of an UPDATE. Errors: as [`assigned_columns`]; a row would get another key.
fn updated_columns(
    view: &StatementView,
    table: &TableDef,
    stmt: &Update,
    params: &[Value],
) -> Result<Vec<ColumnId>> {
    let targets = assigned_columns(table, &stmt.assignments)?;
    let moves = |(id, set): (&ColumnId, &Assignment)| {
        table.is_key_column(*id) && !stays(stmt, (set, table.column(*id).ty), params)
    };
    match targets.iter().zip(&stmt.assignments).position(moves) {
        Some(at) => Err(moved(view, table, stmt, at)),
        None => Ok(targets),
    }
}

/// The first assignment to a column of the key.
fn key_assignment(table: &TableDef, targets: &[ColumnId]) -> Option<usize> {
    targets.iter().position(|id| table.is_key_column(*id))
}

/// The assignment gives the column what it has, as those do that write whole rows: itself, or the value that the WHERE
/// asks for.
fn stays(stmt: &Update, (set, ty): (&Assignment, ColumnType), params: &[Value]) -> bool {
    let name = name_in(&stmt.table, &stmt.alias);
    let is_it = |expr: &Expr| match expr {
        Expr::Identifier(column) => name_of(column) == name_of(&set.column),
        Expr::CompoundIdentifier(parts) => match &parts[..] {
            [of, column] => name_of(of) == name && name_of(column) == name_of(&set.column),
            _ => false,
        },
        _ => false,
    };
    let value = |expr: &Expr| literal(expr, params).ok().flatten()?.cast(ty).ok();
    let asks_for_it = |term: &Expr| {
        let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = term else { return false };
        let asked = if is_it(left) { value(right) } else { value(left).filter(|_| is_it(right)) };
        asked.is_some() && asked == value(&set.value)
    };
    is_it(&set.value) || stmt.filter.as_ref().is_some_and(|filter| any_term(filter, &asks_for_it))
}

/// One of the conditions that all have to hold is such a one.
fn any_term(filter: &Expr, is_it: &dyn Fn(&Expr) -> bool) -> bool {
    match filter {
        Expr::Nested(inner) => any_term(inner, is_it),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            any_term(left, is_it) || any_term(right, is_it)
        }
        term => is_it(term),
    }
}

/// The error for a row that the assignment `at` would give another key.
fn moved(view: &StatementView, table: &TableDef, stmt: &Update, at: usize) -> Error {
    // DELETE would take them along, or leave them without it.
    let hint = match view.catalog.references_to(table.id) {
        [] => move_rows(table, stmt),
        [referrer, ..] => format!(
            "rows of {} refer to it: in one transaction, INSERT the row under its new key, UPDATE them, and DELETE the \
             old row",
            name_sql(&referrer.child.name)
        ),
    };
    key_update(table, &stmt.assignments[at].column, hint)
}

/// The query that finds the rows of an UPDATE.
pub(super) fn updated_rows(view: &StatementView, stmt: &Update) -> Result<Query> {
    let table = view.table(&stmt.table)?;
    let targets = updated_columns(view, &table, stmt, &[])?;
    let assigned = Assigned::new(view, &table, &stmt.assignments, (&targets, &[]))?;
    let name = name_in(&stmt.table, &stmt.alias);
    update_query(stmt, &assigned, &Returned::new(view, &table, &name, &stmt.returning, &stmt.from)?)
}

/// The query that finds the rows of a DELETE.
pub(super) fn deleted_rows(view: &StatementView, stmt: &Delete) -> Result<Query> {
    let (table, name) = (view.table(&stmt.table)?, name_in(&stmt.table, &stmt.alias));
    delete_query(stmt, &Returned::new(view, &table, &name, &stmt.returning, &stmt.using)?)
}

/// Selects the rowkeys and computed values of an UPDATE, and what RETURNING takes from other tables.
fn update_query(stmt: &Update, assigned: &Assigned, returned: &Returned) -> Result<Query> {
    let name = name_in(&stmt.table, &stmt.alias);
    let mut list = vec![column_item(&name, FOUND_ROWKEY)];
    list.extend(assigned.items());
    list.extend(returned.selected());
    let from = relations(&name_of(&stmt.table), &name, &stmt.from)?;
    select(&stmt.hints, list, from, stmt.filter.clone())
}

/// Selects the rowkeys of a DELETE, and what RETURNING takes from other tables.
fn delete_query(stmt: &Delete, returned: &Returned) -> Result<Query> {
    let name = name_in(&stmt.table, &stmt.alias);
    let mut list = vec![column_item(&name, FOUND_ROWKEY)];
    list.extend(returned.selected());
    let from = relations(&name_of(&stmt.table), &name, &stmt.using)?;
    let mut query = select(&stmt.hints, list, from, stmt.filter.clone())?;
    if !stmt.order_by.is_empty() {
        query.order_by =
            Some(OrderBy { kind: OrderByKind::Expressions(stmt.order_by.clone()), interpolate: None });
    }
    if stmt.limit.is_some() && limit_of_pairs(stmt).is_none() {
        query.limit_clause =
            Some(LimitClause::LimitOffset { limit: stmt.limit.clone(), offset: None, limit_by: Vec::new() });
    }
    Ok(query)
}

/// The statements to suggest in place of an UPDATE of key columns.
fn move_rows(table: &TableDef, stmt: &Update) -> String {
    let (names, values): (Vec<String>, Vec<String>) = table
        .live_columns()
        .map(|(_, column)| {
            let name = name_sql(&column.name);
            let assigned = stmt.assignments.iter().find(|a| name_of(&a.column) == column.name);
            let value = assigned.map_or_else(|| name.clone(), |assignment| assignment.value.to_string());
            (name, value)
        })
        .unzip();
    let keys = stmt
        .assignments
        .iter()
        .filter(|a| table.column_id(&name_of(&a.column)).is_some_and(|id| table.is_key_column(id)));
    let keys: Vec<&Assignment> = keys.collect();
    let is_literal = |a: &&Assignment| matches!(literal(&a.value, &[]), Ok(Some(_)));
    let is_plain = stmt.from.is_empty() && keys.iter().all(is_literal);
    // The new row would have a value of the old one that is there once.
    let is_assigned = |id: ColumnId| keys.iter().any(|a| table.column_id(&name_of(&a.column)) == Some(id));
    let stays = |index: &IndexDef| index.unique && !index.layout.columns().into_iter().any(is_assigned);
    if table.maintained_indexes().any(stays) {
        return "a unique index stands between the old row and the new one: read the row, then DELETE it and INSERT its \
                values under the new key, in one transaction"
            .into();
    }
    let (true, Some(filter)) = (is_plain, &stmt.filter) else {
        return "in one transaction, INSERT the rows under their new keys and DELETE the old ones by theirs"
            .into();
    };
    // The filter may match the new rows too, which must stay.
    let new: Vec<String> = keys.iter().map(|a| format!("{} = {}", a.column, a.value)).collect();
    let (find, remove) = (format!(" WHERE {filter}"), format!("({filter}) AND NOT ({})", new.join(" AND ")));
    // If a new key is taken, the DELETE must not run; if the whole key is assigned, a second row takes it.
    let is_whole = table.key.columns().into_iter().all(is_assigned);
    let only =
        if is_whole { "for one row, and only if the INSERT succeeds" } else { "only if the INSERT succeeds" };
    let mut identities = table.live_columns().filter_map(|(_, column)| column.identity.as_ref());
    let has_always = identities.any(|identity| identity.always);
    let overriding = if has_always { " OVERRIDING SYSTEM VALUE" } else { "" };
    let alias = stmt.alias.as_ref().map(|alias| format!(" AS {alias}")).unwrap_or_default();
    format!(
        "{only}: BEGIN; INSERT INTO {t} ({}){overriding} SELECT {} FROM {t}{alias}{find}; DELETE FROM {t}{alias} WHERE {remove}; COMMIT",
        names.join(", "),
        values.join(", "),
        t = name_sql(&table.name),
    )
}

fn rowkey_at(rowkeys: &dyn Array, at: usize) -> Result<Rowkey> {
    key_at(rowkeys, at).map(Rowkey::from)
}

fn key_at(rowkeys: &dyn Array, at: usize) -> Result<&[u8]> {
    // As scans give them.
    if let Some(rowkeys) = rowkeys.as_any().downcast_ref::<BinaryArray>()
        && rowkeys.is_valid(at)
    {
        return Ok(rowkeys.value(at));
    }
    match ref_at(rowkeys, at)? {
        ValueRef::Text(text) => Ok(text.as_bytes()),
        ValueRef::Bytes(bytes) => Ok(bytes),
        _ => Err(Error::internal("a row without a rowkey")),
    }
}

#[cfg(test)]
mod tests;
