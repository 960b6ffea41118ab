//! Optimizer hints: `SELECT /*+ INDEX(orders_by_buyer) */ ...`, to overrule the choice of access path.
//!
//! A hint is a comment that starts with `+`, right after SELECT, UPDATE or DELETE; sqlparser keeps it with
//! the query. [`marked`] adds its place, for error messages. A hint applies wherever its table is read in the
//! statement, under any alias.

use std::ops::ControlFlow;

use sqlparser::ast::{ObjectNamePart, OptimizerHint, Query, Select, TableFactor, TableWithJoins, VisitorMut};

use super::name_of;
use super::scopes::factors;
use super::visit::{or_break, or_error, visit_mut};
use crate::error::{Error, Result, Span, sqlstate};

/// What a hint asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    /// `INDEX(i, ...)`: read one of these indexes.
    Index,
    /// `NO_INDEX(i, ...)`: read none of these; without names, none at all.
    NoIndex,
    /// `FULL(t, ...)`: read every row of the table; without names, of every table.
    Full,
}

/// One hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// What it asks for.
    pub kind: HintKind,
    /// Indexes or tables, as the catalog names them, with their places.
    pub names: Vec<(String, Option<Span>)>,
    /// Place of the hint.
    pub span: Option<Span>,
}

/// Removes the hints from a query and its subqueries. Errors: SYNTAX for a malformed hint.
pub fn take_hints(query: &mut Query) -> Result<Vec<Hint>> {
    let mut taker = Taker(Vec::new());
    or_error(visit_mut(query, &mut taker)).map(|()| taker.0)
}

/// The query as text that means the same when it is parsed again.
pub fn text_of(query: &Query) -> String {
    struct Unmark;
    impl VisitorMut for Unmark {
        type Break = ();
        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            select.optimizer_hints.iter_mut().for_each(|hint| hint.prefix.clear());
            ControlFlow::Continue(())
        }
    }
    let text = query.to_string();
    if !text.contains("/*") {
        return text;
    }
    let mut unmarked = query.clone();
    let _ = visit_mut(&mut unmarked, &mut Unmark);
    unmarked.to_string()
}

struct Taker(Vec<Hint>);

impl VisitorMut for Taker {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        for hint in std::mem::take(&mut select.optimizer_hints) {
            let mut hints = or_break(parse_hints(&hint))?;
            let names = hints.iter_mut().flat_map(|hint| &mut hint.names);
            names.for_each(|(name, _)| unalias(name, &select.from));
            self.0.extend(hints);
        }
        ControlFlow::Continue(())
    }
}

/// Replaces an alias by the table's own name.
fn unalias(name: &mut String, from: &[TableWithJoins]) {
    for factor in factors(from) {
        if let TableFactor::Table { name: table, alias: Some(alias), .. } = factor
            && name_of(&alias.name) == *name
            && let Some(ObjectNamePart::Identifier(table)) = table.0.last()
        {
            *name = name_of(table);
            return;
        }
    }
}

/// The text of a hint's comment, with its place in front of the `+`.
pub(super) fn marked(comment: &str, line: u64, column: u64) -> String {
    format!("l{line}c{column}{comment}")
}

/// The hints of one comment.
pub(super) fn parse_hints(hint: &OptimizerHint) -> Result<Vec<Hint>> {
    let mut reader = HintReader { text: &hint.text, at: 0, place: place_of(&hint.prefix) };
    let mut hints = Vec::new();
    loop {
        reader.skip(|c| c.is_whitespace() || c == ',');
        let from = reader.at;
        let word = reader.name();
        if word.is_empty() && reader.at == hint.text.len() {
            return Ok(hints);
        }
        let kind = match word.to_ascii_uppercase().as_str() {
            "INDEX" => HintKind::Index,
            "NO_INDEX" => HintKind::NoIndex,
            "FULL" => HintKind::Full,
            _ => {
                reader.skip(|c| !c.is_whitespace() && c != ',' && c != '(');
                let what = format!("there is no hint {}", &hint.text[from..reader.at]);
                return Err(reader
                    .error(what, from)
                    .hint("INDEX(i), NO_INDEX, NO_INDEX(i), FULL and FULL(t) are all"));
            }
        };
        let names = reader.names()?;
        if names.is_empty() && kind == HintKind::Index {
            return Err(reader
                .error("INDEX names no index".into(), from)
                .hint("write INDEX(name_of_the_index)"));
        }
        hints.push(Hint { kind, names, span: reader.span(from) });
    }
}

/// Line and column of the comment, as [`marked`] wrote them.
fn place_of(prefix: &str) -> Option<(u32, u32)> {
    let (line, column) = prefix.strip_prefix('l')?.split_once('c')?;
    Some((line.parse().ok()?, column.parse().ok()?))
}

/// A position in the text of a hint.
struct HintReader<'a> {
    text: &'a str,
    at: usize,
    /// Place of the comment's start.
    place: Option<(u32, u32)>,
}

impl<'a> HintReader<'a> {
    fn skip(&mut self, while_: impl Fn(char) -> bool) {
        let rest = &self.text[self.at..];
        self.at += rest.find(|c| !while_(c)).unwrap_or(rest.len());
    }

    fn name(&mut self) -> &'a str {
        let from = self.at;
        self.skip(|c| c.is_alphanumeric() || c == '_' || c == '$');
        &self.text[from..self.at]
    }

    /// `(a, b)`, if that comes next.
    fn names(&mut self) -> Result<Vec<(String, Option<Span>)>> {
        let mut names = Vec::new();
        let before = self.at;
        self.skip(char::is_whitespace);
        if !self.text[self.at..].starts_with('(') {
            self.at = before;
            return Ok(names);
        }
        let open = self.at;
        self.at += 1;
        loop {
            self.skip(|c| c.is_whitespace() || c == ',');
            let from = self.at;
            let rest = &self.text[from..];
            if rest.starts_with(')') {
                self.at += 1;
                return Ok(names);
            }
            let name = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
                Some((name, _)) => {
                    self.at += name.len() + 2;
                    name.to_owned()
                }
                None => self.name().to_lowercase(),
            };
            if name.is_empty() {
                let what = if rest.is_empty() { "a hint has no closing )" } else { "a hint lists names" };
                return Err(self.error(what.into(), if rest.is_empty() { open } else { from }));
            }
            names.push((name, self.span(from)));
        }
    }

    fn error(&self, what: String, from: usize) -> Error {
        Error::invalid(what).state(sqlstate::SYNTAX).at(self.span(from))
    }

    /// The text from `from` to the current position, as a place in the statement.
    fn span(&self, from: usize) -> Option<Span> {
        let (line, column) = self.place?;
        let before = &self.text[..from];
        let len = self.text[from..self.at].chars().count().max(1) as u32;
        let chars = |text: &str| text.chars().count() as u32;
        Some(match before.rsplit_once('\n') {
            None => Span { line, column: column + 3 + chars(before), len },
            Some((lines, last)) => {
                let lines = lines.matches('\n').count() as u32 + 1;
                Span { line: line + lines, column: 1 + chars(last), len }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Statement, parse};

    fn hints(sql: &str) -> Vec<Hint> {
        let Statement::Query(mut query) = parse(sql).unwrap() else { panic!("{sql}") };
        take_hints(&mut query).unwrap()
    }

    #[test]
    fn hints_stand_behind_select() {
        let found =
            hints("SELECT /*+ INDEX(By_Buyer) full(t, \"U\"), NO_INDEX */ 1 FROM (SELECT/*+FULL*/ 2)");
        let kinds: Vec<HintKind> = found.iter().map(|h| h.kind).collect();
        assert_eq!(kinds, [HintKind::Index, HintKind::Full, HintKind::NoIndex, HintKind::Full]);
        let names: Vec<&str> = found.iter().flat_map(|h| &h.names).map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["by_buyer", "t", "U"]);
        assert_eq!(found[0].names[0].1, Some(Span { line: 1, column: 18, len: 8 }));
        assert_eq!(hints("SELECT /* INDEX(a) */ 1"), []);
    }

    #[test]
    fn what_is_no_hint_is_an_error_with_its_place() {
        for (sql, what, column) in [
            ("SELECT /*+ INDX(a) */ 1", "there is no hint INDX", 12),
            ("SELECT /*+ INDEX */ 1", "INDEX names no index", 12),
            ("SELECT /*+ INDEX(a */ 1", "a hint has no closing )", 17),
            ("SELECT /*+ FULL(1.5) */ 1", "a hint lists names", 18),
            ("SELECT 1 /*+ FULL */", "a hint stands right behind SELECT, UPDATE or DELETE", 10),
        ] {
            let error = parse(sql).unwrap_err();
            assert_eq!(error.what(), what, "{sql}");
            assert_eq!(error.span().map(|s| s.column), Some(column), "{sql}");
        }
    }
}
