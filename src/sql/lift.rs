//! Literal lifting: computes a query's plan-cache key, so that texts which differ only in compared literals
//! are planned once.
//!
//! `SELECT * FROM t WHERE id = 7 AND day >= DATE '2024-01-01'` becomes `... WHERE id = $1 AND day >= $2` with
//! two values. A literal is lifted only if it is a whole side of a comparison, or the number of OFFSET: `= 7 AND`, but
//! not `= 7 + x`, `LIMIT 7` or `lpad(id, 7)`, which shape the plan. What is computed of one counts as one: `7 + 2`,
//! `'2024-01-01'::date`, or `date_trunc('day', now()) - INTERVAL '1 month'` (`constant`). IN lists are padded to 1, 2,
//! 4, 8 .. values by repeating the last one, so that lists of similar length share a plan. In the rows of VALUES,
//! literals are lifted by column (`rows`). Columns without an `AS` name are named by their text: in the outermost select
//! list, they get single literals back when they are shown ([`Shown`]); in others, nothing is lifted from them. Columns
//! that are constants as a whole are lifted if there is no FROM, as in `WITH given AS (SELECT 7 AS id)`, or nobody sees
//! their names, as in `INSERT .. SELECT`. There is no parsing: this runs on every statement before the plan cache is
//! asked, so it walks the bytes once.

mod change;
mod constant;
mod rows;
mod tokens;

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::ops::Range;

pub use self::change::lift_change;
use self::constant::constant;
pub use self::constant::{Clock, Constant, cast_constant};
use self::rows::{literals_of_rows, literals_of_values};
use self::tokens::{Class, Token, text_of, tokens};
use crate::value::Value;

/// Bytes of the longest text worth keeping.
const TEXT_BYTES: usize = 1 << 20;
/// Literals lifted from one text (count), at most; longer IN lists are planned as they are.
const VALUES: usize = 1 << 15;

/// Levels of nested parentheses, at most.
const DEPTH_MAX: i32 = 60;

/// The largest parameter number.
const PARAMETER_MAX: usize = u16::MAX as usize;

/// A query's text, with its compared literals replaced by parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Lifted {
    /// The text; parameters of the statement itself keep their numbers.
    pub text: String,
    /// Values of the parameters past the statement's own.
    pub values: Vec<Constant>,
    /// The number of parameters in the statement itself.
    pub own: usize,
    /// The literals that belong to the names of output columns.
    pub shown: Shown,
}

/// Literals in the texts that name output columns: each with the number of the parameter in its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown(Vec<(usize, String)>);

impl Shown {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of an output column as the statement has written it.
    pub fn name(&self, planned: &str) -> String {
        let (mut name, mut rest) = (String::with_capacity(planned.len()), planned);
        let mut quote = None;
        while let Some(at) = rest.find(['$', '\'', '"']) {
            let (before, here) = rest.split_at(at);
            name.push_str(before);
            let mark = here.as_bytes()[0];
            let digits = here[1..].bytes().take_while(u8::is_ascii_digit).count();
            let number = here[1..=digits].parse::<usize>().ok().filter(|_| quote.is_none() && mark == b'$');
            if mark != b'$' && quote.is_none_or(|quote| quote == mark) {
                quote = if quote.is_none() { Some(mark) } else { None };
            }
            let literal = number.and_then(|number| self.0.iter().find(|(of, _)| *of == number));
            let len = if literal.is_some() { 1 + digits } else { 1 };
            name.push_str(literal.map_or(&here[..len], |(_, literal)| literal));
            rest = &here[len..];
        }
        name + rest
    }
}

/// What becomes of outermost columns that are named by their text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Nobody sees their names.
    Unseen,
    /// They keep their literals.
    Fixed,
    /// They get them back.
    Shown,
}

/// Lifts the literals of a query; `None` if it is no query, or not worth keeping.
pub fn lift(sql: &str) -> Option<Lifted> {
    lift_of(sql, Names::Shown)
}

/// The same of a query whose output names must be those that were planned.
pub fn lift_named(sql: &str) -> Option<Lifted> {
    lift_of(sql, Names::Fixed)
}

/// The same of a query whose output names nobody sees.
pub fn lift_unnamed(sql: &str) -> Option<Lifted> {
    lift_of(sql, Names::Unseen)
}

fn lift_of(sql: &str, names: Names) -> Option<Lifted> {
    // Skip other statements, such as INSERT, without tokenizing them.
    let first = sql.trim_start().bytes().next()?;
    if sql.len() > TEXT_BYTES || first.is_ascii_alphabetic() && !matches!(first, b's' | b'S' | b'w' | b'W') {
        return None;
    }
    let (tokens, comments) = tokens(sql)?;
    if !comments.is_empty() {
        return lift_of(&without(sql, comments), names);
    }
    // A query in parentheses may be the first of a UNION.
    let first = tokens.iter().find(|token| token.text(sql) != "(")?;
    if !["select", "with"].iter().any(|word| first.text(sql).eq_ignore_ascii_case(word)) {
        return None;
    }
    let own = tokens.iter().filter_map(|t| t.parameter(sql)).max().unwrap_or(0);
    // The parser will refuse such a parameter.
    if own > PARAMETER_MAX {
        return None;
    }
    // A name that looks like a parameter would get a literal, and the outermost columns may be those in parentheses.
    let is_odd = |token: &Token| token.class == Class::Name && token.text(sql).contains('$');
    let keeps_names = tokens[0].text(sql) == "(" || tokens.iter().any(is_odd);
    let names = if names == Names::Shown && keeps_names { Names::Fixed } else { names };
    Walk::of(sql, &tokens, names, own).lifted()
}

/// The walk over the tokens of a query.
struct Walk<'s> {
    sql: &'s str,
    tokens: &'s [Token],
    names: Names,
    /// The columns of all select lists, once they matter.
    columns: OnceCell<Vec<Column>>,
    place: Place,
    lifted: Lifted,
    /// Bytes of the query that are in the lifted text, or lifted.
    copied: usize,
}

impl<'s> Walk<'s> {
    /// A walk over a text with parameters up to number `own`.
    fn of(sql: &'s str, tokens: &'s [Token], names: Names, own: usize) -> Walk<'s> {
        let text = String::with_capacity(sql.len() + 8);
        let lifted = Lifted { text, values: Vec::new(), own, shown: Shown::default() };
        Walk { sql, tokens, names, columns: OnceCell::new(), place: Place::default(), lifted, copied: 0 }
    }

    /// What comes out at its end; `None`: the text is not worth keeping.
    fn lifted(mut self) -> Option<Lifted> {
        let mut next = 0;
        while next < self.tokens.len() {
            next = self.step(next)?;
        }
        self.lifted.text.push_str(&self.sql[self.copied..]);
        Some(self.lifted)
    }

    /// Lifts what begins at the token `at`, if it may, and tells the token to go on with; `None`: the text is not worth
    /// keeping.
    fn step(&mut self, at: usize) -> Option<usize> {
        let (sql, tokens, token) = (self.sql, self.tokens, self.tokens[at]);
        self.place.see(sql, tokens, at);
        if !(0..=DEPTH_MAX).contains(&self.place.depth) {
            return None;
        }
        if self.place.groups.is_some_and(|groups| groups.stay()) || self.place.in_returning {
            return Some(at + 1);
        }
        // A list is padded, which its text would show.
        let may_change = || !self.is_in(at, |column| column.stays || column.is_shown);
        if self.place.in_list
            && let Some((values, len)) = list_of_in(sql, tokens, at)
                .filter(|(values, _)| may_change() && values.iter().all(|value| self.may_be(value)))
        {
            self.put(token.end..tokens[at + len].start, values)?;
            self.place.in_list = false;
            return Some(at + len);
        }
        // Looked at first: this is asked of every token.
        let may_be_values = token.class == Class::Word && sql.as_bytes()[token.start] | 0x20 == b'v';
        let rows = || match self.place.of_change && self.place.depth == 0 {
            true => literals_of_rows(sql, tokens, at),
            false => literals_of_values(sql, tokens, at).filter(|_| may_change()),
        };
        if may_be_values && let Some((literals, end)) = rows() {
            for (at, len, value) in literals {
                self.put(tokens[at].start..tokens[at + len - 1].end, [Constant::Value(value)])?;
            }
            return Some(end);
        }
        let literal = self.literal(at);
        let is_shown = literal.is_some() && self.is_in(at, |column| column.is_shown);
        // What is computed of a literal may be written in several ways.
        let literal = literal.filter(|(_, len)| !is_shown || *len == 1 && token.class != Class::Word);
        let Some((value, len)) = literal else {
            // A row inside the list ends here.
            let is_row = token.text(sql) == ")" && self.place.depth >= self.place.list_depth;
            self.place.in_list &= is_row || is_list(sql, &token);
            return Some(at + 1);
        };
        self.put(token.start..tokens[at + len - 1].end, [value])?;
        if is_shown {
            let number = self.lifted.own + self.lifted.values.len();
            self.lifted.shown.0.push((number, token.text(sql).to_owned()));
        }
        Some(at + len)
    }

    /// The literal at the token `at`, if it may be lifted alone, and its number of tokens.
    fn literal(&self, at: usize) -> Option<(Constant, usize)> {
        let (sql, tokens, place) = (self.sql, self.tokens, &self.place);
        let may_lift = || !self.is_in(at, |column| column.stays);
        let of_column = || {
            let before = tokens[at.checked_sub(1)?];
            if place.selects & 1 == 0 || !(before.is(sql, &["select"]) || before.text(sql) == ",") {
                return None;
            }
            let (value, len) = constant(sql, &tokens[at..])?;
            let lifts = |c: &Column| c.may_be_lifted && !c.stays && c.is_all(at..at + len);
            self.columns().iter().any(lifts).then_some((value, len))
        };
        let of_operator = || {
            // In the outermost list or SET, but in no subquery there.
            let is_unseen = self.names == Names::Unseen && place.selects == 1 << place.depth;
            if is_unseen || place.in_set && place.selects == 0 {
                operand(sql, tokens, at).filter(|_| may_lift())
            } else {
                None
            }
        };
        let compared = compared_literal(sql, tokens, at, place).filter(|_| may_lift());
        let found = compared.or_else(of_column).or_else(of_operator);
        found.filter(|(value, _)| self.may_be(value))
    }

    /// The value may be a parameter's: a statement that changes rows has a clock of its own.
    fn may_be(&self, value: &Constant) -> bool {
        !self.place.of_change || matches!(value, Constant::Value(_))
    }

    fn columns(&self) -> &[Column] {
        self.columns.get_or_init(|| columns_of(self.sql, self.tokens, self.names))
    }

    /// The token `at` is in a column of this kind.
    fn is_in(&self, at: usize, kind: fn(&Column) -> bool) -> bool {
        self.place.selects != 0 && self.columns().iter().any(|c| kind(c) && c.tokens.contains(&at))
    }

    /// Puts parameters in place of some bytes of the query; `None`: there are too many.
    fn put(&mut self, bytes: Range<usize>, values: impl IntoIterator<Item = Constant>) -> Option<()> {
        let Lifted { text, values: lifted, own, .. } = &mut self.lifted;
        text.push_str(&self.sql[self.copied..bytes.start]);
        for (n, value) in values.into_iter().enumerate() {
            if lifted.len() == VALUES {
                return None;
            }
            lifted.push(value);
            text.push_str(if n == 0 { "" } else { ", " });
            // Writing to a string cannot fail.
            let _ = write!(text, "${}", *own + lifted.len());
        }
        self.copied = bytes.end;
        Some(())
    }
}

/// Where the walk over the tokens is.
#[derive(Default)]
struct Place {
    /// In an IN list, a row compared with something, or the arguments of a series; and the depth of its parentheses.
    in_list: bool,
    list_depth: i32,
    /// One bit for each open parenthesis, the innermost lowest: is it in a select list?
    selects: u64,
    depth: i32,
    /// Depth of the last BETWEEN.
    between: Option<i32>,
    /// The token that begins its upper bound.
    upper: usize,
    /// The outermost GROUP BY before it, in the same SELECT or around it.
    groups: Option<Groups>,
    /// In a statement that changes rows, such as an UPDATE.
    of_change: bool,
    in_set: bool,
    in_returning: bool,
}

/// A GROUP BY. Its literals stay, or the select list would ask for something else; and if it compares with one, so do those
/// in the clauses behind it.
#[derive(Clone, Copy)]
struct Groups {
    /// Of parentheses.
    depth: i32,
    has_ended: bool,
    compares: bool,
}

impl Groups {
    fn stay(self) -> bool {
        !self.has_ended || self.compares
    }

    /// Goes on to a token at this depth; `None`: the SELECT has ended.
    fn see(mut self, sql: &str, token: Token, depth: i32) -> Option<Groups> {
        let is_beside = depth == self.depth;
        if depth < self.depth || is_beside && token.is(sql, &["union", "except", "intersect"]) {
            return None;
        }
        self.has_ended |=
            is_beside && token.is(sql, &["having", "window", "qualify", "order", "limit", "offset"]);
        self.compares |= !self.has_ended && compares(sql, token);
        Some(self)
    }
}

impl Place {
    /// Between the columns of a SET.
    fn is_in_set(&self) -> bool {
        self.in_set && self.depth == 0
    }

    /// Goes on to a token.
    fn see(&mut self, sql: &str, tokens: &[Token], at: usize) {
        let before = at.checked_sub(1).map(|before| tokens[before]);
        self.groups = self.groups.and_then(|groups| groups.see(sql, tokens[at], self.depth));
        if self.of_change && self.depth == 0 && tokens[at].class == Class::Word {
            let is = |word| tokens[at].is(sql, &[word]);
            self.in_set = is("set") || self.in_set && !is("where") && !is("from");
            self.in_returning |= is("returning");
        }
        match (tokens[at].class, sql.as_bytes()[tokens[at].start]) {
            (Class::Word, b'g' | b'G')
                if self.groups.is_none()
                    && tokens[at].is(sql, &["group"])
                    && !before.is_some_and(|before| before.is(sql, &["within"])) =>
            {
                self.groups = Some(Groups { depth: self.depth, has_ended: false, compares: false });
            }
            (Class::Other, b'(') => {
                (self.selects, self.depth) = (self.selects << 1, self.depth + 1);
                let opens_list = |before: Token| {
                    before.class == Class::Comparison || before.is(sql, &["in", "generate_series"])
                };
                if before.is_some_and(opens_list) {
                    (self.in_list, self.list_depth) = (true, self.depth);
                }
            }
            (Class::Other, b')') => (self.selects, self.depth) = (self.selects >> 1, self.depth - 1),
            (Class::Word, b's' | b'S') if tokens[at].is(sql, &["select"]) => self.selects |= 1,
            // The FROM of IS DISTINCT FROM is followed by no table.
            (Class::Word, b'f' | b'F')
                if tokens[at].is(sql, &["from"])
                    && !before.is_some_and(|before| before.is(sql, &["distinct"])) =>
            {
                self.selects &= !1;
            }
            (Class::Word, b'b' | b'B') if tokens[at].is(sql, &["between"]) => self.between = Some(self.depth),
            (Class::Word, b'a' | b'A')
                if self.between == Some(self.depth) && tokens[at].is(sql, &["and"]) =>
            {
                (self.between, self.upper) = (None, at + 1);
            }
            _ => {}
        }
    }
}

/// The text with a blank instead of each comment: what programs write there differs from text to text.
fn without(sql: &str, comments: Vec<Range<usize>>) -> String {
    let (mut text, mut copied) = (String::with_capacity(sql.len()), 0);
    for comment in comments {
        text.push_str(&sql[copied..comment.start]);
        text.push(' ');
        copied = comment.end;
    }
    text + &sql[copied..]
}

/// A column of a select list.
struct Column {
    tokens: Range<usize>,
    /// It ends in `AS` and a name.
    is_named: bool,
    /// It may be lifted if it is a constant: most others are the same in each text, and parameters cost more.
    may_be_lifted: bool,
    /// It is named by its text, and gets its literals back there.
    is_shown: bool,
    /// Its literals stay: they are in its name, or GROUP BY or ORDER BY may refer to the same expression, as they contain
    /// a literal.
    stays: bool,
}

impl Column {
    /// These tokens are all of it, but for its name.
    fn is_all(&self, tokens: Range<usize>) -> bool {
        let end = if self.is_named { self.tokens.end - 2 } else { self.tokens.end };
        (self.tokens.start, end) == (tokens.start, tokens.end)
    }
}

/// The token is an operator that compares.
fn compares(sql: &str, token: Token) -> bool {
    token.class == Class::Comparison || token.is(sql, &["in", "between", "like"])
}

/// The columns of all select lists.
fn columns_of(sql: &str, tokens: &[Token], names: Names) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    let end = |columns: &mut Vec<Column>, List { depth, from, .. }: List, end: usize| {
        let is_named = match &tokens[from..end] {
            [.., word, name] => word.is(sql, &["as"]) && matches!(name.class, Class::Word | Class::Name),
            _ => false,
        };
        let is_seen = names != Names::Unseen || depth > 0;
        let is_shown = names == Names::Shown && depth == 0 && !is_named;
        let stays = is_seen && !is_named && !is_shown;
        columns.push(Column { tokens: from..end, is_named, is_shown, stays, may_be_lifted: !is_seen });
    };
    // The select lists around the position.
    let mut lists: Vec<List> = Vec::new();
    let (mut depth, mut sorts_by_literals, mut is_set) = (0, false, false);
    // The depth of the GROUP BY or ORDER BY around the position.
    let mut sorts: Option<i32> = None;
    for (at, token) in tokens.iter().enumerate() {
        sorts_by_literals |= sorts.is_some() && compares(sql, *token);
        let is_in_list = lists.last().is_some_and(|list| list.depth == depth);
        match (token.class, token.text(sql)) {
            (Class::Other, "(") => depth += 1,
            (Class::Other, ")") => {
                depth -= 1;
                sorts = sorts.filter(|of| *of <= depth);
                if let Some(list) = lists.pop_if(|list| list.depth > depth) {
                    let first = list.first;
                    end(&mut columns, list, at);
                    // Without FROM, as in `WITH given AS (SELECT 7 AS id)`.
                    columns[first..].iter_mut().for_each(|column| column.may_be_lifted = true);
                }
            }
            (Class::Other, ",") if is_in_list => {
                if let Some(list) = lists.pop() {
                    let first = list.first;
                    end(&mut columns, list, at);
                    lists.push(List { depth, from: at + 1, first });
                }
            }
            (Class::Word, _) if token.is(sql, &["select"]) => {
                lists.push(List { depth, from: at + 1, first: columns.len() });
            }
            (Class::Word, _) => {
                let follows = |word| at.checked_sub(1).is_some_and(|before| tokens[before].is(sql, &[word]));
                let begins = token.is(sql, &["group", "order"]) && !follows("within");
                let ends = token
                    .is(sql, &["from", "where", "having", "limit", "offset", "union", "except", "intersect"]);
                // The FROM of IS DISTINCT FROM is followed by no table.
                if is_in_list && (begins || ends) && !follows("distinct") {
                    lists.pop().into_iter().for_each(|list| end(&mut columns, list, at));
                }
                is_set |= token.is(sql, &["union", "except", "intersect"]);
                sorts = match sorts {
                    Some(of) if of == depth && ends => None,
                    None if begins => Some(depth),
                    sorts => sorts,
                };
            }
            _ => {}
        }
    }
    lists.into_iter().for_each(|list| end(&mut columns, list, tokens.len()));
    for column in &mut columns {
        column.stays |= sorts_by_literals;
        column.may_be_lifted &= !is_set;
    }
    columns
}

/// A select list that has not ended.
#[derive(Clone, Copy)]
struct List {
    /// Of parentheses.
    depth: i32,
    /// Where its last column begins.
    from: usize,
    /// Its first column, of all columns.
    first: usize,
}

/// The constant at `at` and its number of tokens, if it is a whole side of a comparison.
fn compared_literal(sql: &str, tokens: &[Token], at: usize, place: &Place) -> Option<(Constant, usize)> {
    let before = tokens.get(at.checked_sub(1)?)?;
    let one_of = |words: &[&str]| before.is(sql, words);
    let is_distinct = || at.checked_sub(2).is_some_and(|at| tokens[at].is(sql, &["distinct"]));
    let opens = before.class == Class::Comparison
        || one_of(&["between", "like"])
        || one_of(&["from"]) && is_distinct()
        || one_of(&["offset"]) && token_is_number(tokens, at)
        || matches!(before.text(sql), "(" | ",") && place.in_list
        // The AND of a BETWEEN.
        || at == place.upper;
    let begins = matches!(tokens[at].class, Class::Text | Class::Number)
        && (before.text(sql) == "(" || one_of(&["where", "and", "or", "not", "on", "when", "having"]));
    if !opens && !begins {
        return None;
    }
    let (value, len) = constant(sql, &tokens[at..])?;
    let after = tokens.get(at + len);
    let is_whole = if opens {
        after.is_none_or(|after| {
            matches!(after.text(sql), ")" | ";")
                || after.text(sql) == "," && (place.in_list || place.selects & 1 == 1 || place.is_in_set())
                || after.is(sql, &BEHIND_A_COMPARISON)
        })
    } else {
        after.is_some_and(|after| after.class == Class::Comparison || after.is(sql, &["is", "like"]))
    };
    is_whole.then_some((value, len))
}

/// The number at `at` that is added, subtracted or multiplied, the text that is appended or stands in for NULL, or the
/// literal that a CASE gives or looks for; and its number of tokens. In columns without visible names, as of `SET balance
/// = balance - 17`, each text has another.
fn operand(sql: &str, tokens: &[Token], at: usize) -> Option<(Constant, usize)> {
    let before = tokens.get(at.checked_sub(1)?)?;
    let is_operator = |token: &Token| matches!(token.text(sql), "+" | "-" | "*");
    let of_case = before.is(sql, &["when", "then", "else"]);
    let (here, after) = (&tokens[at], tokens.get(at + 1)?);
    let for_null = || stands_in_for_null(sql, tokens, at);
    // Of `||`.
    let is_appended = || before.text(sql) == "|" || after.text(sql) == "|";
    let value = match here.class {
        Class::Number if of_case || is_operator(before) || is_operator(after) => {
            Value::number(here.text(sql))?
        }
        Class::Text if of_case || is_appended() || for_null() => Value::Text(text_of(here.text(sql))),
        _ => return None,
    };
    // Of `THEN 5 + x` and `THEN 'a' || x` only numbers are operands here.
    let is_whole = !of_case || after.is(sql, &["when", "then", "else", "end"]) || is_operator(after);
    let fits = matches!(value, Value::Int(_) | Value::Text(_)) || matches!(value, Value::Decimal(_, 1..));
    (is_whole && fits).then_some((Constant::Value(value), 1))
}

/// The text at `at` is the last argument of `coalesce(column, ..)`.
fn stands_in_for_null(sql: &str, tokens: &[Token], at: usize) -> bool {
    let is_last = tokens.get(at + 1).is_some_and(|after| after.text(sql) == ")");
    let [.., call, opens, column, comma] = &tokens[..at] else { return false };
    is_last
        && comma.text(sql) == ","
        && column.class == Class::Word
        && opens.text(sql) == "("
        && call.is(sql, &["coalesce", "ifnull"])
}

/// Words that may follow a comparison.
const BEHIND_A_COMPARISON: [&str; 25] = [
    "and",
    "or",
    "then",
    "when",
    "else",
    "end",
    "as",
    "from",
    "join",
    "inner",
    "left",
    "right",
    "full",
    "cross",
    "where",
    "order",
    "group",
    "having",
    "window",
    "limit",
    "offset",
    "union",
    "except",
    "intersect",
    "returning",
];

/// The literals of an IN list that opens at the token `at`, padded to a power of two, and the number of
/// tokens up to the closing parenthesis; `None` if the list is empty or contains anything else.
fn list_of_in(sql: &str, tokens: &[Token], at: usize) -> Option<(Vec<Constant>, usize)> {
    if tokens[at].text(sql) != "(" || !tokens.get(at.checked_sub(1)?)?.is(sql, &["in"]) {
        return None;
    }
    let (mut values, mut len) = (Vec::new(), 0);
    loop {
        let (value, of_value) = constant(sql, tokens.get(at + len + 1..)?)?;
        values.push(value);
        len += 1 + of_value;
        match tokens.get(at + len)?.text(sql) {
            "," => {}
            ")" => break,
            _ => return None,
        }
    }
    let last = values.last()?.clone();
    let more = values.len().next_power_of_two();
    values.resize(if more <= VALUES { more } else { values.len() }, last);
    Some((values, len))
}

fn token_is_number(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.class == Class::Number)
}

/// Can the token be part of a list of literals?
fn is_list(sql: &str, token: &Token) -> bool {
    match token.class {
        Class::Number | Class::Text | Class::Parameter => true,
        Class::Other => matches!(token.text(sql), "(" | "," | "-"),
        Class::Word | Class::Name | Class::Comparison => false,
    }
}

#[cfg(test)]
mod tests;
