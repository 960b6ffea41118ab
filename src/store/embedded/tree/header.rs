//! Is the data file as long as it says? Asked before LMDB maps it, since reading a mapped page that
//! the file does not have kills the process.
//!
//! The first two pages are meta pages; the one with the greater transaction number counts. All
//! numbers are in the machine's byte order; we look at these:
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 16 | 4 | magic, BEEFC0DE |
//! | 20 | 4 | version of the file format, 1 |
//! | 40 | 4 | page size |
//! | 80 | 8 | root page of the free list |
//! | 120 | 8 | number of named databases |
//! | 136 | 8 | last page in use |
//! | 144 | 8 | transaction number |
//!
//! Example: with page size 4096 and last page 5, the file is at least 24576 bytes long.
//!
//! One exception: pages at the end that are on the free list may never have been written. So if the
//! file is shorter, we read the free list, a B-tree whose values are lists of page numbers, and
//! refuse the file unless every missing page is on it. After LMDB 0.9.70, `mdb.c`.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, Kind, Result, sqlstate};

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the embedded store needs 64-bit addresses: it maps the whole database");

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
const META_BYTES: usize = 152;
const PAGE_HEADER_BYTES: usize = 16;
const NODE_HEADER_BYTES: usize = 8;
const BRANCH_PAGE: u16 = 0x01;
const LEAF_PAGE: u16 = 0x02;
/// The value of the node is elsewhere, on pages of its own.
const BIG_DATA: u16 = 0x01;
/// Root of a tree without entries.
const NO_PAGE: u64 = u64::MAX;
/// LMDB's own limit.
const DEPTH_MAX: u32 = 32;

/// Refuses a data file that LMDB could not map and read safely. Gives the number of named databases.
///
/// Errors: `Corrupt`, naming the file, when it is missing, no LMDB file, or truncated.
pub(in crate::store::embedded) fn check(path: &Path) -> Result<u64> {
    let mut file = DataFile::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => damaged(path, "it is missing"),
        _ => Error::new(Kind::Unavailable, format!("{} cannot be read", path.display()))
            .why(e.to_string())
            .state(sqlstate::IO)
            .caused_by(e),
    })?;
    let meta = file.newest_meta().map_err(|why| damaged(path, why))?;
    let present = file.bytes / meta.page_bytes;
    if present > meta.last_page || file.are_free(&meta, present..=meta.last_page) {
        return Ok(meta.databases);
    }
    let promised = (meta.last_page.saturating_add(1)).saturating_mul(meta.page_bytes);
    Err(damaged(path, &format!("it is truncated: {} bytes of {promised}", file.bytes)))
}

fn damaged(path: &Path, why: &str) -> Error {
    Error::corrupt(format!("{} is damaged", path.display()))
        .why(why)
        .hint("restore the database from a backup")
}

/// What one meta page says.
struct Meta {
    page_bytes: u64,
    free_root: u64,
    databases: u64,
    last_page: u64,
    txn: u64,
}

impl Meta {
    fn parse(page: &[u8]) -> Result<Self, &'static str> {
        if page.len() < META_BYTES {
            return Err("it is shorter than its header");
        }
        let [magic, version, page_bytes] = [16, 20, 40].map(|at| u32_at(page, at).unwrap_or(0));
        let [free_root, databases, last_page, txn] =
            [80, 120, 136, 144].map(|at| u64_at(page, at).unwrap_or(0));
        if magic != MAGIC {
            return Err("its first pages are not those of an LMDB file");
        }
        if version != VERSION {
            return Err("it has another version of LMDB's format");
        }
        if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
            return Err("its page size is impossible");
        }
        Ok(Meta { page_bytes: page_bytes.into(), free_root, databases, last_page, txn })
    }
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
        let first = Meta::parse(&self.read(0, META_BYTES).unwrap_or_default())?;
        let second = Meta::parse(&self.read(first.page_bytes, META_BYTES).unwrap_or_default())?;
        Ok(if second.txn > first.txn { second } else { first })
    }

    /// Every page of `pages` is on the free list. A list that cannot be read holds nothing.
    fn are_free(&mut self, meta: &Meta, pages: std::ops::RangeInclusive<u64>) -> bool {
        let mut free = HashSet::new();
        let read = meta.free_root == NO_PAGE || self.free_pages(meta, meta.free_root, 0, &mut free).is_some();
        read && pages.into_iter().all(|page| free.contains(&page))
    }

    /// Collects the page numbers in the tree under `page`; `None` when it makes no sense.
    fn free_pages(&mut self, meta: &Meta, page: u64, depth: u32, out: &mut HashSet<u64>) -> Option<()> {
        let bytes = self.read(page.checked_mul(meta.page_bytes)?, meta.page_bytes as usize)?;
        let flags = u16_at(&bytes, 10)?;
        for node in nodes(&bytes)? {
            let node = Node::parse(&bytes, node)?;
            match flags & (BRANCH_PAGE | LEAF_PAGE) {
                BRANCH_PAGE if depth < DEPTH_MAX => self.free_pages(meta, node.child(), depth + 1, out)?,
                LEAF_PAGE => out.extend(page_list(&self.value(meta, &bytes, &node)?)?),
                _ => return None,
            }
        }
        Some(())
    }

    fn value(&mut self, meta: &Meta, page: &[u8], node: &Node) -> Option<Vec<u8>> {
        if node.flags & BIG_DATA == 0 {
            return page.get(node.data..node.data.checked_add(node.value_bytes())?).map(<[u8]>::to_vec);
        }
        let overflow = u64_at(page, node.data)?.checked_mul(meta.page_bytes)?;
        self.read(overflow.checked_add(PAGE_HEADER_BYTES as u64)?, node.value_bytes())
    }
}

/// Header of an entry within a page: three 16-bit numbers (low and high half of a size or page number,
/// flags or the page number's top), the length of the key, then key and value.
struct Node {
    low: u32,
    flags: u16,
    /// Where the value starts within the page.
    data: usize,
}

impl Node {
    fn parse(page: &[u8], at: usize) -> Option<Self> {
        let low = u32::from(u16_at(page, at)?) | u32::from(u16_at(page, at + 2)?) << 16;
        let flags = u16_at(page, at + 4)?;
        let key_bytes = usize::from(u16_at(page, at + 6)?);
        Some(Node { low, flags, data: at + NODE_HEADER_BYTES + key_bytes })
    }

    fn child(&self) -> u64 {
        u64::from(self.low) | u64::from(self.flags) << 32
    }

    fn value_bytes(&self) -> usize {
        self.low as usize
    }
}

/// Offsets of the nodes of a page.
fn nodes(page: &[u8]) -> Option<Vec<usize>> {
    let lower = usize::from(u16_at(page, 12)?);
    let offsets = page.get(PAGE_HEADER_BYTES..lower)?;
    (0..offsets.len() / 2).map(|i| u16_at(offsets, 2 * i).map(usize::from)).collect()
}

/// A list of page numbers: their count, then each, 8 bytes apiece.
fn page_list(value: &[u8]) -> Option<Vec<u64>> {
    let count = usize::try_from(u64_at(value, 0)?).ok()?;
    if count > value.len() / 8 {
        return None;
    }
    (1..=count).map(|i| u64_at(value, 8 * i)).collect()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of a newer meta page with these numbers, an older one, and `bytes` in all.
    fn file(page_bytes: u32, last_page: u64, bytes: u64) -> tempfile::NamedTempFile {
        let mut data = vec![0u8; page_bytes as usize + META_BYTES];
        for (page, txn) in [(0, 8u64), (1, 7)] {
            let at = page * page_bytes as usize;
            data[at + 16..][..4].copy_from_slice(&MAGIC.to_ne_bytes());
            data[at + 20..][..4].copy_from_slice(&VERSION.to_ne_bytes());
            data[at + 40..][..4].copy_from_slice(&page_bytes.to_ne_bytes());
            data[at + 80..][..8].copy_from_slice(&NO_PAGE.to_ne_bytes());
            data[at + 136..][..8].copy_from_slice(&last_page.to_ne_bytes());
            data[at + 144..][..8].copy_from_slice(&txn.to_ne_bytes());
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
