//! Plans a query with DataFusion over our tables, and runs the plan.
//!
//! One [`Planner`] serves the process: it owns the function registry and the optimizer, and is built for the first
//! query. What changes from statement to statement (catalog, snapshot, whether the rowkey is a column) is a
//! [`NameScope`], so all plans of a statement see one catalog and one snapshot.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::{DFSchemaRef, ParamValues, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::{ApplyOrder, Optimizer, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::{Stream, StreamExt, TryStreamExt};
use sqlparser::ast::{Function, ObjectNamePart, Query};

use super::below::{in_one, output_schema, renamed};
use super::cached::parameters;
use super::computed::computed_columns;
use super::contained::Stage;
use super::errors::df_error;
use super::expr::scalar_of;
use super::expressions::aggregate_orders::{distinct_on_orders, distinct_orders, idle_orders};
use super::expressions::beside::{beside_columns, beside_subqueries};
use super::expressions::binary_keys::texts_as_binary_keys;
use super::expressions::checked::{CheckedNumbers, wide_integers};
use super::expressions::compared::times;
use super::expressions::dates::whole_days;
use super::expressions::doubles::doubles_win;
use super::expressions::elements::of_row;
use super::expressions::intervals::{differences_in_days, interval_lengths};
use super::expressions::lazy::lazy_functions;
use super::expressions::like::{byte_patterns, own_patterns};
use super::expressions::long_decimals::long_decimals;
use super::expressions::offsets::{lag_defaults, row_offsets};
use super::expressions::one_by_one::one_by_one;
use super::expressions::quotients::nearest_doubles;
use super::expressions::read_times::read_times;
use super::expressions::rounding::{lossy_casts, rounded_casts, rounded_decimals};
use super::expressions::settled::Settled;
use super::expressions::step_types::steps_as_first;
use super::expressions::text::{
    ParameterOperands, byte_casts, plain_texts, text_casts, text_operands, texts_beside_times,
};
use super::expressions::three_valued::ThreeValued;
use super::expressions::time_parts::time_parts;
use super::expressions::time_zone::{at_time_zone, is_yet_to_be_told};
use super::functions::described::DescribedFunction;
use super::hints::Hinted;
use super::operators::apart::{apart, batches_apart};
use super::operators::few_first::few_first;
use super::operators::join_rows::estimates;
use super::operators::pages::pages;
use super::operators::push_down::PushDown;
use super::operators::recursion::row_by_row;
use super::operators::scan::threads;
use super::operators::with_query::WithQueryExec;
use super::operators::yielding::yielding;
use super::resolver::{PlannedViews, Resolver, Types};
use super::rewrite::{ExpressionRules, LogicalAround, LogicalRule, NodeRule, PlanAround, PlanRule};
use super::rules::above_totals::above_totals;
use super::rules::anti_join::anti_join;
use super::rules::carried::carried;
use super::rules::drawn_once::DrawnOnce;
use super::rules::filled_groups::filled_groups;
use super::rules::frames::{frames_of_bytes, wide_frames};
use super::rules::join_order::fewest_first;
use super::rules::kept_apart;
use super::rules::kept_sorts::fixed_rows;
use super::rules::multisets::numbered;
use super::rules::named_unions::named_unions;
use super::rules::null_frames::whole_frames;
use super::rules::offset::offset;
use super::rules::picking::pick_apart;
use super::rules::satisfied::satisfied;
use super::rules::short_circuit::guarded_by_filters;
use super::rules::true_keys::{by_true_keys, by_true_keys_of_rows};
use super::rules::wide_columns::wide_columns;
use super::rules::window_keys::compared_keys;
use super::subqueries::correlated::Correlated;
use super::subqueries::guards::guarded_subqueries;
use super::subqueries::join_condition::subqueries_in_on;
use super::subqueries::of_no_table::total_of_no_table;
use super::subqueries::or_null::value_or_null;
use super::subqueries::order_subquery::subqueries_in_order;
use super::subqueries::outer_types::Coercion;
use super::table::Binding;
use super::ways::{Keep, Shared, Ways, ways};
use super::with_queries::PlannedApart;
use super::{explain, functions};
use crate::catalog::Catalog;
use crate::df::functions::described;
use crate::df::functions::json_building::{JSON_AGGREGATES, chosen_json};
use crate::df::operators::{grouped, in_turn, late};
use crate::error::{Error, Result, sqlstate};
use crate::exec::watch::CancelHandle;
use crate::sql::mentions_rowkey;
use crate::sql::rewrite::ROWKEY;
use crate::store::Snapshot;
use crate::value::Value;

/// Limits of a join's dynamic filter: keys (count) and bytes of keys of the build side that narrow the probe side's
/// scan.
const LEARNED_VALUES: usize = 10_000;
const LEARNED_BYTES: usize = 1 << 20;

/// Folder of spill files. Whatever a killed process leaves there is garbage.
pub const SPILL_FOLDER: &str = "spill";

/// The batches of a query, computed as they are polled.
pub type BatchStream = Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>;

/// Catalog and data at one moment.
#[derive(Clone)]
pub struct Moment {
    /// Tables, index tables and views.
    pub catalog: Arc<Catalog>,
    /// The data.
    pub snapshot: Arc<dyn Snapshot>,
    /// When that was, in microseconds since 1970: rows that had expired by then are hidden.
    pub as_of_us: i64,
}

/// Moments by snapshot name.
pub type Moments = BTreeMap<String, Moment>;

/// What the names in one statement stand for.
pub struct NameScope<'a> {
    /// Tables, index tables and views.
    pub catalog: &'a Catalog,
    /// Past moments: a table's name may be qualified by a snapshot or a period.
    pub moments: &'a Moments,
    /// Snapshot, and the parameters that the plan leaves open.
    pub binding: Binding,
    /// Names under which the rowkey is a column of every table: [`ROWKEY`] in queries that mention it, others in all.
    pub rowkeys: Vec<&'a str>,
    /// Rows of no table, by name; they hide tables of the same name.
    pub rows: Vec<(String, RecordBatch)>,
    /// What `now()` is in the arguments of table functions, in microseconds since 1970.
    pub now_us: i64,
}

impl<'a> NameScope<'a> {
    /// Names under which the rowkey is a column of the tables in a query.
    pub fn rowkeys_of(&self, query: &Query) -> Vec<&'a str> {
        let is_mentioned = mentions_rowkey(query);
        self.rowkeys.iter().copied().filter(|name| is_mentioned || *name != ROWKEY).collect()
    }
}

/// A query as it was written, its names resolved.
pub(super) struct Resolved {
    pub(super) plan: LogicalPlan,
    /// No name refers to the past, and no table function depends on the time.
    pub(super) is_now: bool,
    /// Positions of the parameters whose values are in the plan.
    pub(super) taken: Vec<usize>,
}

/// Resource limits of a run, and its time.
pub struct RunLimits<'a> {
    /// Bytes for sorts, joins and groups; beyond that they spill to disk.
    pub memory: Option<u64>,
    /// The folder of the database; spill files go to its [`SPILL_FOLDER`].
    pub folder: Option<&'a Path>,
    /// Deadline and cancellation.
    pub cancel: &'a CancelHandle,
    /// What `now()` is, in microseconds since 1970.
    pub now_us: i64,
}

impl RunLimits<'_> {
    /// Makes errors of these limits name the plan that ran into them.
    fn follow(&self, plan: &Arc<dyn ExecutionPlan>) -> impl Fn(DataFusionError) -> Error + use<> {
        self.cancel.plan(|| {
            // Keep the text only: the plan would keep its snapshot alive.
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
            let error = error.plan(&plan);
            match note {
                Some(note) => error.hint(format!("{note}; or raise memory_limit")),
                None => error,
            }
        }
    }
}

/// Plans and runs queries.
pub struct Planner {
    pub(super) state: SessionState,
    context: Arc<TaskContext>,
}

impl Planner {
    /// The planner of this process.
    pub fn shared() -> &'static Planner {
        static SHARED: LazyLock<Planner> = LazyLock::new(Planner::new);
        &SHARED
    }

    /// A planner with every function registered.
    fn new() -> Planner {
        let mut state = SessionStateBuilder::new()
            .with_config(config())
            .with_default_features()
            .with_type_planner(Arc::new(Types))
            .with_query_planner(Arc::new(PlannedApart))
            .with_statistics_registry(estimates())
            .with_optimizer_rules(optimizer_rules())
            .with_physical_optimizer_rules(physical_optimizer_rules())
            .with_analyzer_rules(analyzer_rules())
            .build();
        functions::register(&mut state);
        let context = state.task_ctx();
        Planner { state, context }
    }
}

/// How DataFusion reads SQL, plans and runs.
fn config() -> SessionConfig {
    let mut config = SessionConfig::new().with_information_schema(false).with_target_partitions(threads());
    let options = config.options_mut();
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    options.sql_parser.collect_spans = true;
    // `inner_orders` decides which of them matter.
    options.sql_parser.enable_subquery_sort_elimination = false;
    // The build side of a join narrows the scan of the probe side.
    options.optimizer.hash_join_inlist_pushdown_max_distinct_values = LEARNED_VALUES;
    options.optimizer.hash_join_inlist_pushdown_max_size = LEARNED_BYTES;
    // A scan reads its dynamic filters once, at its start; top-k and aggregates fill theirs later.
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // It treats NaNs as different from each other, and it can panic.
    options.optimizer.enable_topk_aggregation = false;
    options.optimizer.use_statistics_registry = true;
    // The check compares nullability before and after planning, which may differ for CASE and NULLIF.
    options.execution.skip_physical_aggregate_schema_check = true;
    // NULLs are smallest, as in SQLite and in our keys: an index gives ORDER BY for free.
    options.sql_parser.default_null_ordering = "nulls_min".to_owned();
    config
}

/// Rules that give a plan the meaning of SQL, in the order in which they run.
fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    vec![
        Arc::new(ResolveGroupingFunction::new()),
        Arc::new(NodeRule("numbered", numbered)),
        Arc::new(NodeRule("distinct_on_orders", distinct_on_orders)),
        Arc::new(NodeRule("subqueries_in_on", subqueries_in_on)),
        Arc::new(NodeRule("subqueries_in_order", subqueries_in_order)),
        Arc::new(DrawnOnce),
        Arc::new(ExpressionRules(
            "as_written",
            &[
                value_or_null,
                plain_texts,
                chosen_json,
                idle_orders,
                time_parts,
                read_times,
                texts_beside_times,
            ],
        )),
        Arc::new(Settled),
        // AT TIME ZONE of LIMIT, which is not settled.
        Arc::new(ExpressionRules("once_settled", &[row_offsets, lag_defaults, at_time_zone])),
        Arc::new(NodeRule("texts_as_binary_keys", texts_as_binary_keys)),
        Arc::new(ExpressionRules(
            "operands",
            &[
                byte_patterns,
                one_by_one,
                times,
                text_operands,
                interval_lengths,
                doubles_win,
                long_decimals,
                beside_subqueries,
            ],
        )),
        Arc::new(NodeRule("beside_columns", beside_columns)),
        Arc::new(NodeRule("wide_frames", wide_frames)),
        Arc::new(ExpressionRules(
            "numbers",
            &[whole_days, wide_integers, byte_casts, rounded_casts, rounded_decimals, frames_of_bytes],
        )),
        Arc::new(Coercion(TypeCoercion::new())),
        Arc::new(NodeRule("steps_as_first", steps_as_first)),
        Arc::new(ExpressionRules(
            "after_coercion",
            &[
                lossy_casts,
                differences_in_days,
                distinct_orders,
                own_patterns,
                text_casts,
                nearest_doubles,
                of_row,
                lazy_functions,
                guarded_by_filters,
            ],
        )),
        Arc::new(NodeRule("guarded_subqueries", guarded_subqueries)),
        Arc::new(Correlated),
        Arc::new(NodeRule("total_of_no_table", total_of_no_table)),
        Arc::new(NodeRule("compared_keys", compared_keys)),
        Arc::new(CheckedNumbers::new()),
    ]
}

/// DataFusion's logical rules, with five of our own; those that can give wrong results are wrapped or replaced.
fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Vec::new();
    for rule in Optimizer::new().rules {
        match rule.name() {
            "simplify_expressions" => rules.push(Arc::new(ThreeValued::default()) as _),
            "eliminate_duplicated_expr" | "replace_distinct_aggregate" => {
                rules.push(Arc::new(LogicalAround(rule, by_true_keys_of_rows)) as _);
            }
            "eliminate_join" => rules.push(Arc::new(LogicalAround(rule, by_true_keys)) as _),
            "optimize_projections" => rules.extend([
                Arc::new(LogicalRule("filled_groups", Some(ApplyOrder::TopDown), filled_groups)) as _,
                Arc::new(LogicalRule("wide_columns", None, wide_columns)) as _,
                Arc::new(LogicalAround(rule, by_true_keys)) as _,
            ]),
            "propagate_empty_relation" => rules.push(Arc::new(LogicalAround(rule, named_unions)) as _),
            "eliminate_cross_join" => {
                rules.push(Arc::new(LogicalAround(rule, kept_apart::of_all_joins)) as _);
            }
            "single_distinct_aggregation_to_group_by" => {
                rules.push(Arc::new(LogicalAround(rule, kept_apart::of_sums)) as _);
            }
            "extract_equijoin_predicate" => {
                rules.push(Arc::new(LogicalAround(rule, kept_apart::of_a_join)) as _);
            }
            "eliminate_outer_join" => {
                let anti_join = LogicalRule("anti_join", Some(ApplyOrder::TopDown), anti_join);
                rules.extend([rule, Arc::new(anti_join) as _]);
            }
            "push_down_filter" => {
                rules.extend([
                    Arc::new(LogicalRule("carried", Some(ApplyOrder::BottomUp), carried)) as _,
                    Arc::new(LogicalAround(rule, above_totals)) as _,
                    Arc::new(LogicalRule("computed_columns", None, computed_columns)) as _,
                ]);
            }
            _ => rules.push(rule),
        }
    }
    rules
}

/// DataFusion's physical rules, without those that identify columns by name, and with our own.
fn physical_optimizer_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = Vec::new();
    for rule in PhysicalOptimizer::new().rules {
        match rule.name() {
            // The second takes a total without FILTER for that of one with it above.
            "FilterPushdown" | "aggregate_statistics" => {}
            "join_selection" => rules.push(Arc::new(PlanAround(rule, fewest_first)) as _),
            "EnsureRequirements" => rules.push(Arc::new(PlanAround(rule, fixed_rows)) as _),
            "SanityCheckPlan" => rules.push(Arc::new(PlanAround(rule, satisfied)) as _),
            "ProjectionPushdown" => rules.push(Arc::new(PlanAround(rule, pick_apart)) as _),
            "FilterPushdown(Post)" => rules.push(Arc::new(PushDown) as _),
            _ => rules.push(rule),
        }
    }
    let last = [
        PlanRule("whole_frames", whole_frames),
        PlanRule("offset", offset),
        PlanRule("few_first", |plan| few_first(plan, None)),
        PlanRule("row_by_row", row_by_row),
        PlanRule("pages", pages),
        PlanRule("yielding", yielding),
    ];
    rules.extend(last.map(|rule| Arc::new(rule) as _));
    rules
}

impl Planner {
    /// The logical plan of `query`, its `$n` replaced by `params`.
    pub fn plan(&self, query: Query, scope: &NameScope<'_>, params: &[Value]) -> Result<LogicalPlan> {
        let Resolved { plan, .. } = self.resolved(query, scope, params)?;
        let values: Result<Vec<ScalarValue>> = params.iter().map(scalar_of).collect();
        let values = ParamValues::from(values?);
        Stage::Planning.contain(|| {
            // DataFusion would make one group of a grouping set.
            let grouped = parameters::params_of(&plan, &|node| matches!(node, LogicalPlan::Aggregate(_)));
            let plan = grouped.and_then(|grouped| parameters::settled(plan, params, &grouped));
            plan.and_then(|plan| plan.with_param_values(values)).map_err(df_error)
        })
    }

    /// The columns of a query. They have their types once AT TIME ZONE is what it becomes.
    pub fn columns_of(&self, query: Query, scope: &NameScope<'_>, params: &[Value]) -> Result<DFSchemaRef> {
        let plan = self.plan(query, scope, params)?;
        let is_told = |field: &FieldRef| !is_yet_to_be_told(field.data_type());
        if plan.schema().fields().iter().all(is_told) {
            return Ok(Arc::clone(plan.schema()));
        }
        let plan = Stage::Planning.contain(|| self.state.optimize(&plan).map_err(df_error))?;
        Ok(Arc::clone(plan.schema()))
    }

    /// [`Planner::plan`] without parameters, optimised as a whole.
    pub fn optimised(&self, query: Query, scope: &NameScope<'_>) -> Result<LogicalPlan> {
        let plan = self.plan(query, scope, &[])?;
        Stage::Planning.contain(|| self.state.optimize(&plan).map_err(df_error))
    }

    /// Resolves the names of a query, for parameters of these types. Errors: a name or a hint that names nothing.
    pub(super) fn resolved(&self, query: Query, scope: &NameScope<'_>, params: &[Value]) -> Result<Resolved> {
        let (hints, is_now, taken) = (Hinted::default(), Cell::new(true), RefCell::default());
        let (planned, height, named) = (PlannedViews::default(), Cell::new(0), Cell::new(1));
        let typed: Arc<dyn ExprPlanner> = Arc::new(ParameterOperands::new(params));
        let operators = [&[typed], self.state.expr_planners()].concat();
        let resolver = Resolver {
            state: &self.state,
            scope,
            params,
            operators: &operators,
            rowkeys: Vec::new(),
            views: Vec::new(),
            planned: &planned,
            height: &height,
            named: &named,
            hints: &hints,
            is_now: &is_now,
            taken: &taken,
        };
        let plan = Stage::Planning.contain(|| resolver.plan(query).map_err(df_error))?;
        hints.check(scope.catalog)?;
        Ok(Resolved { plan, is_now: is_now.get(), taken: taken.into_inner() })
    }

    /// The functions of the registry, by name.
    pub fn functions(&self) -> Vec<DescribedFunction> {
        described::functions(&self.state)
    }

    /// The function is an aggregate.
    pub fn is_aggregate(&self, call: &Function) -> bool {
        let name = call.name.0.last().and_then(ObjectNamePart::as_ident).map(crate::sql::name_of);
        name.is_some_and(|name| {
            self.state.aggregate_functions().contains_key(&name)
                || JSON_AGGREGATES.iter().any(|(names, ..)| names.contains(&&name[..]))
        })
    }

    /// Optimises a logical plan and makes it executable.
    pub async fn physical(
        &self,
        plan: LogicalPlan,
        limits: &RunLimits<'_>,
        by_one_thread: bool,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(match self.ways(plan, Keep::No(limits.now_us), limits.cancel).await? {
            Ways { shared: Shared::Plan(shared), alone, .. }
                if !by_one_thread && super::parallel::is_shorter(&shared, &alone) =>
            {
                shared
            }
            Ways { alone, .. } => alone,
        })
    }

    pub(super) async fn ways(&self, plan: LogicalPlan, keep: Keep, cancel: &CancelHandle) -> Result<Ways> {
        let planned = Stage::Planning.contain_all(ways(self.state.clone(), plan, keep));
        if cancel.may_stop() { apart(planned).await } else { planned.await }
    }

    /// The task context of a run: its sorts, joins and groups use at most this much memory, then spill.
    fn context(&self, limits: &RunLimits<'_>) -> Result<Arc<TaskContext>> {
        let Some(bytes) = limits.memory else { return Ok(Arc::clone(&self.context)) };
        let pool = FairSpillPool::new(usize::try_from(bytes).unwrap_or(usize::MAX));
        let mut runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool));
        if let Some(folder) = limits.folder {
            // Beside the data: the system's temporary folder may be in memory.
            let folder = folder.join(SPILL_FOLDER);
            std::fs::create_dir_all(&folder)?;
            let mode = DiskManagerMode::Directories(vec![folder]);
            runtime = runtime.with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode));
        }
        let runtime = runtime.build_arc().map_err(df_error)?;
        Ok(Arc::new(TaskContext::from(&self.state).with_runtime(runtime)))
    }

    /// Starts a plan; its batches as a stream.
    fn start(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        limits: &RunLimits<'_>,
    ) -> Result<impl Stream<Item = Result<RecordBatch>> + use<>> {
        let failed = limits.follow(&plan);
        let context = self.context(limits)?;
        let batches = Stage::Running.contain(|| {
            let plan = in_turn::short_unions(plan).and_then(grouped::in_scans).and_then(WithQueryExec::anew);
            let plan = plan.and_then(late::once_told);
            plan.and_then(|plan| execute_stream(plan, context)).map_err(df_error)
        })?;
        let batches = if limits.cancel.may_stop() { batches_apart(batches) } else { batches };
        let batches = AssertUnwindSafe(batches.map_err(failed)).catch_unwind();
        Ok(batches.map(|batch| batch.unwrap_or_else(|_| Err(Stage::Running.failed()))))
    }

    /// Starts a plan; its batches as a stream, and their schema.
    pub fn run(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        limits: &RunLimits<'_>,
    ) -> Result<(BatchStream, SchemaRef)> {
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

    /// All rows of a query in one batch: of a statement's own small queries, and those that an UPDATE or DELETE finds.
    pub async fn collect(
        &self,
        query: Query,
        scope: &NameScope<'_>,
        params: &[Value],
        limits: &RunLimits<'_>,
    ) -> Result<RecordBatch> {
        let plan = self.physical(self.plan(query, scope, params)?, limits, false).await?;
        let schema = plan.schema();
        let batches: Vec<RecordBatch> = self.start(plan, limits)?.try_collect().await?;
        let batch = in_one(&schema, &batches)?;
        renamed(batch.columns().to_vec(), batch.num_rows(), &output_schema(&schema))
    }
}
