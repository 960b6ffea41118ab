//! BACKUP: a consistent copy of everything committed, as a database of its own.
//!
//! The entries of one snapshot are read, which verifies their checksums, proved to be the ones written last,
//! and appended to a new store in one atomic step; readers and writers go on meanwhile. The copy is made
//! under another name and renamed when it is complete, so a directory of the wanted name is always a whole
//! backup. Any store can be backed up, also one in memory; to restore is to back up the backup.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Database;
use crate::catalog::CATALOG_KEYSPACE;
use crate::error::{Error, Kind, Result, sqlstate};
use crate::exec::check::anew;
use crate::exec::watch::Watch;
use crate::key::KeyRange;
use crate::store::{self, Direction, Durability, Engine};

/// Copies `db` into the directory `to`, stored by `engine`; gives the number of entries.
///
/// Errors: `Invalid` if `to` exists; `Unavailable` if the disk refuses; `Corrupt`, naming the entry or
/// keyspace, if the database is damaged. No backup is left behind then.
pub fn backup(db: &Database, to: &Path, engine: Option<Engine>, watch: &Watch) -> Result<u64> {
    if to.exists() {
        return Err(Error::invalid(format!("{} exists already", to.display()))
            .why("a backup never writes over anything")
            .hint("name a directory that does not exist yet"));
    }
    let unfinished = unfinished(to)?;
    // Only the one who created the directory may remove it.
    fs::create_dir(&unfinished).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => Error::invalid(format!("{} exists already", unfinished.display()))
            .why("it is left of a backup that was interrupted, or being made right now")
            .hint("remove it if nobody is at work on it"),
        _ => {
            let what = format!("cannot make the directory '{}'", unfinished.display());
            let error = Error::new(Kind::Unavailable, what).why(e.to_string()).state(sqlstate::IO);
            let error = match e.kind() {
                ErrorKind::NotFound => error.hint("name one in a directory that exists"),
                _ => error,
            };
            error.caused_by(e)
        }
    })?;
    let copied = copy(db, &unfinished, engine, watch);
    let renamed = copied.and_then(|entries| {
        fs::rename(&unfinished, to).map_err(Error::from)?;
        // If this fails, the rename may be lost in a power failure: no backup yet.
        store::sync_directory(to).map_err(Error::from).inspect_err(|_| drop(fs::remove_dir_all(to)))?;
        Ok(entries)
    });
    if renamed.is_err() {
        // If it cannot be removed, the next try reports it.
        let _ = fs::remove_dir_all(&unfinished);
    }
    renamed
}

fn copy(db: &Database, to: &Path, engine: Option<Engine>, watch: &Watch) -> Result<u64> {
    let (catalog, snapshot) = db.view()?;
    let reader = snapshot.reader()?;
    let (target, _) = store::open(to, engine, Durability::Sync)?;
    let mut writer = target.bulk()?;
    let tables = catalog.tables().flat_map(|table| table.keyspaces());
    let keyspaces: Vec<_> = std::iter::once(CATALOG_KEYSPACE).chain(tables).collect();
    let mut total = 0;
    for keyspace in &keyspaces {
        total += reader.entries(*keyspace)?;
    }
    let label = format!("copying to {}", to.display());
    let mut entries = 0;
    for keyspace in &keyspaces {
        let mut cursor = reader.cursor(*keyspace, &KeyRange::all(), Direction::Forward)?;
        while let Some((key, value)) = cursor.next().map_err(|e| match catalog.damaged_statistics(&e) {
            Some(table) => e.hint(anew(table)),
            None => e,
        })? {
            writer.put(*keyspace, key, value)?;
            entries += 1;
            watch.tick(&label, entries, Some(total), "entries")?;
        }
    }
    watch.finish(&label, entries, "entries");
    let mut verified = 0;
    for keyspace in &keyspaces {
        reader.verify(*keyspace, &mut |n| watch.step("verifying", verified + n, Some(total), "entries"))?;
        verified += reader.entries(*keyspace)?;
    }
    watch.finish("verifying", entries, "entries");
    writer.commit()?;
    Ok(entries)
}

/// The directory in which a backup is made: beside its final place, on the same disk.
fn unfinished(to: &Path) -> Result<PathBuf> {
    let Some(name) = to.file_name() else {
        return Err(Error::invalid(format!("'{}' names no directory", to.display()))
            .hint("name a directory that does not exist yet"));
    };
    let mut name = name.to_owned();
    name.push(".unfinished");
    Ok(to.with_file_name(name))
}
