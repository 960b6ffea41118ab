//! Identifiers in SQL.

/// Words that must be quoted as names, because they would start a clause.
const RESERVED: &[&str] = &[
    "ALL",
    "AND",
    "AS",
    "CASE",
    "CAST",
    "CHECK",
    "CONSTRAINT",
    "CREATE",
    "DEFAULT",
    "DISTINCT",
    "ELSE",
    "EXCEPT",
    "FOREIGN",
    "FROM",
    "GROUP",
    "HAVING",
    "IN",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "LIMIT",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "PRIMARY",
    "REFERENCES",
    "RETURNING",
    "SELECT",
    "SET",
    "TABLE",
    "THEN",
    "UNION",
    "UNIQUE",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];

/// A name as SQL text: quoted if it must be.
pub fn name_sql(name: &str) -> String {
    let mut chars = name.chars();
    let plain = chars.next().is_some_and(|c| c.is_ascii_lowercase() || c == '_')
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !is_reserved(name);
    if plain { name.to_owned() } else { quoted_name(name) }
}

/// A name as SQL text, in quotes.
pub fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The word must be quoted to be a name.
pub fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|reserved| word.eq_ignore_ascii_case(reserved))
}
