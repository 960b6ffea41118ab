//! Explains a choice in words: why this path, why not the others, and what would serve better.

use super::advice::index_for;
use super::cost::COST;
use super::path::{Access, Method, Need, Path, SetOp};
use crate::error::counted;
use crate::key::KeyLayout;
use crate::schema::{IndexDef, TableDef};

/// The reason if nothing is read.
pub const NO_ROW: &str = "no row can match the WHERE; nothing is read";

/// Why the path was chosen. `is_counted`: as [`Access::is_counted`].
pub(super) fn reason(access: &Access, layout: &KeyLayout, need: &Need, is_counted: bool) -> String {
    let hinted = if need.hints.is_some() { "hinted; " } else { "" };
    if is_counted {
        return format!("{hinted}only the number of entries is asked for, which is known; none is read");
    }
    format!("{hinted}{}", plain_reason(access, layout, need))
}

fn plain_reason(access: &Access, layout: &KeyLayout, need: &Need) -> String {
    let order = if access.ordered && !need.order.is_empty() { ", already in order" } else { "" };
    match &access.method {
        Method::Empty => NO_ROW.into(),
        Method::Get(keys) if keys.len() == 1 => "every part of the rowkey is known".into(),
        Method::Get(keys) => format!("every part of {} rowkeys is known", keys.len()),
        method if method.is_whole() => {
            let first = layout.parts().first().map_or("", |p| p.sql());
            let unbound = match need.hints.full {
                true => String::new(),
                false => format!("no condition bounds the leading part {first}; "),
            };
            let read = match (need.limit, access.path) {
                (Some(_), _) if access.ordered || need.order.is_empty() => "reading stops at the limit",
                (_, Path::IndexOnly(_)) => "every entry is read, but no row of the table",
                _ => "every entry is read",
            };
            format!("{unbound}{read}{order}")
        }
        Method::Gather { set, branches, .. } => {
            let given = match set {
                SetOp::Union => "rows that any of",
                SetOp::Intersection => "rows that all of",
            };
            let n = branches.len();
            format!("{given} {n} walks find, about {}{order}", counted(access.entries.ceil(), "entry"))
        }
        Method::Scan { ranges, skip, .. } => {
            let n = ranges.as_slice().len();
            let read = match skip {
                Some(skip) => {
                    let over = match skip.skip.each_of() {
                        Some(_) => "from group to group",
                        None => "over keys that cannot match",
                    };
                    match ranges.is_all() {
                        true => format!("jumps {over}"),
                        false => format!("{}, jumping {over}", counted(n, "range")),
                    }
                }
                None => counted(n, "range"),
            };
            let entries = counted(access.entries.ceil(), "entry");
            format!("{read}, about {entries}{}{order}", after_jumps(access))
        }
    }
}

/// ` after 3 jumps`, or nothing: from group to group, there is a jump to each entry.
fn after_jumps(access: &Access) -> String {
    match access.jumps.ceil() {
        jumps if jumps > 0.0 && !access.jumps_each() => format!(" after {}", counted(jumps, "jump")),
        _ => String::new(),
    }
}

/// A hint about a missing index, if most of a large table is read for want of it.
pub(super) fn note(table: &TableDef, need: &Need, best: &Access) -> Option<String> {
    let is_large = best.method.is_whole() && best.entries >= COST.entries_min as f64;
    if !is_large || need.hints.is_some() {
        return None;
    }
    let create = index_for(table, need)?;
    Some(format!("{} are read; {create} would serve", counted(best.entries.ceil(), "entry")))
}

/// Why a path lost on price.
pub(super) fn more(index: &IndexDef, loser: &Access, best: &Access) -> String {
    if loser.method.is_unbound() && !best.method.is_unbound() {
        return unbound(index);
    }
    let describe = |a: &Access| {
        let fetches = match (&a.method, a.path) {
            (Method::Gather { covering: false, .. }, _) => " and at most as many fetches",
            (_, Path::IndexFetch(_)) if a.entries.ceil() == 1.0 => " and a fetch",
            (_, Path::IndexFetch(_)) => " and as many fetches",
            (_, Path::Primary | Path::IndexOnly(_)) => "",
        };
        format!("about {}{fetches}{}", counted(a.entries.ceil(), "entry"), after_jumps(a))
    };
    let reads = |a: &Access| {
        let each = if matches!(a.path, Path::IndexFetch(_)) { COST.entry + COST.get } else { COST.entry };
        a.entries * each + a.jumps * (COST.entry + COST.seek)
    };
    let (mine, theirs) = (describe(loser), describe(best));
    if best.ordered && !loser.ordered {
        format!("would read {mine}, not in the order wanted")
    } else if mine == theirs {
        format!("would read {mine}, no cheaper")
    } else if reads(loser) < reads(best) {
        // Among so few entries any path is quick; the choice is for a growing table.
        format!("would read {mine}, but more than {} as the table grows", source_name(best))
    } else {
        format!("would read {mine}, against {theirs}")
    }
}

fn source_name(access: &Access) -> &'static str {
    match access.path {
        Path::Primary => "the table",
        Path::IndexOnly(_) | Path::IndexFetch(_) => "the chosen index",
    }
}

/// The reason against an index of which every entry would be read.
pub(super) fn unbound(index: &IndexDef) -> String {
    match index.layout.parts().first() {
        Some(part) => format!("its leading part {} is not bound", part.sql()),
        None => "it is not bound".into(),
    }
}
