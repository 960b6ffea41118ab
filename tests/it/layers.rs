//! Who imports whom: the two tables of `src/ARCHITECTURE.md`, checked against every file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Table = BTreeMap<String, BTreeSet<String>>;

/// The first `text` block under `heading`: `name → names`, a line each.
fn table(heading: &str) -> Table {
    let tour = include_str!("../../src/ARCHITECTURE.md");
    let section = tour.split(heading).nth(1).expect("the tour has the heading");
    let block = section.split("```text\n").nth(1).and_then(|s| s.split("```").next()).expect("and its block");
    let row = |line: &str| {
        let (name, others) = line.split_once('→').expect("an arrow in every line");
        (name.trim().to_owned(), others.split_whitespace().map(str::to_owned).collect())
    };
    block.lines().map(row).collect()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Every file but those of tests: its path under `src`, its module, and its code without comments and tests.
fn sources() -> Vec<(String, String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let read = |path: &PathBuf| fs::read_to_string(path).expect("it is text");
    let of_tests: BTreeSet<PathBuf> = files.iter().flat_map(|path| test_modules(path, &read(path))).collect();
    // With the modules inside.
    let is_of_tests =
        |path: &Path| of_tests.iter().any(|of| path == of || path.starts_with(of.with_extension("")));
    let mut sources = Vec::new();
    for path in files.iter().filter(|path| !is_of_tests(path) && !path.ends_with("lib.rs")) {
        let name = path.strip_prefix(&src).expect("it lies in src").display().to_string();
        let module = name.split(['/', '.']).next().unwrap_or_default().to_owned();
        let text = read(path);
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let code = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>();
        sources.push((name, module, code.join("\n")));
    }
    sources
}

/// Files of modules that `file` declares for tests only.
fn test_modules(file: &Path, text: &str) -> Vec<PathBuf> {
    let stem = file.file_stem().unwrap_or_default();
    let folder = if stem == "mod" { file.with_file_name("") } else { file.with_extension("") };
    let declared = text.split("#[cfg(test)]\n").skip(1).filter_map(|after| {
        let line = after.lines().next()?.strip_suffix(';')?;
        Some(folder.join(format!("{}.rs", line.rsplit(' ').next()?)))
    });
    declared.collect()
}

/// Names that follow `prefix` in `code`, where it starts a path.
fn named_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let starts = code.match_indices(prefix).filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    });
    let name = |at: usize| code[at + prefix.len()..].split(|c: char| !c.is_alphanumeric() && c != '_').next();
    starts.filter_map(|(at, _)| name(at)).map(str::to_owned).collect()
}

#[test]
fn modules_import_only_what_is_below_them() {
    let allowed = table("## Who may import whom");
    let mut wrong = Vec::new();
    for (file, module, code) in sources() {
        let prefix = if module == "main" { "rowkeydb::" } else { "crate::" };
        let may = allowed.get(&module).unwrap_or_else(|| panic!("module {module} is not in the tour"));
        let names = named_after(&code, prefix);
        wrong.extend(
            names.iter().filter(|n| **n != module && !may.contains(*n)).map(|n| format!("{file}: {n}")),
        );
    }
    assert!(wrong.is_empty(), "imports the tour does not allow:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_has_no_cycle() {
    let mut left = table("## Who may import whom");
    while !left.is_empty() {
        let bottom: Vec<String> = left
            .iter()
            .filter(|(_, may)| may.iter().all(|m| !left.contains_key(m)))
            .map(|(n, _)| n.clone())
            .collect();
        assert!(!bottom.is_empty(), "these import each other: {:?}", left.keys());
        bottom.iter().for_each(|name| drop(left.remove(name)));
    }
}

#[test]
fn packages_are_used_where_they_live() {
    let homes = table("## Where packages live");
    let mut wrong = Vec::new();
    for (file, module, code) in sources() {
        for (package, homes) in &homes {
            let free = homes.contains("anywhere") || homes.contains(&module);
            if !free && !named_after(&code, &format!("{package}::")).is_empty() {
                wrong.push(format!("{file}: {package}"));
            }
        }
    }
    assert!(wrong.is_empty(), "packages outside their homes:\n{}", wrong.join("\n"));
}

#[test]
fn every_dependency_has_a_home() {
    let homes = table("## Where packages live");
    let manifest = include_str!("../../Cargo.toml");
    let section =
        manifest.split("[dependencies]\n").nth(1).and_then(|s| s.split("\n[").next()).unwrap_or_default();
    for line in section.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())) {
        let name = line.split(" =").next().unwrap_or_default().replace('-', "_");
        let name = if name == "md_5" { "md5".to_owned() } else { name };
        assert!(homes.contains_key(&name), "{name} is not in the tour");
    }
}

#[test]
fn the_top_level_holds_nothing_else() {
    let root = fs::read_dir(env!("CARGO_MANIFEST_DIR")).expect("the repository is there");
    let names =
        root.map(|entry| entry.expect("it can be listed").file_name().into_string().expect("in UTF-8"));
    let known =
        ["Cargo.lock", "Cargo.toml", "README.md", "benches", "sql_examples", "src", "target", "tests"];
    let others: Vec<String> =
        names.filter(|name| !name.starts_with('.') && !known.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:?}");
}
