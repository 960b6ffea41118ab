//! Tests of what a console writes.

use super::super::testing::console;
use super::*;

fn jsonl() -> Settings {
    Settings { format: OutputFormat::Jsonl, keep_going: true, ..Settings::default() }
}

#[test]
fn errors_stop_a_console_unless_it_keeps_going() {
    let (mut strict, _, err) = console(Settings::default());
    assert!(matches!(strict.statement("SELEC 1", &Place::TOP), Err(Halt::Failed)));
    assert!(strict.failed());
    assert!(err.take().starts_with("error: "));

    let (mut lenient, _, _) = console(Settings { keep_going: true, ..Settings::default() });
    assert!(lenient.statement("SELEC 1", &Place::TOP).is_ok());
    assert!(lenient.failed());
}

#[test]
fn errors_in_files_name_the_file_and_its_line() {
    let (mut console, _, err) = console(Settings::default());
    let place = Place { file: Some("load.sql".into()), line: 17 };
    assert!(console.statement("SELEC 1", &place).is_err());
    let message = err.take();
    assert!(message.starts_with("load.sql:17: error: "), "{message}");
    assert!(message.contains("\nLINE 17: SELEC 1\n         ^"), "{message}");
}

#[test]
fn every_statement_gives_one_object() {
    let (mut console, out, err) = console(jsonl());
    console.statement("SELECT 1 AS n", &Place::TOP).unwrap();
    console.statement("SELEC 1", &Place { file: None, line: 5 }).unwrap();
    console.request(r#"{"sql": "SELECT $1 AS n;", "params": [42]}"#, &Place::TOP).unwrap();
    console.request("nonsense", &Place { file: None, line: 8 }).unwrap();
    console.request(r#"{"sql": "SELECT 1; SELECT 2"}"#, &Place::TOP).unwrap();
    let objects: Vec<serde_json::Value> =
        out.take().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = objects.iter().map(|o| o["statement"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!(objects[0]["rows"].to_string(), "[[1]]");
    assert_eq!(objects[1]["error"]["line"], 5);
    assert_eq!(objects[2]["rows"].to_string(), "[[42]]");
    assert_eq!(objects[3]["error"]["line"], 8);
    assert_eq!(objects[4]["error"]["message"], "a request holds one statement");
    assert_eq!(err.take(), "");
}

#[test]
fn a_dump_goes_where_results_go() {
    let (mut console, out, _) = console(Settings::default());
    console.statement("CREATE TABLE t (id INT PRIMARY KEY, note TEXT)", &Place::TOP).unwrap();
    console.statement("INSERT INTO t VALUES (1, 'a;b')", &Place::TOP).unwrap();
    out.take();
    console.command(".dump", &Place::TOP).unwrap();
    let dump = out.take();
    assert!(dump.ends_with("INSERT INTO t (id, note) VALUES\n  (1, 'a;b');\n"), "{dump}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.sql");
    console.command(&format!(".once {}", file.display()), &Place::TOP).unwrap();
    console.command(".dump", &Place::TOP).unwrap();
    console.command(".echo here", &Place::TOP).unwrap();
    assert_eq!((std::fs::read_to_string(file).unwrap(), out.take()), (dump, "here\n".to_owned()));
}

#[test]
fn settings_change_by_command() {
    let (mut console, out, err) = console(Settings::default());
    for line in [".mode csv", "\\set n 5", "\\echo n is :n", ".mode"] {
        console.command(line, &Place::TOP).unwrap();
    }
    console.statement("SELECT :n AS n", &Place::TOP).unwrap();
    assert_eq!(out.take(), "n is 5\ncsv\nn\n5\n");
    assert!(console.command(".mode xml", &Place::TOP).is_err());
    assert!(err.take().starts_with("error: there is no mode \"xml\""));
    assert!(matches!(console.command("\\q", &Place::TOP), Err(Halt::Quit)));
}

#[test]
fn results_go_to_a_file_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("out.csv");
    let (mut console, out, _) = console(Settings { format: OutputFormat::Csv, ..Settings::default() });
    console.command(&format!(".output {}", path.display()), &Place::TOP).unwrap();
    console.statement("SELECT 1 AS n", &Place::TOP).unwrap();
    console.command(".output", &Place::TOP).unwrap();
    console.statement("SELECT 2 AS n", &Place::TOP).unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "n\n1\n");
    assert_eq!(out.take(), "n\n2\n");
}

#[test]
fn the_next_result_goes_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("once.csv");
    let (mut console, out, err) = console(Settings { format: OutputFormat::Csv, ..Settings::default() });
    console.command(&format!(".once {}", path.display()), &Place::TOP).unwrap();
    console.statement("SELECT 1 AS n", &Place::TOP).unwrap();
    console.statement("SELECT 2 AS n", &Place::TOP).unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "n\n1\n");
    assert_eq!(out.take(), "n\n2\n");
    assert!(console.command(".once /no/such/folder/f", &Place::TOP).is_err());
    assert!(err.take().starts_with("error: cannot write /no/such/folder/f\n  why: "));
}

#[test]
fn a_statement_is_repeated_until_it_fails_or_is_cancelled() {
    let (mut console, out, err) = console(Settings { format: OutputFormat::Csv, ..Settings::default() });
    assert!(console.command(".watch", &Place::TOP).is_err());
    assert!(err.take().starts_with("error: there is no statement to repeat\n hint: "));
    console.statement("CREATE TABLE t (id INT PRIMARY KEY CHECK (id < 3))", &Place::TOP).unwrap();
    console.statement("INSERT INTO t SELECT count(*) FROM t", &Place::TOP).unwrap();
    assert!(console.command(".watch 0.1", &Place::TOP).is_err());
    assert!(err.take().starts_with("error: check \"t_check_1\" does not hold"));
    console.statement("SELECT count(*) AS n FROM t", &Place::TOP).unwrap();
    assert_eq!(out.take(), "n\n3\n");
    let cancel = console.cancel_handle();
    let ctrl_c = thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        cancel.cancel();
    });
    console.command(".watch 600", &Place::TOP).unwrap();
    ctrl_c.join().unwrap();
    assert_eq!(out.take(), "n\n3\n");
}

#[test]
fn what_is_wider_than_the_screen_is_expanded() {
    let (mut console, out, _) = console(Settings::default());
    let shown = |console: &mut Console, sql: &str| {
        console.statement(sql, &Place::TOP).unwrap();
        out.take()
    };
    let wide = "SELECT 'one and two' AS a, 'three and four' AS b";
    assert!(shown(&mut console, wide).starts_with(" a "));
    console.screen = Some(Screen { rows: 24, columns: 29 });
    assert_eq!(
        shown(&mut console, wide),
        "-[ 1 ]-+--------\na | one and two\nb | three and four\n(1 row)\n\n"
    );
    console.command("\\x off", &Place::TOP).unwrap();
    assert!(shown(&mut console, wide).starts_with("expanded display is off\n a "));
    for expected in ["on", "auto"] {
        console.command("\\x", &Place::TOP).unwrap();
        assert_eq!(
            shown(&mut console, "SELECT 1 AS n").lines().next(),
            Some(&*format!("expanded display is {expected}"))
        );
    }
}

#[test]
fn a_byte_order_mark_is_none_of_sql() {
    let (mut console, out, _) = console(Settings { format: OutputFormat::Csv, ..Settings::default() });
    console.statement("\u{feff}-- saved by an editor\nSELECT 1 AS n", &Place::TOP).unwrap();
    assert_eq!(out.take(), "n\n1\n");
}

#[test]
fn pictures_go_to_the_screen_or_to_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.html");
    let (mut console, out, err) = console(Settings { keep_going: true, ..Settings::default() });
    for sql in ["CREATE TABLE t (id INT PRIMARY KEY) SPLIT ON (5)", "INSERT INTO t VALUES (1), (7), (8)"] {
        console.statement(sql, &Place::TOP).unwrap();
    }
    out.take();
    console.command(".heatmap t", &Place::TOP).unwrap();
    let blocks = out.take();
    assert!(
        blocks.starts_with("reads: no reads so far\n\nwrites: every region takes its share\n"),
        "{blocks}"
    );
    console.command(&format!(".heatmap t {}", path.display()), &Place::TOP).unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().contains("<svg "));
    console.command(".heatmap t /no/such/folder/t.html", &Place::TOP).unwrap();
    assert!(err.take().starts_with("error: cannot write /no/such/folder/t.html\n  why: "));
    console.command(".heatmap u", &Place::TOP).unwrap();
    assert!(err.take().starts_with("error: there is no table \"u\""));
}

#[test]
fn an_open_transaction_is_not_lost_in_silence() {
    let (mut console, _, err) = console(Settings::default());
    console.statement("BEGIN", &Place::TOP).unwrap();
    console.close().unwrap();
    assert!(err.take().starts_with("warning: the transaction still open"));
}

#[test]
fn times_are_short() {
    let cases = [(1_234, "1.2 ms"), (49, "0.0 ms"), (1_250_000, "1.25 s"), (125_000_000, "2 min 5 s")];
    for (us, text) in cases {
        assert_eq!(shown(Duration::from_micros(us)), text);
    }
}

#[test]
fn queries_are_known_by_their_first_word() {
    assert!(is_query("-- note\n select 1"));
    assert!(is_query("WITH a AS (SELECT 1) SELECT * FROM a"));
    assert!(!is_query("DELETE FROM t"));
}
