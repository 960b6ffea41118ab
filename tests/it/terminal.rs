//! The shell at a terminal.

#![cfg(unix)]

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nix::pty::openpty;

/// Until then it has answered.
const ANSWERED: Duration = Duration::from_secs(60);

/// What the shell writes, of a database in memory, to somebody who has typed all of `typed` before it reads; `None`
/// where the system has no terminals to give.
fn answer(typed: &str) -> Option<String> {
    let pty = openpty(None, None).ok()?;
    let home = tempfile::tempdir().unwrap();
    let terminal = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut shell = Command::new(env!("CARGO_BIN_EXE_rowkeydb"))
        .env("TERM", "xterm")
        .env("HOME", home.path())
        .stdin(terminal())
        .stdout(terminal())
        .stderr(terminal())
        .spawn()
        .unwrap();
    drop(pty.slave);
    let mut keyboard = File::from(pty.master);
    let mut screen = keyboard.try_clone().unwrap();
    keyboard.write_all(typed.as_bytes()).unwrap();
    let (send, written) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut all = Vec::new();
        // Where the other end is gone, Linux says so by an error.
        let _ = screen.read_to_end(&mut all);
        let _ = send.send(String::from_utf8_lossy(&all).into_owned());
    });
    let written = written.recv_timeout(ANSWERED);
    let _ = shell.kill();
    shell.wait().unwrap();
    reader.join().unwrap();
    Some(written.expect("the shell has read all of it"))
}

#[test]
fn a_paste_ends_at_its_first_failure() {
    let written = answer(
        "CREATE TABLE t (k INT PRIMARY KEY);\rINSERT INTO t VALUES (1), (2);\r\
         \x1b[200~BEGIN;\nINSERT INTO t VALUES (1);\nDELETE FROM t WHERE k = 2;\nCOMMIT;\x1b[201~\r\
         ROLLBACK;\rSELECT count(*) + 40 AS kept FROM t;\r.quit\r",
    );
    let Some(written) = written else { return println!("there are no terminals: not tested") };
    for expected in ["note: 2 more statements did not run", "the transaction is still open", " 42"] {
        assert!(written.contains(expected), "{expected}: {written}");
    }
}

#[test]
fn what_is_typed_ahead_is_read_line_by_line() {
    let written = answer(
        "CREATE TABLE t (k INT PRIMARY KEY);\rBEGIN;\rINSERT INTO t VALUES (40);\rCOMMIT;\rROLLBACK;\r\
         SELECT k + 2 AS found,\r 'two' || 'lines' AS lines\r FROM t;\r.quit\r",
    );
    let Some(written) = written else { return println!("there are no terminals: not tested") };
    // Nobody has typed these.
    for expected in ["INSERT 1", "no transaction is open", "42 | twolines"] {
        assert!(written.contains(expected), "{expected}: {written}");
    }
}

#[test]
fn a_result_wider_than_the_terminal_has_a_line_for_each_column() {
    let written = answer("SELECT repeat('a', 50) AS one, repeat('b', 50) AS two;\r\\x off\r.quit\r");
    let Some(written) = written else { return println!("there are no terminals: not tested") };
    for expected in ["-[ 1 ]", "\none | aaaa", "\ntwo | bbbb", "expanded display is off"] {
        assert!(written.contains(expected), "{expected}: {written}");
    }
}
