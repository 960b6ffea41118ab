//! Plans a query once for many runs.
//!
//! Parameters stay open in such a plan, except those that shape it: their values are part of its key.

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use futures::future::BoxFuture;
use sqlparser::ast::Query;

use super::cached::page::{DependsOn, Paging};
use super::cached::parameters;
use super::cached::plan::{UnboundPlan, depends_on_time};
use super::cached::row_map::RowMap;
use super::cached::values_first::{ValuesFirst, taken_out};
use super::contained::Stage;
use super::errors::df_error;
use super::query::{NameScope, Planner, Resolved};
use super::table::Binding;
use super::ways::{Keep, Threads};
use crate::access::Guards;
use crate::error::Result;
use crate::exec::watch::CancelHandle;
use crate::value::Value;

impl Planner {
    /// Plans a query once for many runs. The scope's parameters stay open, except those that the plan `depends_on`, or
    /// that shape it; these are returned. `None`: the query has to be planned each time.
    pub fn keep<'f>(
        &'f self,
        query: Query,
        scope: &'f NameScope<'f>,
        depends_on: &'f DependsOn,
        threads: Threads,
        cancel: &'f CancelHandle,
    ) -> BoxFuture<'f, Result<Option<(UnboundPlan, DependsOn)>>> {
        Stage::Planning.contain_all(self.to_keep(query, scope, depends_on, (threads, cancel)))
    }

    async fn to_keep(
        &self,
        query: Query,
        scope: &NameScope<'_>,
        depends_on: &DependsOn,
        (threads, cancel): (Threads, &CancelHandle),
    ) -> Result<Option<(UnboundPlan, DependsOn)>> {
        let params = &*scope.binding.params;
        let Resolved { plan, is_now, taken } = self.resolved(query.clone(), scope, params)?;
        // A run brings one snapshot for all scans.
        if !is_now || depends_on_time(&plan)? {
            return Ok(None);
        }
        let keeper =
            Keeper { planner: self, params, settled: &depends_on.values, taken: &taken, threads, cancel };
        let plan = to_be_kept(plan, params)?;
        let Some((paging, input)) = Paging::of(&plan) else {
            let Some((kept, values)) = keeper.keep(plan.clone()).await? else { return Ok(None) };
            let first = self.values_first(query, scope, &keeper, plan, &values).await;
            let kept = match first {
                Ok(Some(first)) => kept.after_values(first),
                // The run of the whole plan will fail, too, and its error has the right places.
                Ok(None) | Err(_) => kept,
            };
            return Ok(Some((kept, DependsOn { values, page: None })));
        };
        // Limits on reads are those of the page itself.
        let may_share = paging.is_shared(params) && scope.binding.guards == Guards::default();
        let shared = if may_share { paging.shared(input, params) } else { None };
        let is_shared = shared.is_some();
        let paged = match shared {
            Some(shared) => shared,
            None => {
                let places: Vec<usize> = paging.places().collect();
                parameters::settled(plan, params, &places).map_err(df_error)?
            }
        };
        Ok(keeper.keep(paged).await?.map(|(mut kept, values)| {
            if kept.page(paging) {
                return (kept, DependsOn { values, page: None });
            }
            let kept = if is_shared { kept.cut(paging) } else { kept };
            (kept, DependsOn { values, page: Some(paging) })
        }))
    }

    /// The form of a plan in which the values of its subqueries are computed first; `None` if it has none. `of`: the
    /// parameters whose values are in the plan.
    async fn values_first(
        &self,
        query: Query,
        scope: &NameScope<'_>,
        keeper: &Keeper<'_>,
        plan: LogicalPlan,
        of: &[usize],
    ) -> Result<Option<ValuesFirst>> {
        let is_covered = |values: &[usize]| values.iter().all(|at| of.contains(at));
        let own = scope.binding.params.len();
        let (_, taken) = taken_out(plan, own).map_err(df_error)?;
        if taken.is_empty() {
            return Ok(None);
        }
        let (mut subqueries, mut params) = (Vec::with_capacity(taken.len()), scope.binding.params.to_vec());
        for subquery in taken {
            let kept = keeper.keep(subquery).await?.filter(|(_, values)| is_covered(values));
            let Some((subquery, _)) = kept else { return Ok(None) };
            // The paths of the rest are chosen for the values of this run.
            let Some(value) = subquery.value(&scope.binding)? else { return Ok(None) };
            params.push(value);
            subqueries.push(subquery);
        }
        let params: Arc<[Value]> = params.into();
        let binding = Binding { params: Arc::clone(&params), ..scope.binding.clone() };
        let scope = NameScope { binding, rowkeys: scope.rowkeys.clone(), rows: scope.rows.clone(), ..*scope };
        let Resolved { plan, .. } = self.resolved(query, &scope, &params)?;
        let (rest, taken) = taken_out(to_be_kept(plan, &params)?, own).map_err(df_error)?;
        if taken.len() != subqueries.len() {
            return Ok(None);
        }
        let rest = Keeper { params: &params, ..*keeper }.keep(rest).await?;
        let rest = rest.filter(|(_, values)| is_covered(values));
        Ok(rest.map(|(rest, _)| ValuesFirst { subqueries, rest }))
    }

    /// [`Planner::keep`] for a query over the scope's own rows. `None`: it has to be planned each time.
    pub fn keep_map<'f>(
        &'f self,
        query: Query,
        scope: &'f NameScope<'f>,
        cancel: &'f CancelHandle,
    ) -> BoxFuture<'f, Result<Option<RowMap>>> {
        Stage::Planning.contain_all(async move {
            let Resolved { plan, taken, .. } = self.resolved(query, scope, &scope.binding.params)?;
            if !taken.is_empty() || depends_on_time(&plan)? {
                return Ok(None);
            }
            let plan = parameters::typed(plan, &scope.binding.params).map_err(df_error)?;
            let ways = self.ways(plan, Keep::Yes(Threads::IfLong), cancel).await?;
            let map = RowMap::new(&ways.alone, scope.rows.first().map(|(_, rows)| rows));
            Ok(map.filter(RowMap::is_of_each))
        })
    }
}

/// The plan of a query with what its key tells about the parameters.
fn to_be_kept(plan: LogicalPlan, params: &[Value]) -> Result<LogicalPlan> {
    // Whether a parameter is NULL is in the key of the plan: `$1 IS NULL OR a = $1` is settled by that.
    let nulls: Vec<usize> = (0..params.len()).filter(|at| params[*at].is_null()).collect();
    let plan = parameters::settled(plan, params, &nulls).and_then(parameters::filters_as_cases);
    plan.map_err(df_error)
}

/// What the plans of a query that are tried have in common.
#[derive(Clone, Copy)]
struct Keeper<'k> {
    planner: &'k Planner,
    params: &'k [Value],
    /// The parameters whose values are in the plan's key; none: as few as possible.
    settled: &'k [usize],
    /// The parameters whose values are in the plan already.
    taken: &'k [usize],
    threads: Threads,
    cancel: &'k CancelHandle,
}

impl Keeper<'_> {
    /// Keeps a plan, and gives the positions of the parameters whose values are in it.
    async fn keep(&self, plan: LogicalPlan) -> Result<Option<(UnboundPlan, Arc<[usize]>)>> {
        let shaping = |of_joins| parameters::shaping(&plan, of_joins).map_err(df_error);
        let ways_out = match self.settled.is_empty() {
            true => vec![
                parameters::forming(&plan).map_err(df_error)?,
                shaping(false)?,
                shaping(true)?,
                parameters::params_of(&plan, &|_| true).map_err(df_error)?,
            ],
            false => vec![self.settled.to_vec()],
        };
        let mut tried: Option<Vec<usize>> = None;
        for mut settled in ways_out {
            settled.extend(self.taken);
            settled.sort_unstable();
            settled.dedup();
            if tried.as_ref() == Some(&settled) {
                continue;
            }
            if let Ok(Some(kept)) = self.keep_settled(plan.clone(), &settled).await {
                return Ok(Some((kept, settled.into())));
            }
            tried = Some(settled);
        }
        Ok(None)
    }

    async fn keep_settled(&self, plan: LogicalPlan, settled: &[usize]) -> Result<Option<UnboundPlan>> {
        let Keeper { planner, params, threads, cancel, .. } = *self;
        let plan =
            parameters::settled(plan, params, settled).and_then(|plan| parameters::typed(plan, params));
        let ways = planner.ways(plan.map_err(df_error)?, Keep::Yes(threads), cancel).await?;
        UnboundPlan::new(ways, planner.state.config_options())
    }
}
