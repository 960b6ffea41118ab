//! A table or index table as DataFusion sees it.

mod along;

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::{
    Expr, LogicalPlan, Projection, SubqueryAlias, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_plan::ExecutionPlan;

pub use self::along::Way;
use super::computed::hidden_name;
use super::errors::to_df;
use super::expr::{Computed, FieldNames, predicate};
use super::point::Point;
use super::rewrite::below;
use super::scan::ScanExec;
use super::statistics::StoreStatistics;
use super::template::{Template, has_params};
use super::wanted::{FirstFound, Rows, Wanted, What};
use crate::access::{
    Access, COST, Choice, Each, Guards, Hints, Method, Need, OrderBy, Path, Source, Statistics, Stretch,
    along, choose, choose_again, rows_of, share_of_equals,
};
use crate::error::{Error, Result};
use crate::exec::scan::{Places, ScanSpec, field_type};
use crate::key::{ColumnId, KeyLayout, KeyPart, Rowkey};
use crate::plan::{Field, Formula, Predicate};
use crate::row::field;
use crate::schema::{IndexDef, IndexState, TableDef, TableStatistics};
use crate::store::Snapshot;
use crate::value::Value;

/// What a run of a plan brings along.
#[derive(Clone)]
pub struct Binding {
    /// What is read.
    pub snapshot: Arc<dyn Snapshot>,
    /// Values of `$1`, `$2`, ... that are not in the plan.
    pub params: Arc<[Value]>,
    /// What a scan may read.
    pub guards: Guards,
}

/// A table or index table under the names that a query uses.
#[derive(Clone)]
struct Relation {
    table: Arc<TableDef>,
    /// Set when the index table itself is what is read.
    index: Option<IndexDef>,
    fields: Vec<Field>,
    names: FieldNames,
    schema: SchemaRef,
    advice: Advice,
    /// The number in the names of its hidden columns, if it has them.
    computed: Option<usize>,
}

/// What the statement and ANALYZE say about one table.
#[derive(Clone, Debug, Default)]
pub struct Advice {
    /// Hints of the statement.
    pub hints: Hints,
    /// What ANALYZE found, if it ran.
    pub statistics: Option<Arc<TableStatistics>>,
}

impl Relation {
    /// `rowkeys`: names under which the rowkey is a column of the schema, unless a column has the name.
    fn new(table: Arc<TableDef>, index: Option<IndexDef>, rowkeys: &[&str], advice: Advice) -> Relation {
        let mut columns: Vec<(String, Field, bool)> = Vec::new();
        match &index {
            None => {
                for (id, column) in table.live_columns() {
                    columns.push((column.name.clone(), Field::Column(id), column.nullable));
                }
            }
            Some(index) => {
                let mut ids: Vec<_> = index.layout.columns();
                ids.retain(|id| index.layout.undoable().contains(id));
                ids.extend(index.include.iter().copied().filter(|id| !index.layout.undoable().contains(id)));
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
                        .find(|part| is_id(part) || part.fan_out().is_none())
                        .filter(is_id)
                        .is_some()
                };
                of_all.into_iter().any(leading)
            };
            let computed = |(id, formula): (ColumnId, &Formula)| Computed {
                formula: formula.clone(),
                field: Field::Column(id),
                ty: table.column(id).ty,
                leads: leads(id),
            };
            names.formulas = table.formulas().map(computed).collect();
        }
        let schema = Arc::new(Schema::new(arrow_fields));
        Relation { table, index, fields, names, schema, advice, computed: None }
    }

    /// The same with the columns that an index of all rows has computed, or one of those for which `known` is true:
    /// no other row is sure to have a value of them.
    fn with_computed(&self, known: &Predicate, number: usize) -> Option<Relation> {
        if self.computed.is_some() || self.names.formulas.is_empty() {
            return None;
        }
        let Relation { table, index, mut fields, mut names, schema, advice, .. } = self.clone();
        let has_all = |index: &&IndexDef| {
            index.state == IndexState::Ready
                && index.filter.as_ref().is_none_or(|filter| known.implies(filter))
        };
        let sure: Vec<ColumnId> =
            table.indexes.iter().filter(has_all).flat_map(|i| i.layout.columns()).collect();
        let mut arrow_fields = schema.fields().to_vec();
        for Computed { field: computed, ty, .. } in &self.names.formulas {
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
        is_more.then_some(Relation { table, index, fields, names, schema, advice, computed: Some(number) })
    }

    /// Keys that every row has.
    fn layouts(&self) -> impl Iterator<Item = &KeyLayout> {
        let of_all = |index: &&IndexDef| index.filter.is_none() && index.state == IndexState::Ready;
        let indexes = self.table.indexes.iter().filter(of_all).map(|index| &index.layout);
        std::iter::once(&self.table.key).chain(indexes)
    }

    /// The column, if it is the first thing that some rowkey or index key says.
    fn led_by(&self, column: &str) -> Option<Field> {
        let (Field::Column(id), _) = self.names.columns.get(column).filter(|_| !self.advice.hints.full)?
        else {
            return None;
        };
        let mut leading = self.layouts().filter_map(|layout| layout.parts().first());
        leading.any(|part| part.columns().contains(id)).then_some(Field::Column(*id))
    }

    fn source(&self) -> Source<'_> {
        match &self.index {
            Some(index) => Source::Index(&self.table, index),
            None => Source::Table(&self.table),
        }
    }
}

/// One mention of a table or index table in a query, over the query's snapshot.
#[derive(Clone)]
pub struct TableSource {
    relation: Arc<Relation>,
    binding: Binding,
    /// What the statement wants.
    pub wanted: Wanted,
    /// What it wants of those that a join finds, if there is one.
    pub first_found: Option<FirstFound>,
    /// The same of those that each row of the join's other side finds.
    pub first_of_row: Option<FirstFound>,
    /// A few rows of each group are enough.
    pub each: Option<Each>,
    /// Nobody can tell in which order the rows come.
    pub any_order: bool,
}

impl TableSource {
    /// `rowkeys`: names under which the rowkey is a column of the schema, unless a column has the name.
    pub fn new(
        table: Arc<TableDef>,
        index: Option<IndexDef>,
        binding: Binding,
        rowkeys: &[&str],
        advice: Advice,
    ) -> TableSource {
        let relation = Arc::new(Relation::new(table, index, rowkeys, advice));
        TableSource {
            relation,
            binding,
            wanted: Default::default(),
            first_found: None,
            first_of_row: None,
            each: None,
            any_order: false,
        }
    }

    /// The table that a column of a plan is read from as it is, and the column's name there.
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
                let provider = source_as_provider(&scan.source)?;
                let any: &dyn std::any::Any = &*provider;
                Ok(any.downcast_ref::<TableSource>().map(|source| (source.clone(), column.name.clone())))
            }
            _ => Ok(None),
        }
    }

    /// The same with hidden columns for what the indexes compute of every row that passes `filters`, called by this
    /// number; `None` if there is nothing such, or they are there already.
    pub fn with_computed(&self, filters: &[Expr], number: usize) -> Option<TableSource> {
        let names = &self.relation.names;
        let known =
            filters.iter().filter(|filter| !has_params(filter)).map(|filter| predicate(filter, names));
        let relation = Arc::new(self.relation.with_computed(&Predicate::and(known), number)?);
        Some(TableSource { relation, ..self.clone() })
    }

    /// Name of the hidden column of the formula that an expression is, if that one `fits`.
    pub fn computed_name(&self, expr: &Expr, fits: &dyn Fn(&Formula) -> bool) -> Option<String> {
        let Relation { table, names, computed, .. } = &*self.relation;
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

    /// The column is the first thing that some rowkey or index key says.
    pub fn leads(&self, column: &str) -> bool {
        self.relation.led_by(column).is_some()
    }

    /// Its fields as the query names them.
    pub fn names(&self) -> &FieldNames {
        &self.relation.names
    }

    /// A filter of this table in our own algebra; opaque if a parameter does not suit it.
    pub fn predicate(&self, filter: &Expr) -> Predicate {
        let names = &self.relation.names;
        let known = Template::new(filter, names).fill(names, &self.binding.params);
        known.unwrap_or_else(|| Predicate::Opaque(filter.to_string()))
    }

    /// The first of the rows that pass `filters`, in the order of a column, is found at once; `alone`: or by
    /// looking at no more than anybody would who looks for it.
    pub fn gives_first(&self, column: &str, descending: bool, filters: &[Expr], alone: bool) -> bool {
        let Some((field, _)) = self.field(column) else { return false };
        let wanted =
            Wanted { order: vec![OrderBy { field, descending }], what: What::First { rows: 1, offset: 0 } };
        let source = TableSource { wanted, ..self.clone() };
        let at = self.relation.fields.iter().position(|f| *f == field);
        let scan = source.plan(at.map(|at| vec![at]).as_ref(), filters, Some(1));
        let suits = |access: &Access| {
            let passes_all = access.entry_filter.is_true() && access.filter.is_true();
            access.ordered && (passes_all || alone && !matches!(access.path, Path::IndexFetch(_)))
        };
        scan.is_ok_and(|scan| scan.bound().is_ok_and(|bound| suits(&bound.spec.access)))
    }

    /// The request with its path, or one for rows whose first columns only are in order, if that is cheaper.
    fn in_some_order(&self, request: Request) -> Result<(Request, Bound)> {
        let bind = |request: &Request| {
            let bound = request.bind(&self.binding)?;
            bound.ok_or_else(|| Error::internal("a parameter does not suit its filter"))
        };
        let bound = bind(&request)?;
        if bound.spec.access.ordered && !request.order.is_empty() {
            return Ok((request, bound));
        }
        let collected = self.relation.advice.statistics.as_deref();
        let equal = |front: &[OrderBy]| match &self.each {
            Some(each) => each.rows as f64,
            None => bound.rows * share_of_equals(collected, front.iter().map(|by| by.field)),
        };
        for (order, rows) in self.wanted.otherwise(equal) {
            let mut other = Request { order, rows, offset: 0, any_order: false, ..request.clone() };
            if other.leading().is_some() {
                // Entries before the page are passed over.
                other.offset = request.offset;
            }
            let reached = bind(&other)?;
            let access = &reached.spec.access;
            if access.ordered && access.cost < bound.spec.access.cost && other.check(&reached).is_ok() {
                return Ok((other, reached));
            }
        }
        Ok((request, bound))
    }

    /// A scan for `filters` and these output columns of the schema.
    fn plan(
        &self,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<ScanExec> {
        let relation = &self.relation;
        let all: Vec<usize> = (0..relation.fields.len()).collect();
        let projection = projection.unwrap_or(&all);
        let limit = limit.map(|n| n as u64);
        let schema =
            Arc::new(relation.schema.project(projection).map_err(|e| {
                Error::internal("a projection names columns that are not there").caused_by(e)
            })?);
        let (order, rows) = self.wanted.plainly();
        let request = Request {
            relation: Arc::clone(relation),
            filters: filters.iter().map(|filter| Template::new(filter, &relation.names)).collect(),
            path: None,
            point: None,
            stretch: None,
            output: projection.iter().map(|i| relation.fields[*i]).collect(),
            places: OnceLock::new(),
            schema,
            rows: match limit {
                Some(n) if rows == Rows::All && order.is_empty() => Rows::First(n),
                _ => rows,
            },
            offset: self.wanted.offset(),
            first_found: self.first_found.clone(),
            first_of_row: self.first_of_row.clone(),
            any_order: self.any_order && order.is_empty(),
            order,
            each: self.each.clone(),
        };
        let (mut request, bound) = self.in_some_order(request)?;
        let access = &bound.spec.access;
        request.path = (!matches!(access.method, Method::Gather { .. })).then_some(access.path);
        request.point = Point::new(&relation.table, &request.filters, access);
        let compares = |filter: &Template| matches!(filter, Template::Compare { .. });
        request.stretch = Stretch::of(relation.source(), &bound.need, access)
            .filter(|_| request.filters.iter().all(compares));
        Ok(ScanExec::new(Arc::new(request), Arc::new(bound), limit))
    }
}

/// What a plan wants of one table or index table; how it is reached is chosen anew for each run.
#[derive(Clone)]
pub struct Request {
    relation: Arc<Relation>,
    filters: Vec<Template>,
    /// The path of the first run, if it was one.
    path: Option<Path>,
    /// Every run is a GET of the one key that its parameters make.
    point: Option<Point>,
    /// Every run reads one range of keys, along the same path.
    stretch: Option<Stretch>,
    output: Arc<[Field]>,
    /// Where a scan along a path finds that, if it has nothing to compare.
    places: OnceLock<(Path, Arc<Places>)>,
    /// Columns of the scan.
    pub schema: SchemaRef,
    /// Order wanted by the statement.
    pub order: Vec<OrderBy>,
    /// How many, in that order.
    pub rows: Rows,
    /// How many of them are passed over.
    offset: u64,
    /// What is wanted of those that a join finds.
    pub first_found: Option<FirstFound>,
    /// What is wanted of those that each row of a join finds.
    pub first_of_row: Option<FirstFound>,
    each: Option<Each>,
    /// Rows may come in any order.
    pub any_order: bool,
}

/// A request with a path chosen for one run.
pub struct Bound {
    /// What is read, and how.
    pub spec: Arc<ScanSpec>,
    /// What is wanted.
    pub need: Need,
    /// Rows (count) that are expected.
    pub rows: f64,
    /// Of what, and how much of it at the most.
    pub binding: Binding,
    /// Why this path.
    pub chosen: String,
    /// Why no other.
    pub rejected: Vec<(String, String)>,
    /// What would serve better.
    pub note: Option<String>,
}

impl Request {
    /// The same request for some of its columns, under other names.
    pub fn pick(&self, columns: &[usize], schema: &SchemaRef) -> Request {
        let output = columns.iter().map(|at| self.output[*at]).collect();
        Request { output, places: OnceLock::new(), schema: Arc::clone(schema), ..self.clone() }
    }

    /// The same request for other numbers of rows.
    pub fn paged(&self, offset: u64, limit: Option<u64>) -> Request {
        let rows = match (self.rows, limit) {
            (Rows::First(_), Some(limit)) => Rows::First(offset.saturating_add(limit)),
            (rows, _) => rows,
        };
        Request { rows, offset, ..self.clone() }
    }

    /// The same request for about so many rows, by whoever stops it.
    pub fn of_about(&self, rows: u64) -> Request {
        Request { rows: Rows::About { least: rows, expected: rows }, offset: 0, ..self.clone() }
    }

    /// Chooses the path for these parameters and this snapshot. `None` if a parameter does not suit its
    /// filter, which then has to be planned with the value in it.
    pub fn bind(&self, binding: &Binding) -> Result<Option<Bound>> {
        let relation = &self.relation;
        let Some(predicate) = self.predicate(binding) else { return Ok(None) };
        let need = self.need(predicate);
        let stats = self.statistics(binding);
        let again = self.along_stretch(&need.predicate, &stats);
        let by_path = || choose_again(relation.source(), &need, self.path?, &stats);
        let again = again.or_else(by_path);
        let choice = match again {
            Some(access) => Choice { access, chosen: String::new(), rejected: Vec::new(), note: None },
            None => choose(relation.source(), &need, &stats)?,
        };
        Ok(Some(self.bound(need, choice, binding.clone())))
    }

    fn need(&self, predicate: Predicate) -> Need {
        Need {
            predicate,
            output: Arc::clone(&self.output),
            order: self.order.clone(),
            limit: self.rows.expected(),
            offset: self.offset,
            hints: self.relation.advice.hints.clone(),
            each: self.each.clone(),
        }
    }

    /// Rows (count) that anybody looks at, at the most.
    fn looked_at(&self) -> Option<u64> {
        self.rows.expected().map(|rows| rows.saturating_sub(self.offset))
    }

    /// The filters for these parameters; `None` as for [`Request::bind`].
    fn predicate(&self, binding: &Binding) -> Option<Predicate> {
        let filled = self.filters.iter().map(|filter| filter.fill(&self.relation.names, &binding.params));
        Some(Predicate::and(filled.collect::<Option<Vec<_>>>()?))
    }

    fn along_stretch(&self, predicate: &Predicate, stats: &dyn Statistics) -> Option<Access> {
        self.stretch?.access(self.relation.source(), predicate, self.looked_at(), stats)
    }

    /// What is read for these parameters, if that is one key or one range of keys whatever they are; and the entries
    /// (count) among which it must end, if it is not sure to be cheap.
    pub fn known(&self, binding: &Binding) -> Option<(ScanSpec, Option<usize>)> {
        if binding.guards != Guards::default() {
            return None;
        }
        let (access, entries_max) = match &self.point {
            Some(point) => (point.access(&self.relation.table, &binding.params)?, None),
            None => {
                self.stretch?.unseen(self.relation.source(), &self.predicate(binding)?, self.looked_at())?
            }
        };
        Some((self.spec(access, &self.output), entries_max))
    }

    /// Chooses the path once more, for those rows only that pass one more condition.
    pub fn narrow(&self, bound: &Bound, condition: Predicate) -> Result<Bound> {
        let predicate = Predicate::and([bound.need.predicate.clone(), condition]);
        let need = Need { predicate, ..bound.need.clone() };
        let choice = choose(self.relation.source(), &need, &self.statistics(&bound.binding))?;
        Ok(self.bound(need, choice, bound.binding.clone()))
    }

    /// The same in an order, or in one by some of its columns in front, with about so many rows to be read of it. `None`
    /// if that costs more than to sort them.
    pub fn narrow_in_order(
        &self,
        bound: &Bound,
        condition: Predicate,
        wanted: &FirstFound,
    ) -> Result<Option<Bound>> {
        let narrowed = self.narrow(bound, condition)?;
        let collected = self.relation.advice.statistics.as_deref();
        for columns in (1..=wanted.order.len()).rev() {
            let order = wanted.order[..columns].to_vec();
            let equal = narrowed.rows * share_of_equals(collected, order.iter().map(|by| by.field));
            let limit = Some(wanted.rows.saturating_add(equal as u64));
            let need = Need { order, limit, ..narrowed.need.clone() };
            let (source, stats) = (self.relation.source(), self.statistics(&bound.binding));
            let mut choice = choose(source, &need, &stats)?;
            // All of them may be read after all, and no others then.
            if choice.access.method.is_whole()
                && let Some(access) = along(source, &need, narrowed.spec.access.path, &stats)
            {
                let chosen = "in the order of which the first rows are wanted".to_owned();
                choice = Choice { access, chosen, rejected: narrowed.rejected.clone(), note: None };
            }
            let Access { ordered, cost, method, .. } = &choice.access;
            if *ordered && *cost < narrowed.spec.access.cost && !method.is_whole() {
                let need = Need { limit: None, ..need };
                let in_order = self.bound(need, choice, bound.binding.clone());
                return Ok(Some(in_order).filter(|in_order| self.check(in_order).is_ok()));
            }
        }
        Ok(None)
    }

    /// What is read along the same path, but for rows that do not pass one more condition.
    pub fn dropping(&self, bound: &Bound, condition: Predicate) -> ScanSpec {
        let mut access = bound.spec.access.clone();
        access.filter = Predicate::and([access.filter.into(), condition]).into();
        self.spec(access, &bound.need.output)
    }

    /// The table, if what is wanted of it are rows, however they are reached.
    pub fn keyed(&self) -> Option<&TableDef> {
        let Relation { table, index, advice, .. } = &*self.relation;
        let is_free = advice.hints.only.is_none() && !advice.hints.full;
        let any = self.rows == Rows::All && self.order.is_empty();
        (index.is_none() && is_free && any).then_some(table)
    }

    /// Every row counts, and not only some of a group.
    pub fn takes_all(&self) -> bool {
        self.each.is_none()
    }

    /// The table that is read.
    pub fn table(&self) -> &TableDef {
        &self.relation.table
    }

    /// The field that a column of the scan is.
    pub fn output_field(&self, column: usize) -> Option<Field> {
        self.output.get(column).copied()
    }

    /// The column of the scan that a field is.
    pub fn column_of(&self, field: Field) -> Option<usize> {
        self.output.iter().position(|output| *output == field)
    }

    /// Bound to rows that somebody will ask for by their keys, about so many. `None`: as [`Request::bind`].
    pub fn bind_keys(&self, binding: &Binding, rows: f64) -> Option<Bound> {
        let need = self.need(self.predicate(binding)?);
        let access = Access::of_keys(Vec::new(), need.predicate.clone(), rows);
        let chosen = "the join tells every part of the rowkey".to_owned();
        let choice = Choice { access, chosen, rejected: Vec::new(), note: None };
        Some(Bound { rows, ..self.bound(need, choice, binding.clone()) })
    }

    /// What is read for keys of rows bound so; the last column are the rowkeys.
    pub fn of_keys(&self, bound: &Bound, keys: Vec<Rowkey>) -> ScanSpec {
        let rows = keys.len() as f64;
        let access = Access::of_keys(keys, bound.need.predicate.clone(), rows);
        let rowkey = field("rowkey", field_type(&self.relation.table, None, Field::Rowkey), false);
        let fields = self.schema.fields().iter().cloned().chain([Arc::new(rowkey)]);
        let output = self.output.iter().copied().chain([Field::Rowkey]).collect();
        ScanSpec { schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())), ..self.spec(access, &output) }
    }

    /// Errors: LIMIT, if the path would read more than the session allows.
    pub fn check(&self, bound: &Bound) -> Result<()> {
        let Bound { spec, need, binding, .. } = bound;
        let (source, statistics) = (self.relation.source(), self.statistics(binding));
        let check = |need| binding.guards.check(source, need, &spec.access, &statistics);
        match self.rows {
            // It may become all of them.
            Rows::About { .. } => check(&Need { limit: None, ..need.clone() }),
            Rows::All | Rows::First(_) => check(need),
        }
    }

    /// The column is the first thing that some rowkey or index key says.
    pub fn leads(&self, column: &str) -> bool {
        self.relation.led_by(column).is_some()
    }

    /// Some key has rows with the same values of these columns in such an order.
    pub fn orders(&self, behind: &[ColumnId], first: &FirstFound) -> bool {
        let Some(OrderBy { field: Field::Column(wanted), .. }) = first.order.first() else { return false };
        let is_behind = |part: &&KeyPart| part.columns().iter().all(|id| behind.contains(id));
        let orders = |layout: &KeyLayout| {
            let mut parts = layout.parts().iter().skip_while(is_behind);
            parts.next().is_some_and(|part| part.columns() == [*wanted])
        };
        self.relation.layouts().any(orders)
    }

    /// What it takes, in entries walked, to read the rows with one value of a column; `None` if no key is led by it.
    /// `path`: how all of them are reached.
    pub fn work_of_value(&self, binding: &Binding, column: &str, path: Path) -> Option<f64> {
        let field = self.relation.led_by(column)?;
        let equal = self.rows_of_value(binding, column)?;
        let is_covered = matches!(path, Path::IndexOnly(_));
        let entry = if is_covered { COST.entry } else { COST.entry + COST.fetch };
        let is_each = |each: &Each| each.of == [field] && each.rows == 1;
        // Who asks for more than that there is one has to look at all of them.
        let is_one = self.each.as_ref().is_some_and(is_each) && self.filters.is_empty();
        Some(if is_one { COST.seek + entry } else { COST.seek + equal * entry })
    }

    /// Rows (count) with one value of a column, about; `None` if no key is led by it.
    pub fn rows_of_value(&self, binding: &Binding, column: &str) -> Option<f64> {
        let field = self.relation.led_by(column)?;
        let rows = self.entries(binding).max(COST.entries_min as f64);
        Some(rows * self.share_of_equals(&[field]))
    }

    /// Rows (count) of the table.
    pub fn entries(&self, binding: &Binding) -> f64 {
        self.statistics(binding).entries(self.table().rows()) as f64
    }

    /// Rows (count) that are expected if nobody stops before the last one.
    pub fn rows_of_all(&self, bound: &Bound) -> Result<f64> {
        let need = Need { limit: None, order: Vec::new(), ..bound.need.clone() };
        let statistics = self.statistics(&bound.binding);
        let choice = choose(self.relation.source(), &need, &statistics)?;
        Ok(rows_of(&statistics, &choice.access))
    }

    /// Fields by their names in queries.
    pub fn names(&self) -> &FieldNames {
        &self.relation.names
    }

    fn statistics<'a>(&'a self, binding: &'a Binding) -> StoreStatistics<'a> {
        let collected = self.relation.advice.statistics.as_deref();
        StoreStatistics { snapshot: &*binding.snapshot, collected }
    }

    fn bound(&self, need: Need, choice: Choice, binding: Binding) -> Bound {
        let Choice { access, chosen, rejected, note } = choice;
        let spec = self.spec(access, &need.output);
        let rows = rows_of(&self.statistics(&binding), &spec.access);
        Bound { spec: Arc::new(spec), need, rows, binding, chosen, rejected, note }
    }

    fn spec(&self, access: Access, output: &Arc<[Field]>) -> ScanSpec {
        let relation = &self.relation;
        let index = access.index(relation.source());
        ScanSpec {
            table: Arc::clone(&relation.table),
            index: index.map(|index| index.id),
            as_table: relation.index.is_some(),
            places: self.places(index, &access, output),
            access,
            output: Arc::clone(output),
            schema: Arc::clone(&self.schema),
            any_order: self.any_order,
        }
    }

    /// Where a scan finds `output`: the same in most runs.
    fn places(&self, index: Option<&IndexDef>, access: &Access, output: &Arc<[Field]>) -> Arc<Places> {
        let of = |output: &[Field]| Arc::new(Places::new(&self.relation.table, index, access, output));
        let compares = !(access.filter.is_true() && access.entry_filter.is_true());
        if compares || !Arc::ptr_eq(output, &self.output) {
            return of(output);
        }
        match self.places.get_or_init(|| (access.path, of(output))) {
            (path, places) if *path == access.path => Arc::clone(places),
            _ => of(output),
        }
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
