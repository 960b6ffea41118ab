//! Which expressions may fail, for some values of their columns.
//!
//! What is not known to have a value for every row may fail. So a new function is guarded by the AND or OR that it
//! stands in (see [`short_circuit`](super::short_circuit)) until it is listed here.

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{Like, ScalarFunction};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

use crate::df::expressions::like;
use crate::df::expressions::long_decimals::has_room;
use crate::df::rewrite::integer;
use crate::value::unit_around;

/// How likely an expression fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// It has a value for every row.
    None,
    /// A number may not fit, or a function may not be defined for a value.
    Low,
    /// Others usually guard it: a division, or the reading of a text.
    High,
}

/// Functions of a high risk.
const HIGH: [&str; 19] = [
    "as_json",
    "as_uuid",
    "cast",
    "chr",
    "code",
    "divide",
    "factorial",
    "json_array_length",
    "json_contains",
    "json_extract_path",
    "json_extract_path_text",
    "json_get",
    "json_get_text",
    "json_typeof",
    "ln",
    "log",
    "modulo",
    "power",
    "sqrt",
];

/// Functions that have a value for all arguments of their types.
const TOTAL: [&str; 40] = [
    "age",
    "arrow_typeof",
    "ascii",
    "bit_length",
    "btrim",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "contains",
    "ends_with",
    "greatest",
    "initcap",
    "isnan",
    "iszero",
    "least",
    "left",
    "length",
    "lower",
    "ltrim",
    "maybe_null",
    "md5",
    "nanvl",
    "now",
    "nullif",
    "nvl",
    "nvl2",
    "octet_length",
    "of_row",
    "pg_typeof",
    "reverse",
    "right",
    "rtrim",
    "starts_with",
    "strpos",
    "time_part",
    "translate",
    "typeof",
    "upper",
    "uuid",
];

/// Functions that fail for numbers that do not fit, but not for doubles.
const OF_DOUBLES: [&str; 9] =
    ["abs", "add", "ceil", "floor", "multiply", "round", "signum", "subtract", "trunc"];

/// Functions that stand for operators on numbers and intervals.
const OPERATORS: [&str; 6] =
    ["add", "interval_length", "interval_of_days", "interval_times", "multiply", "subtract"];

/// Longest text (characters) that is surely not too long to be padded to or repeated.
const CHARS_MAX: i64 = 1_000;

/// Judges expressions over rows of a schema.
pub struct Risks<'s> {
    pub schema: &'s DFSchema,
}

impl Risks<'_> {
    /// The risk of an expression.
    pub fn of(&self, expr: &Expr) -> Risk {
        self.greatest(expr, |_| false)
    }

    /// The same in the condition of a join. A comparison of a column with a sum or a product counts as none: the join
    /// may seek rows by it, and that a number does not fit is rare.
    pub fn of_join(&self, expr: &Expr) -> Risk {
        self.greatest(expr, |expr| match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
                is_column(left) && self.is_arithmetic(right) || is_column(right) && self.is_arithmetic(left)
            }
            _ => false,
        })
    }

    /// The greatest risk of all nodes of the expression, without those that are `excused` and what is below them.
    fn greatest(&self, expr: &Expr, excused: impl Fn(&Expr) -> bool) -> Risk {
        let mut greatest = Risk::None;
        let walked = expr.apply(|expr| {
            if excused(expr) {
                return Ok(TreeNodeRecursion::Jump);
            }
            greatest = greatest.max(self.of_node(expr));
            Ok(if greatest < Risk::High { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        });
        if walked.is_ok() { greatest } else { Risk::High }
    }

    /// Nothing in the expression can fail but sums, differences and products.
    fn is_arithmetic(&self, expr: &Expr) -> bool {
        let fails = |expr: &Expr| !is_operator(expr) && self.of_node(expr) > Risk::None;
        expr.exists(|expr| Ok(fails(expr))).is_ok_and(|fails| !fails)
    }

    /// The risk for all values of the operands.
    fn of_node(&self, expr: &Expr) -> Risk {
        let is_total = match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => self.is_total_operator(left, *op, right),
            Expr::Negative(of) => matches!(self.type_of(of), Some(DataType::Decimal128(..))),
            Expr::Cast(cast) => {
                self.type_of(&cast.expr).is_some_and(|from| fits(&from, cast.field.data_type()))
            }
            Expr::Like(Like { pattern, .. }) | Expr::SimilarTo(Like { pattern, .. }) => is_literal(pattern),
            Expr::ScalarFunction(call) => self.is_total_call(call),
            _ => true,
        };
        match expr {
            _ if is_total => Risk::None,
            Expr::BinaryExpr(BinaryExpr { op: Operator::Divide | Operator::Modulo, .. }) => Risk::High,
            Expr::ScalarFunction(call) if HIGH.contains(&call.name()) => Risk::High,
            _ => Risk::Low,
        }
    }

    fn is_total_operator(&self, left: &Expr, op: Operator, right: &Expr) -> bool {
        match op {
            Operator::Plus | Operator::Minus | Operator::Multiply => {
                // Decimals that may not fit have functions instead of operators.
                let is_plain = |ty: &DataType| ty.is_floating() || ty.is_decimal();
                let is_time = |ty: &DataType| matches!(ty, DataType::Date32 | DataType::Timestamp(..));
                match (self.type_of(left), self.type_of(right)) {
                    (Some(l), Some(r)) => {
                        is_plain(&l) && is_plain(&r) || op == Operator::Minus && is_time(&l) && is_time(&r)
                    }
                    _ => false,
                }
            }
            Operator::Divide | Operator::Modulo => is_divisor(right),
            Operator::RegexMatch | Operator::RegexIMatch => is_literal(right),
            Operator::RegexNotMatch | Operator::RegexNotIMatch => is_literal(right),
            Operator::And | Operator::Or | Operator::StringConcat => true,
            Operator::BitwiseAnd | Operator::BitwiseOr | Operator::BitwiseXor => true,
            op => compares(op),
        }
    }

    fn is_total_call(&self, call: &ScalarFunction) -> bool {
        if let Some((matches, _, pattern)) = like::called(call) {
            let text = if let Expr::Literal(text, _) = pattern { text.try_as_str() } else { None };
            return text.is_some_and(|text| text.is_none_or(|text| matches.pattern(text).is_ok()));
        }
        let of_double = || call.args.iter().all(|arg| is_literal(arg) || self.is_double(arg));
        match (call.name(), &call.args[..]) {
            (name, _) if TOTAL.contains(&name) => true,
            (name, _) if OF_DOUBLES.contains(&name) && of_double() => true,
            ("divide" | "modulo", [_, divisor]) => is_divisor(divisor),
            ("date_part", [unit, _]) => is_literal(unit),
            ("regexp_like", [_, pattern @ ..]) => pattern.iter().all(is_literal),
            ("date_trunc", [Expr::Literal(unit, _), _]) => {
                let unit = unit.try_as_str().flatten().map(str::to_lowercase);
                unit.is_some_and(|unit| unit_around(&unit, 0).is_some())
            }
            ("substr", [_, start]) => integer(start).is_some_and(|start| start > 0),
            ("substr", [_, start, chars]) => [start, chars].iter().all(|n| is_short(n)),
            ("split_part", [_, _, part]) => integer(part).is_some_and(|part| part > 0),
            ("lpad" | "rpad", [_, width, fill @ ..]) => is_short(width) && fill.iter().all(is_literal),
            ("md5_bucket", [_, .., buckets]) => is_short(buckets) && integer(buckets) != Some(0),
            ("random" | "version" | "current_date" | "current_time", []) => true,
            _ => false,
        }
    }

    fn is_double(&self, expr: &Expr) -> bool {
        self.type_of(expr).is_some_and(|ty| ty.is_floating())
    }

    fn type_of(&self, expr: &Expr) -> Option<DataType> {
        expr.get_type(self.schema).ok()
    }
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_column(&cast.expr),
        expr => matches!(expr, Expr::Column(_)),
    }
}

fn is_literal(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(..))
}

fn compares(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn is_operator(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => {
            matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply)
        }
        Expr::ScalarFunction(call) => OPERATORS.contains(&call.name()),
        _ => false,
    }
}

/// A positive number of characters, not too many.
fn is_short(expr: &Expr) -> bool {
    integer(expr).is_some_and(|n| (0..=CHARS_MAX).contains(&n))
}

/// A literal by which everything can be divided: not 0, and not -1, by which the least integer cannot.
fn is_divisor(expr: &Expr) -> bool {
    let Expr::Literal(value, _) = expr else { return false };
    let ty = value.data_type();
    let is_minus_one = ScalarValue::new_negative_one(&ty).is_ok_and(|minus_one| minus_one == *value);
    ScalarValue::new_zero(&ty).is_ok_and(|zero| zero != *value) && !(ty.is_integer() && is_minus_one)
}

/// A cast between the types has a result for every value.
fn fits(from: &DataType, to: &DataType) -> bool {
    let is_micros = |ty: &DataType| matches!(ty, DataType::Timestamp(TimeUnit::Microsecond, _));
    let is_date = |ty: &DataType| *ty == DataType::Date32;
    match (from, to) {
        (from, to) if from == to => true,
        (DataType::Null, _) => true,
        (from, to) if to.is_string() => !matches!(from, DataType::Binary | DataType::BinaryView),
        (DataType::Boolean, other) | (other, DataType::Boolean) => other.is_integer(),
        (from, to) if is_micros(to) => is_date(from) || is_micros(from),
        (from, to) if is_date(to) => is_micros(from),
        (from, DataType::Float64) => from.is_numeric(),
        (from, to) if from.is_signed_integer() && to.is_unsigned_integer() => false,
        (from, to) => has_room(from, to),
    }
}
