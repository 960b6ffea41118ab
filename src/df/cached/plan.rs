//! Plans that are made once and run many times.
//!
//! A run provides a [`Binding`]: a snapshot and values for the parameters. The scans choose their paths anew; the
//! operators above are only reset. The expected amount of reads then decides whether joins look rows up, and whether
//! several threads share the work. Some plans run without DataFusion's streams ([`super::alone`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::datatypes::SchemaRef;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{ChildrenPropertiesMode, ExecutionPlan, ReplaceChildrenOptions};

use super::aggregates::ScanAggregate;
use super::alone::{Alone, Single};
use super::open_values::OpenValuesExec;
use super::page::Paging;
use super::totals::Totals;
use super::values_first::ValuesFirst;
use super::{parameters, subquery_values};
use crate::access::{Guards, Need};
use crate::df::below::{holds, output_schema};
use crate::df::contained::Stage;
use crate::df::errors::df_error;
use crate::df::functions::series::SeriesExec;
use crate::df::operators::lookup::{LookupBy, Lookups, Nested, NestedExec};
use crate::df::operators::push_down::PushDown;
use crate::df::operators::scan::ScanExec;
use crate::df::operators::seek::SeekJoinExec;
use crate::df::operators::trial::TrialExec;
use crate::df::operators::with_query::WithQueryExec;
use crate::df::operators::{lookup, seek};
use crate::df::parallel;
use crate::df::table::Binding;
use crate::df::ways::{Shared, Ways};
use crate::error::Result;
use crate::exec::scan::ScanSpec;
use crate::value::Value;

/// A cached plan: it has no snapshot.
#[derive(Debug)]
pub struct UnboundPlan {
    form: PlanForm,
    /// The plan for several threads.
    shared: Shared<PlanForm>,
    /// A run would have been shared, but there is no plan for that yet.
    lacks_threads: AtomicBool,
    /// The plan with lookup joins only, if it has joins and all of them can be lookups.
    looked_up: Option<PlanForm>,
    /// The plan as one that runs without operators, if possible.
    single: Option<Single>,
    /// Nested lookup joins that are the whole plan: these are tried first.
    nested: Vec<Arc<Nested>>,
    /// The plan with nested lookup joins below other operators.
    nested_below: Option<PlanForm>,
    schema: SchemaRef,
    /// The plan has joins, whose algorithm may be replaced.
    joins: bool,
    /// Parameters in LIMIT and OFFSET.
    paging: Option<PageOf>,
    /// The plan with the values of its subqueries computed first.
    values_first: Option<Box<ValuesFirst>>,
}

/// How a run gives the page that parameters tell.
#[derive(Clone, Copy, Debug)]
enum PageOf {
    /// The plan is a single scan, which gives the page.
    Scan(Paging),
    /// The page is cut out of the plan's rows.
    Rows(Paging),
}

/// One executable form of a plan.
#[derive(Debug)]
struct PlanForm {
    root: Arc<dyn ExecutionPlan>,
    /// The options with which each run sets up dynamic filters of scans, if joins, sorts or subqueries feed some. Default
    /// ones would read files of the system.
    tells: Option<Arc<ConfigOptions>>,
    /// It has scalar subqueries.
    has_subqueries: bool,
}

/// A plan bound for one run.
pub enum BoundPlan {
    /// Runs without operators.
    Alone(Box<Alone>),
    /// Anything else.
    Plan(Arc<dyn ExecutionPlan>),
}

impl BoundPlan {
    /// Several threads share the work, so rows may come in another order in each run.
    pub fn is_shared(&self) -> bool {
        let is_parted =
            |node: &dyn ExecutionPlan| node.properties().output_partitioning().partition_count() > 1;
        match self {
            BoundPlan::Alone(_) => false,
            BoundPlan::Plan(plan) => holds(plan, &is_parted),
        }
    }

    /// Skips rows, then gives so many.
    fn cut(self, skip: usize, fetch: Option<usize>) -> BoundPlan {
        match self {
            BoundPlan::Alone(alone) => BoundPlan::Alone(Alone::cut(alone, skip, fetch.unwrap_or(usize::MAX))),
            BoundPlan::Plan(mut plan) => {
                if plan.properties().output_partitioning().partition_count() > 1 {
                    plan = Arc::new(CoalescePartitionsExec::new(plan));
                }
                BoundPlan::Plan(Arc::new(GlobalLimitExec::new(plan, skip, fetch)))
            }
        }
    }
}

impl UnboundPlan {
    /// Keeps a plan for one thread and possibly one for several. `None` for a plan that reads something which cannot
    /// be read twice.
    pub fn new(ways: Ways, options: &Arc<ConfigOptions>) -> Result<Option<UnboundPlan>> {
        let Ways { alone: root, shared, ending } = ways;
        let root = &root;
        let trial = root.downcast_ref::<TrialExec>();
        let joins = |node: &dyn ExecutionPlan| node.is::<HashJoinExec>() || node.is::<NestedLoopJoinExec>();
        let joins = holds(root, &joins);
        let schema = output_schema(&root.schema());
        // A join with a dynamic filter cannot be turned; a fresh copy can.
        let otherwise = trial.map_or(root, TrialExec::otherwise);
        let as_new = if joins { each_leaf(otherwise, &mut |_| Ok(Leaf::Same))? } else { None };
        let as_new = as_new.map(lookup::once_is_enough).transpose().map_err(df_error)?;
        let looking_up = as_new.map(lookup::instead_of_all_hashes).transpose().map_err(df_error)?;
        let seeking = looking_up.clone().map(seek::instead_of_all_pairs).transpose().map_err(df_error)?;
        let nested = seeking.as_ref().or((!joins).then_some(root));
        let nested = nested.and_then(|root| Nested::of(root, &schema));
        let hashes = if joins { parallel::known_work(otherwise) } else { None };
        let nested = nested.map(|nested| nested.beside(hashes));
        let tried = match trial {
            Some(trial) => Nested::ending(trial.first(), trial.work_otherwise(), &schema),
            None => ending.iter().find_map(|plan| Nested::ending(plan, hashes?, &schema)),
        };
        let nested_below = match nested.as_ref().is_none_or(Nested::gathers) {
            true => match nested_below(seeking.as_ref(), hashes)? {
                None => nested_below(looking_up.as_ref(), hashes)?,
                below => below,
            },
            false => None,
        };
        let form_of = |root| PlanForm::of(root, options);
        let nested_below = nested_below.as_ref().map(form_of).transpose()?.flatten();
        let looked_up = looking_up.filter(lookup::are_all_lookups);
        let looked_up = looked_up.as_ref().map(form_of).transpose()?.flatten();
        let Some(form) = form_of(root)? else { return Ok(None) };
        let shared = match shared {
            Shared::Never => Shared::Never,
            Shared::Later => Shared::Later,
            Shared::Plan(shared) => match unbound(&shared)? {
                None => Shared::Never,
                Some(shared) if fits(&shared) => Shared::Plan(PlanForm::new(shared, Some(options))),
                Some(_) => return Ok(None),
            },
        };
        let single = Single::of(&form.root, &schema);
        let nested = nested.filter(|_| joins || single.is_none());
        Ok(Some(UnboundPlan {
            nested: nested.into_iter().chain(tried).map(Arc::new).collect(),
            nested_below,
            single,
            schema,
            joins,
            paging: None,
            values_first: None,
            form,
            shared,
            lacks_threads: AtomicBool::new(false),
            looked_up,
        }))
    }

    /// A plan that is a mere scan, with its columns under the names of `schema`.
    pub fn of_scan(scan: &ScanExec, schema: &SchemaRef) -> UnboundPlan {
        let columns: Vec<usize> = (0..schema.fields().len()).collect();
        let scan = scan.unbound().pick(&columns, schema);
        UnboundPlan::of_single(Arc::new(scan.clone()), Single::Scan(scan), schema)
    }

    /// A plan that is mere totals of a scan.
    pub fn of_totals(scan: &ScanExec, known: Vec<ScanAggregate>, schema: &SchemaRef) -> UnboundPlan {
        let scan = scan.unbound();
        let totals = Totals::of_known(scan.clone(), known, schema);
        UnboundPlan::of_single(Arc::new(scan), Single::Totals(Arc::new(totals)), schema)
    }

    /// A plan that runs in one way only; `root`: its scan, for its [paths](UnboundPlan::paths).
    fn of_single(root: Arc<dyn ExecutionPlan>, single: Single, schema: &SchemaRef) -> UnboundPlan {
        UnboundPlan {
            form: PlanForm::new(root, None),
            shared: Shared::Never,
            lacks_threads: AtomicBool::new(false),
            looked_up: None,
            single: Some(single),
            nested: Vec::new(),
            nested_below: None,
            schema: Arc::clone(schema),
            joins: false,
            paging: None,
            values_first: None,
        }
    }

    /// Lets parameters set LIMIT and OFFSET of each run; false if the plan is not a single scan that can apply them.
    pub fn page(&mut self, paging: Paging) -> bool {
        let can = matches!(&self.single, Some(Single::Scan(scan)) if scan.can_be_paged());
        self.paging = can.then_some(PageOf::Scan(paging));
        can
    }

    /// Lets each run give only the page that parameters tell, of a plan for [shared](Paging::shared) pages.
    pub fn cut(self, paging: Paging) -> UnboundPlan {
        UnboundPlan { paging: Some(PageOf::Rows(paging)), ..self }
    }

    /// Tries another form of the plan first, with the same output.
    pub fn after_values(self, first: ValuesFirst) -> UnboundPlan {
        let is_same = first.rest.schema == self.schema;
        UnboundPlan { values_first: is_same.then(|| Box::new(first)), ..self }
    }

    /// The output schema.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Needs and paths of its scans with this binding, without scans whose parameters do not suit.
    pub fn paths(&self, binding: &Binding) -> Result<Vec<(Need, Arc<ScanSpec>)>> {
        let mut paths = Vec::new();
        each_leaf(&self.form.root, &mut |leaf| {
            if let Some(scan) = leaf.downcast_ref::<ScanExec>()
                && let Some(scan) = scan.bind(binding)?
            {
                let bound = scan.bound()?;
                paths.push((bound.need.clone(), Arc::clone(&bound.spec)));
            }
            Ok(Leaf::Same)
        })?;
        Ok(paths)
    }

    /// A long run had no plan for several threads. With [`Threads::Wanted`](crate::df::ways::Threads) there would be one.
    pub fn lacks_threads(&self) -> bool {
        self.lacks_threads.load(Ordering::Relaxed)
    }

    /// Several threads should share this run of the plan.
    fn is_shared(&self, run: &Arc<dyn ExecutionPlan>) -> bool {
        !matches!(self.shared, Shared::Never) && parallel::is_long(run)
    }

    /// A run of the plan; `None` if the plan does not hold for these parameters.
    pub fn bind(&self, binding: &Binding) -> Result<Option<BoundPlan>> {
        Stage::Running.contain(|| self.bind_page(binding))
    }

    fn bind_page(&self, binding: &Binding) -> Result<Option<BoundPlan>> {
        let Some(PageOf::Rows(paging)) = self.paging else { return self.bind_whole(binding) };
        if binding.guards != Guards::default() || !paging.is_shared(&binding.params) {
            return Ok(None);
        }
        let Some((skip, fetch)) = paging.values(&binding.params) else { return Ok(None) };
        let rows = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
        Ok(self.bind_whole(binding)?.map(|run| run.cut(rows(skip), fetch.map(rows))))
    }

    /// The value of a plan of one column, if it has one row, which is found without operators, and is not NULL.
    pub fn value(&self, binding: &Binding) -> Result<Option<Value>> {
        let Some(BoundPlan::Alone(mut alone)) = self.bind(binding)? else { return Ok(None) };
        if alone.is_long() {
            return Ok(None);
        }
        let mut found = None;
        while let Some(rows) = alone.next_rows(2)? {
            for row in 0..rows.len() {
                if found.replace(rows.value(row, 0)?).is_some() {
                    return Ok(None);
                }
            }
        }
        Ok(found.filter(|value| !value.is_null()))
    }

    fn bind_whole(&self, binding: &Binding) -> Result<Option<BoundPlan>> {
        if let Some(first) = &self.values_first
            && let Some(run) = first.bind(binding)?
        {
            return Ok(Some(run));
        }
        for nested in &self.nested {
            if let Some(run) = nested.run(binding)? {
                return Ok(Some(BoundPlan::Alone(Box::new(Alone::Nested(run)))));
            }
        }
        let alone = match (&self.single, self.paging) {
            (Some(Single::Scan(scan)), Some(PageOf::Scan(paging))) => match paging.values(&binding.params) {
                Some((skip, fetch)) => Alone::of_scan(scan.paged(skip, fetch).run(binding, &Arc::default())?),
                None => None,
            },
            (Some(single), _) => single.run(binding)?,
            (None, _) => None,
        };
        match (alone, &self.single) {
            // Only operators can share the work among threads.
            (Some(alone), Some(Single::Totals(_))) if alone.is_long() => self.bind_operators(binding),
            (Some(alone), _) => Ok(Some(BoundPlan::Alone(alone))),
            // Operators would find the parameters unsuitable, too.
            (None, Some(Single::Scan(_) | Single::Totals(_))) => Ok(None),
            (None, _) => self.bind_operators(binding),
        }
    }

    fn bind_operators(&self, binding: &Binding) -> Result<Option<BoundPlan>> {
        if let Some(nested) = &self.nested_below
            && let Some(bound) = nested.bind(binding)?
            && lookup::are_worth_it(&bound)?
            && !self.is_shared(&bound)
        {
            return self.run(nested.ready(bound)?).map(Some);
        }
        if let Some(looked_up) = &self.looked_up
            && let Some(bound) =
                looked_up.bind(binding)?.map(lookup::sorted_first).transpose().map_err(df_error)?
            && let bound = bound.data
            && lookup::are_worth_it(&bound)?
            && !self.is_shared(&bound)
        {
            return self.run(looked_up.ready(bound)?).map(Some);
        }
        let Some(mut bound) = self.form.bind(binding)? else { return Ok(None) };
        // A plan that no other threads should share.
        let mut is_alone = false;
        if self.joins {
            let sorted = lookup::sorted_first(Arc::clone(&bound)).map_err(df_error)?;
            is_alone = sorted.transformed && !parallel::is_shorter(&bound, &sorted.data);
            let seeking = seek::instead_of_pairs(sorted.data).map_err(df_error)?;
            is_alone |= seeking.transformed;
            bound =
                lookup::instead_of_hashes_either_way(seeking.data, LookupBy::Rowkeys).map_err(df_error)?;
        }
        let mut bound = self.form.ready(bound)?;
        if !is_alone && self.is_shared(&bound) {
            let Shared::Plan(shared) = &self.shared else {
                self.lacks_threads.store(true, Ordering::Relaxed);
                return Ok(None);
            };
            let Some(of_threads) = shared.bind(binding)? else { return Ok(None) };
            // It reads whole tables, where `bound` may look rows up.
            if parallel::is_shorter(&of_threads, &bound) {
                bound = shared.ready(of_threads)?;
            }
        }
        self.run(bound).map(Some)
    }

    fn run(&self, bound: Arc<dyn ExecutionPlan>) -> Result<BoundPlan> {
        Ok(match Lookups::of(&bound, &self.schema)? {
            Some(lookups) => BoundPlan::Alone(Box::new(Alone::Lookups(lookups))),
            None => BoundPlan::Plan(bound),
        })
    }
}

impl PlanForm {
    /// A plan to be kept; `None` if it cannot be.
    fn of(root: &Arc<dyn ExecutionPlan>, options: &Arc<ConfigOptions>) -> Result<Option<PlanForm>> {
        Ok(unbound(root)?.filter(fits).map(|root| PlanForm::new(root, Some(options))))
    }

    /// `options`: needed by plans with joins, sorts and subqueries.
    fn new(root: Arc<dyn ExecutionPlan>, options: Option<&Arc<ConfigOptions>>) -> PlanForm {
        let tells = |node: &dyn ExecutionPlan| {
            node.is::<HashJoinExec>()
                || node.is::<ScalarSubqueryExec>()
                || node.downcast_ref::<SortExec>().is_some_and(|sort| sort.fetch().is_some())
        };
        PlanForm {
            tells: options.filter(|_| holds(&root, &tells)).cloned(),
            has_subqueries: holds(&root, &|node| node.is::<ScalarSubqueryExec>()),
            root,
        }
    }

    /// Binds the scans and fills in the parameters; `None` if the plan does not hold for them.
    fn bind(&self, binding: &Binding) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let mut bind = |leaf: &dyn ExecutionPlan| {
            Ok(if let Some(scan) = leaf.downcast_ref::<ScanExec>() {
                scan.bind(binding)?.map_or(Leaf::Unfit, |scan| Leaf::New(Arc::new(scan)))
            } else if let Some(nested) = leaf.downcast_ref::<NestedExec>() {
                nested.bind(binding)?.map_or(Leaf::Unfit, |nested| Leaf::New(Arc::new(nested)))
            } else {
                Leaf::Same
            })
        };
        each_node(&self.root, &mut bind, &|node| parameters::fill(node, &binding.params))
    }

    /// Gives the bound plan its own subquery results and dynamic filters.
    fn ready(&self, mut bound: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if self.has_subqueries {
            bound = subquery_values::anew(bound).map_err(df_error)?;
        }
        if let Some(options) = &self.tells {
            bound = PushDown.optimize(bound, options).map_err(df_error)?;
        }
        Ok(bound)
    }
}

/// The plan without a snapshot; `None` if it reads something that cannot be read twice.
fn unbound(root: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    each_leaf(root, &mut |leaf| {
        if let Some(scan) = leaf.downcast_ref::<ScanExec>() {
            return Ok(Leaf::New(Arc::new(scan.unbound())));
        }
        // A recursive query makes a new work table and passes it to its readers when it replaces its children.
        let repeats = leaf.is::<EmptyExec>()
            || leaf.is::<PlaceholderRowExec>()
            || leaf.is::<DataSourceExec>()
            || leaf.is::<OpenValuesExec>()
            || leaf.is::<SeriesExec>()
            || leaf.is::<WorkTableExec>()
            || leaf.is::<WithQueryExec>()
            || leaf.is::<NestedExec>();
        Ok(if repeats { Leaf::Same } else { Leaf::Unfit })
    })
}

/// Parameters and subqueries of the plan stand where a run can fill them in.
fn fits(root: &Arc<dyn ExecutionPlan>) -> bool {
    parameters::can_be_filled(root) && subquery_values::can_be_anew(root)
}

/// The plan with nested joins below other operators, if all of its cursors are theirs.
fn nested_below(
    plan: Option<&Arc<dyn ExecutionPlan>>,
    hashes: Option<f64>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let below = plan.map(|plan| NestedExec::below(plan, hashes)).transpose().map_err(df_error)?.flatten();
    // Only nested joins give up where there are more rows.
    Ok(below.filter(|below| !holds(below, &|node| node.is::<SeekJoinExec>())))
}

enum Leaf {
    Same,
    New(Arc<dyn ExecutionPlan>),
    Unfit,
}

/// The plan with changed leaves and fresh operators; `None` if a leaf is unfit.
fn each_leaf(
    plan: &Arc<dyn ExecutionPlan>,
    change: &mut dyn FnMut(&dyn ExecutionPlan) -> Result<Leaf>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    each_node(plan, change, &|node| Ok(Some(node)))
}

/// Changes an operator; `None`: the plan does not hold.
type OperatorRewrite<'a> = &'a dyn Fn(Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>>;

/// [`each_leaf`] that changes the operators, too: the inner ones, and the leaves that stay the same.
fn each_node(
    plan: &Arc<dyn ExecutionPlan>,
    change: &mut dyn FnMut(&dyn ExecutionPlan) -> Result<Leaf>,
    operator: OperatorRewrite<'_>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let children = plan.children();
    if children.is_empty() {
        return match change(&**plan)? {
            Leaf::Same => operator(Arc::clone(plan)),
            Leaf::New(leaf) => Ok(Some(leaf)),
            Leaf::Unfit => Ok(None),
        };
    }
    let mut changed = Vec::with_capacity(children.len());
    for child in children {
        match each_node(child, change, operator)? {
            Some(child) => changed.push(child),
            None => return Ok(None),
        }
    }
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let plan = Arc::clone(plan).replace_children(changed, keep).and_then(ExecutionPlan::reset_state);
    operator(plan.map_err(df_error)?)
}

/// The plan holds at this moment only: it calls a function of the current time.
pub fn depends_on_time(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    let is_stable = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => Ok(call.func.signature().volatility == Volatility::Stable),
        _ => Ok(false),
    };
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(is_stable)?;
            Ok(TreeNodeRecursion::Continue)
        })
    })
    .map_err(df_error)?;
    Ok(found)
}
