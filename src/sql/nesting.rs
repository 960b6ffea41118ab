//! Estimates the depth of the syntax tree from the tokens, before it is built.
//!
//! sqlparser's own limit counts its recursion, which a chain such as `1 + 1 + 1` does not need: it becomes a
//! tree as deep as it is long, and dropping the tree takes stack, too. So one pass over the tokens comes
//! first.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Deepest tree we let sqlparser build: about as many nested parentheses, or terms in one `a + b + ...`.
/// Walking it and dropping it, finished or not, fits the 2 MiB stack of a thread in a debug build.
pub(super) const PARSED_DEPTH_MAX: usize = 4_000;

/// Levels that a query counts for: its grammar is the longest, and some of it is tried twice.
const QUERY_UNITS: usize = 80;

/// Levels that an `ARRAY<` counts for: sqlparser reads types without checking the stack.
const TYPE_UNITS: usize = 200;

/// The token at which a statement becomes too deep to parse: by nesting, or by a long chain.
pub(super) fn too_deep(tokens: &[TokenWithSpan]) -> Option<&TokenWithSpan> {
    let mut depth = Depth::default();
    let mut opened = Opened::default();
    let mut after_period = false;
    let found = tokens.iter().find(|TokenWithSpan { token, .. }| {
        if !after_period {
            depth.take(token);
        }
        after_period = matches!(token, Token::Period);
        depth.deepest() > PARSED_DEPTH_MAX || opened.take(token) > TABLE_PARENTHESES_MAX
    });
    found.or_else(|| tokens.last().filter(|_| depth.closed() > PARSED_DEPTH_MAX))
}

/// Consecutive parentheses where a table may stand (count), at most: sqlparser reads their contents twice at
/// each level, as a subquery and as a join.
const TABLE_PARENTHESES_MAX: usize = 32;

/// Counts consecutive parentheses where a table may stand.
#[derive(Default)]
struct Opened {
    table: bool,
    in_a_row: usize,
}

impl Opened {
    /// The count after one more token.
    fn take(&mut self, token: &Token) -> usize {
        match token {
            Token::LParen if self.table => self.in_a_row += 1,
            _ => {
                let starts = |w: &Word| matches!(w.keyword, Keyword::FROM | Keyword::JOIN | Keyword::USING);
                self.table = matches!(token, Token::Comma) || matches!(token, Token::Word(w) if starts(w));
                self.in_a_row = 0;
            }
        }
        self.in_a_row
    }
}

/// Estimated depth of the syntax tree of the tokens so far, from brackets, `CASE ... END` and operator
/// chains. `a + b + c` nests to the left, one level a term; the operands of AND and OR count side by side.
#[derive(Debug)]
struct Depth {
    groups: Vec<Group>,
    /// The last token was ARRAY: a `<` now opens a type.
    array: bool,
}

/// A bracketed group. Each number counts levels.
#[derive(Debug, Default)]
struct Group {
    /// Opened by CASE, closed by END.
    case: bool,
    /// Has a SELECT or VALUES.
    query: bool,
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
        Depth { groups: vec![Group::default()], array: false }
    }
}

impl Depth {
    fn take(&mut self, token: &Token) {
        let array = std::mem::replace(&mut self.array, is_array(token));
        match token {
            Token::Lt if array => self.group().operators += TYPE_UNITS,
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
            Keyword::SELECT | Keyword::VALUES => {
                self.group().end_item();
                self.group().query = true;
            }
            Keyword::FROM | Keyword::WHERE | Keyword::ON | Keyword::GROUP => {
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

    /// Closes the innermost group; true if it was a CASE, which a closing bracket ends too.
    fn close(&mut self) -> bool {
        let Some(group) = self.groups.pop() else { return false };
        let depth = group.depth() + 1;
        let parent = self.group();
        parent.inside = parent.inside.max(depth);
        group.case
    }

    /// The depth if all open groups were closed here.
    fn closed(mut self) -> usize {
        while self.groups.len() > 1 {
            self.close();
        }
        self.deepest()
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
        let Group { case, query, unions, items, .. } = *self;
        *self = Group { case, query, unions, items, ..Group::default() };
    }

    fn item(&self) -> usize {
        self.ors + self.ands + self.joined.max(self.operators) + self.inside
    }

    fn depth(&self) -> usize {
        let query = if self.query { QUERY_UNITS } else { 0 };
        query + self.unions + self.items.max(self.item())
    }
}

fn is_array(token: &Token) -> bool {
    matches!(token, Token::Word(Word { keyword: Keyword::ARRAY, quote_style: None, .. }))
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
    use crate::sql::dialect::RowkeyDialect;
    use sqlparser::tokenizer::Tokenizer;

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
            ("SELECT 1 UNION SELECT 2 UNION SELECT 3", 3 + QUERY_UNITS),
            ("CAST(a AS ARRAY<ARRAY<INT>>)", 3 + 2 * TYPE_UNITS),
        ];
        for (sql, expected) in cases {
            assert_eq!(depth(sql), expected, "{sql}");
        }
    }
}
