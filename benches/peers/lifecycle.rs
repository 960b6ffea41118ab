//! What happens around the questions: an index for a full table, bytes on the disk, opening, starting.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rowkeydb::Database;
use rusqlite::Connection;

use super::market::{FIRST_ORDER, Market, THEIR_FILES, their_open};
use super::race::{Race, Unit, their_turn, turn};

/// Set for a process of ours that answers in SQLite's place: the path of its database.
const PEER: &str = "PEER_SQLITE";

pub fn run(market: &Market, race: &Race) {
    create_index(market, race);
    bytes(market, race);
    reopen(market, race);
    start(market, race);
}

fn create_index(market: &Market, race: &Race) {
    let (ours, theirs) = market.full();
    let create = "CREATE INDEX orders_by_amount ON orders (amount, status)";
    race.run(
        "CREATE INDEX on the full table",
        Unit::Time,
        |_| {
            let turn = turn(|| Ok(ours.execute(create)? as f64));
            ours.execute("DROP INDEX orders_by_amount").expect("ours is dropped");
            turn
        },
        |_| {
            let turn = their_turn(|| theirs.execute_batch(create).map(|()| 0.0));
            theirs.execute_batch("DROP INDEX orders_by_amount").expect("theirs is dropped");
            turn
        },
    );
}

/// Bytes of freshly loaded databases, all of their files.
fn bytes(market: &Market, race: &Race) {
    let (ours, theirs) = (market.our_empty("bytes", 3), market.their_empty("bytes", 3));
    market.our_load(&ours).expect("ours loads");
    market.their_load(&theirs).expect("theirs loads");
    drop((ours, theirs));
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let ours = folder_size(&market.path("bytes", ""));
    let theirs: u64 = THEIR_FILES.iter().map(|suffix| size(&market.path("bytes", suffix))).sum();
    market.remove("bytes");
    let each = |bytes: u64| format!("{} bytes", bytes / market.orders as u64);
    let what = "size on disk of an order, 3 index tables";
    race.line(what, &each(ours), &each(theirs), ours as f64 / theirs as f64);
}

/// Bytes of our files, those aside that hold nothing that lasts.
fn folder_size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    entries
        .filter(|entry| entry.file_name() != "lock.mdb")
        .map(|entry| if entry.path().is_dir() { folder_size(&entry.path()) } else { size(&entry.path()) })
        .sum()
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let (from, to) = (entry?.path(), to);
        let to = to.join(from.file_name().unwrap_or_default());
        if from.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

/// Copies the files of the open databases, as a kill would leave them, to `copy`.
fn copy(market: &Market) {
    market.remove("copy");
    copy_folder(&market.path("full", ""), &market.path("copy", "")).expect("our files");
    // Without the -shm file, which a kill of the machine leaves worthless, too.
    for suffix in &THEIR_FILES[..2] {
        let _ = fs::copy(market.path("full", suffix), market.path("copy", suffix));
    }
}

fn our_first_answer(market: &Market) -> rowkeydb::Result<f64> {
    let db = Database::open(market.path("copy", ""))?;
    let row = db.query(&first_question())?.next().transpose()?;
    row.map_or(Ok(-1.0), |row| row.get("amount"))
}

fn their_first_answer(db: &Connection) -> rusqlite::Result<f64> {
    db.query_row(&first_question(), [], |row| row.get("amount"))
}

fn first_question() -> String {
    format!("SELECT amount FROM orders WHERE order_id = {}", FIRST_ORDER + 7)
}

fn reopen(market: &Market, race: &Race) {
    let _ = market.full();
    let reopened = |what: &str, prepare: &dyn Fn()| {
        race.run(
            what,
            Unit::Time,
            |_| {
                prepare();
                turn(|| our_first_answer(market))
            },
            |_| their_turn(|| their_first_answer(&their_open(&market.path("copy", ".sqlite")))),
        );
    };
    reopened("open after a kill and a first answer", &|| copy(market));
    reopened("open after a clean close and a first answer", &|| ());
}

/// From the start of a process to its end, with a first answer in between. Of copies, as an installed program is one:
/// what a linker has just written lies in memory page by page.
fn start(market: &Market, race: &Race) {
    let installed = |name: &str, program: &Path| {
        let copy = market.path(name, "");
        fs::copy(program, &copy).expect("a copy of a program");
        copy
    };
    let ours = installed("our_program", Path::new(env!("CARGO_BIN_EXE_rowkeydb")));
    let theirs = installed("their_program", &std::env::current_exe().expect("this program"));
    let answered = |command: &mut Command| {
        let output = command.stdin(Stdio::null()).output().expect("a process");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout)
            .lines()
            .last()
            .map_or(-1.0, |line| line.parse().unwrap_or(-1.0))
    };
    race.run(
        "process, from its start to the end of a first answer",
        Unit::Time,
        |_| {
            let mut command = Command::new(&ours);
            command.arg(market.path("copy", "")).args(["--format", "csv", "-c", &first_question()]);
            turn(|| Ok(answered(&mut command)))
        },
        |_| {
            let mut command = Command::new(&theirs);
            command.env(PEER, market.path("copy", ".sqlite"));
            their_turn(|| Ok(answered(&mut command)))
        },
    );
    market.remove("copy");
}

/// Answers in SQLite's place, if this process was started for that.
pub fn answer_as_peer() -> bool {
    let Some(path) = std::env::var_os(PEER) else { return false };
    let answer = their_first_answer(&their_open(Path::new(&path))).expect("theirs answers");
    println!("{answer}");
    true
}
