//! EXPLAIN: every access of a plan, then what DataFusion does with its rows.

use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    let above = displayable(&**plan).indent(false).to_string();
    let is_access = |line: &str| found.iter().any(|scan| line.trim() == scan.describe(false));
    if above.lines().any(|line| !is_access(line)) {
        lines.push("then:".into());
        for line in above.lines() {
            let depth = line.len() - line.trim_start().len();
            let text = if is_access(line) {
                // The full line stands above: here its class and name do.
                line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
            } else {
                line.trim().to_owned()
            };
            lines.push(format!("  {}{text}", " ".repeat(depth)));
        }
    }
    lines
}
