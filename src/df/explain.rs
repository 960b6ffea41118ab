//! EXPLAIN: the accesses of a plan, one by one, then DataFusion's operators above them.

mod operator;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use serde_json::{Value, json};

use super::operators::lookup::LookupJoinExec;
use super::operators::scan::{ExpectedAccess, ScanExec};
use super::operators::seek::SeekJoinExec;
use super::parallel::inputs;
use super::table::Bound;
use crate::access::{Described, NO_ROW, Need};
use crate::df::below::passed_on;
use crate::error::{Error, Result};
use crate::exec::scan::{ScanCounters, ScanSpec};

pub(in crate::df) use self::operator::{name, sql};

/// An access of a plan, with its expected form if a dynamic filter will narrow it.
struct Accessed<'p> {
    scan: &'p ScanExec,
    expected: Option<ExpectedAccess>,
}

impl Accessed<'_> {
    fn bound(&self) -> Result<&Bound> {
        self.expected.as_ref().map_or_else(|| self.scan.bound(), |expected| Ok(&expected.bound))
    }

    fn described(&self, verbose: bool) -> Option<Described> {
        match &self.expected {
            Some(expected) => Some(self.scan.described_as(expected, verbose)),
            None => self.scan.described(verbose),
        }
    }

    /// How dynamic filters will narrow it, unless its description says so already.
    fn narrowed_by(&self) -> Vec<String> {
        if self.expected.is_some() { Vec::new() } else { self.scan.narrowed_by() }
    }

    /// The keys along which it is narrowed, if that is less than its own path.
    fn narrowed_along(&self) -> Option<String> {
        let keys: Vec<&str> = self.scan.narrowed_along().into_iter().collect();
        (self.expected.is_none() && !keys.is_empty()).then(|| keys.join(", "))
    }
}

/// Collects the accesses of a plan in execution order. `filter_rows`: about how many rows feed a dynamic filter on this
/// part.
fn accesses<'p>(plan: &'p Arc<dyn ExecutionPlan>, filter_rows: Option<f64>, found: &mut Vec<Accessed<'p>>) {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        found.push(Accessed { scan, expected: scan.expected(filter_rows) });
        return;
    }
    let asking = match plan.downcast_ref::<SeekJoinExec>() {
        Some(join) => Some((join.rows(), join.table())),
        None => plan.downcast_ref::<LookupJoinExec>().map(|join| (join.rows(), join.table())),
    };
    if let Some((rows, Some((scan, expected)))) = asking {
        accesses(rows, filter_rows, found);
        found.push(Accessed { scan, expected });
        return;
    }
    for (input, filter_rows) in inputs(plan, filter_rows) {
        accesses(input, filter_rows, found);
    }
}

fn all_accesses(plan: &Arc<dyn ExecutionPlan>) -> Vec<Accessed<'_>> {
    let mut found = Vec::new();
    accesses(plan, None, &mut found);
    found
}

/// Collects the scans of a plan in execution order.
fn scans<'p>(plan: &'p Arc<dyn ExecutionPlan>, found: &mut Vec<&'p ScanExec>) {
    found.extend(plan.downcast_ref::<ScanExec>());
    for child in plan.children() {
        scans(child, found);
    }
}

/// The lines of EXPLAIN. `analyzed`: the plan has run, so its counters are shown. `verbose`: ranges in
/// bytes, and estimates.
pub fn explain(plan: &Arc<dyn ExecutionPlan>, analyzed: bool, verbose: bool) -> Vec<String> {
    lines(plan, &all_accesses(plan), analyzed, verbose)
}

fn lines(
    plan: &Arc<dyn ExecutionPlan>,
    found: &[Accessed<'_>],
    analyzed: bool,
    verbose: bool,
) -> Vec<String> {
    let mut lines = Vec::new();
    for access in found {
        let (Ok(bound), Some(described)) = (access.bound(), access.described(verbose)) else { continue };
        let mut described = described.lines();
        let mut line = described.remove(0);
        if verbose {
            line.push_str(&format!(" estimate={}", bound.spec.access.entries.ceil()));
        }
        if analyzed {
            counted(&access.scan.counters)
                .iter()
                .for_each(|(name, n)| line.push_str(&format!(" {name}={n}")));
        }
        lines.push(line);
        lines.extend(described);
        lines.push(format!("  chosen: {}", bound.chosen));
        lines.extend(access.narrowed_by().iter().map(|how| format!("  at run time: {how}")));
        lines.extend(access.narrowed_along().map(|keys| format!("  if these are few: along {keys}")));
        lines.extend(bound.rejected.iter().map(|(index, why)| format!("  rejected: {index}: {why}")));
        lines.extend(bound.note.iter().map(|note| format!("  note: {note}")));
    }
    let mut above = Vec::new();
    operators(plan, 1, verbose, &mut found.iter(), &mut above);
    if is_empty(plan) {
        lines.extend(["Empty".to_owned(), format!("  chosen: {NO_ROW}")]);
    } else if above.iter().any(|line| !line.starts_with("  <- ")) {
        lines.push("then:".into());
        lines.extend(above);
    }
    lines
}

/// The first line of EXPLAIN, and the first note on what would serve better. It runs for every query with a deadline,
/// so it reads nothing to estimate the effect of dynamic filters.
pub fn brief(plan: &Arc<dyn ExecutionPlan>) -> (String, Option<String>) {
    let mut found = Vec::new();
    scans(plan, &mut found);
    let found: Vec<_> = found.into_iter().map(|scan| Accessed { scan, expected: None }).collect();
    let note = found.iter().find_map(|access| access.bound().ok()?.note.clone());
    let first = found.iter().find_map(|access| Some(access.described(false)?.to_string()));
    // Without an access there is only what is above.
    let above = || lines(plan, &[], false, false).into_iter().find(|line| line != "then:");
    (first.or_else(above).unwrap_or_default().trim_start().to_owned(), note)
}

/// EXPLAIN (FORMAT JSON): the accesses in full, and the operators above as lines. Errors: internal, if it cannot be
/// written.
pub fn explain_json(plan: &Arc<dyn ExecutionPlan>, analyzed: bool, verbose: bool) -> Result<String> {
    let found = all_accesses(plan);
    let mut all = Vec::new();
    for access in &found {
        let bound = access.bound()?;
        let mut described = serde_json::to_value(access.described(verbose))
            .map_err(|e| Error::internal("a plan cannot be written as JSON").caused_by(e))?;
        let Value::Object(fields) = &mut described else { continue };
        fields.insert("estimate".into(), json!(bound.spec.access.entries.ceil() as u64));
        if analyzed {
            let counters = counted(&access.scan.counters).map(|(name, n)| (name.to_owned(), json!(n)));
            fields.insert("actual".into(), Value::Object(counters.into_iter().collect()));
        }
        fields.insert("chosen".into(), json!(bound.chosen));
        let rejected = bound.rejected.iter().map(|(index, why)| json!({ "index": index, "reason": why }));
        fields.insert("rejected".into(), rejected.collect());
        let narrowed = access.narrowed_by();
        if !narrowed.is_empty() {
            fields.insert("at_run_time".into(), json!(narrowed));
            fields.insert("along_if_few".into(), json!(access.scan.narrowed_along()));
        }
        if let Some(note) = &bound.note {
            fields.insert("note".into(), json!(note));
        }
        all.push(described);
    }
    let mut above = Vec::new();
    operators(plan, 0, verbose, &mut found.iter(), &mut above);
    Ok(json!({ "accesses": all, "operators": above }).to_string())
}

/// The accesses of a plan, after its run.
pub fn ran(plan: &Arc<dyn ExecutionPlan>) -> Vec<Ran> {
    let mut found = Vec::new();
    scans(plan, &mut found);
    let ran = |scan: &ScanExec| {
        let (bound, n) = (scan.bound().ok()?, |counter: &AtomicU64| counter.load(Ordering::Relaxed));
        let c = &scan.counters;
        Some(Ran {
            need: bound.need.clone(),
            spec: Arc::clone(&bound.spec),
            reads: AccessWork { gets: n(&c.gets), entries: n(&c.entries), fetched: n(&c.fetched) },
            is_narrowed: !scan.narrowed_by().is_empty(),
        })
    };
    found.into_iter().filter_map(ran).collect()
}

/// One access, after its run.
pub struct Ran {
    /// What the access was asked for.
    pub need: Need,
    /// How it was read.
    pub spec: Arc<ScanSpec>,
    /// What it read.
    pub reads: AccessWork,
    /// A dynamic filter narrowed it.
    pub is_narrowed: bool,
}

/// Work of one or more accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessWork {
    /// GETs by key.
    pub gets: u64,
    /// Entries walked.
    pub entries: u64,
    /// Rows read for index entries.
    pub fetched: u64,
}

impl AccessWork {
    /// Rows and entries together.
    pub fn all(self) -> u64 {
        self.gets + self.entries + self.fetched
    }
}

/// Counters of a scan, by name.
fn counted(c: &ScanCounters) -> [(&'static str, u64); 6] {
    let n = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    [
        ("gets", n(&c.gets)),
        ("seeks", n(&c.seeks)),
        ("entries", n(&c.entries)),
        ("fetched", n(&c.fetched)),
        ("returned", n(&c.returned)),
        ("bytes", n(&c.bytes)),
    ]
}

/// DataFusion found that there is nothing to read.
fn is_empty(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<EmptyExec>()
}

/// The operators, outermost first; an access appears by class and name only. Unless `verbose`, operators that
/// merely move rows between threads are left out: they depend on the machine.
fn operators<'p>(
    plan: &Arc<dyn ExecutionPlan>,
    depth: usize,
    verbose: bool,
    accesses: &mut impl Iterator<Item = &'p Accessed<'p>>,
    lines: &mut Vec<String>,
) {
    let indent = "  ".repeat(depth);
    let mut below = depth + 1;
    if plan.is::<ScanExec>() {
        let described = accesses.next().and_then(|access| access.described(false));
        lines.extend(described.map(|access| format!("{indent}<- {} {}", access.class, access.name)));
    } else if passed_on(&**plan).is_some() || !verbose && says_nothing(&**plan) {
        below = depth;
    } else {
        let line = operator::line(&**plan);
        lines.push(format!("{indent}{}", if verbose { line } else { without_threads(&line) }));
    }
    for child in plan.children() {
        operators(child, below, verbose, accesses, lines);
    }
}

/// The operator moves or picks data, or is a step of the operator above it.
fn says_nothing(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<RepartitionExec>()
        || plan.is::<CoalescePartitionsExec>()
        || plan.downcast_ref::<SortPreservingMergeExec>().is_some_and(|merge| !is_union(merge.input()))
        || plan.downcast_ref::<AggregateExec>().is_some_and(|a| *a.mode() == AggregateMode::Partial)
        || plan.downcast_ref::<ProjectionExec>().is_some_and(only_picks)
}

/// The plan is a union, so a merge above it is part of the query.
fn is_union(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<UnionExec>() || passed_on(&**plan).is_some_and(is_union)
}

/// The projection only picks columns, the `__rowkey` and `__set_0` of a write aside.
fn only_picks(projection: &ProjectionExec) -> bool {
    projection.expr().iter().all(|output| {
        let is_picked =
            output.expr.downcast_ref::<Column>().is_some_and(|column| column.name() == output.alias);
        is_picked || output.alias.starts_with("__")
    })
}

/// An operator's line without the details of its threads.
fn without_threads(line: &str) -> String {
    let mut line = line.to_owned();
    for mode in ["FinalPartitioned", "Final", "SinglePartitioned", "Single"] {
        line = line.replace(&format!("AggregateExec: mode={mode}, "), "AggregateExec: ");
    }
    for kept in ["true", "false"] {
        line = line.replace(&format!(", preserve_partitioning=[{kept}]"), "");
    }
    line
}
