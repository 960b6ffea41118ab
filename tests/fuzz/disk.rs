//! Files of databases, changed where nobody should.

use std::fs;
use std::path::{Path, PathBuf};

use rowkeydb::{Database, Engine, Options, Result};

use super::{Choices, allow};

const QUESTIONS: [&str; 7] = [
    "SELECT count(*) FROM t",
    "SELECT /*+ FULL */ * FROM t ORDER BY a",
    "SELECT /*+ INDEX(by_b) */ a, b FROM t WHERE b BETWEEN 2 AND 4 ORDER BY b DESC, a",
    "SELECT /*+ INDEX(by_b) */ c FROM t WHERE b = 3 ORDER BY a",
    "SELECT b FROM t WHERE a IN (1, 77, 100, 1000)",
    "SELECT a FROM t WHERE c = 'c77'",
    "SELECT * FROM u ORDER BY n DESC LIMIT 3",
];

/// The files of a database, what they hold, and what is answered.
struct Template {
    files: Vec<(PathBuf, Vec<u8>)>,
    answers: Vec<Vec<String>>,
}

fn answer(db: &Database, sql: &str) -> Result<Vec<String>> {
    db.query(sql)?.map(|row| Ok(format!("{:?}", row?.values()?))).collect()
}

/// The files of a database, relative to its folder, those aside that hold nothing that lasts.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    fn list(folder: &Path, under: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder.join(under)).unwrap() {
            let entry = entry.unwrap();
            let name = under.join(entry.file_name());
            match entry.path().is_dir() {
                true => list(folder, &name, files),
                false if entry.file_name() == "lock.mdb" => {}
                false => files.push(name),
            }
        }
    }
    let mut files = Vec::new();
    list(folder, Path::new(""), &mut files);
    files.sort();
    files
}

impl Template {
    fn new(engine: Engine) -> Template {
        let directory = tempfile::tempdir().unwrap();
        let options = || Options { engine: Some(engine), ..Options::default() };
        let db = Database::open_with(directory.path(), options()).unwrap();
        for sql in [
            "CREATE TABLE t (a INT, b INT, c TEXT, PRIMARY KEY (lpad(a, 4)))",
            "CREATE INDEX by_b ON t (b)",
            "CREATE UNIQUE INDEX by_c ON t (c)",
            "CREATE TABLE u (n INT, s TEXT, PRIMARY KEY (reverse(lpad(n, 4))))",
            "INSERT INTO t SELECT value, value % 9, 'c' || value FROM generate_series(1, 400)",
        ] {
            db.execute(sql).unwrap();
        }
        drop(db);
        // What comes now is in the log alone, for nobody closes the database before its files are read.
        let db = Database::open_with(directory.path(), options()).unwrap();
        db.execute("DELETE FROM t WHERE b = 5").unwrap();
        db.execute("UPDATE t SET b = b + 1 WHERE a % 10 = 0").unwrap();
        db.execute("INSERT INTO u SELECT value, repeat('long', 1000 * value) FROM generate_series(1, 9)")
            .unwrap();
        let read = |name: PathBuf| {
            let bytes = fs::read(directory.path().join(&name)).unwrap();
            (name, bytes)
        };
        let files = files(directory.path()).into_iter().map(read).collect();
        let answers = QUESTIONS.map(|sql| answer(&db, sql).unwrap()).into();
        Template { files, answers }
    }
}

thread_local! {
    static TEMPLATES: [Template; 2] = Engine::ALL.map(Template::new);
}

/// Changes one file in one place.
fn change(choices: &mut Choices<'_>, file: &mut Vec<u8>) {
    let place = |choices: &mut Choices<'_>, len: usize| (choices.wide() << 16 | choices.wide()) % len.max(1);
    let at = place(choices, file.len());
    let sector = at / 512 * 512..file.len().min(at / 512 * 512 + 512);
    match choices.below(6) {
        0 => file.truncate(at),
        1 => file[sector].fill(0),
        2 => {
            let from = place(choices, file.len()) / 4096 * 4096;
            let from = from..file.len().min(from + 4096);
            let to = (at / 4096 * 4096).min(file.len() - from.len());
            file.copy_within(from, to);
        }
        3 => file.extend_from_slice(choices.bytes(20)),
        _ if file.is_empty() => {}
        _ => file[at] ^= choices.byte().max(1),
    }
}

/// A change in one place gives the right answers, or an error; more of them give no panic, at least.
pub fn database_files(data: &[u8]) {
    let mut choices = Choices(data);
    TEMPLATES.with(|templates| {
        let template = &templates[choices.below(2)];
        let mut files = template.files.clone();
        let changes = 1 + choices.below(4).saturating_sub(1);
        let mut changed = Vec::new();
        for _ in 0..changes {
            let at = choices.below(files.len());
            change(&mut choices, &mut files[at].1);
            changed.push(&template.files[at].0);
        }
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in &files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let Some(db) = allow(Database::open(directory.path()), "open") else { return };
        for (sql, expected) in QUESTIONS.iter().zip(&template.answers) {
            if let Some(found) = allow(answer(&db, sql), sql) {
                assert!(changes > 1 || found == *expected, "{changed:?} {sql}: {found:?}");
            }
        }
        for sql in [
            "CHECK DATABASE",
            "INSERT INTO t VALUES (5000, 3, 'new')",
            "DELETE FROM t WHERE b = 2",
            "TRUNCATE t",
        ] {
            allow(answer(&db, sql), sql);
        }
    });
}
