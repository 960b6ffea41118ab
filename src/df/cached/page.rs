//! Parameters in the LIMIT and OFFSET of cached plans.
//!
//! DataFusion wants their values in the plan. So that there is no plan for each page, one is made for the first rows up
//! to the end of the page, their number rounded up to a power of two, and a run cuts its page out of these. If the plan
//! is a single scan, the scan itself gives the page.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, lit};

use crate::df::table::template::number;
use crate::value::Value;

/// The parameters that a cached plan depends on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DependsOn {
    /// Positions of those whose values are in the plan.
    pub values: Arc<[usize]>,
    /// It is made for pages of about this length.
    pub page: Option<Paging>,
}

impl DependsOn {
    /// A plan that depends on `other` holds where this is equal.
    pub fn covers(&self, other: &DependsOn) -> bool {
        let has_page = other.page.is_none() || self.page == other.page;
        has_page && other.values.iter().all(|at| self.values.contains(at))
    }
}

/// A number of rows in LIMIT or OFFSET.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowCount {
    Literal(u64),
    /// The parameter at this position.
    Parameter(usize),
}

impl RowCount {
    fn parameter(self) -> Option<usize> {
        match self {
            RowCount::Parameter(at) => Some(at),
            RowCount::Literal(_) => None,
        }
    }

    /// `None` if the parameter is no count of rows.
    fn value(self, params: &[Value]) -> Option<u64> {
        match self {
            RowCount::Literal(rows) => Some(rows),
            RowCount::Parameter(at) => match params.get(at)? {
                Value::Int(rows) => u64::try_from(*rows).ok(),
                _ => None,
            },
        }
    }

    fn of(expr: &Expr) -> Option<RowCount> {
        match expr {
            Expr::Placeholder(param) => number(param).map(RowCount::Parameter),
            Expr::Literal(ScalarValue::Int64(Some(rows)), _) => {
                u64::try_from(*rows).ok().map(RowCount::Literal)
            }
            _ => None,
        }
    }
}

/// Most rows (count) up to the end of a page for which plans are shared with other pages.
const SHARED_ROWS_MAX: u64 = 1024;

/// The outermost LIMIT and OFFSET, at least one of them a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paging {
    skip: Option<RowCount>,
    fetch: Option<RowCount>,
}

impl Paging {
    /// The LIMIT and OFFSET that end a query, and the query without these; `None` if they have no parameters, or if it
    /// has another limit inside.
    pub fn of(plan: &LogicalPlan) -> Option<(Paging, &Arc<LogicalPlan>)> {
        let LogicalPlan::Limit(limit) = plan else { return None };
        let is_limit = |node: &LogicalPlan| Ok(matches!(node, LogicalPlan::Limit(_)));
        if limit.input.exists(is_limit).unwrap_or(true) {
            return None;
        }
        let count = |expr: &Option<Box<Expr>>| match expr {
            None => Some(None),
            Some(expr) => RowCount::of(expr).map(Some),
        };
        Some((Paging::new(count(&limit.skip)?, count(&limit.fetch)?)?, &limit.input))
    }

    /// `None` if there are no parameters.
    pub fn new(skip: Option<RowCount>, fetch: Option<RowCount>) -> Option<Paging> {
        let paging = Paging { skip, fetch };
        paging.places().next().is_some().then_some(paging)
    }

    /// The positions of the parameters.
    pub fn places(self) -> impl Iterator<Item = usize> {
        self.skip.into_iter().chain(self.fetch).filter_map(RowCount::parameter)
    }

    /// OFFSET and LIMIT (rows) for these parameters; `None` if a value is no count of rows.
    pub fn values(self, params: &[Value]) -> Option<(u64, Option<u64>)> {
        let skip = self.skip.map_or(Some(0), |skip| skip.value(params))?;
        let fetch = self.fetch.map_or(Some(None), |fetch| fetch.value(params).map(Some))?;
        Some((skip, fetch))
    }

    /// The first rows (count) of which a run cuts out its page; an inner `None`: all. `None` if a value is no count of
    /// rows.
    fn class(self, params: &[Value]) -> Option<Option<u64>> {
        let (skip, fetch) = self.values(params)?;
        Some(match fetch {
            None => None,
            Some(fetch) => Some(skip.checked_add(fetch)?.checked_next_power_of_two()?),
        })
    }

    /// Other pages can share the plan for this one: it reads hardly more than a plan for this one alone.
    pub fn is_shared(self, params: &[Value]) -> bool {
        let skips_few = self.values(params).is_some_and(|(skip, _)| skip <= SHARED_ROWS_MAX);
        skips_few && self.class(params).is_some_and(|rows| rows.is_none_or(|rows| rows <= SHARED_ROWS_MAX))
    }

    /// What of the parameters a plan depends on, as text; `may_read_more`: pages may share it.
    pub fn key(self, params: &[Value], may_read_more: bool) -> String {
        match self.class(params).filter(|_| may_read_more && self.is_shared(params)) {
            Some(rows) => format!("first {rows:?} "),
            None => self.places().map(|at| format!("{at}={:?} ", params.get(at))).collect(),
        }
    }

    /// The plan for this page and others like it, without OFFSET, over the query without its limit; `None` if a value
    /// is no count of rows.
    pub fn shared(self, input: &Arc<LogicalPlan>, params: &[Value]) -> Option<LogicalPlan> {
        Some(match self.class(params)? {
            None => LogicalPlan::clone(input),
            Some(rows) => {
                let fetch = Some(Box::new(lit(i64::try_from(rows).ok()?)));
                LogicalPlan::Limit(Limit { skip: None, fetch, input: Arc::clone(input) })
            }
        })
    }
}
