//! Our SQL dialect for sqlparser: PostgreSQL's, without the operators and the reserved names that surprise
//! users of SQLite and DataFusion.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{Expr, Query, UnaryOperator, Value};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Word};

/// The dialect of one parse.
///
/// Differences from sqlparser's PostgreSQL:
/// - no geometric and no user-defined operators: `a<-1` is `a < -1`, and `?` is a parameter;
/// - a blank is one in all of Unicode, such as the no-break space of a web page;
/// - `user`, `floor`, `interval` and the like are names unless called;
/// - `SELECT` needs something to select; `* EXCLUDE (..)`, `ORDER BY ALL`, `LIMIT 5, 10`, `FROM (t)` work;
/// - `-2 ^ 2` is 4, and `NOT EXISTS (..) = b` is `NOT (EXISTS (..) = b)`;
/// - `a IS DISTINCT FROM b AND c` ends before the AND, and `a ISNULL` is `a IS NULL`;
/// - a budget of steps: sqlparser tries some forms twice at each level of nesting, so a hostile statement
///   could cost it 2^depth steps.
#[derive(Debug)]
pub(super) struct RowkeyDialect {
    postgres: PostgreSqlDialect,
    steps: Cell<usize>,
    as_of: bool,
}

impl RowkeyDialect {
    /// For a statement of at most `tokens` tokens; `as_of`: it contains [AS OF](super::as_of) clauses.
    pub(super) fn for_tokens(tokens: usize, as_of: bool) -> Self {
        RowkeyDialect { postgres: PostgreSqlDialect {}, steps: Cell::new(2_000 + 4 * tokens), as_of }
    }

    /// Counts one expression; an error when the budget is spent.
    fn spend(&self) -> Result<(), ParserError> {
        let left = self.steps.get().checked_sub(1).ok_or(ParserError::RecursionLimitExceeded)?;
        self.steps.set(left);
        Ok(())
    }

    /// Reads what follows a sign, which binds closer than `^`.
    fn signed(&self, parser: &mut Parser, op: UnaryOperator) -> Result<Expr, ParserError> {
        parser.advance_token();
        let operand = parser.parse_subexpr(self.prec_value(Precedence::Caret))?;
        Ok(Expr::UnaryOp { op, expr: Box::new(operand) })
    }

    /// Reads NOT EXISTS, of which sqlparser takes the NOT to bind closer than a comparison.
    fn exists_not(&self, parser: &mut Parser) -> Result<Expr, ParserError> {
        parser.advance_token();
        Ok(match parser.parse_subexpr(self.prec_value(Precedence::UnaryNot))? {
            Expr::Exists { subquery, negated } => Expr::Exists { subquery, negated: !negated },
            operand => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(operand) },
        })
    }
}

impl Default for RowkeyDialect {
    fn default() -> Self {
        Self::for_tokens(0, false)
    }
}

/// Functions with a grammar of their own; without `(` their names are plain names.
const SPECIAL_CALLS: &[Keyword] = &[
    Keyword::CEIL,
    Keyword::CONVERT,
    Keyword::EXTRACT,
    Keyword::FLOOR,
    Keyword::OVERLAY,
    Keyword::SUBSTR,
    Keyword::SUBSTRING,
    Keyword::TRIM,
    Keyword::USER,
];

/// Operators of other databases, to be refused; sqlparser cannot read some of them.
const FOREIGN_OPERATORS: &[Keyword] =
    &[Keyword::DIV, Keyword::MATCH, Keyword::MEMBER, Keyword::OVERLAPS, Keyword::REGEXP, Keyword::RLIKE];

impl Dialect for RowkeyDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    /// Reads literals and plain names directly, which sqlparser would first try as types, and names such as
    /// `floor`, which it would take for calls.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if let Err(e) = self.spend() {
            return Some(Err(e));
        }
        let [first, second] = parser.peek_tokens_ref::<2>();
        match &first.token {
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {
                Some(parser.parse_value().map(Expr::Value))
            }
            Token::Word(word) if is_name(word, &second.token) => {
                Some(parser.parse_identifier().map(Expr::Identifier))
            }
            Token::Word(word) if word.keyword == Keyword::TRIM => trim_of_blanks(parser),
            Token::Word(word)
                if word.keyword == Keyword::NOT
                    && matches!(&second.token, Token::Word(next) if next.keyword == Keyword::EXISTS) =>
            {
                Some(self.exists_not(parser))
            }
            Token::Minus => Some(self.signed(parser, UnaryOperator::Minus)),
            Token::Plus => Some(self.signed(parser, UnaryOperator::Plus)),
            _ => None,
        }
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        let left = || Box::new(left.clone());
        let right = |parser: &mut Parser| parser.parse_subexpr(self.prec_value(Precedence::Is)).map(Box::new);
        if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            return Some(right(parser).map(|right| Expr::IsDistinctFrom(left(), right)));
        }
        if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            return Some(right(parser).map(|right| Expr::IsNotDistinctFrom(left(), right)));
        }
        for (words, negated) in [
            (&[Keyword::BETWEEN, Keyword::SYMMETRIC][..], false),
            (&[Keyword::NOT, Keyword::BETWEEN, Keyword::SYMMETRIC], true),
        ] {
            if parser.parse_keywords(words) {
                return Some(parser.parse_between(*left(), negated).map(symmetric));
            }
        }
        for words in [
            &[Keyword::BETWEEN, Keyword::ASYMMETRIC][..],
            &[Keyword::NOT, Keyword::BETWEEN, Keyword::ASYMMETRIC],
        ] {
            if parser.parse_keywords(words) {
                return Some(parser.parse_between(*left(), words.len() == 3));
            }
        }
        for (words, negated) in [(&[Keyword::IN][..], false), (&[Keyword::NOT, Keyword::IN], true)] {
            if parser.parse_keywords(words) {
                return Some(in_list(parser, left(), negated));
            }
        }
        match parser.peek_token_ref() {
            next if is_isnull(&next.token) => {
                parser.advance_token();
                Some(Ok(Expr::IsNull(left())))
            }
            next if matches!(&next.token, Token::Word(word) if FOREIGN_OPERATORS.contains(&word.keyword)) => {
                Some(parser.expected_ref("an operator", next))
            }
            _ => None,
        }
    }

    // A special form that fails is an error: trying it again as a name would double the work at each level of
    // nesting, and `parse_prefix` has told names and calls apart already.
    fn is_reserved_for_identifier(&self, _: Keyword) -> bool {
        true
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"'
    }

    fn identifier_quote_style(&self, _: &str) -> Option<char> {
        Some('"')
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        self.postgres.is_identifier_start(ch) && !ch.is_whitespace()
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        self.postgres.is_identifier_part(ch) && !ch.is_whitespace()
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        if is_isnull(&parser.peek_token_ref().token) {
            return Some(Ok(self.prec_value(Precedence::Is)));
        }
        self.postgres.get_next_precedence(parser)
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        self.postgres.prec_value(prec)
    }

    /// In the INSERT `SELECT 'x' ON CONFLICT ...`, ON is no alias.
    fn is_column_alias(&self, word: &Keyword, parser: &mut Parser) -> bool {
        *word != Keyword::ON && self.postgres.is_column_alias(word, parser)
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_table_versioning(&self) -> bool {
        self.as_of
    }
}

/// Marks a BETWEEN SYMMETRIC, for which sqlparser has no node, with `Expr::Prior`;
/// [`normalise`](super::rewrite::normalise) expands it.
fn symmetric(mut between: Expr) -> Expr {
    if let Expr::Between { low, .. } = &mut between {
        let bound = std::mem::replace(&mut **low, Expr::value(Value::Null));
        **low = Expr::Prior(Box::new(bound));
    }
    between
}

/// What follows IN: of `((SELECT 1), 2)`, sqlparser takes the first element for all of it. It is parsed once, as it may
/// be deep, unless it is a set operation that begins with parentheses.
fn in_list(parser: &mut Parser, expr: Box<Expr>, negated: bool) -> Result<Expr, ParserError> {
    let first = match parser.peek_tokens_ref::<2>().map(|next| &next.token) {
        [Token::LParen, Token::LParen] => parser.maybe_parse(|parser| {
            parser.expect_token(&Token::LParen)?;
            let first = parser.parse_expr()?;
            match parser.peek_token_ref().token {
                Token::Comma | Token::RParen => Ok(first),
                _ => Err(ParserError::ParserError("no list".to_owned())),
            }
        })?,
        _ => None,
    };
    let Some(first) = first else { return parser.parse_in(*expr, negated) };
    let mut list = vec![first];
    if parser.consume_token(&Token::Comma) {
        list.extend(parser.parse_comma_separated(Parser::parse_expr)?);
    }
    parser.expect_token(&Token::RParen)?;
    if let [only] = &list[..]
        && let Some(subquery) = subquery_of(only)
    {
        return Ok(Expr::InSubquery { expr, subquery, negated });
    }
    Ok(Expr::InList { expr, list, negated })
}

/// The query in parentheses, if the expression is nothing more.
fn subquery_of(expr: &Expr) -> Option<Box<Query>> {
    match expr {
        Expr::Subquery(query) => Some(query.clone()),
        Expr::Nested(expr) => subquery_of(expr),
        _ => None,
    }
}

/// `TRIM(LEADING FROM s)`, where sqlparser requires the characters to trim.
fn trim_of_blanks(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let [_, _, third, fourth] = parser.peek_tokens_ref::<4>();
    let is = |token: &Token, keywords: &[Keyword]| matches!(token, Token::Word(word) if keywords.contains(&word.keyword));
    let sides = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];
    let has_side = is(&third.token, &sides) && is(&fourth.token, &[Keyword::FROM]);
    if !has_side && !is(&third.token, &[Keyword::FROM]) {
        return None;
    }
    parser.advance_token();
    parser.advance_token();
    let trim_where = has_side.then(|| parser.parse_trim_where()).transpose();
    parser.advance_token();
    let trimmed = trim_where.and_then(|trim_where| {
        let expr = Box::new(parser.parse_expr()?);
        parser.expect_token(&Token::RParen)?;
        Ok(Expr::Trim { expr, trim_where, trim_what: None, trim_characters: None })
    });
    Some(trimmed)
}

/// `ISNULL`, for which sqlparser has no keyword.
fn is_isnull(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("isnull"))
}

/// Is `word`, followed by `next`, a name of a column or of a qualifier, whatever else the word can mean?
fn is_name(word: &Word, next: &Token) -> bool {
    let called = matches!(next, Token::LParen);
    match word.keyword {
        Keyword::NoKeyword => !called && !matches!(next, Token::SingleQuotedString(_)),
        Keyword::INTERVAL => !matches!(next, Token::SingleQuotedString(_) | Token::Number(..) | Token::Minus),
        keyword => !called && SPECIAL_CALLS.contains(&keyword),
    }
}
