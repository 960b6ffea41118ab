//! EXPLAIN: every access of a plan, then what DataFusion does with its rows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, displayable};

use super::scan::ScanExec;

/// The accesses of a plan, in the order it reads them.
fn accesses<'p>(plan: &'p Arc<dyn ExecutionPlan>, found: &mut Vec<&'p ScanExec>) {
    let any: &dyn std::any::Any = &**plan;
    if let Some(scan) = any.downcast_ref::<ScanExec>() {
        found.push(scan);
    }
    for child in plan.children() {
        accesses(child, found);
    }
}

/// The lines of EXPLAIN. `analyzed`: the plan has run, so its counters are shown. `verbose`: ranges in
/// bytes, and estimates.
pub fn explain(plan: &Arc<dyn ExecutionPlan>, analyzed: bool, verbose: bool) -> Vec<String> {
    let mut found = Vec::new();
    accesses(plan, &mut found);
    let mut lines = Vec::new();
    for scan in &found {
        let mut line = scan.describe(verbose);
        if verbose {
            line.push_str(&format!(" estimate={}", scan.spec.access.entries.ceil()));
        }
        if analyzed {
            let c = &scan.counters;
            let n = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            line.push_str(&format!(
                " gets={} seeks={} entries={} fetched={} returned={} bytes={}",
                n(&c.gets),
                n(&c.seeks),
                n(&c.entries),
                n(&c.fetched),
                n(&c.returned),
                n(&c.bytes)
            ));
        }
        lines.push(line);
        lines.push(format!("  chosen: {}", scan.chosen));
        lines.extend(scan.rejected.iter().map(|(index, why)| format!("  rejected: {index}: {why}")));
    }
    let mut above = Vec::new();
    operators(plan, 1, &mut above);
    if above.iter().any(|line| !line.starts_with("  <- ")) {
        lines.push("then:".into());
        lines.extend(above);
    }
    lines
}

/// DataFusion's operators, outermost first; where one of our accesses is read, its class and name stand.
fn operators(plan: &Arc<dyn ExecutionPlan>, depth: usize, lines: &mut Vec<String>) {
    let any: &dyn std::any::Any = &**plan;
    let indent = "  ".repeat(depth);
    let mut below = depth + 1;
    if let Some(scan) = any.downcast_ref::<ScanExec>() {
        let words: Vec<String> = scan.describe(false).split_whitespace().take(2).map(str::to_owned).collect();
        lines.push(format!("{indent}<- {}", words.join(" ")));
    } else if any.is::<CooperativeExec>() || any.downcast_ref::<ProjectionExec>().is_some_and(only_picks) {
        // One only yields to the scheduler, the other only puts columns in their place.
        below = depth;
    } else {
        lines.push(format!("{indent}{}", displayable(&**plan).one_line().to_string().trim()));
    }
    for child in plan.children() {
        operators(child, below, lines);
    }
}

/// The projection computes and renames nothing.
fn only_picks(projection: &ProjectionExec) -> bool {
    projection.expr().iter().all(|output| {
        let any: &dyn std::any::Any = &*output.expr;
        any.downcast_ref::<Column>().is_some_and(|column| column.name() == output.alias)
    })
}
