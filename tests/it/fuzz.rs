//! The targets of `tests/fuzz`, over what was found in them and over some chance: `FUZZ_RUNS` (default 60) each.

use std::collections::BTreeSet;
use std::path::Path;

use rowkeydb::sql::Splitter;

use crate::dice::{Dice, setting};

#[path = "../fuzz/targets.rs"]
pub mod targets;

fn run(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(name);
    let mut inputs: Vec<Vec<u8>> = std::fs::read_dir(corpus)
        .map(|files| files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect())
        .unwrap_or_default();
    inputs.iter().for_each(|input| target(input));
    let seed = setting("FUZZ_SEED", 1);
    for n in 0..setting("FUZZ_RUNS", 60) {
        let mut dice = Dice::new(seed, n);
        // One of those, changed, or bytes by chance.
        let mut input = match inputs.is_empty() || dice.chance(30) {
            true => (0..dice.below(200)).map(|_| dice.below(256) as u8).collect(),
            false => inputs.swap_remove(dice.below(inputs.len())),
        };
        let kept = input.clone();
        for _ in 0..dice.below(6) {
            let at = dice.below(input.len() + 1);
            match dice.below(3) {
                0 => input.insert(at, dice.below(256) as u8),
                1 if at < input.len() => drop(input.remove(at)),
                _ => input.truncate(at.max(1)),
            }
        }
        println!("{name} {n}: {}", input.escape_ascii());
        target(&input);
        inputs.push(kept);
    }
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(#[test] fn $target() { run(stringify!($target), targets::$target); })*
    };
}

targets! { database_files files key_codec packed_row sql_text statements stored_bytes }

/// Statements of every script: what `sql_text` begins with.
#[test]
#[ignore = "writes files, for the fuzzer"]
fn seeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("tests/fuzz/target/corpus/sql_text");
    std::fs::create_dir_all(&folder).unwrap();
    let mut statements = BTreeSet::new();
    for scripts in ["sql_examples", "tests/sql", "tests/plans"] {
        for file in std::fs::read_dir(root.join(scripts)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|kind| kind != "out") {
                statements.extend(statements_of(&std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    println!("{} statements", statements.len());
    for (n, statement) in statements.iter().enumerate() {
        std::fs::write(folder.join(format!("script{n}")), statement).unwrap();
    }
}

/// Whatever the kind of script: in a golden one, they follow `>`; in one of sqllogictest, a line says what comes.
fn statements_of(script: &str) -> Vec<String> {
    let golden = |line: &str| {
        line.split_once("> ").is_some_and(|(tag, _)| tag.is_empty() || tag.ends_with([']', '!']))
    };
    let mut out = Vec::new();
    let mut splitter = Splitter::new();
    let lines = script.replace("\\\n", "");
    if lines.lines().any(golden) {
        return lines
            .lines()
            .filter(|line| golden(line))
            .filter_map(|line| Some(line.split_once("> ")?.1.to_owned()))
            .collect();
    }
    if script.contains("\nstatement ok\n") {
        let blocks = script.split("\n\n").filter_map(|block| {
            let at = ["statement ", "query "].iter().filter_map(|word| block.find(word)).min()?;
            let (_, sql) = block[at..].split_once('\n')?;
            Some(sql.split("\n----").next()?.to_owned())
        });
        return blocks.collect();
    }
    splitter.push(script);
    while let Some(statement) = splitter.next_statement() {
        out.push(statement.text);
    }
    out
}
