//! Maps one alternative to key ranges by walking the parts of a key from left to right.
//!
//! The walk keeps *branches*: byte strings that matching keys may start with. A part whose columns have
//! listed values multiplies them; a part that only has intervals ends them as ranges; a bucket without a
//! condition is fanned out over; at the first part without any condition, the walk stops, and every branch
//! becomes the range of its prefix.
//!
//! A column that occurs twice (`left(md5(id), 4), id`) takes the same value in both places of a branch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::alternatives::{ConjunctFact, Fact};
use super::predicate::Field;
use super::ranges::LayoutRole;
use super::sets::{ValueSet, as_point};
use crate::key::{
    ColumnId, End, Image, Interval, KeyLayout, KeyPart, KeyRange, KeyRanges, PartExpr, Rowkey, prefix_end,
};
use crate::value::Value;

/// Most integers or times (count) that are listed in place of an interval.
const LISTED_MAX: usize = 256;

/// All conditions of one alternative, by field.
pub(super) struct FieldConstraints {
    values: BTreeMap<Field, ValueSet>,
    /// The longest suffix of each column.
    suffixes: BTreeMap<ColumnId, String>,
    /// What key parts compute, once each.
    parts: Vec<(Arc<PartExpr>, ValueSet)>,
    /// Fields in `values` that are not restricted: every value is allowed, and so is NULL unless the field is
    /// NOT NULL.
    idle: BTreeSet<Field>,
}

/// A condition that is guaranteed for every row inside the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sure {
    /// The field has one of its known values.
    Values(Field),
    /// The column ends with its known suffix.
    Suffix(ColumnId),
    /// The expression of a key part, by its number, has one of its known values.
    Part(usize),
}

/// The result of a walk.
pub(super) struct Reach {
    pub(super) ranges: KeyRanges,
    /// Every range is one key.
    pub(super) points: bool,
    /// Parts (count), up to the last that narrowed the ranges.
    pub(super) bound_parts: usize,
    /// Leading parts (count) whose conditions every range expresses fully.
    pub(super) narrowed: usize,
    pub(super) sure: BTreeSet<Sure>,
}

impl FieldConstraints {
    /// `None` if the facts contradict each other.
    pub(super) fn of(terms: &[ConjunctFact], layout: &KeyLayout) -> Option<FieldConstraints> {
        let mut known = FieldConstraints {
            values: BTreeMap::new(),
            suffixes: BTreeMap::new(),
            parts: Vec::new(),
            idle: BTreeSet::new(),
        };
        let mut sets: BTreeMap<Field, Vec<&ValueSet>> = BTreeMap::new();
        let not_null = ValueSet::not_null();
        for term in terms {
            match &*term.fact {
                Fact::Values { field, set, .. } => sets.entry(*field).or_default().push(set),
                Fact::Suffix { column, suffix, .. } => {
                    sets.entry(Field::Column(*column)).or_default().push(&not_null);
                    let longest = known.suffixes.entry(*column).or_default();
                    if suffix.len() > longest.len() {
                        longest.clone_from(suffix);
                    }
                }
                Fact::Part { part, set } => known.narrow(part, set),
                Fact::Inexpressible => {}
            }
        }
        for (field, mut sets) in sets {
            sets.sort_by_key(|set| set.intervals().len());
            let Some((least, others)) = sets.split_first() else { continue };
            let set = others.iter().fold((*least).clone(), |set, other| set.intersect(other));
            if set.is_empty() {
                return None;
            }
            known.values.insert(field, set);
        }
        if known.parts.iter().any(|(_, set)| set.is_empty()) {
            return None;
        }
        known.list_short_ranges(layout);
        known.leave_out_what_no_key_has(layout);
        if known.values.values().any(ValueSet::is_empty) {
            return None;
        }
        let never_null: BTreeSet<Field> = layout.parts().iter().filter_map(never_null).collect();
        let is_idle =
            |f: &Field, set: &ValueSet| set.covers_not_null() && (set.has_null() || never_null.contains(f));
        known.idle = known.values.iter().filter(|(f, set)| is_idle(f, set)).map(|(f, _)| *f).collect();
        Some(known)
    }

    fn narrow(&mut self, part: &Arc<PartExpr>, to: &ValueSet) {
        match self.part_at(part) {
            Some(at) => self.parts[at].1 = self.parts[at].1.intersect(to),
            None => self.parts.push((Arc::clone(part), to.clone())),
        }
    }

    /// The number of a key part's expression, if it is restricted.
    pub(super) fn part_at(&self, part: &PartExpr) -> Option<usize> {
        self.parts.iter().position(|(known, _)| **known == *part)
    }

    /// What a condition on its expression says of a part's bytes; `None` if there is none that it can express.
    fn results(&self, part: &KeyPart) -> Option<Results> {
        let at = self.parts.iter().position(|(known, _)| part.computes(known))?;
        let (expr, set) = &self.parts[at];
        let mut results = Results { whole: Vec::new(), images: Vec::new(), sure: None };
        for interval in set.intervals() {
            match as_point(interval) {
                Some(value) => results.whole.extend(part.bytes_of_result(value)?),
                None => results.images.push(part.image_of_results(interval)?),
            }
        }
        let is_tight = expr.is_content() && results.images.iter().all(|image| image.tight);
        results.sure = is_tight.then_some(Sure::Part(at));
        Some(results)
    }

    /// Lists the integers and times of short intervals where a part keeps no order of them, as `reverse(lpad(id, 8))` and
    /// `to_char(ts, 'DD-MM-YYYY')`: each is looked up. Times that the part cannot hold are left out.
    fn list_short_ranges(&mut self, layout: &KeyLayout) {
        let keeps_no_order = |part: &&KeyPart| part.facts().order.is_none() && part.buckets().is_none();
        for part in layout.parts().iter().filter(keeps_no_order) {
            let &[column] = part.columns() else { continue };
            let Some(set) = self.values.get_mut(&Field::Column(column)) else { continue };
            let is_bound =
                |interval: &Interval| as_point(interval).is_some() || part.image(interval).is_some();
            if !set.intervals().iter().all(is_bound)
                && let Some(listed) = set.listed(part, LISTED_MAX)
            {
                *set = listed;
            }
        }
    }

    /// Leaves out values that a part cannot hold, as a name without a code: no row has them. The walk leaves out those
    /// of the first part.
    fn leave_out_what_no_key_has(&mut self, layout: &KeyLayout) {
        for part in layout.parts().iter().skip(1) {
            let &[column] = part.columns() else { continue };
            if let Some(set) = self.values.get_mut(&Field::Column(column))
                && set.intervals().len() <= LISTED_MAX
            {
                set.retain(|interval| may_hold(part, interval));
            }
        }
    }

    /// The possible values of a field, if restricted.
    pub(super) fn values(&self, field: Field) -> Option<&ValueSet> {
        self.values.get(&field).filter(|_| !self.idle.contains(&field))
    }

    /// The suffix of every possible value of a column.
    pub(super) fn suffix(&self, column: ColumnId) -> Option<&str> {
        self.suffixes.get(&column).map(String::as_str)
    }

    /// Columns whose possible values can be listed, and these values.
    pub(super) fn listed(&self) -> BTreeMap<ColumnId, ValueSet> {
        let listed = |(field, set): (&Field, &ValueSet)| match field {
            Field::Column(column) => set.points().map(|_| (*column, set.clone())),
            Field::Rowkey | Field::PrimaryRowkey => None,
        };
        self.values.iter().filter_map(listed).collect()
    }

    /// Key ranges of all rows with these values: about `limit`, at most.
    pub(super) fn walk(&self, layout: &KeyLayout, role: LayoutRole, limit: usize) -> Reach {
        let start = Branch { bytes: Vec::new(), values: Vec::new() };
        let mut walk = LayoutWalk {
            known: self,
            parts: layout.parts(),
            limit,
            branches: vec![start],
            taken: BTreeSet::new(),
            sure: self.idle.iter().copied().map(Sure::Values).collect(),
            ended: Vec::new(),
            ended_sure: None,
            bound_parts: 0,
            narrowed: usize::MAX,
        };
        let whole = walk.run();
        walk.finish(whole && role == LayoutRole::Primary)
    }
}

/// May the part of some key hold a value in the interval?
fn may_hold(part: &KeyPart, interval: &Interval) -> bool {
    match as_point(interval) {
        Some(value) => part.bytes_of(&|_| value, &mut Vec::new()).is_ok(),
        None => part.image(interval).is_none_or(|image| !image.range.is_empty()),
    }
}

/// The column of a part that cannot be NULL.
fn never_null(part: &KeyPart) -> Option<Field> {
    match part.columns() {
        &[column] if part.null_bytes().is_none() => Some(Field::Column(column)),
        _ => None,
    }
}

/// Bytes that keys start with, and the values chosen for them.
#[derive(Clone)]
struct Branch<'k> {
    bytes: Vec<u8>,
    values: Vec<(ColumnId, &'k Value)>,
}

/// The bytes of a part for what it may compute.
struct Results {
    /// All of its bytes for single values.
    whole: Vec<Vec<u8>>,
    /// Ranges of them for intervals.
    images: Vec<Image>,
    /// What all of them guarantee.
    sure: Option<Sure>,
}

/// What the walk can do at a part.
enum PartStep<'k> {
    /// Append the literal.
    Literal,
    /// List the values of its columns.
    List,
    /// Bound the part by the possible values of its column.
    Bound(ColumnId, &'k ValueSet),
    /// Bound the part by the suffix of its column, which the part turns into a prefix.
    Suffix(ColumnId, Image),
    /// Bound the part by what it may compute.
    Results(Results),
    /// Try every bucket, because a later part narrows the ranges.
    FanOut,
    /// Stop: nothing restricts the part.
    Stop,
}

struct LayoutWalk<'k> {
    known: &'k FieldConstraints,
    parts: &'k [KeyPart],
    limit: usize,
    branches: Vec<Branch<'k>>,
    /// Columns for which every branch has chosen a value.
    taken: BTreeSet<ColumnId>,
    /// Guaranteed for every branch.
    sure: BTreeSet<Sure>,
    ended: Vec<KeyRange>,
    /// Guaranteed for every range that ended; `None` if there is none.
    ended_sure: Option<BTreeSet<Sure>>,
    bound_parts: usize,
    /// For the ranges that ended, as in [`Reach`].
    narrowed: usize,
}

impl<'k> LayoutWalk<'k> {
    /// Walks until a part is not restricted, or every branch has ended; gives whether all parts were passed.
    fn run(&mut self) -> bool {
        for (i, part) in self.parts.iter().enumerate() {
            let passed = match self.step(i) {
                PartStep::Literal => {
                    self.append(part);
                    true
                }
                PartStep::List => self.list(i),
                PartStep::Bound(column, set) => self.bound(i, column, set),
                PartStep::Suffix(column, image) => {
                    let sure = image.tight.then_some(Sure::Suffix(column));
                    self.end(&[image.range], sure, i + 1);
                    self.branches.clear();
                    self.bound_parts = i + 1;
                    true
                }
                PartStep::Results(results) => self.results(i, results),
                PartStep::FanOut => match part.fan_out(self.room()) {
                    Some(mut buckets) => {
                        if self.is_not_null(part) {
                            let null = part.null_bytes();
                            buckets.retain(|bucket| null.as_ref() != Some(bucket));
                        }
                        self.multiply(&buckets);
                        true
                    }
                    None => false,
                },
                PartStep::Stop => false,
            };
            if !passed || self.branches.is_empty() {
                return false;
            }
        }
        true
    }

    fn step(&self, i: usize) -> PartStep<'k> {
        let part = &self.parts[i];
        if part.is_literal() {
            return PartStep::Literal;
        }
        let columns = part.columns();
        if !columns.is_empty() && columns.iter().all(|&c| self.choices(c).is_some()) {
            return PartStep::List;
        }
        if let &[column] = columns {
            if let Some(set) = self.known.values(Field::Column(column))
                && set.intervals().iter().all(|interval| part.image(interval).is_some())
            {
                return PartStep::Bound(column, set);
            }
            if let Some(image) = self.known.suffix(column).and_then(|suffix| part.suffix_image(suffix)) {
                return PartStep::Suffix(column, image);
            }
        }
        if let Some(results) = self.known.results(part) {
            return PartStep::Results(results);
        }
        match part.buckets() {
            Some(_) if self.is_useful_after(i) => PartStep::FanOut,
            _ => PartStep::Stop,
        }
    }

    /// Is no column of the part NULL, so that the part is not?
    fn is_not_null(&self, part: &KeyPart) -> bool {
        let has_none =
            |column: &ColumnId| self.known.values(Field::Column(*column)).is_some_and(|set| !set.has_null());
        part.columns().iter().all(has_none)
    }

    /// Does the first part after `i` that is neither a literal nor a bucket narrow the ranges?
    fn is_useful_after(&self, i: usize) -> bool {
        let next = (i + 1..self.parts.len()).map(|j| self.step(j));
        next.into_iter()
            .find(|step| !matches!(step, PartStep::Literal | PartStep::FanOut))
            .is_some_and(|step| !matches!(step, PartStep::Stop))
    }

    /// The values to choose from for a column; none to choose if the branches have chosen already.
    fn choices(&self, column: ColumnId) -> Option<Vec<&'k Value>> {
        if self.taken.contains(&column) {
            return Some(Vec::new());
        }
        self.known.values(Field::Column(column))?.points()
    }

    /// Appends a part to every branch; drops branches with a value that it cannot hold, since no row has it.
    fn append(&mut self, part: &KeyPart) {
        self.branches.retain_mut(|branch| {
            let Branch { bytes, values } = branch;
            let value = |column| values.iter().find(|(c, _)| *c == column).map_or(&Value::Null, |(_, v)| v);
            part.bytes_of(&value, bytes).is_ok()
        });
    }

    /// Multiplies the branches by the values of the part's columns; false if that makes too many.
    fn list(&mut self, i: usize) -> bool {
        let part = &self.parts[i];
        let free: BTreeSet<ColumnId> =
            part.columns().iter().copied().filter(|c| !self.taken.contains(c)).collect();
        let lists: Vec<(ColumnId, Vec<&Value>)> =
            free.into_iter().filter_map(|c| Some((c, self.choices(c)?))).collect();
        if lists.iter().fold(1usize, |n, (_, list)| n.saturating_mul(list.len())) > self.room() {
            if let [(column, _)] = lists[..] {
                self.bound_around(i, column);
            }
            return false;
        }
        for (column, list) in lists {
            self.choose(column, &list);
        }
        self.append(part);
        self.surely(part);
        self.bound_parts = i + 1;
        true
    }

    /// Multiplies the branches by `values` for `column`.
    fn choose(&mut self, column: ColumnId, values: &[&'k Value]) {
        let with = |branch: &Branch<'k>, value: &'k Value| {
            let mut branch = branch.clone();
            branch.values.push((column, value));
            branch
        };
        self.branches = self.branches.iter().flat_map(|b| values.iter().map(move |v| with(b, v))).collect();
        self.taken.insert(column);
    }

    /// Ends intervals as ranges; single values, NULL included, continue as branches.
    fn bound(&mut self, i: usize, column: ColumnId, set: &'k ValueSet) -> bool {
        let part = &self.parts[i];
        let (points, intervals): (Vec<&Interval>, Vec<&Interval>) =
            set.intervals().iter().partition(|interval| as_point(interval).is_some());
        if set.intervals().len() + usize::from(set.has_null()) > self.room() {
            self.bound_around(i, column);
            return false;
        }
        let images: Vec<Image> = intervals.into_iter().filter_map(|interval| part.image(interval)).collect();
        let tight = images.iter().all(|image| image.tight);
        let images: Vec<KeyRange> = images.into_iter().map(|image| image.range).collect();
        self.end(&images, tight.then_some(Sure::Values(Field::Column(column))), i + 1);

        static NULL: Value = Value::Null;
        let null = set.has_null().then_some(&NULL);
        let values: Vec<&Value> = null.into_iter().chain(points.into_iter().filter_map(as_point)).collect();
        self.choose(column, &values);
        self.append(part);
        self.surely(part);
        self.bound_parts = i + 1;
        true
    }

    /// If there are too many values, ends every branch with the range around all of them, if the part can
    /// express it.
    fn bound_around(&mut self, i: usize, column: ColumnId) {
        let around = self.known.values(Field::Column(column)).filter(|set| !set.has_null());
        let image = around.and_then(ValueSet::hull).and_then(|hull| self.parts[i].image(&hull));
        if let Some(image) = image {
            self.end(&[image.range], None, i);
            self.branches.clear();
            self.bound_parts = i + 1;
        }
    }

    /// Ends ranges of what the part may compute; single results continue as branches. False if that makes too many.
    fn results(&mut self, i: usize, Results { whole, images, sure }: Results) -> bool {
        if whole.len() + images.len() > self.room() {
            return false;
        }
        let images: Vec<KeyRange> = images.into_iter().map(|image| image.range).collect();
        self.end(&images, sure, i + 1);
        self.multiply(&whole);
        self.sure.extend(sure);
        self.bound_parts = i + 1;
        true
    }

    /// Values (count) by which all branches may be multiplied.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.ended.len()) / self.branches.len().max(1)
    }

    /// Multiplies the branches by the bytes of a part.
    fn multiply(&mut self, all: &[Vec<u8>]) {
        let with = |branch: &Branch<'k>, bytes: &[u8]| {
            let mut branch = branch.clone();
            branch.bytes.extend_from_slice(bytes);
            branch
        };
        self.branches =
            self.branches.iter().flat_map(|b| all.iter().map(move |bytes| with(b, bytes))).collect();
    }

    /// Records that the branches' bytes determine the value of the part's column, if the part is injective.
    fn surely(&mut self, part: &KeyPart) {
        if let &[column] = part.columns()
            && part.facts().injective
        {
            self.sure.insert(Sure::Values(Field::Column(column)));
        }
    }

    /// Ends every branch with each of `ranges`, which also guarantee `also` and express the conditions on the
    /// first `narrowed` parts fully.
    fn end(&mut self, ranges: &[KeyRange], also: Option<Sure>, narrowed: usize) {
        if ranges.is_empty() || self.branches.is_empty() {
            return;
        }
        self.narrowed = self.narrowed.min(narrowed);
        let placed = self.branches.iter().flat_map(|b| ranges.iter().map(|range| after(&b.bytes, range)));
        self.ended.extend(placed);
        let sure = self.sure.iter().copied().chain(also).collect();
        self.agree(sure);
    }

    /// Keeps only what is guaranteed for all ranges that ended.
    fn agree(&mut self, sure: BTreeSet<Sure>) {
        match &mut self.ended_sure {
            None => self.ended_sure = Some(sure),
            Some(known) => known.retain(|s| sure.contains(s)),
        }
    }

    /// Ends the remaining branches: as keys if `whole`, otherwise as prefixes.
    fn finish(mut self, whole: bool) -> Reach {
        let points = whole && self.ended.is_empty();
        if !self.branches.is_empty() {
            let sure = std::mem::take(&mut self.sure);
            self.agree(sure);
            self.narrowed = self.narrowed.min(self.bound_parts);
        }
        let keys = self.branches.into_iter().map(|b| Rowkey::from(b.bytes));
        let ranges = match points {
            true => KeyRanges::of_points(keys.collect()),
            false => {
                let last = |key| if whole { KeyRange::point(key) } else { KeyRange::prefix(key) };
                self.ended.into_iter().chain(keys.map(last)).collect()
            }
        };
        let LayoutWalk { bound_parts, narrowed, .. } = self;
        Reach { ranges, points, bound_parts, narrowed, sure: self.ended_sure.unwrap_or_default() }
    }
}

/// `range`, within the keys that start with `head`.
pub(super) fn after(head: &[u8], range: &KeyRange) -> KeyRange {
    let start = [head, &*range.start].concat();
    match &range.end {
        End::Before(end) => KeyRange::new(start, [head, &**end].concat()),
        End::Open => match prefix_end(head) {
            Some(end) => KeyRange::new(start, end),
            None => KeyRange::starting_at(start),
        },
    }
}
