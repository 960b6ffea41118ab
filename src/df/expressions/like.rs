//! LIKE and SIMILAR TO by the same rules in scans and elsewhere.
//!
//! A scan matches patterns with [`LikePattern`]. DataFusion has other rules for case, knows no escape character but
//! `\`, and evaluates SIMILAR TO as a regular expression search. So [`own_patterns`] turns LIKE into a function of our
//! own, which [`called`] reads back for the scan, and translates the pattern of SIMILAR TO into an anchored regular
//! expression.
//!
//! Searches that a LIKE can express become one, because patterns give key ranges: `starts_with(name, 'x')`, `name ~
//! '^x'`, `name SIMILAR TO 'x%'`. DataFusion also turns some of these into LIKEs, but into its own kind and after this
//! rule; and it takes the backslash of `name ~ 'a\\b'` for an escape.
//!
//! Bytes, such as rowkeys with a binary part, are matched byte by byte, but for ILIKE: DataFusion would read them as a
//! text.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Like, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit,
};

use crate::df::errors::to_df;
use crate::df::functions::{FunctionBuffers, row_function};
use crate::error::{Error, Result};
use crate::plan::{LikePattern, PLAIN_ESCAPE};
use crate::value::{ColumnType, ValueRef};

/// Most alternatives (count) of a regular expression that become a LIKE each.
const ALTERNATIVES_MAX: usize = 4;

/// Makes a search in bytes a function that takes bytes. Runs before type coercion, which would read them as a text.
pub fn byte_patterns(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    let is_bytes = |expr: &Expr| matches!(expr.get_type(schema), Ok(DataType::Binary));
    Ok(match expr {
        Expr::Like(mut like) if is_byte_by_byte(&like) && is_bytes(&like.expr) => {
            // The type of a parameter was taken from what it is compared with.
            if let Expr::Placeholder(Placeholder { id, .. }) = &*like.pattern {
                let text = Arc::new(Field::new("", DataType::Utf8, true));
                *like.pattern = Expr::Placeholder(Placeholder::new_with_field(id.clone(), Some(text)));
            }
            Transformed::yes(own(like))
        }
        Expr::ScalarFunction(call) => match searched(&call).filter(|(bytes, _)| is_bytes(bytes)) {
            Some((bytes, pattern)) => Transformed::yes(own(Like::new(
                false,
                Box::new(bytes.clone()),
                Box::new(pattern),
                None,
                false,
            ))),
            None => Transformed::no(Expr::ScalarFunction(call)),
        },
        expr => Transformed::no(expr),
    })
}

/// Letters have no case as bytes, and an escape is one byte.
fn is_byte_by_byte(like: &Like) -> bool {
    !like.case_insensitive && like.escape_char.is_none_or(|escape| escape.is_ascii())
}

/// What `starts_with` or `ends_with` searches, and its pattern.
fn searched(call: &ScalarFunction) -> Option<(&Expr, Expr)> {
    let (text, part, pattern) = parted(call)?;
    Some((text, lit(pattern(text_of(part)?))))
}

/// Replaces DataFusion's matching by ours. Runs after type coercion.
pub fn own_patterns(expr: Expr, schema: &DFSchema) -> DfResult<Transformed<Expr>> {
    Ok(match expr {
        Expr::Like(like) => Transformed::yes(own(like)),
        Expr::SimilarTo(like) if text_of(&like.pattern).is_some_and(is_like) => Transformed::yes(own(like)),
        Expr::SimilarTo(mut similar) if !is_regex(&similar.pattern) => {
            let escape = similar.escape_char.take().unwrap_or(PLAIN_ESCAPE);
            let function = row_function(SIMILAR_PATTERN, similar_pattern, ColumnType::Varchar);
            similar.pattern = Box::new(function.call(vec![*similar.pattern, lit(escape.to_string())]));
            Transformed::yes(Expr::SimilarTo(similar))
        }
        expr => match plain_search(&expr, schema) {
            Some(likes) => Transformed::yes(likes),
            None => over_lines(expr),
        },
    })
}

/// Lets `.` of a regular expression match the end of a line, too, as in PostgreSQL.
fn over_lines(mut expr: Expr) -> Transformed<Expr> {
    let regex = match &mut expr {
        Expr::BinaryExpr(BinaryExpr {
            op:
                Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch,
            right,
            ..
        }) => Some(&mut **right),
        Expr::ScalarFunction(call) if call.name().starts_with("regexp_") => call.args.get_mut(1),
        _ => None,
    };
    let Some(regex) = regex else { return Transformed::no(expr) };
    match (text_of(regex).map(|text| has_dot(text).then(|| format!("{OVER_LINES}{text}"))), &mut *regex) {
        (Some(Some(text)), known) => set_text(known, text),
        (Some(None), _) | (None, Expr::Literal(..)) => return Transformed::no(expr),
        (None, Expr::ScalarFunction(call)) if call.name() == REGEX_OVER_LINES => {
            return Transformed::no(expr);
        }
        (None, computed) => {
            let function = row_function(REGEX_OVER_LINES, regex_over_lines, ColumnType::Varchar);
            *computed = function.call(vec![std::mem::take(computed)]);
        }
    }
    Transformed::yes(expr)
}

/// The function that does the same to a regular expression that is computed.
const REGEX_OVER_LINES: &str = "regex_over_lines";

fn regex_over_lines<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Text(regex)] if has_dot(regex) => {
            buffers.text = format!("{OVER_LINES}{regex}");
            Ok(ValueRef::Text(&buffers.text))
        }
        [regex] => Ok(*regex),
        _ => Err(Error::invalid("a regular expression is one text")),
    }
}

/// The flag at the start of a regular expression whose `.` matches the end of a line.
const OVER_LINES: &str = "(?s)";

/// It has a `.` that may not match the end of a line.
fn has_dot(regex: &str) -> bool {
    regex.contains('.') && !regex.starts_with(OVER_LINES)
}

fn own(like: Like) -> Expr {
    let Like { negated, expr, pattern, escape_char, case_insensitive } = like;
    let function = Matches {
        escape: escape_char.unwrap_or(PLAIN_ESCAPE),
        case_insensitive,
        signature: Signature::any(2, Volatility::Immutable),
    };
    let matches = ScalarUDF::new_from_impl(function).call(vec![*expr, *pattern]);
    if negated { Expr::Not(Box::new(matches)) } else { matches }
}

/// A search for literals as equivalent LIKEs.
fn plain_search(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (text, patterns, negated) = match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::RegexMatch | Operator::RegexNotMatch),
            right,
        }) => (&**left, plain_regex(text_of(right)?)?, *op == Operator::RegexNotMatch),
        Expr::ScalarFunction(call) => {
            let (text, part, pattern) = parted(call)?;
            (text, vec![pattern(text_of(part)?)], false)
        }
        _ => return None,
    };
    let is_text =
        matches!(text.get_type(schema), Ok(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View));
    // The text is repeated for each pattern.
    if !is_text || patterns.len() > 1 && text.is_volatile() {
        return None;
    }
    let like =
        |pattern: String| own(Like::new(false, Box::new(text.clone()), Box::new(lit(pattern)), None, false));
    let any = patterns.into_iter().map(like).reduce(Expr::or)?;
    Some(if negated { Expr::Not(Box::new(any)) } else { any })
}

/// Turns a text into a pattern.
type ToPattern = fn(&str) -> String;

/// The arguments of `starts_with` or `ends_with`: the text, the part to find, and how to make a pattern of the part.
pub fn parted(call: &ScalarFunction) -> Option<(&Expr, &Expr, ToPattern)> {
    let [text, part] = &call.args[..] else { return None };
    match call.name() {
        "starts_with" => Some((text, part, |part| LikePattern::plain(part, false, true))),
        "ends_with" => Some((text, part, |part| LikePattern::plain(part, true, false))),
        _ => None,
    }
}

/// The text of a literal, whatever type of text it is cast to.
fn text_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(scalar, _) => scalar.try_as_str().flatten(),
        Expr::Cast(cast) if cast.field.data_type().is_string() => text_of(&cast.expr),
        _ => None,
    }
}

/// Puts another text into such a literal.
fn set_text(expr: &mut Expr, text: String) {
    match expr {
        Expr::Cast(cast) => set_text(&mut cast.expr, text),
        literal => *literal = lit(text),
    }
}

/// The parts of a call that stands for a LIKE: its function, the text, and the pattern.
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
    /// Set for ILIKE.
    pub case_insensitive: bool,
    signature: Signature,
}

impl Matches {
    /// Parses a pattern with this call's escape character. Errors: it ends with that character.
    pub fn pattern(&self, text: &str) -> Result<LikePattern> {
        LikePattern::new(text, Some(self.escape))
    }

    fn sql(&self, args: &[String]) -> String {
        let escape =
            if self.escape == PLAIN_ESCAPE { String::new() } else { format!(" ESCAPE '{}'", self.escape) };
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
        let is_bytes = of.data_type() == DataType::Binary;
        let of: ArrayRef = match is_bytes {
            true => {
                let of = of.to_array(args.number_rows)?;
                Arc::new(
                    of.as_binary::<i32>()
                        .iter()
                        .map(|bytes| bytes.map(byte_by_byte))
                        .collect::<StringArray>(),
                )
            }
            false => texts(of)?,
        };
        let of = of.as_string::<i32>().iter();
        let matcher = |pattern: &str| match is_bytes {
            true => self.pattern(&byte_by_byte(pattern.as_bytes())),
            false => self.pattern(pattern),
        };
        let matches: BooleanArray = match by.cast_to(&DataType::Utf8, None)? {
            ColumnarValue::Scalar(ScalarValue::Utf8(Some(pattern))) => {
                let pattern = matcher(&pattern).map_err(to_df)?;
                of.map(|text| text.map(|text| pattern.matches(text, self.case_insensitive))).collect()
            }
            by => {
                let by = texts(&by)?;
                let pairs = of.zip(by.as_string::<i32>());
                let each = pairs.map(|pair| match pair {
                    (Some(text), Some(pattern)) => {
                        Ok(Some(matcher(pattern)?.matches(text, self.case_insensitive)))
                    }
                    _ => Ok(None),
                });
                each.collect::<Result<_>>().map_err(to_df)?
            }
        };
        Ok(ColumnarValue::Array(Arc::new(matches)))
    }
}

/// A text with a character for each byte.
fn byte_by_byte(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

const SIMILAR_PATTERN: &str = "similar_pattern";

/// The pattern of a SIMILAR TO has been translated already.
fn is_regex(pattern: &Expr) -> bool {
    matches!(pattern, Expr::ScalarFunction(call) if call.name() == SIMILAR_PATTERN)
}

/// The pattern of a SIMILAR TO means the same in a LIKE.
fn is_like(similar: &str) -> bool {
    !similar.contains(['|', '*', '+', '?', '{', '}', '(', ')', '[', ']'])
}

/// LIKE patterns, one of which matches whenever the regular expression finds something; `None` if it has more than
/// alternatives of literals with `^` and `$` around them.
fn plain_regex(regex: &str) -> Option<Vec<String>> {
    // All characters with a (possible) meaning in regular expressions.
    const META: [char; 18] =
        ['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$', '#', '&', '-', '~'];
    let mut patterns = Vec::new();
    let mut chars = regex.chars().peekable();
    loop {
        let open_start = chars.next_if_eq(&'^').is_none();
        let (mut text, mut open_end) = (String::new(), true);
        while let Some(c) = chars.next_if(|c| *c != '|') {
            match c {
                '$' if matches!(chars.peek(), None | Some('|')) => open_end = false,
                '\\' => text.push(chars.next_if(|c| META.contains(c))?),
                '#' | '&' | '-' | '~' => text.push(c),
                c if META.contains(&c) => return None,
                c => text.push(c),
            }
        }
        patterns.push(LikePattern::plain(&text, open_start, open_end));
        if chars.next().is_none() {
            return (patterns.len() <= ALTERNATIVES_MAX).then_some(patterns);
        }
    }
}

/// `similar_pattern(pattern, escape)`: the regular expression for a pattern of SIMILAR TO.
fn similar_pattern<'a>(args: &[ValueRef<'a>], buffers: &'a mut FunctionBuffers) -> Result<ValueRef<'a>> {
    match args {
        [ValueRef::Null, _] => Ok(ValueRef::Null),
        [ValueRef::Text(pattern), ValueRef::Text(escape)] => {
            buffers.text = regex_of(pattern, escape)?;
            Ok(ValueRef::Text(&buffers.text))
        }
        _ => Err(Error::invalid("SIMILAR TO takes a text")),
    }
}

/// Translates `%` and `_` as in LIKE, `|`, `*`, `+`, `?`, `{n}`, `()` and `[]` as in regular expressions; all else is
/// literal.
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
            '[' if in_brackets => {
                match chars.as_str().strip_prefix(':').and_then(|rest| rest.split_once(":]")) {
                    Some((class, rest)) => {
                        regex.push_str(&format!("[:{class}:]"));
                        chars = rest.chars();
                    }
                    None => regex.push_str("\\["),
                }
            }
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

/// A backslash before a letter or digit would have a meaning.
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
    fn regular_expressions_of_literals_are_patterns() {
        let cases: [(&str, &[&str]); 12] = [
            ("^x", &["x%"]),
            ("x$", &["%x"]),
            ("^x$", &["x"]),
            ("x y-#", &["%x y-#%"]),
            ("", &["%"]),
            ("^$", &[""]),
            ("$", &["%"]),
            (r"^5\.0%_", &[r"5.0\%\_%"]),
            (r"a\\b", &[r"%a\\b%"]),
            ("^a|b$|", &["a%", "%b", "%"]),
            (r"a\|b", &["%a|b%"]),
            ("^é", &["é%"]),
        ];
        for (regex, patterns) in cases {
            assert_eq!(plain_regex(regex).unwrap(), patterns, "{regex}");
        }
        for regex in [
            "^a.",
            "a^",
            "a$b",
            "(?i)a",
            "[ab]",
            r"\d",
            r"\<a",
            "a{2}",
            "a|b|c|d|e",
            "a*",
            r"a\",
            "^^a",
            "a$$",
        ] {
            assert_eq!(plain_regex(regex), None, "{regex}");
        }
    }

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
