//! What is written behind a `*`: EXCLUDE (or EXCEPT) and REPLACE, of a select list and of RETURNING.
//!
//! DataFusion writes out the `*` of a query. It compares names as they are written and passes over a REPLACE of no
//! column, so names are folded and looked up here before.

use sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, ObjectName, ReplaceSelectElement, SelectItem,
    SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::rewrite::{ROWKEY, is_rowkey};
use super::{name_of, span_of_name};
use crate::error::{Error, Result, sqlstate};
use crate::suggest::with_suggestion;

/// Respells `* EXCEPT (a)`, as BigQuery and Spark have it, as `* EXCLUDE (a)`.
pub(super) fn respell(tokens: &mut [TokenWithSpan]) {
    let starts_query = |token: &Token| match token {
        Token::Word(word) => matches!(word.keyword, Keyword::SELECT | Keyword::VALUES | Keyword::WITH),
        token => *token == Token::LParen,
    };
    for at in 1..tokens.len().saturating_sub(2) {
        if let [before, except, open, first] = &mut tokens[at - 1..at + 3]
            && before.token == Token::Mul
            && matches!(&except.token, Token::Word(word) if word.keyword == Keyword::EXCEPT)
            && open.token == Token::LParen
            && !starts_query(&first.token)
        {
            except.token = Token::make_keyword("EXCLUDE");
        }
    }
}

/// Is it a `*`, of all relations or of one?
pub(super) fn is_star(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// The options after a `*` in a select list.
pub(super) fn star_options(item: &SelectItem) -> Option<&WildcardAdditionalOptions> {
    match item {
        SelectItem::Wildcard(options) => Some(options),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options) => {
            Some(options)
        }
        _ => None,
    }
}

/// Is there more than the `*`?
pub(super) fn has_options(options: &WildcardAdditionalOptions) -> bool {
    options.opt_exclude.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some()
        || options.opt_ilike.is_some()
}

pub(super) fn excludes_rowkey(options: &WildcardAdditionalOptions) -> bool {
    excluded(options).any(is_rowkey)
}

/// What `*` stands for: these columns (of `table`, if one is named), without those that EXCLUDE names, and with the
/// values of REPLACE. Errors: one of them names no column.
pub fn expanded_star(
    options: &WildcardAdditionalOptions,
    columns: &[String],
    table: Option<&str>,
) -> Result<Vec<SelectItem>> {
    check_names(options, columns)?;
    let item = |column: &String| {
        let name = Ident::with_quote('"', column);
        let expr = match table {
            Some(table) => Expr::CompoundIdentifier(vec![Ident::with_quote('"', table), name]),
            None => Expr::Identifier(name),
        };
        (column.clone(), SelectItem::UnnamedExpr(expr))
    };
    Ok(chosen(options, columns.iter().map(item)))
}

/// These columns, each under its name, without those that EXCLUDE names, and with the values of REPLACE.
pub(super) fn chosen(
    options: &WildcardAdditionalOptions,
    columns: impl IntoIterator<Item = (String, SelectItem)>,
) -> Vec<SelectItem> {
    let is_shown = |(column, _): &(String, _)| !excluded(options).any(|name| name_of(name) == *column);
    let item = |(column, item): (String, SelectItem)| {
        let instead = replaced(options).find(|item| name_of(&item.column_name) == column);
        instead.map_or(item, |instead| SelectItem::ExprWithAlias {
            expr: instead.expr.clone(),
            alias: Ident::with_quote('"', column),
        })
    };
    columns.into_iter().filter(is_shown).map(item).collect()
}

/// Errors: EXCLUDE or REPLACE names none of these columns.
pub(super) fn check_names(options: &WildcardAdditionalOptions, columns: &[String]) -> Result<()> {
    let mut names = excluded(options).chain(replaced(options).map(|item| &item.column_name));
    names.find(|name| !columns.contains(&name_of(name))).map_or(Ok(()), |name| {
        let error = Error::invalid(format!("there is no column \"{}\"", name_of(name)))
            .state(sqlstate::UNDEFINED_COLUMN)
            .at(span_of_name(name));
        let known = format!("columns here are {}", columns.join(", "));
        Err(with_suggestion(error, &name_of(name), columns.iter().map(String::as_str), &known))
    })
}

/// Folds the names of EXCLUDE and REPLACE.
pub(super) fn fold_names(options: &mut WildcardAdditionalOptions) {
    for name in excluded_names_mut(options).iter_mut() {
        if let [part] = &name.0[..]
            && let Some(column) = part.as_ident()
        {
            *name = folded(column);
        }
    }
    for item in options.opt_replace.iter_mut().flat_map(|replace| &mut replace.items) {
        item.column_name.value = name_of(&item.column_name);
    }
}

/// Adds `EXCLUDE (rowkey)` to what is excluded already.
pub(super) fn excluding_rowkey(mut options: WildcardAdditionalOptions) -> WildcardAdditionalOptions {
    if excludes_rowkey(&options) {
        return options;
    }
    let mut names = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    names.push(folded(&Ident::new(ROWKEY)));
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
    options
}

/// The name as DataFusion compares it: literally.
pub(super) fn folded(column: &Ident) -> ObjectName {
    ObjectName::from(vec![Ident::new(name_of(column))])
}

fn excluded(options: &WildcardAdditionalOptions) -> impl Iterator<Item = &Ident> {
    let names = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &[],
    };
    names.iter().filter_map(|name| name.0.last()?.as_ident())
}

fn excluded_names_mut(options: &mut WildcardAdditionalOptions) -> &mut [ObjectName] {
    match &mut options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_mut(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &mut [],
    }
}

fn replaced(options: &WildcardAdditionalOptions) -> impl Iterator<Item = &ReplaceSelectElement> {
    options.opt_replace.iter().flat_map(|replace| &replace.items).map(|item| &**item)
}
