//! Rows added up as they are found: a [`Sink`] that keeps numbers instead of rows.

use arrow::array::Float64Builder;
use arrow::compute;

use super::scan::{BATCH_ROWS, ScanSpec};
use super::sink::{Room, Sink, no_value_in};
use super::view::{Found, View, field_type};
use crate::error::{Error, Result, sqlstate};
use crate::plan::Field;
use crate::row;
use crate::value::{ColumnType, ValueRef};

/// The error for a sum of decimals that is none.
pub const TOO_LONG: &str = "the sum is out of range for a DECIMAL of 38 digits";

/// What is made of the values of a column that are not NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// How many they are.
    Count,
    /// Their sum, of whole numbers and decimals.
    Sum,
    /// Their sum as doubles, of integers and doubles.
    SumOfDoubles,
    /// The least one.
    Min,
    /// The greatest one.
    Max,
}

/// A function of a column.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// What is asked for.
    pub function: Function,
    /// Place of the column among those of the scan; none: the rows themselves are counted.
    pub column: Option<usize>,
}

/// What a term has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Values (count) that were not NULL.
    pub values: u64,
    /// A value as a whole number: a decimal without its point, days, microseconds. Nothing where there was none.
    pub number: i128,
    /// The same of a sum of doubles.
    pub double: f64,
}

/// Adds up what it is given, batch by batch.
pub struct Sums {
    sums: Vec<Sum>,
    /// For the rows of this batch.
    room: Room,
}

/// One term under way.
struct Sum {
    function: Function,
    column: Option<Column>,
    total: Total,
    /// Doubles of this batch: they are added by the kernel that would add an Arrow column, in the same order.
    doubles: Option<Float64Builder>,
}

/// A column of a scan.
pub(super) struct Column {
    /// Among those of the scan.
    place: usize,
    field: Field,
    pub(super) ty: ColumnType,
    nullable: bool,
}

impl Column {
    pub(super) fn of(place: usize, spec: &ScanSpec) -> Column {
        let index = spec.index().filter(|_| spec.as_table);
        let field = spec.output[place];
        let ty = field_type(&spec.table, index, field);
        Column { place, field, ty, nullable: spec.schema.field(place).is_nullable() }
    }

    /// What it is in a row; `None`: NULL. Errors: `Corrupt`, if it is declared NOT NULL.
    #[inline(always)]
    pub(super) fn find<'v>(&self, spec: &ScanSpec, view: &'v View<'_>) -> Result<Option<Found<'v>>> {
        match view.find(self.field)? {
            Found::Value(ValueRef::Null) if self.nullable => Ok(None),
            Found::Value(ValueRef::Null) => Err(no_value_in(spec.schema.field(self.place))),
            found => Ok(Some(found)),
        }
    }
}

impl Sums {
    /// Nothing yet of the rows of `spec`.
    pub fn new(terms: impl Iterator<Item = Term>, spec: &ScanSpec) -> Sums {
        let sum = |term: Term| Sum {
            function: term.function,
            column: term.column.map(|place| Column::of(place, spec)),
            total: Total::default(),
            doubles: (term.function == Function::SumOfDoubles).then(|| Float64Builder::with_capacity(0)),
        };
        Sums { sums: terms.map(sum).collect(), room: Room::default() }
    }

    /// The same of the rows of one group: DataFusion adds the doubles of groups one by one.
    pub fn of_group(terms: impl Iterator<Item = Term>, spec: &ScanSpec) -> Sums {
        let mut sums = Sums::new(terms, spec);
        sums.sums.iter_mut().for_each(|sum| sum.doubles = None);
        sums
    }

    /// Begins a batch of `left` rows at the most.
    pub(super) fn begin(&mut self, left: u64) {
        // To count rows takes no room.
        let most = if self.looks() { BATCH_ROWS } else { usize::MAX };
        self.room = Room { rows: 0, rows_max: usize::try_from(left).unwrap_or(usize::MAX).min(most) };
    }

    /// Adds what belongs to a whole batch.
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

    /// Adds what others have come to, of rows that follow. Errors: `Invalid`, if a sum has more than 38 digits.
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

    /// What each term has come to.
    pub fn totals(&self) -> impl Iterator<Item = Total> {
        self.sums.iter().map(|sum| sum.total)
    }
}

impl Total {
    /// Takes in one more number, before it is counted. Errors: `Invalid`, if a sum has more than 38 digits.
    #[inline]
    pub(super) fn add(&mut self, function: Function, number: i128) -> Result<()> {
        match function {
            Function::Count | Function::SumOfDoubles => {}
            Function::Sum => self.number = self.number.checked_add(number).ok_or_else(too_long)?,
            Function::Min if self.values > 0 => self.number = self.number.min(number),
            Function::Max if self.values > 0 => self.number = self.number.max(number),
            Function::Min | Function::Max => self.number = number,
        }
        Ok(())
    }
}

impl Sum {
    #[inline]
    fn append(&mut self, spec: &ScanSpec, view: &View<'_>) -> Result<()> {
        let Some(column) = &self.column else { return Ok(()) };
        let Some(found) = column.find(spec, view)? else {
            self.doubles.iter_mut().for_each(Float64Builder::append_null);
            return Ok(());
        };
        match (self.function, &mut self.doubles) {
            (Function::Count, _) => {}
            (Function::SumOfDoubles, Some(doubles)) => doubles.append_value(double(found, column.ty)?),
            (Function::SumOfDoubles, None) => self.total.double += double(found, column.ty)?,
            _ => self.total.add(self.function, number(found, column.ty)?)?,
        }
        self.total.values += 1;
        Ok(())
    }
}

#[inline(always)]
pub(super) fn number(found: Found<'_>, ty: ColumnType) -> Result<i128> {
    match found {
        Found::Packed(id, bytes) => row::unpack_number(id, ty, bytes),
        Found::Value(value) => value.number().ok_or_else(|| no_number(value)),
    }
}

pub(super) fn double(found: Found<'_>, ty: ColumnType) -> Result<f64> {
    let value = match found {
        Found::Packed(id, bytes) => row::unpack(id, ty, bytes)?,
        Found::Value(value) => value,
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
        .hint("cast to a wider type")
        .state(sqlstate::OUT_OF_RANGE)
}

#[cold]
fn no_number(value: ValueRef<'_>) -> Error {
    Error::internal(format!("{value:?} is added up"))
}

impl Sink for Sums {
    #[inline]
    fn append(&mut self, spec: &ScanSpec, view: &View<'_>) -> Result<()> {
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
