//! A table or index table as DataFusion's table provider.

mod along;
mod matches;
mod relation;
mod request;
mod stand_in;
pub(super) mod template;

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    Expr, LogicalPlan, Projection, SubqueryAlias, TableProviderFilterPushDown, TableScan, TableType,
};
use datafusion::physical_plan::ExecutionPlan;

pub use self::along::ProbePath;
use self::matches::MatchSamples;
pub use self::matches::Matches;
use self::relation::QueryRelation;
pub use self::relation::{AsksFor, TableAdvice, names_of};
use self::request::fixed_by;
pub use self::request::{Bound, OfRow, ScanRequest};
use self::template::{Template, has_params};
use super::computed::hidden_name;
use super::errors::to_df;
use super::expr::{FieldNames, opaque, predicate};
use super::operators::scan::ScanExec;
use super::rewrite::below;
use super::statistics::JumpSamples;
use super::wanted::{FirstFound, RowGoal, Wanted, WantedRows};
use crate::access::{Access, Each, Guards, Method, OrderBy, Path, share_of_equals};
use crate::error::{Error, Result};
use crate::key::ColumnId;
use crate::plan::{Field, Formula, Predicate};
use crate::schema::{IndexDef, TableDef};
use crate::store::Snapshot;
use crate::value::Value;

/// Factor by which finding the first row in order must be cheaper than reading all, if the selectivity is unknown.
const LIKELY: f64 = 4.0;

/// What each run of a plan provides.
#[derive(Clone)]
pub struct Binding {
    /// The snapshot to read.
    pub snapshot: Arc<dyn Snapshot>,
    /// Values of `$1`, `$2`, ... that the plan leaves open.
    pub params: Arc<[Value]>,
    /// Limits on what scans may read.
    pub guards: Guards,
    /// Time of the run, in microseconds since 1970: rows that have expired by then are hidden.
    pub as_of_us: i64,
    /// The plan sorts what it reads even where a path has the first rows in front: no other plan will be tried.
    pub may_sort: bool,
}

/// One mention of a table or index table in a query, over the query's snapshot.
#[derive(Clone)]
pub struct TableSource {
    relation: Arc<QueryRelation>,
    binding: Binding,
    /// Order and number of rows that the statement wants.
    pub wanted: Wanted,
    /// The first rows wanted above a join that finds rows here, if there is one.
    pub first_found: Option<FirstFound>,
    /// The first rows wanted for each row of the join's other side.
    pub first_of_row: Option<FirstFound>,
    /// Only a few rows of each group are needed.
    pub each: Option<Each>,
    /// The order of rows cannot be observed.
    pub any_order: bool,
    /// Only rows that satisfy this are visible.
    seen: Predicate,
}

impl TableSource {
    /// `rowkeys`: names under which the rowkey is a column of the schema, unless a column has the name.
    pub fn new(
        table: Arc<TableDef>,
        index: Option<IndexDef>,
        binding: Binding,
        rowkeys: &[&str],
        advice: TableAdvice,
    ) -> TableSource {
        let relation = Arc::new(QueryRelation::new(table, index, rowkeys, advice));
        TableSource {
            relation,
            binding,
            wanted: Default::default(),
            first_found: None,
            first_of_row: None,
            each: None,
            any_order: false,
            seen: Predicate::True,
        }
    }

    /// The source of a scan, if it reads a table of ours.
    pub fn of(scan: &TableScan) -> DfResult<Option<TableSource>> {
        Ok(source_as_provider(&scan.source)?.downcast_ref::<TableSource>().cloned())
    }

    /// The scan of this source, which is changed.
    pub fn changed_in(&self, scan: &TableScan, change: impl FnOnce(&mut TableSource)) -> TableScan {
        let mut source = self.clone();
        change(&mut source);
        TableScan { source: provider_as_source(Arc::new(source)), ..scan.clone() }
    }

    /// Makes only those rows visible that satisfy `seen`.
    pub fn seeing(self, seen: Predicate) -> TableSource {
        TableSource { seen, ..self }
    }

    /// Adds the hidden columns that hold when a row was written and when it ended.
    pub fn with_hidden(self) -> TableSource {
        TableSource { relation: Arc::new(self.relation.with_hidden()), ..self }
    }

    /// The table that a column of a plan is read from unchanged, and the column's name there.
    pub fn behind(column: &Column, plan: &LogicalPlan) -> DfResult<Option<(TableSource, String)>> {
        match plan {
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => {
                match below(&Expr::Column(column.clone()), plan) {
                    Some(Expr::Column(column)) => TableSource::behind(&column, input),
                    _ => Ok(None),
                }
            }
            LogicalPlan::Filter(filter) => TableSource::behind(column, &filter.input),
            LogicalPlan::TableScan(scan) => {
                Ok(TableSource::of(scan)?.map(|source| (source, column.name.clone())))
            }
            _ => Ok(None),
        }
    }

    /// Adds hidden columns for the formulas that indexes hold for every row that passes `filters`; `number` becomes
    /// part of their names. `None` if there are none, or they are there already.
    pub fn with_computed(&self, filters: &[Expr], number: usize) -> Option<TableSource> {
        let names = &self.relation.names;
        let known =
            filters.iter().filter(|filter| !has_params(filter)).map(|filter| predicate(filter, names));
        let relation = Arc::new(self.relation.with_computed(&Predicate::and(known), number)?);
        Some(TableSource { relation, ..self.clone() })
    }

    /// Adds a hidden column with the values of a column of integers as wider ones, unless it is there; and its position in
    /// the schema. `None`: the type is no wider one.
    pub fn with_wide(&self, column: &str, wide: &DataType) -> Option<(TableSource, usize)> {
        let (relation, at) = self.relation.with_wide(column, wide)?;
        Some((TableSource { relation: Arc::new(relation), ..self.clone() }, at))
    }

    /// Name of the hidden column that holds an expression's value, if its formula `fits`.
    pub fn computed_name(&self, expr: &Expr, fits: &dyn Fn(&Formula) -> bool) -> Option<String> {
        let QueryRelation { table, names, computed, .. } = &*self.relation;
        let known = names.computed(expr).filter(|known| fits(&known.formula))?;
        let Field::Column(id) = known.field else { return None };
        let name = hidden_name(table.column_name(id), (*computed)?);
        names.columns.contains_key(&name).then_some(name)
    }

    /// The field behind a column of the schema, and whether it may be NULL.
    pub fn field(&self, name: &str) -> Option<(Field, bool)> {
        let (field, _) = self.relation.names.columns.get(name)?;
        let nullable = self.relation.schema.field_with_name(name).map_or(true, |f| f.is_nullable());
        Some((*field, nullable))
    }

    /// Names of the rowkey's columns; `None` for an index table, and if equal values may have several rowkeys.
    pub fn key_names(&self) -> Option<Vec<String>> {
        let QueryRelation { table, .. } = &*self.relation;
        let key = table.key.columns();
        let columns: Vec<Expr> =
            key.iter().map(|id| Expr::Column(Column::from_name(table.column_name(*id)))).collect();
        let names = key.iter().map(|id| table.column_name(*id).to_owned()).collect();
        self.are_unique(&columns).then_some(names)
    }

    /// No two rows have the same values in these columns of the schema.
    pub fn are_unique(&self, columns: &[Expr]) -> bool {
        let QueryRelation { table, index, .. } = &*self.relation;
        let names = columns.iter().filter_map(|column| match column {
            Expr::Column(column) => self.field(&column.name),
            _ => None,
        });
        let fields: Vec<Field> = names.map(|(field, _)| field).collect();
        // With a random key part, equal values may get different keys.
        let is_drawn = table.key.is_drawn();
        let settles =
            |id: ColumnId| fields.contains(&Field::Column(id)) && table.column(id).ty.compares_as_bytes();
        index.is_none() && !is_drawn && table.key.columns().into_iter().all(settles)
    }

    /// The column is the leading one of some rowkey or index key.
    pub fn leads(&self, column: &str) -> bool {
        self.field(column).is_some_and(|(field, _)| self.relation.led_by(field, &[]).is_some())
    }

    /// The fields under the query's names.
    pub fn names(&self) -> &FieldNames {
        &self.relation.names
    }

    /// A filter on this table in our algebra; opaque if a parameter does not suit it.
    pub fn predicate(&self, filter: &Expr) -> Predicate {
        let names = &self.relation.names;
        let known = Template::new(filter, names).fill(names, &self.binding);
        known.unwrap_or_else(|| opaque(filter))
    }

    /// Every row that passes `filters` has the same values in these columns.
    pub fn has_one_value(&self, columns: &[Column], filters: &[Expr]) -> bool {
        let filters: Vec<Template> = filters.iter().map(|f| Template::new(f, self.names())).collect();
        let fixed = fixed_by(&filters);
        columns.iter().all(|column| match self.field(&column.name) {
            Some((Field::Column(id), _)) => fixed.contains(&id),
            _ => false,
        })
    }

    /// The `wanted` first rows, of those that pass `filters`, are found at once; `alone`: or at least far more cheaply
    /// than by reading all of them. `read`: the places of the columns that are read.
    pub fn gives_first(
        &self,
        wanted: Wanted,
        read: Option<&Vec<usize>>,
        filters: &[Expr],
        alone: bool,
    ) -> bool {
        let WantedRows::First { rows, .. } = wanted.what else { return false };
        let source = TableSource { wanted, ..self.clone() };
        let scan = source.plan(read, filters, usize::try_from(rows).ok());
        let all = || {
            let source = TableSource { wanted: Wanted::default(), ..self.clone() };
            let scan = source.plan(read, filters, None).ok()?;
            Some(scan.bound().ok()?.spec.access.cost)
        };
        let suits = |access: &Access| {
            let passes_all = access.passes_all();
            let is_fetched = matches!(access.path, Path::IndexFetch(_));
            let is_likely = || !is_fetched || all().is_some_and(|cost| access.cost * LIKELY <= cost);
            access.ordered && (passes_all || alone && is_likely())
        };
        scan.is_ok_and(|scan| scan.bound().is_ok_and(|bound| suits(&bound.spec.access)))
    }

    /// The request with its path; or one for rows sorted by a prefix of the order only, if that is cheaper.
    fn in_some_order(&self, request: ScanRequest) -> Result<(ScanRequest, Bound)> {
        let bind = |request: &ScanRequest| {
            let bound = request.bind(&self.binding)?;
            bound.ok_or_else(|| Error::internal("a parameter does not suit its filter"))
        };
        let bound = bind(&request)?;
        if bound.spec.access.ordered && !request.order.is_empty() {
            return Ok((request, bound));
        }
        // A path that jumps from group to group reads only so many rows of each; others read all of them.
        let of_jumps = self.each.iter().map(|each| each.rows as f64).map(Some);
        for of_jumps in of_jumps.chain([None]) {
            let equal =
                |front: &[OrderBy]| of_jumps.unwrap_or_else(|| self.equal_rows(&request, &bound, front));
            for (order, rows) in self.wanted.otherwise(equal) {
                let mut other = ScanRequest { order, rows, offset: 0, any_order: false, ..request.clone() };
                if other.leading().is_some() {
                    // The scan itself can skip entries before the page.
                    other.offset = request.offset;
                }
                let reached = bind(&other)?;
                let access = &reached.spec.access;
                if access.ordered
                    && (of_jumps.is_none() || access.jumps_each())
                    && access.cost < bound.spec.access.cost
                    && other.check(&reached).is_ok()
                {
                    return Ok((other, reached));
                }
            }
        }
        Ok((request, bound))
    }

    /// Rows (count) that are expected to be equal in the columns of an order: by statistics, or else as many as among the
    /// first rows in that order.
    fn equal_rows(&self, request: &ScanRequest, bound: &Bound, front: &[OrderBy]) -> f64 {
        let collected = self.relation.advice.statistics.as_deref();
        let fields = || front.iter().map(|by| by.field);
        let is_known = |field| request.distinct(&bound.binding, field).is_some();
        let counted = || {
            let rows = RowGoal::About { least: 1, expected: 1 };
            let first = ScanRequest { order: front.to_vec(), rows, offset: 0, ..request.clone() };
            let reached = first.bind(&bound.binding).ok()??;
            let is_sorted = reached.spec.access.ordered;
            is_sorted.then(|| request.ties(&reached, fields()).ok()?).flatten()
        };
        let counted = if fields().all(is_known) { None } else { counted() };
        let rows = || {
            if !bound.spec.access.jumps_each() {
                return bound.rows;
            }
            // Jumps read a few rows of each group only.
            let all = ScanRequest { each: None, ..request.clone() };
            all.bind(&bound.binding).ok().flatten().map_or(bound.rows, |all| all.rows)
        };
        counted.unwrap_or_else(|| rows() * share_of_equals(collected, fields()))
    }

    /// A scan for `filters` and these output columns of the schema.
    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<ScanExec> {
        let all: Vec<usize> = (0..self.relation.fields.len()).collect();
        let filters = filters.iter().map(|filter| Template::new(filter, self.names())).collect();
        self.planned(projection.unwrap_or(&all), filters, limit.map(|n| n as u64))
    }

    /// A scan for filters that are templates already; `None` if a parameter does not suit its filter.
    pub fn scan_of(
        &self,
        columns: &[usize],
        filters: Vec<Template>,
        limit: Option<u64>,
    ) -> Result<Option<ScanExec>> {
        let suits = |filter: &Template| filter.fill(self.names(), &self.binding).is_some();
        filters.iter().all(suits).then(|| self.planned(columns, filters, limit)).transpose()
    }

    fn planned(
        &self,
        projection: &[usize],
        mut filters: Vec<Template>,
        limit: Option<u64>,
    ) -> Result<ScanExec> {
        let relation = &self.relation;
        filters.extend(relation.table.ttl().map(Template::Alive));
        if !self.seen.is_true() {
            filters.push(Template::Known(self.seen.clone()));
        }
        let schema =
            Arc::new(relation.schema.project(projection).map_err(|e| {
                Error::internal("a projection names columns that are not there").caused_by(e)
            })?);
        let (order, rows) = self.wanted.plainly();
        let request = ScanRequest {
            relation: Arc::clone(relation),
            fixed: fixed_by(&filters),
            filters,
            path: None,
            union: None,
            again: None,
            output: projection.iter().map(|i| relation.fields[*i]).collect(),
            places: OnceLock::new(),
            known_places: OnceLock::new(),
            schema,
            rows: match limit {
                Some(n) if rows == RowGoal::All && order.is_empty() => RowGoal::First(n),
                _ => rows,
            },
            offset: self.wanted.offset(),
            first_found: self.first_found.clone(),
            first_of_row: self.first_of_row.clone(),
            any_order: self.any_order && order.is_empty(),
            order,
            each: self.each.clone(),
            samples: MatchSamples::default(),
            jumps: JumpSamples::default(),
        };
        let (mut request, bound) = self.in_some_order(request)?;
        let access = &bound.spec.access;
        match access.method {
            Method::Gather { .. } => request.union = request.union_of(&bound),
            _ => request.path = Some(access.path),
        }
        Ok(ScanExec::new(Arc::new(request.knowing(&bound)), Arc::new(bound), limit))
    }
}

impl fmt::Debug for TableSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TableSource({})", self.relation.table.name)
    }
}

#[async_trait]
impl TableProvider for TableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.relation.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| {
            let predicate = self.predicate(filter);
            if !predicate.has_opaque() {
                TableProviderFilterPushDown::Exact
            } else if matches!(predicate, Predicate::Opaque(_)) {
                TableProviderFilterPushDown::Unsupported
            } else {
                TableProviderFilterPushDown::Inexact
            }
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let scan = self.plan(projection, filters, limit).map_err(to_df)?;
        let is_alone = session.config().target_partitions() == 1;
        Ok(Arc::new(if is_alone { scan } else { scan.shared() }))
    }
}
