//! Tab completion: commands, names of the database, SQL keywords.

use std::collections::BTreeSet;

use rustyline::Context;
use rustyline::completion::{Completer, FilenameCompleter, Pair};

use super::commands::{COMMANDS, find, is_command};
use super::keywords::KEYWORDS;
use super::tokens::{Token, TokenKind, is_name_part, tokens};
use super::variables::quote;
use crate::engine::Database;

/// Completes words at the prompt.
pub struct Completion {
    db: Database,
    files: FilenameCompleter,
}

impl Completion {
    /// Offers the names of `db`.
    pub fn new(db: Database) -> Self {
        Completion { db, files: FilenameCompleter::new() }
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
        if !before.is_empty() || !is_command(typed) {
            let start = typed.rfind(|c| !is_name_part(c)).map_or(0, |at| at + last_char_len(&typed[..=at]));
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

    /// Names and keywords that begin with `word`: columns of the tables that `sql` mentions (or of all), and
    /// tables; after FROM and the like, only tables. `before`: the part of `sql` before the word.
    fn sql_words(&self, sql: &str, before: &str, word: &str) -> BTreeSet<String> {
        let tables = self.db.table_names();
        let mentioned: BTreeSet<String> =
            tokens(sql).filter(|t| t.kind == TokenKind::Word).map(|t| t.text.to_lowercase()).collect();
        let mut sources: Vec<&String> = tables.iter().filter(|table| mentioned.contains(*table)).collect();
        if sources.is_empty() {
            sources = tables.iter().collect();
        }
        let is_blank = |t: &Token<'_>| matches!(t.kind, TokenKind::Space | TokenKind::Comment);
        if tokens(before).filter(|t| !is_blank(t)).last().is_some_and(|t| names_a_table(t.text)) {
            let tables = tables.iter().cloned().chain(self.db.index_names()).chain(self.db.view_names());
            let tables: BTreeSet<String> =
                tables.filter(|name| starts_with(name, word)).map(|name| written(&name)).collect();
            if !tables.is_empty() {
                return tables;
            }
        }
        let columns = sources.into_iter().flat_map(|table| self.db.column_names(table));
        let names = columns.chain(tables.iter().cloned()).chain(self.db.index_names());
        let mut words: BTreeSet<String> =
            names.filter(|name| starts_with(name, word)).map(|name| written(&name)).collect();
        // With an empty word, all keywords would match and bury the names.
        if !word.is_empty() {
            words.extend(KEYWORDS.iter().filter(|k| starts_with(k, word)).map(|k| in_case_of(word, k)));
        }
        words
    }
}

/// Is the word followed by a table?
fn names_a_table(word: &str) -> bool {
    ["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "DESCRIBE"].iter().any(|w| w.eq_ignore_ascii_case(word))
}

fn command_words(typed: &str) -> BTreeSet<String> {
    let (mark, name) = typed.split_at(1);
    let names = COMMANDS.iter().flat_map(|spec| spec.names);
    names.filter(|n| n.starts_with(name)).map(|n| format!("{mark}{n}")).collect()
}

fn pairs(words: BTreeSet<String>) -> Vec<Pair> {
    words.into_iter().map(|word| Pair { display: word.clone(), replacement: word }).collect()
}

fn last_char_len(text: &str) -> usize {
    text.chars().next_back().map_or(0, char::len_utf8)
}

fn starts_with(name: &str, word: &str) -> bool {
    name.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// A name as written in SQL.
fn written(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_lowercase() || c.is_ascii_digit() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain { name.to_owned() } else { quote(name, '"') }
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
    fn keywords_follow_the_case_typed() {
        assert_eq!(offers("", "sel"), (0, vec!["select".to_owned()]));
        assert_eq!(offers("", "SEL"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(offers("SELECT 1\n", "LIM"), (0, vec!["LIMIT".to_owned()]));
        assert_eq!(offers("", "x é.wher"), (5, vec!["where".to_owned()]));
    }

    #[test]
    fn commands_complete_at_the_start_only() {
        assert_eq!(offers("", ".tab"), (0, vec![".tables".to_owned()]));
        assert_eq!(offers("", "  \\d").1, ["\\d", "\\default", "\\describe", "\\df", "\\di", "\\dt", "\\dv"]);
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
        assert_eq!(offers("select * from part where par"), ["parent", "part", "partition"]);
    }

    #[test]
    fn names_are_written_as_sql_needs_them() {
        assert_eq!(written("order_id2"), "order_id2");
        assert_eq!(written("My Table"), "\"My Table\"");
        assert_eq!(written("2a"), "\"2a\"");
    }
}
