//! The columns of a table or index table under the names that a query uses.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};

use crate::access::{Hints, Source};
use crate::design::keys::KeyspaceLayout;
use crate::df::computed::{hidden_name, wide_name};
use crate::df::expr::{ComputedField, FieldNames};
use crate::df::rewrite::widens;
use crate::exec::scan::field_type;
use crate::key::{ColumnId, KeyLayout, KeyPart, PartExpr};
use crate::plan::{Field, Formula, Predicate};
use crate::row::field;
use crate::schema::{IndexDef, IndexState, TableDef, TableStatistics};
use crate::value::ColumnType;

/// A table or index table under the names that a query uses.
#[derive(Clone)]
pub(super) struct QueryRelation {
    pub(super) table: Arc<TableDef>,
    /// Set if the query reads the index table itself.
    pub(super) index: Option<IndexDef>,
    pub(super) fields: Vec<Field>,
    pub(super) names: FieldNames,
    pub(super) schema: SchemaRef,
    pub(super) advice: TableAdvice,
    /// The source number in the names of its hidden columns, if it has any.
    pub(super) computed: Option<usize>,
}

/// A column under its name, the field that it shows, and the type of that.
type QueryColumn = (ArrowField, Field, ColumnType);

/// Hints and statistics for one table.
#[derive(Clone, Debug, Default)]
pub struct TableAdvice {
    /// Hints of the statement.
    pub hints: Hints,
    /// What ANALYZE found, if it ran.
    pub statistics: Option<Arc<TableStatistics>>,
}

/// What a comparison with a text asks of a rowkey.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AsksFor {
    /// `=`, `IN`: to be this key.
    Key,
    /// `<`, `BETWEEN`: to lie on one side of these bytes, which may be the start of a key.
    Bound,
    /// `LIKE`: to look like it.
    Pattern,
}

impl QueryRelation {
    /// `rowkeys`: names under which the rowkey is a column of the schema, unless a column has the name.
    pub(super) fn new(
        table: Arc<TableDef>,
        index: Option<IndexDef>,
        rowkeys: &[&str],
        advice: TableAdvice,
    ) -> QueryRelation {
        let columns = columns(&table, index.as_ref(), rowkeys).into_iter().map(|(name, of, nullable)| {
            let ty = field_type(&table, index.as_ref(), of);
            (field(name, ty, nullable), of, ty)
        });
        let columns: Vec<QueryColumn> = columns.collect();
        let (fields, names, schema) = (Vec::new(), FieldNames::default(), Arc::new(Schema::empty()));
        let relation = QueryRelation { table, index, fields, names, schema, advice, computed: None };
        let mut relation = relation.with(columns);
        if relation.index.is_none() {
            relation.names.formulas = relation.formulas();
        }
        relation.names.parts = relation.key_parts();
        relation
    }

    /// With more columns, behind those that are there.
    fn with(mut self, added: Vec<QueryColumn>) -> QueryRelation {
        let mut shown = self.schema.fields().to_vec();
        for (column, field, ty) in added {
            self.names.columns.insert(column.name().clone(), (field, ty));
            self.fields.push(field);
            shown.push(Arc::new(column));
        }
        self.schema = Arc::new(Schema::new(shown));
        self
    }

    /// The formulas that the table stores.
    fn formulas(&self) -> Vec<ComputedField> {
        let leads = |layout: &KeyLayout, id: ColumnId| {
            let is_id = |part: &&KeyPart| part.columns() == [id];
            let first = layout.parts().iter().find(|part| is_id(part) || part.buckets().is_none());
            first.filter(is_id).is_some()
        };
        let computed = |(id, formula): (ColumnId, &Formula)| ComputedField {
            // Those that were stored before there was a canonical form may have another one.
            formula: formula.clone().canonical(),
            field: Field::Column(id),
            ty: self.table.column(id).ty,
            leads: self.layouts().skip(1).any(|layout| leads(layout, id)),
        };
        self.table.formulas().map(computed).collect()
    }

    /// What its key and its indexes compute of columns, or the index that is read itself.
    fn key_parts(&self) -> Vec<Arc<PartExpr>> {
        let mut parts: Vec<Arc<PartExpr>> = Vec::new();
        let layout = self.index.as_ref().map(|index| &index.layout);
        let layouts = layout.into_iter().chain(self.layouts().filter(|_| layout.is_none()));
        for part in layouts.flat_map(KeyLayout::parts).filter_map(PartExpr::of) {
            if !parts.iter().any(|known| **known == part) {
                parts.push(Arc::new(part));
            }
        }
        parts
    }

    /// Adds the hidden columns with the times of rows.
    pub(super) fn with_hidden(&self) -> QueryRelation {
        let stored = self.table.stored_columns();
        let hidden = stored.filter(|(_, column)| column.hidden && column.identity.is_none());
        let hidden = hidden.map(|(id, column)| {
            (field(&column.name, column.ty, column.nullable), Field::Column(id), column.ty)
        });
        self.clone().with(hidden.collect())
    }

    /// Adds hidden columns for formulas of indexes that hold all rows, or all rows for which `known` is true: other
    /// rows may have no value stored.
    pub(super) fn with_computed(&self, known: &Predicate, number: usize) -> Option<QueryRelation> {
        if self.computed.is_some() || self.names.formulas.is_empty() {
            return None;
        }
        let has_all = |index: &&IndexDef| {
            index.state == IndexState::Ready
                && index.filter.as_ref().is_none_or(|filter| known.implies(filter))
        };
        let sure: Vec<ColumnId> =
            self.table.indexes.iter().filter(has_all).flat_map(|i| i.layout.columns()).collect();
        let column = |computed: &ComputedField| {
            let ComputedField { field: Field::Column(id), ty, .. } = *computed else { return None };
            let name = sure.contains(&id).then(|| hidden_name(self.table.column_name(id), number))?;
            Some((field(name, ty, true), Field::Column(id), ty))
        };
        let added: Vec<QueryColumn> = self.names.formulas.iter().filter_map(column).collect();
        (!added.is_empty()).then(|| QueryRelation { computed: Some(number), ..self.clone().with(added) })
    }

    /// Adds a hidden column with the values of a column of integers as wider ones, unless it is there; and its position.
    pub(super) fn with_wide(&self, column: &str, wide: &DataType) -> Option<(QueryRelation, usize)> {
        let narrow = self.schema.field_with_name(column).ok()?;
        let bytes = wide.primitive_width().filter(|_| widens(narrow.data_type(), wide))?;
        let name = wide_name(column, bytes);
        if let Ok(at) = self.schema.index_of(&name) {
            return Some((self.clone(), at));
        }
        // Conditions are on the column itself, in its own type.
        let (field, ty) = *self.names.columns.get(column)?;
        let added = ArrowField::new(name, wide.clone(), narrow.is_nullable());
        Some((self.clone().with(vec![(added, field, ty)]), self.fields.len()))
    }

    /// Layouts of the rowkey and of all indexes without a WHERE.
    pub(super) fn layouts(&self) -> impl Iterator<Item = &KeyLayout> {
        let of_all = |index: &&IndexDef| index.filter.is_none() && index.state == IndexState::Ready;
        let indexes = self.table.indexes.iter().filter(of_all).map(|index| &index.layout);
        std::iter::once(&self.table.key).chain(indexes)
    }

    /// A key that has this column behind none but those that are `fixed` to one value; `None`: no key has.
    pub(super) fn led_by(&self, field: Field, fixed: &[ColumnId]) -> Option<LedKey<'_>> {
        let Field::Column(id) = field else { return None };
        if self.advice.hints.full {
            return None;
        }
        // A bucket has many values, unless the value follows it.
        let is_bucket = |part: &KeyPart| part.buckets().is_some() && part.columns().contains(&id);
        let is_fixed =
            |part: &KeyPart| !part.is_random() && part.columns().iter().all(|of| fixed.contains(of));
        let before = |layout: &KeyLayout| {
            let parts = layout.parts();
            let at = parts.iter().position(|part| !is_bucket(part) && !is_fixed(part))?;
            let fixed = parts[..at].iter().filter(|part| !is_bucket(part));
            parts[at].columns().contains(&id).then(|| fixed.flat_map(KeyPart::columns).copied().collect())
        };
        // What equals something is not NULL, which may be all that a partial index asks for.
        let is_there = Predicate::not(Predicate::is_null(field));
        let has_all = |index: &&IndexDef| {
            index.state == IndexState::Ready
                && index.filter.as_ref().is_none_or(|filter| is_there.implies(filter))
        };
        if let Some(before) = before(&self.table.key) {
            return Some(LedKey { index: None, before });
        }
        let mut indexes = self.table.indexes.iter().filter(has_all);
        indexes.find_map(|index| Some(LedKey { index: Some(&index.name), before: before(&index.layout)? }))
    }

    pub(super) fn source(&self) -> Source<'_> {
        match &self.index {
            Some(index) => Source::Index(&self.table, index),
            None => Source::Table(&self.table),
        }
    }
}

/// A key that is led by a column.
pub(super) struct LedKey<'r> {
    /// The index's name; `None`: it is the rowkey.
    pub index: Option<&'r str>,
    /// The columns before that one.
    pub before: Vec<ColumnId>,
}

/// Names of the columns of a table or index table, in order, without `rowkey`.
pub fn names_of(table: &TableDef, index: Option<&IndexDef>) -> Vec<String> {
    columns(table, index, &[]).into_iter().map(|(name, ..)| name).collect()
}

/// The columns of a table or index table: their names, their fields, and whether they may be NULL.
fn columns(table: &TableDef, index: Option<&IndexDef>, rowkeys: &[&str]) -> Vec<(String, Field, bool)> {
    let of = |id| {
        let column = table.column(id);
        (column.name.clone(), Field::Column(id), column.nullable)
    };
    let mut columns: Vec<_> = match index {
        None => table.live_columns().map(|(id, _)| of(id)).collect(),
        Some(index) => {
            let decodable = index.layout.decodable();
            let mut ids: Vec<_> = index.layout.columns();
            ids.retain(|id| decodable.contains(id));
            ids.extend(table.included(index).filter(|id| !decodable.contains(id)));
            let rowkey = ("primary_rowkey".into(), Field::PrimaryRowkey, false);
            ids.into_iter().map(of).chain([rowkey]).collect()
        }
    };
    for name in rowkeys {
        if !columns.iter().any(|(n, ..)| n == name) {
            columns.push(((*name).into(), Field::Rowkey, false));
        }
    }
    columns
}

impl super::TableSource {
    /// The columns in front of `column` in a key that has it as a part of its own, if there are any: those of the key with
    /// the fewest.
    pub fn in_front_of(&self, column: &str) -> Option<Vec<Field>> {
        let QueryRelation { names, index: None, .. } = &*self.relation else { return None };
        let (Field::Column(id), _) = names.columns.get(column)? else { return None };
        let front = |layout: &KeyLayout| {
            let is_own = |part: &KeyPart| part.columns() == [*id] && part.buckets().is_none();
            let parts = layout.parts();
            let front = &parts[..parts.iter().position(is_own)?];
            let mut fields: Vec<Field> =
                front.iter().flat_map(|part| part.columns()).map(|id| Field::Column(*id)).collect();
            fields.sort_unstable();
            fields.dedup();
            (!fields.is_empty()).then_some(fields)
        };
        self.relation.layouts().filter_map(front).min_by_key(Vec::len)
    }

    /// If `text` beside this column would be taken for the bytes of a rowkey that it is not: the table or index table
    /// whose rowkey the column is, and the part that is no plain text.
    pub fn misread(&self, column: &str, text: &str, asks: AsksFor) -> Option<(String, KeyPart)> {
        let QueryRelation { table, index, names, .. } = &*self.relation;
        let keys = match (names.columns.get(column)?.0, index) {
            (Field::Column(_), _) => return None,
            (Field::Rowkey, Some(index)) => KeyspaceLayout::of_index(table, index),
            (Field::Rowkey | Field::PrimaryRowkey, _) => KeyspaceLayout::of_table(table),
        };
        let (name, layout) = keys.layout;
        let parts = layout.parts();
        // A text that something follows ends with marks, but is text for whoever reads the definition.
        let part =
            parts.iter().find(|part| part.is_binary()).or(parts.iter().find(|part| !part.is_text()))?;
        let has_text = parts.iter().any(KeyPart::is_text);
        let is_meant = match asks {
            AsksFor::Pattern => has_text || parts.first().is_some_and(KeyPart::begins_as_text),
            AsksFor::Key => has_text && keys.has(text.as_bytes()) && !keys.has_in_hex(text),
            AsksFor::Bound => has_text && !keys.has_in_hex(text),
        };
        (!is_meant).then(|| (name.to_owned(), part.clone()))
    }
}
