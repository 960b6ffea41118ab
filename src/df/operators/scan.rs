//! Scans of our tables as a DataFusion execution plan.

mod expected;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_expr_common::physical_expr::snapshot_generation;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};

pub use self::expected::ExpectedAccess;
use super::dynamic_filter::{self, condition_of};
use super::until_enough::UntilEnough;
use crate::access::{Access, COST, Described, Method, OrderBy, Path, RuntimeKeys};
use crate::df::computed::shown;
use crate::df::errors::to_df;
use crate::df::operators::{inputs, one_part};
use crate::df::table::{Binding, Bound, Matches, OfRow, ProbePath, ScanRequest};
use crate::df::wanted::{FirstFound, RowGoal};
use crate::error::{Error, Result};
use crate::exec::scan::{BATCH_ROWS, PARALLEL_WORK, PIECES, Scan, ScanCounters, ScanSpec, grown};
use crate::key::ColumnId;
use crate::key::Rowkey;
use crate::plan::{Field, Predicate};
use crate::value::{ColumnType, Value};

/// First batch (rows) of a scan whose dynamic filter tightens while it runs.
const THRESHOLD_ROWS: usize = 1024;

/// Values (count) of a dynamic filter whose planning does not matter.
const FEW_VALUES: f64 = 8.0;

/// Smallest first batch (rows) of a scan that its consumer is likely to stop.
pub const FEW_ROWS: usize = 64;

/// One access of a statement.
#[derive(Clone)]
pub struct ScanExec {
    /// What to read.
    pub request: Arc<ScanRequest>,
    /// The chosen path; `None` in a cached plan.
    bound: Option<Arc<Bound>>,
    /// Rows (count) to skip.
    offset: u64,
    /// Rows (count) to output at most, after those.
    limit: Option<u64>,
    /// Work done so far.
    pub counters: Arc<ScanCounters>,
    /// Dynamic filters that are complete when the scan starts.
    filters: Vec<Arc<dyn PhysicalExpr>>,
    /// Dynamic filters that tighten while the scan runs.
    thresholds: Vec<Arc<dyn PhysicalExpr>>,
    /// The path chosen with `filters` at the start.
    narrowed: Arc<OnceLock<Option<Bound>>>,
    /// First batch (rows), if few rows are likely to be enough.
    few: Option<usize>,
    /// Rows come in the wanted order.
    ordered: bool,
    /// Number of scans that share the work.
    parts: usize,
    /// Set if a join looks its rows up by rowkey.
    by_rows: Option<Arc<ByRows>>,
    /// How a join narrows it, for EXPLAIN.
    words: Arc<[String]>,
    /// What a join far above is expected to find here: an estimate, if it is far less than all rows.
    expected: Option<Matches>,
    properties: Arc<PlanProperties>,
}

/// A join's lookups by rowkey.
pub struct ByRows {
    /// The equal columns, for EXPLAIN: `id=buyer`.
    pub columns: Vec<String>,
    /// Expected number of rows to look up.
    pub rows: f64,
}

impl ScanExec {
    /// A scan along a path, with at most `limit` rows.
    pub fn new(request: Arc<ScanRequest>, bound: Arc<Bound>, limit: Option<u64>) -> ScanExec {
        let ordered = bound.spec.access.ordered;
        let equivalence = if ordered {
            let first = sort_exprs(&request, |field| request.column_of(field));
            let last = sort_exprs(&request, |field| request.columns_of(field).next_back());
            let orders = first.into_iter().chain(last);
            EquivalenceProperties::new_with_orderings(Arc::clone(&request.schema), orders)
        } else {
            EquivalenceProperties::new(Arc::clone(&request.schema))
        };
        let properties = one_part(equivalence);
        ScanExec {
            request,
            bound: Some(bound),
            offset: 0,
            limit,
            counters: Arc::default(),
            filters: Vec::new(),
            thresholds: Vec::new(),
            narrowed: Arc::default(),
            few: None,
            ordered,
            parts: 1,
            by_rows: None,
            words: Arc::from([]),
            expected: None,
            properties,
        }
    }

    /// The same scan, of which a join far above will ask for about so many rows.
    pub fn expecting(&self, expected: Matches) -> ScanExec {
        ScanExec { expected: Some(expected), ..self.clone() }
    }

    /// Cost of what is expected to be read, in entries walked; `None` in a cached plan.
    pub fn expected_work(&self) -> Option<f64> {
        let all = self.bound().ok()?.spec.access.work();
        Some(self.expected.map_or(all, |expected| expected.work.min(all)))
    }

    /// The same scan shared by several threads, if it is long and its rows may come in any order.
    pub fn shared(self) -> ScanExec {
        let is_long = self.bound().is_ok_and(|bound| bound.spec.access.work() >= PARALLEL_WORK);
        if !(is_long && self.request.any_order && self.limit.is_none()) {
            return self;
        }
        let parts = threads();
        let properties =
            (*self.properties).clone().with_partitioning(Partitioning::UnknownPartitioning(parts));
        ScanExec { parts, properties: Arc::new(properties), ..self }
    }

    /// The same scan with an offset and a limit. `None` if several scans share the work, or if dynamic filters are
    /// pending.
    pub fn without_first(&self, skip: usize, fetch: Option<usize>) -> Option<ScanExec> {
        let skip = skip as u64;
        let left = self.limit.map(|limit| limit.saturating_sub(skip));
        let limit = fetch.map(|fetch| fetch as u64).into_iter().chain(left).min();
        let is_known = self.is_whole() && self.filters.is_empty() && self.thresholds.is_empty();
        is_known.then(|| ScanExec { offset: self.offset + skip, limit, ..self.clone() })
    }

    /// The scan can apply any LIMIT and OFFSET itself.
    pub fn can_be_paged(&self) -> bool {
        matches!(self.request.rows, RowGoal::All | RowGoal::First(_)) && self.filters.is_empty()
    }

    /// The same scan with another offset and limit.
    pub fn paged(&self, offset: u64, limit: Option<u64>) -> ScanExec {
        ScanExec { request: Arc::new(self.request.paged(offset, limit)), offset, limit, ..self.clone() }
    }

    /// It has an offset: leaving a row out would change which rows come out.
    pub fn passes_over(&self) -> bool {
        self.offset > 0
    }

    /// The same scan for a join that looks its rows up by rowkey. `None` if a parameter does not suit its filter.
    pub fn by_rows(&self, by_rows: ByRows) -> Option<ScanExec> {
        let bound = self.request.bind_keys(&self.bound.as_ref()?.binding, by_rows.rows)?;
        Some(ScanExec { by_rows: Some(Arc::new(by_rows)), ..self.anew(Some(Arc::new(bound))) })
    }

    /// The same scan for a join that looks rows up by values of these columns.
    pub fn by_values<'c>(&self, columns: impl Iterator<Item = (Field, &'c str)>) -> ScanExec {
        let columns = columns.filter(|(field, _)| self.request.leads(*field));
        let words = columns.map(|(_, name)| format!("{name} IN (what the rows tell)")).collect();
        ScanExec { words, thresholds: self.thresholds.clone(), ..self.anew(self.bound.clone()) }
    }

    /// The same scan for a join that looks rows up for each outer row; `words` describe it.
    pub fn for_each_row(&self, words: String) -> ScanExec {
        ScanExec { words: [words].into(), ..self.anew(self.bound.clone()) }
    }

    /// Reads the rows that also pass `condition`, along the best path for the first of several on the same columns.
    pub fn of_condition(&self, condition: Predicate) -> Result<Scan> {
        let first = self.narrowed.get().and_then(Option::as_ref);
        let bound = self.request.narrow_as(self.planned()?, condition, first)?;
        let scan = self.scan(&bound, Arc::clone(&self.counters), 0)?;
        // EXPLAIN ANALYZE shows the first of them.
        let _ = self.narrowed.set(Some(bound));
        Ok(scan)
    }

    /// [`ScanExec::of_condition`] below a top-k sort: reads in the sort's order until the sort has enough, unless
    /// reading all and sorting is cheaper.
    pub fn of_condition_until_enough(&self, condition: Predicate) -> Result<UntilEnough> {
        let request = &self.request;
        let wanted = request.first_found.as_ref().filter(|_| !self.thresholds.is_empty());
        let in_order =
            wanted.map(|wanted| request.narrow_in_order(self.planned()?, condition.clone(), wanted));
        let Some(bound) = in_order.transpose()?.flatten() else {
            return self.of_condition(condition).map(UntilEnough::all);
        };
        let scan = self.scan(&bound, Arc::clone(&self.counters), 0)?;
        let order: Option<_> = bound.need.order.iter().map(|by| request.column_of(by.field)).collect();
        let _ = self.narrowed.set(Some(bound));
        Ok(match order {
            Some(order) => UntilEnough::new(scan, order, self.thresholds.clone()),
            None => UntilEnough::all(scan),
        })
    }

    /// Reads the rows that also pass `condition`, or the `first` of them if the path is in that order. The first of
    /// many such conditions chooses the `way` among these paths. `None`: there are no rows.
    pub fn on_way(
        &self,
        condition: Predicate,
        first: Option<&FirstFound>,
        paths: &[Path],
        way: &mut Option<ProbePath>,
    ) -> Result<Option<Scan>> {
        let planned = self.planned()?;
        if way.as_ref().is_none_or(ProbePath::is_of_one) {
            *way = self.request.way(planned, condition.clone(), first, paths)?;
        }
        let Some(way) = way else { return Ok(None) };
        let Some(spec) = self.request.on_way(planned, way, condition)?.map(Arc::new) else { return Ok(None) };
        let limit = first.filter(|_| spec.access.ordered).map(|first| first.rows);
        let snapshot = Arc::clone(&planned.binding.snapshot);
        let scan = Scan::new(spec, snapshot, limit, Arc::clone(&self.counters));
        Ok(Some(scan.with_gets_max(planned.binding.guards.gets)))
    }

    /// The rows that a sort above wants first, if a key has those with equal values of these columns in its order.
    pub fn first_in_order(&self, behind: &[ColumnId]) -> Option<&FirstFound> {
        self.request.first_found.as_ref().filter(|first| self.request.orders(behind, first))
    }

    /// Ordered by a prefix, without limit or dynamic filters: the consumer stops it.
    pub fn is_led(&self) -> bool {
        let is_ordered = self.planned().is_ok_and(|bound| bound.spec.access.ordered);
        let is_filtered = !self.filters.is_empty() || !self.thresholds.is_empty();
        let is_plain = self.is_whole() && self.offset == 0 && self.limit.is_none() && self.by_rows.is_none();
        is_ordered && is_plain && !is_filtered && self.leading_type().is_some()
    }

    /// Type of the leading column of that order; `None` if it does not compare like its bytes.
    pub fn leading_type(&self) -> Option<ColumnType> {
        self.request.leading().map(|(_, ty)| ty)
    }

    /// Scans the leading column alone, with offset `skip` and `limit`. `None`: that takes whole rows.
    pub fn leading(&self, skip: u64, limit: u64) -> Result<Option<Scan>> {
        let bound = self.planned()?;
        let Some(spec) = self.request.leading_only(bound) else { return Ok(None) };
        let snapshot = Arc::clone(&bound.binding.snapshot);
        let scan = Scan::new(Arc::new(spec), snapshot, Some(limit), Arc::clone(&self.counters));
        Ok(Some(scan.without_first(skip)))
    }

    /// The same scan from this value of the leading column on, for a consumer that stops it after about so many rows.
    /// `None`: it has no such order.
    pub fn begun_at(&self, value: Value, rows: u64) -> Result<Option<ScanExec>> {
        let bound = self.request.begun_at(self.planned()?, value);
        let request = Arc::new(self.request.of_about(rows));
        Ok(bound.map(|bound| ScanExec { request, bound: Some(Arc::new(bound)), ..self.clone() }))
    }

    /// The same scan for a join that looks rows up by an outer row's values: [`ScanRequest::of_row`].
    pub fn of_row(&self, on: &[OfRow], params: usize, first: Option<&FirstFound>) -> ScanExec {
        let request = Arc::new(self.request.of_row(on, params, first));
        let ordered = first.is_some_and(|first| !first.order.is_empty());
        let limit = first.map(|first| first.rows);
        ScanExec { request, ordered, limit, by_rows: None, ..self.unbound() }
    }

    /// The same scan for a consumer that stops it after about so many rows.
    pub fn of_about(&self, rows: u64) -> ScanExec {
        ScanExec { request: Arc::new(self.request.of_about(rows)), limit: None, ..self.clone() }
    }

    /// The same scan, to be kept, with the path it takes for these parameters; `None` if that path does not serve
    /// others.
    pub fn settled(&self, binding: &Binding) -> Result<Option<ScanExec>> {
        let Some(bound) = self.rebound(binding)? else { return Ok(None) };
        let request = self.request.settled(&bound);
        Ok(request.map(|request| ScanExec { request: Arc::new(request), ..self.unbound() }))
    }

    /// Records the way of many conditions, as EXPLAIN ANALYZE shows the first one.
    pub fn went(&self, way: ProbePath) {
        let _ = self.narrowed.set(Some(way.bound));
    }

    /// Reads the rows with these rowkeys, in ascending order; the last column is the rowkey.
    pub fn of_keys(&self, keys: Vec<Rowkey>) -> Result<Scan> {
        let bound = self.bound()?;
        let (spec, snapshot) = (self.request.of_keys(bound, keys), Arc::clone(&bound.binding.snapshot));
        let scan = Scan::new(Arc::new(spec), snapshot, None, Arc::clone(&self.counters));
        Ok(scan.with_gets_max(bound.binding.guards.gets))
    }

    /// The same scan for a run of its own (`bound`), or to be kept.
    fn anew(&self, bound: Option<Arc<Bound>>) -> ScanExec {
        let (counters, narrowed) = Default::default();
        let (filters, thresholds) = Default::default();
        ScanExec { bound, counters, filters, thresholds, narrowed, ..self.clone() }
    }

    /// The same scan without a path, to be kept.
    pub fn unbound(&self) -> ScanExec {
        self.anew(None)
    }

    /// The same scan with these of its columns, under the names of `schema`.
    pub fn pick(&self, columns: &[usize], schema: &SchemaRef) -> ScanExec {
        ScanExec { request: Arc::new(self.request.pick(columns, schema)), ..self.clone() }
    }

    /// The same scan for other parameters and another snapshot. `None` if the plan around it does not hold for them: a
    /// parameter does not suit, or the order no longer comes for free, or now it does, and the plan would sort all rows
    /// for the first ones.
    pub fn bind(&self, binding: &Binding) -> Result<Option<ScanExec>> {
        Ok(self.rebound(binding)?.map(|bound| self.anew(Some(Arc::new(bound)))))
    }

    fn rebound(&self, binding: &Binding) -> Result<Option<Bound>> {
        if let Some(by_rows) = &self.by_rows {
            return Ok(self.request.bind_keys(binding, by_rows.rows));
        }
        let wants_first = !self.request.order.is_empty() && self.request.rows != RowGoal::All;
        Ok(self.request.bind(binding)?.filter(|bound| match bound.spec.access.ordered {
            true => self.ordered || binding.may_sort || !wants_first,
            false => !self.ordered,
        }))
    }

    /// The chosen path; once the scan has started, the narrowed one.
    pub fn bound(&self) -> Result<&Bound> {
        self.narrowed.get().and_then(Option::as_ref).map_or_else(|| self.planned(), Ok)
    }

    fn planned(&self) -> Result<&Bound> {
        self.bound.as_deref().ok_or_else(|| Error::internal("a plan that is kept runs"))
    }

    /// Cost in entries walked, if dynamic filters of about `filter_rows` rows narrow it; `None` if unknown. A scan below a
    /// limit costs little, so that nobody reads ahead of the limit.
    pub fn work(&self, filter_rows: Option<f64>) -> Option<f64> {
        let bound = self.bound().ok()?;
        if let Some(few) = self.few {
            return Some(bound.spec.access.work().min(few as f64));
        }
        let fields = self.filters.iter().flat_map(|filter| self.fields_of(filter));
        let each = fields.filter_map(|field| self.request.matches(bound, &[field]));
        let each = each.map(|each| each.work).reduce(f64::min);
        let narrowed = filter_rows.zip(each).map(|(rows, each)| rows * each);
        Some(narrowed.into_iter().fold(bound.spec.access.work(), f64::min))
    }

    /// The columns that a dynamic filter is about.
    fn fields_of(&self, filter: &Arc<dyn PhysicalExpr>) -> Vec<Field> {
        let names = dynamic_filter::columns(filter, &self.request.schema);
        names.iter().filter_map(|name| self.request.field_of(name)).collect()
    }

    /// The consumer stops the scan when it has enough rows.
    pub fn may_stop(&self) -> bool {
        matches!(self.request.rows, RowGoal::About { .. })
    }

    /// Size of the first batch (rows).
    pub fn rows_at_first(&self) -> usize {
        match self.request.rows {
            RowGoal::About { least, .. } => usize::try_from(least).unwrap_or(BATCH_ROWS).min(BATCH_ROWS),
            _ if let Some(few) = self.few => few,
            // Small batches let the dynamic filter act soon.
            _ if !self.thresholds.is_empty() => THRESHOLD_ROWS,
            RowGoal::All | RowGoal::First(_) => BATCH_ROWS,
        }
    }

    /// Entries (count) that it would walk without lookups by rowkey.
    pub fn entries_otherwise(&self) -> Result<f64> {
        self.request.entries_otherwise(&self.planned()?.binding)
    }

    /// It is one scan, not several that share the work.
    pub fn is_whole(&self) -> bool {
        self.parts == 1
    }

    /// Starts one of its parts, narrowed by the dynamic filters. Errors: LIMIT, if it would read more than allowed.
    pub fn start(&self, part: usize) -> Result<Scan> {
        if !self.filters.is_empty() && self.narrowed.get().is_none() {
            // The first part decides for all: they divide the same ranges.
            let _ = self.narrowed.set(self.narrow()?);
        }
        self.scan(self.bound()?, Arc::clone(&self.counters), part)
    }

    /// Starts a scan for other parameters and another snapshot. `None`: as [`ScanExec::bind`].
    pub fn run(&self, binding: &Binding, counters: &Arc<ScanCounters>) -> Result<Option<Scan>> {
        match self.run_known(binding, counters)? {
            Some(scan) => Ok(Some(scan)),
            None => self.run_anew(binding, counters),
        }
    }

    /// The same, along a path that is known beforehand. `None`: there is none, or these parameters may be served better.
    pub fn run_known(&self, binding: &Binding, counters: &Arc<ScanCounters>) -> Result<Option<Scan>> {
        let Some((spec, entries_max)) = self.request.known(binding) else { return Ok(None) };
        let mut scan = self.reading(Arc::new(spec), binding, Arc::clone(counters));
        let is_short = entries_max.map_or(Ok(true), |most| scan.walk_ahead(most))?;
        Ok(if is_short { Some(scan) } else { None })
    }

    /// The same, along the path that is chosen for these parameters.
    pub fn run_anew(&self, binding: &Binding, counters: &Arc<ScanCounters>) -> Result<Option<Scan>> {
        self.rebound(binding)?.map(|bound| self.scan(&bound, Arc::clone(counters), 0)).transpose()
    }

    fn scan(&self, bound: &Bound, counters: Arc<ScanCounters>, part: usize) -> Result<Scan> {
        self.request.check(bound)?;
        Ok(self.reading(Arc::clone(&bound.spec), &bound.binding, counters).of_parts(part, self.parts))
    }

    fn reading(&self, spec: Arc<ScanSpec>, binding: &Binding, counters: Arc<ScanCounters>) -> Scan {
        let scan = Scan::new(spec, Arc::clone(&binding.snapshot), self.limit, counters);
        scan.without_first(self.offset).with_gets_max(binding.guards.gets)
    }

    /// The same scan for a consumer of about so many rows.
    pub fn few_first(&self, rows: usize) -> ScanExec {
        ScanExec { few: Some(rows.clamp(FEW_ROWS, BATCH_ROWS)), ..self.clone() }
    }

    /// The same scan, narrowed by what the filter says when the scan starts.
    pub fn with_dynamic_filter(&self, filter: &Arc<dyn PhysicalExpr>) -> ScanExec {
        ScanExec { filters: [&self.filters[..], &[Arc::clone(filter)]].concat(), ..self.clone() }
    }

    /// The same scan, which drops rows by what the filter says while it runs.
    pub fn with_threshold(&self, filter: &Arc<dyn PhysicalExpr>) -> ScanExec {
        if self.ordered && !self.request.order.is_empty() {
            // In order, the consumer stops at the first row that does not pass: that row must come.
            return self.clone();
        }
        ScanExec { thresholds: [&self.thresholds[..], &[Arc::clone(filter)]].concat(), ..self.clone() }
    }

    /// The scan to go on with, if its dynamic filters have changed since `seen`.
    fn tightened(&self, seen: &mut u64) -> Result<Option<ScanSpec>> {
        let now = self.thresholds.iter().map(snapshot_generation).fold(0, u64::wrapping_add);
        if std::mem::replace(seen, now) == now {
            return Ok(None);
        }
        let ScanRequest { schema, .. } = &*self.request;
        let said = self.thresholds.iter().map(|filter| condition_of(filter, schema, self.request.names(), 0));
        let said = Predicate::and(said);
        Ok(if said.is_true() { None } else { Some(self.request.dropping(self.bound()?, said)) })
    }

    /// The path under the dynamic filters, unless it reads everything.
    fn narrow(&self) -> Result<Option<Bound>> {
        let (schema, names) = (&self.request.schema, self.request.names());
        let Access { method, entries, cost, .. } = &self.bound()?.spec.access;
        // Looking up more keys costs more than it saves; of a skip scan, the jumps cost most.
        let reading = if matches!(method, Method::Scan { skip: Some(_), .. }) { cost } else { entries };
        let values_max =
            (reading / (COST.get + self.request.planning_of_one())).max(FEW_VALUES.min(reading / COST.get));
        let of = |filter| condition_of(filter, schema, names, values_max as usize);
        let known = Predicate::and(self.filters.iter().map(of));
        if known.is_true() {
            return Ok(None);
        }
        let narrowed = self.request.narrow(self.bound()?, known)?;
        let access = &narrowed.spec.access;
        let serves = (access.ordered || !self.ordered) && !access.method.is_whole();
        Ok(serves.then_some(narrowed))
    }

    /// A join tells what to read.
    pub fn learns(&self) -> bool {
        self.filters.iter().any(dynamic_filter::is_joins)
    }

    /// The dynamic filters that may lead to a better path, in words.
    pub fn narrowed_by(&self) -> Vec<String> {
        let mut all = Vec::new();
        for filter in &self.filters {
            let mut columns = dynamic_filter::columns(filter, &self.request.schema);
            columns.retain(|column| {
                self.request.field_of(column).is_some_and(|field| self.request.leads(field))
            });
            let by = match dynamic_filter::is_joins(filter) {
                true => "IN (what the join finds)",
                false => "compared with what the subquery gives",
            };
            all.extend(columns.into_iter().map(|column| shown(&format!("{column} {by}"))));
        }
        all.extend(self.words.iter().map(|words| shown(words)));
        all
    }

    /// The keys along which the values that a join finds are looked up, if they are few.
    pub fn narrowed_along(&self) -> BTreeSet<&str> {
        let joins = self.filters.iter().filter(|filter| dynamic_filter::is_joins(filter));
        let columns = joins.flat_map(|filter| dynamic_filter::columns(filter, &self.request.schema));
        columns.filter_map(|column| self.request.key_led_by(self.request.field_of(&column)?)).collect()
    }

    /// The access as EXPLAIN shows it.
    pub fn describe(&self) -> String {
        let described = self.described(false);
        described.map_or_else(|| "a scan whose path is not chosen yet".into(), |d| d.to_string())
    }

    /// The access in parts; `None` if the path is not chosen yet.
    pub fn described(&self, verbose: bool) -> Option<Described> {
        let spec = &self.bound().ok()?.spec;
        let mut described = spec.described(self.limit, verbose);
        described.offset = (self.offset > 0).then_some(self.offset);
        if let Some(by_rows) = &self.by_rows {
            described.told(RuntimeKeys::ByRow(by_rows.columns.clone()));
        }
        Some(described)
    }
}

/// Number of threads that share one long scan.
pub(in crate::df) fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).clamp(2, PIECES)
}

/// The wanted order over the output columns; `None` unless all of them are there.
fn sort_exprs(
    request: &ScanRequest,
    place: impl Fn(Field) -> Option<usize>,
) -> Option<Vec<PhysicalSortExpr>> {
    let sort_expr = |by: &OrderBy| {
        let at = place(by.field)?;
        let column = Column::new(request.schema.field(at).name(), at);
        let options = SortOptions { descending: by.descending, nulls_first: !by.descending };
        Some(PhysicalSortExpr::new(Arc::new(column), options))
    };
    let exprs: Option<Vec<_>> = request.order.iter().map(sort_expr).collect();
    exprs.filter(|e| !e.is_empty())
}

impl fmt::Debug for ScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl ExecutionPlan for ScanExec {
    inputs!(ScanExec(), this => this);

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn apply_expressions(
        &self,
        see: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        // A join checks here whether its dynamic filter is used.
        for filter in self.filters.iter().chain(&self.thresholds) {
            if see(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        // The scan starts with the first poll: by then a join has filled its dynamic filter.
        let this = self.clone();
        let batches =
            futures::stream::try_unfold((None, self.rows_at_first(), 0), move |(scan, rows, mut seen)| {
                let this = this.clone();
                async move {
                    let mut scan = match scan {
                        Some(scan) => scan,
                        None => this.start(partition).map_err(to_df)?,
                    };
                    // Gives a waiting cancellation its turn between two batches.
                    tokio::task::consume_budget().await;
                    if let Some(spec) = this.tightened(&mut seen).map_err(to_df)? {
                        scan.go_on_as(spec);
                    }
                    let batch = scan.next_batch_of(rows).map_err(to_df)?;
                    Ok(batch.map(|batch| (batch, (Some(scan), grown(rows, BATCH_ROWS), seen))))
                }
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.request.schema), batches)))
    }

    fn partition_statistics(&self, _: Option<usize>) -> DfResult<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.request.schema);
        if let Some(bound) = &self.bound {
            let rows = self.expected.map_or(bound.rows, |expected| expected.rows.min(bound.rows));
            statistics.num_rows = Precision::Inexact(rows.ceil() as usize);
        }
        Ok(Arc::new(statistics))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        let limit = limit.map(|n| n as u64);
        // Rows come in order, so a smaller limit only stops sooner.
        let limit = match (self.limit, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => b.or(a),
        };
        let (filters, thresholds) = Default::default();
        Some(Arc::new(ScanExec { limit, filters, thresholds, ..self.clone() }))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit.and_then(|n| usize::try_from(n).ok())
    }
}
