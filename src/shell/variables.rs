//! Script variables, as in psql: `\set scale 0.01`, then `... WHERE r < :scale`.
//!
//! | written | becomes |
//! |---|---|
//! | `:name` | the value, as it is |
//! | `:'name'` | the value as an SQL string |
//! | `:"name"` | the value as a quoted name |
//!
//! Quotes and comments are left alone, and so are casts (`x::int`) and names nobody has set.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::tokens::{Token, TokenKind, is_name_part, is_name_start, tokens};
use crate::error::{Error, Result};
use crate::value::{Literal, ValueRef, quoted_name};

/// Variables and their values.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Sets a variable.
    ///
    /// Errors: `Invalid` if `name` cannot be written as `:name`.
    pub fn set(&mut self, name: &str, value: impl Into<String>) -> Result<()> {
        if !is_name(name) {
            return Err(Error::invalid(format!("\"{name}\" is not a name for a variable"))
                .hint("use letters, digits and _, not starting with a digit"));
        }
        self.0.insert(name.to_owned(), value.into());
        Ok(())
    }

    /// Sets a variable unless it is set. Errors: as [`Variables::set`].
    pub fn set_default(&mut self, name: &str, value: impl Into<String>) -> Result<()> {
        if self.0.contains_key(name) { Ok(()) } else { self.set(name, value) }
    }

    /// Removes a variable; no error if it is not set.
    pub fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// `sql` with variables replaced by their values.
    pub fn substitute<'a>(&self, sql: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() || !sql.contains(':') {
            return Cow::Borrowed(sql);
        }
        let mut out = String::with_capacity(sql.len());
        let mut rest = tokens(sql).peekable();
        while let Some(token) = rest.next() {
            out.push_str(token.text);
            if !token.is_symbol(":") {
                continue;
            }
            if let Some(second) = rest.next_if(|next| next.is_symbol(":")) {
                out.push_str(second.text);
            } else if let Some(value) = rest.peek().and_then(|name| self.value_of(name)) {
                rest.next();
                out.pop();
                out.push_str(&value);
            }
        }
        Cow::Owned(out)
    }

    /// The replacement of `:name`, given the token after the colon.
    fn value_of(&self, name: &Token<'_>) -> Option<Cow<'_, str>> {
        let get = |name: &str| self.0.get(name).map(String::as_str);
        match name.kind {
            TokenKind::Word => get(name.text).map(Cow::Borrowed),
            TokenKind::Text => {
                get(unquoted(name.text, '\'')?).map(|v| Cow::Owned(Literal(ValueRef::Text(v)).to_string()))
            }
            TokenKind::QuotedName => get(unquoted(name.text, '"')?).map(|v| Cow::Owned(quoted_name(v))),
            _ => None,
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(is_name_start) && name.chars().all(is_name_part)
}

fn unquoted(text: &str, quote: char) -> Option<&str> {
    text.strip_prefix(quote)?.strip_suffix(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        let mut variables = Variables::default();
        for (name, value) in [("scale", "0.01"), ("who", "O'Brien"), ("tab", "my \"t\""), ("int", "9")] {
            variables.set(name, value).unwrap();
        }
        variables
    }

    #[test]
    fn substitution_follows_psql() {
        let cases = [
            ("SELECT :scale", "SELECT 0.01"),
            ("a=:scale,b=:scale;", "a=0.01,b=0.01;"),
            ("name = :'who'", "name = 'O''Brien'"),
            ("FROM :\"tab\"", "FROM \"my \"\"t\"\"\""),
            ("x::int", "x::int"),
            (":scale::int", "0.01::int"),
            (":unknown :'unknown' a[1:2]", ":unknown :'unknown' a[1:2]"),
            ("': scale :scale' -- :scale\n/* :scale */", "': scale :scale' -- :scale\n/* :scale */"),
            ("'12:30:00' :", "'12:30:00' :"),
        ];
        for (sql, expected) in cases {
            assert_eq!(variables().substitute(sql), expected, "{sql}");
        }
    }

    #[test]
    fn a_value_is_not_substituted_again() {
        let mut variables = Variables::default();
        variables.set("a", ":b").unwrap();
        variables.set("b", "1").unwrap();
        assert_eq!(variables.substitute(":a"), ":b");
    }

    #[test]
    fn a_default_gives_way() {
        let mut variables = variables();
        variables.set_default("scale", "1").unwrap();
        variables.set_default("other", "1").unwrap();
        assert_eq!(variables.substitute(":scale :other"), "0.01 1");
    }

    #[test]
    fn names_are_checked() {
        for name in ["", "1a", "a b", "a:"] {
            assert!(Variables::default().set(name, "x").is_err(), "{name:?}");
        }
    }
}
