//! Formulas of an index: its keys that are none of the key forms, and expressions in its WHERE.

use std::sync::Arc;

use sqlparser::ast::{Expr, Query, SelectItem, SetExpr};

use super::Database;
use super::ddl::{COLUMNS_MAX, drawn_entry};
use crate::access::Guards;
use crate::catalog::Catalog;
use crate::df::index_terms::too_much_for_an_index;
use crate::df::query::{Moments, NameScope, Planner};
use crate::df::table::Binding;
use crate::error::{Error, Result, sqlstate};
use crate::key::ColumnId;
use crate::plan::{Formula, Predicate};
use crate::schema::TableDef;
use crate::sql::{KeyExpr, is_key_form, name_sql, not_a_formula, parse_query, span_of};
use crate::value::quoted_name;

/// Buckets (count) that a hint proposes in place of a random number.
const DRAWN_BUCKETS: u32 = 16;

/// Finds formulas and adds a hidden column to `table` for each.
pub struct Formulas<'a> {
    pub db: &'a Database,
    pub catalog: &'a Catalog,
    pub table: &'a mut TableDef,
}

impl Formulas<'_> {
    /// For each key that is not a key form, its hidden column. Errors: it is no valid formula either.
    pub fn of_keys(&mut self, keys: &[KeyExpr]) -> Result<Vec<Option<ColumnId>>> {
        let plain = self.without_indexes()?;
        let column = |key: &KeyExpr| {
            if key.sql.replace(' ', "").eq_ignore_ascii_case("random()") {
                return Err(drawn_entry(self.table, DRAWN_BUCKETS).at(key.span));
            }
            if is_key_form(&key.expr) {
                return Ok(None);
            }
            let mut query = self.query()?;
            if let SetExpr::Select(select) = &mut *query.body {
                select.projection = vec![SelectItem::UnnamedExpr(key.expr.clone())];
            }
            let found = Planner::shared().formula(query, &self.scope(&plain)?);
            match found.map_err(|e| e.at(key.span))? {
                // For example `coalesce(a, b)`, if `a` is never NULL.
                Some(Formula::Column(id)) => Ok(Some(id)),
                Some(formula) => self.column(formula).map(Some),
                None => Err(not_a_formula(&key.expr).at(key.span)),
            }
        };
        keys.iter().map(column).collect()
    }

    /// The WHERE of an index as a predicate.
    pub fn condition(&mut self, filter: &Expr) -> Result<Predicate> {
        let mut query = self.query()?;
        if let SetExpr::Select(select) = &mut *query.body {
            select.selection = Some(filter.clone());
        }
        let planner = Planner::shared();
        let at = span_of(filter);
        let first = planner.condition(query.clone(), &self.scope(self.catalog)?).map_err(|e| e.at(at))?;
        if !first.predicate.has_opaque() {
            return Ok(first.predicate);
        }
        // Once more, with hidden columns for the expressions it compares.
        for formula in first.formulas {
            self.column(formula)?;
        }
        let mut edit = self.catalog.edit();
        edit.put_table(self.table.clone())?;
        let (catalog, _) = edit.finish()?;
        let second = planner.condition(query, &self.scope(&catalog)?).map_err(|e| e.at(at))?;
        match second.predicate.has_opaque() {
            true => Err(too_much_for_an_index().at(at)),
            false => Ok(second.predicate),
        }
    }

    /// The catalog with this table stripped of its indexes: a formula must be made of stored columns, not of
    /// the hidden columns that an index offers in their place.
    fn without_indexes(&self) -> Result<Catalog> {
        let mut edit = self.catalog.edit();
        edit.put_table(TableDef { indexes: Vec::new(), ..self.table.clone() })?;
        Ok(edit.finish()?.0)
    }

    fn query(&self) -> Result<Query> {
        parse_query(&format!("SELECT 1 FROM {}", quoted_name(&self.table.name)))
    }

    fn scope<'c>(&self, catalog: &'c Catalog) -> Result<NameScope<'c>> {
        let snapshot = self.db.store().snapshot()?;
        let binding = Binding {
            snapshot,
            params: Arc::from([]),
            guards: Guards::default(),
            as_of_us: 0,
            may_sort: true,
        };
        static NONE: Moments = Moments::new();
        Ok(NameScope { catalog, moments: &NONE, binding, rowkeys: Vec::new(), rows: Vec::new(), now_us: 0 })
    }

    fn column(&mut self, formula: Formula) -> Result<ColumnId> {
        let ty = formula.ty().ok_or_else(|| Error::internal("a column or a literal as a formula"))?;
        let sql = formula.sql(&|id| name_sql(self.table.column_name(id)));
        let id = self.table.formula_column(formula, ty, sql);
        if self.table.columns.len() > COLUMNS_MAX {
            let what =
                format!("a table has {COLUMNS_MAX} columns at the most, those that indexes compute included");
            return Err(Error::invalid(what).state(sqlstate::LIMIT));
        }
        Ok(id)
    }
}
