//! Errors of the parser: each is compared as a whole, with its caret.

use crate::sql::parse;

/// Wrong statements and their full messages.
const ERRORS: &[(&str, &str)] = &[
    (
        "SELCT 1",
        "error: expected a statement, found \"SELCT\"\n hint: did you mean SELECT?\n\
         LINE 1: SELCT 1\n        ^^^^^",
    ),
    (
        "SELECT *\n  FORM t",
        "error: expected the end of the statement, found \"FORM\"\n hint: did you mean FROM?\n\
         LINE 2:   FORM t\n          ^^^^",
    ),
    ("", "error: expected a statement, found the end of the statement"),
    (
        "SELECT 1; SELECT 2",
        "error: only one statement can stand here\n hint: send one after the other\n\
         LINE 1: SELECT 1; SELECT 2\n                  ^^^^^^",
    ),
    (
        "SELECT a, FROM t",
        "error: expected an expression, found \"FROM\"\nLINE 1: SELECT a, FROM t\n                  ^^^^",
    ),
    (
        "SELECT a FROM t ORDER a",
        "error: expected BY, found \"a\"\nLINE 1: SELECT a FROM t ORDER a\n                              ^",
    ),
    (
        "CREATE TABLE t (a INT b INT)",
        "error: expected \",\" or \")\", found \"b\"\nLINE 1: CREATE TABLE t (a INT b INT)\n                              ^",
    ),
    (
        "SELECT a FROM t WHERE",
        "error: expected an expression, found the end of the statement\n\
         LINE 1: SELECT a FROM t WHERE\n                             ^",
    ),
    (
        "SELECT é, (a + 'b' FROM t",
        "error: expected \")\", found \"FROM\"\n\
         LINE 1: SELECT é, (a + 'b' FROM t\n                           ^^^^",
    ),
    (
        "SELECT 'it's'",
        "error: this text has no closing quote\n hint: a quote inside text is doubled: 'it''s'\n\
         LINE 1: SELECT 'it's'\n                    ^",
    ),
    (
        "CREATE TABLE t (a INT, b)",
        "error: expected a type, found \")\"\n hint: types are BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, \
         DECIMAL(p,s), VARCHAR, VARBINARY, DATE, TIMESTAMP, TIMESTAMPTZ, UUID and JSON\n\
         LINE 1: CREATE TABLE t (a INT, b)\n                                ^",
    ),
    (
        "CREATE TABLE t (a VARHCAR(9))",
        "error: unknown type VARHCAR(9)\n hint: did you mean VARCHAR?\n\
         LINE 1: CREATE TABLE t (a VARHCAR(9))\n                          ^^^^^^^^^^",
    ),
    (
        "CREATE TABLE t (a DECIMAL(40, 2))",
        "error: DECIMAL(40, 2) has no usable digits\n  why: a DECIMAL has 1 to 38 digits, and no more after the \
         point than in all\nLINE 1: CREATE TABLE t (a DECIMAL(40, 2))\n                          ^^^^^^^^^^^^^^",
    ),
    (
        "CREATE TABLE t (a INT, A TEXT)",
        "error: a second column \"a\"\nLINE 1: CREATE TABLE t (a INT, A TEXT)\n                               ^",
    ),
    (
        "CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))",
        "error: a second PRIMARY KEY\n  why: a row is stored under one rowkey\n \
         hint: write one PRIMARY KEY (a, b, ...) with all its parts; make the other a UNIQUE\n\
         LINE 1: CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))\n                                           ^^^^^^^^^^^",
    ),
    (
        "CREATE TABLE order (a INT)",
        "error: expected the name of the table, found \"order\"\n hint: order is a reserved word: as a name, write \
         \"order\"\nLINE 1: CREATE TABLE order (a INT)\n                     ^^^^^",
    ),
    (
        "EXPLAIN WHATIF (INDEX (a), INDEX (b)) SELECT 1 FROM t",
        "error: EXPLAIN WHATIF takes one change\n hint: ADVISE FOR (query) compares many\n\
         LINE 1: EXPLAIN WHATIF (INDEX (a), INDEX (b)) SELECT 1 FROM t\n                                 ^",
    ),
    (
        "CREATE TABLE shop.t (a INT)",
        "error: there is no schema \"shop\"\n  why: a database has one schema, public\n hint: write t\n\
         LINE 1: CREATE TABLE shop.t (a INT)\n                     ^^^^^^",
    ),
    (
        "CREATE INDEX i ON t (a DESC NULLS FIRST)",
        "error: NULLS FIRST is not possible here\n  why: in a descending key part, NULLs sort last\n \
         hint: leave out NULLS FIRST\n\
         LINE 1: CREATE INDEX i ON t (a DESC NULLS FIRST)\n                                    ^^^^^",
    ),
    (
        "CREATE TABLE t (a INT CHECK (a > ?))",
        "error: CREATE TABLE cannot take parameters\n  why: what it defines outlives the values\n \
         hint: write the values into the statement",
    ),
    (
        "INSERT OR ABORT INTO t VALUES (1)",
        "error: expected INTO, found \"OR\"\n hint: write INSERT INTO: a statement that fails changes nothing; ROLLBACK \
         ends its transaction\n\
         LINE 1: INSERT OR ABORT INTO t VALUES (1)\n               ^^",
    ),
    (
        "INSERT INTO t (a) VALEUS (1)",
        "error: expected VALUES or SELECT, found \"VALEUS\"\n hint: did you mean VALUES?\n\
         LINE 1: INSERT INTO t (a) VALEUS (1)\n                          ^^^^^^",
    ),
    (
        "INSERT INTO t VALUSE ('a', 1)",
        "error: expected VALUES or SELECT, found \"VALUSE\"\n hint: did you mean VALUES?\n\
         LINE 1: INSERT INTO t VALUSE ('a', 1)\n                      ^^^^^^",
    ),
    (
        "ALTER TABLE t ADD a INT, b INT",
        "error: expected ADD, ALTER, DROP, RENAME, REKEY, SET or SPLIT, found \"b\"\n \
         hint: each change begins with its word: ADD a INT, ADD b INT\n\
         LINE 1: ALTER TABLE t ADD a INT, b INT\n                                 ^",
    ),
    (
        "ALTER TABLE t ADD FAMILY f (a INT)",
        "error: a family cannot be added\n hint: make a table that has it, CREATE TABLE u (..., FAMILY f (a, b)), and copy \
         the rows\nLINE 1: ALTER TABLE t ADD FAMILY f (a INT)\n                          ^^^^^^",
    ),
    (
        "UPDATE t SET (a, b) = (1)",
        "error: 2 columns, but 1 value\nLINE 1: UPDATE t SET (a, b) = (1)\n                     ^^^^^^^^^^^^",
    ),
    (
        "UPDATE t SET 'a' = 1",
        "error: expected a column, found 'a'\n hint: names stand in double quotes: \"a\"\n\
         LINE 1: UPDATE t SET 'a' = 1\n                     ^^^",
    ),
    (
        "SELECT ?, $1",
        "error: ? and numbered parameters in one statement\n  why: it would not be clear which value a ? takes\n \
         hint: write $1, $2, ... throughout, or ? throughout\nLINE 1: SELECT ?, $1\n                  ^^",
    ),
    (
        "SELECT $0",
        "error: $0 is not a parameter\n  why: parameters are $1 to $65535, or ?\nLINE 1: SELECT $0\n               ^^",
    ),
    (
        "SELECT a INTO b FROM t",
        "error: SELECT INTO makes no table here\n hint: write CREATE TABLE b AS SELECT ...\nLINE 1: SELECT a INTO b FROM t\n                      ^",
    ),
    (
        "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
        "error: DELETE cannot stand inside a query\n hint: INSERT INTO t WITH ... SELECT ... works; or write two \
         statements in BEGIN ... COMMIT\nLINE 1: WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x\n                   ^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "WITH x AS (SELECT 1) WITH y AS (SELECT 1) SELECT 1",
        "error: expected SELECT, found \"WITH\"\nLINE 1: WITH x AS (SELECT 1) WITH y AS (SELECT 1) SELECT 1\n                             ^^^^",
    ),
    (
        "UPDATE a SET v = 'y' ORDER BY id",
        "error: UPDATE takes no ORDER BY\n hint: UPDATE t SET ... WHERE rowkey IN (SELECT rowkey FROM t ORDER BY ... \
         LIMIT n)\nLINE 1: UPDATE a SET v = 'y' ORDER BY id\n                             ^^^^^",
    ),
    (
        "TRUNCATE t ORDER BY a",
        "error: expected the end of the statement, found \"ORDER\"\n\
         LINE 1: TRUNCATE t ORDER BY a\n                   ^^^^^",
    ),
    (
        "SELECT * FROM t x AS OF TIMESTAMP now()",
        "error: expected the end of the statement, found \"AS\"\n \
         hint: the moment comes before the other name: FROM t AS OF TIMESTAMP '2026-11-26 10:00' x\n\
         LINE 1: SELECT * FROM t x AS OF TIMESTAMP now()\n                          ^^",
    ),
    (
        "SELECT * FROM t AS OF SYSTEM TIME '-1h'",
        "error: expected the end of the statement, found \"SYSTEM\"\n \
         hint: AS OF TIMESTAMP '2026-11-26 10:00:00', or AS OF SNAPSHOT before\n\
         LINE 1: SELECT * FROM t AS OF SYSTEM TIME '-1h'\n                              ^^^^^^",
    ),
    (
        "SELECT wibble FORM orders",
        "error: expected the end of the statement, found \"FORM\"\n hint: did you mean FROM?\n\
         LINE 1: SELECT wibble FORM orders\n                      ^^^^",
    ),
    (
        "SELECT * FROM orders WERE id = 1",
        "error: expected the end of the statement, found \"WERE\"\n hint: did you mean WHERE?\n\
         LINE 1: SELECT * FROM orders WERE id = 1\n                             ^^^^",
    ),
    (
        "CREATE TABLE t (id INT PRIMARY KEY) SALT_BUCKETS = 4",
        "error: expected the end of the statement, found \"SALT_BUCKETS\"\n \
         hint: lead the key with a bucket: PRIMARY KEY (md5_bucket(id, 4), id)\n\
         LINE 1: CREATE TABLE t (id INT PRIMARY KEY) SALT_BUCKETS = 4\n                                            ^^^^^^^^^^^^",
    ),
    (
        "CREATE SEQUENCE s",
        "error: expected TABLE, INDEX or VIEW, found \"SEQUENCE\"\n \
         hint: a column counts by itself: id BIGINT GENERATED BY DEFAULT AS IDENTITY, or ALTER TABLE t ALTER COLUMN id ADD \
         GENERATED BY DEFAULT AS IDENTITY\n\
         LINE 1: CREATE SEQUENCE s\n               ^^^^^^^^",
    ),
    (
        "SELECT next value FOR seq",
        "error: expected one of UPDATE or SHARE, found \"seq\"\n \
         hint: a column counts by itself: id BIGINT GENERATED BY DEFAULT AS IDENTITY, or ALTER TABLE t ALTER COLUMN id ADD \
         GENERATED BY DEFAULT AS IDENTITY\n\
         LINE 1: SELECT next value FOR seq\n                              ^^^",
    ),
    (
        "CREATE LOCAL INDEX i ON t (a)",
        "error: expected TABLE, INDEX or VIEW, found \"LOCAL\"\n hint: leave it out: an index is sorted as a whole\n\
         LINE 1: CREATE LOCAL INDEX i ON t (a)\n               ^^^^^",
    ),
    (
        "UPSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = a + 1",
        "error: UPSERT has no conflicts\n \
         hint: write INSERT ... ON CONFLICT (key) DO UPDATE SET column = excluded.column\n\
         LINE 1: UPSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = a + 1\n                                 ^^",
    ),
    (
        "INSERT IGNORE INTO t VALUES (1)",
        "error: expected INTO, found \"IGNORE\"\n hint: write INSERT INTO t ... ON CONFLICT DO NOTHING\n\
         LINE 1: INSERT IGNORE INTO t VALUES (1)\n               ^^^^^^",
    ),
    (
        "scan 't'",
        "error: expected a statement, found \"scan\"\n \
         hint: write SELECT * FROM t\n\
         LINE 1: scan 't'\n        ^^^^",
    ),
    (
        "list",
        "error: expected a statement, found \"list\"\n hint: SHOW TABLES lists them\nLINE 1: list\n        ^^^^",
    ),
    (
        "SELECT * FROM t AS OF TIMESTAMP now() - 1",
        "error: AS OF takes the name of a snapshot, or a time\n \
         hint: AS OF SNAPSHOT before, AS OF TIMESTAMP '2026-11-26 10:00:00', or now() - INTERVAL '1 hour'\n\
         LINE 1: SELECT * FROM t AS OF TIMESTAMP now() - 1\n                                        ^^^^^^^^^",
    ),
    (
        "SELECT * FROM t AS OF TIMESTAMP '2024-13-01'",
        "error: '2024-13-01' is not a TIMESTAMPTZ\n  why: the calendar has no such day\n \
         hint: write 'YYYY-MM-DD HH:MM:SS+00'\n\
         LINE 1: SELECT * FROM t AS OF TIMESTAMP '2024-13-01'\n                                        ^^^^^^^^^^^^",
    ),
    (
        "DELETE orders",
        "error: expected FROM, found \"orders\"\n hint: write DELETE FROM t WHERE ...\n\
         LINE 1: DELETE orders\n               ^^^^^^",
    ),
    (
        "REINDEX i",
        "error: expected a statement, found \"REINDEX\"\n hint: REPAIR INDEX i builds an index anew\n\
         LINE 1: REINDEX i\n        ^^^^^^^",
    ),
    (
        "SPLIT t INTO 4",
        "error: expected a statement, found \"SPLIT\"\n hint: write ALTER TABLE t SPLIT INTO 4, or SPLIT ON ('key', \
         ...)\nLINE 1: SPLIT t INTO 4\n        ^^^^^",
    ),
    (
        "PRAGMA table_info(t)",
        "error: expected a statement, found \"PRAGMA\"\n hint: DESCRIBE t lists columns, SHOW SETTINGS settings; \
         SET name = value changes one\nLINE 1: PRAGMA table_info(t)\n        ^^^^^^",
    ),
    (
        "EXPLAIN QUERY PLAN SELECT 1",
        "error: expected a statement, found \"QUERY\"\n hint: EXPLAIN SELECT ... shows its plan\n\
         LINE 1: EXPLAIN QUERY PLAN SELECT 1\n                ^^^^^",
    ),
    (
        "EXPLAIN DROP TABLE t",
        "error: expected SELECT, INSERT, UPSERT, UPDATE or DELETE, found \"DROP\"\n\
         LINE 1: EXPLAIN DROP TABLE t\n                ^^^^",
    ),
    (
        "COPY t FROM STDIN (FORMAT parquet)",
        "error: a Parquet file is no stream\n hint: name it: COPY t FROM 'file.parquet'\n\
         LINE 1: COPY t FROM STDIN (FORMAT parquet)\n                    ^^^^^",
    ),
    (
        "COPY t FROM 'f.xls'",
        "error: the format of this file is not clear\n \
         hint: end its name in .csv, .jsonl or .parquet, or write WITH (FORMAT csv)\n\
         LINE 1: COPY t FROM 'f.xls'\n                    ^^^^^^^",
    ),
    (
        "SELECT 0b11",
        "error: \"0b11\" is not a number\n  why: \"b11\" follows its digits\n hint: put a blank after the number, or a name into double quotes\n\
         LINE 1: SELECT 0b11\n               ^^^^",
    ),
    (
        "SELECT 1e400",
        "error: this number is out of range\n  why: the largest is about 1.8e308\n\
         LINE 1: SELECT 1e400\n               ^^^^^",
    ),
    (
        "INSERT INTO t VALUES (0.12345678901234567890123456789012345678901)",
        "error: this number is out of range\n  why: a decimal has 38 digits at the most\n \
         hint: write fewer digits, or a DOUBLE, with an exponent: 1e40\n\
         LINE 1: INSERT INTO t VALUES (0.12345678901234567890123456789012345678901)\n                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "CREATE TABLE t (a INT NOT NULL NULL)",
        "error: this column is both NULL and NOT NULL\n hint: keep one of them\n\
         LINE 1: CREATE TABLE t (a INT NOT NULL NULL)\n                                       ^^^^",
    ),
    (
        "CREATE TABLE t (a SERIAL DEFAULT 7)",
        "error: this column has two defaults\n  why: a DEFAULT and an identity both say what it gets when nothing is given\n hint: keep one of them\n\
         LINE 1: CREATE TABLE t (a SERIAL DEFAULT 7)\n                                 ^^^^^^^^^",
    ),
    (
        "COPY t TO 'f.jsonl' (HEADER)",
        "error: this option is about CSV files, and the file is none\n hint: HEADER goes with FORMAT csv; DELIMITER and NULL with csv and text\n\
         LINE 1: COPY t TO 'f.jsonl' (HEADER)\n                             ^^^^^^",
    ),
    (
        "COPY t FROM 'f' (CSV, FORMAT csv)",
        "error: this option is given twice\n hint: keep one of them\n\
         LINE 1: COPY t FROM 'f' (CSV, FORMAT csv)\n                              ^^^^^^^^^^",
    ),
    (
        "SELECT * FROM a JOIN t TABLESAMPLE SYSTEM (5) ON a = b",
        "error: TABLESAMPLE is not supported\n hint: write WHERE random() < 0.1\n\
         LINE 1: SELECT * FROM a JOIN t TABLESAMPLE SYSTEM (5) ON a = b\n                             ^",
    ),
    (
        "SELECT s COLLATE \"de\" FROM t",
        "error: text has one order, that of its UTF-8 bytes\n hint: leave COLLATE out\n\
         LINE 1: SELECT s COLLATE \"de\" FROM t\n               ^^^^^^^^^^^^^^",
    ),
    (
        "SELECT a FROM t WHERE x. 5 = 1",
        "error: this kind of access is not supported\n hint: on both sides of the period stand names\n\
         LINE 1: SELECT a FROM t WHERE x. 5 = 1\n                              ^^^^",
    ),
    (
        "SELECT 1 FROM t ''''''",
        "error: expected the end of the statement, found \"''''''\"\n\
         LINE 1: SELECT 1 FROM t ''''''\n                        ^^^^^^",
    ),
    (
        "SELECT 1 FROM @t WHERE a = 0",
        "error: FROM @ is not supported\n hint: FROM takes tables, views, functions and subqueries",
    ),
    (
        "SELECT a::nosuch('x/y') FROM t",
        "error: unknown type nosuch(x/y)\n hint: types are BOOLEAN, SMALLINT, INTEGER, BIGINT, REAL, DOUBLE, \
         DECIMAL(p,s), VARCHAR, VARBINARY, DATE, TIMESTAMP, TIMESTAMPTZ, UUID and JSON\n\
         LINE 1: SELECT a::nosuch('x/y') FROM t\n               ^",
    ),
    (
        "SELECT 0 .a FROM t",
        "error: this kind of access is not supported\n hint: on both sides of the period stand names\n\
         LINE 1: SELECT 0 .a FROM t\n               ^^^^",
    ),
    (
        "SELECT \"a\"\"\"\"\" FROM t",
        "error: a name cannot have two quotes side by side, nor one behind a backslash\n\
         LINE 1: SELECT \"a\"\"\"\"\" FROM t\n               ^^^^^^^",
    ),
    (
        "SELECT * FROM nosuch.t AS OF SNAPSHOT s",
        "error: there is no schema \"nosuch\"\n  why: a database has one schema, public\n hint: write t\n\
         LINE 1: SELECT * FROM nosuch.t AS OF SNAPSHOT s\n                      ^^^^^^^^",
    ),
];

#[test]
fn errors_say_what_and_where() {
    for (sql, expected) in ERRORS {
        match parse(sql) {
            Ok(statement) => panic!("{sql} is {statement}"),
            Err(e) => assert_eq!(e.render(sql), *expected, "{sql}"),
        }
    }
}
