//! What the log promises: which records are there after a crash, and what damage is told apart from a torn end.

use super::mark::MARK_FILE;
use super::*;
use crate::error::Kind;
use crate::key::hex;

/// A log of these records, dropped without a close.
fn log(records: &[&str]) -> (tempfile::TempDir, Log) {
    log_of(Durability::Sync, records)
}

fn log_of(durability: Durability, records: &[&str]) -> (tempfile::TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    let mut log = Log::create(folder.path(), durability, Arc::default()).unwrap();
    records.iter().for_each(|record| append(&mut log, record));
    (folder, log)
}

fn append(log: &mut Log, record: &str) {
    log.append(|out| out.extend(record.bytes())).unwrap();
}

fn open(folder: &Path) -> Result<(Log, Vec<String>)> {
    let mut records = Vec::new();
    let log = Log::open(folder, Durability::Sync, Arc::default(), |content| {
        records.push(String::from_utf8(content.to_vec()).unwrap());
        Ok(())
    })?;
    Ok((log, records))
}

/// The mark as of an earlier record: what a power failure may leave.
fn mark_as_of(folder: &Path, acknowledged: u64) {
    fs::write(folder.join(MARK_FILE), MarkedNumbers { oldest: 1, acknowledged, settled: 0 }.encode())
        .unwrap();
}

const RECORDS: [&str; 4] = ["one", "the second", "3", "and the last one"];

#[test]
fn the_example_of_the_table() {
    let (folder, _) = log(&["a", "b", "hi"]);
    let bytes = fs::read(path_of(folder.path(), 1)).unwrap();
    let at = HEADER_BYTES + 2 * (RECORD_HEADER_BYTES + 1);
    assert_eq!(hex(&bytes[at..][..RECORD_HEADER_BYTES + 2]), "020000000300000000000000033c1b010f197d0d6869");
}

#[test]
fn records_come_back_in_order_across_segments_and_reopenings() {
    let (folder, mut log) = log(&["one", "two"]);
    assert_eq!(log.rotate().unwrap(), 1);
    append(&mut log, "three");
    append(&mut log, &"x".repeat(ROOM_BYTES.1 as usize));
    append(&mut log, "five");
    drop(log);
    let (mut log, records) = open(folder.path()).unwrap();
    assert_eq!(
        records.iter().map(|record| &record[..3]).collect::<Vec<_>>(),
        ["one", "two", "thr", "xxx", "fiv"]
    );
    append(&mut log, "six");
    log.mark().forget(1).unwrap();
    drop(log);
    assert!(!path_of(folder.path(), 1).exists());
    let (_, records) = open(folder.path()).unwrap();
    assert_eq!((&records[0][..], &records[3][..], records.len()), ("three", "six", 4));
}

#[test]
fn a_segment_has_room_ahead_that_doubles_up_to_a_step() {
    let kib = [1, 32, 33, 64, 65, 200, 257, 512, 513].map(|end| room_for(end << 10) >> 10);
    assert_eq!(kib, [32, 32, 64, 64, 128, 256, 512, 512, 768]);
    let (folder, mut log) = log(&[]);
    let len = || fs::metadata(path_of(folder.path(), 1)).unwrap().len();
    assert_eq!(len(), ROOM_BYTES.0);
    append(&mut log, &"x".repeat(ROOM_BYTES.0 as usize));
    assert_eq!(len(), 2 * ROOM_BYTES.0);
}

#[test]
fn a_record_that_is_refused_leaves_no_large_buffer_behind() {
    let (_folder, mut log) = log(&["one"]);
    assert!(log.record.capacity() > 0);
    // The file is open for reading only: nothing can be written.
    log.file = File::open(path_of(&log.folder, 1)).unwrap();
    assert!(log.append(|out| out.resize(RECORD_KEPT_BYTES + 1, 0)).is_err());
    assert_eq!(log.record.capacity(), 0);
}

#[test]
fn any_flipped_bit_of_an_acknowledged_record_is_refused() {
    let (folder, log) = log(&RECORDS);
    let path = path_of(folder.path(), 1);
    let bytes = fs::read(&path).unwrap();
    for at in 0..log.end as usize {
        for bit in 0..8 {
            let mut hurt = bytes.clone();
            hurt[at] ^= 1 << bit;
            fs::write(&path, hurt).unwrap();
            let error = open(folder.path()).err().unwrap_or_else(|| panic!("byte {at} bit {bit}"));
            assert_eq!(error.kind(), Kind::Corrupt, "{error}");
            assert!(error.what().contains("log-1"), "{error}");
        }
    }
}

#[test]
fn without_the_mark_only_the_last_record_looks_torn() {
    let (folder, log) = log(&RECORDS);
    let path = path_of(folder.path(), 1);
    let bytes = fs::read(&path).unwrap();
    let last = log.end as usize - RECORD_HEADER_BYTES - RECORDS[3].len();
    for at in HEADER_BYTES..log.end as usize {
        mark_as_of(folder.path(), 0);
        let mut hurt = bytes.clone();
        hurt[at] ^= 0x10;
        fs::write(&path, hurt).unwrap();
        match open(folder.path()) {
            Ok((_, records)) => assert!(at >= last && records == RECORDS[..3], "byte {at}"),
            Err(error) => assert!(at < last && error.kind() == Kind::Corrupt, "byte {at}: {error}"),
        }
    }
}

#[test]
fn a_torn_record_is_dropped_and_written_over() {
    let (folder, log) = log(&RECORDS);
    let path = path_of(folder.path(), 1);
    let bytes = fs::read(&path).unwrap();
    let last = log.end as usize - RECORD_HEADER_BYTES - RECORDS[3].len();
    drop(log);
    for cut in last..last + RECORD_HEADER_BYTES + RECORDS[3].len() {
        for is_long in [true, false] {
            mark_as_of(folder.path(), 3);
            let mut torn = bytes[..cut].to_vec();
            torn.resize(if is_long { bytes.len() } else { cut }, 0);
            fs::write(&path, torn).unwrap();
            let (mut log, records) = open(folder.path()).unwrap();
            assert_eq!(records, RECORDS[..3], "cut at {cut}");
            append(&mut log, "4");
            drop(log);
            assert_eq!(open(folder.path()).unwrap().1, ["one", "the second", "3", "4"]);
        }
    }
}

/// Unflushed records may be on the disk in part: any piece may still be zeros.
#[test]
fn of_records_that_were_not_flushed_those_before_a_hole_are_there() {
    let (folder, log) = log_of(Durability::Relaxed, &RECORDS);
    let path = path_of(folder.path(), 1);
    let bytes = fs::read(&path).unwrap();
    let lens = RECORDS.map(|record| RECORD_HEADER_BYTES + record.len());
    let ends = (0..=RECORDS.len()).map(|n| HEADER_BYTES + lens[..n].iter().sum::<usize>());
    let ends: Vec<usize> = ends.collect();
    assert_eq!(ends[RECORDS.len()], log.end as usize);
    drop(log);
    for at in HEADER_BYTES..ends[RECORDS.len()] {
        for len in [1, 7, 30] {
            let mut holed = bytes.clone();
            holed[at..at + len].fill(0);
            let hurt = bytes.iter().zip(&holed).position(|(before, after)| before != after);
            let whole = ends[1..].iter().filter(|end| hurt.is_none_or(|at| at >= **end)).count();
            fs::write(&path, holed).unwrap();
            mark_as_of(folder.path(), 0);
            let (mut log, records) = open(folder.path()).unwrap();
            assert_eq!(records, RECORDS[..whole], "{len} bytes at {at}");
            append(&mut log, "more");
            drop(log);
            assert_eq!(open(folder.path()).unwrap().1, [&RECORDS[..whole], &["more"]].concat());
        }
    }
}

/// The segment was flushed when the next one was begun, whose header says where it ends.
#[test]
fn records_that_an_empty_segment_has_counted_are_missed() {
    for durability in [Durability::Sync, Durability::Relaxed] {
        let (folder, mut log) = log_of(durability, &RECORDS);
        log.rotate().unwrap();
        drop(log);
        let path = path_of(folder.path(), 1);
        let mut bytes = fs::read(&path).unwrap();
        bytes[HEADER_BYTES + RECORD_HEADER_BYTES + RECORDS[0].len()..].fill(0);
        fs::write(&path, bytes).unwrap();
        mark_as_of(folder.path(), 0);
        assert_eq!(open(folder.path()).err().map(|e| e.kind()), Some(Kind::Corrupt));
    }
}

#[test]
fn a_record_that_was_flushed_proves_those_before_it() {
    let (folder, log) = log_of(Durability::Relaxed, &RECORDS);
    let not_flushed = log.end as usize;
    drop(log);
    mark_as_of(folder.path(), 0);
    let (mut log, _) = open(folder.path()).unwrap();
    append(&mut log, "flushed");
    drop(log);
    let path = path_of(folder.path(), 1);
    let bytes = fs::read(&path).unwrap();
    for at in HEADER_BYTES..not_flushed {
        let mut hurt = bytes.clone();
        hurt[at] ^= 0x10;
        fs::write(&path, hurt).unwrap();
        mark_as_of(folder.path(), 0);
        assert_eq!(open(folder.path()).err().map(|e| e.kind()), Some(Kind::Corrupt), "byte {at}");
    }
}

#[test]
fn a_segment_that_is_missing_cut_short_or_another_is_refused() {
    let (folder, mut log) = log(&RECORDS);
    log.rotate().unwrap();
    append(&mut log, "five");
    drop(log);
    let paths = [1, 2].map(|segment| path_of(folder.path(), segment));
    let whole = [&paths[0], &paths[1]].map(|path| fs::read(path).unwrap());
    let refused = |what: &str| {
        let error = open(folder.path()).err().unwrap_or_else(|| panic!("{what}"));
        assert_eq!(error.kind(), Kind::Corrupt, "{what}: {error}");
    };
    for (n, path) in paths.iter().enumerate() {
        fs::remove_file(path).unwrap();
        refused("missing");
        for len in [0, 1, HEADER_BYTES, HEADER_BYTES + 3, HEADER_BYTES + RECORD_HEADER_BYTES + 2] {
            fs::write(path, &whole[n][..len]).unwrap();
            refused("cut short");
        }
        fs::write(path, &whole[1 - n]).unwrap();
        refused("another");
        fs::write(path, &whole[n]).unwrap();
    }
    fs::remove_file(folder.path().join(MARK_FILE)).unwrap();
    refused("without a mark");
    fs::write(folder.path().join(MARK_FILE), [0; 24]).unwrap();
    refused("with a strange mark");
}

#[test]
fn a_segment_that_had_just_been_begun_is_begun_again() {
    let (folder, mut log) = log(&RECORDS);
    log.rotate().unwrap();
    drop(log);
    for len in [0, 7, HEADER_BYTES] {
        let path = path_of(folder.path(), 2);
        File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .unwrap()
            .set_len(len as u64)
            .unwrap();
        let (mut log, records) = open(folder.path()).unwrap();
        assert_eq!(records, RECORDS);
        if len < HEADER_BYTES {
            log.rotate().unwrap();
        }
    }
}
