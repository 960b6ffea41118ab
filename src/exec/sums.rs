//! Aggregates rows as they are found: a [`Sink`] that keeps totals instead of rows.

use arrow::array::Float64Builder;
use arrow::compute;

use super::sink::{Room, Sink, no_value_in};
use super::spec::{BATCH_ROWS, ScanSpec};
use super::view::{StoredField, StoredRowView};
use crate::error::{Error, Result, sqlstate};
use crate::plan::Field;
use crate::row;
use crate::value::{ColumnType, ValueRef};

/// The error for a sum of decimals that is out of range.
pub const TOO_LONG: &str = "the sum is out of range for a DECIMAL of 38 digits";

/// An aggregate of the non-NULL values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    /// Their number.
    Count,
    /// The sum of whole numbers and decimals.
    Sum,
    /// The sum as a double, of integers and doubles.
    SumOfDoubles,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// An aggregate of a column.
#[derive(Clone, Copy, Debug)]
pub struct AggregateTerm {
    /// The aggregate function.
    pub function: AggregateKind,
    /// Index among the scan's columns; `None`: the rows themselves are counted.
    pub column: Option<usize>,
}

/// The result of a term.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Values (count) that were not NULL.
    pub values: u64,
    /// The result as a whole number: a decimal without its point, days, microseconds. Meaningless if there were no
    /// values.
    pub number: i128,
    /// The result of a sum of doubles.
    pub double: f64,
}

/// Aggregates the rows it is given, batch by batch.
pub struct Sums {
    sums: Vec<Sum>,
    /// Row limit of the current batch.
    room: Room,
}

/// The aggregation of one term.
struct Sum {
    function: AggregateKind,
    column: Option<ScanColumn>,
    total: Total,
    /// Doubles of the current batch: the kernel for Arrow columns adds them, so that the order is the same.
    doubles: Option<Float64Builder>,
}

/// A column of a scan.
pub(super) struct ScanColumn {
    /// Index among the scan's columns.
    place: usize,
    field: Field,
    pub(super) ty: ColumnType,
    nullable: bool,
}

impl ScanColumn {
    pub(super) fn of(place: usize, spec: &ScanSpec) -> ScanColumn {
        let (field, ty) = (spec.output[place], spec.type_of(place));
        ScanColumn { place, field, ty, nullable: spec.schema.field(place).is_nullable() }
    }

    /// Its value in a row; `None`: NULL. Errors: `Corrupt` if it is NULL but declared NOT NULL.
    #[inline(always)]
    pub(super) fn find<'v>(
        &self,
        spec: &ScanSpec,
        view: &'v StoredRowView<'_>,
    ) -> Result<Option<StoredField<'v>>> {
        match view.find(self.field)? {
            StoredField::Value(ValueRef::Null) if self.nullable => Ok(None),
            StoredField::Value(ValueRef::Null) => Err(no_value_in(spec.schema.field(self.place))),
            found => Ok(Some(found)),
        }
    }
}

impl Sums {
    /// Begins to aggregate rows of `spec`.
    pub fn new(terms: impl Iterator<Item = AggregateTerm>, spec: &ScanSpec) -> Sums {
        let sum = |term: AggregateTerm| Sum {
            function: term.function,
            column: term.column.map(|place| ScanColumn::of(place, spec)),
            total: Total::default(),
            doubles: (term.function == AggregateKind::SumOfDoubles).then(|| Float64Builder::with_capacity(0)),
        };
        Sums { sums: terms.map(sum).collect(), room: Room::default() }
    }

    /// The same for the rows of one group: DataFusion adds the doubles of groups one by one.
    pub fn of_group(terms: impl Iterator<Item = AggregateTerm>, spec: &ScanSpec) -> Sums {
        let mut sums = Sums::new(terms, spec);
        sums.sums.iter_mut().for_each(|sum| sum.doubles = None);
        sums
    }

    /// Begins a batch of at most `left` rows.
    pub(super) fn begin(&mut self, left: u64) {
        // Counting rows takes no memory.
        let most = if self.looks() { BATCH_ROWS } else { usize::MAX };
        self.room = Room { rows: 0, rows_max: usize::try_from(left).unwrap_or(usize::MAX).min(most) };
    }

    /// Adds the totals of the batch.
    pub(super) fn end(&mut self) {
        for sum in &mut self.sums {
            if sum.column.is_none() {
                sum.total.values += self.room.rows as u64;
            }
            if let Some(doubles) = &mut sum.doubles
                && let Some(of_batch) = compute::sum(&doubles.finish())
            {
                sum.total.double += of_batch;
            }
        }
    }

    /// Adds the totals of rows that follow. Errors: `Invalid` if a sum has more than 38 digits.
    pub fn merge(&mut self, others: &Sums) -> Result<()> {
        for (sum, other) in self.sums.iter_mut().zip(&others.sums) {
            let number = other.total.number;
            if other.total.values > 0 && sum.column.is_some() {
                sum.total.add(sum.function, number)?;
            }
            sum.total.values += other.total.values;
            sum.total.double += other.total.double;
        }
        Ok(())
    }

    /// The result of each term.
    pub fn totals(&self) -> impl Iterator<Item = Total> {
        self.sums.iter().map(|sum| sum.total)
    }
}

impl Total {
    /// Adds one more number; the caller then counts it. Errors: `Invalid` if a sum has more than 38 digits.
    #[inline]
    pub(super) fn add(&mut self, function: AggregateKind, number: i128) -> Result<()> {
        match function {
            AggregateKind::Count | AggregateKind::SumOfDoubles => {}
            AggregateKind::Sum => self.number = self.number.checked_add(number).ok_or_else(too_long)?,
            AggregateKind::Min if self.values > 0 => self.number = self.number.min(number),
            AggregateKind::Max if self.values > 0 => self.number = self.number.max(number),
            AggregateKind::Min | AggregateKind::Max => self.number = number,
        }
        Ok(())
    }
}

impl Sum {
    #[inline]
    fn append(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<()> {
        let Some(column) = &self.column else { return Ok(()) };
        let Some(found) = column.find(spec, view)? else {
            self.doubles.iter_mut().for_each(Float64Builder::append_null);
            return Ok(());
        };
        match (self.function, &mut self.doubles) {
            (AggregateKind::Count, _) => {}
            (AggregateKind::SumOfDoubles, Some(doubles)) => doubles.append_value(double(found, column.ty)?),
            (AggregateKind::SumOfDoubles, None) => self.total.double += double(found, column.ty)?,
            _ => self.total.add(self.function, number(found, column.ty)?)?,
        }
        self.total.values += 1;
        Ok(())
    }
}

#[inline(always)]
pub(super) fn number(found: StoredField<'_>, ty: ColumnType) -> Result<i128> {
    match found {
        StoredField::Packed(id, bytes) => row::unpack_number(id, ty, bytes),
        StoredField::Value(value) => value.number().ok_or_else(|| no_number(value)),
    }
}

pub(super) fn double(found: StoredField<'_>, ty: ColumnType) -> Result<f64> {
    let value = match found {
        StoredField::Packed(id, bytes) => row::unpack(id, ty, bytes)?,
        StoredField::Value(value) => value,
    };
    match value {
        ValueRef::Double(double) => Ok(double),
        ValueRef::Int(number) => Ok(number as f64),
        _ => Err(no_number(value)),
    }
}

#[cold]
fn too_long() -> Error {
    Error::invalid(TOO_LONG)
        .why("the result does not fit its type")
        .hint("cast to a wider type, such as DOUBLE")
        .state(sqlstate::OUT_OF_RANGE)
}

#[cold]
fn no_number(value: ValueRef<'_>) -> Error {
    Error::internal(format!("{value:?} is added up"))
}

impl Sink for Sums {
    #[inline]
    fn append(&mut self, spec: &ScanSpec, view: &StoredRowView<'_>) -> Result<()> {
        for sum in &mut self.sums {
            sum.append(spec, view)?;
        }
        self.room.rows += 1;
        Ok(())
    }

    fn looks(&self) -> bool {
        self.sums.iter().any(|sum| sum.column.is_some())
    }

    fn room(&self) -> &Room {
        &self.room
    }

    fn room_mut(&mut self) -> &mut Room {
        &mut self.room
    }
}
