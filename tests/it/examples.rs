//! `sql_examples/*.sql` print what lies beside them in `*.out`.
//!
//! `UPDATE_EXPECT=1 cargo test --test it examples` writes the outputs anew: then read the diff.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Output of `rowkeydb run` on a new database in memory. Panics if a statement fails.
fn run(script: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rowkeydb"))
        .args(["run", "--format", "table"])
        .arg(script)
        .output()
        .expect("the binary starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} fails:\n{errors}", script.display());
    String::from_utf8(output.stdout).expect("output is UTF-8")
}

fn check(name: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql_examples").join(format!("{name}.sql"));
    let expected: PathBuf = script.with_extension("out");
    let printed = run(&script);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return fs::write(&expected, printed).expect("the output can be written");
    }
    let wanted = fs::read_to_string(&expected).unwrap_or_default();
    if let Some((n, (is, was))) =
        printed.lines().zip(wanted.lines()).enumerate().find(|(_, (is, was))| is != was)
    {
        panic!("{} line {}:\n printed: {is}\nexpected: {was}", expected.display(), n + 1);
    }
    assert_eq!(printed.lines().count(), wanted.lines().count(), "lines of {}", expected.display());
}

#[test]
fn documents() {
    check("documents");
}

#[test]
fn references() {
    check("references");
}

#[test]
fn marketplace() {
    check("marketplace");
}

#[test]
fn customer_order() {
    check("customer_order");
}

#[test]
fn words() {
    check("words");
}

#[test]
fn timeseries() {
    check("timeseries");
}

#[test]
fn hotspots() {
    check("hotspots");
}

#[test]
fn design() {
    check("design");
}
