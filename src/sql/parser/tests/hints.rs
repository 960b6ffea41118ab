//! What to write in place of the SQL of other databases, and of the HBase shell's commands.

use crate::sql::parse;

/// Statements, the part that the error points at, and its hint.
const HINTS: &[(&str, &str, &str)] = &[
    // Types.
    ("CREATE TABLE t (ip inet)", "inet", "write TEXT"),
    ("CREATE TABLE t (price MONEY)", "MONEY", "write DECIMAL(19, 2)"),
    ("CREATE TABLE t (n TINYINT UNSIGNED)", "TINYINT UNSIGNED", "write SMALLINT CHECK (n >= 0)"),
    ("CREATE TABLE t (n UNSIGNED_LONG)", "UNSIGNED_LONG", "write BIGINT CHECK (n >= 0)"),
    (
        "CREATE TABLE t (tags text[])",
        "text[]",
        "write tags JSON, for values such as '[1, 2]'; or keep them in a table with a row for each",
    ),
    (
        "CREATE TABLE t (tags VARCHAR ARRAY)",
        "VARCHAR ARRAY",
        "write tags JSON, for values such as '[1, 2]'; or keep them in a table with a row for each",
    ),
    ("CREATE TABLE t (kind ENUM('x', 'y'))", "ENUM('x', 'y')", "write kind TEXT CHECK (kind IN ('x', 'y'))"),
    ("CREATE TABLE t (kind ENUM)", "ENUM", "write kind TEXT CHECK (kind IN ('a', 'b'))"),
    (
        "CREATE TABLE t (opens TIME)",
        "TIME",
        "write opens TEXT, for times such as '09:30:00', which sort as they follow; or TIMESTAMP, with the day",
    ),
    (
        "CREATE TABLE t (pause INTERVAL)",
        "INTERVAL",
        "write pause BIGINT, for a number of seconds: INTERVAL '1 second' * pause is an interval",
    ),
    // Keys and indexes.
    (
        "CREATE TABLE t (a INT, b INT, PRIMARY KEY (a, b DESC)) SALT_BUCKETS = 8",
        "SALT_BUCKETS",
        "lead the key with a bucket: PRIMARY KEY (md5_bucket(a, b, 8), a, b DESC)",
    ),
    (
        "CREATE INDEX ix ON ws (core DESC) SALT_BUCKETS=4",
        "SALT_BUCKETS",
        "lead the key with a bucket: CREATE INDEX ix ON ws (md5_bucket(core, 4), core DESC)",
    ),
    ("CREATE TABLE t (a INT, INDEX k (a, b))", "INDEX", "behind this one, write CREATE INDEX k ON t (a, b)"),
    ("CREATE TABLE t (a INT, KEY (a))", "KEY", "behind this one, write CREATE INDEX ON t (a)"),
    (
        "CREATE TABLE t (a INT PRIMARY KEY DESC)",
        "DESC",
        "behind the columns, the key has an order: PRIMARY KEY (a DESC)",
    ),
    (
        "CREATE TABLE t (a INT UNIQUE ON CONFLICT REPLACE)",
        "ON",
        "the statement says it: UPSERT INTO t ... replaces, INSERT INTO t ... ON CONFLICT DO NOTHING keeps what is there",
    ),
    ("CREATE INDEX ON t (a) WITH (fillfactor=70)", "WITH", "leave it out: an index has no options"),
    // Tables and columns.
    (
        "CREATE TABLE t (a INT COMMENT 'x')",
        "COMMENT",
        "leave it out, or write it behind -- in the script: definitions have no comments",
    ),
    (
        "CREATE TABLE t (a INT) PARTITION BY RANGE (a)",
        "PARTITION",
        "leave it out: a table is sorted by its rowkey, and a range of it is read by itself; ALTER TABLE t SPLIT INTO 4 cuts \
         it into regions",
    ),
    (
        "CREATE TABLE t (a INT) INHERITS (u)",
        "INHERITS",
        "no table inherits: write all columns; CREATE TABLE t (PRIMARY KEY (id)) AS SELECT * FROM u LIMIT 0 has those of u",
    ),
    (
        "ALTER TABLE t ADD m.extra VARCHAR",
        ".",
        "write the family behind the type: ADD extra VARCHAR FAMILY m",
    ),
    (
        "CREATE TABLE t (id INT, m.extra VARCHAR)",
        ".",
        "write extra alone, and behind the columns: FAMILY m (extra, ...)",
    ),
    // Writing.
    (
        "UPSERT INTO t (id, x VARCHAR) VALUES (1, 'a')",
        "VARCHAR",
        "declare the column first: ALTER TABLE t ADD x VARCHAR; or keep what varies in a JSON column",
    ),
    (
        "INSERT INTO t (id, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = 3",
        "ON",
        "write ON CONFLICT (id) DO UPDATE SET a = excluded.a, with the columns of the key; or UPSERT INTO t",
    ),
    // Expressions.
    (
        "SELECT a FROM t WHERE s = 'ann' COLLATE NOCASE",
        "'ann' COLLATE NOCASE",
        "compare lower(x), or x ILIKE 'a%'; CREATE UNIQUE INDEX ON t (lower(x)) keeps it unique in any case",
    ),
    (
        "SELECT d['a'] FROM t",
        "d['a'",
        "d ->> 'a' is a member of a JSON value, d -> 'a' one that is JSON itself",
    ),
    (
        "SELECT CURRENT_TIMESTAMP(3)",
        "CURRENT_TIMESTAMP(3",
        "write CURRENT_TIMESTAMP; date_trunc('millisecond', now()) cuts a time off",
    ),
    // Commands of the HBase shell.
    (
        "scan 't', {STARTROW => 'r1', STOPROW => 'r2'}",
        "scan",
        "write SELECT * FROM t WHERE rowkey >= 'r1' AND rowkey < 'r2'",
    ),
    (
        "scan 't', {STARTROW => 'r2', STOPROW => 'r1', REVERSED => true, LIMIT => 10}",
        "scan",
        "write SELECT * FROM t WHERE rowkey <= 'r2' AND rowkey > 'r1' ORDER BY rowkey DESC LIMIT 10",
    ),
    (
        "scan 't', {ROWPREFIXFILTER => 'r_', COLUMNS => ['f:a', 'f:b']}",
        "scan",
        "write SELECT a, b FROM t WHERE rowkey LIKE 'r\\_%'",
    ),
    ("get 't', 'r1', 'f:a'", "get", "write SELECT a FROM t WHERE rowkey = 'r1'"),
    (
        "put 't', 'r1', 'f:a', 'v'",
        "put",
        "write UPSERT INTO t (id, a) VALUES ('r1', 'v'), where id stands for the columns of the key",
    ),
    ("delete 't', 'r1', 'f:a'", "'t'", "write UPDATE t SET a = NULL WHERE rowkey = 'r1'"),
    ("deleteall 't', 'r1'", "deleteall", "write DELETE FROM t WHERE rowkey = 'r1'"),
    ("drop 'My t'", "'My t'", "write DROP TABLE \"My t\""),
    (
        "alter 't', {NAME => 'f'}",
        "'t'",
        "write ALTER TABLE t ADD a TEXT, or SET (versions = 3), or SET (ttl = '30 days')",
    ),
    ("exists 't'", "exists", "write SHOW TABLES LIKE 't'"),
    ("get_splits 't'", "get_splits", "write SHOW REGIONS FROM t"),
    ("flush 't'", "flush", "nothing is needed: every commit is on the disk"),
    (
        "major_compact 't'",
        "major_compact",
        "nothing is needed; PURGE t deletes expired rows and versions now",
    ),
    (
        "{\"sql\": \"SELECT 1\"}",
        "{",
        "rowkeydb run --input jsonl FILE, or -, reads requests in JSON, one on each line; -c takes SQL",
    ),
];

#[test]
fn hints_say_what_to_write_instead() {
    for (sql, place, hint) in HINTS {
        let error = parse(sql).expect_err(sql);
        assert_eq!(error.fix(), Some(*hint), "{sql}");
        let span = error.span().unwrap_or_else(|| panic!("{sql} points nowhere"));
        let pointed: String = sql.chars().skip(span.column as usize - 1).take(span.len as usize).collect();
        assert_eq!(pointed, *place, "{sql}");
    }
}
