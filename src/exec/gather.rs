//! Rows by way of several indexes: collects the rowkeys of each branch, unites or intersects them in key order, and
//! then GETs each row, unless the entries contain everything that is wanted.

use std::collections::VecDeque;

use super::pull::{Pull, TOGETHER, dangling};
use super::sink::Sink;
use super::sources::Sources;
use super::spec::{ScanCounters, ScanSpec};
use super::view::{RowScratch, StoredRowView, see_entry};
use super::walk::{Visited, Walk};
use crate::access::{Access, Method, SetOp};
use crate::error::Result;
use crate::index::open_entry;
use crate::key::{ColumnId, Rowkey};
use crate::plan::{Field, Filter, RowView};
use crate::schema::{IndexDef, IndexId, TableDef};
use crate::store::Direction;
use crate::value::Value;

/// A union or intersection of rowkeys in progress.
pub struct Gather {
    set: SetOp,
    direction: Direction,
    /// How to build rows from entries alone: one for each branch of a union, one in all for an intersection. Empty if
    /// all rows must be read.
    reported: Vec<EntryColumns>,
    /// Branches still to be walked; the first may be in progress.
    branches: VecDeque<Branch>,
    /// Rows found so far by the first branch.
    walked: Vec<Pointer>,
    /// Rows found by the branches before it: sorted, without duplicates; in the scan's direction once no branch is
    /// left.
    found: Option<Vec<Pointer>>,
    /// The first of them that is not given out yet.
    next: usize,
}

/// A row that was found.
struct Pointer {
    key: Rowkey,
    /// The index whose entry points at it.
    index: Option<IndexId>,
    /// Index in [`Gather::reported`] of the columns known of it.
    reported: usize,
    /// The values of those columns.
    values: Vec<Value>,
}

/// The columns that entries provide, besides the rowkey.
struct EntryColumns {
    columns: Vec<ColumnId>,
    /// How to derive all wanted fields from them.
    sources: Sources,
}

/// One access in progress.
enum Branch {
    /// Rowkeys given by the query; the rows may not exist.
    Keys(Vec<Rowkey>),
    Rows(Walk),
    Entries {
        walk: Walk,
        index: Box<IndexDef>,
        filter: Filter,
        sources: Sources,
        /// Columns whose values are kept.
        kept: Vec<ColumnId>,
        reported: usize,
    },
}

impl Gather {
    /// Begins with nothing read.
    pub fn new(
        spec: &ScanSpec,
        set: SetOp,
        branches: &[Access],
        direction: Direction,
        covering: bool,
    ) -> Gather {
        let held: Vec<Vec<ColumnId>> = branches.iter().map(|access| held_by(spec, access)).collect();
        let mut fields = spec.access.filter.fields();
        fields.extend(&*spec.output);
        let reported = |held: &[ColumnId]| {
            let mut columns = Vec::new();
            fields.iter().for_each(|field| wanted_of(&spec.table, *field, held, &mut columns));
            EntryColumns { sources: Sources::of_known(&spec.table, &columns, &fields), columns }
        };
        let mut reported: Vec<EntryColumns> = match set {
            _ if !covering => Vec::new(),
            SetOp::Union => held.iter().map(|held| reported(held)).collect(),
            SetOp::Intersection => vec![reported(&held.concat())],
        };
        let mut kept: Vec<Vec<ColumnId>> = match set {
            SetOp::Union => reported.iter().map(|reported| reported.columns.clone()).collect(),
            // Each column is taken from the first branch that has it.
            SetOp::Intersection => {
                let mut left = reported.first().map(|reported| reported.columns.clone()).unwrap_or_default();
                held.iter().map(|held| left.extract_if(.., |id| held.contains(id)).collect()).collect()
            }
        };
        if let (SetOp::Intersection, [all]) = (set, &mut reported[..]) {
            all.columns = kept.concat();
        }
        kept.resize(branches.len(), Vec::new());
        let branches = branches.iter().zip(kept).enumerate();
        let branches = branches.map(|(at, (access, kept))| Branch::new(spec, access, kept, at)).collect();
        Gather { set, direction, reported, branches, walked: Vec::new(), found: None, next: 0 }
    }

    /// Collects rowkeys, or fills `out` with the rows when all are found; false if nothing follows.
    pub fn go(&mut self, pull: &Pull<'_>, out: &mut impl Sink) -> Result<bool> {
        let Some(branch) = self.branches.front_mut() else { return self.rows(pull, out) };
        if !branch.walk(pull, &mut self.walked)? {
            self.branches.pop_front();
            self.put_together();
        }
        Ok(true)
    }

    /// Unites or intersects the rows of a branch with those of the branches before it.
    fn put_together(&mut self) {
        let mut walked = std::mem::take(&mut self.walked);
        let mut found = match (self.set, self.found.take()) {
            (SetOp::Intersection, Some(mut before)) => {
                walked.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                before.retain_mut(|row| match walked.binary_search_by(|other| other.key.cmp(&row.key)) {
                    Ok(at) => {
                        row.values.append(&mut walked[at].values);
                        true
                    }
                    Err(_) => false,
                });
                before
            }
            (_, before) => {
                let mut all = match before {
                    Some(mut before) => {
                        before.append(&mut walked);
                        before
                    }
                    None => walked,
                };
                // Of two with one key, keep the one that comes from an index. This sort merges what is in order.
                all.sort_by(|a, b| a.key.cmp(&b.key).then(b.index.cmp(&a.index)));
                all.dedup_by(|a, b| a.key == b.key);
                all
            }
        };
        if self.set == SetOp::Intersection && found.is_empty() {
            self.branches.clear();
        }
        if self.branches.is_empty() && self.direction == Direction::Reverse {
            found.reverse();
        }
        self.found = Some(found);
    }

    fn rows(&mut self, pull: &Pull<'_>, out: &mut impl Sink) -> Result<bool> {
        let found = self.found.as_deref_mut().unwrap_or_default();
        let spec = pull.spec;
        let mut scratch = RowScratch::new(&spec.table);
        while self.next < found.len() && !out.is_full() {
            let Pointer { key, index, reported, values } = &mut found[self.next];
            if index.is_some()
                && let Some(EntryColumns { columns, sources }) = self.reported.get(*reported)
            {
                self.next += 1;
                let values = columns.iter().copied().zip(std::mem::take(values));
                scratch.decode_known(spec, sources, key, values)?;
                let view = StoredRowView::of_row(spec, sources, key, &scratch);
                if spec.access.filter.passes(&view)? {
                    out.append(spec, &view)?;
                }
                continue;
            }
            let some = found[self.next..].iter().take(TOGETHER.min(out.rows_max() - out.rows()));
            let is_reported = |row: &Pointer| row.index.is_some() && row.reported < self.reported.len();
            let some: Vec<&Pointer> = some.take_while(|row| !is_reported(row)).collect();
            self.next += some.len();
            let keys: Vec<&[u8]> = some.iter().map(|row| &row.key[..]).collect();
            let known = some.iter().filter(|row| row.index.is_none()).count();
            ScanCounters::add(&pull.counters.gets, known as u64);
            ScanCounters::add(&pull.counters.fetched, (keys.len() - known) as u64);
            for (row, value) in some.iter().zip(pull.get_many(spec.table.rows(), &keys)?) {
                let Some(value) = value else {
                    match row.index.and_then(|id| spec.table.index_by_id(id)) {
                        Some(index) => return Err(dangling(spec, index, &row.key)),
                        None => continue,
                    }
                };
                let families = pull.families(&row.key)?;
                pull.row_out(&row.key, value, families.into_iter(), &mut scratch, out)?;
            }
        }
        Ok(self.next < found.len())
    }
}

/// Columns that the entries of a branch contain.
fn held_by(spec: &ScanSpec, access: &Access) -> Vec<ColumnId> {
    access.index(spec.source()).map(|index| index.columns().collect()).unwrap_or_default()
}

/// Adds the columns behind a field that must come from entries, because the rowkey does not give them.
fn wanted_of(table: &TableDef, field: Field, held: &[ColumnId], columns: &mut Vec<ColumnId>) {
    let Field::Column(id) = field else { return };
    if columns.contains(&id) || table.key.decodable().contains(&id) {
        return;
    }
    if held.contains(&id) {
        columns.push(id);
    } else if let Some(formula) = &table.column(id).formula {
        for input in formula.columns() {
            wanted_of(table, Field::Column(input), held, columns);
        }
    }
}

impl Pointer {
    /// A row of which only the rowkey is known.
    fn to(key: Rowkey) -> Pointer {
        Pointer { key, index: None, reported: 0, values: Vec::new() }
    }
}

impl Branch {
    fn new(spec: &ScanSpec, access: &Access, kept: Vec<ColumnId>, reported: usize) -> Branch {
        let index = access.index(spec.source());
        match (&access.method, index) {
            (Method::Scan { .. }, Some(index)) => {
                let mut fields = access.entry_filter.fields();
                fields.extend(kept.iter().map(|id| Field::Column(*id)));
                Branch::Entries {
                    walk: Walk::new(&access.method, index.keyspace),
                    sources: Sources::new(&spec.table, Some(index), &fields),
                    index: Box::new(index.clone()),
                    filter: access.entry_filter.clone(),
                    kept,
                    reported,
                }
            }
            (Method::Scan { .. }, None) => Branch::Rows(Walk::new(&access.method, spec.table.rows())),
            (Method::Get(keys), _) => Branch::Keys(keys.clone()),
            (Method::Empty | Method::Gather { .. }, _) => Branch::Keys(Vec::new()),
        }
    }

    /// Adds rowkeys to `found`; true if there may be more.
    fn walk(&mut self, pull: &Pull<'_>, found: &mut Vec<Pointer>) -> Result<bool> {
        match self {
            Branch::Keys(keys) => {
                found.extend(keys.drain(..).map(Pointer::to));
                Ok(false)
            }
            Branch::Rows(walk) => walk.go(pull.reader, pull.counters, &mut |key, _| {
                found.push(Pointer::to(key.into()));
                Ok(Visited { taken: false, go_on: true })
            }),
            Branch::Entries { walk, index, filter, sources, kept, reported } => {
                let mut scratch = RowScratch::new(&pull.spec.table);
                walk.go(pull.reader, pull.counters, &mut |key, value| {
                    let parts = open_entry(index, key, value)?;
                    let see = |view: &StoredRowView<'_>| {
                        if !filter.passes(view)? {
                            return Ok(None);
                        }
                        let value =
                            |id: &ColumnId| view.field(Field::Column(*id)).map(|value| value.to_value());
                        kept.iter().map(value).collect::<Result<Vec<Value>>>().map(Some)
                    };
                    if let Some(values) = see_entry(pull.spec, sources, index, &parts, &mut scratch, see)? {
                        let (key, index) = (parts.pointer.into(), Some(index.id));
                        found.push(Pointer { key, index, reported: *reported, values });
                    }
                    Ok(Visited { taken: false, go_on: true })
                })
            }
        }
    }
}
