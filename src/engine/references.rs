//! Foreign keys: whether the row that is referred to is there, and who refers to a row.
//!
//! New rows are held against their parents before they are written: the keys are encoded and read, all together. What
//! is not there may still come ([`Later`]). What becomes of the children of a row that goes away is a statement like any
//! other (`engine/session/references.rs` runs it, in the transaction of the statement that took the row away). Both sides
//! read what they rely on through the snapshot that records reads, so of two commits that would leave a child without its
//! parent, the later one is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::view::StatementView;
use crate::catalog::{Catalog, Referrer};
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::check::Problem;
use crate::exec::dml::{ROWS_READ, rowkey_from};
use crate::exec::stored;
use crate::index::entry_of;
use crate::key::{ColumnId, KeyRange, Rowkey};
use crate::schema::{IndexState, OnDelete, ParentKey, Reference, TableDef, TableId};
use crate::sql::{Statement, name_of, name_sql};
use crate::store::Direction;
use crate::value::{Value, quoted_name, sql_of};

/// Values (count) of which one statement finds the children, at most: also 1 and 16, so that few texts are planned.
const VALUES: [usize; 3] = [1, 16, 256];

/// The values of a reference's columns in one row.
pub type Referred = Vec<Value>;

/// The values of these columns; `None` if one is NULL, so that the row refers to nothing.
pub fn referred(columns: &[ColumnId], row: &[Value]) -> Option<Referred> {
    let values: Referred = columns.iter().map(|id| row[usize::from(id.0)].clone()).collect();
    (!values.iter().any(Value::is_null)).then_some(values)
}

/// Errors: a row refers to one that is not there; `of_row` adds which row it is, by its position. `rows`: before, if they
/// were there, and after.
pub fn check_parents<'r>(
    view: &StatementView,
    table: &TableDef,
    rows: impl Iterator<Item = (Option<&'r [Value]>, &'r [Value])> + Clone,
    of_row: impl Fn(usize, Error) -> Error,
) -> Result<()> {
    for reference in &table.references {
        let is_new = |(old, new): (Option<&'r [Value]>, &'r [Value])| {
            let of = |row| referred(&reference.columns, row);
            of(new).filter(|to| old.and_then(of).as_ref() != Some(to))
        };
        let new = rows.clone().filter_map(is_new);
        let parent = parent_of(view, reference)?;
        let lacking = lacking(view, reference, parent, new)?;
        if lacking.is_empty() {
            continue;
        }
        match view.later.of(reference) {
            Some(unchecked) => unchecked.add(table, reference, lacking),
            None => {
                let lacks = |row| is_new(row).filter(|values| lacking.contains(values));
                let mut found = rows.clone().enumerate().filter_map(|(at, row)| Some((at, lacks(row)?)));
                let Some((at, values)) = found.next() else {
                    return Err(Error::internal("values that no row has are not there"));
                };
                return Err(of_row(at, no_parent(table, reference, parent, &values)));
            }
        }
    }
    Ok(())
}

/// The error for a row with these values, which no row of the parent has.
pub fn no_parent(table: &TableDef, reference: &Reference, parent: &TableDef, values: &[Value]) -> Error {
    let there = show(parent, &reference.parent_columns, values);
    let key = name_list(parent, &reference.parent_columns);
    let mut hint = format!("INSERT it into {} first", name_sql(&parent.name));
    if reference.columns.iter().any(|id| table.column(*id).nullable) {
        hint += ", or leave the row without one: NULL";
    }
    let columns = name_list(table, &reference.columns);
    Error::invalid(format!("table \"{}\" has no row with {there}", parent.name))
        .why(format!(
            "foreign key \"{}\": {columns} of \"{}\" refers to {key} there",
            reference.name, table.name
        ))
        .hint(hint)
        .state(sqlstate::FOREIGN_KEY)
        .of_column(reference.columns.first().map_or("", |id| table.column_name(*id)))
}

/// When foreign keys are checked that are not checked at once. A statement that writes rows which refer to each other, or
/// from which something follows, checks them when it ends; deferred ones wait for the end of the transaction.
#[derive(Clone, Default)]
pub struct Later {
    statement: Option<Arc<Unchecked>>,
    transaction: Option<Arc<Unchecked>>,
    /// In the transaction, all are deferred.
    defers_all: bool,
}

impl Later {
    /// Within a transaction, if one is open.
    pub fn of_transaction(open: Option<&Arc<Unchecked>>, defers_all: bool) -> Later {
        Later { statement: None, transaction: open.cloned(), defers_all }
    }

    /// Within a statement that checks these when it ends.
    pub fn of_statement(self, unchecked: &Arc<Unchecked>) -> Later {
        Later { statement: Some(Arc::clone(unchecked)), ..self }
    }

    /// Where to keep what is checked later; `None`: it is checked now.
    pub fn of(&self, reference: &Reference) -> Option<&Unchecked> {
        let of_transaction = self.transaction.as_deref().filter(|_| reference.deferred || self.defers_all);
        of_transaction.or(self.statement.as_deref())
    }
}

/// What foreign keys have to look at: values that the parent had no row with, by table and foreign key. What was undone
/// meanwhile does no harm, for then no row has these values.
#[derive(Default)]
pub struct Unchecked(Mutex<BTreeMap<(TableId, Reference), BTreeSet<Referred>>>);

impl Unchecked {
    /// Adds values by which rows of the table may refer to rows that are not there.
    pub fn add(&self, table: &TableDef, reference: &Reference, values: impl IntoIterator<Item = Referred>) {
        self.0.lock().entry((table.id, reference.clone())).or_default().extend(values);
    }

    /// Nothing is to be looked at.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// What is to be looked at: foreign keys that are there still, and values.
    pub fn of(&self, catalog: &Catalog) -> Vec<(Referrer, Vec<Referred>)> {
        let all = self.0.lock();
        let found = |((child, reference), values): (&(TableId, Reference), &BTreeSet<Referred>)| {
            let mut referrers = catalog.references_to(reference.parent).iter();
            let of_child = referrers.find(|of| of.child.id == *child && of.reference() == reference)?;
            Some((of_child.clone(), values.iter().cloned().collect()))
        };
        all.iter().filter_map(found).collect()
    }
}

/// The table that a reference refers to.
pub fn parent_of<'v>(view: &'v StatementView, reference: &Reference) -> Result<&'v Arc<TableDef>> {
    view.catalog.table_by_id(reference.parent).ok_or_else(|| {
        Error::corrupt(format!("foreign key \"{}\" refers to a table that is not there", reference.name))
    })
}

/// The error when the index that tells the parents is not Ready.
fn not_ready(reference: &Reference, parent: &TableDef) -> Error {
    let Some(ParentKey::Index(index)) = reference.keys_in(parent).next() else {
        return Error::internal("a foreign key without a key");
    };
    let hint = match index.state {
        IndexState::Building => "SHOW INDEXES says when it is Ready".to_owned(),
        _ => format!(
            "REPAIR INDEX {} builds it anew; if rows share a key, drop the foreign key until they do not",
            name_sql(&index.name)
        ),
    };
    Error::new(Kind::Unavailable, format!("index \"{}\" is not Ready", index.name))
        .why(format!("foreign key \"{}\" looks into it for rows of \"{}\"", reference.name, parent.name))
        .hint(hint)
        .state(sqlstate::OBJECT_STATE)
}

/// Those of the values that no row of the parent has, each once.
///
/// Errors: the index that would tell is not Ready.
pub fn lacking(
    view: &StatementView,
    reference: &Reference,
    parent: &TableDef,
    values: impl Iterator<Item = Referred>,
) -> Result<Vec<Referred>> {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return Ok(Vec::new());
    }
    let Some(key) = reference.key_in(parent) else {
        return Err(not_ready(reference, parent));
    };
    let (mut lacking, mut wanted) = (Vec::new(), BTreeMap::new());
    // A row of which only the columns referred to have values.
    let mut row = vec![Value::Null; parent.columns.len()];
    for values in values {
        for (id, value) in reference.parent_columns.iter().zip(&values) {
            row[usize::from(id.0)] = value.clone();
        }
        match encoded(parent, key, &row)? {
            Some(key) => drop(wanted.insert(key, values)),
            None => lacking.push(values),
        }
    }
    if wanted.is_empty() {
        return Ok(lacking);
    }
    let keyspace = match key {
        ParentKey::Rowkey => parent.rows(),
        ParentKey::Index(index) => index.keyspace,
    };
    let reader = view.snapshot.reader()?;
    let keys: Vec<&[u8]> = wanted.keys().map(|key| &key[..]).collect();
    let found =
        reader.get_many(keyspace, &keys)?.into_iter().map(|value| value.is_some()).collect::<Vec<_>>();
    lacking.extend(wanted.into_values().zip(found).filter(|(_, found)| !found).map(|(values, _)| values));
    Ok(lacking)
}

/// The key under which the parent has this row, if it has it; `None` if no key can hold its values.
fn encoded(parent: &TableDef, key: ParentKey<'_>, row: &[Value]) -> Result<Option<Rowkey>> {
    let encoded = match key {
        ParentKey::Rowkey => rowkey_from(parent, row, 0).map(Some),
        ParentKey::Index(index) => {
            entry_of(parent, index, row, &[]).map(|entry| entry.map(|entry| entry.key))
        }
    };
    match encoded {
        Err(e) if e.kind() == Kind::Invalid => Ok(None),
        encoded => encoded,
    }
}

/// What is to be done about the children of rows that are gone.
pub struct FollowUp {
    /// The text of a statement, which takes the values as its parameters.
    pub sql: String,
    pub params: Vec<Value>,
}

/// The statements for the children of rows that had these values: a query of one of them, if that is refused.
pub fn follow_ups<'g>(
    referrer: &Referrer,
    action: OnDelete,
    gone: &'g [Referred],
) -> impl Iterator<Item = FollowUp> + use<'g> {
    let (child, reference) = (&referrer.child, referrer.reference());
    let table = quoted_name(&child.name);
    let columns: Vec<String> =
        reference.columns.iter().map(|id| quoted_name(child.column_name(*id))).collect();
    let set = |to: &str| {
        let set: Vec<String> = columns.iter().map(|column| format!("{column} = {to}")).collect();
        format!("UPDATE {table} SET {}", set.join(", "))
    };
    let names = columns.join(", ");
    let (head, tail) = match action {
        OnDelete::Refuse => (format!("SELECT {names} FROM {table}"), " LIMIT 1"),
        OnDelete::Cascade => (format!("DELETE FROM {table}"), ""),
        OnDelete::SetNull => (set("NULL"), ""),
        OnDelete::SetDefault => (set("DEFAULT"), ""),
    };
    let largest = VALUES[VALUES.len() - 1];
    let follow_up = move |gone: &[Referred]| {
        let places = VALUES.iter().copied().find(|n| *n >= gone.len()).unwrap_or(largest);
        // Values that come twice change nothing.
        let params = gone.iter().cycle().take(places).flatten().cloned().collect();
        let mut n = 0;
        let mut place = || {
            n += 1;
            format!("${n}")
        };
        let tuples: Vec<String> = (0..places)
            .map(|_| match &columns[..] {
                [_] => place(),
                many => format!("({})", many.iter().map(|_| place()).collect::<Vec<_>>().join(", ")),
            })
            .collect();
        let left = if columns.len() == 1 { names.clone() } else { format!("({names})") };
        FollowUp { sql: format!("{head} WHERE {left} IN ({}){tail}", tuples.join(", ")), params }
    };
    gone.chunks(largest).map(follow_up)
}

/// The error for a row that goes away, or gets other values, while another one refers to it by these.
pub fn still_referred(referrer: &Referrer, parent: &TableDef, values: &[Value]) -> Error {
    let (child, reference) = (&referrer.child, referrer.reference());
    let gone = show(parent, &reference.parent_columns, values);
    let (of, columns) = (name_sql(&child.name), name_list(child, &reference.columns));
    let found: Vec<String> =
        reference.columns.iter().zip(values).map(|(id, value)| equals(child, *id, value)).collect();
    Error::invalid(format!("rows of \"{}\" refer to {gone} of \"{}\"", child.name, parent.name))
        .why(format!("foreign key \"{}\": {columns} has to be in \"{}\"", reference.name, parent.name))
        .hint(format!(
            "SELECT * FROM {of} WHERE {} shows them: DELETE or UPDATE them first",
            found.join(" AND ")
        ))
        .state(sqlstate::FOREIGN_KEY)
}

/// Rows of the table that refer to one that is not there, up to `limit`; rows that cannot be read, and what follows one
/// that the store cannot read, are left to the other checks.
pub fn missing_parents(view: &StatementView, table: &TableDef, limit: usize) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let mut references = Vec::with_capacity(table.references.len());
    for reference in &table.references {
        let parent = parent_of(view, reference)?;
        // An index that is not Ready is another problem.
        references.extend(reference.key_in(parent).map(|_| (reference, parent)));
    }
    if references.is_empty() {
        return Ok(problems);
    }
    let reader = view.snapshot.unrecorded()?;
    let mut cursor = reader.cursor(table.rows(), &KeyRange::all(), Direction::Forward)?;
    loop {
        view.watch.cancel.check()?;
        let mut rowkeys: Vec<Rowkey> = Vec::with_capacity(ROWS_READ);
        while rowkeys.len() < ROWS_READ
            && let Ok(Some((rowkey, _))) = cursor.next()
        {
            rowkeys.push(rowkey.into());
        }
        if rowkeys.is_empty() {
            return Ok(problems);
        }
        let keys: Vec<&[u8]> = rowkeys.iter().map(|rowkey| &rowkey[..]).collect();
        let one = |key: &[u8]| stored::rows_of(&*reader, table, &[key]).ok()?.pop()?;
        let read = stored::rows_of(&*reader, table, &keys);
        let read = read.unwrap_or_else(|_| keys.iter().map(|key| one(key)).collect());
        let there = rowkeys.iter().zip(read).filter_map(|(rowkey, row)| Some((rowkey, row?.values)));
        let rows: Vec<_> = there.filter(|(_, row)| table.is_alive(row, view.as_of_us)).collect();
        for (reference, parent) in &references {
            let of = |row: &[Value]| referred(&reference.columns, row);
            let lacking: BTreeSet<Referred> =
                lacking(view, reference, parent, rows.iter().filter_map(|(_, row)| of(row)))?
                    .into_iter()
                    .collect();
            for (rowkey, row) in &rows {
                let Some(values) = of(row).filter(|values| lacking.contains(values)) else { continue };
                if problems.len() == limit {
                    return Ok(problems);
                }
                problems.push(Problem {
                    problem: "missing_parent",
                    table: table.name.clone(),
                    primary_key: table.key.show(rowkey).to_string(),
                    column: name_list(table, &reference.columns),
                    detail: format!(
                        "foreign key \"{}\": table \"{}\" has no row with {}",
                        reference.name,
                        parent.name,
                        show(parent, &reference.parent_columns, &values)
                    ),
                    ..Problem::default()
                });
            }
        }
    }
}

/// The rows that refer to one that is not there, as after FROM.
pub fn orphans(table: &TableDef, reference: &Reference, parent: &TableDef) -> String {
    let child = |id: &ColumnId| format!("c.{}", name_sql(table.column_name(*id)));
    let there: Vec<String> =
        reference.columns.iter().map(|id| format!("{} IS NOT NULL", child(id))).collect();
    let pairs = reference.columns.iter().zip(&reference.parent_columns);
    let same: Vec<String> = pairs
        .map(|(id, other)| format!("p.{} = {}", name_sql(parent.column_name(*other)), child(id)))
        .collect();
    format!(
        "{} AS c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})",
        name_sql(&table.name),
        there.join(" AND "),
        name_sql(&parent.name),
        same.join(" AND ")
    )
}

/// What EXPLAIN says of a statement's foreign keys: what is read for each row, a line each.
pub fn explained(view: &StatementView, statement: &Statement) -> Result<Vec<String>> {
    let Some(table) = statement.written_table().map(|name| view.table(name)).transpose()? else {
        return Ok(Vec::new());
    };
    let mut lines = Vec::new();
    let set = columns_set(&table, statement);
    for reference in &table.references {
        let is_set = |id: &ColumnId| set.as_ref().is_none_or(|set| set.contains(id));
        if matches!(statement, Statement::Delete(_)) || !reference.columns.iter().any(is_set) {
            continue;
        }
        let parent = parent_of(view, reference)?;
        let of = match reference.key_in(parent) {
            Some(ParentKey::Index(index)) => &index.name,
            Some(ParentKey::Rowkey) | None => &parent.name,
        };
        lines.push(format!("  foreign key: {}: Get {of}", reference.name));
    }
    for referrer in Bonds::of(&view.catalog, &table, statement).to {
        let (child, reference) = (&referrer.child, referrer.reference());
        let path = match reference.path_in(child) {
            Some(Some(index)) => format!("IndexScan {}", index.name),
            Some(None) => format!("RangeScan {}", child.name),
            None => format!("FullScan {}", child.name),
        };
        let action = match statement {
            Statement::Delete(_) => on_delete_sql(reference.on_delete),
            _ => String::new(),
        };
        lines.push(format!("  foreign key: {} of {}: {path}{action}", reference.name, child.name));
    }
    Ok(lines)
}

/// The columns that an UPDATE sets; `None` for other statements.
fn columns_set(table: &TableDef, statement: &Statement) -> Option<Vec<ColumnId>> {
    let Statement::Update(update) = statement else { return None };
    let names = update.assignments.iter().map(|assignment| name_of(&assignment.column));
    Some(names.filter_map(|name| table.column_id(&name)).collect())
}

/// The error of COMMIT for a row that refers to one which is not there.
pub fn left_alone(table: &TableDef, reference: &Reference, parent: &TableDef, values: &[Value]) -> Error {
    let there = show(parent, &reference.parent_columns, values);
    let own = show(table, &reference.columns, values);
    Error::invalid(format!("a row of \"{}\" refers to {there} of \"{}\", which has no such row", table.name, parent.name))
        .why(format!("foreign key \"{}\" is checked now", reference.name))
        .hint(format!(
            "SELECT * FROM {} WHERE {own} shows it; the transaction is open still: mend it and COMMIT, or ROLLBACK",
            name_sql(&table.name)
        ))
        .state(sqlstate::FOREIGN_KEY)
}

/// What a statement that writes may do to rows that refer to each other.
#[derive(Default)]
pub struct Bonds {
    /// References to rows that may go away, or get other values.
    pub to: Vec<Referrer>,
    /// New rows may refer to each other.
    refers_to_itself: bool,
}

impl Bonds {
    /// Those of a statement on this table.
    pub fn of(catalog: &Catalog, table: &TableDef, statement: &Statement) -> Bonds {
        let set = columns_set(table, statement);
        let is_set =
            |columns: &[ColumnId]| set.as_ref().is_none_or(|set| columns.iter().any(|id| set.contains(id)));
        let may_lose = |reference: &Reference| match statement {
            Statement::Delete(_) => true,
            Statement::Update(_) => is_set(&reference.parent_columns),
            // It may overwrite a row, but for its rowkey.
            Statement::Insert(insert) => {
                insert.mode.changes_rows()
                    && !reference.parent_columns.iter().all(|id| table.is_key_column(*id))
            }
            _ => false,
        };
        let referrers = catalog.references_to(table.id).iter();
        let to = referrers.filter(|referrer| may_lose(referrer.reference())).cloned().collect();
        let is_written = matches!(statement, Statement::Insert(_) | Statement::Update(_));
        let of_itself = |reference: &Reference| reference.parent == table.id && is_set(&reference.columns);
        Bonds { to, refers_to_itself: is_written && table.references.iter().any(of_itself) }
    }

    /// The statement concerns no references, or only those that are checked row by row.
    pub fn is_empty(&self) -> bool {
        self.to.is_empty() && !self.refers_to_itself
    }
}

/// `a = 1 AND b = 'x'`, for messages.
fn show(table: &TableDef, columns: &[ColumnId], values: &[Value]) -> String {
    let pairs: Vec<String> =
        columns.iter().zip(values).map(|(id, value)| equals(table, *id, value)).collect();
    pairs.join(" AND ")
}

fn equals(table: &TableDef, id: ColumnId, value: &Value) -> String {
    format!("{} = {}", name_sql(table.column_name(id)), sql_of(value))
}

/// `(a, b)`
pub fn name_list(table: &TableDef, columns: &[ColumnId]) -> String {
    let names: Vec<String> = columns.iter().map(|id| name_sql(table.column_name(*id))).collect();
    format!("({})", names.join(", "))
}

/// `FOREIGN KEY (a) REFERENCES parent (b) ON DELETE CASCADE`
pub fn reference_sql(table: &TableDef, reference: &Reference, parent: &TableDef) -> String {
    format!(
        "FOREIGN KEY {} REFERENCES {} {}{}{}",
        name_list(table, &reference.columns),
        name_sql(&parent.name),
        name_list(parent, &reference.parent_columns),
        on_delete_sql(reference.on_delete),
        if reference.deferred { " DEFERRABLE INITIALLY DEFERRED" } else { "" }
    )
}

/// ` ON DELETE CASCADE`, or nothing.
pub fn on_delete_sql(action: OnDelete) -> String {
    match action {
        OnDelete::Refuse => String::new(),
        OnDelete::Cascade | OnDelete::SetNull | OnDelete::SetDefault => {
            format!(" ON DELETE {}", action.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Database;
    use crate::engine::build::set_state;
    use crate::error::Kind;
    use crate::exec::watch::CancelHandle;
    use crate::schema::IndexState;

    /// While the UNIQUE index that they go by is Broken, nothing tells whether a parent is there.
    #[test]
    fn a_key_that_is_not_ready_cannot_go_away() {
        let db = Database::in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE p (id INT PRIMARY KEY, a INT UNIQUE);
             INSERT INTO p VALUES (7, 7), (8, 8);
             CREATE TABLE c (id INT PRIMARY KEY, a INT REFERENCES p (a));
             INSERT INTO c VALUES (1, 7)",
        )
        .unwrap();
        let (_, index) = db.catalog().index("p_a_key").unwrap();
        set_state(&db, index.id, IndexState::Broken, &CancelHandle::default()).unwrap();
        for sql in ["DROP INDEX p_a_key", "ALTER TABLE p DROP COLUMN a", "DROP TABLE p"] {
            assert_eq!(db.execute(sql).unwrap_err().sqlstate(), "2BP01", "{sql}");
        }
        for sql in ["INSERT INTO c VALUES (2, 8)", "DELETE FROM p WHERE id = 7"] {
            let refused = db.execute(sql).unwrap_err();
            assert_eq!(refused.kind(), Kind::Unavailable, "{sql}");
            assert!(refused.to_string().contains("REPAIR INDEX p_a_key"), "{sql}: {refused}");
        }
        // A dump without the index is one without the foreign key.
        let mut script = Vec::new();
        db.dump(&mut script).unwrap();
        let again = Database::in_memory().unwrap();
        again.execute_batch(&String::from_utf8(script).unwrap()).unwrap();
        assert_eq!(again.query("SELECT * FROM c").unwrap().count(), 1);

        db.execute("REPAIR INDEX p_a_key").unwrap();
        db.execute("INSERT INTO c VALUES (2, 8)").unwrap();
        assert_eq!(db.execute("DELETE FROM p WHERE id = 7").unwrap_err().sqlstate(), "23503");
    }
}
