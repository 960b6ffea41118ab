//! The columns of a table or index table under the names that a query uses.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};

use crate::access::{Hints, Source};
use crate::df::computed::{hidden_name, wide_name};
use crate::df::expr::{ComputedField, FieldNames};
use crate::df::rewrite::widens;
use crate::exec::scan::field_type;
use crate::key::{ColumnId, KeyLayout, KeyPart, PartExpr};
use crate::plan::{Field, Formula, Predicate};
use crate::row::field;
use crate::schema::{IndexDef, IndexState, TableDef, TableStatistics};

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

/// Hints and statistics for one table.
#[derive(Clone, Debug, Default)]
pub struct TableAdvice {
    /// Hints of the statement.
    pub hints: Hints,
    /// What ANALYZE found, if it ran.
    pub statistics: Option<Arc<TableStatistics>>,
}

impl QueryRelation {
    /// `rowkeys`: names under which the rowkey is a column of the schema, unless a column has the name.
    pub(super) fn new(
        table: Arc<TableDef>,
        index: Option<IndexDef>,
        rowkeys: &[&str],
        advice: TableAdvice,
    ) -> QueryRelation {
        let mut columns: Vec<(String, Field, bool)> = Vec::new();
        match &index {
            None => {
                for (id, column) in table.live_columns() {
                    columns.push((column.name.clone(), Field::Column(id), column.nullable));
                }
            }
            Some(index) => {
                let mut ids: Vec<_> = index.layout.columns();
                ids.retain(|id| index.layout.decodable().contains(id));
                ids.extend(table.included(index).filter(|id| !index.layout.decodable().contains(id)));
                for id in ids {
                    let column = table.column(id);
                    columns.push((column.name.clone(), Field::Column(id), column.nullable));
                }
                columns.push(("primary_rowkey".into(), Field::PrimaryRowkey, false));
            }
        }
        for name in rowkeys {
            if !columns.iter().any(|(n, ..)| n == name) {
                columns.push(((*name).into(), Field::Rowkey, false));
            }
        }
        let mut names = FieldNames::default();
        let mut fields = Vec::new();
        let mut arrow_fields = Vec::new();
        for (name, f, nullable) in columns {
            let ty = field_type(&table, index.as_ref(), f);
            names.columns.insert(name.clone(), (f, ty));
            arrow_fields.push(field(&name, ty, nullable));
            fields.push(f);
        }
        if index.is_none() {
            let leads = |id: ColumnId| {
                let of_all =
                    table.indexes.iter().filter(|i| i.filter.is_none() && i.state == IndexState::Ready);
                let is_id = |part: &&KeyPart| part.columns() == [id];
                let leading = |i: &IndexDef| {
                    i.layout
                        .parts()
                        .iter()
                        .find(|part| is_id(part) || part.buckets().is_none())
                        .filter(is_id)
                        .is_some()
                };
                of_all.into_iter().any(leading)
            };
            let computed = |(id, formula): (ColumnId, &Formula)| ComputedField {
                // Those that were stored before there was a canonical form may have another one.
                formula: formula.clone().canonical(),
                field: Field::Column(id),
                ty: table.column(id).ty,
                leads: leads(id),
            };
            names.formulas = table.formulas().map(computed).collect();
        }
        let schema = Arc::new(Schema::new(arrow_fields));
        let mut relation = QueryRelation { table, index, fields, names, schema, advice, computed: None };
        let mut parts: Vec<Arc<PartExpr>> = Vec::new();
        let layout = relation.index.as_ref().map(|index| &index.layout);
        let layouts = layout.into_iter().chain(relation.layouts().filter(|_| layout.is_none()));
        for part in layouts.flat_map(KeyLayout::parts).filter_map(PartExpr::of) {
            if !parts.iter().any(|known| **known == part) {
                parts.push(Arc::new(part));
            }
        }
        relation.names.parts = parts;
        relation
    }

    /// Adds the table's hidden columns.
    pub(super) fn with_hidden(&self) -> QueryRelation {
        let QueryRelation { table, index, mut fields, mut names, schema, advice, computed } = self.clone();
        let mut arrow_fields = schema.fields().to_vec();
        for (id, column) in table.stored_columns().filter(|(_, column)| column.hidden) {
            let (of_column, name) = (Field::Column(id), column.name.clone());
            arrow_fields.push(Arc::new(field(&name, column.ty, column.nullable)));
            names.columns.insert(name, (of_column, column.ty));
            fields.push(of_column);
        }
        let schema = Arc::new(Schema::new(arrow_fields));
        QueryRelation { table, index, fields, names, schema, advice, computed }
    }

    /// Adds hidden columns for formulas of indexes that hold all rows, or all rows for which `known` is true: other
    /// rows may have no value stored.
    pub(super) fn with_computed(&self, known: &Predicate, number: usize) -> Option<QueryRelation> {
        if self.computed.is_some() || self.names.formulas.is_empty() {
            return None;
        }
        let QueryRelation { table, index, mut fields, mut names, schema, advice, .. } = self.clone();
        let has_all = |index: &&IndexDef| {
            index.state == IndexState::Ready
                && index.filter.as_ref().is_none_or(|filter| known.implies(filter))
        };
        let sure: Vec<ColumnId> =
            table.indexes.iter().filter(has_all).flat_map(|i| i.layout.columns()).collect();
        let mut arrow_fields = schema.fields().to_vec();
        for ComputedField { field: computed, ty, .. } in &self.names.formulas {
            let Field::Column(id) = computed else { continue };
            if sure.contains(id) {
                let name = hidden_name(table.column_name(*id), number);
                arrow_fields.push(Arc::new(field(&name, *ty, true)));
                names.columns.insert(name, (*computed, *ty));
                fields.push(*computed);
            }
        }
        let is_more = fields.len() > self.fields.len();
        let schema = Arc::new(Schema::new(arrow_fields));
        is_more.then_some(QueryRelation {
            table,
            index,
            fields,
            names,
            schema,
            advice,
            computed: Some(number),
        })
    }

    /// Adds a hidden column with the values of a column of integers as wider ones, unless it is there; and its position.
    pub(super) fn with_wide(&self, column: &str, wide: &DataType) -> Option<(QueryRelation, usize)> {
        let narrow = self.schema.field_with_name(column).ok()?;
        let bytes = wide.primitive_width().filter(|_| widens(narrow.data_type(), wide))?;
        let name = wide_name(column, bytes);
        let mut with = self.clone();
        let at = match self.schema.index_of(&name) {
            Ok(at) => at,
            Err(_) => {
                // Conditions are on the column itself, in its own type.
                with.names.columns.insert(name.clone(), *self.names.columns.get(column)?);
                with.fields.push(self.fields[self.schema.index_of(column).ok()?]);
                let added = ArrowField::new(name, wide.clone(), narrow.is_nullable());
                let fields = self.schema.fields().iter().cloned().chain([Arc::new(added)]);
                with.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
                self.fields.len()
            }
        };
        Some((with, at))
    }

    /// Layouts of the rowkey and of all indexes without a WHERE.
    pub(super) fn layouts(&self) -> impl Iterator<Item = &KeyLayout> {
        let of_all = |index: &&IndexDef| index.filter.is_none() && index.state == IndexState::Ready;
        let indexes = self.table.indexes.iter().filter(of_all).map(|index| &index.layout);
        std::iter::once(&self.table.key).chain(indexes)
    }

    /// The columns of a key before this one, which are all `fixed` to one value; `None`: no key has the column there.
    pub(super) fn led_by(&self, field: Field, fixed: &[ColumnId]) -> Option<Vec<ColumnId>> {
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
                && index.filter.as_ref().is_some_and(|filter| is_there.implies(filter))
        };
        let partial = self.table.indexes.iter().filter(has_all).map(|index| &index.layout);
        self.layouts().chain(partial).find_map(before)
    }

    pub(super) fn source(&self) -> Source<'_> {
        match &self.index {
            Some(index) => Source::Index(&self.table, index),
            None => Source::Table(&self.table),
        }
    }
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

    /// The table or index table whose rowkey this column is, and its first binary part, if no part of that key is plain
    /// text; for a pattern, which may match the front of keys: nor begins as a text.
    pub fn binary_keys(&self, column: &str, is_pattern: bool) -> Option<(String, String)> {
        let QueryRelation { table, index, names, .. } = &*self.relation;
        let (layout, name) = match (names.columns.get(column)?.0, index) {
            (Field::Column(_), _) => return None,
            (Field::Rowkey, Some(index)) => (&index.layout, &index.name),
            (Field::Rowkey | Field::PrimaryRowkey, _) => (&table.key, &table.name),
        };
        let parts = layout.parts();
        let begins_as_text = || parts.first().is_some_and(KeyPart::begins_as_text);
        if parts.iter().any(KeyPart::is_text) || is_pattern && begins_as_text() {
            return None;
        }
        // A text that something follows ends with marks, but is text for whoever reads the definition.
        let part = parts.iter().find(|part| part.is_binary()).or_else(|| parts.first())?;
        Some((name.clone(), part.sql().to_owned()))
    }
}
