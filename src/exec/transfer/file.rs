//! A file that appears under its name only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::cannot;
use crate::error::Result;
use crate::store::sync_directory;

/// A file written under a temporary name; [`commit`](NewFile::commit) renames it. If dropped before that, it is
/// removed. What is not a regular file, such as a pipe, is written directly.
#[derive(Debug)]
pub struct NewFile {
    out: BufWriter<File>,
    path: PathBuf,
    /// Where the bytes are until the commit.
    temporary: Option<PathBuf>,
}

impl NewFile {
    /// Starts the file that will be at `path`, replacing any that is there.
    ///
    /// Errors: `Unavailable` when the directory cannot be written.
    pub fn create(path: &Path) -> Result<NewFile> {
        // A symbolic link is kept: the file behind it is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let is_special = fs::metadata(&path).is_ok_and(|m| !m.is_file());
        let (file, temporary) = if is_special {
            (OpenOptions::new().write(true).open(&path), None)
        } else {
            loop {
                let temporary = unfinished_path(&path);
                match OpenOptions::new().write(true).create_new(true).open(&temporary) {
                    // Left behind by a killed process with the same number, perhaps in another container.
                    Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                    file => break (file, Some(temporary)),
                }
            }
        };
        let file = file.map_err(|e| cannot("write", &path, e))?;
        Ok(NewFile { out: BufWriter::with_capacity(1 << 16, file), path, temporary })
    }

    /// Flushes the file to disk and gives it its name.
    pub fn commit(mut self) -> Result<()> {
        self.out.flush().map_err(|e| cannot("write", &self.path, e))?;
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        self.out.get_ref().sync_all().map_err(|e| cannot("write", &self.path, e))?;
        fs::rename(temporary, &self.path).map_err(|e| cannot("write", &self.path, e))?;
        self.temporary = None;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        sync_directory(folder.unwrap_or(Path::new("."))).map_err(|e| cannot("write", &self.path, e))
    }

    /// An error that becomes the one that names the file.
    fn unwritable(&self, e: std::io::Error) -> std::io::Error {
        std::io::Error::new(e.kind(), cannot("write", &self.path, e))
    }
}

/// A hidden name next to `path` that no other copy uses.
fn unfinished_path(path: &Path) -> PathBuf {
    static COPIES: AtomicU64 = AtomicU64::new(0);
    let copy = COPIES.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{copy}.tmp", std::process::id()))
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes).map_err(|e| self.unwritable(e))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush().map_err(|e| self.unwritable(e))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Nobody is left to tell; a file that cannot be removed stays behind under its temporary name.
            let _ = fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_appears_at_commit_and_not_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.csv");
        fs::write(&path, "old").unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["out.csv"]);
    }

    #[test]
    fn a_dropped_file_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = NewFile::create(&dir.path().join("out.csv")).unwrap();
        file.write_all(b"half").unwrap();
        assert_eq!(names(dir.path()).len(), 1);
        drop(file);
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = NewFile::create(Path::new("no/such/directory/out.csv")).unwrap_err();
        assert_eq!(error.what(), "cannot write 'no/such/directory/out.csv'");
    }

    #[test]
    fn a_full_disk_is_told_with_the_file() {
        let mut file = NewFile::create(Path::new("/dev/full")).unwrap();
        let error: Error = file.write_all(&[b'x'; 1 << 20]).unwrap_err().into();
        assert_eq!(error.what(), "cannot write '/dev/full'");
        assert!(error.to_string().contains("the disk has room"), "{error}");
    }
}
