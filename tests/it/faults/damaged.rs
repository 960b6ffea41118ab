//! A page of an index table is damaged, and the disk fails while writes that were to go there are put elsewhere, and
//! while the index is built anew.

use super::*;

const MADE_BY: &str = "CREATE TABLE orders (id INT, buyer INT, PRIMARY KEY (lpad(id, 8)));
    CREATE INDEX by_buyer ON orders (lpad(buyer, 6));
    INSERT INTO orders SELECT value, value % 20 FROM generate_series(1, 1000);
    CREATE TABLE side (k INT PRIMARY KEY, v INT);
    INSERT INTO side VALUES (1, 1)";

const SCRIPT: [&str; 8] = [
    "INSERT INTO orders VALUES (6000, 7)",
    "INSERT INTO side VALUES (2, 2)",
    // All that was logged goes into the tree first.
    "TRUNCATE side",
    "INSERT INTO side VALUES (3, 3)",
    "REPAIR INDEX by_buyer",
    "INSERT INTO orders VALUES (6001, 7)",
    "DROP INDEX by_buyer",
    "CREATE INDEX by_buyer ON orders (lpad(buyer, 6))",
];

impl Point {
    /// What is there once the index is built anew is what was acknowledged, and perhaps one thing more.
    fn is_right_once_repaired(&self, fared: &Fared, db: &Database) -> Result<(), String> {
        match db.execute("REPAIR INDEX by_buyer") {
            Err(e) if !shown(db).iter().any(|line| line.starts_with("by_buyer ")) => drop(e),
            repaired => drop(repaired.map_err(|e| e.to_string())?),
        }
        let (problems, found) = (problems(db), shown(db));
        if !problems.is_empty() {
            return Err(problems.join("; "));
        }
        let Fared { answers, .. } = fared;
        let sure = |i: &usize| *i < answers.len() && !is_open(&answers[*i]);
        let done = || (0..SCRIPT.len()).filter(sure).filter(|i| answers[*i]["error"].is_null());
        let doubtful = (0..SCRIPT.len().min(answers.len() + 1)).filter(|i| !sure(i));
        let with = |i: usize| (0..SCRIPT.len()).filter(move |n| *n == i || done().any(|done| done == *n));
        let is_found = |twin: Database| shown(&twin) == found;
        match is_found(self.twin(done())) || doubtful.into_iter().any(|i| is_found(self.twin(with(i)))) {
            true => Ok(()),
            false => Err(format!("{answers:?}: {found:?}")),
        }
    }
}

#[test]
fn a_disk_that_fails_beside_a_damaged_index_loses_nothing_that_was_acknowledged() {
    let Some(bench) = Bench::new() else { return };
    run(&engines::open(bench.path("base"), Engine::Lmdb), MADE_BY);
    let mut before = disk::read(&bench.path("base"));
    let pages = before.get_mut("data.mdb").unwrap().chunks_mut(4096);
    for page in pages.filter(|page| page.windows(14).any(|bytes| bytes == b"00000700000987")) {
        // The number of its nodes.
        page[12] ^= 2;
    }
    let mut point = Point {
        engine: Engine::Lmdb,
        fault: ("kill", 1),
        at: 0,
        cut: 0,
        loss: Loss::None,
        before,
        made_by: vec![MADE_BY.to_owned()],
        script: SCRIPT.map(str::to_owned).to_vec(),
    };
    let whole = bench.fare(&point);
    assert!(
        whole.answers.len() == SCRIPT.len() && whole.answers.iter().all(|answer| answer["error"].is_null())
    );
    let last = whole.notes.iter().map(|note| note.number).max().unwrap() as usize;
    let (points, seed) = (setting("FAULT_POINTS", 30), setting("FAULT_SEED", 1));
    let mut lacking = 0;
    for number in 0..points {
        let mut dice = Dice::new(seed, number);
        point.fault = FAULTS[dice.below(FAULTS.len())];
        point.at = 1 + dice.below(last);
        point.cut = dice.below(1000);
        point.loss = [Loss::None, Loss::Some, Loss::All][dice.below(3)];
        let fared = bench.fare(&point);
        lacking += usize::from(fared.answers.len() < SCRIPT.len());
        let place =
            format!("point {number}, seed {seed}: {:?} at {}, {:?} lost", point.fault, point.at, point.loss);
        assert!(!fared.hung && !fared.panicked, "{place}");
        disk::write(&bench.path("again"), &disk::after(&point.before, &fared.notes, point.loss, &mut dice));
        let db = engines::settled(bench.path("again")).unwrap_or_else(|e| panic!("{place}: {e}"));
        point.is_right_once_repaired(&fared, &db).unwrap_or_else(|what| panic!("{place}: {what}"));
        drop(db);
        assert_eq!(problems(&Database::open(bench.path("again")).unwrap()), [""; 0], "{place}");
    }
    println!("{points} points of {last}, seed {seed}: {lacking} with fewer answers than statements");
}
