//! Text beside values of other types, parsed as our columns parse it.
//!
//! DataFusion casts text by Arrow's rules, which refuse the timestamp `'2023-11-14 22:14'`, and casts a text column to
//! a number for `name = 5`, which fails depending on the data. [`text_operands`] settles comparisons before type
//! coercion: a text literal becomes a value of its peer's type, a number literal beside a text becomes a text.
//! [`text_casts`] replaces the remaining casts by ours, and [`byte_casts`] those between text and bytes that the query
//! itself has.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::doubles::peers;
use crate::df::errors::to_df;
use crate::df::expr::{parsed_comparison, scalar_of};
use crate::df::rewrite::settled_type;
use crate::error::{Error, Result, sqlstate};
use crate::row::{ColumnBuilder, any_value_at, column_type_of, field};
use crate::sql::parameter_place;
use crate::value::{ColumnType, Value};
use arrow::array::Array;
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, cast,
};
use sqlparser::ast::BinaryOperator;

/// Gives the literals of comparisons the types of their peers. Runs before type coercion.
pub fn text_operands(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let compares = match &expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => op.supports_propagation(),
        expr => matches!(expr, Expr::Between(_) | Expr::InList(_)),
    };
    let changed =
        compares && settle(peers(&mut expr).into_iter().flatten().collect(), schema).map_err(to_df)?;
    Ok(if changed { Transformed::yes(expr) } else { Transformed::no(expr) })
}

/// [`text_operands`] for comparisons with a BOOLEAN: inside NOT, DataFusion refuses them before any rule runs.
#[derive(Debug)]
pub struct TruthOperands;

impl ExprPlanner for TruthOperands {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> DfResult<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { left, op, right } = &mut expr;
        let is_truth = |side: &Expr| settled_type(side, schema) == Some(DataType::Boolean);
        if parsed_comparison(op).is_some() && (is_truth(left) || is_truth(right)) {
            settle(vec![left, right], schema).map_err(to_df)?;
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// Gives parameters a type where DataFusion would give them that of the other side, or none: beside `||` they are texts,
/// unless JSON, bytes or a list are on either side; beside times and intervals, what their values are.
#[derive(Debug)]
pub struct ParameterOperands {
    /// The type of each parameter's value.
    types: Vec<DataType>,
}

impl ParameterOperands {
    /// For parameters with these values.
    pub fn new(params: &[Value]) -> ParameterOperands {
        let ty = |value| scalar_of(value).map_or(DataType::Null, |scalar| scalar.data_type());
        ParameterOperands { types: params.iter().map(ty).collect() }
    }

    /// `joined_to`: what the side is joined to.
    fn join(&self, side: &mut Expr, joined_to: Option<FieldRef>) {
        let is_kept = joined_to.is_some_and(|field| match column_type_of(&field) {
            Some(ColumnType::Json | ColumnType::Varbinary) => true,
            Some(_) => false,
            None => !field.data_type().is_null(),
        });
        if !is_kept {
            let are_bytes = self.type_of(side) == Some(&DataType::Binary);
            give(side, if are_bytes { DataType::Binary } else { DataType::Utf8 });
        }
    }

    /// `beside`: what the side is added to, multiplied by and so on.
    fn compute(&self, side: &mut Expr, beside: Option<FieldRef>) {
        let is_time =
            |ty: &DataType| matches!(ty, DataType::Interval(_) | DataType::Date32 | DataType::Timestamp(..));
        if beside.is_some_and(|field| is_time(field.data_type()))
            && let Some(ty) = self.type_of(side).filter(|ty| ty.is_numeric() || is_time(ty))
        {
            give(side, ty.clone());
        }
    }

    fn type_of(&self, side: &Expr) -> Option<&DataType> {
        let Expr::Placeholder(param) = side else { return None };
        self.types.get(parameter_place(&param.id)?)
    }
}

/// Casts a parameter that has no type yet.
fn give(side: &mut Expr, ty: DataType) {
    let Expr::Placeholder(param) = side else { return };
    if param.field.as_ref().is_none_or(|field| field.data_type().is_null()) {
        param.field = Some(Arc::new(Field::new(&param.id, ty.clone(), true)));
        *side = cast(std::mem::take(side), ty);
    }
}

impl ExprPlanner for ParameterOperands {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> DfResult<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { left, op, right } = &mut expr;
        let give: fn(&Self, &mut Expr, Option<FieldRef>) = match op {
            BinaryOperator::StringConcat => ParameterOperands::join,
            BinaryOperator::Plus
            | BinaryOperator::Minus
            | BinaryOperator::Multiply
            | BinaryOperator::Divide => ParameterOperands::compute,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let beside = |side: &Expr| side.to_field(schema).ok().map(|(_, field)| field);
        let (of_left, of_right) = (beside(left), beside(right));
        give(self, left, of_right);
        give(self, right, of_left);
        Ok(PlannerResult::Original(expr))
    }
}

/// Casts the texts among the branches of a CASE, and among the arguments of `coalesce` and the like, to the type of the
/// times beside them: DataFusion takes nanoseconds, which end in the year 2262. Runs before all rules that look at
/// types.
pub fn texts_beside_times(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let chooses = matches!(expr, Expr::Case(_) | Expr::ScalarFunction(_));
    let groups = if chooses { peers(&mut expr) } else { Vec::new() };
    let mut changed = false;
    for peers in groups {
        changed |= texts_as_times(peers, schema);
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// Casts the texts among `peers` to the type of the times; true if there are both.
pub fn texts_as_times(peers: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<DataType> =
        peers.iter().map(|peer| settled_type(peer, schema).unwrap_or(DataType::Null)).collect();
    let Some(time) = time_beside_texts(&types) else { return false };
    for (peer, _) in peers.into_iter().zip(&types).filter(|(_, ty)| ty.is_string()) {
        *peer = cast(std::mem::take(peer), time.clone());
    }
    true
}

/// The type for the texts among values of these types; `None` if there are no texts or no times.
pub fn time_beside_texts(types: &[DataType]) -> Option<DataType> {
    types.iter().find(|ty| ty.is_string())?;
    let is_zoned = |ty: &&DataType| matches!(ty, DataType::Timestamp(_, Some(_)));
    let is_timestamp = |ty: &&DataType| matches!(ty, DataType::Timestamp(..));
    let timestamp = types.iter().find(is_zoned).or_else(|| types.iter().find(is_timestamp));
    match timestamp {
        Some(DataType::Timestamp(_, zone)) => Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone())),
        _ => types.iter().find(|ty| **ty == DataType::Date32).cloned(),
    }
}

/// Reads the text literals among the branches of an expression as values of the type that the others take: in
/// `coalesce(n, '0')`, a number. All are texts if one of them is no such value, as in `coalesce(n, '-')`, or if a branch
/// is a text that is no literal.
pub fn texts_beside_branches(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    // A CASE has what it compares in front of its branches.
    let Some(branches) = peers(&mut expr).pop() else { return Ok(Transformed::no(expr)) };
    let operands: Vec<Operand> = branches.iter().map(|branch| operand(branch, schema)).collect();
    let is_typed = |operand: &Operand| matches!(operand, Operand::Typed(_));
    let types: Vec<ColumnType> = branches
        .iter()
        .zip(&operands)
        .filter(|(_, operand)| **operand != Operand::Text)
        .filter_map(|(branch, _)| column_type_of(&branch.to_field(schema).ok()?.1))
        .collect();
    let Some(to) = types.iter().copied().max_by_key(|ty| width(*ty)) else {
        return Ok(Transformed::no(expr));
    };
    if !operands.iter().any(is_typed) || types.iter().any(|ty| ty.is_text() || !comparable(*ty, to)) {
        return Ok(Transformed::no(expr));
    }
    let text = |branch: &Expr| match branch {
        Expr::Literal(ScalarValue::Utf8(Some(text)), _) => Some(text.clone()),
        _ => None,
    };
    let values = branches.iter().filter_map(|branch| text(branch));
    let values: Result<Vec<ScalarValue>> =
        values.map(|text| read(&text, to).and_then(|value| scalar_of(&value))).collect();
    let Ok(values) = values else { return Ok(Transformed::no(expr)) };
    let changed = !values.is_empty();
    for (branch, value) in branches.into_iter().filter(|branch| text(branch).is_some()).zip(values) {
        *branch = Expr::Literal(value, None);
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// Of two types of one kind, the greater one can hold the values of the other.
fn width(ty: ColumnType) -> u8 {
    match ty {
        ColumnType::Integer | ColumnType::Timestamp => 1,
        ColumnType::BigInt | ColumnType::TimestampTz => 2,
        ColumnType::Decimal { .. } => 3,
        ColumnType::Real => 4,
        ColumnType::Double => 5,
        _ => 0,
    }
}

/// Makes a UUID or JSON that is cast to text a plain text: in Arrow it is a text already, and DataFusion's cast keeps
/// the metadata of the field. Runs before all rules that look at types.
pub fn plain_texts(mut expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    if let Expr::Cast(Cast { expr: of, field }) | Expr::TryCast(TryCast { expr: of, field }) = &mut expr
        && field.data_type() == &DataType::Utf8
        && field.metadata().is_empty()
        && let Ok((_, source)) = of.to_field(schema)
        && matches!(column_type_of(&source), Some(ColumnType::Uuid | ColumnType::Json))
    {
        *field = Arc::new(crate::row::plain_text_field());
        return Ok(Transformed::yes(expr));
    }
    Ok(Transformed::no(expr))
}

/// Kinds of operands.
#[derive(Clone, Copy, PartialEq)]
enum Operand {
    /// A text or number literal.
    Text,
    Number,
    /// Anything else with an SQL type.
    Typed(ColumnType),
    /// NULL, a parameter without a type yet, a type of DataFusion only.
    Other,
}

fn operand(expr: &Expr, schema: &DFSchema) -> Operand {
    match expr {
        Expr::Literal(scalar, _) if scalar.is_null() => Operand::Other,
        Expr::Literal(ScalarValue::Utf8(_), _) => Operand::Text,
        Expr::Literal(ScalarValue::Int64(_) | ScalarValue::UInt64(_) | ScalarValue::Decimal128(..), _) => {
            Operand::Number
        }
        Expr::Placeholder(_) => Operand::Other,
        expr if settled_type(expr, schema).is_none() => Operand::Other,
        expr => match expr.to_field(schema) {
            Ok((_, field)) if field.data_type() != &DataType::Null => {
                column_type_of(&field).map_or(Operand::Other, Operand::Typed)
            }
            _ => Operand::Other,
        },
    }
}

/// Casts the literals among `peers` to the type of the others; true if one changed.
///
/// Errors: a text that is no value of that type; types that cannot be compared.
fn settle(peers: Vec<&mut Expr>, schema: &DFSchema) -> Result<bool> {
    let operands: Vec<Operand> = peers.iter().map(|peer| operand(peer, schema)).collect();
    let typed = operands.iter().filter_map(|o| match o {
        Operand::Typed(ty) => Some(*ty),
        _ => None,
    });
    let types: Vec<ColumnType> = typed.collect();
    let Some(&to) = types.first() else { return Ok(false) };
    if let Some(other) = types.iter().find(|ty| !comparable(to, **ty)) {
        return Err(incomparable(&to.to_string(), &other.to_string())
            .hint(format!("CAST one of them, as in CAST(x AS {})", if to.is_text() { other } else { &to })));
    }
    // BETWEEN and IN compare the first operand with each of the others.
    let meets_integers = |at: usize| {
        let met = if at == 0 { &operands[1..] } else { &operands[..1] };
        met.iter().all(|operand| matches!(operand, Operand::Typed(ty) if ty.is_integer()))
    };
    let has_json_text = peers.iter().any(|peer| is_json_text(peer));
    let bucket_digits = peers.iter().find_map(|peer| bucket_digits(peer));
    let mut changed = false;
    for (at, peer) in peers.into_iter().enumerate() {
        let value = match (operands[at], &*peer) {
            (Operand::Number, Expr::Literal(number, _)) if has_json_text => {
                let number = crate::df::expr::value_of(number)?;
                return Err(incomparable("a text out of JSON", &format!("the number {number}"))
                    .hint(format!("CAST it, as in (doc ->> 'n')::int, or write '{number}'")));
            }
            (Operand::Number, Expr::Literal(number, _)) if bucket_digits.is_some() => {
                let number = crate::df::expr::value_of(number)?;
                let (number, width) = (number.to_string(), bucket_digits.unwrap_or_default());
                return Err(incomparable("the text of a bucket", &format!("the number {number}")).hint(
                    format!("write '{number:0>width$}': buckets have as many digits as the last one"),
                ));
            }
            (Operand::Text, Expr::Literal(ScalarValue::Utf8(Some(text)), _)) if !to.is_text() => {
                read(text, to)?
            }
            (Operand::Number, Expr::Literal(number, _)) if to == ColumnType::Varchar => {
                Value::Text(crate::df::expr::value_of(number)?.to_string())
            }
            (Operand::Number, Expr::Literal(ScalarValue::Decimal128(Some(d), _, scale), _))
                if meets_integers(at) && *scale > 1 =>
            {
                between_integers(*d, scale.unsigned_abs())
            }
            (Operand::Number, Expr::Literal(number, _)) if !is_number(to) => {
                match crate::df::expr::value_of(number)? {
                    Value::Int(i @ (0 | 1)) if to == ColumnType::Boolean => Value::Boolean(i == 1),
                    number => {
                        let error = incomparable(&to.to_string(), &format!("the number {number}"));
                        return Err(match to.is_time() {
                            true => {
                                error.hint(format!("to_timestamp({number}) is so many seconds after 1970"))
                            }
                            false => error,
                        });
                    }
                }
            }
            _ => continue,
        };
        *peer = Expr::Literal(scalar_of(&value)?, None);
        changed = true;
    }
    Ok(changed)
}

/// A part of a JSON value as text: nobody expects `'5' > '10'` of `doc ->> 'n' > 10`.
fn is_json_text(expr: &Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    matches!(call.name(), "json_get_text" | "json_extract_path_text")
}

/// Digits of what `md5_bucket(.., n)` gives: nobody expects `'03' = 3` to be false.
fn bucket_digits(expr: &Expr) -> Option<usize> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let ("md5_bucket", Some(Expr::Literal(count, _))) = (call.name(), call.args.last()) else { return None };
    match crate::df::expr::value_of(count).ok()? {
        Value::Int(count) => Some(count.saturating_sub(1).max(1).to_string().len()),
        _ => None,
    }
}

/// A number with at most one fractional digit that compares with all integers as `d * 10^-scale` does: with more
/// digits, DataFusion would cast integers to decimals that cannot hold them.
fn between_integers(d: i128, scale: u8) -> Value {
    let power = 10i128.pow(scale.min(38).into());
    let floor = d.div_euclid(power);
    match (d.rem_euclid(power), floor.checked_mul(10)) {
        (0, _) => i64::try_from(floor).map_or(Value::Decimal(floor, 0), Value::Int),
        (_, Some(tenths)) => Value::Decimal(tenths + 5, 1),
        (_, None) => Value::Decimal(d, scale),
    }
}

fn is_number(ty: ColumnType) -> bool {
    ty.is_integer() || matches!(ty, ColumnType::Real | ColumnType::Double | ColumnType::Decimal { .. })
}

/// The types have a common order. UUIDs and bytes are compared with text unchanged.
fn comparable(a: ColumnType, b: ColumnType) -> bool {
    let kind = |ty: ColumnType| match ty {
        ColumnType::Boolean => 0,
        ty if ty.is_time() => 1,
        ty if is_number(ty) => 2,
        _ => 3,
    };
    kind(a) == kind(b)
}

fn incomparable(a: &str, b: &str) -> Error {
    Error::invalid(format!("{a} is compared with {b}"))
        .why("they have no common order")
        .state(sqlstate::DATATYPE_MISMATCH)
}

/// A text as a value of `ty` for comparisons, without rounding.
pub fn read(text: &str, ty: ColumnType) -> Result<Value> {
    Ok(match ty {
        ColumnType::Decimal { .. } => {
            Value::parse(text, ColumnType::Decimal { precision: 38, scale: scale_of(text) })?
        }
        // Binary keys are compared with the bytes of a text, unless it is in hex.
        ColumnType::Varbinary => match Value::parse(text, ty) {
            Ok(bytes) => bytes,
            Err(_) => Value::Bytes(text.as_bytes().to_vec()),
        },
        ty => Value::parse(text, ty)?,
    })
}

/// Fractional digits (count, at most 38) of a number as it is written: two in `1.25`, three in `12.5e-2`.
fn scale_of(text: &str) -> u8 {
    let (number, exponent) = text.trim().split_once(['e', 'E']).unwrap_or((text.trim(), "0"));
    let fraction = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let shift: i64 = exponent.parse().unwrap_or(0);
    (fraction as i64).saturating_sub(shift).clamp(0, 38) as u8
}

/// Replaces casts from text, and from times and intervals to text. Runs after type coercion.
pub fn text_casts(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(cast) = &expr else { return Ok(Transformed::no(expr)) };
    let to = &cast.field;
    let from = cast.expr.get_type(schema)?;
    match column_type_of(to) {
        Some(ty)
            if ty.is_text()
                && matches!(
                    from,
                    DataType::Timestamp(..) | DataType::Interval(_) | DataType::Duration(_)
                ) =>
        {
            Ok(Transformed::yes(our_cast(&cast.expr, ty, to.data_type())))
        }
        Some(ty) if !ty.is_text() && ty != ColumnType::Varbinary && from == DataType::Utf8 => {
            if let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = &*cast.expr {
                let value = Value::parse(text, ty).map_err(|e| to_df(e.into()))?;
                let scalar = scalar_of(&value).map_err(to_df)?.cast_to(to.data_type())?;
                return Ok(Transformed::yes(Expr::Literal(scalar, None)));
            }
            Ok(Transformed::yes(our_cast(&cast.expr, ty, to.data_type())))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// Replaces casts between text and bytes. Runs before type coercion, which adds its own for comparisons: those compare
/// the bytes of a text.
pub fn byte_casts(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let Expr::Cast(cast) = &expr else { return Ok(Transformed::no(expr)) };
    match (column_type_of(&cast.field), cast.expr.get_type(schema)) {
        (Some(ty @ ColumnType::Varbinary), Ok(DataType::Utf8))
        | (Some(ty @ ColumnType::Varchar), Ok(DataType::Binary)) => {
            Ok(Transformed::yes(our_cast(&cast.expr, ty, cast.field.data_type())))
        }
        _ => Ok(Transformed::no(expr)),
    }
}

/// The cast functions for types that are texts in Arrow, under the names used in `df::plain_calls`.
pub fn casts() -> impl Iterator<Item = ScalarUDF> {
    let all = [
        ("as_uuid", ColumnType::Uuid, false),
        ("try_as_uuid", ColumnType::Uuid, true),
        ("as_json", ColumnType::Json, false),
        ("try_as_json", ColumnType::Json, true),
    ];
    all.into_iter().map(|(name, ty, tries)| {
        ScalarUDF::new_from_impl(OurCast { tries, ..OurCast::new(name, ty, &DataType::Utf8) })
    })
}

/// A cast of an expression by the rules of INSERT, to a type and its form in Arrow.
pub fn our_cast(expr: &Expr, ty: ColumnType, to: &DataType) -> Expr {
    let function = ScalarUDF::new_from_impl(OurCast::new("cast", ty, to));
    Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(function), vec![expr.clone()]))
}

/// A cast by the rules of INSERT.
#[derive(Debug)]
struct OurCast {
    name: &'static str,
    ty: ColumnType,
    to: DataType,
    /// Gives NULL where a cast fails.
    tries: bool,
    signature: Signature,
}

impl OurCast {
    fn new(name: &'static str, ty: ColumnType, to: &DataType) -> OurCast {
        let signature = Signature::any(1, Volatility::Immutable);
        OurCast { name, ty, to: to.clone(), tries: false, signature }
    }

    fn cast(&self, value: Value) -> Result<Value> {
        match (value, self.ty) {
            (Value::Text(text), ColumnType::Varbinary) => read(&text, self.ty),
            (Value::Text(text), ty) => Ok(Value::parse(&text, ty)?),
            (value, ty) => Ok(value.cast(ty)?),
        }
    }
}

impl PartialEq for OurCast {
    fn eq(&self, other: &Self) -> bool {
        (self.ty, &self.to, self.tries) == (other.ty, &other.to, other.tries)
    }
}

impl Eq for OurCast {}

impl Hash for OurCast {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to.hash(state);
    }
}

impl ScalarUDFImpl for OurCast {
    fn name(&self) -> &str {
        self.name
    }

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(format!("CAST({} AS {})", names.join(", "), self.ty))
    }

    fn display_name(&self, args: &[Expr]) -> DfResult<String> {
        self.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(self.to.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> DfResult<FieldRef> {
        let nullable = self.tries || args.arg_fields[0].is_nullable();
        Ok(Arc::new(match self.ty {
            ColumnType::Uuid | ColumnType::Json => field(self.name(), self.ty, nullable),
            _ => Field::new(self.name(), self.to.clone(), nullable),
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let values = &arrays[0];
        let mut out = ColumnBuilder::new(self.ty, values.len());
        for at in 0..values.len() {
            let value = match values.is_null(at) {
                true => Value::Null,
                false => match self.cast(any_value_at(values, at).map_err(to_df)?) {
                    Err(_) if self.tries => Value::Null,
                    value => value.map_err(to_df)?,
                },
            };
            out.append(value.as_ref()).map_err(to_df)?;
        }
        let array = out.finish().map_err(to_df)?;
        Ok(ColumnarValue::Array(arrow::compute::cast(&array, &self.to)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_lies_between_two_integers() {
        assert_eq!(between_integers(999, 3), Value::Decimal(5, 1));
        assert_eq!(between_integers(-2_001, 3), Value::Decimal(-25, 1));
        assert_eq!(between_integers(2_000, 3), Value::Int(2));
        assert_eq!(between_integers(i128::MAX, 38), Value::Decimal(15, 1));
    }

    #[test]
    fn a_text_is_compared_as_exactly_as_it_is_written() {
        let price = ColumnType::Decimal { precision: 8, scale: 2 };
        assert_eq!(read("1.005", price).unwrap(), Value::Decimal(1005, 3));
        assert_eq!(read(" 15e-2", price).unwrap(), Value::Decimal(15, 2));
        assert_eq!(read("-1.5E-10", price).unwrap(), Value::Decimal(-15, 11));
        assert_eq!(read("1.25e1", price).unwrap(), Value::Decimal(125, 1));
        assert_eq!(read("5e3", price).unwrap(), Value::Decimal(5000, 0));
        assert_eq!(read("0xff", ColumnType::Varbinary).unwrap(), Value::Bytes(vec![255]));
        assert_eq!(read("ff", ColumnType::Varbinary).unwrap(), Value::Bytes(b"ff".to_vec()));
        assert!(read("x", ColumnType::BigInt).is_err());
    }
}
