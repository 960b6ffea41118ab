//! Aggregates that a scan computes as integers: which functions qualify, their results, and arithmetic on them.
//!
//! Counts and exact sums need no DataFusion accumulators, and expressions over them, `count(*) + sum(amount)`, no Arrow
//! arrays. Whatever may fail or round is left to both, so results and errors are theirs.

use std::sync::Arc;

use arrow::array::{ArrayRef, Decimal128Array, Decimal256Array, Float64Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Schema, TimeUnit, i256};
use datafusion::common::ScalarValue;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::df::errors::to_df;
use crate::df::functions::exact_sum::{narrow, of_38_digits};
use crate::error::Error;
use crate::exec::sums::{AggregateKind, AggregateTerm, Total};

/// An aggregate function that a scan computes itself.
#[derive(Clone, Debug)]
pub struct ScanAggregate {
    /// What the scan adds up.
    pub term: AggregateTerm,
    /// Type of the result.
    ty: DataType,
    /// For `avg`: the function, which divides a sum of this type by the number of values.
    mean: Option<(Arc<AggregateFunctionExpr>, DataType)>,
}

impl ScanAggregate {
    /// A function with this result type, other than `avg`.
    pub fn new(term: AggregateTerm, ty: DataType) -> ScanAggregate {
        ScanAggregate { term, ty, mean: None }
    }

    /// The functions of an aggregate, over the columns of its input; `None` if a scan cannot compute one of them.
    pub fn all_of(aggregate: &AggregateExec) -> Option<Vec<ScanAggregate>> {
        let input = aggregate.input_schema();
        let is_plain = aggregate.filter_expr().iter().all(Option::is_none);
        let known = |function| ScanAggregate::of(function, &input).filter(|_| is_plain);
        aggregate.aggr_expr().iter().map(known).collect()
    }

    /// DataFusion's function over rows with these columns; `None` if a scan cannot compute it.
    fn of(function: &Arc<AggregateFunctionExpr>, schema: &Schema) -> Option<ScanAggregate> {
        let (ty, args) = (function.field().data_type().clone(), function.expressions());
        let [arg] = &args[..] else { return None };
        if function.is_distinct() {
            return None;
        }
        let name = function.fun().name();
        if name == "count" && arg.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null())
        {
            return Some(ScanAggregate {
                term: AggregateTerm { function: AggregateKind::Count, column: None },
                ty,
                mean: None,
            });
        }
        let cast = arg.downcast_ref::<CastExpr>();
        let column = cast.map_or(arg, CastExpr::expr).downcast_ref::<Column>()?.index();
        let of = schema.field(column).data_type();
        let taken = cast.map_or(of, CastExpr::cast_type);
        let (sum, mean) = match name {
            "avg" => {
                let sum = function.state_fields().ok()?.get(1)?.data_type().clone();
                (sum.clone(), Some((Arc::clone(function), sum)))
            }
            _ => (ty.clone(), None),
        };
        let function = match name {
            "count" if cast.is_none() => AggregateKind::Count,
            "min" if is_number(of) && *of == ty => AggregateKind::Min,
            "max" if is_number(of) && *of == ty => AggregateKind::Max,
            "sum" | "avg" => match (of, taken, &sum) {
                (DataType::Decimal128(_, s), t, DataType::Decimal128(_, to)) if t == of && s == to => {
                    AggregateKind::Sum
                }
                (of, DataType::Int64, DataType::Int64) if is_integer(of) => AggregateKind::Sum,
                (of, DataType::Float64, DataType::Float64) if is_integer(of) || of.is_floating() => {
                    AggregateKind::SumOfDoubles
                }
                _ => return None,
            },
            _ => return None,
        };
        Some(ScanAggregate { term: AggregateTerm { function, column: Some(column) }, ty, mean })
    }

    /// The total as an integer in the result type's representation; `None` if it is NULL.
    pub fn number(&self, total: &Total) -> Option<i128> {
        match self.term.function {
            AggregateKind::Count => Some(total.values.into()),
            _ => (total.values > 0).then_some(total.number),
        }
    }

    /// The result. Errors: a sum that does not fit.
    pub fn result(&self, total: &Total) -> DfResult<ScalarValue> {
        let sum = |ty: &DataType| match self.term.function {
            AggregateKind::SumOfDoubles => {
                Ok(ScalarValue::Float64((total.values > 0).then_some(total.double)))
            }
            // The sum inside `avg` need not fit.
            AggregateKind::Sum if self.mean.is_none() => {
                scalar(ty, self.number(total).map(of_38_digits).transpose()?)
            }
            _ => scalar(ty, self.number(total)),
        };
        let Some((mean, ty)) = &self.mean else { return sum(&self.ty) };
        let mut mean = mean.create_accumulator()?;
        let values: ArrayRef = Arc::new(UInt64Array::from(vec![total.values]));
        mean.merge_batch(&[values, sum(ty)?.to_array()?])?;
        mean.evaluate()
    }

    /// The same function after a projection: column i of its input is `columns[i]` of the scan.
    pub fn of_columns(self, columns: &[usize]) -> Option<ScanAggregate> {
        let AggregateTerm { function, column } = self.term;
        let column = match column {
            Some(column) => Some(*columns.get(column)?),
            None => None,
        };
        Some(ScanAggregate { term: AggregateTerm { function, column }, ..self })
    }

    /// Appends the partial states of DataFusion's own function, one row for each of the groups (at least one), as the
    /// next columns of `schema`.
    pub fn states(&self, totals: &[Total], schema: &Schema, columns: &mut Vec<ArrayRef>) -> DfResult<()> {
        if self.mean.is_some() {
            let values = totals.iter().map(|total| (total.values > 0).then_some(total.values));
            columns.push(Arc::new(values.collect::<UInt64Array>()));
        }
        let numbers = totals.iter().map(|total| self.number(total));
        let state: ArrayRef = match schema.field(columns.len()).data_type() {
            DataType::Int64 => {
                let numbers = numbers.map(|number| number.map(narrow).transpose());
                Arc::new(numbers.collect::<std::result::Result<Int64Array, _>>()?)
            }
            DataType::Decimal128(precision, scale) => {
                Arc::new(numbers.collect::<Decimal128Array>().with_precision_and_scale(*precision, *scale)?)
            }
            DataType::Decimal256(precision, scale) => {
                let wide = numbers.map(|number| number.map(i256::from_i128));
                Arc::new(wide.collect::<Decimal256Array>().with_precision_and_scale(*precision, *scale)?)
            }
            DataType::Float64 => {
                let doubles = totals.iter().map(|total| (total.values > 0).then_some(total.double));
                Arc::new(doubles.collect::<Float64Array>())
            }
            ty => {
                let scalars = numbers.map(|number| scalar(ty, number));
                ScalarValue::iter_to_array(scalars.collect::<DfResult<Vec<_>>>()?)?
            }
        };
        columns.push(state);
        Ok(())
    }

    fn is_exact(&self) -> bool {
        self.mean.is_none() && self.term.function != AggregateKind::SumOfDoubles
    }
}

fn is_integer(ty: &DataType) -> bool {
    matches!(ty, DataType::Int16 | DataType::Int32 | DataType::Int64)
}

/// Values of the type are stored as integers that sort in the same order.
fn is_number(ty: &DataType) -> bool {
    is_integer(ty)
        || matches!(
            ty,
            DataType::Decimal128(..) | DataType::Date32 | DataType::Timestamp(TimeUnit::Microsecond, _)
        )
}

/// The value of a type that is stored as this integer.
fn scalar(ty: &DataType, number: Option<i128>) -> DfResult<ScalarValue> {
    let number = match ty {
        DataType::Decimal128(precision, scale) => {
            return Ok(ScalarValue::Decimal128(number, *precision, *scale));
        }
        _ => number.map(narrow).transpose()?,
    };
    Ok(match ty {
        DataType::Int16 => ScalarValue::Int16(number.map(|n| n as i16)),
        DataType::Int32 => ScalarValue::Int32(number.map(|n| n as i32)),
        DataType::Int64 => ScalarValue::Int64(number),
        DataType::Date32 => ScalarValue::Date32(number.map(|n| n as i32)),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            ScalarValue::TimestampMicrosecond(number, zone.clone())
        }
        ty => return Err(to_df(Error::internal(format!("a total of type {ty}")))),
    })
}

/// Output columns computed from exact totals by sums, differences and casts, without Arrow arrays.
#[derive(Clone, Debug)]
pub struct TotalColumns(Vec<(Calc, DataType)>);

/// An integer computed from the totals.
#[derive(Clone, Debug)]
enum Calc {
    Of(usize),
    /// Multiplied by a power of ten; out of range unless below another one.
    Scaled(Box<Calc>, i128, Option<i128>),
    Add(Box<Calc>, Box<Calc>),
    Subtract(Box<Calc>, Box<Calc>),
}

impl TotalColumns {
    /// The totals themselves.
    pub fn of(known: &[ScanAggregate]) -> Option<TotalColumns> {
        let columns = known.iter().enumerate().map(|(at, known)| (Calc::Of(at), known.ty.clone()));
        known.iter().all(ScanAggregate::is_exact).then(|| TotalColumns(columns.collect()))
    }

    /// Expressions over these columns; `None` if they need more than integer arithmetic.
    pub fn above(&self, exprs: &[Arc<dyn PhysicalExpr>]) -> Option<TotalColumns> {
        exprs.iter().map(|expr| self.calc(expr)).collect::<Option<_>>().map(TotalColumns)
    }

    fn calc(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<(Calc, DataType)> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.0.get(column.index()).cloned();
        }
        if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            let (of, from) = self.calc(cast.expr())?;
            let DataType::Decimal128(precision, scale) = *cast.cast_type() else { return None };
            let (by, below) = (power(scale)?, power(precision as i8)?);
            let calc = Calc::Scaled(Box::new(of), by, Some(below));
            return is_integer(&from).then(|| (calc, cast.cast_type().clone()));
        }
        let binary = expr.downcast_ref::<BinaryExpr>()?;
        let ((left, of), (right, by)) = (self.calc(binary.left())?, self.calc(binary.right())?);
        let (DataType::Decimal128(p1, s1), DataType::Decimal128(p2, s2)) = (of, by) else { return None };
        let scale = s1.max(s2);
        let scaled = |calc, from| Some(Box::new(Calc::Scaled(Box::new(calc), power(scale - from)?, None)));
        let (left, right) = (scaled(left, s1)?, scaled(right, s2)?);
        let calc = match binary.op() {
            Operator::Plus => Calc::Add(left, right),
            Operator::Minus => Calc::Subtract(left, right),
            _ => return None,
        };
        let digits = (p1 as i8 - s1).max(p2 as i8 - s2) + scale + 1;
        Some((calc, DataType::Decimal128(digits.min(38) as u8, scale)))
    }

    /// Values of the columns; `None` if one is out of range.
    pub fn values(&self, numbers: &[Option<i128>]) -> Option<Vec<ScalarValue>> {
        self.0.iter().map(|(calc, ty)| scalar(ty, calc.of(numbers)?).ok()).collect()
    }
}

impl Calc {
    /// `None`: out of range.
    fn of(&self, numbers: &[Option<i128>]) -> Option<Option<i128>> {
        let both = |a: &Calc, b: &Calc, op: fn(i128, i128) -> Option<i128>| {
            Some(match (a.of(numbers)?, b.of(numbers)?) {
                (Some(a), Some(b)) => Some(op(a, b)?),
                _ => None,
            })
        };
        match self {
            Calc::Of(at) => Some(numbers[*at]),
            Calc::Scaled(of, by, below) => {
                let Some(number) = of.of(numbers)? else { return Some(None) };
                let number = number.checked_mul(*by)?;
                let fits = below.is_none_or(|below| number.unsigned_abs() < below.unsigned_abs());
                fits.then_some(Some(number))
            }
            Calc::Add(a, b) => both(a, b, i128::checked_add),
            Calc::Subtract(a, b) => both(a, b, i128::checked_sub),
        }
    }
}

/// Ten to the power of a scale.
fn power(scale: i8) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(scale).ok()?)
}
