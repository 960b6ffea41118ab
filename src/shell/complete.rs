//! Tab completion: commands, names of the database, functions, SQL keywords.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use rustyline::Context;
use rustyline::completion::{Completer, FilenameCompleter, Pair};

use super::commands::{COMMANDS, find, is_command};
use super::keywords::{KEYWORDS, is_keyword};
use super::tokens::{Token, TokenKind, is_name_part, tokens};
use crate::engine::Database;
use crate::sql::STATEMENTS;
use crate::value::{is_reserved, quoted_name};

/// Completes words at the prompt.
pub struct Completion {
    db: Database,
    files: FilenameCompleter,
    /// Names of the functions, from the first need.
    functions: OnceCell<Vec<String>>,
}

impl Completion {
    /// Offers the names of `db`.
    pub fn new(db: Database) -> Self {
        Completion { db, files: FilenameCompleter::new(), functions: OnceCell::new() }
    }

    /// Start of the word before `pos`, and its completions. `before`: the lines of the statement above this
    /// one.
    pub fn complete(
        &self,
        before: &str,
        line: &str,
        pos: usize,
        context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..pos];
        if is_in_file_name(&format!("{before}{typed}")) {
            return self.files.complete(line, pos, context);
        }
        if !before.is_empty() || !is_command(typed) {
            let start = typed.trim_end_matches(is_name_part).len();
            let (sql, before) = (format!("{before}{line}"), format!("{before}{}", &typed[..start]));
            return Ok((start, pairs(self.sql_words(&sql, &before, &typed[start..]))));
        }
        let command = typed.trim_start();
        let indent = typed.len() - command.len();
        match command.split_once(char::is_whitespace) {
            None => Ok((indent, pairs(command_words(command)))),
            Some((word, _)) if find(word).is_some_and(|spec| spec.takes_file) => {
                self.files.complete(line, pos, context)
            }
            Some((word, argument)) => {
                let argument = argument.trim_start();
                let mut words: Vec<String> =
                    find(word).map(|spec| spec.choices().collect()).unwrap_or_default();
                if words.is_empty() {
                    let names = self.db.table_names().into_iter().chain(self.db.index_names());
                    words = names.map(|name| written(&name)).collect();
                }
                words.retain(|word| starts_with(word, argument));
                Ok((pos - argument.len(), pairs(words.into_iter().collect())))
            }
        }
    }

    /// What may stand where `word` begins: a verb at the start, behind `t.` the columns of `t`, behind words that are
    /// followed by the name of something such names; elsewhere the columns and aliases of the tables that `sql`
    /// mentions (or, if none, of all), functions and keywords. `before`: the part of `sql` before the word.
    fn sql_words(&self, sql: &str, before: &str, word: &str) -> BTreeSet<String> {
        let begins = |names: &BTreeSet<String>| -> BTreeSet<String> {
            names.iter().filter(|name| starts_with(name, word)).map(|name| written(name)).collect()
        };
        let keywords = |of: &[&str]| -> BTreeSet<String> {
            of.iter().filter(|k| starts_with(k, word)).map(|k| in_case_of(word, k)).collect()
        };
        let before: Vec<Token<'_>> = significant(before).collect();
        if before.is_empty() || before.last().is_some_and(|token| token.is_symbol(";")) {
            return keywords(STATEMENTS);
        }
        let tables: BTreeSet<String> = self.db.table_names().into_iter().collect();
        let indexes: BTreeSet<String> = self.db.index_names().into_iter().collect();
        let views: BTreeSet<String> = self.db.view_names().into_iter().collect();
        let relations: BTreeSet<String> =
            [&tables, &indexes, &views].into_iter().flatten().cloned().collect();
        let named = begins(&match named_next(&before) {
            Some(Named::Relation) => relations.clone(),
            Some(Named::Table) => tables,
            Some(Named::Index) => indexes,
            Some(Named::View) => views,
            Some(Named::Setting) => Database::setting_names().collect(),
            Some(Named::Shown) => Database::shown_names().collect(),
            None => BTreeSet::new(),
        });
        if !named.is_empty() {
            return named;
        }
        let qualifier = match &before[..] {
            [.., name, point] if point.is_symbol(".") => Some(name_of(name)),
            _ => None,
        };
        let mentioned = mentioned(sql, &relations);
        let is_meant = |m: &&Mentioned| {
            qualifier.as_ref().is_none_or(|qualifier| m.alias.as_ref().unwrap_or(&m.name) == qualifier)
        };
        let mut names = self.columns(mentioned.iter().filter(is_meant).map(|m| &m.name));
        if names.is_empty() {
            names = self.columns(&relations);
            names.extend(relations.into_iter().filter(|_| qualifier.is_none()));
        }
        if qualifier.is_some() && !begins(&names).is_empty() {
            return begins(&names);
        }
        names.extend(mentioned.into_iter().filter_map(|m| m.alias));
        let mut words = begins(&names);
        // With an empty word, all of these would match and bury the names.
        if !word.is_empty() {
            words.extend(keywords(KEYWORDS));
            let functions = self.functions.get_or_init(|| self.db.function_names());
            words.extend(functions.iter().filter(|f| starts_with(f, word)).map(|f| format!("{f}(")));
        }
        words
    }

    fn columns<'a>(&self, tables: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
        tables.into_iter().flat_map(|table| self.db.column_names(table)).collect()
    }
}

/// Tokens but blanks and comments.
fn significant(sql: &str) -> impl Iterator<Item = Token<'_>> {
    tokens(sql).filter(|token| !matches!(token.kind, TokenKind::Space | TokenKind::Comment))
}

/// A table, index table or view in a text.
struct Mentioned {
    name: String,
    alias: Option<String>,
}

/// Those of the relations that a text mentions.
fn mentioned(sql: &str, relations: &BTreeSet<String>) -> Vec<Mentioned> {
    let tokens: Vec<Token<'_>> = significant(sql).collect();
    let found = tokens.iter().enumerate().map(|(at, token)| (at, name_of(token)));
    let found = found.filter(|(_, name)| relations.contains(name));
    let alias = |at: usize| {
        let is_as = tokens.get(at + 1).is_some_and(|token| token.text.eq_ignore_ascii_case("AS"));
        let behind = tokens.get(at + 1 + usize::from(is_as))?;
        let is_name = match behind.kind {
            TokenKind::Word => !is_keyword(behind.text),
            kind => kind == TokenKind::QuotedName,
        };
        is_name.then(|| name_of(behind))
    };
    found.map(|(at, name)| Mentioned { name, alias: alias(at) }).collect()
}

/// The name that a token writes.
fn name_of(token: &Token<'_>) -> String {
    match token.kind {
        TokenKind::QuotedName => token.text.trim_matches(['"', '`', '[', ']']).replace("\"\"", "\""),
        _ => token.text.to_lowercase(),
    }
}

/// What a name is the name of.
#[derive(Clone, Copy)]
enum Named {
    /// A table, index table or view.
    Relation,
    Table,
    Index,
    View,
    /// What SET takes.
    Setting,
    /// What SHOW takes.
    Shown,
}

/// What the name behind these tokens is the name of, if one has to follow.
fn named_next(before: &[Token<'_>]) -> Option<Named> {
    let before = match before {
        [rest @ .., a, b] if is_word(a, &["IF"]) && is_word(b, &["EXISTS"]) => rest,
        all => all,
    };
    let (first, last) = (before.first()?, before.last()?);
    let is = |words: &[&str]| is_word(last, words);
    match before {
        [_] if is(&["SET", "RESET"]) => return Some(Named::Setting),
        [_] if is(&["SHOW"]) => return Some(Named::Shown),
        [_] if is(&["UPDATE", "DESCRIBE", "LINT", "ANALYZE", "COPY"]) => return Some(Named::Relation),
        _ => {}
    }
    // `CREATE TABLE` is followed by a name that nothing has yet.
    let has_new = is_word(first, &["CREATE"]);
    match () {
        () if is(&["FROM", "JOIN", "INTO", "USING", "REFERENCES", "LAYOUT"]) => Some(Named::Relation),
        () if is(&["TABLE"]) && !has_new => Some(Named::Table),
        () if is(&["INDEX"]) && !has_new => Some(Named::Index),
        () if is(&["VIEW"]) && !has_new => Some(Named::View),
        () if is(&["ON"]) && has_new => Some(Named::Table),
        () if last.is_symbol(",") && is_among_relations(before) => Some(Named::Relation),
        () => None,
    }
}

/// Does the text end in the list behind a FROM?
fn is_among_relations(before: &[Token<'_>]) -> bool {
    let mut depth = 0;
    for token in before.iter().rev() {
        match token.text {
            ")" => depth += 1,
            "(" if depth == 0 => return false,
            "(" => depth -= 1,
            _ if depth == 0 && is_word(token, &["FROM"]) => return true,
            _ if depth == 0 && is_word(token, &["SELECT", "WHERE", "BY", "HAVING", "SET", "VALUES"]) => {
                return false;
            }
            _ => {}
        }
    }
    false
}

/// Is the token one of these?
fn is_word(token: &Token<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(token.text))
}

/// Does the text end within the quotes of `COPY t FROM '..`, or of another statement with a file?
fn is_in_file_name(sql: &str) -> bool {
    let tokens: Vec<Token<'_>> = significant(sql).collect();
    let [first, .., from, file] = &tokens[..] else { return false };
    let is_open = file.text.starts_with('\'') && (file.text.len() == 1 || !file.text.ends_with('\''));
    is_open && is_word(first, &["COPY", "BACKUP"]) && is_word(from, &["FROM", "TO"])
}

fn command_words(typed: &str) -> BTreeSet<String> {
    let (mark, name) = typed.split_at(1);
    let names = COMMANDS.iter().flat_map(|spec| spec.names);
    names.filter(|n| n.starts_with(name)).map(|n| format!("{mark}{n}")).collect()
}

fn pairs(words: BTreeSet<String>) -> Vec<Pair> {
    words.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()
}

fn starts_with(name: &str, word: &str) -> bool {
    name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// A name as written in SQL.
fn written(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain && !is_reserved(name) { name.to_owned() } else { quoted_name(name) }
}

/// A keyword in the case of the typed word.
fn in_case_of(word: &str, keyword: &str) -> String {
    if word.contains(char::is_lowercase) { keyword.to_lowercase() } else { keyword.to_owned() }
}

#[cfg(test)]
mod tests {
    use rustyline::history::DefaultHistory;

    use super::*;

    fn offers(before: &str, line: &str) -> (usize, Vec<String>) {
        let completion = Completion::new(Database::in_memory().unwrap());
        let history = DefaultHistory::new();
        let (start, pairs) = completion.complete(before, line, line.len(), &Context::new(&history)).unwrap();
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    #[test]
    fn a_statement_begins_with_a_verb() {
        assert_eq!(offers("", "de").1, ["deallocate", "delete", "describe"]);
        assert_eq!(offers("", "SELECT 1; UP").1, ["UPDATE", "UPSERT"]);
        assert!(STATEMENTS.iter().all(|verb| is_keyword(verb)));
    }

    #[test]
    fn keywords_follow_the_case_typed() {
        assert_eq!(offers("", "sel"), (0, vec!["select".to_owned()]));
        assert_eq!(offers("", "SEL"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(offers("SELECT 1\n", "LIM"), (0, vec!["LIMIT".to_owned()]));
        assert_eq!(offers("", "x é.wher"), (5, vec!["where".to_owned()]));
        assert_eq!(offers("", "'→wher"), (4, vec!["where".to_owned()]));
    }

    #[test]
    fn commands_complete_at_the_start_only() {
        assert_eq!(offers("", ".tab"), (0, vec![".tables".to_owned()]));
        assert_eq!(
            offers("", "  \\d").1,
            ["\\d", "\\default", "\\describe", "\\df", "\\di", "\\dt", "\\dump", "\\dv"]
        );
        assert_eq!(offers("SELECT\n", ".tab").1, ["table", "tables"]);
    }

    #[test]
    fn arguments_of_a_few_words_are_offered() {
        assert_eq!(
            offers("", ".mode "),
            (6, vec!["csv".into(), "jsonl".into(), "markdown".into(), "table".into()])
        );
        assert_eq!(offers("", "\\x o"), (3, vec!["off".into(), "on".into()]));
        assert_eq!(offers("", ".heatmap t"), (9, vec![]));
    }

    #[test]
    fn tables_stand_behind_from() {
        let db = Database::in_memory().unwrap();
        db.execute("CREATE TABLE part (id INT PRIMARY KEY, parent INT)").unwrap();
        db.execute("CREATE VIEW parts AS SELECT id FROM part").unwrap();
        let completion = Completion::new(db);
        let history = DefaultHistory::new();
        let offers = |line: &str| {
            let (_, pairs) = completion.complete("", line, line.len(), &Context::new(&history)).unwrap();
            pairs.into_iter().map(|pair| pair.replacement).collect::<Vec<_>>()
        };
        assert_eq!(offers("select * from "), ["part", "parts"]);
        assert_eq!(offers("lint pa"), ["part", "parts"]);
        assert_eq!(offers("select * from part, "), ["part", "parts"]);
        assert_eq!(offers("select id, "), ["id", "parent", "part", "parts"]);
        assert_eq!(offers("select * from part where "), ["id", "parent"]);
        assert_eq!(offers("select * from part where par"), ["parent", "partition"]);
        assert_eq!(offers("insert into part ("), ["id", "parent"]);
        assert_eq!(offers("drop table if exists "), ["part"]);
        assert_eq!(offers("drop view "), ["parts"]);
        assert_eq!(offers("create index i on "), ["part"]);
        assert_eq!(offers("create index i on part (pare"), ["parent"]);
        assert_eq!(offers("select * from part p where p."), ["id", "parent"]);
        assert_eq!(offers("select * from part AS \"P\" where \"P\".p"), ["parent"]);
        assert_eq!(offers("select p."), ["id", "parent"]);
        assert_eq!(offers("select * from part older where old"), ["older"]);
        assert_eq!(offers("select md5_"), ["md5_bucket("]);
    }

    #[test]
    fn settings_stand_behind_set_and_show() {
        assert_eq!(offers("", "SET max_g").1, ["max_gets"]);
        assert_eq!(offers("", "show t").1, ["tables", "time_zone", "traffic"]);
        assert!(!offers("", "UPDATE t SET max_g").1.contains(&"max_gets".to_owned()));
    }

    #[test]
    fn files_stand_in_the_quotes_of_copy() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("orders.csv"), "").unwrap();
        let folder = directory.path().display();
        let (_, files) = offers("", &format!("COPY t FROM '{folder}/ord"));
        assert_eq!(files, [format!("{folder}/orders.csv")]);
        let (_, words) = offers("", &format!("SELECT '{folder}/ord"));
        assert!(!words.iter().any(|word| word.ends_with("orders.csv")), "{words:?}");
    }

    #[test]
    fn names_are_written_as_sql_needs_them() {
        assert_eq!(written("order_id2"), "order_id2");
        assert_eq!(written("My Table"), "\"My Table\"");
        assert_eq!(written("2a"), "\"2a\"");
    }
}
