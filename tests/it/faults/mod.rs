//! The disk fails under the database: a layer between it and libc (`libc.c`, put there by LD_PRELOAD) numbers each
//! write, flush, truncation, creation and change of names in its directory. At a chosen number it kills the process,
//! tears the write, cuts it short or refuses it, once or for good; what was not flushed is then lost in all,
//! some or no pages ([`disk`]), and the database is opened again. What was acknowledged must be there, nothing
//! may be there by halves, every index must agree with its table, and after a failed flush nothing may be acknowledged.
//!
//! `FAULT_POINTS` (default 30) says how often, `FAULT_SEED` where, `FAULT_FIRST` from which point on. It needs Linux and gcc, and is left out without.

mod damaged;
mod disk;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rowkeydb::{Database, Engine};
use serde_json::Value;

use crate::crash::{problems, run, schema, shown, statement};
use crate::dice::{Dice, setting};
use crate::engines;
use disk::{Files, Loss, Note};

/// SQLSTATE of keys that are taken.
const UNIQUE: &str = "23505";

const ROWS: &str = "INSERT INTO orders (id, buyer, note)
    SELECT value, value % 9, 'note ' || value FROM generate_series(1, 200)";

/// A statement that takes longer is taken to hang.
const PATIENCE: Duration = Duration::from_secs(60);

/// Many times.
const EVER: usize = 1 << 30;

/// What goes wrong, and with how many operations.
const FAULTS: [(&str, usize); 11] = [
    ("kill", 1),
    ("kill", 1),
    ("tear", 1),
    ("short", 1),
    ("eio", 1),
    ("eio", EVER),
    ("enospc", 1),
    ("enospc", EVER),
    ("full", 12),
    ("full", EVER),
    ("late", 1),
];

/// One place where it goes wrong.
#[derive(Clone)]
struct Point {
    engine: Engine,
    fault: (&'static str, usize),
    at: usize,
    cut: usize,
    loss: Loss,
    /// The files before, and what has made them.
    before: Files,
    made_by: Vec<String>,
    script: Vec<String>,
}

/// How a process fared.
struct Fared {
    /// To each statement that was answered.
    answers: Vec<Value>,
    notes: Vec<Note>,
    hung: bool,
    panicked: bool,
}

/// Where it is tried.
struct Bench {
    directory: tempfile::TempDir,
    layer: PathBuf,
}

impl Bench {
    /// `None` where the layer cannot be built.
    fn new() -> Option<Bench> {
        let directory = tempfile::tempdir().unwrap();
        let layer = directory.path().join("layer.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/libc.c");
        let built =
            Command::new("gcc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&layer).arg(source).status();
        let built = cfg!(target_os = "linux") && built.is_ok_and(|status| status.success());
        built.then_some(Bench { directory, layer })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn fare(&self, point: &Point) -> Fared {
        let (database, log, script) = (self.path("db"), self.path("log"), self.path("script"));
        disk::write(&database, &point.before);
        let _ = std::fs::remove_file(&log);
        let requests = point.script.iter().map(|sql| format!("{}\n", serde_json::json!({ "sql": sql })));
        std::fs::write(&script, requests.collect::<String>()).unwrap();
        let (how, times) = point.fault;
        let mut child = Command::new(env!("CARGO_BIN_EXE_rowkeydb"))
            .args(["run", "--keep-going", "--input", "jsonl", "--format", "jsonl"])
            .args(["--engine", point.engine.name(), "--db"])
            .args([&database, &script])
            .env("LD_PRELOAD", &self.layer)
            .envs([("FAULT_DIR", &database), ("FAULT_LOG", &log)])
            .env("FAULT_HOW", how)
            .envs(
                [("FAULT_AT", point.at), ("FAULT_TIMES", times), ("FAULT_CUT", point.cut)]
                    .map(|(name, number)| (name, number.to_string())),
            )
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let started = Instant::now();
        let mut hung = false;
        while child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
            if started.elapsed() > PATIENCE {
                hung = true;
                child.kill().unwrap();
            }
        }
        let mut told = String::new();
        child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        let notes = disk::notes(&log);
        let answers = answers(&notes).into_iter().map(|(answer, _)| answer).collect();
        Fared { answers, notes, hung, panicked: told.contains("panicked") }
    }
}

/// What was answered, and whether a flush had failed by then. One that failed beside the statements, of a table of
/// the LSM engine, is known from the next answer on: a commit may be on its way, and its own flush has not failed.
fn answers(notes: &[Note]) -> Vec<(Value, bool)> {
    let (mut text, mut found) = (Vec::new(), Vec::new());
    let (mut failed, mut failed_beside) = (false, false);
    for note in notes {
        let is_beside = note.name.starts_with("lsm/") && !note.name.starts_with("lsm/log-");
        failed |= note.what == b'f' && !is_beside;
        failed_beside |= note.what == b'f' && is_beside;
        if note.what == b'>' {
            text.extend_from_slice(&note.bytes);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                found.extend(serde_json::from_slice(&line).map(|answer| (answer, failed)));
                failed |= failed_beside;
            }
        }
    }
    found
}

/// The disk refused it, so it may be done or not.
fn is_open(answer: &Value) -> bool {
    answer["error"]["kind"] == "unavailable"
}

impl Point {
    /// A database that nothing happens to, after these of the statements.
    fn twin(&self, statements: impl IntoIterator<Item = usize>) -> Database {
        let twin = Database::in_memory().unwrap();
        self.made_by.iter().for_each(|script| run(&twin, script));
        for i in statements {
            let _ = twin.execute(&self.script[i]);
        }
        twin
    }

    /// What is wrong with how it came out, if anything.
    fn judge(&self, fared: &Fared, dice: &mut Dice, reopened: &Path) -> Result<(), (&'static str, String)> {
        let Fared { answers, notes, .. } = fared;
        if fared.hung {
            return Err(("HANG", format!("after {} answers", answers.len())));
        }
        if fared.panicked {
            return Err(("PANIC", format!("after {} answers", answers.len())));
        }
        disk::write(reopened, &disk::after(&self.before, notes, self.loss, dice));
        let db = engines::settled(reopened).map_err(|e| ("LOST", format!("it does not open: {e}")))?;
        // An index whose rebuilding was refused may be Broken, and says so; it can be built again.
        for (sql, _) in self.script.iter().zip(answers).filter(|(_, answer)| is_open(answer)) {
            if sql.starts_with("REPAIR") {
                let _ = db.execute(sql);
            }
        }
        let problems = problems(&db);
        if !problems.is_empty() {
            return Err(("INDEX", problems.join("; ")));
        }
        let found = shown(&db);
        let sure = |i: usize| i < answers.len() && !is_open(&answers[i]);
        // Nothing of what was not acknowledged, or one of it.
        let mut doubtful = (0..self.script.len().min(answers.len() + 1)).filter(|i| !sure(*i));
        // One that was refused has done nothing, unless it left an index that is Broken. The twin might not refuse
        // it, if what it lacked was doubtful.
        let acted = |i: usize| answers[i]["error"].is_null() || answers[i]["error"]["sqlstate"] == UNIQUE;
        let is_done = |i: usize| sure(i) && acted(i);
        let done = || (0..answers.len()).filter(|i| is_done(*i));
        let is_found = |statements: Vec<usize>| shown(&self.twin(statements)) == found;
        // What was refused may show when the database is opened: what came after did not see it. It was logged and not
        // flushed, or is an index that could not be undone, and is built of the rows there are by then. Of such there
        // may be several.
        let is_index = |i: &usize| !sure(*i) && self.script[*i].contains(" INDEX ");
        let indexes: Vec<usize> = (0..answers.len()).filter(is_index).collect();
        let some_of = |choice: usize| indexes.iter().enumerate().filter(move |(n, _)| choice >> n & 1 == 1);
        let late = |i: usize| is_found(done().chain([i]).collect());
        let late_indexes = || {
            (1..1 << indexes.len())
                .any(|choice| is_found(done().chain(some_of(choice).map(|(_, i)| *i)).collect()))
        };
        let in_place = |more: usize| (0..=answers.len()).filter(move |i| *i == more || is_done(*i)).collect();
        let whole = |more: usize| is_found(in_place(more)) || late(more);
        if !is_found(done().collect()) && !doubtful.any(whole) && !late_indexes() {
            let acknowledged = (0..answers.len()).filter(|i| sure(*i)).count();
            let earlier = (0..answers.len()).any(|n| is_found((0..n).filter(|i| sure(*i)).collect()));
            let short = |line: &String| line.chars().take(150).collect::<String>();
            let said = |i: usize| match answers.get(i) {
                Some(answer) if answer["error"].is_null() => answer["affected"].to_string(),
                Some(answer) => short(&answer["error"]["message"].to_string()),
                None => "no answer".to_owned(),
            };
            let script: Vec<_> =
                self.script.iter().enumerate().map(|(i, sql)| format!("{sql} -- {}", said(i))).collect();
            let expected = shown(&self.twin(done()));
            let differing = found.iter().zip(&expected).find(|(a, b)| a != b);
            let differing = differing.map(|(a, b)| (short(a), short(b)));
            let what = format!(
                "{acknowledged} acknowledged, first difference {differing:?}:\n{}",
                script.join("\n")
            );
            return Err((if earlier { "LOST" } else { "TORN" }, what));
        }
        Ok(())
    }

    /// After a failed flush the database is opened again, as the error advises, and used until the power fails: what the
    /// flush gave up was still to be read, but is on no disk.
    fn go_on(
        &self,
        more: Vec<String>,
        fared: &Fared,
        bench: &Bench,
        dice: &mut Dice,
    ) -> Result<(), (&'static str, String)> {
        let before = disk::read(&bench.path("db"));
        let mut then = Point { script: more, fault: ("kill", 1), at: 0, before, ..self.clone() };
        let whole = bench.fare(&then);
        let answered = whole.notes.iter().rfind(|note| note.what == b'>');
        then.at = answered.map_or(1, |note| note.number as usize + 1);
        let Fared { answers, notes, hung, panicked } = bench.fare(&then);
        let both =
            Point { script: [&self.script[..], &then.script].concat(), loss: Loss::All, ..self.clone() };
        let answers = fared.answers.iter().cloned().chain(answers).collect();
        let notes = fared.notes.iter().cloned().chain(notes).collect();
        both.judge(&Fared { answers, notes, hung, panicked }, dice, &bench.path("again"))
    }

    /// A statement that changed anything and was acknowledged after a flush had failed. What a refused one had done
    /// before it was refused, such as an index that IF NOT EXISTS finds Building, is no change of this one.
    fn acknowledged_in_vain(&self, notes: &[Note]) -> Option<String> {
        let answers = answers(notes);
        let acknowledged = |i: usize| answers.get(i).is_some_and(|(answer, _)| answer.get("error").is_none());
        let late = (0..answers.len()).filter(|i| answers[*i].1 && acknowledged(*i));
        let changes = |i: usize, with_refused: bool| {
            let done = |n: usize| {
                let refused = |i: usize| with_refused && is_open(&answers[i].0);
                shown(&self.twin((0..n).filter(|i| acknowledged(*i) || refused(*i))))
            };
            done(i) != done(i + 1)
        };
        let changes = |i: usize| changes(i, false) && changes(i, true);
        late.into_iter().find(|i| changes(*i)).map(|i| self.script[i].clone())
    }
}

/// A full disk that lets a UNIQUE index neither be built nor be undone leaves it Building, which rows of one key may
/// be written beside; what becomes of it is seen when the database is opened. It was found by `FAULT_SEED=22`, 685.
#[test]
fn a_full_disk_that_cannot_undo_an_index_leaves_it_to_the_next_open() {
    let Some(bench) = Bench::new() else { return };
    for engine in Engine::ALL {
        let made_by = format!("{}{ROWS}", schema(engine));
        run(&engines::open(bench.path(engine.name()), engine), &made_by);
        let script = [
            "INSERT INTO orders (id, buyer, note) VALUES (301, 7, 'same')",
            "CREATE UNIQUE INDEX narrow ON orders (buyer, note)",
            "INSERT INTO orders (id, buyer, note) VALUES (302, 7, 'same')",
        ];
        let mut point = Point {
            engine,
            // What the build and its undoing ask of LMDB's disk.
            fault: ("full", 7),
            at: 0,
            cut: 0,
            loss: Loss::None,
            before: disk::read(&bench.path(engine.name())),
            made_by: vec![made_by],
            script: script.map(str::to_owned).to_vec(),
        };
        let without = bench.fare(&point).notes;
        let first = without.iter().position(|note| note.what == b'>').unwrap();
        let second = first + 1 + without[first + 1..].iter().position(|note| note.what == b'>').unwrap();
        let (mut broken, numbers) = (0, without[first].number + 1..=without[second].number);
        for at in numbers {
            point.at = at as usize;
            let fared = bench.fare(&point);
            let judged = point.judge(&fared, &mut Dice::new(1, at), &bench.path("again"));
            judged.unwrap_or_else(|(outcome, what)| panic!("{engine}: {outcome} at {at}: {what}"));
            let db = engines::settled(bench.path("again")).unwrap();
            broken += usize::from(shown(&db).contains(&"narrow orders Broken".to_owned()));
        }
        assert!(engine == Engine::Lsm || broken > 0, "the undoing never failed");
    }
}

/// Runs some statements; the disk fails with the first write or flush of the second one.
fn with_fault(engine: Engine, how: &'static str, times: usize, with: u8) -> Option<(Bench, Point, Fared)> {
    let bench = Bench::new()?;
    drop(engines::open(bench.path("base"), engine));
    let script = [
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
        "INSERT INTO t VALUES (2)",
        "SELECT id FROM t",
    ];
    let mut point = Point {
        engine,
        fault: (how, times),
        at: 0,
        cut: 0,
        loss: Loss::None,
        before: disk::read(&bench.path("base")),
        made_by: Vec::new(),
        script: script.map(str::to_owned).to_vec(),
    };
    let without = bench.fare(&point).notes;
    let second = without.iter().skip_while(|note| note.what != b'>').find(|note| note.what == with);
    point.at = second.unwrap().number as usize;
    let fared = bench.fare(&point);
    Some((bench, point, fared))
}

#[test]
fn after_a_failed_flush_the_database_is_read_only_until_it_is_opened_again() {
    for engine in Engine::ALL {
        let Some((bench, point, fared)) = with_fault(engine, "eio", 1, b's') else { return };
        let told = |i: usize| &fared.answers[i]["error"]["message"];
        assert_eq!(told(1), "the database cannot be read or written");
        assert_eq!(told(2), "the database can only be read since a commit failed");
        assert_eq!(fared.answers[3]["rows"], serde_json::json!([]));
        let more = ["INSERT INTO t VALUES (4)".to_owned(), "INSERT INTO t VALUES (5)".to_owned()];
        assert_eq!(point.go_on(more.to_vec(), &fared, &bench, &mut Dice::new(1, 1)), Ok(()), "{engine}");
        let db = Database::open(bench.path("db")).unwrap();
        assert_eq!(db.execute("INSERT INTO t VALUES (3)").unwrap(), 1);
        assert_eq!(problems(&db), [""; 0]);
    }
}

#[test]
fn when_a_full_disk_has_room_again_work_goes_on() {
    // LMDB: the write, the flush that shows that none has failed, and the file that finds no room either.
    for (engine, times) in [(Engine::Lmdb, 3), (Engine::Lsm, 1)] {
        let Some((.., fared)) = with_fault(engine, "full", times, b'w') else { return };
        assert_eq!(fared.answers[1]["error"]["message"], "the disk is full");
        assert_eq!(fared.answers[2]["affected"], 1);
        assert_eq!(fared.answers[3]["rows"], serde_json::json!([[2]]));
    }
}

#[test]
fn a_disk_that_fails_anywhere_loses_nothing_that_was_acknowledged() {
    fails_anywhere(Engine::Lmdb);
}

#[test]
fn a_disk_that_fails_under_the_lsm_engine_does_not_either() {
    fails_anywhere(Engine::Lsm);
}

fn fails_anywhere(engine: Engine) {
    let Some(bench) = Bench::new() else {
        println!("left out: the layer between process and libc needs Linux on x86-64, and gcc");
        return;
    };
    let (points, seed) = (setting("FAULT_POINTS", 30), setting("FAULT_SEED", 1));
    let csv = bench.path("side.csv");
    let rows: String = (0..500).map(|k| format!("{k},{}\n", k % 7)).collect();
    std::fs::write(&csv, format!("k,v\n{rows}")).unwrap();
    let schema = schema(engine);
    run(&engines::open(bench.path("base"), engine), &format!("{schema}{ROWS}"));
    let base = disk::read(&bench.path("base"));
    let (mut counts, mut reached) = (BTreeMap::new(), BTreeMap::new());
    let first = setting("FAULT_FIRST", 0);
    for number in first..first + points {
        let mut dice = Dice::new(seed, number);
        // One in four starts with nothing.
        let is_new = number % 4 == 3;
        let mut next = 0;
        let creation = schema.split(';').filter(|sql| is_new && !sql.trim().is_empty()).map(str::to_owned);
        let mut script: Vec<String> = creation.collect();
        script.extend((0..10).map(|_| statement(engine, &mut dice, &csv, &mut next)));
        let point = Point {
            engine,
            fault: FAULTS[dice.below(FAULTS.len())],
            at: 1 + dice.below(if engine == Engine::Lsm { 100 } else { 50 }),
            cut: dice.below(1000),
            loss: [Loss::None, Loss::Some, Loss::All][dice.below(3)],
            before: if is_new { Files::new() } else { base.clone() },
            made_by: if is_new { Vec::new() } else { vec![format!("{schema}{ROWS}")] },
            script,
        };
        let fared = bench.fare(&point);
        let whole = disk::after(&point.before, &fared.notes, Loss::None, &mut Dice::new(seed, number));
        assert_eq!(whole, disk::read(&bench.path("db")), "the layer has missed something");
        if let Some(note) = fared.notes.iter().find(|note| note.what == b'!') {
            *reached.entry((point.fault.0, kind(&note.name).to_owned())).or_insert(0) += 1;
        }
        let mut judged = point.judge(&fared, &mut dice, &bench.path("again"));
        let has_answered = fared.answers.len() == point.script.len();
        if judged.is_ok() && has_answered && fared.notes.iter().any(|note| note.what == b'f') {
            let more = (0..3).map(|_| statement(engine, &mut dice, &csv, &mut next)).collect();
            judged = point.go_on(more, &fared, &bench, &mut dice);
        }
        if judged.is_ok()
            && let Some(sql) = point.acknowledged_in_vain(&fared.notes)
        {
            judged = Err(("VAIN", sql));
        }
        let outcome = match judged {
            Ok(()) => "right",
            Err((outcome, what)) => {
                let Point { fault, at, loss, .. } = &point;
                println!(
                    "{outcome} at point {number}, seed {seed}: {fault:?} at {at}, {loss:?} lost: {what}"
                );
                outcome
            }
        };
        *counts.entry(outcome).or_insert(0) += 1;
    }
    println!("{engine}: {points} points, seed {seed}: {counts:?}; reached: {reached:?}");
    assert_eq!(counts.get("right").copied(), Some(points), "{counts:?}");
    let faults: BTreeSet<_> = reached.keys().map(|(fault, _)| fault).collect();
    assert!(points < 30 || faults.len() > 3, "hardly a fault was reached: {reached:?}");
}

/// Which of the files it is: its name without numbers and what chance puts there.
fn kind(name: &str) -> &str {
    let name = if name.starts_with("lsm/tree/tables/") { "lsm/tree/tables/*" } else { name };
    let end = name.rfind("/.tmp").unwrap_or(name.len());
    name[..end].trim_end_matches(|c: char| c.is_ascii_digit())
}
