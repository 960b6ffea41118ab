//! Names in the quotes of others: `[name]`, as SQL Server writes them, and MySQL's backticks. SQLite takes both.
//!
//! [`in_double_quotes`] makes them names in our own quotes before there are tokens, so that nothing else knows of them
//! but what scans the text itself. Who writes them so does not tell upper and lower case apart: SQLite's dump of
//! `[Album]` goes on with `INSERT INTO Album`. So a name that needs no quotes is in lower case, as it would be without.

use std::borrow::Cow;
use std::ops::Range;

use super::Splitter;
use crate::value::is_reserved;

/// Does the `[` between these characters begin a name? Behind a value it would ask for a part of it, and before anything
/// but a letter, it begins a list.
pub fn begins_name(before: Option<char>, next: Option<char>) -> bool {
    !before.is_some_and(ends_value) && next.is_some_and(starts_name)
}

/// May a value end with the character?
pub(super) fn ends_value(c: char) -> bool {
    is_part(c) || matches!(c, '$' | '"' | '\'' | '`' | ')' | ']')
}

/// May a name in brackets start with the character?
pub(super) fn starts_name(c: char) -> bool {
    is_part(c) && !c.is_ascii_digit()
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii() && !c.is_whitespace()
}

/// The text, of the same length, with these names in double quotes. A name that would need more characters there stays.
pub(super) fn in_double_quotes(sql: &str) -> Cow<'_, str> {
    if !sql.contains(['[', '`']) {
        return Cow::Borrowed(sql);
    }
    let names = names_in(sql);
    let mut text = String::with_capacity(sql.len());
    for (at, name) in names.iter().enumerate() {
        // A doubled quote ends a name and begins another.
        let is_doubled = |other: Option<&Range<usize>>, touches: fn(&Range<usize>, &Range<usize>) -> bool| {
            sql[name.clone()].starts_with('`') && other.is_some_and(|other| touches(name, other))
        };
        let is_doubled = is_doubled(names.get(at + 1), |name, next| name.end == next.start)
            || is_doubled(at.checked_sub(1).map(|before| &names[before]), |name, last| {
                last.end == name.start
            });
        text.push_str(&sql[text.len()..name.start]);
        let inside = &sql[name.start + 1..name.end - 1];
        if is_doubled || inside.contains('"') {
            text.push_str(&sql[name.clone()]);
        } else {
            let is_plain =
                inside.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !is_reserved(inside);
            let name = if is_plain { Cow::Owned(inside.to_ascii_lowercase()) } else { Cow::Borrowed(inside) };
            text.extend(["\"", &*name, "\""]);
        }
    }
    text.push_str(&sql[text.len()..]);
    Cow::Owned(text)
}

/// Where these names stand, with their quotes, in order.
fn names_in(sql: &str) -> Vec<Range<usize>> {
    let (mut splitter, mut names, mut from) = (Splitter::new(), Vec::new(), None);
    for (at, c) in sql.char_indices() {
        let was_inside = splitter.is_in_foreign_name();
        splitter.step(c);
        match (was_inside, splitter.is_in_foreign_name()) {
            // A bracket is known to begin a name by the letter behind it.
            (false, true) => from = Some(if c == '`' { at } else { at - 1 }),
            (true, false) => names.extend(from.take().map(|from| from..at + 1)),
            _ => {}
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_double_quotes() {
        for (sql, plain) in [
            (
                "SELECT [Album], `AlbumId`, [Order] FROM [ALBUM_2]",
                r#"SELECT "album", "albumid", "Order" FROM "album_2""#,
            ),
            ("SELECT [Order Id], `it's` FROM [é]", r#"SELECT "Order Id", "it's" FROM "é""#),
            ("a.[b]=[c d].`e`", r#"a."b"="c d"."e""#),
            ("INSERT INTO [t]([a],[b])", r#"INSERT INTO "t"("a","b")"#),
            ("`a``b`, [say \"x\"], `c\"`, `d`", "`a``b`, [say \"x\"], `c\"`, \"d\""),
        ] {
            assert_eq!(in_double_quotes(sql), plain);
        }
        for sql in [
            "d['a'], d[a], (d)[a], \"d\"[a], ARRAY[a], int[], [1, 2], [ a ]",
            "'[a] `b`', E'\\'[a]', \"[a]\", $$[a]$$, -- [a]\n /* `a` */ [a",
        ] {
            assert_eq!(in_double_quotes(sql), sql);
        }
    }
}
