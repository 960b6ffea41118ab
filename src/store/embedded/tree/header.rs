//! Checks the data file before LMDB maps it: that it is as long as its header says, because reading a mapped page
//! that the file does not have kills the process.
//!
//! Example: with page size 4096 and last page 5, the file must be at least 24576 bytes long.
//!
//! One exception: free pages at the end may never have been written. So where pages are missing we read the free list,
//! a B-tree whose values are lists of page numbers in descending order, and refuse the file unless each is on it.
//!
//! Before the first write the free list is read in any case, for LMDB takes the pages for new data from it: if it is
//! malformed, LMDB would overwrite pages in use. After LMDB 0.9.70, `mdb.c`.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::meta::{META_BYTES, Meta, MetaHead};
use super::page::{HEADER_BYTES, Page, Stored, pages_of_long, u64_at};
use super::view::Trees;
use crate::error::{Error, Kind, Result, sqlstate};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the embedded store needs 64-bit addresses: it maps the whole database");

/// Refuses a data file that LMDB could not map and read safely. Gives its newest meta page.
///
/// Errors: `Corrupt`, naming the file, when it is missing, truncated or no LMDB file.
pub(in crate::store::embedded) fn check(path: &Path) -> Result<Meta> {
    let (mut file, meta) = DataFile::with_meta(path)?;
    let mut missing = file.bytes / meta.page_bytes..=meta.last_page;
    if missing.is_empty()
        || file.free_pages(&meta).is_some_and(|free| missing.all(|page| free.contains(page)))
    {
        return Ok(meta);
    }
    let promised = (meta.last_page.saturating_add(1)).saturating_mul(meta.page_bytes);
    Err(damaged(path, &format!("it is truncated: {} bytes of {promised}", file.bytes)))
}

/// Refuses a data file that LMDB could not write safely.
///
/// Errors: `Corrupt`, naming the file, when its free list is malformed or has the root of a tree, or when trees and
/// free pages together do not fit into the file.
pub(super) fn check_free(path: &Path, trees: &Trees) -> Result<()> {
    let (mut file, meta) = DataFile::with_meta(path)?;
    let free =
        file.free_pages(&meta).ok_or_else(|| damaged(path, "its list of free pages makes no sense"))?;
    let mut pages = free.count;
    for root in trees.values().chain([&meta.keyspaces, &meta.free]) {
        if root.page.is_some_and(|page| free.contains(page)) {
            return Err(damaged(path, "the root of a tree is on its list of free pages"));
        }
        pages = pages.saturating_add(root.pages);
    }
    match pages <= meta.last_page.saturating_add(1) {
        true => Ok(()),
        false => Err(damaged(path, "its trees have more pages than it has")),
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
    /// The file, and its newest meta page.
    fn with_meta(path: &Path) -> Result<(DataFile, Meta)> {
        let mut file = DataFile::open(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => damaged(path, "it is missing"),
            _ => Error::new(Kind::Unavailable, format!("{} cannot be read", path.display()))
                .why(e.to_string())
                .state(sqlstate::IO)
                .caused_by(e),
        })?;
        let meta = file.newest_meta().map_err(|why| damaged(path, why))?;
        Ok((file, meta))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        Ok(DataFile { file, bytes })
    }

    /// `len` bytes from `at`; `None` when the file has fewer or refuses.
    fn read(&mut self, at: u64, len: usize) -> Option<Vec<u8>> {
        if at.checked_add(len as u64)? > self.bytes {
            return None;
        }
        let mut out = vec![0; len];
        self.fill(at, &mut out)?;
        Some(out)
    }

    /// Fills `out` from offset `at`; `None` when the file has fewer bytes or refuses.
    fn fill(&mut self, at: u64, out: &mut [u8]) -> Option<()> {
        self.file.seek(SeekFrom::Start(at)).ok()?;
        self.file.read_exact(out).ok()
    }

    fn newest_meta(&mut self) -> Result<Meta, &'static str> {
        let bytes = self.read(0, META_BYTES).unwrap_or_default();
        let first = MetaHead::parse(&bytes)?;
        let others = self.read(first.page_bytes, META_BYTES).unwrap_or_default();
        let second = MetaHead::parse(&others)?;
        // They are written in turn, by the parity of the transaction; both of a new file have transaction 0.
        let is_in_turn = |meta: &MetaHead, page| meta.txn == 0 || meta.txn % 2 == page;
        if first.txn.abs_diff(second.txn) > 1 || !is_in_turn(&first, 0) || !is_in_turn(&second, 1) {
            return Err("its first pages do not follow each other");
        }
        Meta::parse(if second.txn > first.txn { &others } else { &bytes })
    }

    /// The pages on the free list; `None` when it is malformed.
    fn free_pages(&mut self, meta: &Meta) -> Option<FreePages> {
        // Limits memory: each page that the file lacks takes 8 bytes on the free list, which is in the file.
        let listed_at_most = self.bytes / 8;
        let pages_at_most = (self.bytes / meta.page_bytes).checked_add(listed_at_most)?;
        let mut free = FreePages::of(meta.last_page.checked_add(1).filter(|pages| *pages <= pages_at_most)?);
        if let Some(root) = meta.free.page {
            self.add_free(meta, root, 1, &mut 0, &mut free)?;
        }
        Some(free)
    }

    /// Adds the free pages listed in the tree under page `number`. Its keys are the transactions that freed them;
    /// `last` is the previous key.
    fn add_free(
        &mut self,
        meta: &Meta,
        number: u64,
        depth: u16,
        last: &mut u64,
        free: &mut FreePages,
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
            // LMDB relies on ascending transactions.
            if txn <= std::mem::replace(last, txn) || txn > meta.txn {
                return None;
            }
            match stored {
                Stored::Here(list) => {
                    let (count, pages) = list.split_first_chunk()?;
                    let bytes = u64::from_ne_bytes(*count).checked_mul(8)?;
                    free.add(pages.get(..usize::try_from(bytes).ok()?)?, u64::MAX)?;
                }
                Stored::Tree(_) => return None,
                Stored::Long { page, bytes } => self.add_long(meta, page, bytes as u64, free)?,
            }
        }
        Some(())
    }

    /// Adds a list that is stored as a long value, on pages of its own.
    fn add_long(&mut self, meta: &Meta, page: u64, bytes: u64, free: &mut FreePages) -> Option<()> {
        let at = page.checked_mul(meta.page_bytes)?;
        let head = self.read(at, HEADER_BYTES + 8)?;
        let pages = pages_of_long(&head[..HEADER_BYTES], page)?;
        let room = pages.checked_mul(meta.page_bytes)?.checked_sub(HEADER_BYTES as u64)?;
        let listed = u64_at(&head, HEADER_BYTES)?.checked_mul(8)?;
        if bytes > room || pages > meta.free.long_pages || listed.checked_add(8)? > bytes {
            return None;
        }
        let begin = at + head.len() as u64;
        let end = begin.checked_add(listed)?;
        let (mut piece, mut above) = (vec![0; PIECE_BYTES], u64::MAX);
        for at in (begin..end).step_by(PIECE_BYTES) {
            piece.truncate((end - at) as usize);
            self.fill(at, &mut piece)?;
            above = free.add(&piece, above)?;
        }
        Some(())
    }
}

/// How much of a long list is read at once.
const PIECE_BYTES: usize = 32 << 10;

/// The pages that no tree may use: the free ones, which LMDB will overwrite, and the two meta pages.
#[derive(Debug)]
struct FreePages {
    /// A bit for each page of the file.
    bits: Vec<u64>,
    /// Pages of the file.
    pages: u64,
    /// Bits that are set.
    count: u64,
}

impl FreePages {
    fn of(pages: u64) -> Self {
        let mut bits = vec![0; pages as usize / 64 + 1];
        bits[0] = 0b11;
        FreePages { bits, pages, count: 2 }
    }

    /// Adds a list, or a piece of one whose last page was `above`: 8 bytes for each page, in descending order. Gives
    /// the last page.
    ///
    /// `None`: the order is wrong, or a page is beyond the file or was added before.
    fn add(&mut self, list: &[u8], mut above: u64) -> Option<u64> {
        let (list, rest) = list.as_chunks();
        for page in list {
            let page = u64::from_ne_bytes(*page);
            let (word, bit) = (self.bits.get_mut(page as usize / 64)?, 1 << (page % 64));
            if page >= self.pages || page >= above || *word & bit != 0 {
                return None;
            }
            *word |= bit;
            above = page;
        }
        self.count += list.len() as u64;
        rest.is_empty().then_some(above)
    }

    fn contains(&self, page: u64) -> bool {
        self.bits.get(page as usize / 64).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::embedded::tree::meta::Root;

    /// A file with a newer and an older meta page with these numbers, `bytes` long.
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
    fn free_pages_are_listed_once_in_falling_order() {
        let list = |pages: &[u64]| pages.iter().flat_map(|page| page.to_ne_bytes()).collect::<Vec<u8>>();
        let added = |pages: &[u64]| {
            let mut free = FreePages::of(70);
            free.add(&list(&[68, 63, 9]), u64::MAX)?;
            free.add(&list(pages), u64::MAX)?;
            Some(free)
        };
        let free = added(&[69, 64, 2]).unwrap();
        assert_eq!(
            (0..200).filter(|page| free.contains(*page)).collect::<Vec<_>>(),
            [0, 1, 2, 9, 63, 64, 68, 69]
        );
        assert_eq!(free.count, 8);
        assert!(!free.contains(u64::MAX));
        for refused in [&[70][..], &[u64::MAX], &[63], &[1], &[0], &[5, 5], &[5, 6], &[130]] {
            assert!(added(refused).is_none(), "{refused:?}");
        }
        let mut free = FreePages::of(70);
        assert_eq!(free.add(&list(&[30, 20]), u64::MAX), Some(20));
        assert!(free.add(&list(&[21]), 20).is_none(), "a list goes on in falling order");
        assert!(free.add(&list(&[19])[..7], 20).is_none(), "half a number");
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
