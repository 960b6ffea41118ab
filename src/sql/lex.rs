//! SQL text → tokens with places, and places → text and [`Span`]s.
//!
//! Tokens are sqlparser's, without blanks and comments, so that a token's neighbour is the next one.
//! `?` parameters are numbered here, and nesting that no stack should follow is refused here.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, Word};

use crate::error::{Error, Result, Span, sqlstate};
use crate::sql::dialect::RowkeyDialect;

/// Deepest syntax tree we parse: about as many nested parentheses, or terms in one `a + b + ...`.
/// Walking, printing and dropping a tree this deep fits a thread's default stack in a debug build.
pub(super) const DEPTH_MAX: usize = 1_000;

/// The text of one statement and the way from places to it.
#[derive(Debug)]
pub(super) struct Source<'a> {
    sql: &'a str,
    /// Byte offset at which each line starts.
    lines: Vec<usize>,
    ascii: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(sql: &'a str) -> Self {
        let starts = sql.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1);
        Source { sql, lines: std::iter::once(0).chain(starts).collect(), ascii: sql.is_ascii() }
    }

    /// The statement's tokens. Errors: SYNTAX for what is no token, an unclosed quote or comment,
    /// `?` mixed with `$n`, and too deep a nesting.
    pub(super) fn tokens(&self, dialect: &RowkeyDialect) -> Result<Vec<TokenWithSpan>> {
        let mut tokens = Tokenizer::new(dialect, self.sql)
            .tokenize_with_location()
            .map_err(|e| self.token_error(&e.message, e.location))?;
        tokens.retain(|t| !matches!(t.token, Token::Whitespace(_)));
        self.number_parameters(&mut tokens)?;
        self.check_depth(&tokens)?;
        Ok(tokens)
    }

    /// The text from one place up to another.
    pub(super) fn text(&self, from: Location, to: Location) -> &'a str {
        self.sql.get(self.offset(from)..self.offset(to)).unwrap_or_default()
    }

    /// The text from one place up to another, as a place; of several lines, what is on the first.
    pub(super) fn span(&self, from: Location, to: Location) -> Span {
        let first_line = self.text(from, to).lines().next().unwrap_or_default();
        let len = first_line.trim_end().chars().count().max(1);
        Span { line: from.line as u32, column: from.column as u32, len: len as u32 }
    }

    fn offset(&self, at: Location) -> usize {
        let Some(&start) = self.lines.get((at.line as usize).wrapping_sub(1)) else { return self.sql.len() };
        let chars = (at.column as usize).saturating_sub(1);
        if self.ascii {
            return (start + chars).min(self.sql.len());
        }
        self.sql[start..].char_indices().nth(chars).map_or(self.sql.len(), |(at, _)| start + at)
    }

    fn token_error(&self, message: &str, at: Location) -> Error {
        let what = match message {
            m if m.contains("string literal") => "this text has no closing quote".to_owned(),
            m if m.contains("multi-line comment") => "this comment has no closing */".to_owned(),
            m if m.contains("close delimiter") => "this quoted name has no closing \"".to_owned(),
            m if m.contains("dollar") => "this $-quoted text has no closing delimiter".to_owned(),
            m => format!("cannot read this: {}", lower_first(m)),
        };
        let error = Error::invalid(what).at(self.span(at, at)).state(sqlstate::SYNTAX);
        match message.contains("string literal") {
            true => error.hint("a quote inside text is doubled: 'it''s'"),
            false => error,
        }
    }

    /// Turns `?` and `?n` into `$n`, left to right.
    fn number_parameters(&self, tokens: &mut [TokenWithSpan]) -> Result<()> {
        let (mut anonymous, mut numbered) = (0, false);
        for TokenWithSpan { token, span } in tokens {
            let Token::Placeholder(name) = token else { continue };
            let next = match name.strip_prefix('?') {
                Some("") => {
                    anonymous += 1;
                    Some(format!("${anonymous}"))
                }
                Some(number) => Some(format!("${number}")),
                None => None,
            };
            numbered |= name != "?";
            if numbered && anonymous > 0 {
                return Err(Error::invalid("? and numbered parameters in one statement")
                    .why("it would not be clear which value a ? takes")
                    .hint("write $1, $2, ... throughout, or ? throughout")
                    .at(self.span(span.start, span.end))
                    .state(sqlstate::SYNTAX));
            }
            if let Some(next) = next {
                *name = next;
            }
        }
        Ok(())
    }

    fn check_depth(&self, tokens: &[TokenWithSpan]) -> Result<()> {
        let mut depth = Depth::default();
        let mut after_period = false;
        for TokenWithSpan { token, span } in tokens {
            if !after_period {
                depth.take(token);
            }
            after_period = matches!(token, Token::Period);
            if depth.deepest() > DEPTH_MAX {
                return Err(Error::invalid("this is nested too deeply")
                    .why(format!("at most {DEPTH_MAX} levels, or terms of one expression, fit"))
                    .hint("use IN (...) for long lists of OR, or split the statement")
                    .at(self.span(span.start, span.end))
                    .state(sqlstate::LIMIT));
            }
        }
        Ok(())
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// Depth of the syntax tree that the tokens so far must lead to, estimated from brackets, `CASE ... END`
/// and operator chains. `a + b + c` nests to the left, one level a term; what AND and OR join nests beside, not below.
#[derive(Debug)]
struct Depth {
    groups: Vec<Group>,
}

/// Between two brackets. Each field counts levels.
#[derive(Debug, Default)]
struct Group {
    /// Opened by CASE, closed by END.
    case: bool,
    unions: usize,
    ors: usize,
    ands: usize,
    operators: usize,
    /// Deepest operand of the ANDs and ORs of the current item.
    joined: usize,
    /// Deepest closed group inside the current item.
    inside: usize,
    /// Deepest finished item: a list entry or a clause.
    items: usize,
}

impl Default for Depth {
    fn default() -> Self {
        Depth { groups: vec![Group::default()] }
    }
}

impl Depth {
    fn take(&mut self, token: &Token) {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => self.groups.push(Group::default()),
            Token::RParen | Token::RBracket | Token::RBrace => while self.close() {},
            Token::Word(Word { quote_style: None, keyword, .. }) => self.take_word(*keyword),
            Token::Comma | Token::SemiColon => self.group().end_item(),
            Token::Word(_) | Token::Number(..) | Token::Placeholder(_) | Token::Period => {}
            token if is_text(token) => {}
            _ => self.group().operators += 1,
        }
    }

    fn take_word(&mut self, keyword: Keyword) {
        match keyword {
            Keyword::CASE => self.groups.push(Group { case: true, ..Group::default() }),
            Keyword::END if self.group().case => {
                self.close();
            }
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                self.group().end_item();
                self.group().unions += 1;
            }
            Keyword::OR => self.group().end_operand(true),
            Keyword::AND => self.group().end_operand(false),
            Keyword::NOT | Keyword::IS | Keyword::IN | Keyword::BETWEEN | Keyword::COLLATE | Keyword::AT => {
                self.group().operators += 1;
            }
            Keyword::LIKE | Keyword::ILIKE | Keyword::SIMILAR | Keyword::XOR | Keyword::OPERATOR => {
                self.group().operators += 1;
            }
            Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::ON | Keyword::GROUP => {
                self.group().end_item();
            }
            Keyword::HAVING | Keyword::WHEN | Keyword::THEN | Keyword::ELSE | Keyword::SET => {
                self.group().end_item();
            }
            _ => {}
        }
    }

    fn group(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    /// Closes the innermost group; true if it was a CASE, which a bracket closes on its way.
    fn close(&mut self) -> bool {
        let Some(group) = self.groups.pop() else { return false };
        let depth = group.depth() + 1;
        let parent = self.group();
        parent.inside = parent.inside.max(depth);
        group.case
    }

    fn deepest(&self) -> usize {
        self.groups.len() + self.groups.last().map_or(0, Group::depth)
    }
}

impl Group {
    fn end_operand(&mut self, or: bool) {
        self.joined = self.joined.max(self.operators);
        self.operators = 0;
        match or {
            true => self.ors += 1,
            false => self.ands += 1,
        }
    }

    fn end_item(&mut self) {
        self.items = self.items.max(self.item());
        *self = Group { case: self.case, unions: self.unions, items: self.items, ..Group::default() };
    }

    fn item(&self) -> usize {
        self.ors + self.ands + self.joined.max(self.operators) + self.inside
    }

    fn depth(&self) -> usize {
        self.unions + self.items.max(self.item())
    }
}

fn is_text(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(sql: &str) -> usize {
        let mut depth = Depth::default();
        let tokens = Tokenizer::new(&RowkeyDialect::default(), sql).tokenize().unwrap();
        tokens.iter().filter(|t| !matches!(t, Token::Whitespace(_))).for_each(|t| depth.take(t));
        depth.deepest()
    }

    #[test]
    fn depth_of_a_tree_from_its_tokens() {
        let cases = [
            ("a", 1),
            ("a + b + c", 3),
            ("((a))", 3),
            ("(a), (b), (c)", 2),
            ("a = 1 OR b = 2 OR c = 3", 4),
            ("a = 1, b = 2, c = 3", 2),
            ("(a + b + c) + d", 5),
            ("CASE WHEN CASE WHEN a THEN b END THEN c END", 3),
            ("SELECT 1 UNION SELECT 2 UNION SELECT 3", 3),
        ];
        for (sql, expected) in cases {
            assert_eq!(depth(sql), expected, "{sql}");
        }
    }

    #[test]
    fn text_and_spans_by_place() {
        let source = Source::new("SELECT 'é',\n  x + 1");
        let at = |line, column| Location { line, column };
        assert_eq!(source.text(at(1, 8), at(1, 11)), "'é'");
        assert_eq!(source.text(at(1, 12), at(2, 4)), "\n  x");
        assert_eq!(source.span(at(2, 3), at(2, 8)), Span { line: 2, column: 3, len: 5 });
        assert_eq!(source.text(at(9, 1), at(9, 2)), "");
    }
}
