//! The command, driven as a process: what it prints where, and how it ends.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;

/// The command in a directory of its own, so that messages hold no foreign paths.
pub struct Cli(tempfile::TempDir);

impl Cli {
    pub fn new() -> Cli {
        Cli(tempfile::tempdir().unwrap())
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowkeydb"));
        command.args(args).current_dir(self.0.path()).env("NO_COLOR", "1");
        command
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.path().join(name), bytes).unwrap();
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Exit status, stdout and stderr.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        ended(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    fn pipe(&self, args: &[&str], input: &[u8]) -> (i32, String, String) {
        let mut child = self.start(args);
        child.stdin.take().unwrap().write_all(input).unwrap();
        ended(child.wait_with_output().unwrap())
    }

    fn start(&self, args: &[&str]) -> Child {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The error of a statement that fails.
    fn error(&self, args: &[&str]) -> String {
        let (status, _, err) = self.run(args);
        assert_eq!(status, 1, "{err}");
        err
    }
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

const ORDERS: &str = "CREATE TABLE orders (id BIGINT PRIMARY KEY, amount INT, at TIMESTAMP);";

#[test]
fn one_statement() {
    let (status, out, err) = Cli::new().run(&["-c", "SELECT 1 AS n, 'x' AS s"]);
    assert_eq!((status, err.as_str()), (0, ""));
    assert_eq!(out, " n | s\n---+---\n 1 | x\n(1 row)\n\n");
}

#[test]
fn a_script_keeps_its_database() {
    let cli = Cli::new();
    cli.file("make.sql", "CREATE TABLE t (k INT PRIMARY KEY);\nINSERT INTO t VALUES (1), (2);\n");
    assert_eq!(cli.run(&["run", "--db", "shop", "make.sql"]).0, 0);
    let (status, out, _) = cli.run(&["shop", "--format", "csv", "-c", "SELECT * FROM t ORDER BY k DESC"]);
    assert_eq!((status, out.as_str()), (0, "k\n2\n1\n"));
}

#[test]
fn formats() {
    let cli = Cli::new();
    let query = "SELECT 1 AS a, NULL AS b, 'x,y' AS c";
    for (format, expected) in [
        ("csv", "a,b,c\n1,,\"x,y\"\n"),
        ("markdown", "| a | b    | c   |\n| -: | ---- | --- |\n"),
        ("jsonl", "{\"statement\":1,\"columns\":[\"a\",\"b\",\"c\"]"),
    ] {
        let (status, out, err) = cli.run(&["run", "--format", format, "-c", query]);
        assert_eq!((status, err.as_str()), (0, ""), "{format}");
        if format != "markdown" {
            assert!(out.starts_with(expected), "{format}: {out}");
        }
    }
}

#[test]
fn an_answer_comes_before_the_input_ends() {
    let cli = Cli::new();
    let mut child = cli.start(&["run", "--format", "csv", "-"]);
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for n in 1..=3 {
        writeln!(input, "SELECT {n} AS n;").unwrap();
        input.flush().unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), "n");
        assert_eq!(lines.next().unwrap().unwrap(), n.to_string());
    }
    drop(input);
    assert!(lines.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_machine_face_gives_one_object_a_statement() {
    let script = format!(
        "{ORDERS}\nINSERT INTO orders VALUES (9007199254740993, NULL, '2024-02-29 12:00:00');\n\
         SELECT id, amount, at, X'00ff' AS b, 0.10 AS d, true AS t FROM orders;\nSELECT\n  nope FROM orders;\n"
    );
    let (status, out, err) =
        Cli::new().pipe(&["run", "--format", "jsonl", "--keep-going", "-"], script.as_bytes());
    assert_eq!((status, err.as_str()), (1, ""));
    let objects: Vec<Json> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 4);
    for (object, n) in objects.iter().zip(1..) {
        assert_eq!(object["statement"], n);
    }
    assert_eq!(objects[1]["affected"], 1);
    let rows = &objects[2];
    assert_eq!(rows["columns"], serde_json::json!(["id", "amount", "at", "b", "d", "t"]));
    assert_eq!(rows["types"][0], "BIGINT");
    let text = out.lines().nth(2).unwrap();
    assert!(text.contains("[[9007199254740993,null,\"2024-02-29T12:00:00\",\"00ff\",0.10,true]]"), "{text}");
    assert!(rows["elapsed_us"].is_u64() && rows["warnings"].is_array() && rows["affected"] == 0);
    let error = &objects[3]["error"];
    assert_eq!((&error["kind"], &error["sqlstate"]), (&"invalid".into(), &"42703".into()));
    assert_eq!((&error["line"], &error["column"]), (&5.into(), &3.into()), "from the top of the script");
    assert!(error["message"].as_str().unwrap().contains("nope") && error.get("why").is_some());
    assert!(error.get("hint").is_some() && objects[3].get("rows").is_none());
}

#[test]
fn requests_with_parameters() {
    let lines = "{\"sql\":\"SELECT $1 + 1 AS n, $2 AS s\",\"params\":[41,\"it's\"]}\nnonsense\n";
    let (status, out, _) =
        Cli::new().pipe(&["run", "--input", "jsonl", "--keep-going", "-"], lines.as_bytes());
    let objects: Vec<Json> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(status, 1);
    assert_eq!(objects[0]["rows"], serde_json::json!([[42, "it's"]]));
    assert_eq!(objects[1]["error"]["line"], 2);
}

#[test]
fn errors_show_the_place_and_a_hint() {
    let cli = Cli::new();
    assert_eq!(
        cli.error(&["-c", &format!("{ORDERS} SELECT * FROM ordrs")]),
        "error: there is no table \"ordrs\"\n hint: did you mean \"orders\"?\n\
         LINE 1: SELECT * FROM ordrs\n                      ^^^^^\n"
    );
    let column = cli.error(&["-c", &format!("{ORDERS} SELECT amout FROM orders")]);
    assert!(column.contains("did you mean \"amount\"?") && column.contains("^^^^^"), "{column}");
    assert!(cli.error(&["-c", "SHOW TABELS"]).contains("did you mean \"tables\"?"));
    let hidden = cli.error(&["-c", &format!("{ORDERS} SELECT orders.amount FROM orders o")]);
    assert!(hidden.contains("write o.amount") && hidden.contains("^^^^^"), "{hidden}");
    let malformed = cli.error(&["-c", "SELEC 1"]);
    assert!(
        malformed.contains("hint: did you mean SELECT?")
            && malformed.contains("LINE 1: SELEC 1\n        ^^^^^")
    );
    assert!(cli.error(&["-c", "SELECT (1"]).contains("found the end of the statement"));
}

#[test]
fn wrong_types_name_the_value_and_the_type() {
    let cli = Cli::new();
    for (sql, needles) in [
        ("INSERT INTO orders VALUES ('x', 1, NULL)", ["'x' is not a BIGINT", "column \"id\""]),
        ("INSERT INTO orders VALUES (1, 99999999999, NULL)", ["99999999999", "INTEGER"]),
        ("SELECT * FROM orders WHERE amount = 'x'", ["'x' is not an INTEGER", "hint:"]),
        ("SELECT * FROM orders WHERE at = 'tuesday'", ["'tuesday' is not a TIMESTAMP", "hint:"]),
        ("SELECT CAST('1x' AS BIGINT)", ["'1x' is not a BIGINT", "hint:"]),
        ("SELECT CAST(40000 AS SMALLINT)", ["40000 is out of range for SMALLINT", "hint:"]),
    ] {
        let error = cli.error(&["-c", &format!("{ORDERS} {sql}")]);
        assert!(needles.iter().all(|n| error.contains(n)), "{sql}\n{error}");
        assert!(!error.contains("Int") && !error.contains("Utf8"), "Arrow's names: {error}");
    }
}

#[test]
fn the_first_error_stops_unless_told_to_keep_going() {
    let cli = Cli::new();
    cli.file("s.sql", "SELECT 1 AS n;\nSELEC;\nSELECT 2 AS n;\n");
    let (status, out, err) = cli.run(&["run", "--format", "csv", "s.sql"]);
    assert_eq!((status, out.as_str()), (1, "n\n1\n"));
    assert!(err.starts_with("s.sql:2: error: "), "{err}");
    let (status, out, _) = cli.run(&["run", "--format", "csv", "--keep-going", "s.sql"]);
    assert_eq!((status, out.as_str()), (1, "n\n1\nn\n2\n"));
    assert_eq!(cli.run(&["--nope"]).0, 2, "a wrong command line");
}

#[test]
fn files_that_cannot_be_read() {
    let cli = Cli::new();
    assert!(cli.error(&["run", "missing.sql"]).starts_with("error: cannot read missing.sql\n  why: "));
    cli.file("bytes.sql", b"SELECT 1;\nSELECT '\xff';\n");
    let error = cli.error(&["run", "bytes.sql"]);
    assert!(error.starts_with("bytes.sql:2: error: line 2 is not UTF-8\n  why: byte FF"), "{error}");
    let error = cli.error(&["-c", &format!("{ORDERS} COPY orders FROM 'missing.csv'")]);
    assert!(error.contains("cannot open 'missing.csv'\n  why: "), "{error}");
}

#[test]
fn statements_and_databases_in_the_wrong_place() {
    let cli = Cli::new();
    cli.file("load.sql", "SELECT 1;\n");
    std::fs::create_dir(cli.path().join("shop")).unwrap();
    for (args, status, hint) in [
        (&["shop", "SELECT * FROM t"][..], 2, "a statement stands behind -c"),
        (&["shop", "run", "load.sql"], 2, "name the database by --db"),
        (&["shop", "load.sql"], 2, "name the database by --db"),
        (&["shop", "dump"], 2, "the command stands first"),
        (&["run", "shop", "load.sql"], 1, "a database is named by --db"),
        (&["select 1"], 2, "write -c in front of it"),
        (&["shop", "x"], 2, "statements stand behind -c"),
        (&["load.sql"], 2, "rowkeydb run load.sql runs it"),
        (&["hlep"], 2, "did you mean help? For a new database in that folder, write ./hlep"),
        (&["HELP"], 2, "did you mean help?"),
        (&["versoin"], 2, "did you mean --version?"),
        (&["other.sql"], 2, "for a new database in a folder of that name, write ./other.sql"),
        (&["-f", "load.sql"], 2, "scripts stand behind run"),
    ] {
        let (code, _, err) = cli.run(args);
        assert!(code == status && err.contains(&format!("\n hint: {hint}")), "{args:?} {code} {err}");
    }
    assert_eq!(cli.run(&[":memory:", "-c", "SELECT 1"]).0, 0);
    assert_eq!(cli.run(&["run", "--db", ":memory:", "load.sql"]).0, 0);
    for made in ["select 1", "other.sql", ":memory:"] {
        assert!(!cli.path().join(made).exists(), "{made}");
    }
}

#[test]
fn a_corrupt_csv_line_is_named_and_nothing_is_loaded() {
    let cli = Cli::new();
    cli.file("p.csv", "id,amount,at\n1,10,2024-01-01\n2,ten,2024-01-02\n3,30\n4,40,2024-01-04\n");
    let copy = format!("{ORDERS} COPY orders FROM 'p.csv'; SELECT count(*) AS n FROM orders");
    let (status, out, err) = cli.run(&["run", "--format", "csv", "--keep-going", "-c", &copy]);
    assert_eq!((status, out.as_str()), (1, "n\n0\n"));
    assert!(err.contains("line 3, column amount: 'ten' is not an INTEGER"), "{err}");
    let copy = copy.replace("'p.csv'", "'p.csv' ON ERROR SKIP");
    let (status, out, err) = cli.run(&["run", "--format", "csv", "-c", &copy]);
    assert_eq!((status, out.as_str()), (0, "n\n2\n"));
    assert!(err.contains("2 rows of p.csv were skipped") && err.contains("line 3, column amount"), "{err}");
}

#[test]
fn a_transaction_that_quit_leaves_open_is_told_of() {
    let cli = Cli::new();
    let (status, _, err) = cli.run(&["run", "--db", "shop", "-c", "CREATE TABLE t (id INT PRIMARY KEY)"]);
    assert_eq!((status, err.as_str()), (0, ""));
    cli.file("quit.sql", "BEGIN;\nINSERT INTO t VALUES (1);\n.quit\n");
    let (_, _, err) = cli.run(&["run", "--db", "shop", "quit.sql"]);
    assert!(err.contains("the transaction still open here is rolled back"), "{err}");
}

#[test]
fn what_only_looks_makes_no_database() {
    let cli = Cli::new();
    std::fs::create_dir(cli.path().join("empty")).unwrap();
    for args in [&["dump", "empty"][..], &["keydump", "empty", "t"], &["restore", "empty", "new"]] {
        let error = cli.error(args);
        assert!(error.contains("there is no database in empty"), "{error}");
    }
    let error = cli.error(&["run", "--db", "new", "missing.sql"]);
    assert!(error.starts_with("error: cannot read missing.sql\n  why: "), "{error}");
    assert_eq!(std::fs::read_dir(cli.path().join("empty")).unwrap().count(), 0);
    assert!(!cli.path().join("new").exists());
}

#[test]
fn rows_whose_keys_are_taken_are_skipped_and_counted() {
    let cli = Cli::new();
    cli.file("d.csv", "id,name\n1,a\n2,b\n2,c\n3,a\n4,d\n9,x\n");
    let copy = "CREATE TABLE t (id INT PRIMARY KEY, name TEXT UNIQUE); INSERT INTO t VALUES (9, 'nine'); \
                COPY t FROM 'd.csv'; SELECT id, name FROM t; CHECK TABLE t FAST";
    let (status, out, err) = cli.run(&["run", "--format", "csv", "--keep-going", "-c", copy]);
    assert!(status == 1 && out.starts_with("id,name\n9,nine\n"), "{out}");
    let told = "error: d.csv: line 4: rowkey 2 exists already in table \"t\"\n  why: line 3 has it, too\n \
                hint: ON_ERROR skip leaves out such rows";
    assert!(err.contains(told), "{err}");
    let copy = copy.replace("'d.csv'", "'d.csv' WITH (ON_ERROR 'skip')");
    let (status, out, err) = cli.run(&["run", "--format", "csv", "-c", &copy]);
    assert!(status == 0 && out.starts_with("id,name\n1,a\n2,b\n4,d\n9,nine\n"), "{out}{err}");
    assert!(err.contains("3 rows of d.csv were skipped, as the table does not take them"), "{err}");
    assert!(err.contains("the first of them: line 4: rowkey 2 exists already in table \"t\""), "{err}");
}

#[test]
fn rows_that_break_a_rule_are_skipped_and_counted() {
    let cli = Cli::new();
    cli.file(
        "d.csv",
        "id,name,n\n1,a,1\nbad,y,1\n3,,1\n4,d,1\n5,e,-5\n222,f,1\n,g,1\n6,long name,1\n7,h,2\n",
    );
    let copy = "CREATE TABLE t (id INT, name VARCHAR(5) NOT NULL, n INT CHECK (n > 0), PRIMARY KEY (lpad(id, 2))); \
                COPY t FROM 'd.csv' WITH (ON_ERROR skip); SELECT * FROM t; CHECK TABLE t FAST";
    let (status, out, err) = cli.run(&["run", "--format", "csv", "-c", copy]);
    assert!(status == 0 && out.starts_with("id,name,n\n1,a,1\n4,d,1\n7,h,2\n"), "{out}{err}");
    assert!(err.contains("1 row of d.csv was skipped\n"), "{err}");
    assert!(err.contains("5 rows of d.csv were skipped, as the table does not take them"), "{err}");
    assert!(
        err.contains("the first of them: line 4: column \"name\" cannot be NULL (it is NOT NULL)"),
        "{err}"
    );
}

#[test]
fn the_line_of_a_row_that_a_table_refuses_is_told() {
    let cli = Cli::new();
    let table = "CREATE TABLE t (id INT, s VARCHAR(5) NOT NULL, n INT CHECK (n > 0) UNIQUE, PRIMARY KEY (lpad(id, 2))); \
                 INSERT INTO t VALUES (50, 'x', 50);";
    for (rows, told) in [
        ("1,\"a\nb\",1\n\n2,,1\n", "line 5: column \"s\" cannot be NULL\n  why: it is NOT NULL"),
        ("1,a,1\n2,b,-1\n", "line 3: check \"t_check_1\" does not hold\n  why: n > 0 is false for id=2"),
        ("1,a,1\n2,too long,1\n", "line 3: column \"s\" takes 5 characters, not 8\n hint: "),
        ("1,a,1\n222,a,2\n", "line 3: value 222 of \"id\" does not fit the rowkey part lpad(id, 2)\n"),
        ("1,a,1\n50,b,2\n", "line 3: rowkey 50 exists already in table \"t\"\n  why: a rowkey"),
        (
            "1,a,1\n2,b,50\n",
            "line 3: key 50 exists already in unique index \"t_n_key\"\n  why: rowkeys 50 and 02",
        ),
        (
            "3,a,1\n4,b,1\n",
            "line 3: key 1 exists already in unique index \"t_n_key\"\n  why: rowkeys 03 and 04",
        ),
    ] {
        cli.file("d.csv", format!("id,s,n\n{rows}"));
        for begin in ["", "BEGIN;"] {
            let error = cli.error(&["-c", &format!("{table} {begin} COPY t FROM 'd.csv'")]);
            assert!(error.starts_with(&format!("error: d.csv: {told}")), "{begin} {error}");
        }
    }
    let rows =
        "COPY (SELECT value AS id, 'x' AS s, 7 - value AS n FROM generate_series(1, 9) v) TO 'd.parquet';";
    let error = cli.error(&["-c", &format!("{table} {rows} COPY t FROM 'd.parquet'")]);
    assert!(error.starts_with("error: d.parquet: row 7: check \"t_check_1\" does not hold\n"), "{error}");
}

#[test]
fn one_process_at_a_time() {
    let cli = Cli::new();
    let mut holder = cli.start(&["run", "--db", "shop", "--format", "csv", "-"]);
    let mut input = holder.stdin.take().unwrap();
    writeln!(input, "SELECT 1 AS n;").unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let error = cli.error(&["shop", "-c", "SELECT 1"]);
    assert!(error.starts_with("error: database shop is open in another process\n"), "{error}");
    assert!(error.contains("hint: "), "{error}");
    drop(input);
    holder.wait().unwrap();
    assert_eq!(cli.run(&["shop", "-c", "SELECT 1"]).0, 0);
}

#[test]
fn a_damaged_file_is_told_with_its_database() {
    let cli = Cli::new();
    for (engine, mark) in [("lmdb", "log/acknowledged"), ("lsm", "lsm/acknowledged")] {
        let db = format!("shop_{engine}");
        assert_eq!(cli.run(&["--engine", engine, &db, "-c", "CREATE TABLE t (id INT PRIMARY KEY)"]).0, 0);
        cli.file(&format!("{db}/{mark}"), "");
        let error = cli.error(&[&db, "-c", "SELECT 1"]);
        assert!(error.starts_with(&format!("error: database {db}: {mark} is damaged\n")), "{error}");
    }
}

#[test]
fn directories_that_are_no_database_of_ours() {
    let cli = Cli::new();
    std::fs::create_dir(cli.path().join("photos")).unwrap();
    cli.file("photos/cat.jpg", "meow");
    let error = cli.error(&["photos", "-c", "SELECT 1"]);
    assert!(error.starts_with("error: photos is not a RowkeyDB database\n  why: "), "{error}");
    assert_eq!(std::fs::read_dir(cli.path().join("photos")).unwrap().count(), 1, "nothing was written there");
    assert!(cli.error(&["photos/cat.jpg", "-c", "SELECT 1"]).contains("it is a file"));

    cli.run(&["shop", "-c", ORDERS]);
    let format = std::fs::read_to_string(cli.path().join("shop/FORMAT")).unwrap();
    let newer = format.replace(char::is_numeric, "9");
    cli.file("shop/FORMAT", newer);
    let error = cli.error(&["shop", "-c", "SELECT 1"]);
    assert!(error.contains("format") && error.contains("hint: "), "{error}");

    cli.file("shop/FORMAT", format);
    let data = cli.path().join("shop/data.mdb");
    let bytes = std::fs::read(&data).unwrap();
    std::fs::write(&data, &bytes[..bytes.len() / 2]).unwrap();
    let error = cli.error(&["shop", "-c", "SELECT 1"]);
    assert!(error.contains("shop/data.mdb is damaged\n  why: it is truncated"), "{error}");
}

#[test]
fn a_database_stays_with_its_engine() {
    let cli = Cli::new();
    cli.run(&["shop", "--engine", "lsm", "-c", ORDERS]);
    cli.run(&["shop", "-c", "INSERT INTO orders VALUES (1, 1, NULL)"]);
    let error = cli.error(&["shop", "--engine", "lmdb", "-c", "SELECT 1"]);
    assert!(
        error.contains("is kept by engine lsm, not lmdb\n  why: ") && error.contains("hint: "),
        "{error}"
    );
    let error = cli.error(&["--engine", "lsm", "-c", "SELECT 1"]);
    assert!(error.contains("hint: name a folder"), "{error}");
}

#[test]
fn a_reader_that_has_seen_enough() {
    let cli = Cli::new();
    let mut child =
        cli.start(&["run", "--format", "csv", "-c", "SELECT value FROM generate_series(1, 3000000)"]);
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (status, _, err) = ended(child.wait_with_output().unwrap());
    assert_eq!((line.as_str(), status, err.as_str()), ("value\n", 0, ""));
}

#[test]
fn a_failed_statement_writes_nothing() {
    let script = format!(
        "{ORDERS} CREATE UNIQUE INDEX by_amount ON orders (amount);\
         INSERT INTO orders VALUES (1, 1, NULL), (2, 2, NULL), (3, 1, NULL);\
         SELECT count(*) AS n FROM orders; SELECT count(*) AS n FROM by_amount;"
    );
    let (_, out, err) = Cli::new().pipe(&["run", "--format", "csv", "--keep-going", "-"], script.as_bytes());
    assert_eq!(out, "n\n0\nn\n0\n");
    assert!(err.contains("unique index \"by_amount\""), "{err}");
}

#[test]
fn keydump() {
    let cli = Cli::new();
    let sql = "CREATE TABLE t (id INT PRIMARY KEY, name TEXT, note TEXT, FAMILY d (note)); CREATE INDEX by_name ON t (name);
        INSERT INTO t VALUES (1, 'Ann', NULL), (2, 'Bob', 'x''y')";
    assert_eq!(cli.run(&["shop", "-c", sql]).0, 0);
    let dump = |args: &[&str]| cli.run(&[&["keydump", "shop"], args].concat());
    let (status, out, err) = dump(&["t"]);
    assert_eq!((status, &err[..]), (0, ""));
    assert_eq!(out, "80000001  1 name='Ann'\n80000002  2 name='Bob'\n");
    assert_eq!(dump(&["t.d"]).1, "80000002  2 note='x''y'\n");
    assert_eq!(dump(&["by_name", "--prefix", "0x0142"]).1, "01426f62000180000002  'Bob' -> 2\n");
    let (status, out, err) = dump(&["by_name", "--limit", "1"]);
    assert_eq!((status, &out[..]), (0, "01416e6e000180000001  'Ann' -> 1\n"));
    assert_eq!(err, "-- more entries follow: --limit N prints more, --prefix only some\n");
    let sql = "INSERT INTO t VALUES (3, NULL, repeat('long', 1000))";
    assert_eq!(cli.run(&["shop", "-c", sql]).0, 0);
    assert!(dump(&["t.d", "--prefix", "0x80000003"]).1.ends_with("… (2009 bytes more)\n"));
    assert!(dump(&["catalog"]).1.contains("  table/t {\"id\":"));
    assert!(cli.error(&["keydump", "shop", "tt"]).contains("there is no table \"tt\""));
    assert!(cli.error(&["keydump", "shop", "t.x"]).contains("hint: its families: default, d"));
    assert!(cli.error(&["keydump", "shop", "t", "--prefix", "0x1"]).contains("\"1\" is not hex"));
    assert!(cli.error(&["keydump", "nowhere", "t"]).contains("there is no database in nowhere"));
    assert!(!cli.path().join("nowhere").exists());
}

/// Whoever reads may have seen enough; a full disk is an error.
#[cfg(target_os = "linux")]
#[test]
fn reports_nobody_reads_are_no_panic() {
    let cli = Cli::new();
    cli.run(&["db", "-c", "CREATE TABLE t (id BIGINT PRIMARY KEY)"]);
    let writes = "SIMULATE WRITES ON t FROM (SELECT 1 AS id ORDER BY 1) INTO 4 REGIONS UNDER LAYOUT (id)";
    let demo = ["demo", "--orders", "10"];
    let restores = [["restore", "db", "one"], ["restore", "db", "two"]];
    for args in [&demo[..], &["heatmap", "--db", "db", writes], &restores[0]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let outcome = ended(cli.command(args).stdin(Stdio::null()).stdout(writer).output().unwrap());
        assert_eq!(outcome, (0, String::new(), String::new()), "{args:?}");
    }
    for args in [&demo[..], &["heatmap", "--db", "db", writes], &restores[1]] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let (status, _, err) = ended(cli.command(args).stdin(Stdio::null()).stdout(full).output().unwrap());
        assert_eq!(status, 1, "{args:?}");
        assert!(err.contains("results cannot be written"), "{err}");
    }
}

#[test]
fn heatmap() {
    let cli = Cli::new();
    let setup = "CREATE TABLE t (id BIGINT PRIMARY KEY)";
    let writes = "SIMULATE WRITES ON t FROM (SELECT value AS id FROM generate_series(1, 5000) ORDER BY 1) INTO 4 REGIONS
        UNDER LAYOUT (reverse(lpad(id, 8)))";
    let (status, out, err) = cli.run(&["heatmap", "--setup", setup, writes, "--out", "writes.html"]);
    assert_eq!((status, &err[..]), (0, ""));
    assert!(out.contains("id: one region takes nearly all writes"), "{out}");
    assert!(out.contains("reverse(lpad(id, 8)): every region takes its share"), "{out}");
    assert!(out.contains("hottest 25%, 4.0 of 4 regions at once, 0.0 idle"), "{out}");
    assert!(out.ends_with("writes.html has the pictures\n"), "{out}");
    let page = std::fs::read_to_string(cli.path().join("writes.html")).unwrap();
    assert_eq!(page.matches("<svg ").count(), 2);
    assert!(page.contains("<code>reverse(lpad(id, 8))</code>"));
    let traffic = [
        "CREATE TABLE s (id INT PRIMARY KEY) SPLIT ON (10)",
        "INSERT INTO s VALUES (1), (2), (11), (12)",
        "SELECT * FROM s WHERE id = 11",
    ];
    let setup_all = traffic.iter().flat_map(|sql| ["--setup", sql]);
    let all: Vec<&str> =
        ["heatmap", "SHOW TRAFFIC FROM s", "--out", "s.html"].into_iter().chain(setup_all).collect();
    let (status, out, err) = cli.run(&all);
    assert_eq!((status, &err[..]), (0, ""));
    assert!(out.starts_with("reads: one region takes nearly all reads\n"), "{out}");
    assert!(out.contains("writes: every region takes its share\n"), "{out}");
    let page = std::fs::read_to_string(cli.path().join("s.html")).unwrap();
    assert!(page.contains("<h1>Reads and writes of s</h1>") && page.matches("<svg ").count() == 2);
    assert!(cli.error(&["heatmap", "SHOW TRAFFIC FROM t", "--setup", setup]).contains("has one region"));
    assert!(cli.error(&["heatmap", "SELECT 1"]).contains("there are no pictures of SELECT"));
    assert!(cli.error(&["heatmap", "--db", "nowhere", writes]).contains("there is no database in nowhere"));
    assert!(
        cli.error(&["heatmap", "--setup", setup, writes, "--out", "no/such/folder"])
            .contains("cannot be written")
    );
}
