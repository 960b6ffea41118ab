//! Makes a logical plan executable, in one or several alternative ways.

use std::sync::Arc;

use arrow::temporal_conversions::timestamp_us_to_datetime;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;

use super::errors::df_error;
use super::order::Joins;
use super::rules::short_circuit::short_circuits;
use super::{order, parallel, with_queries};
use crate::df::below::is_scan;
use crate::df::cached::parameters;
use crate::df::operators::trial::TrialExec;
use crate::df::operators::{lookup, push_down, seek};
use crate::df::rules::early::{self, Early};
use crate::df::rules::{extremes, first_left, join_keys, null_order, unique_side};
use crate::error::Result;

/// A physical plan for one thread, and one for all threads.
pub struct Ways {
    pub alone: Arc<dyn ExecutionPlan>,
    pub shared: Shared<Arc<dyn ExecutionPlan>>,
    /// Plans in the order of their first rows, which may end with these if they are kept as nested joins.
    pub ending: Vec<Arc<dyn ExecutionPlan>>,
}

/// A plan for all threads.
#[derive(Debug)]
pub enum Shared<P> {
    /// Its work would not be worth sharing.
    Never,
    /// A longer run may be worth making one.
    Later,
    Plan(P),
}

/// What the physical plan is made for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// One run, in which `now()` is this time (microseconds since 1970): the plan is final, with lookup joins wherever
    /// they pay off.
    No(i64),
    /// Many runs: each run decides about lookup joins and threads.
    Yes(Threads),
}

/// When a plan for all threads is made of one that is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// If the run at hand is long.
    IfLong,
    /// Some run was long.
    Wanted,
}

/// Optimises a logical plan and makes it executable.
pub(super) async fn ways(mut state: SessionState, plan: LogicalPlan, keep: Keep) -> Result<Ways> {
    state.mark_start_execution();
    if let Keep::No(now_us) = keep
        && let Some(now) = timestamp_us_to_datetime(now_us)
    {
        state.execution_props_mut().query_execution_start_time = Some(now.and_utc());
    }
    let plan = with_queries::optimised(&plan, |plan| state.optimize(plan)).map_err(df_error)?;
    let plan =
        join_keys::of_columns(plan).and_then(first_left::of_left_side).and_then(extremes::from_one_end);
    let plan = plan
        .and_then(unique_side::as_inner_joins)
        .and_then(null_order::as_in_keys)
        .and_then(|plan| order::advise(plan, Joins::Around));
    let plan = plan.map_err(df_error)?.data;
    let is_kept = matches!(keep, Keep::Yes(_));
    let finish = |plan| {
        let plan = parallel::advise(plan).and_then(short_circuits);
        let plan = if is_kept { plan.and_then(parameters::open) } else { plan };
        plan.map_err(df_error)
    };
    let planner = Arc::clone(state.query_planner());
    // Handing out little work to threads costs more than the work.
    let threads = std::mem::replace(&mut state.config_mut().options_mut().execution.target_partitions, 1);
    let mut tried: Option<Arc<dyn ExecutionPlan>> = None;
    let mut ending: Vec<Arc<dyn ExecutionPlan>> = Vec::new();
    for joins in [Joins::Left, Joins::Right] {
        let first = order::advise(plan.clone(), joins).map_err(df_error)?;
        if !first.transformed {
            continue;
        }
        let mut state = state.clone();
        // A join that has set up its dynamic filter cannot be turned any more.
        state.config_mut().options_mut().optimizer.enable_join_dynamic_filter_pushdown = false;
        let first = planner.create_physical_plan(&finish(first.data)?, &state).await.map_err(df_error)?;
        state.config_mut().options_mut().optimizer.enable_join_dynamic_filter_pushdown = true;
        let with_filters = |plan| push_down::of_joins(plan, state.config_options()).map_err(df_error);
        match early::stopping(first).map_err(df_error)? {
            Early::Stops(alone) => {
                return Ok(Ways { alone: with_filters(alone)?, shared: Shared::Never, ending: Vec::new() });
            }
            Early::MayStop(first) if tried.is_none() => tried = Some(with_filters(first)?),
            Early::MayStop(_) => {}
            Early::No(first) => ending.push(first),
        }
    }
    let after_trial = |plan| match &tried {
        Some(first) => TrialExec::of(first, plan),
        None => plan,
    };
    let plan = finish(plan)?;
    let alone = planner.create_physical_plan(&plan, &state).await.map_err(df_error)?;
    let recursions = lookup::in_recursions(alone).map_err(df_error)?;
    let (mut alone, looks_up) = (recursions.data, recursions.transformed);
    let seeking = seek::instead_of_pairs(Arc::clone(&alone)).map_err(df_error)?;
    let run = lookup::instead_of_hashes(seeking.data).map_err(df_error)?;
    let is_long = !seeking.transformed && parallel::is_long(&run);
    if !is_kept {
        alone = run;
    }
    // Parallel threads read ahead of a consumer that stops early.
    let shared = if is_scan(&alone) || looks_up || early::may_stop(&alone) {
        Shared::Never
    } else if is_long || keep == Keep::Yes(Threads::Wanted) {
        state.config_mut().options_mut().execution.target_partitions = threads;
        let shared = planner.create_physical_plan(&plan, &state).await.map_err(df_error)?;
        Shared::Plan(after_trial(shared))
    } else {
        Shared::Later
    };
    if tried.is_some() {
        ending.clear();
    }
    Ok(Ways { alone: after_trial(alone), shared, ending })
}
