//! A damaged page of an index table, and writes that are to go there: they stay, nothing else is held up, and the index
//! can be built anew or dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rowkeydb::{Database, Error, Kind, Result};

use super::{Dice, setting};

/// Index entries of buyer 7 begin like this, and nothing else does.
const ENTRIES: &[u8] = b"0000070000";

struct Shop {
    directory: tempfile::TempDir,
}

impl Shop {
    /// 5,000 orders with an index table, and a table beside them.
    fn new() -> Shop {
        let shop = Shop { directory: tempfile::tempdir().unwrap() };
        let db = shop.open();
        for sql in [
            "CREATE TABLE orders (id INT, buyer INT, note TEXT, PRIMARY KEY (lpad(id, 8)))",
            "CREATE INDEX by_buyer ON orders (lpad(buyer, 6))",
            "INSERT INTO orders SELECT value, value % 50, 'note ' || value FROM generate_series(1, 5000)",
            "CREATE TABLE other (id INT PRIMARY KEY, n INT)",
            "INSERT INTO other VALUES (1, 1)",
        ] {
            db.execute(sql).unwrap();
        }
        fs::write(shop.path("other.csv"), "id,n\n2,2\n3,3\n").unwrap();
        shop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn open(&self) -> Database {
        Database::open(self.path("db")).unwrap()
    }

    /// Changes the pages that have entries of buyer 7, one of them or all, while nobody has the database open.
    fn hurt(&self, mut how: impl FnMut(&mut [u8])) {
        let mut data = fs::read(self.path("db/data.mdb")).unwrap();
        let has_entries = |page: &&mut [u8]| page.windows(ENTRIES.len()).any(|bytes| bytes == ENTRIES);
        let pages: Vec<&mut [u8]> = data.chunks_mut(4096).filter(has_entries).collect();
        assert!(!pages.is_empty());
        pages.into_iter().for_each(&mut how);
        fs::write(self.path("db/data.mdb"), data).unwrap();
    }
}

/// Flips a bit of the number of its nodes.
fn lose_a_node(page: &mut [u8]) {
    page[12] ^= 2;
}

fn count(db: &Database, sql: &str) -> i64 {
    db.query(sql).unwrap().one().unwrap().get(0).unwrap()
}

fn all_orders(db: &Database) -> i64 {
    count(db, "SELECT count(*) FROM (SELECT /*+ FULL */ id, note FROM orders) o")
}

fn is_clean(db: &Database) {
    let found: Vec<_> = db.query("CHECK DATABASE").unwrap().map(Result::unwrap).collect();
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Inserts orders of buyer 7 until that is refused, since the page they would go to was seen to be damaged. How many
/// were not, and the refusal.
fn insert_until_refused(db: &Database) -> (i64, Error) {
    until_refused(db, |n| format!("INSERT INTO orders VALUES ({}, 7, 'acknowledged')", 6000 + n))
}

fn until_refused(db: &Database, write: impl Fn(i64) -> String) -> (i64, Error) {
    let began = Instant::now();
    for n in 0.. {
        match db.execute(&write(n)) {
            Err(e) => return (n, e),
            Ok(_) => assert!(began.elapsed() < Duration::from_secs(60), "nobody minds"),
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    unreachable!()
}

/// All kinds of writes into the other table, through the log and past it.
fn write_elsewhere(db: &Database, csv: &Path) -> Result<()> {
    for sql in [
        "INSERT INTO other VALUES (10, 10)",
        "CREATE INDEX by_n ON other (n)",
        "TRUNCATE other",
        &format!("COPY other FROM '{}'", csv.display()),
        "UPDATE other SET n = n + 1",
        "DROP INDEX by_n",
        "CREATE TABLE third (id INT PRIMARY KEY)",
        "DROP TABLE third",
    ] {
        db.execute(sql)?;
    }
    Ok(())
}

#[test]
fn a_damaged_page_of_an_index_table_holds_up_nothing_else() {
    for mend in [
        "REPAIR INDEX by_buyer",
        "DROP INDEX by_buyer",
        "DELETE FROM orders",
        "TRUNCATE orders",
        "ALTER TABLE orders REKEY (reverse(lpad(id, 8)))",
        "DROP TABLE orders",
    ] {
        let shop = Shop::new();
        shop.hurt(lose_a_node);
        let db = shop.open();
        let (acknowledged, refused) = insert_until_refused(&db);
        assert!(acknowledged > 0);
        assert_eq!((refused.kind(), refused.what()), (Kind::Corrupt, "index table \"by_buyer\" is damaged"));
        assert_eq!(refused.fix(), Some("REPAIR INDEX by_buyer builds it anew; check the disk"), "{refused}");
        write_elsewhere(&db, &shop.path("other.csv")).unwrap();
        // The index table has nothing of it.
        db.execute("UPDATE orders SET note = 'seen' WHERE id = 1").unwrap();
        assert_eq!(all_orders(&db), 5000 + acknowledged);
        drop(db);

        let db = shop.open();
        write_elsewhere(&db, &shop.path("other.csv")).unwrap();
        assert_eq!(all_orders(&db), 5000 + acknowledged);
        assert_eq!(insert_until_refused(&db).0, 0, "it is still known");
        assert!(db.query("CHECK DATABASE").unwrap().count() > 1);
        db.execute(mend).unwrap_or_else(|e| panic!("{mend}: {e}"));
        is_clean(&db);
        let expect = |db: &Database| {
            if mend == "DROP TABLE orders" {
                return;
            }
            let orders = if ["DELETE", "TRUNCATE"].iter().any(|word| mend.starts_with(word)) {
                0
            } else {
                5000 + acknowledged
            };
            assert_eq!(all_orders(db), orders, "{mend}");
            if mend != "DROP INDEX by_buyer" {
                let of_buyer =
                    "SELECT /*+ INDEX(by_buyer) */ count(*) FROM orders WHERE lpad(buyer, 6) = '000007'";
                assert_eq!(count(db, of_buyer), if orders == 0 { 0 } else { 100 + acknowledged }, "{mend}");
            }
        };
        expect(&db);
        drop(db);
        let db = shop.open();
        is_clean(&db);
        expect(&db);
        write_elsewhere(&db, &shop.path("other.csv")).unwrap();
        if mend != "DROP TABLE orders" {
            db.execute("INSERT INTO orders VALUES (9000, 7, 'and so on')").unwrap();
        }
        is_clean(&db);
        db.execute(&format!("BACKUP TO '{}'", shop.path("backup").display())).unwrap();
    }
}

/// However a plan runs, and whether it is kept, the error says what is damaged and how to mend it.
#[test]
fn queries_name_the_index_table_that_is_damaged() {
    let shop = Shop::new();
    shop.hurt(lose_a_node);
    let db = shop.open();
    for sql in [
        "SELECT buyer, id FROM orders ORDER BY lpad(buyer, 6) LIMIT 2000",
        "SELECT * FROM by_buyer",
        "SELECT /*+ INDEX(by_buyer) */ count(*) FROM orders WHERE lpad(buyer, 6) > '000005'",
        "SELECT /*+ INDEX(by_buyer) */ a.note FROM orders a JOIN orders b ON b.id = a.id
         WHERE lpad(a.buyer, 6) > '000005' ORDER BY b.note || a.note",
        "SELECT a.id, count(*) FROM orders a JOIN orders b ON lpad(b.buyer, 6) = lpad(a.buyer, 6)
         WHERE a.id IN (7, 8) GROUP BY a.id",
    ] {
        let mut prepared = db.prepare(sql).unwrap();
        for n in 0..6 {
            let rows = if n % 2 == 0 { db.query(sql) } else { prepared.query(&[]) };
            let read = rows.and_then(|rows| match n < 4 {
                true => rows.map(|row| row.map(drop)).collect::<Result<Vec<_>>>(),
                false => rows.batches().map(|batch| batch.map(drop)).collect(),
            });
            let e = read.expect_err(sql);
            assert_eq!(
                (e.kind(), e.what()),
                (Kind::Corrupt, "index table \"by_buyer\" is damaged"),
                "{sql}: {n}"
            );
            assert_eq!(e.fix(), Some("REPAIR INDEX by_buyer builds it anew; check the disk"), "{sql}: {n}");
        }
    }
    db.execute("REPAIR INDEX by_buyer").unwrap();
    assert_eq!(count(&db, "SELECT count(*) FROM by_buyer"), 5000);
}

/// What is damaged is a table: what was acknowledged is there, and it can be dropped.
#[test]
fn a_damaged_page_of_a_table_holds_up_no_other_table() {
    let shop = Shop::new();
    let db = shop.open();
    db.execute("CREATE TABLE notes (id INT, note TEXT, PRIMARY KEY (lpad(id, 8)))").unwrap();
    db.execute("INSERT INTO notes SELECT 2 * value, 'a note of ' || 2 * value FROM generate_series(1, 2000)")
        .unwrap();
    drop(db);
    let data = shop.path("db/data.mdb");
    let mut bytes = fs::read(&data).unwrap();
    let pages =
        bytes.chunks_mut(4096).filter(|page| page.windows(14).any(|bytes| bytes == b"a note of 4000"));
    for page in pages {
        // The length of its first value, far from where rows are to go.
        let node = usize::from(u16::from_ne_bytes([page[16], page[17]]));
        page[node] ^= 0x40;
    }
    fs::write(&data, bytes).unwrap();
    let db = shop.open();
    let (acknowledged, refused) =
        until_refused(&db, |n| format!("UPSERT INTO notes VALUES ({}, 'new')", 3999 - 2 * n));
    assert!(acknowledged > 0);
    assert_eq!((refused.kind(), refused.what()), (Kind::Corrupt, "table \"notes\" is damaged"));
    drop(db);
    let db = shop.open();
    for n in 0..acknowledged {
        assert_eq!(
            count(&db, &format!("SELECT count(*) FROM notes WHERE id = {} AND note = 'new'", 3999 - 2 * n)),
            1
        );
    }
    write_elsewhere(&db, &shop.path("other.csv")).unwrap();
    db.execute("DROP TABLE notes").unwrap();
    is_clean(&db);
    drop(db);
    is_clean(&shop.open());
}

/// `DAMAGE_ROUNDS` flipped bits of pages that hold entries of an index table.
#[test]
fn whatever_bit_of_an_index_table_is_flipped_it_can_be_built_anew() {
    let rounds = setting("DAMAGE_ROUNDS", 40) / 4;
    let mut dice = Dice::new(setting("DAMAGE_SEED", 1), 4);
    let (mut held, mut all) = (0, 0);
    let original = Shop::new();
    for _ in 0..rounds {
        let shop = Shop { directory: tempfile::tempdir().unwrap() };
        fs::create_dir_all(shop.path("db/log")).unwrap();
        for file in super::files(&original.path("db")) {
            fs::copy(original.path("db").join(&file), shop.path("db").join(&file)).unwrap();
        }
        fs::copy(original.path("other.csv"), shop.path("other.csv")).unwrap();
        // Every other one where a page tells of itself and its nodes.
        let bytes = if dice.below(2) == 0 { 120 } else { 4096 };
        let bit = dice.below(bytes * 8);
        shop.hurt(|page| page[bit / 8] ^= 1 << (bit % 8));
        let db = shop.open();
        db.execute("INSERT INTO orders VALUES (6000, 7, 'acknowledged')").unwrap();
        // Long enough for it to go on its way.
        std::thread::sleep(Duration::from_millis(300));
        held += i32::from(db.execute("INSERT INTO orders VALUES (6001, 7, 'perhaps')").is_err());
        all += 1;
        let place = format!("byte {} bit {}", bit / 8, bit % 8);
        write_elsewhere(&db, &shop.path("other.csv")).unwrap_or_else(|e| panic!("{place}: {e}"));
        let orders = all_orders(&db);
        assert!(orders > 5000);
        db.execute("REPAIR INDEX by_buyer").unwrap_or_else(|e| panic!("{place}: {e}"));
        is_clean(&db);
        drop(db);
        let db = shop.open();
        is_clean(&db);
        assert_eq!(all_orders(&db), orders);
    }
    println!("{held} of {all} flipped bits were seen when their page was to be written");
}
