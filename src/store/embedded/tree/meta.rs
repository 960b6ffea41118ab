//! The first two pages of LMDB's file, its meta pages: each describes the state after a transaction, and the one with
//! the greater transaction number counts.
//!
//! All numbers are in the machine's byte order:
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 16 | 4 | magic, BEEFC0DE |
//! | 20 | 4 | version of the file format, 1 |
//! | 40 | 48 | the tree of free pages, whose first 4 bytes are the page size |
//! | 88 | 48 | the tree of keyspaces |
//! | 136 | 8 | last page in use |
//! | 144 | 8 | transaction number |
//!
//! A tree:
//!
//! | at | bytes | holds |
//! |---|---|---|
//! | 4 | 2 | flags: 8, its keys are numbers; 0 |
//! | 6 | 2 | depth: 1 if it is one page |
//! | 8 | 24 | branch pages, leaf pages, and those of long values |
//! | 32 | 8 | entries |
//! | 40 | 8 | root page; all ones: it is empty |

use super::page::{u16_at, u32_at, u64_at};

const MAGIC: u32 = 0xBEEF_C0DE;
const VERSION: u32 = 1;
/// Length of the part of the page that we read.
pub(super) const META_BYTES: usize = 152;
const NO_PAGE: u64 = u64::MAX;
/// LMDB's own limit.
const DEPTH_MAX: u16 = 32;

/// The content of a meta page.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::embedded) struct Meta {
    pub(super) page_bytes: u64,
    /// Lists of free pages.
    pub(super) free: Root,
    /// Keyspaces by their names.
    pub(super) keyspaces: Root,
    pub(super) last_page: u64,
    pub(super) txn: u64,
}

/// The part that tells the two meta pages apart. LMDB writes the transaction number last, so a torn meta page has the
/// older number, with trees that are a mixture of two moments.
#[derive(Clone, Copy)]
pub(super) struct MetaHead {
    pub(super) page_bytes: u64,
    pub(super) txn: u64,
}

/// What the file says of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store::embedded) struct Root {
    /// Its root page; `None` if it is empty.
    pub(super) page: Option<u64>,
    /// Levels of pages.
    pub(super) depth: u16,
    pub(super) entries: u64,
    /// Pages (count), including those of long values; and the latter alone.
    pub(super) pages: u64,
    pub(super) long_pages: u64,
    /// Trees (count) of the same keyspace that were given up before this one, taken from its name.
    pub(super) given_up: usize,
}

impl Root {
    /// A tree without entries.
    pub(super) const EMPTY: Root =
        Root { page: None, depth: 0, entries: 0, pages: 0, long_pages: 0, given_up: 0 };

    /// Parses a tree whose keys are bytes; `None` if it is malformed.
    pub(super) fn parse(tree: &[u8]) -> Option<Root> {
        if u16_at(tree, 4)? == 0 { Root::of(tree) } else { None }
    }

    /// Parses a tree with any kind of keys.
    fn of(tree: &[u8]) -> Option<Root> {
        let (depth, entries, page) = (u16_at(tree, 6)?, u64_at(tree, 32)?, u64_at(tree, 40)?);
        let long_pages = u64_at(tree, 24)?;
        let pages = u64_at(tree, 8)?.checked_add(u64_at(tree, 16)?)?.checked_add(long_pages)?;
        let page = (page != NO_PAGE).then_some(page);
        let root = Root { page, depth, entries, pages, long_pages, given_up: 0 };
        let is_one = match root.page {
            Some(_) => (1..=DEPTH_MAX).contains(&depth) && entries > 0 && pages >= depth.into(),
            None => root == Root::EMPTY,
        };
        is_one.then_some(root)
    }
}

impl MetaHead {
    pub(super) fn parse(page: &[u8]) -> Result<Self, &'static str> {
        if page.len() < META_BYTES {
            return Err("it is shorter than its header");
        }
        let [magic, version, page_bytes] = [16, 20, 40].map(|at| u32_at(page, at).unwrap_or(0));
        if magic != MAGIC {
            return Err("its first pages are not those of an LMDB file");
        }
        if version != VERSION {
            return Err("it has another version of LMDB's format");
        }
        if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
            return Err("its page size is impossible");
        }
        Ok(MetaHead { page_bytes: page_bytes.into(), txn: u64_at(page, 144).unwrap_or(0) })
    }
}

impl Meta {
    pub(super) fn parse(page: &[u8]) -> Result<Self, &'static str> {
        let MetaHead { page_bytes, txn } = MetaHead::parse(page)?;
        let (Some(free), Some(keyspaces)) = (Root::of(&page[40..]), Root::parse(&page[88..])) else {
            return Err("its first pages name no trees");
        };
        Ok(Meta { page_bytes, free, keyspaces, last_page: u64_at(page, 136).unwrap_or(0), txn })
    }

    /// Writes a meta page, for tests of the checks.
    #[cfg(test)]
    pub(super) fn write(&self, page: &mut [u8]) {
        page[16..][..4].copy_from_slice(&MAGIC.to_ne_bytes());
        page[20..][..4].copy_from_slice(&VERSION.to_ne_bytes());
        page[40..][..4].copy_from_slice(&(self.page_bytes as u32).to_ne_bytes());
        for (at, root) in [(40, self.free), (88, self.keyspaces)] {
            page[at + 16..][..8].copy_from_slice(&root.pages.to_ne_bytes());
            page[at + 6..][..2].copy_from_slice(&root.depth.to_ne_bytes());
            page[at + 32..][..8].copy_from_slice(&root.entries.to_ne_bytes());
            page[at + 40..][..8].copy_from_slice(&root.page.unwrap_or(NO_PAGE).to_ne_bytes());
        }
        page[136..][..8].copy_from_slice(&self.last_page.to_ne_bytes());
        page[144..][..8].copy_from_slice(&self.txn.to_ne_bytes());
    }
}
