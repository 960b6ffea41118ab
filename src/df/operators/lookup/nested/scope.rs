//! Semi and anti joins with a join of tables: `EXISTS (SELECT 1 FROM item i JOIN product p ON p.id = i.product WHERE
//! i.order_id = o.id AND p.category = 'food')`.
//!
//! Each outer row looks up the items, each item its product, until one is found. The tables of such a join are a
//! [`Scope`]: none of their columns come out, and a match in its last table decides for the outer row. It begins with the
//! table that is compared with the outer row, in whatever order the plan joins them.

use std::ops::RangeInclusive;

use datafusion::physical_plan::joins::HashJoinExec;

use super::asks::Asked;
use super::parts::NestedParts;
use crate::df::below::place;
use crate::df::operators::lookup::JoinKind;
use crate::df::operators::lookup::instead::{given_as, is_plain};
use crate::df::operators::scan::ScanExec;
use crate::df::table::OfRow;
use crate::exec::next_rows::ColumnOf;
use crate::plan::{CmpOp, Field};
use crate::row::{column_type_of, is_same_type};

/// The tables of a semi or anti join.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Outer rows with a match come out; otherwise those without.
    pub wants_match: bool,
    /// Their levels in a search: the first table of all is at level 0.
    pub levels: RangeInclusive<usize>,
}

/// Tables that an outer row looks through, one after the other, for one match.
pub struct AnyMatch {
    pub kind: JoinKind,
    /// Each table, and what it is asked with. Columns of the tables are numbered from the outer rows' on.
    pub tables: Vec<(ScanExec, Vec<(Asked, OfRow)>)>,
}

impl AnyMatch {
    /// Takes the right side of a join apart, for outer rows with these columns of `before` tables. `None` if it is a
    /// single table, or not such a join.
    pub fn of(join: &HashJoinExec, outer: &[ColumnOf], before: usize) -> Option<AnyMatch> {
        let kind = JoinKind::of(*join.join_type())
            .filter(|kind| matches!(kind, JoinKind::Semi | JoinKind::Anti) && is_plain(join))?;
        let Graph { tables, output, edges } = Graph::of(NestedParts::of(join.right())?)?;
        let (of_rows, of_tables) = (join.left().schema(), join.right().schema());
        let pair = |(row, found): &(_, _)| {
            let (row, found) = (place(row)?, place(found)?);
            let is_same = is_same_type(of_rows.field(row), of_tables.field(found));
            Some((*outer.get(row)?, *output.get(found)?)).filter(|_| is_same)
        };
        let pairs: Vec<(ColumnOf, ColumnOf)> = join.on().iter().map(pair).collect::<Option<_>>()?;
        let has_key = |(table, on): &(usize, Vec<(Asked, OfRow)>)| {
            on.iter().any(|(_, term)| tables[*table].request.leads(term.field))
        };
        // The table that has all of the join columns, or columns that equal them.
        let of_root = |root: usize| {
            let on = |(row, found): &(ColumnOf, ColumnOf)| {
                Some((Asked::Column(*row), term(&tables, edges.equal_in(*found, root)?)?))
            };
            Some((root, pairs.iter().map(on).collect::<Option<Vec<_>>>()?)).filter(has_key)
        };
        let mut asked = vec![(0..tables.len()).find_map(of_root)?];
        while asked.len() < tables.len() {
            let placed = |table: usize| asked.iter().position(|(known, _)| *known == table);
            let told = |next: usize| {
                let of_next = edges.of(next).filter_map(|(known, own)| {
                    let known = ColumnOf { table: before + placed(known.table)?, ..known };
                    Some(term(&tables, own).map(|own| (Asked::Column(known), own)))
                });
                Some((next, of_next.collect::<Option<Vec<_>>>()?)).filter(has_key)
            };
            let next = (0..tables.len()).filter(|next| placed(*next).is_none()).find_map(told)?;
            asked.push(next);
        }
        let mut tables: Vec<Option<ScanExec>> = tables.into_iter().map(Some).collect();
        let tables = asked.into_iter().map(|(table, on)| Some((tables.get_mut(table)?.take()?, on)));
        Some(AnyMatch { kind, tables: tables.collect::<Option<_>>()? })
    }
}

/// Inner and semi joins, whatever their order.
struct Graph {
    tables: Vec<ScanExec>,
    output: Vec<ColumnOf>,
    edges: Edges,
}

/// Pairs of columns that are equal.
struct Edges(Vec<(ColumnOf, ColumnOf)>);

impl Graph {
    /// `None` if the parts are a single table, or do more than to join tables by equal columns.
    fn of(parts: NestedParts) -> Option<Graph> {
        let NestedParts { first, joins, cuts, output, above, .. } = parts;
        if joins.is_empty() || !above.is_empty() || !cuts.iter().all(|cut| cut.cuts_nothing()) {
            return None;
        }
        let (mut tables, mut edges) = (vec![first], Vec::new());
        for join in joins {
            // It does not matter how many matches there are.
            let is_inner = match join.kind {
                JoinKind::Inner => join.first.is_none(),
                kind => kind == JoinKind::Semi,
            };
            let is_plain = join.totals.is_none() && join.residual.is_empty() && join.scope.is_none();
            if !is_inner || !is_plain {
                return None;
            }
            let table = tables.len();
            for (asked, OfRow { field, op, .. }) in join.of_row.iter().zip(&join.on) {
                let (Asked::Column(known), CmpOp::Eq) = (asked, op) else { return None };
                let column = join.table.request.column_of(*field)?;
                edges.push((*known, ColumnOf { table, column }));
            }
            tables.push(join.table);
        }
        // A column may come out twice, as wider integers, too: either is the first one.
        let first = |ColumnOf { table, column }| {
            let request = &tables.get(table)?.request;
            Some(ColumnOf { table, column: request.column_of(request.output_field(column)?)? })
        };
        let edges = edges.into_iter().map(|(a, b)| Some((first(a)?, first(b)?)));
        let edges = Edges(edges.collect::<Option<_>>()?);
        let output = output.into_iter().map(first).collect::<Option<_>>()?;
        Some(Graph { tables, output, edges })
    }
}

impl Edges {
    /// For each edge of a table: the column on the other side, and the table's own.
    fn of(&self, table: usize) -> impl Iterator<Item = (ColumnOf, ColumnOf)> {
        let edges = self.0.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
        edges.filter(move |(_, own)| own.table == table)
    }

    /// A column of this table that equals the column.
    fn equal_in(&self, column: ColumnOf, table: usize) -> Option<ColumnOf> {
        let mut equal = vec![column];
        let mut next = 0;
        while let Some(known) = equal.get(next).copied() {
            if known.table == table {
                return Some(known);
            }
            for (other, own) in self.of(known.table) {
                if own == known && !equal.contains(&other) {
                    equal.push(other);
                }
            }
            next += 1;
        }
        None
    }
}

/// The condition that a column equals a value; `None` for what is no column, or is not compared like its bytes.
fn term(tables: &[ScanExec], of: ColumnOf) -> Option<OfRow> {
    let request = &tables.get(of.table)?.request;
    let Field::Column(id) = request.output_field(of.column)? else { return None };
    let ty = request.table().column(id).ty;
    let is_same = column_type_of(request.schema.field(of.column)).is_some_and(|given| given_as(ty, given));
    (is_same && ty.compares_as_bytes()).then(|| OfRow::equal(id, ty))
}
