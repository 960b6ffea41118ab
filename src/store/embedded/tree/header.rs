//! Is the data file as long as it says? Asked before LMDB maps it, since reading a mapped page that
//! the file does not have kills the process.
//!
//! Example: with page size 4096 and last page 5, the file is at least 24576 bytes long.
//!
//! One exception: pages at the end that are on the free list may never have been written. So we read the free list, a
//! B-tree whose values are lists of page numbers in falling order, and refuse the file unless every missing page is on
//! it, and if it makes no sense: LMDB would write over what is in use. After LMDB 0.9.70, `mdb.c`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::meta::{META_BYTES, Meta, MetaHead, Root};
use super::page::{HEADER_BYTES, Page, Stored, pages_of_long, u64_at};
use crate::error::{Error, Kind, Result, sqlstate};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the embedded store needs 64-bit addresses: it maps the whole database");

/// Refuses a data file that LMDB could not map and read safely.
///
/// Errors: `Corrupt`, naming the file, when it is missing, no LMDB file, truncated, or its list of free pages makes no
/// sense.
pub(in crate::store::embedded) fn check(path: &Path) -> Result<Checked> {
    let mut file = DataFile::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => damaged(path, "it is missing"),
        _ => Error::new(Kind::Unavailable, format!("{} cannot be read", path.display()))
            .why(e.to_string())
            .state(sqlstate::IO)
            .caused_by(e),
    })?;
    let meta = file.newest_meta().map_err(|why| damaged(path, why))?;
    let mut missing = file.bytes / meta.page_bytes..=meta.last_page;
    match file.free_pages(&meta) {
        Some(free) if missing.all(|page| free.binary_search(&page).is_ok()) => {
            return Ok(Checked { meta, free });
        }
        None if missing.is_empty() => return Err(damaged(path, "its list of free pages makes no sense")),
        _ => {}
    }
    let promised = (meta.last_page.saturating_add(1)).saturating_mul(meta.page_bytes);
    Err(damaged(path, &format!("it is truncated: {} bytes of {promised}", file.bytes)))
}

/// What the file says of itself.
#[derive(Debug)]
pub(in crate::store::embedded) struct Checked {
    /// Its newest meta page.
    pub(super) meta: Meta,
    /// Pages that LMDB will write anew, in order.
    free: Vec<u64>,
}

impl Checked {
    /// What is in use is not free, and there is room for all of both.
    pub(super) fn check_trees<'r>(
        &'r self,
        path: &Path,
        trees: impl Iterator<Item = &'r Root> + Clone,
    ) -> Result<()> {
        let roots = || trees.clone().chain([&self.meta.keyspaces, &self.meta.free]);
        let is_free = |root: &Root| root.page.is_some_and(|page| self.free.binary_search(&page).is_ok());
        if roots().any(is_free) {
            return Err(damaged(path, "the root of a tree is on its list of free pages"));
        }
        let metas_and_free = 2 + self.free.len() as u64;
        let pages = roots().fold(metas_and_free, |pages, root| pages.saturating_add(root.pages));
        match pages <= self.meta.last_page.saturating_add(1) {
            true => Ok(()),
            false => Err(damaged(path, "its trees have more pages than it has")),
        }
    }
}

fn damaged(path: &Path, why: &str) -> Error {
    Error::corrupt(format!("{} is damaged", path.display()))
        .why(why)
        .hint("restore the database from a backup")
}

struct DataFile {
    file: File,
    bytes: u64,
}

impl DataFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(DataFile { file, bytes })
    }

    /// Up to `len` bytes from `at`; `None` when the file has fewer or refuses.
    fn read(&mut self, at: u64, len: usize) -> Option<Vec<u8>> {
        if at.checked_add(len as u64)? > self.bytes {
            return None;
        }
        let mut out = vec![0; len];
        self.file.seek(SeekFrom::Start(at)).ok()?;
        self.file.read_exact(&mut out).ok()?;
        Some(out)
    }

    fn newest_meta(&mut self) -> Result<Meta, &'static str> {
        let bytes = self.read(0, META_BYTES).unwrap_or_default();
        let first = MetaHead::parse(&bytes)?;
        let others = self.read(first.page_bytes, META_BYTES).unwrap_or_default();
        let second = MetaHead::parse(&others)?;
        // They are written in turn; those of a new file are the same.
        let is_in_turn = |meta: &MetaHead, page| meta.txn == 0 || meta.txn % 2 == page;
        if first.txn.abs_diff(second.txn) > 1 || !is_in_turn(&first, 0) || !is_in_turn(&second, 1) {
            return Err("its first pages do not follow each other");
        }
        Meta::parse(if second.txn > first.txn { &others } else { &bytes })
    }

    /// The pages on the free list, in order; `None` when it makes no sense.
    fn free_pages(&mut self, meta: &Meta) -> Option<Vec<u64>> {
        let mut free = Vec::new();
        if let Some(root) = meta.free.page {
            self.add_free(meta, root, 1, &mut 0, &mut free)?;
        }
        // Lists in order, one behind the other, which this way of sorting makes use of.
        free.sort();
        let is_list =
            free.is_sorted_by(|a, b| a < b) && free.iter().all(|page| (2..=meta.last_page).contains(page));
        is_list.then_some(free)
    }

    /// Adds those in the tree under page `number`. Its keys are the transactions that gave pages back; `last` is the
    /// one before.
    fn add_free(
        &mut self,
        meta: &Meta,
        number: u64,
        depth: u16,
        last: &mut u64,
        free: &mut Vec<u64>,
    ) -> Option<()> {
        let bytes = self.read(number.checked_mul(meta.page_bytes)?, meta.page_bytes as usize)?;
        let page = Page::of(&bytes, number).filter(|page| page.is_leaf() == (depth == meta.free.depth))?;
        if page.is_leaf() && !page.is_whole() {
            return None;
        }
        for at in 0..page.len() {
            if !page.is_leaf() {
                self.add_free(meta, page.child(at)?, depth + 1, last, free)?;
                continue;
            }
            let (txn, stored) = page.entry(at)?;
            let txn = u64::from_ne_bytes(txn.try_into().ok()?);
            let list = page_list(&self.value(meta, stored)?)?;
            // LMDB relies on both.
            if txn <= std::mem::replace(last, txn) || txn > meta.txn || !list.is_sorted_by(|a, b| a > b) {
                return None;
            }
            free.extend(list);
        }
        Some(())
    }

    fn value(&mut self, meta: &Meta, stored: Stored<'_>) -> Option<Vec<u8>> {
        match stored {
            Stored::Here(value) => Some(value.to_vec()),
            Stored::Tree(_) => None,
            Stored::Long { page, bytes } => {
                let at = page.checked_mul(meta.page_bytes)?;
                let pages = pages_of_long(&self.read(at, HEADER_BYTES)?, page)?;
                let room = pages.checked_mul(meta.page_bytes)?.checked_sub(HEADER_BYTES as u64)?;
                let fits = bytes as u64 <= room && pages <= meta.free.long_pages;
                self.read(at + HEADER_BYTES as u64, bytes).filter(|_| fits)
            }
        }
    }
}

/// A list of page numbers: their count, then each, 8 bytes apiece.
fn page_list(value: &[u8]) -> Option<Vec<u64>> {
    let count = usize::try_from(u64_at(value, 0)?).ok()?;
    if count > value.len() / 8 {
        return None;
    }
    (1..=count).map(|i| u64_at(value, 8 * i)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of a newer meta page with these numbers, an older one, and `bytes` in all.
    fn file(page_bytes: u32, last_page: u64, bytes: u64) -> tempfile::NamedTempFile {
        let mut data = vec![0u8; page_bytes as usize + META_BYTES];
        for (page, txn) in [(0, 8), (1, 7)] {
            let (free, keyspaces) = (Root::EMPTY, Root::EMPTY);
            let meta = Meta { page_bytes: page_bytes.into(), free, keyspaces, last_page, txn };
            meta.write(&mut data[page * page_bytes as usize..]);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), data).unwrap();
        file.as_file().set_len(bytes).unwrap();
        file
    }

    #[test]
    fn the_example_of_the_table() {
        check(file(4096, 5, 24576).path()).unwrap();
        let short = file(4096, 5, 24575);
        let error = check(short.path()).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt);
        assert_eq!(error.reason(), Some("it is truncated: 24575 bytes of 24576"));
    }

    #[test]
    fn impossible_headers_are_refused() {
        for (page_bytes, last_page, bytes) in
            [(4096, 5, 0), (4096, 5, 100), (4096, 5, 4096), (4096, u64::MAX, 8192), (96, 1, 192)]
        {
            let file = file(page_bytes, last_page, bytes);
            assert_eq!(
                check(file.path()).unwrap_err().kind(),
                Kind::Corrupt,
                "{page_bytes} {last_page} {bytes}"
            );
        }
    }
}
