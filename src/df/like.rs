//! LIKE and SIMILAR TO by one set of rules, wherever they stand.
//!
//! A scan matches patterns with [`LikePattern`]; DataFusion has other rules for case, knows no escape character but
//! `\`, and takes SIMILAR TO for a search by regular expression. So [`own_patterns`] makes a call of our own of the
//! first, which [`called`] reads back for the scan, and an anchored regular expression of the second's pattern.

use std::sync::Arc;

use arrow::array::{AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Like, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::errors::to_df;
use super::functions::{Room, row_function};
use crate::error::{Error, Result};
use crate::plan::LikePattern;
use crate::value::{ColumnType, ValueRef};

/// Puts our own matching in the place of DataFusion's; it belongs behind type coercion.
pub fn own_patterns(expr: Expr, _: &DFSchema) -> DfResult<Transformed<Expr>> {
    Ok(match expr {
        Expr::Like(Like { negated, expr, pattern, escape_char, case_insensitive }) => {
            let function = Matches {
                escape: escape_char.unwrap_or('\\'),
                case_insensitive,
                signature: Signature::any(2, Volatility::Immutable),
            };
            let matches = ScalarUDF::new_from_impl(function).call(vec![*expr, *pattern]);
            Transformed::yes(if negated { Expr::Not(Box::new(matches)) } else { matches })
        }
        Expr::SimilarTo(mut similar) if !is_regex(&similar.pattern) => {
            let escape = similar.escape_char.take().unwrap_or('\\');
            let function = row_function(SIMILAR_PATTERN, similar_pattern, ColumnType::Varchar);
            similar.pattern = Box::new(function.call(vec![*similar.pattern, lit(escape.to_string())]));
            Transformed::yes(Expr::SimilarTo(similar))
        }
        expr => Transformed::no(expr),
    })
}

/// The parts of a call that stands for a LIKE: how it matches, the text, and the pattern.
pub fn called(call: &ScalarFunction) -> Option<(&Matches, &Expr, &Expr)> {
    match (call.func.inner().downcast_ref(), &call.args[..]) {
        (Some(matches), [text, pattern]) => Some((matches, text, pattern)),
        _ => None,
    }
}

/// `text LIKE pattern` as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Matches {
    escape: char,
    /// It is ILIKE.
    pub case_insensitive: bool,
    signature: Signature,
}

impl Matches {
    /// A pattern as this call reads it. Errors: it ends with its escape character.
    pub fn pattern(&self, text: &str) -> Result<LikePattern> {
        LikePattern::new(text, Some(self.escape))
    }

    fn sql(&self, args: &[String]) -> String {
        let escape = if self.escape == '\\' { String::new() } else { format!(" ESCAPE '{}'", self.escape) };
        args.join(&format!(" {} ", self.name().to_uppercase())) + &escape
    }
}

impl ScalarUDFImpl for Matches {
    fn name(&self) -> &str {
        if self.case_insensitive { "ilike" } else { "like" }
    }

    fn schema_name(&self, args: &[Expr]) -> DfResult<String> {
        Ok(self.sql(&args.iter().map(|arg| arg.schema_name().to_string()).collect::<Vec<_>>()))
    }

    fn display_name(&self, args: &[Expr]) -> DfResult<String> {
        Ok(self.sql(&args.iter().map(Expr::to_string).collect::<Vec<_>>()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> DfResult<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DfResult<ColumnarValue> {
        let texts = |arg: &ColumnarValue| arg.cast_to(&DataType::Utf8, None)?.to_array(args.number_rows);
        let (of, by) = (&args.args[0], &args.args[1]);
        let of = texts(of)?;
        let of = of.as_string::<i32>().iter();
        let matches: BooleanArray = match by.cast_to(&DataType::Utf8, None)? {
            ColumnarValue::Scalar(ScalarValue::Utf8(Some(pattern))) => {
                let pattern = self.pattern(&pattern).map_err(to_df)?;
                of.map(|text| text.map(|text| pattern.matches(text, self.case_insensitive))).collect()
            }
            by => {
                let by = texts(&by)?;
                let pairs = of.zip(by.as_string::<i32>());
                let each = pairs.map(|pair| match pair {
                    (Some(text), Some(pattern)) => {
                        Ok(Some(self.pattern(pattern)?.matches(text, self.case_insensitive)))
                    }
                    _ => Ok(None),
                });
                each.collect::<Result<_>>().map_err(to_df)?
            }
        };
        Ok(ColumnarValue::Array(Arc::new(matches)))
    }
}

const SIMILAR_PATTERN: &str = "similar_pattern";

/// The pattern of a SIMILAR TO is translated already.
fn is_regex(pattern: &Expr) -> bool {
    matches!(pattern, Expr::ScalarFunction(call) if call.name() == SIMILAR_PATTERN)
}

/// `similar_pattern(pattern, escape)`: the regular expression that finds what is SIMILAR TO the pattern.
fn similar_pattern<'a>(args: &[ValueRef<'a>], room: &'a mut Room) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null, _] => Ok(ValueRef::Null),
        [ValueRef::Text(pattern), ValueRef::Text(escape)] => {
            room.text = regex_of(pattern, escape)?;
            Ok(ValueRef::Text(&room.text))
        }
        _ => Err(Error::invalid("SIMILAR TO takes a text")),
    }
}

/// `%` and `_` as in LIKE; `|`, `*`, `+`, `?`, `{n}`, `()` and `[]` as in regular expressions; the rest is itself.
fn regex_of(pattern: &str, escape: &str) -> Result<String> {
    let mut regex = String::from("^(?s:");
    let mut in_brackets = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if escape.starts_with(c) {
            let plain = chars.next().ok_or_else(|| crate::plan::dangling_escape(pattern))?;
            push_plain(&mut regex, plain);
            continue;
        }
        match c {
            '[' | ']' => {
                in_brackets = c == '[';
                regex.push(c);
            }
            '^' | '-' if in_brackets => regex.push(c),
            c if in_brackets => push_plain(&mut regex, c),
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => regex.push(c),
            c => push_plain(&mut regex, c),
        }
    }
    regex.push_str(")$");
    Ok(regex)
}

/// A backslash before a letter or digit would mean something.
fn push_plain(regex: &mut String, c: char) {
    if c.is_ascii_punctuation() {
        regex.push('\\');
    }
    regex.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_patterns_as_regular_expressions() {
        let cases = [
            ("a%b_", "^(?s:a.*b.)$"),
            ("(x|y)+", "^(?s:(?:x|y)+)$"),
            ("1.5", r"^(?s:1\.5)$"),
            (r"50\%", r"^(?s:50\%)$"),
            ("[^a-c.%]{2}", r"^(?s:[^a-c\.\%]{2})$"),
        ];
        for (pattern, regex) in cases {
            assert_eq!(regex_of(pattern, "\\").unwrap(), regex);
        }
        assert_eq!(regex_of("a!_", "!").unwrap(), r"^(?s:a\_)$");
        assert!(regex_of("a!", "!").is_err());
    }
}
