//! Resolves the names of one statement: tables, views, snapshots, functions, types.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field as ArrowField, FieldRef, SchemaRef};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{MemTable, ViewTable, provider_as_source};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, LogicalPlanBuilder, ScalarUDF,
    TableSource as DfTableSource, WindowUDF,
};
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use sqlparser::ast::{self, ObjectName, Query};

use super::errors::{df_error, to_df};
use super::expr::type_of_value;
use super::expressions::step_types::nothing_is_lost;
use super::functions::{self, series, table_functions};
use super::hints::Hinted;
use super::information_schema;
use super::plain_calls::{check_calls, plain_calls};
use super::query::NameScope;
use super::rules::inner_orders::inner_orders;
use super::rules::true_keys::{grouped_as_written, groups_by_wrong_keys};
use super::subqueries::outer_totals;
use super::table::template::params_in;
use super::table::{Binding, TableAdvice, TableSource};
use super::with_queries::marked;
use crate::catalog::Relation;
use crate::error::{Error, Result, sqlstate};
use crate::plan::{CmpOp, Field, Predicate};
use crate::schema::{ENDED_AT, IndexDef, IndexState, TableDef, ViewDef, WRITTEN_AT};
use crate::sql::rewrite::ROWKEY;
use crate::sql::{
    AsOf, CATALOG_HINT, CATALOG_SCHEMAS, INFORMATION_SCHEMA, KeyedTable, name_of, name_sql, output_name,
};
use crate::value::{ColumnType, Value};

/// Deepest nesting of views.
const VIEW_DEPTH: usize = 32;

/// The table, if its columns tell its rows apart.
fn keyed(table: &TableDef) -> Option<KeyedTable> {
    if table.key.is_drawn() || table.row_number().is_some() {
        return None;
    }
    let key = table.key.columns().into_iter().map(|id| table.column_name(id).to_owned()).collect();
    let columns = table.live_columns().map(|(_, column)| column.name.clone()).collect();
    Some(KeyedTable { key, columns })
}

/// Errors: the index table is being built, or Broken.
fn has_every_entry(index: &IndexDef) -> DfResult<()> {
    let (name, shown) = (&index.name, name_sql(&index.name));
    let error = match index.state {
        IndexState::Ready => return Ok(()),
        IndexState::Building => Error::invalid(format!("index \"{name}\" is still being built"))
            .why("it does not have the entries of all rows yet")
            .hint("SHOW INDEXES tells when it is Ready; query the table meanwhile"),
        IndexState::Broken => Error::invalid(format!("index \"{name}\" is Broken"))
            .why("entries may be missing from it")
            .hint(format!("query the table, or REPAIR INDEX {shown}")),
    };
    Err(to_df(error.state(sqlstate::OBJECT_STATE)))
}

/// A planned view. Errors count as planned, too: the statement fails with them, or does not need the view.
pub(super) struct PlannedView {
    source: Result<Arc<dyn DfTableSource>>,
    /// Levels of views, this one included.
    height: usize,
}

/// Planned views by name. A query asks for the columns of the views that it joins before it is planned, so views over
/// views would take exponential time if each of them were planned whenever it is named.
pub(super) type PlannedViews = RefCell<HashMap<String, Rc<PlannedView>>>;

/// Resolves the names of one statement.
pub(super) struct Resolver<'a> {
    pub(super) state: &'a SessionState,
    pub(super) scope: &'a NameScope<'a>,
    /// Values of `$1`, `$2`, ...
    pub(super) params: &'a [Value],
    /// How operators are planned.
    pub(super) operators: &'a [Arc<dyn ExprPlanner>],
    /// Names under which the rowkey is a column of the tables in the query that is planned.
    pub(super) rowkeys: Vec<&'a str>,
    /// Views that contain this query, outermost first.
    pub(super) views: Vec<String>,
    /// Views of this catalog that are planned already.
    pub(super) planned: &'a PlannedViews,
    /// Levels of views below this query, so far.
    pub(super) height: &'a Cell<usize>,
    /// Number of the next query of WITH that gets a name of its own.
    pub(super) named: &'a Cell<usize>,
    pub(super) hints: &'a Hinted,
    /// Cleared when the statement names a snapshot or a time, or a table function depends on the time.
    pub(super) is_now: &'a Cell<bool>,
    /// Positions of the parameters that table functions take: their values are in the plan.
    pub(super) taken: &'a RefCell<Vec<usize>>,
}

impl Resolver<'_> {
    /// The plan of a query as it was written.
    pub(super) fn plan(mut self, mut query: Query) -> DfResult<LogicalPlan> {
        // Hints hold for the views that are planned to find their columns.
        self.hints.take(&mut query).map_err(to_df)?;
        // Each query decides for itself whether tables have a rowkey column.
        self.rowkeys = self.scope.rowkeys_of(&query);
        let rowkeys_of = |name: &ObjectName| self.rowkeys_of(name);
        crate::sql::name_natural_columns(&mut query, &|name| self.columns_of(name), &rowkeys_of);
        crate::sql::name_ordered_columns(&mut query, &|name| self.columns_of(name));
        crate::sql::name_outputs(&mut query);
        let hides = self.rowkeys.contains(&ROWKEY);
        let has_pseudo = |name: &ObjectName| hides && self.has_rowkey(name);
        crate::sql::resolve_joins(&mut query, &has_pseudo, &|name| self.columns_of(name)).map_err(to_df)?;
        let type_of = |at: usize| self.params.get(at).and_then(type_of_value);
        let recurs = crate::sql::prepare_recursions(&mut query, &type_of).map_err(to_df)?;
        let catalog = self.scope.catalog;
        let has_column = |name: &str| catalog.tables().any(|table| table.column_id(name).is_some());
        plain_calls(&mut query, &has_column, &type_of);
        crate::sql::tell_casts_apart(&mut query);
        let named = crate::sql::name_with_queries(&mut query, self.named);
        let relations = crate::sql::relations_of(&query);
        let is_read = |column: &str| {
            let name = |relation: &String| ObjectName::from(vec![ast::Ident::with_quote('"', relation)]);
            let mut columns =
                relations.iter().filter_map(|relation| self.columns_of(&name(relation))).flatten();
            columns.any(|known| known == column)
        };
        crate::sql::name_tables(&mut query);
        crate::sql::name_made_values(&mut query, &|name| has_column(name) || is_read(name));
        crate::sql::name_outer_tables(&mut query, &has_column);
        let is_scalar = |name: &str| self.get_function_meta(name).is_some();
        check_calls(&query, &is_scalar).map_err(to_df)?;
        let table_of = |name: &str| keyed(&*catalog.table(name).ok()?);
        let implied = crate::sql::with_implied_groups(&query, &table_of);
        // DataFusion wants all columns listed. Where it takes the list as it is, more columns make larger groups.
        let plan = self.grouped(query).or_else(|e| implied.map_or(Err(e), |query| self.grouped(query)))?;
        let plan = inner_orders(marked(plan, &named)?)?;
        outer_totals::are_none(&plan)?;
        if recurs {
            nothing_is_lost(&plan)?;
        }
        Ok(plan)
    }

    /// The plan of a query that is grouped as it is written.
    fn grouped(&self, query: Query) -> DfResult<LogicalPlan> {
        let marked = crate::sql::with_marked_groups(&query);
        let plan = self.planned(query)?;
        match marked {
            Some(query) if groups_by_wrong_keys(&plan) => grouped_as_written(self.planned(query)?),
            _ => Ok(plan),
        }
    }

    fn planned(&self, query: Query) -> DfResult<LogicalPlan> {
        let options = ParserOptions::from(&self.state.config_options().sql_parser);
        SqlToRel::new_with_options(self, options)
            .statement_to_plan(datafusion::sql::parser::Statement::Statement(Box::new(
                ast::Statement::Query(Box::new(query)),
            )))
            .map_err(too_long)
    }

    fn view(&self, view: &ViewDef) -> DfResult<Arc<dyn DfTableSource>> {
        if self.views.contains(&view.name) {
            return Err(to_df(Error::invalid(format!("view \"{}\" reads itself", view.name))));
        }
        let known = self.planned.borrow().get(&view.name).cloned();
        if self.views.len() + known.as_ref().map_or(1, |known| known.height) > VIEW_DEPTH {
            return Err(to_df(Error::invalid(format!("views nest more than {VIEW_DEPTH} deep"))));
        }
        let planned = known.unwrap_or_else(|| self.planned_view(view));
        self.height.set(self.height.get().max(planned.height));
        planned.source.as_ref().map(Arc::clone).map_err(|e| to_df(e.copied()))
    }

    fn planned_view(&self, view: &ViewDef) -> Rc<PlannedView> {
        let below = Cell::new(0);
        let source = self.view_source(view, &below).map_err(df_error);
        let planned = Rc::new(PlannedView { source, height: below.get() + 1 });
        self.planned.borrow_mut().insert(view.name.clone(), Rc::clone(&planned));
        planned
    }

    fn view_source(&self, view: &ViewDef, height: &Cell<usize>) -> DfResult<Arc<dyn DfTableSource>> {
        let query = crate::sql::parse_query(&view.sql).map_err(to_df)?;
        let binding = self.scope.binding.clone();
        let scope = &NameScope { rowkeys: vec![ROWKEY], rows: Vec::new(), binding, ..*self.scope };
        let views = self.views.iter().chain([&view.name]).cloned().collect();
        let plan = Resolver { scope, rowkeys: Vec::new(), views, height, ..*self }.plan(query);
        let plan = rename(plan.map_err(|e| to_df(in_view(df_error(e), &view.name)))?, &view.columns)?;
        Ok(provider_as_source(Arc::new(ViewTable::new(plan, Some(view.sql.clone())))))
    }

    /// What a name in the query refers to.
    fn find(&self, name: &TableReference) -> Option<Relation> {
        let catalog = match past_schema(name) {
            Some(snapshot) => &*self.scope.moments.get(snapshot)?.catalog,
            None => self.scope.catalog,
        };
        catalog.find(name.table())
    }

    /// The name is a table or an index table whose rowkey is not among its columns already.
    fn has_rowkey(&self, name: &ObjectName) -> bool {
        match reference(name).and_then(|name| self.find(&name)) {
            Some(Relation::Table(table)) => !table.names_rowkey(),
            Some(Relation::Index(..)) => true,
            Some(Relation::View(_)) | None => false,
        }
    }

    /// Columns of the table or view with this name, if known.
    fn columns_of(&self, name: &ObjectName) -> Option<Vec<String>> {
        let name = reference(name)?;
        match self.find(&name)? {
            Relation::Table(table) => Some(table.live_columns().map(|(_, c)| c.name.clone()).collect()),
            Relation::View(_) => {
                let source = self.get_table_source(name).ok()?;
                Some(source.schema().fields().iter().map(|field| field.name().clone()).collect())
            }
            Relation::Index(..) => None,
        }
    }

    /// The names under which a table's rowkey is one of its columns, besides its own.
    fn rowkeys_of(&self, name: &ObjectName) -> Vec<String> {
        match reference(name).and_then(|name| self.find(&name)) {
            Some(Relation::Table(table)) => {
                let is_added = |name: &&&str| **name != ROWKEY && table.column_id(name).is_none();
                let names = self.rowkeys.iter().filter(is_added);
                names.map(|name| (*name).to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The table or view as it was at a past moment.
    fn as_of(&self, schema: &str, name: &str) -> DfResult<Arc<dyn DfTableSource>> {
        match AsOf::of(schema) {
            AsOf::Snapshot(snapshot) => self.as_of_snapshot(snapshot, name),
            AsOf::Time(time_us) => self.as_of_time(time_us, name),
            AsOf::Ago(micros) => self.as_of_time(self.scope.binding.as_of_us.saturating_sub(micros), name),
            AsOf::Parameter(at) => self.as_of_time(self.moment(at)?, name),
            AsOf::Versions => self.versions(name),
        }
    }

    /// The time that is the value of a parameter, in microseconds since 1970.
    fn moment(&self, at: usize) -> DfResult<i64> {
        self.taken.borrow_mut().push(at);
        let given = self.params.get(at).cloned().unwrap_or(Value::Null);
        match given.cast(ColumnType::TimestampTz).map_err(|e| to_df(e.into()))? {
            Value::TimestampTz(time_us) => Ok(time_us),
            _ => Err(to_df(Error::invalid(format!("AS OF TIMESTAMP takes a time, and ${} is NULL", at + 1)))),
        }
    }

    /// A table with its history, and the columns that hold when a version was written and ended.
    fn past_of(&self, name: &str) -> DfResult<Past> {
        if let Some(Relation::Index(table, _)) = self.scope.catalog.find(name) {
            let error = Error::unsupported(format!("index tables such as \"{name}\" have no versions"))
                .hint(format!("ask its table: FROM {} AS OF ..", name_sql(&table.name)))
                .state(sqlstate::WRONG_OBJECT);
            return Err(to_df(error));
        }
        let table = self.scope.catalog.table(name).map_err(to_df)?;
        let (Some(history), Some(written_at), Some(past)) = (&table.history, table.written_at, table.past())
        else {
            let error = Error::invalid(format!("table \"{name}\" keeps no versions of its rows"))
                .hint(format!("ALTER TABLE {} SET (versions = 10) keeps them from then on", name_sql(name)))
                .state(sqlstate::OBJECT_STATE);
            return Err(to_df(error));
        };
        self.is_now.set(false);
        let (written_at, ended_at) = (Field::Column(written_at), Field::Column(history.ended_at));
        Ok(Past { past: Arc::clone(past), written_at, ended_at, table })
    }

    /// Hints and statistics of a table.
    fn known_of(&self, table: &TableDef) -> TableAdvice {
        let hints = self.hints.about(table, None);
        TableAdvice { hints, statistics: self.scope.catalog.statistics(table.id).cloned() }
    }

    /// Rows as of a time, in microseconds since 1970.
    fn as_of_time(&self, time_us: i64, name: &str) -> DfResult<Arc<dyn DfTableSource>> {
        let Past { table, past, written_at, ended_at } = self.past_of(name)?;
        let time = || Value::TimestampTz(time_us);
        let began = || Predicate::compare(written_at, CmpOp::Le, time());
        let lasted = Predicate::and([began(), Predicate::compare(ended_at, CmpOp::Gt, time())]);
        // Rows that have expired by now are hidden at any time.
        let binding = &self.scope.binding;
        let source = |table, seen| {
            TableSource::new(Arc::clone(&table), None, binding.clone(), &[], self.known_of(&table))
                .seeing(seen)
        };
        let names: Vec<String> = table.live_columns().map(|(_, column)| column.name.clone()).collect();
        both(name, [source(table, began()), source(past, lasted)], &names)
    }

    /// All versions of rows, each with the times it was written and ended; a current row has no end (NULL).
    fn versions(&self, name: &str) -> DfResult<Arc<dyn DfTableSource>> {
        let Past { table, past, .. } = self.past_of(name)?;
        let binding = &self.scope.binding;
        let source = |table: Arc<TableDef>| {
            let known = self.known_of(&table);
            TableSource::new(table, None, binding.clone(), &[], known)
        };
        let mut names: Vec<String> = past.live_columns().map(|(_, column)| column.name.clone()).collect();
        // The two times come last, behind columns that were added later.
        names.sort_by_key(|name| [WRITTEN_AT, ENDED_AT].iter().position(|time| time == name));
        both(name, [source(table).with_hidden(), source(past)], &names)
    }

    /// A table or view as of a snapshot.
    fn as_of_snapshot(&self, snapshot: &str, name: &str) -> DfResult<Arc<dyn DfTableSource>> {
        let NameScope { moments, binding, .. } = self.scope;
        let Some(moment) = moments.get(snapshot) else {
            let hint = match CATALOG_SCHEMAS.contains(&snapshot) {
                true => CATALOG_HINT.to_owned(),
                false => format!("write {name}, or SHOW SNAPSHOTS"),
            };
            let error = Error::invalid(format!("there is no snapshot or schema \"{snapshot}\""))
                .why("a database has one schema, public; snapshots end with the process that took them")
                .hint(hint)
                .state(sqlstate::UNDEFINED_OBJECT);
            return Err(to_df(error));
        };
        self.is_now.set(false);
        let scope = &NameScope {
            catalog: &moment.catalog,
            moments,
            binding: Binding {
                snapshot: Arc::clone(&moment.snapshot),
                as_of_us: moment.as_of_us,
                ..binding.clone()
            },
            rowkeys: Vec::new(),
            rows: Vec::new(),
            now_us: self.scope.now_us,
        };
        let planned = &PlannedViews::default();
        let (rowkeys, views) = (self.rowkeys.clone(), self.views.clone());
        let then = Resolver { scope, planned, rowkeys, views, ..*self };
        then.get_table_source(TableReference::bare(name))
    }
}

/// A name in a query, with its schema if it has one.
fn reference(name: &ObjectName) -> Option<TableReference> {
    let parts: Option<Vec<String>> = name.0.iter().map(|part| part.as_ident().map(name_of)).collect();
    match &parts?[..] {
        [name] => Some(TableReference::bare(name.as_str())),
        [schema, name] => Some(TableReference::partial(schema.as_str(), name.as_str())),
        _ => None,
    }
}

/// The schema of a name, if it stands for a moment: it is not ours.
fn past_schema(name: &TableReference) -> Option<&str> {
    name.schema().filter(|schema| !crate::sql::is_our_schema(schema))
}

/// A table, and the table of its ended versions.
struct Past {
    table: Arc<TableDef>,
    past: Arc<TableDef>,
    written_at: Field,
    ended_at: Field,
}

/// UNION ALL of both, with these columns.
fn both(name: &str, sources: [TableSource; 2], columns: &[String]) -> DfResult<Arc<dyn DfTableSource>> {
    let [now, then] = sources.map(|source| {
        let scan =
            LogicalPlanBuilder::scan(TableReference::bare(name), provider_as_source(Arc::new(source)), None)?;
        scan.project(columns.iter().map(|column| Expr::Column(Column::from_name(column))))?.build()
    });
    let plan = LogicalPlanBuilder::from(now?).union(then?)?.build()?;
    Ok(provider_as_source(Arc::new(ViewTable::new(plan, None))))
}

/// Rewords the error of an INTERVAL with too many hours, minutes or seconds, which are multiplied with nanoseconds;
/// hardly anything else is computed before there is a plan.
fn too_long(error: DataFusionError) -> DataFusionError {
    let DataFusionError::ArrowError(arrow, _) = error.find_root() else { return error };
    match &**arrow {
        ArrowError::ArithmeticOverflow(what) if what.ends_with("000000000") => to_df(
            Error::invalid("this INTERVAL is too long")
                .why("there is room for 292 years of hours, minutes and seconds")
                .hint("write it in days or months")
                .state(sqlstate::INTERVAL_OVERFLOW),
        ),
        _ => error,
    }
}

/// Adds the innermost view's name to an error and drops its position, which is not one in the statement.
fn in_view(error: Error, name: &str) -> Error {
    let error = error.unplaced();
    match error.reason() {
        None => error.why(format!("in view \"{name}\"")),
        Some(why) if why.starts_with("in view ") => error,
        Some(why) => {
            let why = format!("in view \"{name}\": {why}");
            error.why(why)
        }
    }
}

/// Gives a plan these output names. Without names it keeps its own, less the marks of names that are unique anyway.
fn rename(plan: LogicalPlan, names: &[String]) -> DfResult<LogicalPlan> {
    let columns = plan.schema().columns();
    let mut times: HashMap<&str, usize> = HashMap::new();
    columns.iter().for_each(|column| *times.entry(output_name(&column.name)).or_default() += 1);
    let names: Vec<&str> = match names {
        [] => columns
            .iter()
            .map(|column| {
                Some(output_name(&column.name)).filter(|name| times[name] == 1).unwrap_or(&column.name)
            })
            .collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    if columns.iter().map(|column| column.name.as_str()).eq(names.iter().copied()) {
        return Ok(plan);
    }
    let exprs: Vec<Expr> =
        columns.iter().zip(names).map(|(c, name)| Expr::Column(c.clone()).alias(name)).collect();
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}

impl ContextProvider for Resolver<'_> {
    fn get_table_source(&self, name: TableReference) -> DfResult<Arc<dyn DfTableSource>> {
        if let Some(schema) = past_schema(&name) {
            if schema == INFORMATION_SCHEMA {
                let columns_of = |view: &ViewDef| self.view(view).ok().map(|source| source.schema());
                return information_schema::table(name.table(), self.scope.catalog, &columns_of);
            }
            return self.as_of(schema, name.table());
        }
        let name = name.table();
        let scope = self.scope;
        if let Some((_, batch)) = scope.rows.iter().find(|(n, _)| n == name) {
            let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]])?;
            return Ok(provider_as_source(Arc::new(table)));
        }
        let (table, index) = match scope.catalog.find(name) {
            Some(Relation::Table(table)) => (table, None),
            Some(Relation::Index(table, id)) => {
                let index = table.index_by_id(id).cloned();
                index.iter().try_for_each(has_every_entry)?;
                (table, index)
            }
            Some(Relation::View(view)) => return self.view(&view),
            None => return Err(to_df(scope.catalog.unknown(name))),
        };
        let hints = self.hints.about(&table, index.as_ref());
        let advice = TableAdvice { hints, statistics: scope.catalog.statistics(table.id).cloned() };
        let source = TableSource::new(table, index, scope.binding.clone(), &self.rowkeys, advice);
        Ok(provider_as_source(Arc::new(source)))
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> DfResult<Arc<dyn DfTableSource>> {
        let Some(function) = self.state.table_functions().get(name) else {
            let error = Error::invalid(format!("there is no table function \"{name}\""));
            return Err(to_df(
                error.hint(
                    "SHOW FUNCTIONS LIKE '%part%' looks for a name; generate_series and tpch give rows",
                ),
            ));
        };
        if !args.iter().all(series::is_fixed) {
            self.is_now.set(false);
        }
        self.taken.borrow_mut().extend(args.iter().flat_map(params_in));
        let args = series::constants(args, self.state, self.params, self.scope.now_us)?;
        let args = datafusion::catalog::TableFunctionArgs::new(&args, self.state);
        Ok(provider_as_source(function.create_table_provider_with_args(args)?))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> DfResult<Arc<dyn DfTableSource>> {
        let table = datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema);
        Ok(provider_as_source(Arc::new(table)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.operators
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        table_functions::planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if name == functions::ROWKEY_EXPLAIN {
            return Some(functions::rowkey_explain(self.scope.catalog));
        }
        self.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state.window_functions().keys().cloned().collect()
    }
}

/// Type names that DataFusion reads differently: FLOAT is 64-bit, times are microseconds.
#[derive(Debug)]
pub(super) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> DfResult<Option<FieldRef>> {
        let ty = crate::sql::column_type(sql_type).ok();
        Ok(ty.map(|ty| Arc::new(ArrowField::new("", crate::row::arrow_type(ty), true))))
    }
}
