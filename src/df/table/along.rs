//! Reads along a known path: for many conditions that differ in their values only, or from some point of an order on.

use std::sync::Arc;

use super::{Binding, Bound, QueryRelation, ScanRequest};
use crate::access::{Access, Choice, Method, Need, OrderBy, Path, Stretch, along, share_of_equals};
use crate::df::wanted::{FirstFound, RowGoal};
use crate::error::{Error, Result};
use crate::exec::scan::ScanSpec;
use crate::key::{ColumnId, KeyPart};
use crate::plan::{CmpOp, Field, Filter, Predicate, RowView};
use crate::schema::{IndexDef, IndexState};
use crate::value::{ColumnType, Value, ValueRef};

/// A key that sorts rows with equal values of some columns by another column.
pub struct Behind {
    /// The path to it.
    pub path: Path,
    /// The columns with equal values.
    pub before: Vec<Field>,
    /// It is a partial index that holds at least the rows a scan is bound to.
    pub of_some: bool,
}

/// How rows are found for many conditions that differ in their values only.
pub struct ProbePath {
    /// Bound for the first of the conditions.
    pub bound: Bound,
    /// What the scan asks besides: of columns that each condition gives a value for, and of others.
    decided: Filter,
    decided_of: Vec<Field>,
    others: Predicate,
    /// Set if the condition gives one range of keys, and the others are left to check.
    stretch: Option<Stretch>,
}

impl ProbePath {
    /// The first condition gives a whole key: that says nothing about conditions that do not.
    pub fn is_of_one(&self) -> bool {
        matches!(self.bound.spec.access.method, Method::Get(_))
    }
}

/// The values that a condition compares columns with, by `=`.
struct Told<'c>(&'c Predicate);

impl Told<'_> {
    fn value(&self, field: Field) -> Option<&Value> {
        self.0.terms().iter().find_map(|term| match term {
            Predicate::Compare { field: of, op: CmpOp::Eq, value } if *of == field => Some(value),
            _ => None,
        })
    }

    fn decides(&self, predicate: &Predicate) -> bool {
        !predicate.has_opaque() && predicate.fields().iter().all(|field| self.value(*field).is_some())
    }
}

impl RowView for Told<'_> {
    fn field(&self, field: Field) -> Result<ValueRef<'_>> {
        let value = self.value(field).map(Value::as_ref);
        value.ok_or_else(|| Error::internal("a column that no condition compares with a value"))
    }
}

impl ScanRequest {
    /// How to find the rows that pass one more condition (or only the `first` ones), for many conditions that differ in
    /// their values only; the cheapest of `paths`. `None`: these values find nothing on any.
    pub fn way(
        &self,
        planned: &Bound,
        condition: Predicate,
        first: Option<&FirstFound>,
        paths: &[Path],
    ) -> Result<Option<ProbePath>> {
        let asked = planned.need.predicate.clone().conjuncts().into_iter();
        let (decided, others): (Vec<_>, Vec<_>) = asked.partition(|term| Told(&condition).decides(term));
        let (decided, others) = (Predicate::and(decided), Predicate::and(others));
        let (decided_of, decided) = (decided.fields(), Filter::from(decided));
        if !decided.passes(&Told(&condition))? {
            return Ok(None);
        }
        let predicate = Predicate::and([others.clone(), condition.clone()]);
        let mut need = Need { predicate, ..planned.need.clone() };
        if let Some(first) = first {
            (need.order, need.limit) = (first.order.clone(), Some(first.rows));
        }
        let (source, stats) = (self.relation.source(), self.statistics(&planned.binding));
        let each = paths.iter().filter_map(|path| along(source, &need, *path, &stats));
        let finding = each.filter(|access| !matches!(access.method, Method::Empty));
        let Some(access) = finding.min_by(|a, b| a.cost.total_cmp(&b.cost)) else { return Ok(None) };
        let choice = Choice::of(access, "a range of keys for each row");
        let bound = self.bound(need, choice, planned.binding.clone());
        self.check(&bound)?;
        let stretch = Stretch::beside(source, &bound.need, &bound.spec.access, &condition, &others);
        Ok(Some(ProbePath { bound, decided, decided_of, others, stretch }))
    }

    /// What to read for a condition with other values; `None`: nothing.
    pub fn on_way(&self, planned: &Bound, way: &ProbePath, condition: Predicate) -> Result<Option<ScanSpec>> {
        let (source, bound) = (self.relation.source(), &way.bound);
        let told = Told(&condition);
        let predicate = if way.decided_of.iter().all(|field| told.value(*field).is_some()) {
            if !way.decided.passes(&told)? {
                return Ok(None);
            }
            if let Some(access) = way.stretch.and_then(|stretch| stretch.along(source, &condition)) {
                let Access { entry_filter, filter, .. } = bound.spec.access.clone();
                let places = Arc::clone(&bound.spec.places);
                let access = Access { entry_filter, filter, ..access };
                return Ok(Some(self.spec_of(access, &bound.need.output, places)));
            }
            Predicate::and([way.others.clone(), condition])
        } else {
            Predicate::and([planned.need.predicate.clone(), condition])
        };
        let need = Need { predicate, ..bound.need.clone() };
        let along = along(source, &need, bound.spec.access.path, &self.statistics(&bound.binding));
        let access = along.ok_or_else(|| Error::internal("a path that served once does not serve"))?;
        Ok(Some(self.spec(access, &bound.need.output)))
    }

    /// The leading column of the wanted order, and its type. `None`: the order has no leading column of the table, or a
    /// type that does not compare like its bytes (DOUBLE).
    pub fn leading(&self) -> Option<(OrderBy, ColumnType)> {
        let by = *self
            .order
            .first()
            .filter(|_| matches!(self.rows, RowGoal::About { .. }) && self.each.is_none())?;
        let Field::Column(id) = by.field else { return None };
        let ty = self.relation.table.column(id).ty;
        ty.compares_as_bytes().then_some((by, ty))
    }

    /// A scan of the leading column alone, in the same order along the same path; `None` if that takes whole rows.
    pub fn leading_only(&self, bound: &Bound) -> Option<ScanSpec> {
        let (by, _) = self.leading()?;
        let column = self.column_of(by.field)?;
        let need = Need { output: [by.field].into(), limit: None, offset: 0, ..bound.need.clone() };
        let path = bound.spec.access.path;
        let access = along(self.relation.source(), &need, path, &self.statistics(&bound.binding))?;
        let is_whole = matches!(access.path, Path::IndexFetch(_)) || !access.filter.is_true();
        let schema = Arc::new(self.schema.project(&[column]).ok()?);
        (access.ordered && !is_whole).then(|| self.pick(&[column], &schema).spec(access, &need.output))
    }

    /// The same scan, begun at this value of the leading column.
    pub fn begun_at(&self, bound: &Bound, value: Value) -> Option<Bound> {
        let (by, _) = self.leading()?;
        let is_null = Predicate::is_null(by.field);
        let condition = match (value.is_null(), by.descending) {
            // NULLs are smallest.
            (true, false) => Predicate::True,
            (true, true) => is_null,
            (false, false) => Predicate::compare(by.field, CmpOp::Ge, value),
            (false, true) => Predicate::or([Predicate::compare(by.field, CmpOp::Le, value), is_null]),
        };
        let predicate = Predicate::and([bound.need.predicate.clone(), condition]);
        let need = Need { predicate, offset: 0, ..bound.need.clone() };
        let path = bound.spec.access.path;
        let access = along(self.relation.source(), &need, path, &self.statistics(&bound.binding))?;
        let choice = Choice::of(access, &bound.chosen);
        choice.access.ordered.then(|| self.bound(need, choice, bound.binding.clone()))
    }

    /// The keys that sort all rows, or rows with equal values of some columns of `equal`, by column `ranged`. Then a
    /// range of its values is a range of keys; with `listed`, each of its values is. Only keys with the longest prefix
    /// are given. They hold all rows, or at least those that the scan is `bound` to.
    pub fn ranges_behind(
        &self,
        equal: &[ColumnId],
        (ranged, listed): (ColumnId, bool),
        bound: &Bound,
    ) -> Vec<Behind> {
        let QueryRelation { table, .. } = &*self.relation;
        let has_all = |index: &&IndexDef| {
            index.state == IndexState::Ready
                && index.filter.as_ref().is_none_or(|filter| bound.need.predicate.implies(filter))
        };
        let indexes = table.indexes.iter().filter(has_all).map(|index| {
            (Path::IndexFetch(index.id), &index.sorted_by(&table.key).layout, index.filter.is_some())
        });
        let is_equal =
            |part: &KeyPart| !part.is_random() && part.columns().iter().all(|column| equal.contains(column));
        // A bucket number: each listed value determines it.
        let is_told = |part: &KeyPart| {
            listed && part.columns() == [ranged] && !part.facts().injective && !part.is_random()
        };
        let mut found: Vec<Behind> = Vec::new();
        for (path, layout, of_some) in std::iter::once((Path::Primary, &table.key, false)).chain(indexes) {
            let parts = layout.parts();
            let Some(at) = parts.iter().position(|part| !is_equal(part) && !is_told(part)) else { continue };
            let facts = parts[at].facts();
            if parts[at].columns() != [ranged] || facts.order.is_none() && !(listed && facts.injective) {
                continue;
            }
            let before = parts[..at].iter().filter(|part| !is_told(part)).flat_map(|part| part.columns());
            let before: Vec<Field> = before.map(|id| Field::Column(*id)).collect();
            found.push(Behind { path, before, of_some });
        }
        let longest = found.iter().map(|behind| behind.before.len()).max();
        found.retain(|behind| Some(behind.before.len()) == longest);
        found
    }

    /// Expected share of the rows that have the same values in these fields as a given row.
    pub fn share_of_equals(&self, fields: &[Field]) -> f64 {
        share_of_equals(self.relation.advice.statistics.as_deref(), fields.iter().copied())
    }

    /// Distinct values (count) of a column, about; `None` if ANALYZE has not looked.
    pub fn distinct(&self, binding: &Binding, field: Field) -> Option<f64> {
        let Field::Column(id) = field else { return None };
        if self.table().key.columns() == [id] {
            return Some(self.entries(binding));
        }
        let collected = self.relation.advice.statistics.as_deref()?;
        collected.column(id).map(|column| column.distinct)
    }
}
