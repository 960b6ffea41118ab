//! A query → DataFusion's plan over our tables → batches.
//!
//! [`Planner`] is built once per database: it owns the function registry and the optimizer. What
//! changes from statement to statement (catalog, snapshot, whether the rowkey is a column) is a
//! [`Scope`], so plans of one statement see one catalog and one snapshot.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field as ArrowField, FieldRef, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{ParamValues, ScalarValue, TableReference};
use datafusion::datasource::{MemTable, ViewTable, provider_as_source, source_as_provider};
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, TypePlanner};
use datafusion::logical_expr::{
    AggregateUDF, Expr, Filter, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource as DfTableSource,
    WindowUDF,
};
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use datafusion::sql::planner::{ParserOptions, SqlToRel};
use futures::{Stream, StreamExt, TryStreamExt};
use sqlparser::ast::{self, Query};

use super::apart::{apart, batches_apart};
use super::computed::ComputedColumns;
use super::correlated::Correlated;
use super::dates::at_midnight;
use super::doubles::doubles_win;
use super::errors::{df_error, to_df};
use super::formula::{formula, formulas_in};
use super::hints::Hinted;
use super::integers::{CheckedIntegers, wide_integers};
use super::intervals::interval_lengths;
use super::join_condition::subqueries_in_on;
use super::like::own_patterns;
use super::multisets::numbered;
use super::or_null::value_or_null;
use super::order_subquery::subqueries_in_order;
use super::plan::{Plan, depends_on_time, output_schema, renamed};
use super::rewrite::{
    ExpressionRule, NodeRule, below, check_calls, idle_orders, lazy_functions, plain_calls, rounded_decimals,
};
use super::short_circuit::short_circuits;
use super::table::{Advice, Binding, TableSource};
use super::text::{byte_casts, text_casts, text_operands};
use super::three_valued::ThreeValued;
use super::time_parts::time_parts;
use super::time_zone::at_time_zone;
use super::yielding::Yielding;
use super::{explain, extremes, functions, lookup, open, order, parallel, tpch};
use crate::catalog::{Catalog, Relation};
use crate::error::{Error, Result, sqlstate};
use crate::exec::watch::CancelHandle;
use crate::plan::{Formula, Predicate};
use crate::schema::ViewDef;
use crate::sql::rewrite::ROWKEY;
use crate::sql::{CATALOG_HINT, output_name};
use crate::store::Snapshot;
use crate::value::Value;

/// Keys (count) and bytes of them that a join's smaller side tells the scan of the larger one, at the most.
const LEARNED_VALUES: usize = 10_000;
const LEARNED_BYTES: usize = 1 << 20;
/// Views inside views, at the most.
const VIEW_DEPTH: usize = 32;

/// The batches of a query, read as they are asked for.
pub type BatchStream = Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>;

/// Definitions and data of one moment.
#[derive(Clone)]
pub struct Moment {
    /// Tables, index tables and views.
    pub catalog: Arc<Catalog>,
    /// What they hold.
    pub snapshot: Arc<dyn Snapshot>,
}

/// Moments by their names.
pub type Moments = BTreeMap<String, Moment>;

/// What the names in one statement stand for.
pub struct Scope<'a> {
    /// Tables, index tables and views.
    pub catalog: &'a Catalog,
    /// The same as they were, behind the name of a snapshot and a period.
    pub moments: &'a Moments,
    /// What they hold, and the parameters that the plan leaves open.
    pub binding: Binding,
    /// Names under which the rowkey is a column of every table; none unless the statement mentions it.
    pub rowkeys: Vec<&'a str>,
    /// Rows that are in no table, by name; they hide tables of the same name.
    pub rows: Vec<(String, RecordBatch)>,
}

/// What a run may take.
pub struct Limits<'a> {
    /// Bytes of sorts, joins and groups; then they go to disk.
    pub memory: Option<u64>,
    /// Time, and whoever stops it.
    pub cancel: &'a CancelHandle,
}

impl Limits<'_> {
    /// Makes the errors of the limits tell the plan that ran into them.
    fn follow(&self, plan: &Arc<dyn ExecutionPlan>) -> impl Fn(DataFusionError) -> Error + use<> {
        self.cancel.plan(|| {
            // The words only: the plan would keep its snapshot from going.
            let brief = explain::brief(plan);
            Arc::new(move || brief.clone())
        });
        let running = Arc::clone(plan);
        move |e| {
            let error = df_error(e);
            if error.sqlstate() != sqlstate::OUT_OF_MEMORY {
                return error;
            }
            let (plan, note) = explain::brief(&running);
            let why = format!("{}; the plan is {plan}", error.reason().unwrap_or_default());
            match note {
                Some(note) => error.why(why).hint(format!("{note}; or raise memory_limit")),
                None => error.why(why),
            }
        }
    }
}

/// Plans and runs queries.
pub struct Planner {
    state: SessionState,
    context: Arc<TaskContext>,
}

impl Default for Planner {
    /// A planner with every function registered.
    fn default() -> Planner {
        let mut config = SessionConfig::new().with_information_schema(false).with_target_partitions(2);
        let options = config.options_mut();
        options.sql_parser.parse_float_as_decimal = true;
        options.sql_parser.map_string_types_to_utf8view = false;
        options.sql_parser.collect_spans = true;
        // What a join's smaller side holds narrows the scan of the larger.
        options.optimizer.hash_join_inlist_pushdown_max_distinct_values = LEARNED_VALUES;
        options.optimizer.hash_join_inlist_pushdown_max_size = LEARNED_BYTES;
        // A scan asks once what is known above it, before any of these have learned something.
        options.optimizer.enable_topk_dynamic_filter_pushdown = false;
        options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        // It compares what is known to be NOT NULL before and after planning, which may differ for CASE and NULLIF.
        options.execution.skip_physical_aggregate_schema_check = true;
        // NULLs are smallest, as in SQLite and in our keys: an index gives ORDER BY for free.
        options.sql_parser.default_null_ordering = "nulls_min".to_owned();
        let mut state = SessionStateBuilder::new()
            .with_config(config)
            .with_default_features()
            .with_type_planner(Arc::new(Types))
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rule(Arc::new(Yielding))
            .with_analyzer_rules(vec![
                Arc::new(ResolveGroupingFunction::new()),
                Arc::new(NodeRule("numbered", numbered)),
                Arc::new(NodeRule("subqueries_in_on", subqueries_in_on)),
                Arc::new(NodeRule("subqueries_in_order", subqueries_in_order)),
                Arc::new(ExpressionRule("value_or_null", value_or_null)),
                Arc::new(ExpressionRule("idle_orders", idle_orders)),
                Arc::new(ExpressionRule("at_time_zone", at_time_zone)),
                Arc::new(ExpressionRule("time_parts", time_parts)),
                Arc::new(ExpressionRule("text_operands", text_operands)),
                Arc::new(ExpressionRule("at_midnight", at_midnight)),
                Arc::new(ExpressionRule("interval_lengths", interval_lengths)),
                Arc::new(ExpressionRule("doubles_win", doubles_win)),
                Arc::new(ExpressionRule("wide_integers", wide_integers)),
                Arc::new(ExpressionRule("byte_casts", byte_casts)),
                Arc::new(ExpressionRule("rounded_decimals", rounded_decimals)),
                Arc::new(TypeCoercion::new()),
                Arc::new(ExpressionRule("own_patterns", own_patterns)),
                Arc::new(ExpressionRule("text_casts", text_casts)),
                Arc::new(ExpressionRule("lazy_functions", lazy_functions)),
                Arc::new(Correlated),
                Arc::new(CheckedIntegers::new()),
            ])
            .build();
        functions::register(&mut state);
        state.register_udtf("tpch", Arc::new(tpch::Tpch));
        let context = state.task_ctx();
        Planner { state, context }
    }
}

/// DataFusion's, but for the one that takes unknown for false, and with one of our own.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Vec::new();
    for rule in Optimizer::new().rules {
        match rule.name() {
            "simplify_expressions" => rules.push(Arc::new(ThreeValued::default()) as _),
            "push_down_filter" => rules.extend([rule, Arc::new(ComputedColumns) as _]),
            _ => rules.push(rule),
        }
    }
    rules
}

impl Planner {
    /// The logical plan of `query`, its `$n` replaced by `params`.
    pub fn plan(&self, query: Query, scope: &Scope<'_>, params: &[Value]) -> Result<LogicalPlan> {
        let (plan, _) = self.resolved(query, scope)?;
        let values: Result<Vec<ScalarValue>> = params.iter().map(scalar_of).collect();
        plan.with_param_values(ParamValues::from(values?)).map_err(df_error)
    }

    /// The plan as the names in it resolve, and whether all of them mean what is there now. Errors: a name or a
    /// hint that names nothing.
    fn resolved(&self, query: Query, scope: &Scope<'_>) -> Result<(LogicalPlan, bool)> {
        let (hints, is_now) = (Hinted::default(), Cell::new(true));
        let names = Names { planner: self, scope, views: Vec::new(), hints: &hints, is_now: &is_now };
        let plan = names.to_plan(query).map_err(df_error)?;
        hints.check(scope.catalog)?;
        Ok((plan, is_now.get()))
    }

    /// Optimises a logical plan and makes it executable.
    pub async fn physical(&self, plan: LogicalPlan, cancel: &CancelHandle) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(match self.ways(plan, Keep::No, cancel).await? {
            Ways { shared: Some(shared), .. } => shared,
            Ways { alone, .. } => alone,
        })
    }

    async fn ways(&self, plan: LogicalPlan, keep: Keep, cancel: &CancelHandle) -> Result<Ways> {
        let planned = ways(self.state.clone(), plan, keep);
        if cancel.may_stop() { apart(planned).await } else { planned.await }
    }

    /// Plans a query to be run many times, with the scope's parameters left open. `None` if it has to be
    /// planned each time.
    pub async fn keep(&self, query: Query, scope: &Scope<'_>, cancel: &CancelHandle) -> Result<Option<Plan>> {
        let (plan, is_now) = self.resolved(query, scope)?;
        // A run brings one snapshot along, for all scans.
        if !is_now || depends_on_time(&plan)? {
            Ok(None)
        } else {
            let ways = self.ways(plan, Keep::Yes, cancel).await?;
            Plan::new(&ways.alone, ways.shared.as_ref(), self.state.config_options())
        }
    }

    /// What a plan runs in: sorts, joins and groups take `memory` bytes at the most, then go to disk.
    fn context(&self, memory: Option<u64>) -> Result<Arc<TaskContext>> {
        let Some(bytes) = memory else { return Ok(Arc::clone(&self.context)) };
        let pool = FairSpillPool::new(usize::try_from(bytes).unwrap_or(usize::MAX));
        let runtime =
            RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc().map_err(df_error)?;
        Ok(Arc::new(TaskContext::from(&self.state).with_runtime(runtime)))
    }

    /// The batches of a plan as they come out of it.
    fn start(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        limits: &Limits<'_>,
    ) -> Result<impl Stream<Item = Result<RecordBatch>> + use<>> {
        let failed = limits.follow(&plan);
        let batches = execute_stream(plan, self.context(limits.memory)?).map_err(df_error)?;
        let batches = if limits.cancel.may_stop() { batches_apart(batches) } else { batches };
        Ok(batches.map_err(failed))
    }

    /// Starts running a plan; gives its batches and their columns.
    pub fn run(&self, plan: Arc<dyn ExecutionPlan>, limits: &Limits<'_>) -> Result<(BatchStream, SchemaRef)> {
        let inner = plan.schema();
        let schema = output_schema(&inner);
        let batches = self.start(plan, limits)?;
        if Arc::ptr_eq(&schema, &inner) {
            return Ok((Box::pin(batches), schema));
        }
        let columns = Arc::clone(&schema);
        let batches = batches.map(move |batch| {
            let batch = batch?;
            renamed(batch.columns().to_vec(), batch.num_rows(), &columns)
        });
        Ok((Box::pin(batches), schema))
    }

    /// The condition of a query over one table: for the WHERE of an index.
    pub fn condition(&self, query: Query, scope: &Scope<'_>) -> Result<Condition> {
        let plan = self.state.optimize(&self.plan(query, scope, &[])?).map_err(df_error)?;
        let (mut found, mut formulas) = (Vec::new(), Vec::new());
        let source = source_of(&plan)?;
        conditions(&plan, source.as_ref(), &mut |predicate, expr| {
            found.push(predicate);
            if let (Some(source), Some(expr)) = (&source, expr) {
                formulas.extend(formulas_in(expr, source.names()));
            }
        });
        Ok(Condition { predicate: Predicate::and(found), formulas })
    }

    /// The formula that the one output of a query over one table is; `None` if it is no formula.
    pub fn formula(&self, query: Query, scope: &Scope<'_>) -> Result<Option<Formula>> {
        let plan = self.state.optimize(&self.plan(query, scope, &[])?).map_err(df_error)?;
        let LogicalPlan::Projection(projection) = &plan else { return Ok(None) };
        let (Some(source), [expr]) = (source_of(&plan)?, &projection.expr[..]) else { return Ok(None) };
        let expr = at_scan(expr.clone(), &projection.input);
        let found = expr.and_then(|expr| formula(&expr, source.names())).map(|(formula, _)| formula);
        Ok(found.filter(|formula| formula.ty().is_some()))
    }

    /// All rows of a query in one batch: for the small ones a statement needs on the way.
    pub async fn collect(
        &self,
        query: Query,
        scope: &Scope<'_>,
        params: &[Value],
        limits: &Limits<'_>,
    ) -> Result<RecordBatch> {
        let plan = self.physical(self.plan(query, scope, params)?, limits.cancel).await?;
        let schema = plan.schema();
        let batches: Vec<RecordBatch> = self.start(plan, limits)?.try_collect().await?;
        let batch = arrow::compute::concat_batches(&schema, &batches)
            .map_err(|e| Error::internal("batches of one query differ").caused_by(e))?;
        renamed(batch.columns().to_vec(), batch.num_rows(), &output_schema(&schema))
    }
}

/// A plan made executable for one thread, and for all of them.
struct Ways {
    alone: Arc<dyn ExecutionPlan>,
    shared: Option<Arc<dyn ExecutionPlan>>,
}

/// Is it known what a plan is for?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// One run, now: it is made one way, joins that can look rows up doing so.
    No,
    /// Many runs, each of which decides.
    Yes,
}

/// Optimises a logical plan and makes it executable.
async fn ways(mut state: SessionState, plan: LogicalPlan, keep: Keep) -> Result<Ways> {
    state.mark_start_execution();
    let plan = state.optimize(&plan).map_err(df_error)?;
    let plan = extremes::from_one_end(plan).and_then(order::advise).and_then(parallel::advise);
    let plan = plan.and_then(short_circuits);
    let plan = if keep == Keep::Yes { plan.and_then(open::open) } else { plan };
    let plan = plan.map_err(df_error)?;
    let planner = Arc::clone(state.query_planner());
    // To share little work out to threads costs more than the work.
    let threads = std::mem::replace(&mut state.config_mut().options_mut().execution.target_partitions, 1);
    let mut alone = planner.create_physical_plan(&plan, &state).await.map_err(df_error)?;
    if keep == Keep::No {
        alone = lookup::instead_of_hashes(alone).map_err(df_error)?;
        if !parallel::is_long(&alone) {
            return Ok(Ways { alone, shared: None });
        }
    }
    state.config_mut().options_mut().execution.target_partitions = threads;
    let shared = planner.create_physical_plan(&plan, &state).await.map_err(df_error)?;
    Ok(Ways { alone, shared: Some(shared) })
}

/// The WHERE of an index.
pub struct Condition {
    /// In our own algebra.
    pub predicate: Predicate,
    /// What it computes.
    pub formulas: Vec<Formula>,
}

/// The table that a plan reads first.
fn source_of(plan: &LogicalPlan) -> Result<Option<TableSource>> {
    if let LogicalPlan::TableScan(scan) = plan {
        let provider = source_as_provider(&scan.source).map_err(df_error)?;
        let any: &dyn std::any::Any = &*provider;
        return Ok(any.downcast_ref::<TableSource>().cloned());
    }
    plan.inputs().first().map_or(Ok(None), |input| source_of(input))
}

/// An expression over the output of `input`, without the projections that common parts were moved to.
fn at_scan(expr: Expr, input: &LogicalPlan) -> Option<Expr> {
    match input {
        LogicalPlan::Projection(projection) => at_scan(below(&expr, projection)?, &projection.input),
        _ => Some(expr),
    }
}

/// What a plan filters its one table by, in our algebra and as DataFusion has it.
fn conditions(
    plan: &LogicalPlan,
    source: Option<&TableSource>,
    see: &mut dyn FnMut(Predicate, Option<&Expr>),
) {
    match (plan, source) {
        (LogicalPlan::TableScan(scan), Some(source)) => {
            scan.filters.iter().for_each(|filter| see(source.predicate(filter), Some(filter)));
        }
        (LogicalPlan::TableScan(scan), None) => see(Predicate::Opaque(scan.table_name.to_string()), None),
        (LogicalPlan::EmptyRelation(_), _) => see(Predicate::False, None),
        (LogicalPlan::Filter(Filter { predicate, input, .. }), _) => {
            see(Predicate::Opaque(predicate.to_string()), at_scan(predicate.clone(), input).as_ref());
        }
        _ => {}
    }
    plan.inputs().into_iter().for_each(|input| conditions(input, source, see));
}

/// Errors with it: a condition of an index that our algebra cannot say.
pub fn too_much_for_an_index() -> Error {
    Error::unsupported("this WHERE is too much for an index")
        .why("an entry must be decided from one row's columns and literals alone")
        .hint("use =, <, BETWEEN, IN, LIKE, IS NULL, AND, OR and NOT on columns, formulas and literals")
}

/// Resolves the names of one statement.
struct Names<'a> {
    planner: &'a Planner,
    scope: &'a Scope<'a>,
    /// Views whose query this is, the outermost first.
    views: Vec<String>,
    hints: &'a Hinted,
    /// No snapshot was named.
    is_now: &'a Cell<bool>,
}

impl Names<'_> {
    fn to_plan(&self, mut query: Query) -> DfResult<LogicalPlan> {
        plain_calls(&mut query);
        let catalog = self.scope.catalog;
        let has_column = |name: &str| catalog.tables().any(|table| table.column_id(name).is_some());
        crate::sql::name_outer_tables(&mut query, &has_column);
        let is_scalar = |name: &str| self.get_function_meta(name).is_some();
        check_calls(&query, &is_scalar).map_err(to_df)?;
        self.hints.take(&mut query).map_err(to_df)?;
        let options = ParserOptions::from(&self.planner.state.config_options().sql_parser);
        SqlToRel::new_with_options(self, options).statement_to_plan(
            datafusion::sql::parser::Statement::Statement(Box::new(ast::Statement::Query(Box::new(query)))),
        )
    }

    fn view(&self, view: &ViewDef) -> DfResult<Arc<dyn DfTableSource>> {
        if self.views.contains(&view.name) {
            return Err(to_df(Error::invalid(format!("view \"{}\" reads itself", view.name))));
        }
        if self.views.len() >= VIEW_DEPTH {
            return Err(to_df(Error::invalid(format!("views nest more than {VIEW_DEPTH} deep"))));
        }
        let mut query = crate::sql::parse_query(&view.sql).map_err(to_df)?;
        crate::sql::name_outputs(&mut query);
        let wanted = crate::sql::mentions_rowkey(&query);
        crate::sql::resolve_joins(&mut query, &|name| wanted && self.has_rowkey(name)).map_err(to_df)?;
        // Whether tables have their rowkey for a column, each query says for itself.
        let rowkeys = if wanted { vec![ROWKEY] } else { Vec::new() };
        let scope = &Scope { rowkeys, rows: Vec::new(), binding: self.scope.binding.clone(), ..*self.scope };
        let views = self.views.iter().chain([&view.name]).cloned().collect();
        let plan = Names { scope, views, ..*self }.to_plan(query);
        let plan = rename(plan.map_err(|e| to_df(in_view(df_error(e), &view.name)))?, &view.columns)?;
        Ok(provider_as_source(Arc::new(ViewTable::new(plan, Some(view.sql.clone())))))
    }

    /// A name is that of a table or an index table whose rowkey is not one of its columns already.
    fn has_rowkey(&self, name: &ast::ObjectName) -> bool {
        let name = crate::sql::table_name_of(name).ok();
        match name.and_then(|name| self.scope.catalog.find(&name)) {
            Some(Relation::Table(table)) => !table.names_rowkey(),
            Some(Relation::Index(..)) => true,
            Some(Relation::View(_)) | None => false,
        }
    }

    /// What a name stood for in a snapshot.
    fn as_of(&self, snapshot: &str, name: &str) -> DfResult<Arc<dyn DfTableSource>> {
        let Scope { moments, binding, rowkeys, .. } = self.scope;
        let Some(moment) = moments.get(snapshot) else {
            let hint = match snapshot {
                "information_schema" | "pg_catalog" => CATALOG_HINT.to_owned(),
                _ => format!("write {name}, or SHOW SNAPSHOTS"),
            };
            let error = Error::invalid(format!("there is no snapshot or schema \"{snapshot}\""))
                .why("a database has one schema, public; snapshots end with the process that took them")
                .hint(hint)
                .state(sqlstate::UNDEFINED_OBJECT);
            return Err(to_df(error));
        };
        self.is_now.set(false);
        let scope = &Scope {
            catalog: &moment.catalog,
            moments,
            binding: Binding { snapshot: Arc::clone(&moment.snapshot), ..binding.clone() },
            rowkeys: rowkeys.clone(),
            rows: Vec::new(),
        };
        Names { scope, views: self.views.clone(), ..*self }.get_table_source(TableReference::bare(name))
    }
}

/// Says which view an error is in, of several the innermost. Its place is none in the statement.
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

/// The same plan with these output names; if there are none, with its own, without the marks that are not needed.
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
    datafusion::logical_expr::LogicalPlanBuilder::from(plan).project(exprs)?.build()
}

impl ContextProvider for Names<'_> {
    fn get_table_source(&self, name: TableReference) -> DfResult<Arc<dyn DfTableSource>> {
        if let Some(schema) = name.schema().filter(|schema| !crate::sql::is_our_schema(schema)) {
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
                (table, index)
            }
            Some(Relation::View(view)) => return self.view(&view),
            None => return Err(to_df(scope.catalog.unknown(name))),
        };
        let hints = self.hints.about(&table, index.as_ref());
        let advice = Advice { hints, statistics: scope.catalog.statistics(table.id).cloned() };
        let source = TableSource::new(table, index, scope.binding.clone(), &scope.rowkeys, advice);
        Ok(provider_as_source(Arc::new(source)))
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> DfResult<Arc<dyn DfTableSource>> {
        let Some(function) = self.planner.state.table_functions().get(name) else {
            return Err(to_df(Error::invalid(format!("there is no table function \"{name}\""))));
        };
        let args = datafusion::catalog::TableFunctionArgs::new(&args, &self.planner.state);
        Ok(provider_as_source(function.create_table_provider_with_args(args)?))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> DfResult<Arc<dyn DfTableSource>> {
        let table = datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema);
        Ok(provider_as_source(Arc::new(table)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        self.planner.state.expr_planners()
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(Types))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        if name == functions::ROWKEY_EXPLAIN {
            return Some(functions::rowkey_explain(self.scope.catalog));
        }
        self.planner.state.scalar_functions().get(name).cloned()
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.planner.state.higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.planner.state.aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.planner.state.window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.planner.state.config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.planner.state.scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.planner.state.higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.planner.state.aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.planner.state.window_functions().keys().cloned().collect()
    }
}

/// Our types where DataFusion reads a name differently: FLOAT is 64-bit, times are microseconds.
#[derive(Debug)]
struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> DfResult<Option<FieldRef>> {
        let ty = crate::sql::column_type(sql_type).ok();
        Ok(ty.map(|ty| Arc::new(ArrowField::new("", crate::row::arrow_type(ty), true))))
    }
}

/// A value as DataFusion's scalar.
pub fn scalar_of(value: &Value) -> Result<ScalarValue> {
    Ok(match value {
        Value::Null => ScalarValue::Null,
        Value::Boolean(b) => ScalarValue::Boolean(Some(*b)),
        Value::Int(i) => ScalarValue::Int64(Some(*i)),
        Value::Double(d) => ScalarValue::Float64(Some(crate::value::canonical_double(*d))),
        Value::Decimal(d, scale) => {
            let digits = d.unsigned_abs().checked_ilog10().map_or(1, |n| n as u8 + 1);
            ScalarValue::Decimal128(Some(*d), digits.max(*scale), *scale as i8)
        }
        Value::Text(t) => ScalarValue::Utf8(Some(t.clone())),
        Value::Bytes(b) => ScalarValue::Binary(Some(b.clone())),
        Value::Date(d) => ScalarValue::Date32(Some(*d)),
        Value::Timestamp(t) => ScalarValue::TimestampMicrosecond(Some(*t), None),
        Value::TimestampTz(t) => ScalarValue::TimestampMicrosecond(Some(*t), Some("+00:00".into())),
        Value::Uuid(_) => ScalarValue::Utf8(Some(value.to_string())),
    })
}
