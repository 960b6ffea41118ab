//! Commands of the HBase shell, for hints: the statement that does the same.

use sqlparser::tokenizer::Token;

use super::Parser;
use crate::value::name_sql;

impl Parser<'_> {
    /// What to write for the command that the statement is: `scan 't', {STARTROW => 'r1', LIMIT => 5}`. `None`: its first
    /// word is no command of that shell, or no text follows.
    pub(super) fn hbase_hint(&self) -> Option<String> {
        let tokens = (0..).map(|n| &self.inner.token_at(n).token).take_while(|token| **token != Token::EOF);
        let tokens: Vec<&Token> = tokens.collect();
        let (Token::Word(command), table) = (*tokens.first()?, text(tokens.get(1)?)?) else { return None };
        let table = name_sql(table);
        let is_next = |n: usize| matches!(tokens.get(n), Some(Token::Comma));
        let arg = |n: usize| if is_next(2 * n) { text(tokens.get(2 * n + 1)?) } else { None };
        let row = literal(arg(1).unwrap_or("r1"));
        let column = arg(2).map_or_else(|| "a".to_owned(), column);
        Some(match &*command.value.to_ascii_lowercase() {
            "scan" => format!("write {}", scan(&table, &tokens)),
            "get" => match arg(2).is_some() {
                true => format!("write SELECT {column} FROM {table} WHERE rowkey = {row}"),
                false => format!("write SELECT * FROM {table} WHERE rowkey = {row}"),
            },
            "put" => {
                let value = literal(arg(3).unwrap_or("v"));
                format!(
                    "write UPSERT INTO {table} (id, {column}) VALUES ({row}, {value}), where id stands for the columns of \
                     the key"
                )
            }
            "delete" => format!("write UPDATE {table} SET {column} = NULL WHERE rowkey = {row}"),
            "deleteall" => format!("write DELETE FROM {table} WHERE rowkey = {row}"),
            "incr" => format!(
                "write UPDATE {table} SET {column} = {column} + 1 WHERE rowkey = {row}: it counts atomically"
            ),
            "count" => format!("write SELECT count(*) FROM {table}"),
            "drop" => format!("write DROP TABLE {table}"),
            "alter" => format!(
                "write ALTER TABLE {table} ADD a TEXT, or SET (versions = 3), or SET (ttl = '30 days')"
            ),
            "describe" => format!("write DESCRIBE {table}"),
            "truncate" => format!("write TRUNCATE {table}"),
            "exists" => format!("write SHOW TABLES LIKE {}", literal(text(tokens[1])?)),
            "get_splits" => format!("write SHOW REGIONS FROM {table}"),
            "split" => format!("write ALTER TABLE {table} SPLIT INTO 4, or SPLIT ON ('key', ...)"),
            "flush" => "nothing is needed: every commit is on the disk".to_owned(),
            "major_compact" | "compact" => {
                format!("nothing is needed; PURGE {table} deletes expired rows and versions now")
            }
            "disable" | "enable" => {
                "nothing is needed: every table can be read, written and dropped".to_owned()
            }
            _ => return None,
        })
    }
}

/// The SELECT for a scan's options. Those that it has no clause for are passed over.
fn scan(table: &str, tokens: &[&Token]) -> String {
    // A name, `=>` and a value, which may be a list.
    let option = |name: &str| {
        let is = |token: &&Token| matches!(token, Token::Word(word) if word.value.eq_ignore_ascii_case(name));
        let at = tokens.iter().position(is)?;
        matches!(tokens.get(at + 1)?, Token::RArrow).then(|| &tokens[at + 2..])
    };
    let text_of = |name: &str| option(name).and_then(|value| text(value.first()?));
    let columns: Vec<String> = match option("COLUMNS").or_else(|| option("COLUMN")) {
        Some([Token::LBracket, list @ ..]) => {
            let list = list.iter().take_while(|token| ***token != Token::RBracket);
            list.filter_map(|token| text(token)).map(column).collect()
        }
        Some([name, ..]) => text(name).map(column).into_iter().collect(),
        _ => Vec::new(),
    };
    let columns = match columns.is_empty() || columns.iter().any(|column| column == "*") {
        true => "*".to_owned(),
        false => columns.join(", "),
    };
    let is_reversed = matches!(option("REVERSED"), Some([Token::Word(word), ..]) if word.value.eq_ignore_ascii_case("true"));
    let (from, to) = if is_reversed { ("<=", ">") } else { (">=", "<") };
    let mut conditions = Vec::new();
    conditions.extend(text_of("STARTROW").map(|row| format!("rowkey {from} {}", literal(row))));
    conditions.extend(
        text_of("STOPROW").or_else(|| text_of("ENDROW")).map(|row| format!("rowkey {to} {}", literal(row))),
    );
    conditions.extend(text_of("ROWPREFIXFILTER").map(|prefix| {
        let escaped = prefix.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        format!("rowkey LIKE {}", literal(&(escaped + "%")))
    }));
    let mut sql = format!("SELECT {columns} FROM {table}");
    if !conditions.is_empty() {
        sql += &format!(" WHERE {}", conditions.join(" AND "));
    }
    let limit = match option("LIMIT") {
        Some([Token::Number(rows, _), ..]) => Some(rows),
        _ => None,
    };
    if is_reversed {
        sql += " ORDER BY rowkey DESC";
    } else if limit.is_some() {
        sql += " ORDER BY rowkey";
    }
    if let Some(rows) = limit {
        sql += &format!(" LIMIT {rows}");
    }
    sql
}

/// A text of that shell, in either quotes.
fn text(token: &Token) -> Option<&str> {
    match token {
        Token::SingleQuotedString(text) => Some(text),
        Token::Word(word) if word.quote_style.is_some() => Some(&word.value),
        _ => None,
    }
}

/// `f:a` is column a of family f; a family alone is all its columns.
fn column(name: &str) -> String {
    match name.split_once(':') {
        Some((_, column)) if !column.is_empty() => name_sql(column),
        _ => "*".to_owned(),
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
